use clap::Args;
use clap_complete::Shell;
use store::Failure;

use super::completion;
use crate::context::Context;
use crate::exit::Exit;

#[derive(Debug, Args)]
pub(crate) struct CompletionsArgs {
    /// Which shell
    shell: Shell,
}

/// Prints the script. It asks `ccb` at every completion, so it is never out of date.
pub(crate) fn run(args: &CompletionsArgs, context: &mut Context) -> Result<Exit, Failure> {
    let script = completion::script(&args.shell.to_string())?;
    context.out.text(&script)?;
    Ok(Exit::Done)
}
