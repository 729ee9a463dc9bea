//! The work done in a worktree: its changes as a typed answer (`status`), files hidden from git
//! (`hidden`), repositories inside (`nested`), its files at one moment (`snapshot`), worktrees and
//! branches made past the registry (`strays`), and the commit that a directory has checked out
//! (`whereabouts`).

pub(crate) mod hidden;
mod nested;
mod snapshot;
mod status;
mod strays;
mod whereabouts;

pub use snapshot::{TreeSnapshot, fingerprint_of};
pub(crate) use status::{ignored, of, read_records, reflog_commits};
pub use strays::Stray;
pub use whereabouts::Whereabouts;
