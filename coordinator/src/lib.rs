//! What happens next: sessions, scheduling, notifications, merge, recovery, reports.
//!
//! Nothing is here yet; this will be the only crate that composes `swarm`, `taskboard`,
//! `mailbox` and `worktrees`.
