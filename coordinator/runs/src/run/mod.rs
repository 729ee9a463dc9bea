//! Agents: started, waited for, written to, stopped, resumed; and what has to happen when one
//! ends, whoever notices.
//!
//! `swarm` knows how to supervise a process. Here it is put together with tasks, mail and
//! trees: the ports a host needs, the entry points of guard and host, and everything a person
//! or a model can do with agents.

mod agent_mail;
mod agents;
mod answer;
mod check_place;
mod entry;
mod error;
mod finish;
mod finish_tasks;
mod guards;
mod heartbeat;
mod judge;
mod late_hooks;
pub mod mates;
mod network_ports;
mod outside;
mod permission;
mod reconcile;
mod resume;
mod run_hooks;
mod run_tree;
mod services;
mod spawn;
mod spawn_checks;
mod start;
mod stop;
mod turn;
mod usual_work;
mod wait;

pub use crate::hooks::WORKER as HOOKS;
pub use crate::identity::{GUARD, HOST};
pub use agents::{Agents, Listed, Surroundings};
pub use agents::{mail_options, tree_options};
pub use entry::{Asleep, Shared, guard_main, host_main, keeper_main, open, supervise};
pub use error::AgentError;
pub use finish::task_refused;
pub use late_hooks::hooks_main;
pub use mates::{MATES, MATES_GUARD, mates_guard_main};
pub use outside::Outside;
pub use reconcile::Settled;
pub use resume::Sent;
pub use services::HeldWhileParked;
pub use spawn::{MadeBy, Spawn, WorksIn};
pub use start::Launched;
pub use stop::stop_all;
pub use swarm::process::KEEPER;
pub use swarm::run::{DefinedHooks, Grants, LaunchPlan, Prove};
pub use swarm::runtime::Usage;
pub use wait::{Outcome, Output};

pub use turn::{KnownWorker, Turn, host_name};
