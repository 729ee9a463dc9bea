//! Sends the output of asynchronous hooks by mail.

use mailbox::{Body, Draft, MailOptions, Mailbox, Priority};
use store::agent_id::LEAD;
use store::home::Home;
use store::name::Name;
use swarm::hooks::{Late, work};
use swarm::run::RunDir;
use swarm::starter::Starter;

use super::{AgentError, Agents};
use crate::hooks::Tell;

/// Runs hooks for another process, as standard input says.
pub fn hooks_main() -> Result<(), AgentError> {
    let worked = work(|tell: &Tell, late| {
        if let Err(error) = told(tell, late) {
            tracing::warn!(%error, "nobody is told what a hook said");
        }
    });
    worked.map_err(|error| AgentError::Invalid(format!("hooks: {error}")))
}

/// A hook's words, as their receiver sees them.
fn words(late: &Late) -> Option<(String, String)> {
    let said = late.answer.in_words()?;
    let (event, command) = (late.hook.event.as_str(), &late.hook.command);
    let summary = format!("a {event} hook has something to say");
    let text = format!("The {event} hook `{command}` that ran in the background says:\n{said}");
    Some((summary, text))
}

fn told(tell: &Tell, late: &Late) -> Result<(), AgentError> {
    let Some((summary, text)) = words(late) else {
        return Ok(());
    };
    let home = Home::new(tell.home.clone())?;
    let team = Name::new("team", &tell.team)?;
    let lead = Name::new("agent", LEAD)?;
    // The agent that caused it is woken if the hook says so; else the lead gets the message at some
    // time.
    if let (true, Some(run)) = (late.wakes, &tell.run) {
        let runs = home.team(&team).join("runs");
        let meta = RunDir::new(&runs, run).meta()?;
        let agents = Agents::of_run(home, &meta, Starter::this_process(&[]))?;
        agents.send(&meta, &lead, text, Some(summary), Priority::Next)?;
        return Ok(());
    }
    let from = Name::new("agent", &tell.agent)?;
    let draft = Draft {
        summary: Some(summary),
        priority: Some(if late.wakes {
            Priority::Next
        } else {
            Priority::Later
        }),
        ..Draft::new(from, lead, Body::Text(text))
    };
    mailbox_of(tell, home, &team)?.send(&draft)?;
    Ok(())
}

/// The team's mail: where that of the run is which caused the hook, else in files.
fn mailbox_of(tell: &Tell, home: Home, team: &Name) -> Result<Mailbox, AgentError> {
    let runs = home.team(team).join("runs");
    let meta = tell.run.as_ref().map(|run| RunDir::new(&runs, run).meta());
    if let Some(Ok(meta)) = meta {
        let agents = Agents::of_run(home, &meta, Starter::this_process(&[]))?;
        return Ok(agents.mailbox());
    }
    let options = MailOptions {
        secret_filter: Starter::this_process(&[]).secret_filter(),
        ..MailOptions::default()
    };
    Ok(Mailbox::new(&home, team, options))
}
