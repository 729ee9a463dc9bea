//! Taking worktrees away: the steps up to the trash (`start`) and after it (`finish`), refs that
//! keep what git would forget (`rescue`), bringing one back (`undo`), emptying the trash
//! (`trash`), and which worktrees nobody needs (`collect`).

pub(crate) mod collect;
mod finish;
pub(crate) mod rescue;
mod start;
pub(crate) mod trash;
mod undo;

pub(crate) use start::{MOVING, next_id};
pub use start::{RemoveHook, RemoveRequest, Removed};
