//! A session's own working tree: entered and left.

use coordinator::session::{Left, Session, SessionRecord};
use serde_json::{Map, Value, json};
use store::Failure;
use store::name::Name;
use swarm::LEAD;
use worktrees::{CreateRequest, Created, Entry, RemoveRequest};

use crate::context::Context;
use crate::hooks::TreeRemover;

/// How a tree is left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Leave {
    Keep,
    Remove { discard: bool },
}

/// Enters the tree that `request` names, which is made if it is not there.
pub(crate) fn enter(
    request: &CreateRequest<'_>,
    context: &Context,
) -> Result<(SessionRecord, Created), Failure> {
    let trees = context.trees()?;
    let team = context.team()?;
    let session = Session {
        home: context.home(),
        team: &team,
        member: member(context),
        id: Context::session_id(),
        trees: &trees,
    };
    Ok(session.enter(request, &context.directory)?)
}

/// Leaves the tree the session is in.
pub(crate) fn leave(how: Leave, context: &Context) -> Result<Left, Failure> {
    let trees = context.trees()?;
    let team = context.team()?;
    let session = Session {
        home: context.home(),
        team: &team,
        member: member(context),
        id: Context::session_id(),
        trees: &trees,
    };
    Ok(match how {
        Leave::Keep => session.leave_and_keep()?,
        Leave::Remove { discard } => {
            let current = session.current()?;
            let hook_based = current.is_some_and(|record| record.hook_based == Some(true));
            let remover = TreeRemover::new(hook_based && discard, context)?;
            let hook = remover.hook();
            let request = RemoveRequest {
                discard,
                hook: hook.as_ref().map(|hook| hook as _),
                ..RemoveRequest::default()
            };
            session.leave_and_remove(&request)?
        }
    })
}

/// A member has a session of its own; the lead's is the team's.
fn member(context: &Context) -> Option<&Name> {
    context.named_agent()?;
    let name = context.agent_name();
    let lead = name.as_str().eq_ignore_ascii_case(LEAD);
    (!lead).then_some(name)
}

/// What entering answers.
pub(crate) fn entered_json(record: &SessionRecord, created: &Created) -> Value {
    let mut tree = to_json(&created.entry);
    tree["created"] = created.created.into();
    json!({"worktree": tree, "session": record})
}

/// What leaving answers.
pub(crate) fn left_json(left: &Left) -> Value {
    json!({
        "worktree": left.entry.as_ref().map(to_json),
        "session": left.record,
        "removed": left.removed.is_some(),
    })
}

/// A worktree as JSON.
pub(crate) fn to_json(entry: &Entry) -> Value {
    let mut map = Map::new();
    map.insert("name".into(), entry.name.clone().into());
    map.insert("path".into(), entry.path.clone().into());
    map.insert("branch".into(), json!(entry.branch));
    map.insert("base".into(), json!(entry.base));
    map.insert("status".into(), entry.status.as_str().into());
    map.insert("task_id".into(), json!(entry.task_id));
    map.insert("agent".into(), json!(entry.agent));
    map.insert("createdAt".into(), entry.created_at.clone().into());
    map.insert("lastUsedAt".into(), entry.last_used_at.clone().into());
    if entry.hook_based {
        map.insert("hookBased".into(), true.into());
    }
    if let Some(doing) = entry.under_way() {
        map.insert("underWay".into(), doing.into());
    }
    if let Some(landed) = entry.merged.as_ref().filter(|landed| !landed.pending) {
        map.insert(
            "merged".into(),
            json!({"into": landed.into, "commit": landed.commit, "head": landed.head, "at": landed.at}),
        );
    }
    if let Some(trash) = &entry.trash {
        let undoable = !trash.emptied;
        let refs = format!("refs/ccb/rescue/{}/", trash.id);
        map.insert(
            "removed".into(),
            json!({"at": trash.at, "id": trash.id, "undoable": undoable, "rescueRefs": refs}),
        );
    }
    map.into()
}
