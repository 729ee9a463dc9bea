//! What is written down about worktrees: the list of them (`index`), one of them (`entry`), what
//! is being done to one (`op`), those of which nothing is left (`removed`), and what happened
//! (`events`).

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
