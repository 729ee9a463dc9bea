//! What guard and host do from their first instruction: entry points of this same program.

use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use store::home::Home;
use swarm::redact::{Secrets, secret_values};
use swarm::run::{GuardEnd, HostOptions, Meta, Ports, RunDir, guard, host};

use super::engine::Agents;
use super::error::AgentError;
use super::finish;
use super::launch::{CONFIG_HOMES, LaunchPlan};
use super::ports::EnginePorts;
use super::run_hooks::{self, RunHooks};
use super::start::OWN_PROGRAM;

/// Runs the guard of the run in `dir` to its end.
pub fn guard_main(dir: &Path) -> Result<(), AgentError> {
    let (run, home) = open(dir)?;
    let mut command = Command::new(OWN_PROGRAM);
    command.arg("__host").arg(dir);
    match guard(&run, command)? {
        GuardEnd::HostFinished => Ok(()),
        GuardEnd::HostDied(exit) => {
            let agents = Agents::of_run(home, &run.meta()?)?;
            finish::finish(&agents, &run, &exit, None, &mut || ())
        }
    }
}

/// Runs the host of the run in `dir` to its end. `env` is this process's environment.
pub fn host_main(dir: &Path, env: Vec<(OsString, OsString)>) -> Result<(), AgentError> {
    let (run, home) = open(dir)?;
    let meta = run.meta()?;
    let agents = Agents::of_run(home.clone(), &meta)?;
    let mut plan = LaunchPlan::of(&meta);
    plan.trusted = run_hooks::program_trusted(&agents, &meta);
    let given = env.clone();
    let env = plan.environment(&home, &meta, env);
    let hooks = RunHooks::new(&run, &meta, &plan, &given, &env);
    let options = HostOptions {
        grace: agents.grace(),
        output_limit: agents.options.output_max_bytes,
        secrets: Arc::new(secrets(&env, &plan)),
        limits: plan.limits(),
        give_up: agents.options.fleet.give_up(),
        ..HostOptions::default()
    };
    let mut ports = EnginePorts::new(agents, run.clone(), &meta).with_hooks(hooks);
    let failed = |error: swarm::run::HostError| AgentError::NotStarted {
        id: meta.agent_id.clone(),
        why: error.to_string(),
    };
    let config = plan.config_home(&home, &meta);
    let prepared = prepare(&meta, config.as_deref(), &mut ports);
    let launched = prepared.and_then(|()| {
        let runtime = meta
            .runtime
            .find(path_of(&env))
            .map_err(|error| error.to_string())?;
        let launch = plan.launch(&meta, run.prompt().map_err(|e| e.to_string())?, env);
        Ok((runtime, launch))
    });
    match launched {
        Ok((runtime, launch)) => {
            host(&run, &*runtime, launch, &mut ports, &options).map_err(failed)
        }
        Err(why) => {
            let exit = finish::failed_to_launch(&meta, why);
            ports
                .finish(&exit, &mut || ())
                .map_err(|error| failed(error.into()))
        }
    }
}

/// What must not be written down: the agent's keys, but not what we told it about itself.
fn secrets(env: &[(OsString, OsString)], plan: &LaunchPlan) -> Secrets {
    let ours = |name: &OsString| name.to_string_lossy().starts_with("CCB_");
    let theirs = env.iter().filter(|(name, _)| !ours(name)).cloned();
    Secrets::new(secret_values(theirs, &plan.redact_env))
}

/// What has to be there before the agent starts.
fn prepare(meta: &Meta, config: Option<&Path>, ports: &mut EnginePorts) -> Result<(), String> {
    if let Some(config) = config {
        for name in CONFIG_HOMES {
            let dir = config.join(name.to_lowercase());
            store::home::create_private_dir(&dir).map_err(|error| error.to_string())?;
        }
    }
    if let Some(tmp) = &meta.tmp {
        store::home::create_private_dir(tmp).map_err(|error| error.to_string())?;
    }
    ports.hold_tree(meta).map_err(|error| error.to_string())?;
    if !meta.cwd.is_dir() {
        return Err(format!(
            "{}: there is no such directory",
            meta.cwd.display()
        ));
    }
    Ok(())
}

/// Where an agent with this environment finds programs.
fn path_of(env: &[(OsString, OsString)]) -> &OsStr {
    let path = env.iter().find(|(name, _)| name == "PATH");
    path.map_or(OsStr::new(""), |(_, path)| path.as_os_str())
}

fn open(dir: &Path) -> Result<(RunDir, Home), AgentError> {
    let not_a_run = || AgentError::Invalid(format!("{}: not a run's directory", dir.display()));
    let run = RunDir::at(dir).ok_or_else(not_a_run)?;
    // <home>/teams/<team>/runs/<id>
    let home = dir.ancestors().nth(4).ok_or_else(not_a_run)?;
    let home = Home::new(home.to_owned())?;
    Ok((run, home))
}

/// How long a run may go without finishing after it ended, for those who wait for that.
pub(super) const FINISHING: Duration = Duration::from_secs(60);
