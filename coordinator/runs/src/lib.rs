//! One agent, from its start to the proof of its work.
//!
//! # What this room knows
//!
//! How an agent is started, supervised, written to, stopped and resumed, and what ccb does when it
//! ends, also if a kill got in between. `swarm` supervises one process and knows no board, mail or
//! worktree; this room puts these together. It knows the limits of all agents of a team
//! ([`fleet`]), the hooks on tasks and worktrees ([`hooks`]), which process belongs to which agent
//! ([`identity`], [`peer`]), what the team's session says of itself ([`session_file`]), and whether
//! board, mail and rosters are in files or in a database ([`backends`]).
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
//!
//! # Where things are
//!
//! Paths start at the repository's root; a short name is beside the last path of its cell.
//!
//! | to | look at |
//! |---|---|
//! | change when a task is given up, or how long one whose agents are lost rests | `coordinator/runs/src/progress.rs`; one that cannot even be begun: `coordinator/director/src/rests.rs` |
//! | change how a failure is shown | `coordinator/runs/src/failure_text.rs`, `failure_lines` in `cli/src/output.rs` |
//! | see how an agent is started, step by step | `coordinator/runs/src/run/spawn.rs`, `spawn_checks.rs` (what is checked first), `run_tree.rs` (its tree, and who makes it), `start.rs` (the guard), `entry.rs` (what guard and host do first) |
//! | see what happens when one ends | `coordinator/runs/src/run/finish.rs`; for a run without a guard, `reconcile.rs` |
//! | change how runs get to guards, and how guards stay for the next one | `coordinator/runs/src/run/guards.rs`, `swarm/src/run/handed_run.rs` |
//! | change agents that share a process | `coordinator/runs/src/run/mates/`: `starter.rs` (who starts them), `guard.rs` (the guard of all of them, and what goes on after a kill); hosts and loops on threads: `coordinator/src/mates/mod.rs`; the loop there: `swarm/native/src/together.rs`; who starts their commands: `swarm/src/process/keeper.rs`, `kept.rs`; for whom a thread works: `swarm/src/scope.rs` |
//! | change who answers questions for permission, and what is not asked about | `coordinator/runs/src/run/permission.rs`, `usual_work.rs`; what a person sees: `coordinator/src/session/desk.rs` |
//! | change what holds the tasks of a client that its user runs | `coordinator/runs/src/run/outside.rs`, `cli/mcp/src/membership.rs` |
//! | change what all together may use, or how a refusal pauses them | `coordinator/runs/src/fleet/state.rs` (pure), `mod.rs` (the file) |
//! | see when a retry makes no progress | `coordinator/runs/src/progress.rs`, `taskboard/src/board/attempt.rs` |
//! | change which files a task may change | `coordinator/runs/src/file_rules.rs`; what plans protect: `coordinator/fanout/src/protect.rs` |
//! | see whether an agent kept to what it may do | `coordinator/runs/src/run/judge.rs`; trees and branches of its own: `worktrees/src/changes/strays.rs` |
//! | see how a team ends | `coordinator/runs/src/team_delete.rs`, `swarm/team/src/delete.rs` |
//! | keep a task and its tree in step | `coordinator/runs/src/binding.rs`, `taskboard/src/board/worktree.rs` |
//! | know whether board, mail and rosters are in files or in a database | `coordinator/runs/src/backends.rs`, `coordinator/runs/src/backends/postgres.rs` |
//! | know whose process this is | `coordinator/runs/src/identity.rs`, `coordinator/project/src/workplace/own.rs`; processes above us: `swarm/src/process/ancestors.rs` |
//! | know who is at the other end of a connection | `coordinator/runs/src/peer.rs`; which process has a socket: `swarm/src/process/sockets.rs` |

pub mod backends;
pub mod binding;
pub mod bystander;
pub mod env;
pub mod failure_text;
mod fault;
pub mod file_rules;
mod finding;
pub mod fleet;
pub mod hooks;
pub mod identity;
pub mod peer;
pub mod progress;
pub mod results;
mod run;
pub mod session_file;
mod team_delete;
mod worker;

pub use backends::{Backends, Turn};
pub use fault::FAULT_POINTS;
pub use finding::Finding;
pub use run::{
    AgentError, Agents, Asleep, DefinedHooks, GUARD, Grants, HOOKS, HOST, HeldWhileParked, KEEPER,
    LaunchPlan, Launched, Listed, MATES, MATES_GUARD, MadeBy, Outcome, Output, Outside, Prove,
    Sent, Settled, Shared, Spawn, Surroundings, Usage, WorksIn, guard_main, hooks_main, host_main,
    keeper_main, mail_options, mates, mates_guard_main, open, stop_all, supervise, task_refused,
    tree_options,
};
pub use team_delete::{DeleteError, Deleted, Force, TreeEnd, delete_team};
pub use worker::{KnownWorker, host_name};
