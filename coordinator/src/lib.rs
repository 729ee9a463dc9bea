//! What a command calls.
//!
//! # What this room knows
//!
//! What commands and tools both do ([`actions`], [`perform`]), what an agent is given ([`agent`]),
//! sessions, plans and workers as a person starts them ([`session`], [`plans`], [`worker`]), what is
//! wrong and what is left over ([`doctor()`], [`clean`]), what shells complete ([`candidates`]), spans
//! and metrics (`telemetry`), and the process that several agents share ([`mates`]).
//!
//! # What it must not know (and where to go instead)
//!
//! * How one agent runs: `runs`. Where a command works and who gives it: `project`.
//! * How work lands: `landing`. Who does which task when: `director`.
//! * What a plan file means: `fanout`. What views and reports say: `observe`.
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
