//! The designs that are compared, behind one small interface.

pub(crate) mod ccb;
pub(crate) mod seed;
pub(crate) mod sqlite;

use std::collections::HashMap;
use std::path::Path;

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

use crate::Failure;
use crate::workload;

/// Time limit of any design for a lock (the plain one gives up by its count of retries).
pub(crate) const LOCK_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(10);

/// A way to store tasks and assign them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Design {
    /// ccb with the lock directories other tools respect (its default).
    Ccb,
    /// ccb with its file lock alone.
    CcbFlock,
    /// A table in SQLite: WAL, `BEGIN IMMEDIATE`, synchronous FULL if durable, else NORMAL.
    Sqlite,
    /// Read every task file under a lock directory, write the claimed one in place.
    Seed,
}

impl Design {
    pub(crate) const ALL: [Self; 4] = [Self::Ccb, Self::CcbFlock, Self::Sqlite, Self::Seed];

    /// For tables and plots.
    pub(crate) fn label(self) -> &'static str {
        match self {
            Self::Ccb => "ccb",
            Self::CcbFlock => "ccb, flock only",
            Self::Sqlite => "SQLite WAL",
            Self::Seed => "plain files",
        }
    }

    /// Its name on the command line.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Ccb => "ccb",
            Self::CcbFlock => "ccb-flock",
            Self::Sqlite => "sqlite",
            Self::Seed => "seed",
        }
    }

    /// Makes a board with `tasks` tasks in the empty directory `dir`.
    pub(crate) fn prepare(self, dir: &Path, tasks: u64) -> Result<(), Failure> {
        match self {
            Self::Ccb | Self::CcbFlock => ccb::prepare(dir, tasks),
            Self::Sqlite => sqlite::prepare(dir, tasks),
            Self::Seed => write_files(dir, tasks),
        }
    }

    /// Opens the board as a worker does that will make many claims.
    pub(crate) fn open(self, dir: &Path, durable: bool) -> Result<Box<dyn Claimer>, Failure> {
        Ok(match self {
            Self::Ccb | Self::CcbFlock => {
                Box::new(ccb::Worker::open(dir, self == Self::CcbFlock, durable)?)
            }
            Self::Sqlite => Box::new(sqlite::Database::open(dir, durable)?),
            Self::Seed => Box::new(seed::Files::open(dir, durable)),
        })
    }

    /// The owner of each task according to the board itself.
    pub(crate) fn owners(self, dir: &Path) -> Result<HashMap<u64, String>, Failure> {
        match self {
            Self::Ccb | Self::CcbFlock => ccb::owners(dir),
            Self::Sqlite => sqlite::Database::open(dir, false)?.owners(),
            Self::Seed => seed::owners(dir),
        }
    }
}

/// A worker that takes tasks.
pub(crate) trait Claimer {
    /// Prepares everything that a long-lived worker has ready before its next claim.
    fn warm_up(&mut self) -> Result<(), Failure> {
        Ok(())
    }

    /// Takes the best task for `agent`: its id, or `None` if none is left.
    fn claim(&mut self, agent: &str) -> Result<Option<u64>, Failure>;
}

/// One file per task, not through any board.
pub(crate) fn write_files(dir: &Path, tasks: u64) -> Result<(), Failure> {
    for task in workload::specs(tasks) {
        std::fs::write(dir.join(format!("{}.json", task.id)), task.to_file())?;
    }
    Ok(())
}
