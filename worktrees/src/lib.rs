//! Git isolation: working trees that cannot lose work.
//!
//! Every agent, task or person works in a tree of its own at `<repo>/.claude/worktrees/<name>`,
//! on a branch `worktree/<name>` that starts at a commit which is written down. Trees are made
//! and taken away by several processes at once, any of which can die at any step.
//!
//! # What is promised
//!
//! * An existing branch is never moved, shared git configuration never written.
//! * Only a tree that is known to hold nothing of its own goes without being asked for twice.
//!   What cannot be read counts as changed ([`Changes`]).
//! * Removing deletes nothing: the directory, git's record of it and its branch can be brought
//!   back with [`Trees::undo`] until the trash is emptied, and refs hold what is left after.
//! * Nobody removes a tree somebody works in ([`Lease`]).
//!
//! # Files
//!
//! ```text
//! <repo>/.claude/worktrees/<flat>/   a working tree, nothing else
//! <repo>/.claude/worktrees/ccb-check-<n>/   one for checks, with a repository of its own
//! <common dir>/ccb/index.json        the registry       events.jsonl   what happened
//! <common dir>/ccb/landings.json     what landed where, and whether that was undone
//! <common dir>/ccb/locks/            landing, repository, events, <flat>.tree, <flat>.lease
//! <common dir>/ccb/trash/<id>/       tree/ and admin/ (git's directory for it)
//! <common dir>/ccb/logs/             output of set-up commands and checks
//! <common dir>/ccb/checks/           which check trees there are, and whether one is in use
//! refs/ccb/rescue/<id>/…             HEAD, branch, index, reflogs, files of removed trees
//! refs/ccb/<other>                   commits whose trees are not needed any more
//! ```
//!
//! # Lock order
//!
//! The turn to land, a tree's lock, its lease (alone), the repository's lock, the events' lock. Whoever holds the
//! repository's lock takes no tree's lock but by trying.
//!
//! # What is not here
//!
//! No tasks (a tree may name one; who keeps both sides in step is the coordinator), no agents,
//! no printing, no settings files.

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
mod repository;
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
pub use git::{ConfigCode, ConflictPlace, config_code};
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
pub use repository::Repository;
pub use run::{Ran, RunRequest};
pub use slug::Slug;
pub use trees::{TreeOptions, Trees};
