//! "Give me something to do": what the answer can be.

use crate::id::TaskId;
use crate::rules::claim::Claimed;
use crate::rules::index::Index;
use crate::task::{Status, Task};

/// The answer to "give me something to do".
#[derive(Debug, Clone, PartialEq)]
pub enum Next {
    /// The agent has this task now.
    Claimed(Box<Claimed>),
    /// No task can be claimed now.
    Nothing(Nothing),
    /// Finish this first.
    Busy(Vec<TaskId>),
}

store::words! {
    /// The reasons why no task can be handed out.
    pub enum Nothing {
        /// Every task is completed (or there is none).
        AllDone = "all_done",
        /// The remaining tasks are in progress, blocked, parked or assigned to others.
        NothingReady = "nothing_ready",
        /// The remaining tasks wait for each other in a circle.
        Cycle = "cycle",
    }
}

impl Next {
    /// The task as it is now, with the token of its lease.
    pub(crate) fn claimed(task: Task) -> Self {
        Self::Claimed(Box::new(Claimed::of(task)))
    }
}

/// The reason why no task of the board can be handed out.
pub(crate) fn why_nothing(index: &Index) -> Nothing {
    if index.all_completed() {
        Nothing::AllDone
    } else if index
        .iter()
        .all(|(_, slim)| slim.status != Status::InProgress)
        && !index.cycles().is_empty()
    {
        Nothing::Cycle
    } else {
        Nothing::NothingReady
    }
}
