//! The place of a command, and its caller.
//!
//! # What this room knows
//!
//! The directory, the repository, the home, the settings, the list and the team of a command
//! ([`workplace`]), all of it from flags, environment and files. Which agent or person gives the
//! command, and what that caller may do ([`rights`]). Which worktree a session stands in
//! ([`visit`]). Which agents of the team work on other machines ([`away`]).
//!
//! # What it must not know (and where to go instead)
//!
//! * The run of an agent: `runs`, whose [`Agents`](runs::Agents) a workplace opens.
//! * The landing of work: `landing`, which takes these agents and no workplace.
//! * The work of a command: `coordinator::actions`.
//! * The agent a process belongs to: [`runs::identity`].
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
//!
//! # Where things are
//!
//! Paths start at the repository's root; a short name is beside the last path of its cell.
//!
//! | to | look at |
//! |---|---|
//! | change who may name a board | `coordinator/project/src/workplace/board.rs` |
//! | change what a visit to a tree remembers | `coordinator/project/src/visit.rs`; its file: `coordinator/runs/src/session_file.rs` |
//! | change what an agent may do | `coordinator/project/src/rights.rs` (the table, shown in docs/mcp.md); which row a command is: `cli/src/rights.rs` |

pub mod away;
pub mod rights;
pub mod visit;
mod who;
pub mod workplace;
