//! Making one task wait for another.

use crate::board::Board;
use crate::error::BoardError;
use crate::graph::Graph;
use crate::id::TaskId;
use crate::intent::{Intent, Step};
use crate::task::Task;

impl Board {
    /// Makes `dependent` wait for `blocker`. Returns the dependent.
    pub fn block(&self, blocker: TaskId, dependent: TaskId) -> Result<Task, BoardError> {
        self.transact(|txn| {
            let from = txn.snapshot.require(blocker)?;
            let to = txn.snapshot.require(dependent)?;
            if !(from.blocks.contains(&dependent) && to.blocked_by.contains(&blocker)) {
                if let Some(path) = Graph::new(&txn.snapshot).cycle_with(blocker, dependent) {
                    return Err(BoardError::Cycle { path }.into());
                }
                let steps = vec![
                    Step::Link {
                        id: dependent,
                        blocks: vec![],
                        blocked_by: vec![blocker],
                    },
                    Step::Link {
                        id: blocker,
                        blocks: vec![dependent],
                        blocked_by: vec![],
                    },
                ];
                txn.carry_out("block", &Intent::new("block", steps))?;
            }
            Ok(txn.snapshot.require(dependent)?.clone())
        })
    }

    /// Makes `dependent` no longer wait for `blocker`. Returns the dependent.
    ///
    /// The blocker may be gone already; the dependent must be there.
    pub fn unblock(&self, blocker: TaskId, dependent: TaskId) -> Result<Task, BoardError> {
        self.transact(|txn| {
            txn.snapshot.require(dependent)?;
            if txn.snapshot.blockers(dependent).any(|id| id == blocker) {
                let steps = vec![
                    Step::Unlink {
                        id: dependent,
                        blocks: vec![],
                        blocked_by: vec![blocker],
                    },
                    Step::Unlink {
                        id: blocker,
                        blocks: vec![dependent],
                        blocked_by: vec![],
                    },
                ];
                txn.carry_out("unblock", &Intent::new("unblock", steps))?;
            }
            Ok(txn.snapshot.require(dependent)?.clone())
        })
    }
}
