use clap::{Args, CommandFactory};
use clap_complete::Shell;
use store::Failure;

use super::Cli;
use crate::context::Context;
use crate::exit::Exit;

#[derive(Debug, Args)]
pub(crate) struct CompletionsArgs {
    /// Which shell
    shell: Shell,
}

pub(crate) fn run(args: &CompletionsArgs, context: &mut Context) -> Result<Exit, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "ccb", &mut script);
    context
        .out
        .text(String::from_utf8_lossy(&script).trim_end())?;
    Ok(Exit::Done)
}
