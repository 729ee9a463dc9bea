//! Agents as processes: how ccb defines, starts, supervises, checks and records one.
//!
//! # What this room knows
//!
//! | module | contents |
//! |---|---|
//! | [`run`] | one run of an agent: its directory, guard, host, messages, limits, check and end |
//! | [`runtime`] | the contract of a runtime, and one translator for each program that ccb drives |
//! | [`process`] | processes: starting, finding and ending an agent's descendants |
//! | [`definitions`] | the types of agents, and which of several definitions counts |
//! | [`model`], [`tools`], [`memory`], [`provider`], [`fork`] | what an agent is given: its model, tools, memory, service, and a copied conversation |
//! | [`environment`], [`starter`], [`scope`] | which variables an agent sees, which of the starter's are secret, and for whom a thread acts |
//! | [`sandbox`] | confinement of commands to a worktree |
//! | [`hooks`], [`trust`] | commands that run at certain moments, and which of a repository's commands the user trusts |
//! | [`redact`] | removing secrets from what an agent prints |
//!
//! # What it must not know (and where to go instead)
//!
//! * Tasks, messages and git history: `taskboard`, `mailbox`, `worktrees`. A host asks for them
//!   through [`run::HostServices`], which the coordinator implements.
//! * Who belongs to a team and who of them is alive: `swarm/team`.
//! * How ccb's own agent loop works, and HTTP: `swarm/native`. This crate only starts `ccb __native`
//!   as one more program ([`runtime::NativeRuntime`]).
//! * Which agents run next: `coordinator`. PostgreSQL: `swarm/team` and the boards. Output and exit
//!   codes: `cli`.
//!
//! # The way through
//!
//! ```text
//! starter:  run directory + alive.lock ── socket ──▶ guard ── starts ──▶ host
//! launch:   meta.json ─▶ LaunchPlan ─▶ Launch ─▶ Runtime::launch ── Processes ──▶ the agent's program
//! upwards:  lines of the program ─▶ translator ─▶ Event ─▶ redaction ─▶ transcript.jsonl, output.log, usage
//! downwards: mail, control, limits, hooks ─▶ run::life ─▶ Order ─▶ translator ─▶ lines to the program
//! end:      program and descendants ended ─▶ check (run::prove) ─▶ HostServices::finish ─▶ exit.json
//! ```
//!
//! # Crash points
//!
//! [`FAULT_POINTS`], all `run.*`, in the order of a run: `marked` and `registered` (its directory),
//! `guarded`, `hosted`, `launched`, `handing` and `handed` (a message), `over`, `ending`, `ended`, and
//! `next-life` (a resume). If the host dies, the guard ends the agent's processes and writes the end.
//! If both die, the kernel frees `alive.lock`, and the next command that finds it free finishes the
//! run. `tests/it/run_crash.rs` stops a run at every point.

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
