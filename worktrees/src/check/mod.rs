//! Checks on a commit: running one (`run`), the worktrees they run in (`tree`), the choice of one
//! (`take`), the repository of such a worktree (`repository`), its record (`record`), and the log
//! of a check (`log`).

mod log;
mod record;
mod repository;
mod run;
mod take;
mod tree;

pub(crate) use record::CheckState;
pub(crate) use repository::Traits;
pub use run::Check;
pub use tree::{AfterCheck, CheckTree};
