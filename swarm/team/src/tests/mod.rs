//! Every promise of a roster, in files and in a database: the same tests, with other scenes.

#[cfg(feature = "server-tests")]
mod in_database;
mod in_files;

use store::atomic;
use store::lock::FileLock;
use store::tree::names_in;

use super::*;

fn agent(name: &str) -> NewMember {
    NewMember::new(Name::new("agent", name).unwrap())
}

/// The time of the scenes' clock.
const NOW: i64 = 1_700_000_000_007;
