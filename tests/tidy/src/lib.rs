//! The rules of the sources, as functions that return the violations.
//!
//! | module | rule |
//! |---|---|
//! | [`paths`] | every path that ARCHITECTURE.md names exists |
//! | [`rooms`] | each crate says what it knows, and none is too large |
//! | [`crates`] | crates depend downwards only |
//! | [`cycles`] | the top modules of a crate do not import each other in a circle |
//! | [`thin`] | `cli` has no policy: it does not import what would let it decide |
//! | [`seams`] | few places ask whether ccb is built with PostgreSQL |
//! | [`english`] | the prose has no more phrases of a deny list than a number that only falls |
//!
//! [`sources`] reads the imports of a crate. `tests/workspace.rs` applies the rules to this
//! repository.

pub mod crates;
pub mod cycles;
pub mod english;
pub mod paths;
pub mod rooms;
pub mod seams;
pub mod sources;
pub mod thin;
