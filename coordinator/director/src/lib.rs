//! Works a board off: who does which task when, until nothing can be done any more.
//!
//! What happens next is decided by a pure function ([`schedule::schedule`]) of what is known; one loop
//! carries it out ([`Director::run`]). Everything that counts is on disk: a director that is
//! killed leaves its agents at work, and the next one finds them ([`Director::run`] begins with
//! that), their tasks, their trees, and what has still to land.
//!
//! ```text
//! ready ─▶ given to a seat ─▶ run: agent ─▶ commit ─▶ check ─▶ completed ─▶ lands ─▶ tree goes
//!   ▲                            │                      │                     │
//!   └── failed: noted, tried again with what went wrong, parked after too often ─┘
//! ```

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
