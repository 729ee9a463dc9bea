//! The parts of board and mail in PostgreSQL that both share.
//!
//! The callers are synchronous and come from any thread, inside an async runtime or outside of one.
//! The sockets belong to one thread of this crate; a caller's thread sleeps until its answer is
//! there or its time is up.
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
