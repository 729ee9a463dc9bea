//! `ccb --team NAME`: a lead, mates, and a board they work off.
//!
//! Everything a session is lives on disk: the board, the roster, the runs, `session.json`. So
//! the same command begins it, goes on with it after whatever happened, and follows one that
//! somebody else directs.

mod args;
mod attach;
mod closing;
mod coordinator_prompt;
mod lead;
mod overseer;
mod person;
mod record;
mod view;

use std::sync::Arc;
use std::time::Duration;

use coordinator::engine::{
    BaseOf, Closed, Control, Ending, Engine, EngineError, EngineEvent, Landings, Level, Limits,
    Seat, Setup, Stand,
};
use coordinator::fleet::Gate;
use serde_json::json;
use store::name::Name;
use swarm::{LEAD, NewMember, TeamError};
use taskboard::TaskId;
use worktrees::Strategy;

pub(crate) use self::args::SessionArgs;
use self::overseer::Overseer;
use self::record::Merge;
use self::view::View;
use crate::actions::team as team_actions;
use crate::commands::agent::definitions;
use crate::commands::default_tree;
use crate::context::Context;
use crate::crew::TaskCrew;
use crate::exit::Exit;
use crate::mcp::Role;
use crate::signals::Signals;
use store::{Category, Failure};

/// What a session is made of.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) context: Context,
    pub(crate) team: Name,
    pub(crate) record: coordinator::TeamSession,
    pub(crate) merge: Merge,
    pub(crate) attempts: usize,
    pub(crate) verify_timeout: Duration,
    pub(crate) trees: bool,
    /// Mates run commands and nothing else.
    pub(crate) commands_only: bool,
    /// A file with what the coordinator is told.
    pub(crate) coordinator_prompt: Option<std::path::PathBuf>,
    /// The team is there for this session alone.
    pub(crate) own_team: bool,
}

/// Begins a session, goes on with it, or follows it.
pub(crate) fn run(args: &SessionArgs, context: &mut Context) -> Result<Exit, Failure> {
    let signals = Signals::catch()?;
    let id = match args.coordinates() && context.named_team().is_none() {
        true => Some(own_team(context)?),
        false => None,
    };
    let session = record::prepare(args, id, context)?;
    let view = Arc::new(View::new(context.out.clone()));
    view.begin(&session);
    loop {
        match direct(&session, &signals, &view) {
            Err(Stopped::Directed(who)) => {
                if let Some(exit) = attach::follow(&session, &who, &signals, &view)? {
                    return Ok(exit);
                }
                // Whoever directed it is gone, and something is left to do.
            }
            Err(Stopped::Failed(error)) => return Err(error),
            Ok(exit) => return Ok(exit),
        }
    }
}

/// Leads a team of the session's own; returns the session's id.
fn own_team(context: &mut Context) -> Result<String, Failure> {
    let id = uuid::Uuid::new_v4().to_string();
    context.lead(&Name::new("team", &coordinator::TeamSession::team_of(&id))?);
    Ok(id)
}

/// Why a session was not directed to its end.
enum Stopped {
    /// Somebody else does that.
    Directed(String),
    Failed(Failure),
}

impl<E: Into<Failure>> From<E> for Stopped {
    fn from(error: E) -> Self {
        Self::Failed(error.into())
    }
}

/// Directs the session until nothing is left to do or somebody ends it.
fn direct(session: &Session, signals: &Signals, view: &Arc<View>) -> Result<Exit, Stopped> {
    let mut landing_only = false;
    let mut looked = false;
    if session.trees {
        // Without its list of worktrees it would fail task after task.
        session.context.trees()?.list()?;
    }
    loop {
        let control = Arc::new(Control::default());
        let mut engine = match Engine::new(setup(session, landing_only)?, Arc::clone(&control)) {
            Ok(engine) => engine,
            Err(EngineError::Taken { who, .. }) => return Err(Stopped::Directed(who)),
            Err(error) => return Err(error.into()),
        };
        enlist(session)?;
        if !std::mem::replace(&mut looked, true) {
            for finding in coordinator::doctor(&session.context.agents()?, true)? {
                view.finding(&finding);
            }
            for finding in unreadable_tasks(session)? {
                view.finding(&finding);
            }
        }
        let overseer = Overseer::start(session, Arc::clone(&control), signals, Arc::clone(view))?;
        let ending = engine.run(&mut |event: EngineEvent| {
            if event == EngineEvent::Tick {
                return;
            }
            overseer.heard(&event);
            lead::told(session, &event);
            view.event(&event);
        })?;
        let asked_to_end = overseer.finish();
        drop(engine);
        if asked_to_end.is_some() || control.level() >= Level::Stop {
            return Ok(closing::close(session, &ending, asked_to_end, view)?);
        }
        let unlanded = unlanded(session)?;
        let more = matches!(ending.stand, Stand::Waiting(_)) && ending.stopped.is_none();
        if more {
            continue;
        }
        if landing_only {
            // What could not land may have become work.
            landing_only = false;
            if something_ready(session)? {
                continue;
            }
        } else if !unlanded.is_empty() && session.merge == Merge::Ask {
            if view.ask_to_land(session, &unlanded)? {
                landing_only = true;
                continue;
            }
        } else if ending.stopped.is_some() && something_ready(session)? {
            // It came in just when everything seemed done.
            continue;
        }
        return Ok(closing::close(session, &ending, None, view)?);
    }
}

/// Whether somebody could begin something.
fn something_ready(session: &Session) -> Result<bool, Failure> {
    let board = session.context.board();
    let snapshot = board.snapshot()?;
    let possible = |task: &taskboard::Task| {
        !task.is_internal()
            && snapshot.is_ready(task)
            && (task.run_command().is_some() || !session.commands_only)
    };
    Ok(snapshot.tasks().any(possible))
}

/// Tasks that are done and whose trees hold what is on no other branch.
/// Tasks nobody can read: the session cannot do them, and does not end well without them.
fn unreadable_tasks(session: &Session) -> Result<Vec<coordinator::Finding>, Failure> {
    let board = session.context.board();
    if !board.dir().is_dir() {
        return Ok(Vec::new());
    }
    let snapshot = board.snapshot()?;
    let finding = |(id, bad): (&TaskId, &taskboard::Unreadable)| coordinator::Finding {
        kind: "unreadable",
        message: format!(
            "task {id} is unreadable ({}); `ccb doctor --fix` keeps its file and parks the task",
            bad.detail
        ),
        fixed: None,
    };
    Ok(snapshot.unreadable().iter().map(finding).collect())
}

fn unlanded(session: &Session) -> Result<Vec<TaskId>, Failure> {
    if !session.trees {
        return Ok(Vec::new());
    }
    let agents = session.context.agents()?;
    Ok(coordinator::engine::unlanded(&agents)?)
}

fn setup(session: &Session, landing_only: bool) -> Result<Setup, Failure> {
    let context = &session.context;
    let (_, set_up) = default_tree(context)?;
    let into = session.record.into.clone().unwrap_or_default();
    let landings =
        (session.trees && (session.merge == Merge::Auto || landing_only)).then(|| Landings {
            into: into.clone(),
            strategy: Strategy::Merge,
            check: session.record.verify.clone(),
            set_up: set_up.clone(),
            conflicts_become_tasks: true,
        });
    let seats = match landing_only {
        true => Vec::new(),
        false => mates(session)?,
    };
    Ok(Setup {
        agents: context.agents()?,
        crew: Box::new(TaskCrew {
            context: context.clone(),
            definitions: definitions::load(None, context)?,
            runtime: session.record.runtime.clone(),
            model: session.record.model.clone(),
            set_up,
            role: match session.record.has_coordinator() {
                true => Role::Worker,
                false => Role::Teammate,
            },
            env: Vec::new(),
        }),
        limits: Limits {
            at_once: session.record.mates,
            max_failures: session.record.max_failures.map(usize::from),
            ..Limits::default()
        },
        seats,
        base: match session.trees {
            true => BaseOf::Branch(into),
            false => BaseOf::NoTrees,
        },
        landings,
        parent: Name::new("agent", LEAD)?,
        quiet: session.record.lead.is_none(),
        linger: !landing_only,
        verify_timeout: session.verify_timeout,
        max_attempts: session.attempts,
        gate: Some(gate(context.agents()?)),
    })
}

/// What the limits of the team say.
pub(crate) fn gate(agents: coordinator::run::Agents) -> coordinator::engine::Gate {
    Box::new(move || match agents.fleet().gate() {
        Ok(Gate::Paused { reason, .. }) => {
            Some(Closed::ForNow(format!("the provider refuses: {reason}")))
        }
        Ok(Gate::Spent { what }) => Some(Closed::ForGood(what)),
        // How fast agents are started is seen to when one is.
        Ok(_) => None,
        Err(error) => Some(Closed::ForNow(error.to_string())),
    })
}

fn mates(session: &Session) -> Result<Vec<Seat>, Failure> {
    let seat = |number: usize| -> Result<Seat, Failure> {
        Ok(Seat {
            name: Some(Name::new("agent", &format!("mate-{number}"))?),
            commands_only: session.commands_only,
        })
    };
    (1..=session.record.mates).map(seat).collect()
}

/// Writes the mates into the roster, before any of them starts.
fn enlist(session: &Session) -> Result<(), Failure> {
    let team = session.context.team_named(session.team.clone());
    let roster = team.enter()?;
    for seat in mates(session)? {
        let Some(name) = seat
            .name
            .filter(|name| roster.member(name.as_str()).is_none())
        else {
            continue;
        };
        let member = NewMember {
            cwd: Some(team_actions::directory(&session.context)?),
            model: session.record.model.clone(),
            ..NewMember::new(name)
        };
        match team.join(&member) {
            Ok(_) | Err(TeamError::AlreadyMember { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// The exit code of how things stand.
fn exit_of(session: &Session, ending: &Ending) -> Result<Exit, Failure> {
    if ending.spent.is_some() {
        return Ok(Exit::Not(Category::Budget));
    }
    let board = session.context.board();
    let snapshot = board.snapshot()?;
    let mut open = snapshot
        .tasks()
        .filter(|task| !task.is_internal() && task.status != taskboard::Status::Completed);
    // A conflict that nobody here can solve is left to land, and nothing has failed.
    let unreadable = !snapshot.unreadable().is_empty();
    if unreadable || open.any(|task| !coordinator::engine::is_conflict(task)) {
        return Ok(Exit::Not(Category::Failed));
    }
    let left = !ending.not_landed.is_empty()
        || (session.merge != Merge::Never && !unlanded(session)?.is_empty());
    Ok(if left {
        Exit::Not(Category::Conflict)
    } else {
        Exit::Done
    })
}

/// What is said last.
fn end_json(session: &Session, exit: Exit) -> serde_json::Value {
    json!({
        "event": "end",
        "team": session.team.as_str(),
        "exit": exit.code(),
    })
}
