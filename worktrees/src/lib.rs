//! Git isolation: worktrees that cannot lose work.
//!
//! Every agent, task or person works in a worktree of its own at `<repo>/.claude/worktrees/<name>`,
//! on a branch `worktree/<name>` that starts at a recorded commit. Several processes make and
//! remove worktrees at once, and any of them can die at any step.
//!
//! # Promises
//!
//! * An existing branch is never moved, shared git configuration never written.
//! * Only a worktree that is known to have no work of its own is removed on the first request. An
//!   unreadable worktree counts as changed ([`Changes`]).
//! * Removing deletes nothing: the directory, git's record of it and its branch can be restored
//!   with [`Trees::undo`] until the trash is emptied, and refs hold the rest after that.
//! * A worktree in use is never removed ([`Lease`]).
//!
//! # Files
//!
//! ```text
//! <repo>/.claude/worktrees/<flat>/   a worktree, nothing else
//! <repo>/.claude/worktrees/ccb-check-<n>/   one for checks, with a repository of its own
//! <common dir>/ccb/index.json        the registry       events.jsonl   the log of events
//! <common dir>/ccb/landings.json     every landing, and whether it was undone
//! <common dir>/ccb/locks/            landing, repository, events, <flat>.tree, <flat>.lease
//! <common dir>/ccb/trash/<id>/       tree/ and admin/ (git's directory for it)
//! <common dir>/ccb/logs/             output of set-up commands and checks
//! <common dir>/ccb/checks/           the records of check worktrees
//! refs/ccb/rescue/<id>/…             HEAD, branch, index, reflogs, files of removed worktrees
//! refs/ccb/<other>                   commits whose worktrees are not needed any more
//! ```
//!
//! # Lock order
//!
//! The landing lock, a worktree's lock, its lease (alone), the repository's lock, the events' lock.
//! A process with the repository's lock takes a worktree's lock only without waiting.
//!
//! # Not here
//!
//! No tasks (a worktree may name one; the coordinator keeps both in step), no agents, no printing,
//! no settings files.

mod address;
mod change_report;
mod changes;
mod check;
mod create;
mod doctor;
mod error;
mod fault;
#[doc(hidden)]
pub mod fuzz;
mod git;
mod layout;
mod lease;
mod merge;
mod pool;
mod private;
mod process;
mod registry;
mod remote;
mod remove;
mod run;
mod slug;
mod trees;

pub use change_report::{ChangeState, Changes};
pub use changes::{Stray, TreeSnapshot, Whereabouts, fingerprint_of};
pub use check::{AfterCheck, Check, CheckTree};
pub use create::{Base, CreateHook, CreateMode, CreateRequest, Created, SetUp};
pub use doctor::{HealScope, TreeFinding};
pub use error::TreeError;
pub use fault::FAULT_POINTS;
pub use git::{ConfigCode, ConflictPlace, Repository, config_code};
pub use lease::Lease;
pub use merge::{
    FilesNow, Landing, MergeOutcome, MergeRequest, MergeStrategy, Merged, Sealed, TakeBackRequest,
    TakenBack, Undone, UndoneBy, Wanted, patch,
};
pub use pool::{GivenBack, PoolTree, Refilled};
pub use process::end_running_programs;
pub use registry::{Entry, EventTask, LandingRecord, Trashed, TreeStatus};
pub use remote::{branch_of_remote, clone_or_update, plain_address, remote_url, shown_branch};
pub use remove::{
    AgentEnd, GcCandidate, GcVerdict, Keeps, Leftover, LeftoverKind, Overdue, RemoveHook,
    RemoveRequest, Removed,
};
pub use run::{Ran, RunRequest};
pub use slug::Slug;
pub use trees::{TreeOptions, Trees};
