//! Repair: where registry, git and disk disagree (`findings`), what killed processes leave in
//! git's files (`leftovers`), what a power cut leaves of them (`power_cut`), and finishing or
//! undoing what a crash interrupted (`recover`).

mod findings;
mod leftovers;
mod power_cut;
mod recover;

pub(crate) use findings::Findings;
pub use findings::TreeFinding;
pub use power_cut::HealScope;
