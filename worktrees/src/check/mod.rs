//! Checks on a commit: running one (`run`), the worktrees they run in (`tree`), which
//! of them one gets (`take`), the repository
//! such a worktree has (`repository`), what is written down about it (`record`), and the log of
//! a check (`log`).

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
