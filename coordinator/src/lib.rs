//! The functions that a command calls.
//!
//! # What this room knows
//!
//! The actions of commands and tools ([`actions`], [`perform`]), the prompt, model and tools of an agent
//! ([`agent`]), sessions, plans and workers as a person starts them ([`session`], [`plans`],
//! [`worker`]), repairs and leftovers ([`doctor()`], [`clean`]), names for shells to complete
//! ([`candidates`]), spans and metrics (`telemetry`), and the process that several agents share
//! ([`mates`]).
//!
//! # What it must not know (and where to go instead)
//!
//! * The run of one agent: `runs`. The place and the caller of a command: `project`.
//! * The landing of work: `landing`. The order of tasks and the agents for them: `director`.
//! * The meaning of a plan file: `fanout`. The content of views and reports: `observe`.
//! * Arguments, output and protocols: `cli`.
//!
//! # The way through
//!
//! ```text
//! cli ─▶ Workplace (project) ─▶ rights ─▶ actions ─▶ board, mail, agents, worktrees
//! cli ─▶ session::run ─▶ agent makes each launch plan ─▶ director ─▶ runs ─▶ landing
//! cli ─▶ plans ─▶ fanout ─▶ director ─▶ runs ─▶ landing
//! guard of all teammates (runs) ─▶ mates: a host and a loop for each agent, on threads
//! ```
//!
//! # Crash points
//!
//! None of its own: `runs`, `landing` and the crates below them have theirs.
//!
//! # Where things are
//!
//! Paths start at the repository's root; a short name is beside the last path of its cell.
//!
//! | to | look at |
//! |---|---|
//! | change how machines share a board | `coordinator/src/worker.rs` (`ccb worker`), `coordinator/runs/src/run/heartbeat.rs` (leases), `coordinator/runs/src/run/turn.rs` and `store/database/src/turn.rs` (one at a time), `coordinator/landing/src/shared.rs` (landing), `worktrees/src/remote.rs` (git remotes), `coordinator/runs/src/backends/postgres.rs` (how a run finds the database), `coordinator/fanout/src/elsewhere.rs` (plans); the tests are `tests/postgres/workers.rs` |
//! | change what `ccb clean` finds and removes | `coordinator/src/clean.rs`, `worktrees/src/remove/leftovers.rs` |
//! | change what a session does besides | `coordinator/src/session/`: `record.rs` (what it is like), `oversee.rs` (when it ends), `lead.rs`, `ui.rs` (what happened, what a person decided), `stale.rs` (worktrees nobody needs), `close.rs`; `offers.rs` (what a person decides at the end); on a terminal: `cli/src/session/typed.rs`, `view.rs`, `landing.rs`, and the line in which a person types: `cli/term/src/prompt/` |
//! | change what an OpenTelemetry collector gets | `coordinator/src/telemetry/`: `recorder.rs` (spans), `calls.rs` (model calls), `figures.rs` (metrics), `ledger.rs` (what was delivered); how it is sent: `cli/otel/src/` (`settings.rs`, `protobuf.rs`, `exporter.rs`, `observed.rs`) |
//! | add something the doctor looks at | `coordinator/src/doctor.rs` |
//! | change what an agent is given | `coordinator/src/agent/describe.rs` (flags, definition and settings together), `models.rs`, `fork.rs` (copies), `swarm/src/run/launch_plan.rs` |
//! | change which runtimes the doctor knows, and what `--probe` asks | `coordinator/src/doctor/models.rs`, `swarm/native/src/probe.rs` |
//! | see how a plan is run and what its outcomes come from | `coordinator/src/plans.rs` (what it is run with), `coordinator/fanout/src/run.rs` (the order), `follow.rs` (the director), `keep.rs` (what is kept) |
//! | change what a definition asks for besides its prompt | `coordinator/src/agent/definition_keys.rs`; servers an agent needs: `swarm/src/run/required.rs` |
//! | change how plans are handed in and approved | `coordinator/src/actions/plan_mode.rs`, `cli/mcp/src/plan_mode.rs`; what came with a plan: `coordinator/runs/src/run/usual_work.rs` |
//! | change what a command and a tool both do | `coordinator/src/actions/` |
//! | see how tools start and stop agents | `coordinator/src/agent/service.rs` (what can be asked), `own_agents.rs` (who does it) |
//! | change a coordinator's prompt, or what it may do | `coordinator/src/session/coordinator.md`, `coordinator/src/agent/workers.rs` |

pub mod actions;
pub mod agent;
pub mod candidates;
pub mod clean;
mod doctor;
#[doc(hidden)]
pub mod fuzz;
pub mod mates;
pub mod perform;
pub mod plans;
pub mod session;
#[cfg(feature = "telemetry")]
pub mod telemetry;
pub mod worker;

pub use doctor::{
    KnownRuntime, Probe, doctor, doctor_of_all, known_runtimes, probe_models, usable_providers,
};
pub use runs::Finding;
