//! Works through a board: which seat does which task, until nothing is left that ccb can do.
//!
//! # What this room knows
//!
//! When a task is given to an agent, when it is tried again, rests or is parked, and when finished
//! work lands. A pure function decides that from what is known (`schedule.rs`); one loop carries it
//! out ([`Director::run`]). Everything that counts is on the disk: a killed director leaves its agents
//! at work, and the next one finds them, their tasks, their worktrees, and what has still to land.
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
//! board, runs, workers ─▶ inputs ─▶ schedule (pure) ─▶ what to do now
//! ready ─▶ given to a seat ─▶ run: agent ─▶ commit ─▶ check ─▶ completed ─▶ lands ─▶ tree goes
//!   ▲                            │                      │                     │
//!   └── failed: noted, tried again with what went wrong, parked after too often ─┘
//! DirectorEvent tells what happens; Ending and Verdict say what the whole came to
//! ```
//!
//! # Crash points
//!
//! None of its own: it writes through `runs` and `landing`, and those have the points.

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
