//! One agent from its start to the proof of its work.

pub mod binding;
pub mod bystander;
pub mod env;
pub mod failure_text;
mod fault;
pub mod file_rules;
pub mod fleet;
pub mod hooks;
pub mod identity;
pub mod peer;
pub mod progress;
pub mod rosters;
mod run;
pub mod session_file;
pub mod shared_board;
mod team_delete;

pub use fault::FAULT_POINTS;
pub use run::{
    AgentError, Agents, Asleep, DefinedHooks, GUARD, Grants, HOOKS, HOST, HeldWhileParked, KEEPER,
    KnownWorker, LaunchPlan, Launched, Listed, MATES, MATES_GUARD, MadeBy, Outcome, Output,
    Outside, Prove, Sent, Settled, Shared, Spawn, Surroundings, Turn, Usage, WorksIn, guard_main,
    hooks_main, host_main, host_name, keeper_main, mail_options, mates, mates_guard_main, open,
    stop_all, supervise, task_refused, tree_options,
};
pub use team_delete::{DeleteError, Deleted, Force, TreeEnd, delete_team};
