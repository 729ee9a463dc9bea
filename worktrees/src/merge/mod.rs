//! Getting the commits of a worktree onto a branch: its work as one commit (`seal`), landing it
//! (`land`), the commits that land (`build`), the branch they land on (`target`), landings that
//! were cut short (`interrupted`), commits kept by refs (`pin`), and patches (`patch`).

mod build;
mod interrupted;
mod land;
pub mod patch;
mod pin;
mod seal;
mod target;

pub(crate) use build::{Builder, Built};
pub use land::{MergeOutcome, MergeRequest, MergeStrategy, Merged};
pub use seal::Sealed;
pub(crate) use target::{Target, TargetMove};
