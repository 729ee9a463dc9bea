use std::path::PathBuf;

use clap::{Args, CommandFactory};
use serde_json::json;
use store::Failure;
use store::atomic::{Durability, Staged};

use super::Cli;
use crate::context::Context;
use crate::exit::Exit;
use crate::manual;

#[derive(Debug, Args)]
pub(crate) struct ManArgs {
    /// Write a page for every command into this directory instead of printing the first one
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

/// Prints the manual, or writes it to a directory.
pub(crate) fn run(args: &ManArgs, context: &mut Context) -> Result<Exit, Failure> {
    let pages = manual::pages(Cli::command())
        .map_err(|error| Failure::failed("io", format!("the manual: {error}")))?;
    let Some(dir) = &args.out else {
        if let Some(first) = pages.first() {
            let text = String::from_utf8_lossy(&first.text);
            context.out.text(text.trim_end())?;
        }
        return Ok(Exit::Done);
    };
    let dir = context.directory.join(dir);
    store::home::create_dir(&dir)?;
    for page in &pages {
        let staged = Staged::write(&dir, &page.text, Durability::Relaxed)?;
        staged.replace(&dir.join(&page.file))?;
    }
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
