//! What the cross-crate tests share: a hermetic home directory, the binary under test, a
//! stand-in for the other tool on the same files, and waiting with a deadline.

mod board_files;
mod foreign;
mod home;
mod schema;
mod wait;

pub use foreign::{ForeignLock, ForeignTool, make_stale, set_mtime};
pub use home::{Answer, TestHome};
pub use schema::check_task_file;
pub use wait::wait_until;
