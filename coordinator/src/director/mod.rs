//! Works a board off: who does which task when, until nothing can be done any more.
//!
//! What happens next is decided by a pure function ([`schedule()`]) of what is known; one loop
//! carries it out ([`Director::run`]). Everything that counts is on disk: an director that is
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
mod landing;
mod lead_workers;
mod main_loop;
mod mirror;
mod outcomes;
mod put_away;
mod reported_done;
mod rests;
mod schedule;
mod setup;
mod trouble;
mod work;

pub use base::BaseOf;
pub(crate) use base::{commit_of, is_commit_checked};
pub use control::{Control, Level};
pub use crew::{Crew, Job, Seat, Terms};
pub use event::{DirectorEvent, TaskEnd};
pub use inputs::{Limits, SeatView, TaskView, Tasks};
pub use landing::{Landings, is_conflict, unlanded};
pub use lead_workers::{LeftTree, WorkerTask, base_of_all, is_workers, left_trees, may_begin};
pub use main_loop::Director;
pub(crate) use put_away::put_away_superseded;
pub use put_away::{StayingTree, Superseded, discard, staying_trees, superseded};
pub use schedule::{Plan, Snapshot, Stand, Why, schedule};
pub use setup::{Closed, DirectorError, Ending, Gate, Setup};
