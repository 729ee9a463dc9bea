//! The actions of commands and tools, without their arguments and output.
//!
//! The command line and the MCP server call the same functions here and get the same errors.
//! Nothing here prints or reads arguments.

pub mod land;
pub mod mail;
pub mod plan_mode;
pub mod recipients;
mod steer;
pub mod task;
mod task_rights;
pub mod team;
pub mod trees;
pub mod worktree;

pub(crate) use self::steer::{Said, Steer, write_to};
