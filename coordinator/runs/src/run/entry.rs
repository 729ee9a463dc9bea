//! Entry points of this same program: the code of guard and host from the first instruction.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::fs::File;
use std::io;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use rustix::process::DumpableBehavior;
use store::home::Home;
use swarm::process::{has_descendants, keep, send, take_stdin};
use swarm::run::{
    By, CONFIG_HOMES, Exit, ExitReason, ExitStatus, Guard, GuardEnd, HandedRun, HostOptions,
    HostServices, Hosted, Meta, Parked, Premises, RunDir, SharedPlace, bear_mark, exit_of_dead,
    host, host_finished, host_in,
};
use swarm::runtime::{Runtime, SharedLoop};
use swarm::starter::{Environment, Starter};
use worktrees::Lease;

use super::agents::Agents;
use super::error::AgentError;
use super::finish;
use super::guards::{FREE, TAKEN};
use super::run_hooks::{self, RunHooks};
use super::services::{HeldWhileParked, RunServices};
use crate::env::OWN_PROGRAM;
use crate::identity::HOST;

/// Runs a guard of runs in the directory `runs`, one after another, until it gets no more of them.
/// Standard input leads to the process that hands runs over.
pub fn guard_main(runs: &Path) -> Result<(), AgentError> {
    let failed = |error: io::Error| AgentError::Invalid(format!("{}: {error}", runs.display()));
    close_to_others();
    let starter = take_stdin().map_err(failed)?;
    let host = || {
        let mut command = Command::new(OWN_PROGRAM);
        // The host may have exactly the part of its starter's environment that this process has.
        command.arg(HOST).arg(runs);
        command
    };
    let mut guard = Guard::begin(host).map_err(failed)?;
    while let Some(handed) = HandedRun::receive(&starter).map_err(failed)? {
        let (run, home) = open(&handed.dir)?;
        log_to(&run);
        let taken = || drop(send(&starter, TAKEN, &[]));
        match guard.watch(&run, &handed, taken)? {
            // First the word, then the lock: a process that waits for the lock can rely on the
            // word.
            GuardEnd::HostFinished => drop(send(&starter, FREE, &[])),
            GuardEnd::HostDied(exit) => {
                let meta = run.meta()?;
                let given = handed.environment().unwrap_or_else(own_environment);
                let starter = Starter::with_environment(given, Vec::new(), &meta.launch.redact_env);
                let agents = Agents::of_run(home, &meta, starter)?;
                // The signal that killed the host may have been meant for this guard: it takes no
                // more runs.
                return finish::finish(&agents, &run, &exit, None, &mut || ());
            }
        }
    }
    guard.end();
    Ok(())
}

/// Keeps other processes of the same user from reading this process's memory: it knows more than
/// its agent may.
fn close_to_others() {
    rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable).ok();
}

/// From here on standard error is the run's log.
fn log_to(run: &RunDir) {
    let log = || {
        let log = store::atomic::open_private(&run.log_path()).ok()?;
        // Guard and host both write to its end.
        rustix::fs::fcntl_setfl(&log, rustix::fs::OFlags::APPEND).ok()?;
        Some(log)
    };
    let log = log().or_else(|| File::options().write(true).open("/dev/null").ok());
    if let Some(log) = log {
        rustix::stdio::dup2_stderr(&log).ok();
    }
}

/// Is the host of runs in the directory `runs`, one after another, until its guard has no more for it.
/// Standard input leads to the guard, and so does standard output.
pub fn host_main(runs: &Path) -> Result<(), AgentError> {
    let failed = |error: io::Error| AgentError::Invalid(format!("{}: {error}", runs.display()));
    close_to_others();
    let guard = take_stdin().map_err(failed)?;
    while let Some(handed) = HandedRun::receive(&guard).map_err(failed)? {
        let (run, home) = open(&handed.dir)?;
        log_to(&run);
        bear_mark(&run);
        let given = handed.environment().unwrap_or_else(own_environment);
        supervise(&run, &home, &given, None)?;
        // The guard has the lock, too, and releases it when the word arrives.
        drop(handed);
        host_finished();
        if has_descendants() {
            // A process that cannot be killed. It must not count as a part of the next run.
            break;
        }
    }
    Ok(())
}

fn own_environment() -> Environment {
    std::env::vars_os().collect()
}

/// Starts and ends the commands of the run in `dir`, whose host is in a process with others.
pub fn keeper_main(dir: &Path) -> Result<(), AgentError> {
    close_to_others();
    let (run, _) = open(dir)?;
    run.write_keeper()?;
    let left = keep(run.id()).map_err(|error| AgentError::Invalid(error.to_string()))?;
    if !left.is_empty() {
        tracing::error!(id = run.id(), ?left, "processes of the run do not die");
    }
    Ok(())
}

/// The parts of a host that shares its process with others.
pub struct Shared<'a> {
    /// The loop its agent shares with theirs.
    pub shared_loop: &'a dyn SharedLoop,
    /// The parts of the host around the agent.
    pub premises: Premises<'a>,
    /// The resources held for its agent, if the agent slept without a host.
    pub held: Option<HeldWhileParked>,
}

impl fmt::Debug for Shared<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").finish_non_exhaustive()
    }
}

/// A run whose agent sleeps and has no host.
#[derive(Debug)]
pub struct Asleep {
    /// The data its next host needs.
    pub parked: Parked,
    /// The resources that no other process may take meanwhile.
    pub held: HeldWhileParked,
}

/// Runs the host of `run` until everything is done, or until its agent sleeps and needs no host.
/// `given` is the starter's environment.
pub fn supervise(
    run: &RunDir,
    home: &Home,
    given: &Environment,
    mut shared: Option<Shared<'_>>,
) -> Result<Option<Asleep>, AgentError> {
    let mut meta = run.meta()?;
    let mut plan = meta.launch.clone();
    let env = plan.environment(home, &meta, given.clone());
    let starter = Starter::with_environment(given.clone(), env.clone(), &plan.redact_env);
    let secrets = starter.secrets();
    let agents = Agents::of_run(home.clone(), &meta, starter)?;
    let tree = agents.make_awaited_tree(run, &mut meta);
    plan.trusted = tree.is_ok() && run_hooks::program_trusted(&agents, &meta);
    let hooks = RunHooks::new(run, &meta, &plan, given, &env);
    let options = HostOptions {
        secrets,
        limits: plan.limits(),
        ..host_options(&agents)
    };
    let mut ports = RunServices::new(agents, run.clone(), &meta).with_hooks(hooks);
    ports.stay_alive();
    let failed = |error: swarm::run::HostError| AgentError::NotStarted {
        id: meta.agent_id.clone(),
        why: error.to_string(),
    };
    let config = plan.config_home(home, &meta);
    let held = shared.as_mut().and_then(|shared| shared.held.take());
    let slept = held.is_some();
    if let Some(held) = held {
        ports.take_up(held);
    }
    let prepared = match tree {
        // Making it may have taken a while.
        Ok(Some(_)) if is_to_stop(run, &meta) => {
            let exit = exit_of_dead(run, &meta, By::Host, String::new());
            Err(Box::new(exit))
        }
        Ok(tree) => prepare(&meta, config.as_deref(), tree, &mut ports),
        Err(error) => Err(Box::new(without_tree(run, &meta, &error))),
    };
    let launched = match prepared {
        Err(exit) => Err(exit),
        Ok(()) => {
            let failed = |why| Box::new(finish::failed_to_launch(&meta, ExitStatus::Failed, why));
            let runtime: Result<Box<dyn Runtime>, _> = match &shared {
                Some(shared) => {
                    let known = shared.premises.parked.as_ref().map(Parked::known);
                    let max_bytes = meta.options.mate_max_bytes;
                    Ok(shared.shared_loop.runtime(max_bytes, known))
                }
                None => meta.runtime.find(path_of(&env)),
            };
            let runtime = runtime.map_err(|error| failed(error.to_string()));
            let prompt = run.prompt().map_err(|error| failed(error.to_string()));
            runtime.and_then(|runtime| Ok((runtime, plan.launch(&meta, prompt?, env))))
        }
    };
    match launched {
        Ok((runtime, launch)) => {
            if !slept {
                ports.look_before(runtime.abilities().read_only);
            }
            let hosted = match shared {
                Some(Shared { premises, .. }) => {
                    host_in(run, &*runtime, launch, &mut ports, &options, premises)
                }
                None => {
                    let hosted = host(run, &*runtime, launch, &mut ports, &options);
                    hosted.map(|()| Hosted::Finished)
                }
            };
            Ok(match hosted.map_err(failed)? {
                Hosted::Finished => None,
                Hosted::Parked(parked) => Some(Asleep {
                    parked: *parked,
                    held: ports.let_go(),
                }),
            })
        }
        Err(exit) => {
            ports
                .finish(&exit, &mut || ())
                .map_err(|error| failed(error.into()))?;
            Ok(None)
        }
    }
}

/// The options of the hosts of this team's agents.
fn host_options(agents: &Agents) -> HostOptions {
    let usual = HostOptions::default();
    // A host that is cut off has ended before its lease has.
    let (grace, look_every) = match agents.shared().map(SharedPlace::lease) {
        Some(lease) => (
            agents.grace().min(lease / 6),
            usual.look_every.min(lease / 12),
        ),
        None => (agents.grace(), usual.look_every),
    };
    HostOptions {
        grace,
        look_every,
        output_limit: agents.options.output_max_bytes,
        give_up: agents.options.fleet.give_up(),
        blocked_after: Duration::from_millis(agents.options.mate_blocked_ms),
        ..usual
    }
}

/// Prepares everything that must exist before the agent starts. A failure here does not count
/// against the agent, which has not run yet.
fn prepare(
    meta: &Meta,
    config: Option<&Path>,
    tree: Option<Lease>,
    ports: &mut RunServices,
) -> Result<(), Box<Exit>> {
    let lost = |why| Box::new(finish::failed_to_launch(meta, ExitStatus::Lost, why));
    if let Some(config) = config {
        for name in CONFIG_HOMES {
            let dir = config.join(name.to_lowercase());
            store::home::create_private_dir(&dir).map_err(|error| lost(error.to_string()))?;
        }
    }
    if let Some(tmp) = &meta.tmp {
        store::home::create_private_dir(tmp).map_err(|error| lost(error.to_string()))?;
    }
    let held = ports.hold_tree(meta, tree);
    held.map_err(|error| lost(error.to_string()))?;
    if !meta.cwd.is_dir() {
        let dir = meta.cwd.display();
        return Err(lost(format!("{dir}: there is no such directory")));
    }
    Ok(())
}

fn is_to_stop(run: &RunDir, meta: &Meta) -> bool {
    let stop = run.stop_request(meta.life);
    stop.is_ok_and(|stop| stop.is_some())
}

/// The end of a run whose worktree could not be made. A request to end the run becomes the reason.
fn without_tree(run: &RunDir, meta: &Meta, error: &AgentError) -> Exit {
    let why = error.to_string();
    let status = match error.is_passing() {
        true => ExitStatus::Lost,
        // The error is about the task, not about ccb.
        false => ExitStatus::Failed,
    };
    if status == ExitStatus::Lost && is_to_stop(run, meta) {
        return exit_of_dead(run, meta, By::Host, why);
    }
    Exit {
        reason: error.is_broken().then_some(ExitReason::Broken),
        ..finish::failed_to_launch(meta, status, why)
    }
}

/// The directories in which an agent with this environment finds programs.
fn path_of(env: &[(OsString, OsString)]) -> &OsStr {
    let path = env.iter().find(|(name, _)| name == "PATH");
    path.map_or(OsStr::new(""), |(_, path)| path.as_os_str())
}

/// The run in this directory, and the home it is in.
pub fn open(dir: &Path) -> Result<(RunDir, Home), AgentError> {
    let not_a_run = || AgentError::Invalid(format!("{}: not a run's directory", dir.display()));
    let run = RunDir::at(dir).ok_or_else(not_a_run)?;
    // <home>/teams/<team>/runs/<id>
    let home = dir.ancestors().nth(4).ok_or_else(not_a_run)?;
    let home = Home::new(home.to_owned())?;
    Ok((run, home))
}

/// Maximum time between a run's end and its finish, for processes that wait for the finish.
pub(super) const FINISHING: Duration = Duration::from_secs(60);
