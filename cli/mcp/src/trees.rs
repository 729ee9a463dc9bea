//! `EnterWorktree` and `ExitWorktree`: the caller's own worktree, never another agent's.

use coordinator::actions::worktree::{self, Leave};
use project::workplace::{TreeWish, Workplace};
use store::Failure;
use worktrees::Slug;

use super::answer::Answer;
use super::arguments::Arguments;

pub(super) fn enter(arguments: &Arguments, context: &Workplace) -> Result<Answer, Failure> {
    let name = arguments.optional("name");
    let name = name.as_deref().map(Slug::new).transpose()?;
    let (record, created) = worktree::enter(name, &TreeWish::default(), context)?;
    let mut json = worktree::entered_json(&record, &created);
    json["worktreePath"] = record.worktree_path.clone().into();
    json["worktreeBranch"] = record.worktree_branch.clone().into();
    let branch = record.worktree_branch.as_deref();
    let branch = branch.map(|branch| format!(" on branch {branch}"));
    let text = format!(
        "You are in the worktree {}{}. Work there and nowhere else until ExitWorktree: change to \
         that directory, and use paths in it.",
        record.worktree_path,
        branch.unwrap_or_default()
    );
    Ok(Answer::new(text, json))
}

pub(super) fn exit(arguments: &Arguments, context: &Workplace) -> Result<Answer, Failure> {
    let discard = arguments.flag("discard_changes").unwrap_or(false);
    let how = match arguments.text("action").as_str() {
        "remove" => Leave::Remove { discard },
        _ if discard => {
            let message = "ExitWorktree: discard_changes goes with action \"remove\" only";
            let error = Failure::usage("invalid_arguments", message);
            return Err(error.with_hint("leave it out, or remove the worktree"));
        }
        _ => Leave::Keep,
    };
    let left = worktree::leave(how, context)?;
    let record = &left.record;
    let mut json = worktree::left_json(&left);
    json["action"] = arguments.text("action").into();
    json["originalCwd"] = record.original_cwd.clone().into();
    json["worktreePath"] = record.worktree_path.clone().into();
    json["worktreeBranch"] = record.worktree_branch.clone().into();
    let what = match (&left.removed, &left.entry) {
        (Some(removed), _) if removed.entry.hook_based => {
            "The worktree is removed by its hook; it cannot be restored.".to_owned()
        }
        (Some(_), _) => format!(
            "The worktree is removed; `ccb worktree undo {}` restores it.",
            record.worktree_name
        ),
        (None, Some(_)) => format!("The worktree stays at {}.", record.worktree_path),
        (None, None) => "The worktree was gone already.".to_owned(),
    };
    let text = format!("{what} Go back to {}.", record.original_cwd);
    Ok(Answer::new(text, json))
}
