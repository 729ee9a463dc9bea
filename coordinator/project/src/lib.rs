//! Where a command works, and who gives it.
//!
//! # What this room knows
//!
//! The directory, the repository, the home, the settings, the list and the team of a command
//! ([`workplace`]), all of it from flags, environment and files. Which agent or person gives the
//! command, and what that caller may do ([`rights`]). Which worktree a session stands in ([`visit`]).
//! Which agents of the team work on other machines ([`away`]).
//!
//! # What it must not know (and where to go instead)
//!
//! * How an agent runs: `runs`, whose [`Agents`](runs::Agents) a workplace opens.
//! * How work lands: `landing`, which takes these agents and no workplace.
//! * What a command does: `coordinator::actions`.
//! * Whose process this is, by its ancestors: [`runs::identity`].
//!
//! # The way through
//!
//! ```text
//! Asked (flags) ─▶ Workplace::open: environment, settings, own run ─▶ Workplace
//! Workplace ─▶ board(), mailbox(), agents(), trees(), trust()
//! rights::check(command, workplace) ─▶ yes, or a refusal that names who may
//! ```
//!
//! # Crash points
//!
//! None of its own. A visit writes one file, the session's, and `store` has the points of that.

pub mod away;
pub mod rights;
pub mod visit;
mod who;
pub mod workplace;
