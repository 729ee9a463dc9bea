//! Works a board off: who does which task when, until nothing can be done any more.
//!
//! What happens next is decided by a pure function ([`schedule()`]) of what is known; one loop
//! carries it out ([`Engine::run`]). Everything that counts is on disk: an engine that is
//! killed leaves its agents at work, and the next one finds them ([`Engine::run`] begins with
//! that), their tasks, their trees, and what has still to land.
//!
//! ```text
//! ready ─▶ given to a seat ─▶ run: agent ─▶ commit ─▶ check ─▶ completed ─▶ lands ─▶ tree goes
//!   ▲                            │                      │                     │
//!   └── failed: noted, tried again with what went wrong, parked after too often ─┘
//! ```

mod aside;
mod base;
mod control;
mod crew;
mod event;
mod heard;
mod landing;
mod looper;
mod mirror;
mod put_away;
mod reported;
mod rests;
mod schedule;
mod setup;
mod trouble;
mod view;
mod watching;
mod work;

pub use aside::{LeftTree, WorkerTask, base_of_all, is_workers, left_trees, may_begin};
pub use base::BaseOf;
pub(crate) use base::{commit_of, is_commit_checked};
pub use control::{Control, Level};
pub use crew::{Crew, Job, Seat, Terms};
pub use event::{EngineEvent, TaskEnd};
pub use landing::{Landings, is_conflict, unlanded};
pub use looper::{Engine, director_lock};
pub(crate) use put_away::put_away_superseded;
pub use put_away::{StayingTree, Superseded, discard, staying_trees, superseded};
pub use schedule::{Plan, Snapshot, Stand, Why, schedule};
pub use setup::{Closed, Ending, EngineError, Gate, Setup};
pub use view::{Limits, SeatView, TaskView, Tasks};
