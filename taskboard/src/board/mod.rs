//! A board as its callers know it, on whichever backend.

mod attempt;
mod change;
mod check;
mod claim;
mod complete;
mod create;
mod follow;
mod open;
mod worktree;

pub use follow::{Glance, Watch};
pub use open::Board;
pub use worktree::Begin;
