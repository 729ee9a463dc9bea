//! Processes of agents: started, waited for, found, and ended with everything they started.

mod ancestors;
mod children;
mod family;
mod identity;
mod mark;
mod marker;

pub use ancestors::find_ancestor;
pub use children::{Child, Ending, Processes};
pub use family::{end_descendants, signal_group};
pub use identity::ProcessId;
pub use mark::Mark;
pub use marker::{MARKER, sweep};
