//! Repair: where registry, git and disk disagree (`findings`), what killed processes leave in
//! git's files (`leftovers`), what a power cut leaves of them (`power_cut`), and finishing or
//! undoing what a crash interrupted (`recover`).

mod findings;
mod leftovers;
pub(crate) mod power_cut;
pub(crate) mod recover;

pub use findings::TreeFinding;
pub(crate) use findings::finding;
