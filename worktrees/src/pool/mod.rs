//! Worktrees made in advance: filling the pool (`fill`), handing one out (`take`), and reusing one
//! whose work is kept elsewhere (`give_back`).

mod fill;
mod give_back;
mod take;

pub use fill::{PoolTree, Refilled};
pub use give_back::GivenBack;
