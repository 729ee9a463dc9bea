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
//! * The members of a team and which of them are alive: `swarm/team`.
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
//!
//! # Where things are
//!
//! Paths start at the repository's root; a short name is beside the last path of its cell.
//!
//! | to | look at |
//! |---|---|
//! | change what counts as done | `swarm/src/run/prove.rs`, `coordinator/runs/src/run/services.rs` (`seal`), `finish_tasks.rs` |
//! | see how an agent is supervised | `swarm/src/run/guard.rs`, `host.rs` (what it waits for), `life/` (what it does then), `stop.rs`; what it needs of the coordinator: `services.rs` |
//! | know how processes are found and ended | `swarm/src/process/family.rs` (descendants), `marker.rs` (by environment and mark), `mark.rs` (the mark), `children.rs` (waiting) |
//! | change what is kept of a run | `swarm/src/run/meta.rs`, `launch_plan.rs` (what its runtime gets), `options.rs` (the settings it was started with), `exit.rs`, `transcript.rs`, `output.rs`, `recorder.rs` |
//! | change how the agents end that an agent has started | `swarm/src/run/life/children.rs`, `coordinator/runs/src/run/agents.rs` (`running_children`) |
//! | change how messages reach a running agent | `swarm/src/run/life/mail.rs`, `mail_queue.rs`, `coordinator/runs/src/run/agent_mail.rs`; one that has ended: `resume.rs` |
//! | see what every runtime promises | `swarm/src/runtime/mod.rs`; the checks are in `tests/src/contract/` |
//! | change how a program is driven | its translator: `swarm/src/runtime/{claude,codex,acp}/translate.rs`; recorded lines are in `testdata/` beside it |
//! | see who reads and writes the pipes | `swarm/src/runtime/translator.rs` |
//! | add a runtime by name, or what is known of an ACP agent | `swarm/src/runtime/find.rs`, `swarm/src/runtime/acp/quirks.rs` |
//! | change where a model is found, and what providers may say | `swarm/src/provider.rs` (by its name), `swarm/src/provider/address.rs` (its address), `store/src/settings/providers.rs` (settings), `coordinator/src/agent/providers.rs` (trust, what to say) |
//! | change the prompt of a fork | `swarm/src/fork.rs` |
//! | change how tokens and their cost are counted and shown | `Usage` in `swarm/src/runtime/mod.rs`, `swarm/native/src/model/prices.rs`, `cli/src/cost.rs` (the words); the scripted model's cache: `tests/src/model/cache.rs` |
//! | change what one agent may use, or what holds it back | `swarm/src/run/meter.rs` (counting), `life/limits.rs` (what is done about it) |
//! | change what an agent definition may say | `swarm/src/definitions/read.rs`; which one counts is in `swarm/src/definitions/mod.rs` |
//! | change a built-in agent | `swarm/src/definitions/builtin/` |
//! | see which model and which tools an agent gets | `swarm/src/model.rs`, `swarm/src/tools.rs`; never more than its parent: `coordinator/src/agent/bounds.rs` |
//! | change which of a program's own tools are withheld | `swarm/src/runtime/`: `claude/arguments.rs`, `codex/options.rs`, `acp/withhold.rs`; the table is in `tests/it/withheld.rs` |
//! | change what of the environment agents see | `swarm/src/environment.rs` |
//! | see how the starter's environment reaches guard and host, and what of it is secret | `swarm/src/starter.rs`, `coordinator/runs/src/run/entry.rs` (`take_over`); how keys reach our own loop: `Keys` in `swarm/src/runtime/opening.rs` |
//! | add the shape of a secret | `swarm/src/redact/shapes.rs`; how it is found in a stream is in `swarm/src/redact/mod.rs` |
//! | change how hooks are found, run and understood | `swarm/src/hooks/config.rs`, `run.rs`, `answer.rs` |
//! | change when hooks run | an agent's: `swarm/src/run/life/hooks.rs`, `coordinator/runs/src/run/run_hooks.rs`; on tasks and worktrees: `coordinator/runs/src/hooks/` (a process of its own runs them: `coordinator/runs/src/run/late_hooks.rs`) |
//! | change an agent's permission mode while it runs | `swarm/src/run/life/mode.rs`, `Order::SetMode` in each runtime |
//! | change what needs the user's trust | `swarm/src/trust/mod.rs` |
//! | change what confined commands may write | `swarm/src/sandbox/mod.rs`, `git.rs` (which worktree), `enter.rs` (the helper), `capabilities.rs` (what root loses); who is confined: `coordinator/src/agent/sandbox.rs`; the ways out that are tried: `tests/it/native_escape.rs` |
//! | know what a runtime must do, and add one | the contract in `swarm/src/runtime/mod.rs`, its checks in `tests/src/contract/` |
//! | see how a program that speaks in lines is driven | `swarm/src/runtime/lines.rs` (its translator), `line_reader.rs`, `queue.rs` (what waits for the host) |
//! | see when the output of a program that ended is complete | `swarm/src/runtime/after_end.rs` |

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
