//! The state of the board in a form both sides can give.

use std::collections::BTreeMap;

use serde_json::{Map, Value};
use store::clock::parse_rfc3339;
use taskboard::{Task, TaskId};

use crate::naive::Model;
use crate::naive_task::{ModelLease, ModelTask};

/// A task as both sides can describe it.
#[derive(Debug, PartialEq)]
pub(crate) struct View {
    pub(crate) task: ModelTask,
    held_lease: Option<ModelLease>,
    blocks: Vec<u64>,
    blocked_by: Vec<u64>,
    ready: bool,
}

pub(crate) fn numbers(ids: &[TaskId]) -> Vec<u64> {
    ids.iter().map(|id| id.get()).collect()
}

pub(crate) fn view_of(task: &Task, ready: bool) -> View {
    let mut plain = task.metadata.clone().unwrap_or_default();
    let mut ours = match plain.shift_remove("ccb") {
        Some(Value::Object(ours)) => ours,
        None => Map::new(),
        Some(other) => panic!("metadata.ccb is {other}"),
    };
    // `null` means absent, and other tools may write one.
    if ours.get("parked") == Some(&Value::Null) {
        ours.shift_remove("parked");
    }
    let lease = ours.shift_remove("lease").unwrap_or_default();
    let text = |key: &str| lease[key].as_str().map(str::to_owned);
    let last_token = lease["token"].as_u64().unwrap_or(0);
    View {
        held_lease: task.lease().map(|lease| ModelLease {
            agent: lease.agent,
            run: lease.run,
            token: lease.token,
            expires_at: lease.expires_at,
        }),
        task: ModelTask {
            subject: task.subject.clone(),
            status: task.status,
            owner: task.owner.clone(),
            lease: text("agent").map(|agent| ModelLease {
                agent,
                run: text("run"),
                token: last_token,
                expires_at: text("expiresAt").map(|t| parse_rfc3339(&t).unwrap()),
            }),
            last_token,
            plain,
            ours,
        },
        blocks: sorted(&task.blocks),
        blocked_by: sorted(&task.blocked_by),
        ready,
    }
}

/// Other tools write edges in any order, and it is kept.
fn sorted(ids: &[TaskId]) -> Vec<u64> {
    let mut numbers = numbers(ids);
    numbers.sort_unstable();
    numbers
}

pub(crate) fn view_of_model(model: &Model) -> BTreeMap<u64, View> {
    let view = |(id, task): (&u64, &ModelTask)| {
        let edges = || model.edges.iter();
        let view = View {
            task: task.clone(),
            held_lease: task.held_lease().cloned(),
            blocks: edges()
                .filter(|(from, _)| from == id)
                .map(|(_, to)| *to)
                .collect(),
            blocked_by: edges()
                .filter(|(_, to)| to == id)
                .map(|(from, _)| *from)
                .collect(),
            ready: model.is_ready(*id),
        };
        (*id, view)
    };
    model.tasks.iter().map(view).collect()
}
