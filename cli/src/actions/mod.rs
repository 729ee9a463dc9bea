//! What commands and tools do, without how they are asked and how they answer.
//!
//! The command line and the MCP server call the same functions here and get the same errors.
//! Nothing here prints or reads arguments.

pub(crate) mod mail;
pub(crate) mod recipients;
pub(crate) mod task;
mod task_rights;
pub(crate) mod team;
pub(crate) mod worktree;
