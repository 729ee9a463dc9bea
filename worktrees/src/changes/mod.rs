//! What has been done in a worktree: its changes as a typed answer (`status`), files git was
//! told not to look at (`hidden`), its files at one moment (`snapshot`), worktrees and branches
//! made past the registry (`strays`), and what a directory has checked out (`whereabouts`).

pub(crate) mod hidden;
pub(crate) mod snapshot;
mod status;
pub(crate) mod strays;
pub(crate) mod whereabouts;

pub use status::{Changes, State, fingerprint_of};
pub(crate) use status::{head_commit, ignored, of, reflog_commits};
