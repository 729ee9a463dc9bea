//! What is written down about worktrees: the list of them (`index`), what is being done to one
//! (`op`), those of which nothing is left (`removed`), and what happened (`events`).

pub(crate) mod events;
mod index;
mod op;
pub(crate) mod removed;

pub(crate) use events::Event;
pub use events::EventTask;
pub use index::{Entry, Trashed, TreeStatus};
pub(crate) use index::{Placed, Registry, Section, is_false, not_found};
pub use op::LandingRecord;
pub(crate) use op::{Op, Pooled};
