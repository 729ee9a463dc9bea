//! Repair: differences between registry, git and disk (`findings`), leftovers of killed processes
//! in git's files (`leftovers`), damage by a power cut (`power_cut`), and finishing or undoing what
//! a crash interrupted (`recover`).

mod findings;
mod leftovers;
mod power_cut;
mod recover;

pub(crate) use findings::Findings;
pub use findings::TreeFinding;
pub use power_cut::HealScope;
