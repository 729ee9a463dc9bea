//! What the fuzz target of the MCP server needs of it; see [`store::fuzz`].

pub(crate) use super::arguments::Arguments;
pub(crate) use super::lines::{Line, Lines, is_id};
pub(crate) use super::tool::Catalogue;
pub(crate) use super::transport::meaning;
