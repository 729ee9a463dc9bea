//! Rosters in a real database: links that break, and machines that act at once.

#![cfg(feature = "postgres")]

#[cfg(test)]
mod cuts;
#[cfg(test)]
mod machines;
/// The same link that is cut under the board.
#[cfg(test)]
#[path = "../../../../taskboard/tests/database/proxy.rs"]
mod proxy;
#[cfg(test)]
mod site;
