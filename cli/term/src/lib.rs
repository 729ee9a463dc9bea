//! What stands on a terminal: colours, tables, broken lines, and the line in which a person types.

pub mod line;
pub mod prompt;
pub mod style;
pub mod table;
pub mod wrap;
