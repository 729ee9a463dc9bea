//! The caller's say in what is created and completed.

use crate::error::BoardError;
use crate::facts::TaskResult;
use crate::task::Task;

/// Questions the board asks before a change is made. Called outside every lock.
pub trait Hooks {
    /// Called before a task becomes visible. Its id is reserved and lost if refused.
    fn before_create(&self, task: &Task) -> Result<(), Veto> {
        let _ = task;
        Ok(())
    }

    /// Called before a task is completed. The change is made only if the task is still exactly the
    /// one shown. The returned value is kept as its result.
    fn before_complete(&self, task: &Task) -> Result<Option<TaskResult>, Veto> {
        let _ = task;
        Ok(None)
    }
}

/// The reason to refuse a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Veto {
    /// The reason, for the caller that wanted the change.
    pub reason: String,
    /// True if no hook refused, but the file that names the hooks cannot be read.
    pub bad_settings: bool,
}

impl Veto {
    /// A hook said no.
    pub fn new(reason: impl Into<String>) -> Self {
        Self {
            reason: reason.into(),
            bad_settings: false,
        }
    }
}

impl From<Veto> for BoardError {
    fn from(veto: Veto) -> Self {
        let reason = veto.reason;
        if veto.bad_settings {
            Self::BadSettings { reason }
        } else {
            Self::Vetoed { reason }
        }
    }
}
