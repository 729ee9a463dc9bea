//! What an agent is: everything between "somebody wants one" and what is started.
//!
//! [`describe()`] puts together what was asked for, the definition and the settings; [`bounds`] keeps
//! it to what whoever asks has itself; `TaskCrew` does so for tasks of a session or a plan, [`OwnAgents`]
//! for whoever asks with the tool `Agent`, and `workers` is what a coordinator is held to.

pub mod bounds;
mod crew;
mod definition_keys;
pub mod definitions;
mod describe;
mod fork;
mod models;
mod own_agents;
mod providers;
mod role;
mod runtimes;
mod sandbox;
pub mod service;
mod workers;

pub(crate) use crew::{PlanCrew, TaskCrew};
pub use describe::{Wish, describe};
pub use own_agents::OwnAgents;
pub use providers::{KnownProvider, known_providers};
pub use role::{ENTER_PLAN, PLAN, Role};
pub(crate) use runtimes::no_agent_program;
pub use runtimes::session_runtime;
pub(crate) use workers::USUAL_TYPE;
