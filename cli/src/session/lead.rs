//! The lead, where it is an agent: started once, resumed with its conversation, never twice.

use coordinator::SessionFile;
use coordinator::run::Agents;
use swarm::LEAD;
use swarm::run::{Meta, State};

use super::Session;
use crate::commands::agent::definitions;
use crate::context::Context;
use crate::error::CommandError;
use crate::mcp::Role;
use crate::spawning::{self, Wish};

/// What a lead is told about its part.
const PROMPT: &str = include_str!("lead.md");

/// The agent that leads.
#[derive(Debug)]
pub(super) struct Lead {
    id: String,
    context: Context,
    /// Its mail is read by itself; this is how far it has got.
    inbox: Option<std::sync::Arc<mailbox::Inbox>>,
}

impl Lead {
    /// Finds the lead at work, lets it go on, or starts it.
    pub(super) fn start(session: &Session) -> Result<Self, CommandError> {
        let context = &session.context;
        let agents = context.agents()?;
        agents.reconcile()?;
        let lead = swarm::AgentId::parse(session.record.lead_run.as_deref().unwrap_or_default())
            .and_then(|id| agents.run(id.as_str()).meta().ok());
        let id = match lead {
            Some(meta) if agents.is_alive(&meta)? => meta.agent_id,
            Some(meta) => go_on(session, &agents, &meta)?,
            None => begin(session, &agents)?,
        };
        let name = store::name::Name::new("agent", LEAD)?;
        let inbox = context.mailbox()?.inbox(&name).ok();
        Ok(Self {
            id,
            context: context.clone(),
            inbox,
        })
    }

    /// Whether its turn is not over, or something waits for it.
    pub(super) fn is_busy(&mut self, agents: &Agents) -> bool {
        let run = agents.run(&self.id);
        let Ok(meta) = run.meta() else {
            return false;
        };
        if meta.state.is_terminal() || !run.is_alive().unwrap_or(false) {
            // Its end is settled by whoever looks first.
            self.context.settle_dead_runs();
            return false;
        }
        let waiting = self.inbox.as_ref().is_some_and(|inbox| {
            inbox
                .list(false)
                .is_ok_and(|listing| !listing.messages.is_empty())
        });
        meta.state != State::Idle || waiting
    }
}

/// A lead with the whole prompt of the session.
fn begin(session: &Session, agents: &Agents) -> Result<String, CommandError> {
    let context = &session.context;
    let wish = Wish {
        prompt: session.record.prompt.clone().or_else(|| {
            let text = "Look at the task board and see that what is on it gets done.";
            Some(text.into())
        }),
        description: Some(format!("leads team {}", session.team)),
        runtime: session.record.lead.clone(),
        name: Some(LEAD.into()),
        teammate: true,
        role: match session.record.mode.as_str() {
            "coordinator" => Role::Coordinator,
            _ => Role::Lead,
        },
        background: true,
        ..Wish::default()
    };
    let mut spawn = spawning::spawn(&wish, &definitions::load(None, context)?, context)?;
    spawn.plan.system_prompt = Some(PROMPT.replace("{mates}", &session.record.mates.to_string()));
    let launched = agents.spawn(&spawn)?;
    let mut record = session.record.clone();
    record.lead_run = Some(launched.meta.agent_id.clone());
    SessionFile {
        home: context.home(),
        team: &session.team,
    }
    .put_session(&record)?;
    Ok(launched.meta.agent_id)
}

/// A lead that has ended goes on with its conversation.
fn go_on(session: &Session, agents: &Agents, meta: &Meta) -> Result<String, CommandError> {
    let user = store::name::Name::new("agent", "user")?;
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
