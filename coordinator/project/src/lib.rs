//! Where a command works, and who gives it.

pub mod away;
pub mod rights;
pub mod visit;
mod who;
pub mod workplace;
