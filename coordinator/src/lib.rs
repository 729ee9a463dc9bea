//! What happens next: sessions, scheduling, notifications, merge, recovery, reports.
//!
//! The only crate that composes `swarm`, `taskboard`, `mailbox` and `worktrees`, which do not
//! know each other. A [`workplace`] says where somebody works and who it is; [`agent`] what an
//! agent is given; [`run`] starts agents and sees to their end; the director works a board
//! off with them; a [`session`] and a plan ([`plans`], [`fanout`]) use it. [`actions`] is what commands and
//! tools both do, [`rights`] who may.

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
