//! Removes worktrees: the steps up to the trash (`start`) and after it (`finish`), refs that keep
//! what git would forget (`rescue`), restoring one (`undo`), emptying the trash (`trash`),
//! worktrees that are not needed any more (`collect`), and all traces of ccb (`leftovers`,
//! `drop_leftovers`).

mod collect;
mod drop_leftovers;
mod finish;
mod leftovers;
mod rescue;
mod start;
mod trash;
mod undo;

pub use collect::{AgentEnd, GcCandidate, GcVerdict};
pub use leftovers::{Keeps, Leftover, LeftoverKind};
pub(crate) use rescue::Rescue;
pub(crate) use start::{MOVING, next_id};
pub use start::{RemoveHook, RemoveRequest, Removed};
pub use trash::Overdue;
