//! Agents: started, waited for, written to, stopped, resumed; and the steps when one ends,
//! whichever process notices.
//!
//! `swarm` knows how to supervise a process. Here it is put together with tasks, mail and
//! worktrees: the ports a host needs, the entry points of guard and host, and everything a person
//! or a model can do with agents.
//!
//! # A run's life
//!
//! `teams/<team>/runs/<agent-id>/` is made, its `alive.lock` taken, and `runs/.active/<agent-id>` says that there is something to do
//! for it. Then `meta.json`; then the task is claimed with a lease that names the run; then the worktree is made (its name is in `meta.json`
//! before); then a guard gets the run and its lock over a socket. It hands both on to its host, and the host starts the agent.
//! The processes that the host starts do not get the lock. A director keeps guards and hosts for the next run (ADR 21); every other process starts a new pair, which ends with its run.
//!
//! For a director, which starts many, the host makes the worktree (`MadeBy::Host`): the claim names the worktree in the same write, `makeFrom` in `meta.json` names the commit to make it from, and the registry names the task from the
//! worktree's first moment. The process that finishes the run settles a half-made worktree, and takes the name of one that was never made off the task. A host that cannot make it ends the run before its agent has begun: `lost` if it was
//! hindered, with the reason `broken` if a disk cannot be read or written, `failed` if the task itself is the reason.
//!
//! The starter's whole environment goes with the run, as a file in memory without a name (`hand_over`); they read it, and the run's `host.log` becomes their
//! standard error. Their own environments hold no key, and others of the same user cannot look into them. From it the host makes the agent's environment, gives it to hooks,
//! and knows what is secret. Board, mail and trees opened with it take these values out of whatever is written (`SecretFilter`).
//!
//! Guard and host are both *subreapers*: whatever an agent's descendants abandon becomes the host's child, and if the host dies, the
//! guard's. To end all of them is to kill children until there are none. Host dies: the guard reads the end of a pipe, ends everything,
//! finishes the run. Guard dies: the host sees its pipe break (and gets SIGTERM), kills at once, finishes. Both die: the lock is free while
//! `.active` still names the run; the next command takes the lock, kills what has the run's id in its environment or bears its
//! mark (a resource limit, see `swarm/src/process/mark.rs`; a process older than the run's guard is not taken for one of it), finishes.
//!
//! Agents on `native` can share a process (`agents.matesIn: process`, ADR 20). Then one guard holds the locks of all their runs, which starters hand to it over a socket; hosts and
//! loops are threads of its child, and a *keeper* for each agent starts its commands: it is the subreaper, and bears the mark. If the child dies, the guard ends what is left, and the agents continue from their conversations in another
//! one, in the same life (`restarts` in `meta.json`).
//!
//! Finishing, in whichever process: `exit.json` (created, never replaced; synced) and the state in `meta.json`; those who wait for the result wake up, because
//! the guard releases `result.lock`; tasks completed or given back; the worktree removed or kept; the parent notified; temporary files deleted;
//! `.active` entry removed. Each step can be done again.
//!
//! The parent gets one notification: a process that waits for the result holds `waiters.lock` (shared); then the run only notes `told: waiting`, and the
//! process that waited notes `delivered` after passing the result on. If it dies before that, the next command posts the notification, whose id
//! follows from the run and its life, so it is there once.
//!
//! A message to an agent is sent under the run's `lock`, under which the agent also decides that it takes in nothing more. So it is either seen by
//! the agent before its end, or the sender knows that the agent has to be resumed: `alive.lock` taken, `life` counted up, the old `exit.json` put aside,
//! worktree made again if it is gone, guard started. Only one can have the lock, so there is one resume.

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
