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
mod sockets;

pub use ancestors::{command_line, find_ancestor};
pub use children::{Child, Ended, Ending, Processes};
pub use descriptors::{Received, pair, receive, send, take_stdin};
pub use family::{all_processes, children_of_this, end_descendants, has_descendants, signal_group};
pub use identity::ProcessId;
pub use keeper::{KEEPER, keep};
pub use kept::Keeper;
pub use mark::Mark;
pub use marker::{MARKER, run_in_environment, sweep};
pub use sockets::{SocketOwners, TcpSocket, owners_of, tcp_socket};
