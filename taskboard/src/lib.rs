//! A list of tasks that many processes work off at once.
//!
//! One human-readable JSON file per task, in the format Claude Code reads and writes, is the
//! truth. Everything that changes it goes through one lock section (`section`); everything that
//! only looks takes no lock ([`Board::snapshot`]).
//!
//! # States
//!
//! ```text
//! pending ──claim──▶ in_progress ──complete──▶ completed
//!    ▲  └─assign (owner set, still pending)        │
//!    └──────────release / lease ends───────────────┘ reopen
//! ```
//!
//! * *Ready*: pending, no owner, not parked, every blocker completed. A blocker whose file is
//!   missing is resolved; one whose file cannot be read is not.
//! * A claim checks and writes owner and status in one step under the lock.
//! * An id is never given out twice: the high-water mark only grows.
//! * `blockedBy` is the truth about an edge, `blocks` is derived from it; both are written
//!   together, and a half edge another tool left is completed by the next change.
//!
//! # Files
//!
//! ```text
//! <list>/<id>.json        a task           .lock             locked while the list changes
//! <list>/.highwatermark   the highest id   .ccb/             ours, listed below
//! .ccb/log.jsonl          numbered changes (log.1.jsonl: the ones before)
//! .ccb/index              the index at some point of the log; saves reading everything
//! .ccb/slots, workers/    who waits for a task; see `slots` and `serve`
//! .ccb/intent.json        a change of several files that is being made
//! .ccb/held               lock directories we hold
//! .ccb/tmp/               files on their way; .ccb/corrupt/: files the doctor set aside
//! ```
//!
//! Losing `.ccb` loses history and a change that was being made, never a task.
//!
//! # In a database
//!
//! With the feature `postgres`, a board whose [`BoardOptions`] name a database is kept there instead
//! of in files; see `tables`. Every operation, rule and refusal is the same.
//!
//! # What is not here
//!
//! No processes, no printing, no environment. Hooks and checks are the caller's: it passes
//! [`Hooks`], which are called outside every lock.

#[path = "board/attempt.rs"]
mod attempt;
mod board;
#[path = "files/change.rs"]
mod change;
#[path = "files/log.rs"]
mod changes;
#[path = "files/checks.rs"]
mod checks;
#[path = "rules/claim.rs"]
mod claim;
#[path = "rules/complete.rs"]
mod complete;
#[path = "rules/batch.rs"]
mod create;
#[path = "rules/cycles.rs"]
mod cycles;
#[path = "files/doctor.rs"]
mod doctor;
#[path = "files/edges.rs"]
mod edges;
#[path = "rules/edit.rs"]
mod edit;
mod error;
mod facts;
mod fault;
mod format;
#[doc(hidden)]
pub mod fuzz;
#[path = "files/glance.rs"]
mod glance;
mod graph;
mod id;
#[path = "files/ids.rs"]
mod ids;
#[path = "rules/index.rs"]
mod index;
#[path = "files/index_file.rs"]
mod index_file;
mod invalid;
#[path = "rules/needs.rs"]
mod needs;
#[path = "files/next.rs"]
mod next;
mod own_keys;
#[path = "files/patience.rs"]
mod patience;
#[path = "files/prepared.rs"]
mod prepared;
mod proof;
#[path = "files/quick.rs"]
mod quick;
#[path = "rules/ready.rs"]
mod ready;
#[path = "files/remove.rs"]
mod remove;
#[path = "files/repair.rs"]
mod repair;
#[path = "files/section.rs"]
mod section;
#[path = "files/serve.rs"]
mod serve;
#[path = "files/slot.rs"]
mod slot;
#[path = "files/slots.rs"]
mod slots;
mod snapshot;
#[cfg(feature = "postgres")]
mod tables;
mod task;
#[path = "rules/update.rs"]
mod update;
#[path = "files/watch.rs"]
mod watch;
#[path = "board/worktree.rs"]
mod worktree;

pub use board::{Board, BoardOptions, Caller, Hooks, Veto};
pub use changes::Change;
pub use claim::{ClaimRequest, Claimed};
pub use complete::Completed;
pub use create::{NewTask, Reference};
pub use doctor::{Finding, FindingKind};
pub use edit::Update;
pub use error::{BoardError, Refusal};
pub use facts::{
    Attempt, LandedAt, Lease, LeaseTerm, RejectedWork, TaskCheck, TaskFacts, TaskResult,
};
pub use fault::FAULT_POINTS;
pub use glance::Glance;
pub use graph::{Graph, TreeLine};
pub use id::{BadId, TaskId};
pub use invalid::Invalid;
pub use next::{Next, Nothing};
pub use own_keys::MetadataTrouble;
pub use proof::Unchecked;
pub use ready::{Dependencies, Rank, rank};
pub use snapshot::{Snapshot, Unreadable};
#[cfg(feature = "postgres")]
pub use tables::{KEPT, ListMetrics, MIGRATIONS, Pruned, list_alike, metrics, prune};
pub use task::{Status, Task};
pub use watch::Watch;
pub use worktree::Begin;
