//! What happens next: sessions, scheduling, notifications, merge, recovery, reports.
//!
//! The only crate that composes `swarm`, `taskboard`, `mailbox` and `worktrees`, which do not
//! know each other. So far it keeps tasks and working trees in step ([`binding`]).

pub mod binding;
