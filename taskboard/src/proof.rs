//! The proof that a completed task is done.

use std::fmt;

use crate::facts::TaskResult;
use crate::own_keys::MetadataTrouble;
use crate::task::{Status, Task};

/// The reasons why a completed task has no proof.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unchecked {
    /// The task has no check.
    NoCheck,
    /// The task has a check that has not passed under ccb.
    NotRun,
    /// The metadata of the task cannot be read: what passed may not be its check.
    Unclear(MetadataTrouble),
}

impl Unchecked {
    /// The mark of unchecked work in every view.
    pub const MARK: &str = "⚠ unchecked";
}

impl fmt::Display for Unchecked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoCheck => f.write_str("it has no check"),
            Self::NotRun => f.write_str("its check has not passed"),
            Self::Unclear(trouble) => write!(f, "metadata: {}", trouble.words),
        }
    }
}

impl Task {
    /// The reason why it has no proof; `None` if a check passed, or if it is not completed.
    pub fn unchecked(&self) -> Option<Unchecked> {
        if self.status != Status::Completed {
            return None;
        }
        if let Some(trouble) = self.trouble() {
            return Some(Unchecked::Unclear(trouble));
        }
        if self.result().as_ref().is_some_and(TaskResult::is_proof) {
            None
        } else if self.verify_command().is_some() {
            Some(Unchecked::NotRun)
        } else {
            Some(Unchecked::NoCheck)
        }
    }
}
