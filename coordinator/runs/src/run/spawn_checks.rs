//! Checks before an agent is started.

use store::agent_id::{AgentId, LEAD};
use store::name::Name;
use swarm::run::{RunDir, RunError};

use super::agents::Agents;
use super::error::AgentError;
use super::spawn::{Spawn, WorksIn};

/// Senders in a team that are no agents: the person, and ccb itself.
const NOT_AGENTS: [&str; 2] = ["user", "engine"];
/// The longest prompt.
const MAX_PROMPT: usize = 8 * 1024 * 1024;

impl Agents {
    /// Refuses a worker, and an agent whose definition forbids it, that asks to start an agent by
    /// ccb's tool or command.
    pub(super) fn check_caller(&self) -> Result<(), AgentError> {
        let own = self.at.own_run.as_deref().and_then(AgentId::parse);
        let meta = match own.map(|id| self.run(id.as_str()).meta()) {
            None | Some(Err(RunError::NotFound { .. })) => return Ok(()),
            Some(meta) => meta?,
        };
        if meta.launch.worker {
            return Err(AgentError::Worker { id: meta.agent_id });
        }
        match meta.launch.filter().permits_own("Agent") {
            true => Ok(()),
            false => Err(AgentError::NoAgent { id: meta.agent_id }),
        }
    }

    /// The runs that have a supervisor. Finishes runs without one on the way.
    pub(super) fn running(&self) -> Result<Vec<RunDir>, AgentError> {
        let mut running = Vec::new();
        for id in swarm::run::active(&self.runs)? {
            let run = self.run(&id);
            if run.is_alive()? || self.at.own_run.as_ref() == Some(&id) {
                running.push(run);
            } else {
                self.reconcile_one(&run)?;
            }
        }
        Ok(running)
    }

    /// Checks that at most the allowed number of agents runs.
    pub(super) fn check_number(&self, running: usize) -> Result<(), AgentError> {
        match self.options.max_agents {
            Some(most) if running >= most => Err(AgentError::TooMany { running, most }),
            _ => Ok(()),
        }
    }
}

/// A name stands for one agent that runs.
pub(super) fn check_name(name: &Name, lead: bool, running: &[RunDir]) -> Result<(), AgentError> {
    if name.as_str().eq_ignore_ascii_case(LEAD) && !lead {
        let why = format!("{LEAD:?} is the name of every team's lead; choose another");
        return Err(AgentError::Invalid(why));
    }
    let reserved = |other: &&&str| name.as_str().eq_ignore_ascii_case(other);
    if let Some(reserved) = NOT_AGENTS.iter().find(reserved) {
        let why = format!("{reserved:?} is not the name of an agent; choose another");
        return Err(AgentError::Invalid(why));
    }
    for run in running {
        if run.is_named(name.as_str())? && run.is_alive()? {
            return Err(AgentError::NameTaken {
                name: name.to_string(),
                by: run.id().to_owned(),
            });
        }
    }
    Ok(())
}

/// Checks the request itself, without regard to other agents.
pub(super) fn check(spawn: &Spawn) -> Result<(), AgentError> {
    let invalid = |why: &str| Err(AgentError::Invalid(why.into()));
    if spawn.prompt.trim().is_empty() {
        return invalid("the prompt is empty");
    }
    if spawn.prompt.len() > MAX_PROMPT {
        return invalid("the prompt is longer than 8 MiB; put it into a file and name the file");
    }
    if spawn.prompt.contains('\0') {
        return invalid("the prompt contains a NUL byte, which no program can be given");
    }
    if spawn.teammate && spawn.name.is_none() {
        return invalid("a teammate needs a name");
    }
    if spawn.plan_mode && !spawn.teammate {
        return invalid("only a teammate can be started in plan mode");
    }
    if let WorksIn::Directory(dir) = &spawn.isolation
        && !dir.is_dir()
    {
        let why = format!("{}: there is no such directory", dir.display());
        return Err(AgentError::Invalid(why));
    }
    Ok(())
}
