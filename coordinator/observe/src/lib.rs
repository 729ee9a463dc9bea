//! Reads what happens and what has happened; changes nothing.

pub mod act;
pub mod live;
pub mod overview;
pub mod report;
