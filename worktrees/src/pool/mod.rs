//! Worktrees that are made before anybody asks for one: filling the pool (`fill`) and handing
//! one out (`take`).

mod fill;
mod take;

pub use fill::{PoolTree, Refilled};
