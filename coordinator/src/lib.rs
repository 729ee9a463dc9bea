//! What happens next: sessions, scheduling, notifications, merge, recovery, reports.
//!
//! The only crate that composes `swarm`, `taskboard`, `mailbox` and `worktrees`, which do not
//! know each other. It works a board off with agents ([`engine`]), keeps tasks and working trees in
//! step ([`binding`]), remembers for a session in a tree where it came from ([`session`]), gives
//! hooks their say ([`hooks`]), knows whose process this is ([`identity`]), and deletes teams.

pub mod actions;
pub mod agent;
pub mod binding;
pub mod director;
mod doctor;
pub mod env;
pub mod fanout;
pub mod fleet;
pub mod hooks;
pub mod identity;
pub mod progress;
pub mod rights;
pub mod run;
pub mod session;
mod team_delete;
pub mod visit;
pub mod workplace;

pub use doctor::{Finding, doctor};
pub use team_delete::{DeleteError, Deleted, TreeEnd, delete_team};
