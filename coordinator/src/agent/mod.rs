//! The properties of an agent: everything between a request and its start.
//!
//! [`describe()`] combines the request, the definition and the settings; [`bounds`] limits it to
//! the rights of the caller; `TaskCrew` does so for tasks of a session or a plan, [`OwnAgents`] for
//! callers of the tool `Agent`, and `workers` has the rules for a coordinator.

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
