//! The functions that a command calls.
//!
//! # What this room knows
//!
//! The actions of commands and tools ([`actions`], [`perform`]), the prompt, model and tools of an agent
//! ([`agent`]), sessions, plans and workers as a person starts them ([`session`], [`plans`],
//! [`worker`]), repairs and leftovers ([`doctor()`], [`clean`]), names for shells to complete
//! ([`candidates`]), spans and metrics (`telemetry`), and the process that several agents share
//! ([`mates`]).
//!
//! # What it must not know (and where to go instead)
//!
//! * The run of one agent: `runs`. The place and the caller of a command: `project`.
//! * The landing of work: `landing`. The order of tasks and the agents for them: `director`.
//! * The meaning of a plan file: `fanout`. The content of views and reports: `observe`.
//! * Arguments, output and protocols: `cli`.
//!
//! # The way through
//!
//! ```text
//! cli ─▶ Workplace (project) ─▶ rights ─▶ actions ─▶ board, mail, agents, worktrees
//! cli ─▶ session::run ─▶ agent says what each one is given ─▶ director ─▶ runs ─▶ landing
//! cli ─▶ plans ─▶ fanout ─▶ director ─▶ runs ─▶ landing
//! guard of all mates (runs) ─▶ mates: a host and a loop for each agent, on threads
//! ```
//!
//! # Crash points
//!
//! None of its own: `runs`, `landing` and the crates below them have theirs.

pub mod actions;
pub mod agent;
pub mod candidates;
pub mod clean;
mod doctor;
#[doc(hidden)]
pub mod fuzz;
pub mod mates;
pub mod perform;
pub mod plans;
pub mod session;
#[cfg(feature = "telemetry")]
pub mod telemetry;
pub mod worker;

#[cfg(feature = "postgres")]
pub use doctor::{DATABASE_SCHEMA, database_findings};
pub use doctor::{
    Finding, KnownRuntime, Probe, doctor, doctor_of_all, known_runtimes, probe_models,
    usable_providers,
};
