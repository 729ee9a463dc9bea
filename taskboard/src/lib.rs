//! A list of tasks that many processes work through at once.
//!
//! # What this room knows
//!
//! Tasks, their owners and blockers, the ends of leases, the proofs, and the numbered history of
//! all that. The rules are functions (`rules`); a board is kept by one of three backends behind one
//! port (`backend`): files, the tables of PostgreSQL, or memory.
//!
//! ```text
//! pending ──claim──▶ in_progress ──complete──▶ completed
//!    ▲  └─assign (owner set, still pending)        │
//!    └──────────release / lease ends───────────────┘ reopen
//! ```
//!
//! * *Ready*: pending, no owner, not parked, every blocker completed. A blocker whose file is
//!   missing is resolved; one whose file cannot be read is not.
//! * A claim checks and writes owner and status in one step.
//! * An id is never given out twice: the high-water mark only grows.
//! * `blockedBy` is the truth about an edge, `blocks` is derived from it; both are written
//!   together, and a half edge another tool left is completed by the next change.
//!
//! # What it must not know (and where to go instead)
//!
//! No processes, agents' runs or checks (`swarm`, and the rooms above it), no messages (`mailbox`),
//! no worktrees (`worktrees`), no settings files, no printing, no environment. Hooks and checks are
//! the caller's: it passes [`Hooks`], which the board calls outside every lock.
//!
//! # The way through
//!
//! 1. [`Board::new`] chooses the backend, once. A change checks its input and asks the hooks
//!    (`board`).
//! 2. The backend brings the index and the task: under the list's lock (`files::section`), in a
//!    transaction (`tables::visit`), or under a mutex (`memory`). Expired leases are returned
//!    first.
//! 3. The rules compute the task's new state, or refuse (`rules`).
//! 4. The backend writes the task, its edges and a line of history, as a whole.
//! 5. Readers take no lock: [`Board::snapshot`], [`Board::watch`], [`Board::glance`].
//!
//! # Crash points
//!
//! [`FAULT_POINTS`] names the points at which a process on files may die: around an intent of several
//! files, the high-water mark, the log, a record of a check, and a task that is handed to another
//! process. The next lock section repairs what it finds. A change on tables is one transaction.
//!
//! # Where things are
//!
//! Paths start at the repository's root; a short name is beside the last path of its cell.
//!
//! | to | look at |
//! |---|---|
//! | change the task file's format | `taskboard/src/format.rs`, `taskboard/src/task.rs`; what ccb keeps with a task (`metadata.ccb`): `taskboard/src/facts.rs`, how its keys can be spelled: `own_keys.rs`, whether something proves a task: `proof.rs` |
//! | change what a claim checks, or what `next` prefers | `taskboard/src/rules/claim.rs`, `taskboard/src/files/next.rs`, `taskboard/src/rules/index.rs`; when a task can start and in what order, for the board and for sessions: `taskboard/src/rules/ready.rs` |
//! | see what happens in a lock section | `taskboard/src/files/section.rs`, `intent.rs`, `taskboard/src/files/repair.rs` |
//! | change how the board is kept in a database | `taskboard/src/backend.rs` (the port), `taskboard/src/tables/port.rs`, `taskboard/src/tables/visit.rs` (one change), `taskboard/src/tables/links.rs`, `taskboard/src/tables/ranks.rs`; claims: `taskboard/migrations/001.sql` |
//! | change what is forgotten in a database, and when | `taskboard/src/tables/retention.rs`, `mailbox/src/database/retention.rs` |
//! | see how ids are given out | `taskboard/src/files/ids.rs` |
//! | see how a durable change keeps its sync out of the lock | `taskboard/src/files/change.rs` |
//! | see what a process keeps between sections, and how it notices others | `taskboard/src/files/live.rs`, `taskboard/src/files/slots.rs` |
//! | see how processes take tasks for each other | `taskboard/src/files/serve.rs` (who has the lock), `taskboard/src/files/next.rs` (who asks) |
//! | change what a task's check is, and who may | `taskboard/src/files/checks.rs` (the record), `coordinator/src/actions/task_rights.rs` (who) |
//! | change the history or `watch` | `taskboard/src/files/log.rs`, `taskboard/src/files/watch.rs` |

mod backend;
mod board;
mod caller;
mod error;
mod facts;
mod fault;
mod files;
mod finding;
mod format;
#[doc(hidden)]
pub mod fuzz;
mod graph;
mod history;
mod hooks;
mod id;
mod invalid;
mod memory;
mod options;
mod own_keys;
mod proof;
mod record;
mod rules;
mod snapshot;
#[cfg(feature = "postgres")]
mod tables;
mod task;

pub use board::{Begin, Board, Glance, Watch};
pub use caller::Caller;
pub use error::{BoardError, Refusal};
pub use facts::{
    Attempt, LandedAt, Lease, LeaseTerm, RejectedWork, TaskCheck, TaskFacts, TaskResult,
};
pub use fault::FAULT_POINTS;
pub use finding::{Finding, FindingKind};
pub use graph::{Graph, TreeLine};
pub use history::Change;
pub use hooks::{Hooks, Veto};
pub use id::{BadId, TaskId};
pub use invalid::Invalid;
pub use memory::Memory;
pub use options::BoardOptions;
pub use own_keys::MetadataTrouble;
pub use proof::Unchecked;
pub use rules::batch::{NewTask, Reference};
pub use rules::claim::{ClaimRequest, Claimed};
pub use rules::complete::Completed;
pub use rules::edit::Update;
pub use rules::next::{Next, Nothing};
pub use rules::ready::{Dependencies, Rank, rank};
pub use snapshot::{Snapshot, Unreadable};
#[cfg(feature = "postgres")]
pub use tables::{KEPT, ListMetrics, MIGRATIONS, Pruned, list_alike, metrics, prune};
pub use task::{Status, Task};
