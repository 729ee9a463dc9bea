//! Agents: definitions, runtimes, supervision, teams, transcripts.
//!
//! So far only the teams: who is a member, and what is left of one when it is gone.
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

mod agent_id;
mod error;
mod fault;
pub mod process;
pub mod run;
pub mod runtime;
mod team;

pub use agent_id::AgentId;
pub use error::TeamError;
pub use fault::FAULT_POINTS;
pub use team::{
    COLORS, LEAD, Life, Listed, Living, Member, MemberUpdate, NewMember, NewTeam, Roster, Team,
    TeamOptions, list,
};
