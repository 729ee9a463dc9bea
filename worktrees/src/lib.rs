//! Git isolation: worktrees that cannot lose work.
//!
//! Every agent, task or person works in a worktree of its own at `<repo>/.claude/worktrees/<name>`,
//! on a branch `worktree/<name>` that starts at a recorded commit. Several processes make and
//! remove worktrees at once, and any of them can die at any step.
//!
//! # What this room knows
//!
//! How a worktree is made, pooled, compared, sealed, checked, merged, removed and restored, and how
//! an agent has a `.git` of its own while it works.
//!
//! # What it must not know (and where to go instead)
//!
//! * Tasks: a worktree may name one, and `coordinator/runs` keeps both in step. Agents: `swarm`.
//! * What lands when, and with which check: `coordinator/landing`.
//! * Settings files: `store::settings`. Printing: `cli`.
//!
//! # The way through
//!
//! ```text
//! Trees::create ─▶ registry entry with `op` ─▶ git worktree add ─▶ checkout, set-up ─▶ `op` off
//! Trees::enter  ─▶ the agent's own .git ─▶ … ─▶ Trees::leave: commits taken over, .git moved away
//! Trees::seal   ─▶ one git status ─▶ commit on the worktree's branch
//! Trees::merge  ─▶ result built aside ─▶ check worktree ─▶ branch moved in one step
//! Trees::remove ─▶ changes counted ─▶ rescue refs ─▶ directory to the trash ─▶ Trees::undo
//! ```
//!
//! # Crash points
//!
//! [`FAULT_POINTS`], at every step of the above; `doctor/recover.rs` finishes or takes back.
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
//! # Where things are
//!
//! Paths start at the repository's root; a short name is beside the last path of its cell.
//!
//! | to | look at |
//! |---|---|
//! | show another entry of git's configuration that runs code | `worktrees/src/git/config_code.rs` |
//! | see what git gets, and what it may not do | `worktrees/src/git/command.rs`, `pin.rs` (which repository a worktree is of), `worktrees/src/process.rs`; what a signal does to it: `worktrees/src/process/running.rs` |
//! | change what counts as a change in a tree | `worktrees/src/changes/status.rs`; what is made of it: `worktrees/src/merge/seal.rs` |
//! | try worktrees without the rest of ccb | `worktrees/examples/land.rs`; the tests of the library are in `worktrees/tests/it/` |
//! | see what an agent's own `.git` is, and how its commits get out of it | `worktrees/src/private/mod.rs`: made (`make.rs`), put in place (`enter.rs`), taken away (`leave.rs`), commits taken over (`import.rs`, `stream.rs`); what an agent may leave there: `worktrees/tests/it/attacks.rs` |
//! | see how a tree is made, step by step | `worktrees/src/create/new.rs`, `setup.rs` |
//! | see how one is removed and brought back | `worktrees/src/remove/start.rs`, `finish.rs`, `rescue.rs`, `undo.rs` |
//! | see what happens after a crash in between | `worktrees/src/doctor/recover.rs`; a git that was killed: `worktrees/src/git/command.rs` (again), `worktrees/src/git/locks.rs` (its locks), `worktrees/src/merge/interrupted.rs` (a landing cut short) |
//! | add something the doctor finds in git's files | `worktrees/src/doctor/findings.rs`, `leftovers.rs`, `power_cut.rs` |
//! | change when worktrees are collected and the trash emptied | `worktrees/src/remove/collect.rs`, `trash.rs`, `worktrees/src/registry/removed.rs` |
//! | see how a tree's commits land on a branch | `worktrees/src/merge/land.rs`, `build.rs` (the commits), `target.rs` (the move), `worktrees/src/check/run.rs` (the check) |
//! | see where checks run, and what keeps that place exact | `worktrees/src/check/take.rs` (which one), `tree.rs` (making it exact), `repository.rs` (its repository), `record.rs`; [ADR 16](docs/adr/0016-checks-run-on-the-commit.md) |
//! | see how worktrees are made ahead and handed out | `worktrees/src/pool/fill.rs`, `take.rs`; used again: `give_back.rs` |
//! | see what is written to git without starting it | `worktrees/src/git/in_process.rs`; what is seen without it: `untouched.rs` |
//!
//! # A worktree's life
//!
//! `index.json` in `<common dir>/ccb/` lists every tree. What takes several steps is written into the tree's entry first (`op`), and
//! the next command that finds an `op` whose lock is free settles it.
//!
//! * *Create*: entry with `op` and `git worktree add --no-checkout` under the repository's lock; checkout, dating the files back (ADR 14) and
//!   set-up outside of it; `op` off. Interrupted: taken back; if anything is in the directory, to the trash.
//! * *Seal*: one `git status`; the paths it names become a commit on the tree's branch, which is synced to the disk.
//! * *Remove*: no agent holds the lease; count changes; `op`; refs for HEAD, branch, index and reflogs; `locked` for git's record, so that
//!   `git worktree prune` leaves it alone; rename the directory into the trash (this decides); rename git's record after it; rescue
//!   what came in between; delete the branch by its value; entry `removed`. Interrupted before the rename: as if nothing was; after: finished.
//!   Where the caller keeps the commit and there is nothing else, no refs are made and the directory is deleted at once.
//! * *Undo*: branch, git's record, directory, in that order: a tree whose `.git` leads nowhere would be fair game for `git clean`.
//! * *Merge*: the result is built from objects that nothing names; the check runs on it in a check tree, unless exactly these
//!   files have passed it; the entry notes where it is about to land; the target moves in one step of git's (`merge --ff-only` where it is
//!   checked out, else `update-ref` from the old value); the file system is synced; then the note says that it landed. If the branch moved meanwhile: all again. Interrupted: the target itself
//!   says whether it moved, and the note is believed only if it does.
//! * *Undo of a landing*: `landings.json` says what landed where. The undo is noted there (`pending`) before the branch moves: back (`read-tree -m -u` in the checkout, then `update-ref` from
//!   the old value), or forward to a revert that lands like a merge. Then the task is marked, the tree brought back, and the note confirmed. Interrupted: the branch itself says whether it
//!   moved; files of the checkout that are half way are put back; the next `ccb undo`, `land` or `reject` does the rest.
//! * *Check*: not in the registry; `checks/<name>.json` says whose the directory is and whether it is in use, under the tree's lock. Take: busy; the
//!   repository's own files written anew; index thrown away if it tells git not to look at a file; `checkout --force --detach`; `clean`; ignored entries newer than the last release
//!   deleted; set-up. Release: not busy. Interrupted: deleted by the next check, and that one takes another number, because something may still run there.
//! * *Pool*: trees on no branch, in a list of their own in the registry. Taking one: a `git status` that shows nothing at all (else it
//!   is removed like any other, so that nothing in it is lost); `op: taking`; git's record points to the new place; rename; branch and HEAD; the
//!   difference to the wanted base. Interrupted: all of it backwards, and the tree is in the pool again.
//! * *Emptying the trash*: the files, byte for byte, become a ref; then the directory goes. What no ref can hold stays. A tree of which
//!   nothing is left moves from the registry to `removed.jsonl`, so that the registry does not grow with the past.
//!
//! A git that was killed proves nothing: it is started again (`Git::finish`), unless half of what it does would be in its way (`once`), and what is left after five times is `Interrupted`,
//! never a conflict, a refusal or a failed check. A tree says for which task it was made (`madeFor`) from its first moment until a person takes it for something else (`keep`, `undo`); so
//! when that task has landed, the trees of all its attempts are found.
//!
//! A git that is started under a lock gets that lock as its standard input: if ccb is killed, the lock is free when git has ended.

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
