//! What the cross-crate tests share: a hermetic home directory, the binary under test, and
//! waiting with a deadline.

mod home;
mod wait;

pub use home::{Answer, TestHome};
pub use wait::wait_until;
