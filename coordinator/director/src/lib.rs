//! Runs a board: assigns ready tasks to slots until no task is left that ccb can do.
//!
//! # What this room knows
//!
//! When a task is given to an agent, when it is retried, pauses or is parked, and when finished
//! work lands. A pure function decides that from the known state (`schedule.rs`); one loop carries
//! it out ([`Director::run`]). All lasting state is on the disk: the agents of a killed director
//! keep running, and the next director finds them, their tasks, their worktrees, and the results
//! that have to land.
//!
//! # What it must not know (and where to go instead)
//!
//! * The prompt, model and tools of an agent: a [`Crew`] decides; `coordinator::agent` has those of
//!   sessions and plans.
//! * The start and the proof of an agent's work: `runs`.
//! * The way of a result onto a branch: `landing`.
//! * The questions, the display and the end of a session: `coordinator::session`.
//!
//! # The way through
//!
//! ```text
//! board, runs, workers ─▶ inputs ─▶ schedule (pure) ─▶ the next actions
//! ready ─▶ given to a seat ─▶ run: agent ─▶ commit ─▶ check ─▶ completed ─▶ lands ─▶ worktree removed
//!   ▲                            │                      │                     │
//!   └── failed: recorded, retried with the error, parked after too many attempts ─┘
//! DirectorEvent reports events; Ending and Verdict are the final report
//! ```
//!
//! # Crash points
//!
//! None of its own: it writes through `runs` and `landing`, and those have the points.
//!
//! # Where things are
//!
//! Paths start at the repository's root; a short name is beside the last path of its cell.
//!
//! | to | look at |
//! |---|---|
//! | change what happens next in a session | `coordinator/director/src/schedule.rs` (a pure function), `main_loop.rs` (carries it out) |
//! | see how one task is worked on | `coordinator/director/src/work.rs`; what its agent is like: `coordinator/src/agent/crew.rs` |
//! | change what work starts from, and how it lands | `coordinator/director/src/base.rs`, `coordinator/landing/src/lander.rs`; the git part is in `worktrees/src/merge/seal.rs`, `land.rs` |
//! | see what happens next on a board | `coordinator/director/src/schedule.rs` (pure), `main_loop.rs` (the loop), `work.rs` (one task) |
//! | see how workers beside the board are waited for and landed | `coordinator/director/src/lead_workers.rs` |
//!
//! # A round of the director
//!
//! `Director::run` begins with what is there: dead runs are finished, agents of a director that is gone are adopted, completed work that has not landed is queued. Then, over and over: hear
//! what happened; decide (`schedule`, a pure function of tasks, seats and limits); carry it out; wait for the next thing to happen, or a tenth of a second.
//!
//! The board is mirrored in memory. What the director's own runs change is read when they end; what others change comes from the change log, at most twenty times a second.
//! Every task that is worked on has a thread, which does one thing after the other: what it starts from (the branch, or a fixed commit, plus the commits of what it
//! depends on), what its agent is like (the crew's word), spawn, wait, judge. None of them holds anything that is not on disk. Landing has one thread at a time.
//!
//! A run with something to prove goes on when its agent has ended: everything it started is ended, the tree is committed, the check runs on that commit in a check tree, and only then the end is written down
//! with the outcome. Before that it is judged whether the agent kept to what it may do (`judge.rs`). So a completed task has its commit and its check in `metadata.ccb.result`, and a failed one what went wrong in `metadata.ccb.attempts`.
//!
//! A failure that is not the task's fault is no attempt: `WorkEnd::Hindered`, `Landed::Hindered` and an agent that is `Lost` before it ran (`meta.host` is written just before the launch) leave the task as it was,
//! to be begun again after a pause (`rests.rs`). One lost while it ran is noted with `counts: false`; the row of those at the end decides on the pause and, in the end, on parking (`progress.rs`).
//!
//! One process directs a team: it holds `.ccb/engine.lock`.

mod base;
mod board_changes;
mod control;
mod crew;
mod event;
mod inputs;
mod lead_workers;
mod main_loop;
mod mirror;
mod not_taken;
mod outcomes;
mod rejected;
mod reported_done;
mod rests;
mod schedule;
mod setup;
mod trouble;
mod verdict;
mod work;

pub use event::{DirectorEvent, TaskEnd};
pub use lead_workers::LeftTree;
pub use schedule::{Stand, Why};
pub use setup::DirectorError;
pub use verdict::{Interrupted, Verdict};

pub use base::{BaseOf, Remote};
pub use control::{Control, Level};
pub use crew::{Crew, Job, Seat, Terms};
pub use inputs::Limits;
pub use lead_workers::{WorkerTask, base_of_all, left_trees, may_begin};
pub use main_loop::Director;
pub use setup::{Closed, Ending, Gate, Setup, usual_labels};
