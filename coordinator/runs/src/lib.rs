//! One agent, from its start to the proof of its work.
//!
//! # What this room knows
//!
//! How an agent is started, supervised, written to, stopped and resumed, and what ccb does when it
//! ends, also if a kill got in between. `swarm` supervises one process and knows no board, mail or
//! worktree; this room puts these together. It knows the limits of all agents of a team ([`fleet`]),
//! the hooks on tasks and worktrees ([`hooks`]), which process belongs to which agent ([`identity`],
//! [`peer`]), what the team's session says of itself ([`session_file`]), and where the files or the
//! database of a team are ([`rosters`], [`shared_board`]).
//!
//! # What it must not know (and where to go instead)
//!
//! * The choice of the next task: `director`.
//! * The way of work onto a branch: `landing`.
//! * The caller of a command, its directory and its rights: `project`.
//! * The prompt, model and tools of an agent: `coordinator::agent`.
//! * Our own loop around a model: a host that shares its process has it by
//!   [`SharedLoop`](swarm::runtime::SharedLoop); `coordinator::mates` brings it.
//!
//! # The way through
//!
//! ```text
//! Agents::spawn ─▶ limits, claim of the task, worktree, run.json ─▶ guard ─▶ host
//! host ─▶ the runtime of swarm works; mail, hooks and questions pass through RunServices
//! the agent ends ─▶ commit, check (Prove) ─▶ finish: state, task, worktree, word to its parent
//! host and guard killed ─▶ Agents::reconcile does the same from what is on the disk
//! ```
//!
//! # Crash points
//!
//! [`FAULT_POINTS`]: `spawn.*` in `run/spawn.rs`, `run/run_tree.rs` and `run/start.rs`, `finish.*` in `run/finish.rs`,
//! `fleet.*` in `fleet/mod.rs`, `resume.sent` in `run/resume.rs`.

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
