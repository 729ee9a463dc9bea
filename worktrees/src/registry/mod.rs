//! The records of worktrees: the list of them (`index`), one of them (`entry`), the operation under
//! way on one (`op`), fully deleted ones (`removed`), and events (`events`).

mod entry;
pub(crate) mod events;
mod index;
mod op;
pub(crate) mod removed;

pub use entry::{Entry, Trashed, TreeStatus};
pub(crate) use entry::{Placed, is_false};
pub(crate) use events::Event;
pub use events::EventTask;
pub(crate) use index::{Registry, Section, not_found};
pub use op::LandingRecord;
pub(crate) use op::{Op, Pooled};
