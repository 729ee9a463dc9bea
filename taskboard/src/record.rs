//! The board's own record of the check of a task, and the contradictions of a task's file to it.

use serde::{Deserialize, Serialize};
use store::name::Name;

use crate::own_keys::MetadataTrouble;
use crate::task::{Status, Task};

/// The version of the format that this code writes.
const VERSION: u64 = 1;

/// The record of a task's check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Record {
    pub(crate) v: u64,
    /// The check; `None` if the task has none any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) verify: Option<String>,
    /// The fingerprint of the result that is stored with the task; `None` without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) result: Option<String>,
    /// The earlier record while one of them is being changed, because a crash must leave neither of
    /// the two wrong; else `None`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) was: Option<Box<Self>>,
}

impl Record {
    pub(crate) fn of(task: &Task) -> Self {
        Self {
            v: VERSION,
            verify: task.verify_command().map(str::to_owned),
            result: task.result_fingerprint(),
            was: None,
        }
    }

    /// This, and what may also be there while it is being changed.
    fn both(&self) -> impl Iterator<Item = &Self> {
        std::iter::once(self).chain(self.was.as_deref())
    }

    pub(crate) fn allows(&self, verify: Option<&str>) -> bool {
        self.both().any(|one| one.verify.as_deref() == verify)
    }

    /// True if the board itself recorded the task's proof. A task without a check, or an open one,
    /// has no proof.
    pub(crate) fn believes(&self, task: &Task) -> bool {
        let shown = task.result_fingerprint();
        let shows =
            task.status == Status::Completed && task.verify_command().is_some() && shown.is_some();
        !shows || self.both().any(|one| one.result == shown)
    }
}

/// The reason why the check of a task is unknown, if its metadata cannot be read; else `None`.
pub(crate) fn unclear_reason(list: &Name, task: &Task) -> Option<String> {
    let trouble = task.trouble().filter(|trouble| trouble.unclear)?;
    Some(unclear(list, task, &trouble))
}

pub(crate) fn unclear(list: &Name, task: &Task, trouble: &MetadataTrouble) -> String {
    let ways_out = trouble.ways_out(list.as_str(), task.id);
    format!("its metadata is unclear: {}. {ways_out}", trouble.words)
}

/// The message for a task whose file has another check than the record.
pub(crate) fn changed_check(list: &Name, task: &Task, recorded: Option<&str>) -> String {
    let shown = |check: Option<&str>| match check {
        Some(check) => format!("`{check}`"),
        None => "nothing".to_owned(),
    };
    let command = |check: Option<&str>| {
        let quoted = check.unwrap_or_default().replace('\'', r"'\''");
        let id = task.id;
        format!("ccb --list {list} task update {id} --verify '{quoted}'")
    };
    let found = task.verify_command();
    format!(
        "its check was changed in its file from {} to {}, and not by its lead or a person. To \
         accept the new check: {}. To keep the old one: {}",
        shown(recorded),
        shown(found),
        command(found),
        command(recorded),
    )
}
