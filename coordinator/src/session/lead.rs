//! The lead, if it is an agent: started once, resumed with its conversation, never twice.

use crate::agent::{self, Role, Wish, definitions};
use director::DirectorEvent;
use landing::is_workers;
use mailbox::{Body, Draft};
use project::workplace::Workplace;
use runs::Agents;
use store::Failure;
use store::agent_id::LEAD;
use store::name::Name;
use swarm::run::{Entry, ExitStatus, Meta, RunState};

use super::{Session, coordinator_prompt};

/// The prompt of a lead about its role.
const PROMPT: &str = include_str!("lead.md");

/// Maximum number of consecutive restarts of a coordinator that died.
const REVIVALS: usize = 5;

/// Maximum bytes of a failed lead's output that are shown.
const LAST_WORDS: u64 = 1_000;

/// The agent that leads.
#[derive(Debug)]
pub(super) struct Lead {
    id: String,
    workplace: Workplace,
    /// Number of consecutive restarts; `None` if it is not restarted.
    revived: Option<usize>,
    /// The lead reads its own mail; this is its position.
    inbox: Option<std::sync::Arc<mailbox::Inbox>>,
    /// The position up to which its transcript was read.
    heard: u64,
}

impl Lead {
    /// Finds the running lead, resumes it, or starts it.
    pub(super) fn start(session: &Session) -> Result<Self, Failure> {
        let workplace = &session.workplace;
        let agents = workplace.agents()?;
        agents.reconcile()?;
        // It may have started since the session was read.
        let file = session.file();
        let known = file.session()?.and_then(|now| now.lead_run);
        let lead = store::agent_id::AgentId::parse(known.as_deref().unwrap_or_default())
            .and_then(|id| agents.run(id.as_str()).meta().ok());
        // Its messages from before this session resumed were shown then.
        let heard = match &lead {
            Some(meta) => swarm::run::read_transcript(&agents.run(&meta.agent_id), 0)?.1,
            None => 0,
        };
        let id = match lead {
            Some(meta) if agents.is_alive(&meta)? => meta.agent_id,
            Some(meta) => go_on(session, &agents, &meta)?,
            None => begin(session, &agents)?,
        };
        let name = Name::new("agent", LEAD)?;
        let inbox = workplace.mailbox()?.inbox(&name).ok();
        Ok(Self {
            id,
            workplace: workplace.clone(),
            revived: session.record.has_coordinator().then_some(0),
            inbox,
            heard,
        })
    }

    /// Its messages since the last call.
    pub(super) fn says(&mut self, agents: &Agents) -> Vec<String> {
        let read = swarm::run::read_transcript(&agents.run(&self.id), self.heard);
        let Ok((records, heard)) = read else {
            return Vec::new();
        };
        self.heard = heard;
        let texts = records.into_iter().filter_map(|record| match record.entry {
            Entry::Text { text } if !text.trim().is_empty() => Some(text),
            _ => None,
        });
        texts.collect()
    }

    /// True if its turn is not over, or if mail waits for it.
    pub(super) fn is_busy(&mut self, agents: &Agents) -> bool {
        let run = agents.run(&self.id);
        let Ok(meta) = run.meta() else {
            return false;
        };
        if meta.state.is_terminal() || !run.is_alive().unwrap_or(false) {
            // The first process that notices its end settles it.
            self.workplace.settle_dead_runs();
            return self.revive(agents);
        }
        if meta.state == RunState::Idle && self.revived.is_some() {
            self.revived = Some(0);
        }
        let waiting = self.inbox.as_ref().is_some_and(|inbox| {
            inbox
                .list(false)
                .is_ok_and(|listing| !listing.messages.is_empty())
        });
        meta.state != RunState::Idle || waiting
    }

    /// Resumes a coordinator that died: no other agent knows its intentions.
    fn revive(&mut self, agents: &Agents) -> bool {
        let run = agents.run(&self.id);
        let Some((meta, times)) = run.meta().ok().zip(self.revived) else {
            return false;
        };
        let died = match run.exit(meta.life) {
            Ok(Some(exit)) => matches!(exit.status, ExitStatus::Failed | ExitStatus::Lost),
            _ => false,
        };
        if !died || times >= REVIVALS {
            return false;
        }
        self.revived = Some(times + 1);
        let text = "You were interrupted. Look at the board and at your mail before you go on: \
                    what you started may have ended meanwhile.";
        let resumed = Name::new("agent", "user")
            .map_err(Failure::from)
            .and_then(|user| Ok(agents.leave_message(&meta, &user, text.into())?))
            .and_then(|_| Ok(agents.resume(&run, true)?));
        match resumed {
            Ok(_) => true,
            Err(error) => {
                tracing::warn!(
                    error = error.message(),
                    "the coordinator does not come back"
                );
                false
            }
        }
    }
}

/// Tells the lead about landings that failed, which only the engine knows.
pub(super) fn told(session: &Session, event: &DirectorEvent) {
    let DirectorEvent::NotLanded {
        task,
        files,
        why,
        became,
        ..
    } = event
    else {
        return;
    };
    if session.record.lead.is_none() || !session.record.has_coordinator() {
        return;
    }
    let subject = session.workplace.board().get(*task);
    let what = match &subject {
        Ok(task) if is_workers(task) => match worker_of(task) {
            Some(agent) => format!("What worker {agent} did ({})", task.subject),
            None => format!("What a worker did ({})", task.subject),
        },
        Ok(task) => format!("Task #{} ({})", task.id, task.subject),
        Err(_) => format!("Task #{task}"),
    };
    let files = match files.is_empty() {
        true => String::new(),
        false => format!(" Files: {}.", files.join(", ")),
    };
    let next = match became {
        Some(id) => format!(" Task #{id} is to bring both together."),
        None => " It is kept in its tree; what is to become of it is for you to say.".to_owned(),
    };
    let text = format!("{what} did not land: {why}.{files}{next}");
    if let Err(error) = tell(session, text) {
        tracing::warn!(error = error.message(), "the lead is not told");
    }
}

/// The agent that did a worker's task.
fn worker_of(task: &taskboard::Task) -> Option<String> {
    let tree = task.result()?.worktree?;
    Some(tree.strip_prefix("agent-")?.to_owned())
}

fn tell(session: &Session, text: String) -> Result<(), Failure> {
    let (from, to) = (Name::new("agent", "engine")?, Name::new("agent", LEAD)?);
    let draft = Draft {
        summary: Some("finished work did not land".into()),
        ..Draft::new(from, to, Body::Text(text))
    };
    session.workplace.mailbox()?.send(&draft)?;
    Ok(())
}

/// The lead's last message, and its error if it failed.
pub(super) fn account(session: &Session, agents: &Agents) -> (Option<String>, Option<String>) {
    let known = session.file().session().ok().flatten();
    let id = known.and_then(|now| now.lead_run);
    let Some(id) = id.filter(|_| session.record.lead.is_some()) else {
        return (None, None);
    };
    let run = agents.run(&id);
    let Some(exit) = run.meta().ok().and_then(|meta| run.exit(meta.life).ok()?) else {
        return (None, None);
    };
    let failed = matches!(exit.status, ExitStatus::Failed | ExitStatus::Lost);
    let failure = failed.then(|| {
        let mut words = exit.error.clone().unwrap_or_else(|| "it failed".into());
        let printed = swarm::run::tail_of_output(&run, LAST_WORDS).unwrap_or_default();
        if !printed.trim().is_empty() {
            words.push_str(&format!("\n{}", printed.trim_end()));
        }
        words
    });
    let said = exit.result.filter(|text| !text.trim().is_empty());
    (said, failure)
}

/// Starts a lead with the whole prompt of the session.
fn begin(session: &Session, agents: &Agents) -> Result<String, Failure> {
    let workplace = &session.workplace;
    let wish = Wish {
        prompt: session.record.prompt.clone().or_else(|| {
            let text = "Look at the task board and see that what is on it gets done.";
            Some(text.into())
        }),
        description: Some(format!("leads team {}", session.team)),
        runtime: session.record.lead.clone(),
        name: Some(LEAD.into()),
        teammate: true,
        role: match session.record.has_coordinator() {
            true => Role::Coordinator,
            false => Role::Lead,
        },
        background: true,
        ..Wish::default()
    };
    let mut spawn = agent::describe(&wish, &definitions::load(None, workplace)?, workplace)?;
    spawn.plan.system_prompt = Some(match session.record.has_coordinator() {
        true => coordinator_prompt::text(session, &spawn.runtime)?,
        false => PROMPT.replace("{mates}", &session.record.mates.to_string()),
    });
    let launched = agents.spawn(&spawn)?;
    let mut record = session.record.clone();
    record.lead_run = Some(launched.meta.agent_id.clone());
    session.file().put_session(&record)?;
    Ok(launched.meta.agent_id)
}

/// Resumes a lead that has ended, with its conversation.
fn go_on(session: &Session, agents: &Agents, meta: &Meta) -> Result<String, Failure> {
    let user = Name::new("agent", "user")?;
    let text = match &session.record.prompt {
        Some(prompt) => format!(
            "The session goes on. Look at the board: what was under way when it stopped is free \
             again. It is still about this:\n\n{prompt}"
        ),
        None => "The session goes on. Look at the board.".into(),
    };
    agents.leave_message(meta, &user, text)?;
    agents.resume(&agents.run(&meta.agent_id), true)?;
    Ok(meta.agent_id.clone())
}
