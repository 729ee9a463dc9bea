//! Getting the commits of a worktree onto a branch: its work as one commit (`seal`), landing it
//! (`land`), the commits that land (`build`), the branch they land on (`target`), landings that
//! were cut short (`halfway`, `half_landed`), commits kept by refs (`pin`), and patches (`patch`).

pub(crate) mod build;
mod half_landed;
pub(crate) mod halfway;
mod land;
pub mod patch;
mod pin;
pub(crate) mod seal;
pub(crate) mod target;

pub use land::{MergeRequest, Merged, Outcome, Strategy};
