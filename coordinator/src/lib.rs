//! What happens next: sessions, scheduling, notifications, merge, recovery, reports.
//!
//! The only crate that composes `swarm`, `taskboard`, `mailbox` and `worktrees`. So far it
//! deletes teams.

mod team_delete;

pub use team_delete::{DeleteError, Deleted, delete_team};
