//! The same board in PostgreSQL.
//!
//! Rules, formats and refusals are those of the files: a change loads the task and the facts for
//! the rules into an `Index` of that part of the board, applies the rules, and writes the result.
//! The differences are where a database and files have different costs:
//!
//! * A change has its list for itself (`visit`): an advisory lock until its transaction ends. It
//!   does not read the whole list; it searches for cycles along the edges below.
//! * `next` is one statement, which shares the list with other claims and skips the rows they hold
//!   (`claim_next` in `migrations/001.sql`). That works because rank and readiness are columns,
//!   kept up to date by every change that affects them (`ranks`).
//! * A change of a task is written down without its number; the first reader numbers the new ones
//!   (`history`). So claims do not wait for each other, and no follower misses one.
//! * Time is the database's.
//!
//! Only ccb writes here, so there are no half edges, unreadable tasks or changed checks to find,
//! and a cycle cannot come to be.

mod changes;
mod doctor;
mod edits;
mod glance;
mod history;
mod links;
mod list;
mod metrics;
mod next;
mod port;
mod ranks;
mod retention;
mod rows;
mod visit;

use std::error::Error;

use database::{COMMON, Carries, Component, Database, DatabaseError};

use crate::error::BoardError;

pub(crate) use list::Tables;
pub use list::list_alike;
pub use metrics::{ListMetrics, metrics};
pub use retention::{KEPT, Pruned, prune};

/// The board's part of the schema.
pub const MIGRATIONS: Component = Component {
    name: "board",
    migrations: &[include_str!("../../migrations/001.sql")],
};

/// The channel that announces changes of a list of `schema`.
pub(crate) fn channel(schema: &str) -> String {
    format!("{schema}_board")
}

/// Refuses a database that is not prepared for this program.
fn require(database: &Database) -> Result<(), DatabaseError> {
    database.require(&COMMON)?;
    database.require(&MIGRATIONS)
}

impl From<DatabaseError> for BoardError {
    fn from(error: DatabaseError) -> Self {
        Self::Backend(Box::new(error))
    }
}

impl Carries for BoardError {
    fn database(&self) -> Option<&DatabaseError> {
        let Self::Backend(error) = self else {
            return None;
        };
        let error: &(dyn Error + 'static) = &**error;
        error.downcast_ref()
    }
}
