//! The parts of board and mail in PostgreSQL that both share.
//!
//! The callers are synchronous and come from any thread, inside an async runtime or outside of one.
//! The sockets belong to one thread of this crate; a caller's thread sleeps until its answer is
//! there or its time is up.
//!
//! # What this room knows
//!
//! Connections, transactions that happen once, migrations, addresses and certificates.
//!
//! # What it must not know (and where to go instead)
//!
//! * Tables of tasks, mail and rosters: `taskboard/src/tables`, `mailbox/src/database`, `swarm/team`.
//! * Which database a person means: `coordinator/project`.
//!
//! # The way through
//!
//! ```text
//! Database::read | change ─▶ a session from the pool, or a new one ─▶ statements, pipelined ─▶ commit
//! the link breaks ─▶ connect again ─▶ look for the operation ─▶ its answer, or once more
//! ```
//!
//! # Crash points
//!
//! None of its own: `taskboard/tests/database` and `mailbox/tests/database` cut the link at every statement.
//!
//! # Promises
//!
//! * Nothing waits for ever: connecting, every statement and every lock have a limit.
//! * A password is never shown: not in a message, not in `Debug`, not in a log.
//! * Statements are unnamed and settings are local to a transaction, so that PgBouncer may pool
//!   transactions in between.
//! * A change happens once. If the link breaks before the commit was sent, nothing has happened and
//!   the change is tried again. If it breaks later, the new connection first asks for the
//!   *operation* that the change recorded in its own transaction ([`Database::change`]).
//! * Migrations are applied in one transaction under a lock ([`migrate()`]). A program that knows
//!   fewer migrations than the database has does not touch it, and neither does one that knows
//!   more.
//!
//! # Where things are
//!
//! Paths start at the repository's root; a short name is beside the last path of its cell.
//!
//! | to | look at |
//! |---|---|
//! | know why a change happens once although the link breaks | `store/database/src/database.rs` |
//! | change what `ccb doctor` and `ccb board show` say of a server | `store/database/src/health.rs`, `coordinator/runs/src/backends/postgres/server.rs`, `taskboard/src/tables/metrics.rs` |

mod connection;
mod database;
mod error;
mod health;
mod listener;
mod migrate;
mod pgpass;
mod settings;
#[cfg(feature = "throw-away-server")]
pub mod throw_away;
mod tls;
mod turn;
mod wait;

pub use connection::{Parameter, Session};
pub use database::{About, Answer, Carries, Database, Operation, migrate};
pub use error::DatabaseError;
pub use health::{Health, TableHealth};
pub use listener::Listener;
pub use migrate::{COMMON, Component};
pub use settings::{Secrets, Settings, is_url};
pub use tokio_postgres::Row;
pub use tokio_postgres::types::{ToSql, Type};
pub use turn::{Claimant, Taken, Turn, turns};
