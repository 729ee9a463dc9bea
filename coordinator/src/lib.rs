//! What happens next: sessions, scheduling, notifications, merge, recovery, reports.
//!
//! The only crate that composes `swarm`, `taskboard`, `mailbox` and `worktrees`, which do not
//! know each other. A [`workplace`] says where somebody works and who it is; [`agent`] what an
//! agent is given; [`run`] starts agents and sees to their end; the director works a board
//! off with them; a [`session`] and a plan ([`plans`], [`fanout`]) use it. [`actions`] is what commands and
//! tools both do, [`rights`] who may.

pub mod act;
pub mod actions;
pub mod agent;
mod away;
pub mod binding;
mod bystander;
pub mod candidates;
pub mod clean;
pub mod director;
mod doctor;
pub mod env;
pub mod failure_text;
pub mod fanout;
mod fault;
mod file_rules;
pub mod fleet;
#[doc(hidden)]
pub mod fuzz;
mod hooks;
mod identity;
pub mod landing;
pub mod live;
pub mod mates;
pub mod overview;
pub mod peer;
pub mod plans;
mod progress;
pub mod report;
pub mod rights;
mod rosters;
pub mod run;
pub mod session;
pub mod session_file;
mod shared_board;
mod team_delete;
#[cfg(feature = "telemetry")]
pub mod telemetry;
mod visit;
mod who;
pub mod worker;
pub mod workplace;

#[cfg(feature = "postgres")]
pub use doctor::{DATABASE_SCHEMA, database_findings};
pub use doctor::{
    Finding, KnownRuntime, Probe, doctor, doctor_of_all, known_runtimes, probe_models,
    usable_providers,
};
pub use fault::FAULT_POINTS;
pub use team_delete::{DeleteError, Deleted, Force, TreeEnd, delete_team};
