//! What guard and host do from their first instruction: entry points of this same program.

use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::process::DumpableBehavior;
use store::home::Home;
use swarm::environment::for_supervisors;
use swarm::native::{SharedNative, Together};
use swarm::process::keep;
use swarm::run::{
    By, CONFIG_HOMES, Exit, ExitReason, ExitStatus, GuardEnd, HostOptions, HostServices, Hosted,
    Meta, Parked, Premises, RunDir, SharedPlace, exit_of_dead, guard, host, host_in,
};
use swarm::runtime::Runtime;
use swarm::starter::{self, Environment, Starter};
use worktrees::Lease;

use super::agents::Agents;
use super::error::AgentError;
use super::finish;
use super::run_hooks::{self, RunHooks};
use super::services::{HeldWhileParked, RunServices};
use super::start::HOST;
use crate::env::OWN_PROGRAM;

/// Runs the guard of the run in `dir` to its end.
pub fn guard_main(dir: &Path) -> Result<(), AgentError> {
    let (run, home) = open(dir)?;
    let given = take_over(&run);
    let handed = starter::hand_over(&given).map_err(|error| AgentError::NotStarted {
        id: run.id().to_owned(),
        why: error.to_string(),
    })?;
    let mut command = Command::new(OWN_PROGRAM);
    command
        .arg(HOST)
        .arg(dir)
        .stderr(Stdio::from(handed))
        .env_clear()
        .envs(for_supervisors(given.clone()));
    match guard(&run, command)? {
        GuardEnd::HostFinished => Ok(()),
        GuardEnd::HostDied(exit) => {
            let meta = run.meta()?;
            let named = &meta.launch.redact_env;
            let starter = Starter::with_environment(given, Vec::new(), named);
            let agents = Agents::of_run(home, &meta, starter)?;
            finish::finish(&agents, &run, &exit, None, &mut || ())
        }
    }
}

/// The environment of whoever started the run, which comes by a way of its own; from here on
/// standard error is the run's log. Others of the same user cannot look into this process: what
/// it knows is more than its agent may.
fn take_over(run: &RunDir) -> Environment {
    rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable).ok();
    let log = || {
        let log = store::atomic::open_private(&run.log_path()).ok()?;
        // Guard and host both write to its end.
        rustix::fs::fcntl_setfl(&log, rustix::fs::OFlags::APPEND).ok()?;
        Some(log)
    };
    starter::take_over(log).unwrap_or_else(|| std::env::vars_os().collect())
}

/// Runs the host of the run in `dir` to its end.
pub fn host_main(dir: &Path) -> Result<(), AgentError> {
    let (run, home) = open(dir)?;
    let given = take_over(&run);
    supervise(&run, &home, &given, None).map(drop)
}

/// Starts and ends the commands of the run in `dir`, whose host is in a process with others.
pub fn keeper_main(dir: &Path) -> Result<(), AgentError> {
    rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable).ok();
    let (run, _) = open(dir)?;
    run.write_keeper()?;
    let left = keep(run.id()).map_err(|error| AgentError::Invalid(error.to_string()))?;
    if !left.is_empty() {
        tracing::error!(id = run.id(), ?left, "processes of the run do not die");
    }
    Ok(())
}

/// What a host has that shares its process with others.
pub(super) struct Shared<'a> {
    /// What its agent shares with theirs.
    pub(super) together: &'a Together,
    /// Where it is.
    pub(super) premises: Premises<'a>,
    /// What is held for its agent, if that has slept without a host.
    pub(super) held: Option<HeldWhileParked>,
}

/// A run whose agent sleeps and has no host.
#[derive(Debug)]
pub(super) struct Asleep {
    /// What its next host has to know.
    pub(super) parked: Parked,
    /// What nobody else may have meanwhile.
    pub(super) held: HeldWhileParked,
}

/// Is the host of `run` until everything is done, or until its agent sleeps and can do without one.
/// `given` is the environment of whoever started it.
pub(super) fn supervise(
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
                    let together = shared.together.with_limit(meta.options.mate_max_bytes);
                    let known = shared.premises.parked.as_ref().map(Parked::known);
                    Ok(Box::new(SharedNative::new(together).knowing(known)) as _)
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

/// How the hosts of this team's agents behave.
fn host_options(agents: &Agents) -> HostOptions {
    let usual = HostOptions::default();
    // One that is cut off has ended before its lease has.
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

/// What has to be there before the agent starts. What is missing is no fault of the agent's, which has
/// not been there.
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

/// The end of a run whose tree could not be made. Whoever wanted it to end has that as the reason.
fn without_tree(run: &RunDir, meta: &Meta, error: &AgentError) -> Exit {
    let why = error.to_string();
    let status = match error.is_passing() {
        true => ExitStatus::Lost,
        // That is about the task, not about us.
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

/// Where an agent with this environment finds programs.
fn path_of(env: &[(OsString, OsString)]) -> &OsStr {
    let path = env.iter().find(|(name, _)| name == "PATH");
    path.map_or(OsStr::new(""), |(_, path)| path.as_os_str())
}

pub(super) fn open(dir: &Path) -> Result<(RunDir, Home), AgentError> {
    let not_a_run = || AgentError::Invalid(format!("{}: not a run's directory", dir.display()));
    let run = RunDir::at(dir).ok_or_else(not_a_run)?;
    // <home>/teams/<team>/runs/<id>
    let home = dir.ancestors().nth(4).ok_or_else(not_a_run)?;
    let home = Home::new(home.to_owned())?;
    Ok((run, home))
}

/// How long a run may go without finishing after it ended, for those who wait for that.
pub(super) const FINISHING: Duration = Duration::from_secs(60);
