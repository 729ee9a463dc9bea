use clap::Args;
use coordinator::actions::worktree::{self, Leave};
use store::Failure;
use worktrees::Slug;

use super::create::NewTree;
use crate::context::Context;
use crate::exit::Exit;

#[derive(Debug, Args)]
pub(crate) struct EnterArgs {
    /// The worktree's name [default: a generated one]
    #[arg(allow_hyphen_values = true)]
    name: Option<String>,
    #[command(flatten)]
    new: NewTree,
}

#[derive(Debug, Args)]
pub(crate) struct ExitArgs {
    /// Keep the worktree
    #[arg(long, required_unless_present = "remove", conflicts_with = "remove")]
    keep: bool,
    /// Remove the worktree; refused if it has changes
    #[arg(long)]
    remove: bool,
    /// Remove it even if it has changes; `ccb worktree undo` restores them
    #[arg(long, requires = "remove", conflicts_with = "keep")]
    discard: bool,
}

/// Prints the path and nothing else, for `cd "$(ccb worktree enter x)"`.
pub(crate) fn enter(args: &EnterArgs, context: &mut Context) -> Result<Exit, Failure> {
    let name = args.name.as_deref().map(Slug::new).transpose()?;
    let (record, created) = worktree::enter(name, &args.new.wish(), context)?;
    let json = || worktree::entered_json(&record, &created);
    context.out.done(json, || record.worktree_path.clone())
}

/// Prints where the session came from and nothing else, for `cd "$(ccb worktree exit …)"`.
pub(crate) fn exit(args: &ExitArgs, context: &mut Context) -> Result<Exit, Failure> {
    let how = match args.keep {
        true => Leave::Keep,
        false => Leave::Remove {
            discard: args.discard,
        },
    };
    let left = worktree::leave(how, context)?;
    let json = || worktree::left_json(&left);
    context.out.done(json, || left.record.original_cwd.clone())
}
