use clap::Args;
use coordinator::actions::trees;
use serde_json::json;
use store::Failure;

use crate::context::Context;
use crate::exit::Exit;
use crate::said::word;

#[derive(Debug, Args)]
pub(crate) struct CdArgs {
    /// The worktree's name, or an agent's; `-` is the directory you came from
    /// [default: the main worktree]
    #[arg(allow_hyphen_values = true)]
    name: Option<String>,
    /// Print the directory instead of an explanation
    #[arg(long)]
    print: bool,
}

/// Prints the path. Only the shell itself can change its directory.
pub(crate) fn run(args: &CdArgs, context: &mut Context) -> Result<Exit, Failure> {
    let directory = trees::directory_of(args.name.as_deref(), context)?;
    if args.print || context.out.is_json() {
        return context.out.done(
            || json!({"directory": directory.to_string_lossy()}),
            || directory.to_string_lossy().into_owned(),
        );
    }
    let message = "`ccb cd` needs the function that `ccb shell-init` prints";
    Err(Failure::usage("no_shell_function", message).with_hint(format!(
        "run: eval \"$(ccb shell-init bash)\" (or zsh; for fish: ccb shell-init fish | source), \
         or go there with: cd {}",
        word(&directory.to_string_lossy())
    )))
}
