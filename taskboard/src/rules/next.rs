//! "Give me something to do": what the answer can be.

use crate::id::TaskId;
use crate::rules::claim::Claimed;
use crate::rules::index::Index;
use crate::task::{Status, Task};

/// The answer to "give me something to do".
#[derive(Debug, Clone, PartialEq)]
pub enum Next {
    /// This.
    Claimed(Box<Claimed>),
    /// Nothing now.
    Nothing(Nothing),
    /// Finish this first.
    Busy(Vec<TaskId>),
}

store::words! {
    /// Why there is nothing to do.
    pub enum Nothing {
        /// Every task is completed (or there is none).
        AllDone = "all_done",
        /// What is left is being worked on, blocked, parked or assigned to others.
        NothingReady = "nothing_ready",
        /// What is left waits for itself in a circle.
        Cycle = "cycle",
    }
}

impl Next {
    /// The task as it is now, with the token of its lease.
    pub(crate) fn claimed(task: Task) -> Self {
        Self::Claimed(Box::new(Claimed::of(task)))
    }
}

/// Why no task of the board can be handed out.
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
