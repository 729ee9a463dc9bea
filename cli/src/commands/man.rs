use std::path::PathBuf;

use clap::{Args, CommandFactory};
use serde_json::json;
use store::Failure;

use super::Cli;
use crate::context::Context;
use crate::exit::Exit;

#[derive(Debug, Args)]
pub(crate) struct ManArgs {
    /// Write a page for every command into this directory instead of printing the first one
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

/// Prints the manual, or writes it.
pub(crate) fn run(args: &ManArgs, context: &mut Context) -> Result<Exit, Failure> {
    let command = Cli::command();
    let Some(dir) = &args.out else {
        let page = page(&command)?;
        context
            .out
            .text(String::from_utf8_lossy(&page).trim_end())?;
        return Ok(Exit::Done);
    };
    let dir = context.directory.join(dir);
    let made = std::fs::create_dir_all(&dir);
    made.map_err(|error| Failure::failed("io", format!("{}: {error}", dir.display())))?;
    clap_mangen::generate_to(command, &dir)
        .map_err(|error| Failure::failed("io", format!("{}: {error}", dir.display())))?;
    context.out.done(
        || json!({"directory": dir.to_string_lossy()}),
        || {
            format!(
                "the manual is in {}; `man -l {}/ccb.1` shows it",
                dir.display(),
                dir.display()
            )
        },
    )
}

fn page(command: &clap::Command) -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    clap_mangen::Man::new(command.clone())
        .render(&mut bytes)
        .map_err(|error| Failure::failed("io", format!("the manual: {error}")))?;
    Ok(bytes)
}
