//! Processes of agents: started, waited for, found, and ended with everything they started.

mod ancestors;
mod children;
mod descriptors;
mod family;
mod identity;
mod keeper;
mod kept;
mod mark;
mod marker;
mod order;

pub use ancestors::find_ancestor;
pub use children::{Child, Ended, Ending, Processes};
pub use descriptors::{Received, pair, receive, send, take_stdin};
pub use family::{children_of_this, end_descendants, has_descendants, signal_group};
pub use identity::ProcessId;
pub use keeper::{KEEPER, keep};
pub use kept::Keeper;
pub use mark::Mark;
pub use marker::{MARKER, sweep};
