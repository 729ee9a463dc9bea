//! The agents that ccb runs for another agent or a client.

use std::time::{Duration, Instant};

use project::workplace::Workplace;
use runs::{Launched, Listed, Outcome, Spawn};
use store::Failure;
use store::agent_id::AgentId;
use swarm::run::{Entry, tail_of_output};
use swarm::tools::SHELL;

use super::describe::{Wish, describe};
use super::service::{
    AgentOutput, AgentResult, AgentService, AgentUsage, Messaged, Progress, Receipt, Spawned, Wait,
};
use super::workers::Workers;
use super::{Role, bounds, definitions};
use crate::actions::mail::Letter;

/// Interval at which a wait checks that the caller still waits.
const SLICE: Duration = Duration::from_millis(200);
/// Maximum bytes of the output of an agent that has not ended.
const SO_FAR: u64 = 16 << 10;
/// The agent type of a request that names none.
const USUAL_TYPE: &str = "general-purpose";
/// Agent types with a single answer, which get no messages afterwards.
const ONE_SHOT: [&str; 2] = ["Explore", "Plan"];

/// Runs agents for a caller with this role.
#[derive(Debug)]
pub struct OwnAgents {
    role: Role,
    workers: Workers,
}

impl OwnAgents {
    /// Serves a caller with this role in its team.
    pub fn new(role: Role) -> Self {
        Self {
            role,
            workers: Workers::default(),
        }
    }

    /// True if the caller has a tool to read a file with.
    fn reads_files(&self, workplace: &Workplace) -> Result<bool, Failure> {
        if self.role == Role::Coordinator {
            return Ok(false);
        }
        let Some(run) = workplace.run() else {
            return Ok(true);
        };
        let filter = workplace.agents()?.run(run).meta()?.launch.filter();
        Ok(filter.permits("Read") || filter.permits(SHELL))
    }
}

impl AgentService for OwnAgents {
    fn spawn(&self, wish: &Wish, workplace: &Workplace, wait: &Wait) -> Result<Spawned, Failure> {
        let agents = workplace.agents()?;
        if self.role == Role::Coordinator {
            return self.workers.spawn(wish, workplace, &agents);
        }
        let note = match &wish.agent_type {
            Some(_) => None,
            None if wish.fork.is_some() => Some("It is a copy of you.".to_owned()),
            None => Some(format!("Its type is {USUAL_TYPE}.")),
        };
        let spawn = asked_by_caller(wish, workplace)?;
        let note = match (note, bounds::warning(&spawn)) {
            (Some(note), Some(warning)) => Some(format!("{note} {warning}")),
            (note, warning) => note.or(warning),
        };
        let background = spawn.background;
        let launched = agents.spawn(&spawn)?;
        if background {
            let result = under_way(&launched, self.reads_files(workplace)?);
            return Ok(Spawned::new(result, note));
        }
        let started = Instant::now();
        let mut heard = 0;
        loop {
            let step = last_step(&launched, &mut heard);
            if let Some((steps, tool)) = step {
                let seconds = started.elapsed().as_secs();
                let words = format!("{}: {tool} ({seconds} s)", launched.meta.description);
                wait.report(Progress { steps, words });
            }
            if let Some(outcome) = agents.wait(&launched, SLICE)? {
                let result = completed(&outcome);
                // If the result does not arrive, its parent is notified in another way.
                let receipt = move || {
                    if let Err(error) = agents.delivered(&launched) {
                        tracing::warn!(%error, "a result that arrived is told again");
                    }
                };
                return Ok(Spawned {
                    result,
                    note,
                    receipt: Some(Box::new(receipt)),
                });
            }
            let long = workplace.agent_settings().auto_background;
            if wait.is_over() || started.elapsed() >= long {
                let result = under_way(&launched, self.reads_files(workplace)?);
                return Ok(match agents.to_background(launched)? {
                    Some(outcome) => Spawned::new(completed(&outcome), note),
                    None => Spawned::new(result, Some("It takes long.".into())),
                });
            }
        }
    }

    fn stop(&self, id: &str, workplace: &Workplace) -> Result<AgentOutput, Failure> {
        let agents = workplace.agents()?;
        let meta = agents.find(id)?;
        let outcome = agents.stop(&meta, workplace.agent(), None, None)?;
        Ok(ended(&outcome))
    }

    fn output(
        &self,
        id: &str,
        block: bool,
        timeout: Duration,
        workplace: &Workplace,
        wait: &Wait,
    ) -> Result<(AgentOutput, Option<Receipt>), Failure> {
        let agents = workplace.agents()?;
        let meta = agents.find(id)?;
        let run = agents.run(&meta.agent_id);
        let started = Instant::now();
        while block && !wait.is_over() && run.is_alive()? {
            let left = timeout.saturating_sub(started.elapsed());
            if left.is_zero() || run.wait_exit(meta.life, left.min(SLICE))?.is_some() {
                break;
            }
        }
        if let Some(output) = agents.output(&meta, workplace.agent(), Duration::ZERO)? {
            let said = ended(&output.outcome);
            // If the answer does not arrive, its parent is notified in another way.
            let receipt = move || {
                if let Err(error) = output.passed_on() {
                    tracing::warn!(%error, "a result that arrived is told again");
                }
            };
            return Ok((said, Some(Box::new(receipt))));
        }
        let so_far = AgentOutput {
            status: run.meta()?.state.as_str().to_owned(),
            description: meta.description,
            output: tail_of_output(&run, SO_FAR)?,
            ended: false,
        };
        Ok((so_far, None))
    }

    fn message(&self, letter: &Letter, workplace: &Workplace) -> Result<Option<Messaged>, Failure> {
        let agents = workplace.agents()?;
        let Some(meta) = agents.addressed(&letter.to)? else {
            return Ok(None);
        };
        if self.role == Role::Coordinator {
            self.workers
                .may_go_on(&meta, &letter.text, workplace, &agents)?;
        }
        let (from, text) = (workplace.agent_name(), letter.text.clone());
        let priority = letter.priority.unwrap_or_default();
        let sent = agents.send(&meta, from, text, letter.summary.clone(), priority)?;
        Ok(Some(Messaged {
            to: sent.meta.address().to_owned(),
            posted: sent.posted,
            priority,
            resumed: sent.resumed,
        }))
    }

    fn agents(&self, workplace: &Workplace) -> Result<Vec<Listed>, Failure> {
        let (mut listed, _) = workplace.agents()?.list()?;
        if self.role == Role::Teammate {
            listed.retain(|listed| listed.meta.parent == workplace.agent());
        }
        Ok(listed)
    }
}

/// The number of tool calls of an agent and its present activity, if that changed. `heard` is the
/// position up to which its transcript was read.
fn last_step(launched: &Launched, heard: &mut u64) -> Option<(u64, String)> {
    let (records, end) = swarm::run::read_transcript(&launched.run, *heard).ok()?;
    *heard = end;
    let last = records
        .into_iter()
        .rev()
        .find_map(|record| match record.entry {
            Entry::ToolUse { name, .. } => Some(name),
            Entry::Text { .. } => Some("thinking".to_owned()),
            _ => None,
        })?;
    Some((launched.run.meta().ok()?.usage.tool_uses, last))
}

/// Makes the request for the engine. The caller is notified of the end, also if it is no agent of
/// ccb's.
pub(super) fn asked_by_caller(wish: &Wish, workplace: &Workplace) -> Result<Spawn, Failure> {
    let definitions = definitions::load(None, workplace)?;
    let spawn = describe(wish, &definitions, workplace)?;
    Ok(Spawn {
        id: None,
        parent: workplace.agent_name().clone(),
        ..spawn
    })
}

pub(super) fn under_way(launched: &Launched, can_read_output_file: bool) -> AgentResult {
    let meta = &launched.meta;
    if meta.teammate {
        return AgentResult::TeammateSpawned {
            teammate_id: AgentId::member(meta.address(), &meta.team).to_string(),
            name: meta.address().to_owned(),
            team_name: meta.team.clone(),
        };
    }
    AgentResult::AsyncLaunched {
        agent_id: meta.agent_id.clone(),
        description: meta.description.clone(),
        output_file: launched.run.output_path().to_string_lossy().into_owned(),
        can_read_output_file,
    }
}

fn completed(outcome: &Outcome) -> AgentResult {
    let Outcome { meta, exit } = outcome;
    let tree = meta.worktree.as_ref().filter(|tree| tree.is_kept());
    // An agent with a worktree has left work that a message can refer to.
    let one_shot = ONE_SHOT.contains(&meta.agent_type.as_str()) && tree.is_none();
    AgentResult::Completed {
        status: exit.status.as_str(),
        content: exit.text(),
        agent_id: (!one_shot).then(|| meta.agent_id.clone()),
        usage: (!one_shot).then(|| AgentUsage {
            total_tokens: exit.usage.total_tokens(),
            tool_uses: exit.usage.tool_uses,
            duration_ms: exit.duration_ms,
        }),
        worktree: tree.map(|tree| (tree.path.clone(), tree.branch.clone())),
    }
}

fn ended(outcome: &Outcome) -> AgentOutput {
    AgentOutput {
        status: outcome.exit.status.as_str().to_owned(),
        description: outcome.meta.description.clone(),
        output: outcome.exit.text(),
        ended: true,
    }
}
