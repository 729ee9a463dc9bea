//! Processes of agents: started, waited for, found, and ended with everything they started.

mod children;

pub use children::{Child, Ending, Processes};
