//! What happens next: sessions, scheduling, notifications, merge, recovery, reports.
//!
//! The only crate that composes `swarm`, `taskboard`, `mailbox` and `worktrees`, which do not
//! know each other. So far it keeps tasks and working trees in step ([`binding`]) and deletes
//! teams.

pub mod binding;
mod team_delete;

pub use team_delete::{DeleteError, Deleted, TreeEnd, delete_team};
