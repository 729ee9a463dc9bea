use clap::Args;
use coordinator::session::{Left, Session, SessionError};
use serde_json::json;
use worktrees::RemoveRequest;

use super::create::NewTree;
use super::{fill_behind, slug, to_json};
use crate::context::Context;
use crate::error::{CommandError, Exit};

#[derive(Debug, Args)]
pub(crate) struct EnterArgs {
    /// The worktree's name; one is made up if you give none
    #[arg(allow_hyphen_values = true)]
    name: Option<String>,
    #[command(flatten)]
    new: NewTree,
}

#[derive(Debug, Args)]
pub(crate) struct ExitArgs {
    /// The worktree stays
    #[arg(long, required_unless_present = "remove", conflicts_with = "remove")]
    keep: bool,
    /// The worktree is removed; refused if it has changes
    #[arg(long)]
    remove: bool,
    /// Remove it even if it has changes; `ccb worktree undo` brings them back
    #[arg(long, requires = "remove", conflicts_with = "keep")]
    discard: bool,
}

/// Prints the path and nothing else, for `cd "$(ccb worktree enter x)"`.
pub(crate) fn enter(args: &EnterArgs, context: &mut Context) -> Result<Exit, CommandError> {
    let name = args.name.as_deref().map(slug).transpose()?;
    let trees = context.trees()?;
    let directory = context.directory.clone();
    let request = args.new.request(name, &directory, context)?;
    let team = context.team()?;
    let session = Session {
        home: context.home(),
        team: &team,
        id: Context::session_id(),
        trees: &trees,
    };
    let (record, created) = session.enter(&request, &directory)?;
    fill_behind(&created, context);
    let json = || {
        let mut tree = to_json(&created.entry);
        tree["created"] = created.created.into();
        json!({"worktree": tree, "session": record})
    };
    context.out.answer(json, || record.worktree_path.clone())?;
    Ok(Exit::Done)
}

/// Prints where the session came from and nothing else, for `cd "$(ccb worktree exit …)"`.
pub(crate) fn exit(args: &ExitArgs, context: &mut Context) -> Result<Exit, CommandError> {
    let trees = context.trees()?;
    let team = context.team()?;
    let session = Session {
        home: context.home(),
        team: &team,
        id: Context::session_id(),
        trees: &trees,
    };
    let left: Left = if args.keep {
        session.leave_and_keep()?
    } else {
        let request = RemoveRequest {
            discard: args.discard,
            ..RemoveRequest::default()
        };
        session.leave_and_remove(&request)?
    };
    let json = || {
        json!({
            "worktree": left.entry.as_ref().map(to_json),
            "session": left.record,
            "removed": left.removed.is_some(),
        })
    };
    context
        .out
        .answer(json, || left.record.original_cwd.clone())?;
    Ok(Exit::Done)
}

impl From<SessionError> for CommandError {
    fn from(error: SessionError) -> Self {
        let message = error.to_string();
        let other = |exit, kind, hint: Option<&str>| Self::Other {
            exit,
            kind,
            message,
            hint: hint.map(str::to_owned),
        };
        match error {
            SessionError::Tree(error) => Self::Tree(error),
            SessionError::Store(error) => error.into(),
            SessionError::InTree { .. } => other(
                Exit::Refused,
                "in_worktree",
                Some("leave it first with `ccb worktree exit --keep`, or be another --team"),
            ),
            SessionError::InNone => other(Exit::NotFound, "not_in_worktree", None),
            SessionError::NotYours { .. } => other(Exit::Refused, "not_yours", None),
            SessionError::OtherRepository { .. } => other(
                Exit::Refused,
                "other_repository",
                Some("leave its worktree there first, or be another --team"),
            ),
            SessionError::Unreadable { .. } => other(Exit::Failed, "session_unreadable", None),
        }
    }
}
