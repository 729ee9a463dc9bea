//! What happens next: sessions, scheduling, notifications, merge, recovery, reports.
//!
//! The only crate that composes `swarm`, `taskboard`, `mailbox` and `worktrees`, which do not
//! know each other. So far it keeps tasks and working trees in step ([`binding`]), remembers
//! for a session in a tree where it came from ([`session`]), and deletes teams.

pub mod binding;
pub mod fanout;
pub mod run;
pub mod session;
mod team_delete;

pub use team_delete::{DeleteError, Deleted, TreeEnd, delete_team};
