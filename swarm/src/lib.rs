//! Agents: definitions, runtimes, supervision, teams, transcripts.
//!
//! | module | what it knows |
//! |---|---|
//! | [`definitions`] | the types of agents there are, and which definition counts |
//! | [`model`], [`tools`], [`memory`] | what an agent of a type runs on, may use, remembers |
//! | [`environment`] | what of the caller's environment an agent sees |
//! | [`sandbox`] | confining commands to a worktree |
//! | [`hooks`] | commands that run at certain moments, and what they say |
//! | [`trust`] | which of the things a repository would run the user trusts |
//! | [`redact`] | taking secrets out of what an agent prints |
//! | [`starter`] | the environment of whoever starts an agent, and what of it is secret |
//!
//! # Files
//!
//! ```text
//! <home>/teams/.lock                    held while a team's directory is made
//! <home>/teams/<team>/config.json       the roster; the same format Claude Code reads
//! <home>/teams/<team>/.ccb/lock         held while the roster changes; never deleted
//! <home>/teams/<team>/.ccb/tmp/         rosters on their way
//! <home>/teams/<team>/.ccb/trash/       what a deletion has set aside and not yet deleted
//! <home>/teams/<team>/runs/<agent>/alive.lock         held while that agent runs
//! <home>/teams/<team>/inboxes/<agent>/consumer.lock   held while somebody reads its mail
//! ```
//!
//! # What is not here
//!
//! No tasks, no messages, no git: what needs several of them is the coordinator's.

pub mod definitions;
pub mod environment;
mod fault;
pub mod fork;
#[doc(hidden)]
pub mod fuzz;
pub mod hooks;
pub mod memory;
pub mod model;
pub mod process;
pub mod provider;
pub mod redact;
pub mod run;
pub mod runtime;
pub mod sandbox;
pub mod scope;
pub mod starter;
pub mod tools;
pub mod trust;

pub use fault::FAULT_POINTS;
