//! Making one task wait for another.

use crate::board::Board;
use crate::cycles::cycle_with;
use crate::error::BoardError;
use crate::id::TaskId;
use crate::ready::Dependencies;
use crate::section::{Intent, Step};
use crate::task::Task;

impl Board {
    /// Makes `dependent` wait for `blocker`. Returns the dependent.
    pub fn block(&self, blocker: TaskId, dependent: TaskId) -> Result<Task, BoardError> {
        #[cfg(feature = "postgres")]
        if let Some(done) = self.block_in_tables(blocker, dependent) {
            return done;
        }
        self.section(|section| {
            let from = section.read(blocker)?.task;
            let to = section.read(dependent)?.task;
            if !(from.blocks.contains(&dependent) && to.blocked_by.contains(&blocker)) {
                let edges = section.index().edges();
                if let Some(path) = cycle_with(&edges, blocker, dependent) {
                    return Err(BoardError::Cycle { path }.into());
                }
                let link = |id, blocks, blocked_by| Step::Link {
                    id,
                    blocks,
                    blocked_by,
                };
                let steps = vec![
                    link(dependent, vec![], vec![blocker]),
                    link(blocker, vec![dependent], vec![]),
                ];
                section.carry_out("block", &Intent::new("block", steps))?;
            }
            Ok(section.read(dependent)?.task)
        })
    }

    /// Makes `dependent` no longer wait for `blocker`. Returns the dependent.
    ///
    /// The blocker may be gone already; the dependent must be there.
    pub fn unblock(&self, blocker: TaskId, dependent: TaskId) -> Result<Task, BoardError> {
        #[cfg(feature = "postgres")]
        if let Some(done) = self.unblock_in_tables(blocker, dependent) {
            return done;
        }
        self.section(|section| {
            section.read(dependent)?;
            if section.index().blockers(dependent).any(|id| id == blocker) {
                let unlink = |id, blocks, blocked_by| Step::Unlink {
                    id,
                    blocks,
                    blocked_by,
                };
                let steps = vec![
                    unlink(dependent, vec![], vec![blocker]),
                    unlink(blocker, vec![dependent], vec![]),
                ];
                section.carry_out("unblock", &Intent::new("unblock", steps))?;
            }
            Ok(section.read(dependent)?.task)
        })
    }
}
