//! What a session is like: what was said now, else what was said when it began, else the usual.

use std::io::IsTerminal;
use std::time::Duration;

use clap::ValueEnum;
use coordinator::run::Prove;
use coordinator::{SessionFile, TeamSession};
use store::Failure;
use store::clock::{Clock, SystemClock, rfc3339};
use swarm::TeamError;

use super::Session;
use super::args::SessionArgs;
use crate::actions::team as team_actions;
use crate::context::Context;
use crate::spawning;

/// What happens with finished work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Merge {
    /// It lands as soon as it is done
    Auto,
    /// It lands at the end, if you say so
    Ask,
    /// It stays on its branches
    Never,
}

/// How many mates there are where nobody says.
const MATES: usize = 4;
/// Says that the lead is a person.
const PERSON: &str = "me";

/// Finds or makes the team, and writes down what its session is like.
///
/// `id` is the session's, where its team is named after it.
pub(super) fn prepare(
    args: &SessionArgs,
    id: Option<String>,
    context: &Context,
) -> Result<Session, Failure> {
    let team = context.team()?;
    let roster = context.team_named(team.clone());
    match roster.enter() {
        Ok(_) => {}
        Err(TeamError::NotFound { .. }) => {
            team_actions::create(team.as_str(), args.prompt(), context)?;
        }
        Err(error) => return Err(error.into()),
    }
    let file = SessionFile {
        home: context.home(),
        team: &team,
    };
    let before = file.session()?;
    let mut record = before.clone().unwrap_or_default();
    let now = rfc3339(SystemClock.now_ms());
    if before.is_none() {
        record.session_id = id.unwrap_or_else(|| uuid::Uuid::new_v4().to_string());
        record.mode = match args.coordinates() {
            true => "coordinator".into(),
            false => "team".into(),
        };
        record.mates = MATES;
        record.started_at = now;
    }
    check_mode(args, &record, &team)?;
    record.ended_at = None;
    if let Some(mates) = args.mates {
        record.mates = usize::from(mates);
    }
    let runtime = args.runtime.clone().or(record.runtime.take());
    let spec = spawning::session_runtime(runtime.as_deref(), context)?;
    let commands_only = !spec.kind.has_model();
    record.runtime = Some(spec.name);
    record.lead = lead(args, &record, commands_only, context)?;
    if record.has_coordinator() && record.lead.is_none() {
        let message = "a coordinator is a model, and there is none";
        return Err(Failure::usage("no_lead", message)
            .with_hint("name its runtime with --lead, or that of all with --runtime"));
    }
    check_number(&record, context)?;
    if let Some(prompt) = args.prompt() {
        if record.lead.is_none() && commands_only {
            let message = "a PROMPT takes a lead that is a model, and there is none";
            return Err(Failure::usage("no_lead", message).with_hint(
                "name one with --lead, or put commands on the board: \
                 `ccb --team NAME task create SUBJECT --run CMD --verify CMD`",
            ));
        }
        record.prompt = Some(prompt);
    }
    let merge = merge(args, &record)?;
    record.merge = merge.word();
    // Said once, it holds for as long as the session goes on.
    record.verify = args.verify.clone().or(record.verify);
    record.attempts = args.attempts.or(record.attempts);
    record.verify_timeout = args
        .verify_timeout
        .map(|time| time.as_secs())
        .or(record.verify_timeout);
    record.max_failures = args.max_failures.or(record.max_failures);
    record.model = args.model.clone().or(record.model);
    record.no_worktrees |= args.no_worktrees;
    let trees = !record.no_worktrees && context.trees().is_ok();
    if trees {
        record.into = Some(branch(args, &record, context)?);
    }
    file.put_session(&record)?;
    Ok(Session {
        context: context.clone(),
        team: team.clone(),
        coordinator_prompt: args.coordinator_prompt.clone(),
        own_team: record.has_coordinator()
            && TeamSession::team_of(&record.session_id) == team.as_str(),
        merge,
        attempts: record.attempts.map_or(Prove::ATTEMPTS, usize::from),
        verify_timeout: record
            .verify_timeout
            .map_or(Prove::TIMEOUT, Duration::from_secs),
        trees,
        commands_only,
        record,
    })
}

/// Refuses more mates than may run.
fn check_number(record: &TeamSession, context: &Context) -> Result<(), Failure> {
    let wanted = record.mates + usize::from(record.lead.is_some());
    match context.agent_settings().max_agents {
        Some(most) if wanted > most => {
            let message = format!("{wanted} agents are wanted, and no more than {most} may run");
            Err(Failure::usage("too_many", message)
                .with_hint("ask for fewer with --mates, or raise agents.maxAgents"))
        }
        _ => Ok(()),
    }
}

/// Refuses what does not go together with a coordinator, or with a session that has none.
fn check_mode(
    args: &SessionArgs,
    record: &TeamSession,
    team: &store::name::Name,
) -> Result<(), Failure> {
    if record.has_coordinator() && args.no_worktrees {
        let message = "a coordinator's workers each need a worktree";
        return Err(Failure::usage("usage", message).with_hint("leave out --no-worktrees"));
    }
    if args.coordinator && !record.has_coordinator() {
        let message = format!("team {team} has a session without a coordinator");
        return Err(Failure::usage("other_mode", message).with_hint(
            "a session keeps its mode: choose another team, or leave out --coordinator",
        ));
    }
    Ok(())
}

/// What runs the lead, if an agent leads.
fn lead(
    args: &SessionArgs,
    record: &TeamSession,
    commands_only: bool,
    context: &Context,
) -> Result<Option<String>, Failure> {
    let wanted = match (&args.lead, &record.lead) {
        (Some(given), _) if given == PERSON => return Ok(None),
        (Some(given), _) => given.clone(),
        (None, Some(before)) => before.clone(),
        (None, None) if record.has_coordinator() => {
            if commands_only {
                return Ok(None);
            }
            record.runtime.clone().unwrap_or_default()
        }
        // Going on with a session that a person led.
        (None, None) if record.prompt.is_some() && args.prompt.is_empty() => return Ok(None),
        (None, None) if commands_only || args.prompt.is_empty() => return Ok(None),
        (None, None) => record.runtime.clone().unwrap_or_default(),
    };
    let spec = spawning::session_runtime(Some(&wanted), context)?;
    if !spec.kind.has_model() {
        let message = "the lead cannot be a shell: it has to decide";
        return Err(Failure::usage("bad_lead", message)
            .with_hint("name a model's runtime with --lead, or `--lead me`"));
    }
    Ok(Some(spec.name))
}

fn merge(args: &SessionArgs, record: &TeamSession) -> Result<Merge, Failure> {
    if let Some(merge) = args.merge {
        return Ok(merge);
    }
    if !record.merge.is_empty() {
        return Merge::from_str(&record.merge, false)
            .map_err(|why| Failure::usage("bad_session", format!("session.json: merge: {why}")));
    }
    let person = std::io::stdin().is_terminal() && std::io::stderr().is_terminal();
    Ok(if person { Merge::Ask } else { Merge::Auto })
}

/// The branch finished work goes to.
fn branch(args: &SessionArgs, record: &TeamSession, context: &Context) -> Result<String, Failure> {
    let given = args.into.clone().or_else(|| record.into.clone());
    let trees = context.trees()?;
    let branch = match given {
        Some(branch) => branch,
        None => {
            let here = trees.whereabouts(trees.main_tree())?;
            here.branch.ok_or_else(|| {
                Failure::usage("no_branch", "the main worktree is on no branch")
                    .with_hint("say with --into where finished work goes")
            })?
        }
    };
    trees
        .resolve(&format!("refs/heads/{branch}"))
        .map_err(|_| {
            Failure::usage("no_branch", format!("there is no branch {branch:?}"))
                .with_hint("make it with `git branch`, with at least one commit")
        })?;
    Ok(branch)
}
