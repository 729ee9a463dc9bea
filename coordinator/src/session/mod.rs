//! A session of a team: a lead, teammates, and the board they work through.
//!
//! All state of a session is on disk: the board, the roster, the runs, `session.json`. So the same
//! call begins it, resumes it after any interruption, and follows one that another process directs.
//! Its display and a person's decisions are behind [`SessionUi`].

mod close;
mod coordinator_prompt;
mod desk;
mod follow;
mod lead;
mod offers;
mod oversee;
mod record;
mod stale;
mod ui;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use director::{
    BaseOf, Closed, Control, Director, DirectorError, Ending, Gate, Level, Limits, Remote, Seat,
    Setup, usual_labels,
};
use landing::Landings;
use project::workplace::Workplace;
use runs::Turn;
use runs::bystander::Bystander;
use runs::fleet::Fleet;
use runs::session_file::{SessionFile, TeamSession};
use store::Failure;
use store::agent_id::LEAD;
use store::name::Name;
use taskboard::TaskId;
use team::{NewMember, TeamError};

use self::oversee::Overseer;
pub use self::record::{Mates, Merge, Request};
use self::stale::StaleTrees;
pub use self::ui::{Decision, Offer, ParkedTask, SessionEvent, SessionUi, Summary};
use crate::actions::team as team_actions;
use crate::agent::{self, Role, TaskCrew, definitions};
pub use director::{DirectorEvent, LeftTree, Stand, TaskEnd, Verdict, Why};
pub use landing::StayingTree;

/// A session.
#[derive(Debug)]
pub struct Session {
    /// Its workplace.
    pub workplace: Workplace,
    /// Its team.
    pub team: Name,
    /// Its stored record.
    pub record: TeamSession,
    /// The landing of finished work.
    pub merge: Merge,
    attempts: usize,
    verify_timeout: Duration,
    trees: bool,
    /// True if teammates run commands and nothing else.
    commands_only: bool,
    /// A file with the coordinator's prompt.
    coordinator_prompt: Option<PathBuf>,
    /// True if the team exists for this session alone.
    own_team: bool,
    /// True if it stays open when everything is done, as long as a person is there.
    stay: bool,
}

impl Session {
    /// True if teammates run commands and nothing else.
    pub fn runs_commands_only(&self) -> bool {
        self.commands_only
    }

    fn file(&self) -> SessionFile {
        SessionFile::new(self.workplace.home(), &self.team)
    }
}

/// Begins a session, resumes it, or follows it.
pub fn run(
    request: &Request,
    workplace: &mut Workplace,
    ui: &Arc<dyn SessionUi>,
) -> Result<Verdict, Failure> {
    let id = match request.coordinator && workplace.named_team().is_none() {
        true => Some(own_team(workplace)?),
        false => None,
    };
    let session = record::prepare(request, id, workplace)?;
    ui.show(&SessionEvent::Begun(&session));
    loop {
        match direct(&session, ui) {
            Err(Stopped::Directed(who)) => {
                if let Some(verdict) = follow::follow(&session, &who, ui.as_ref())? {
                    return Ok(verdict);
                }
                // The directing process has exited, and work is left.
            }
            Err(Stopped::Failed(error)) => return Err(error),
            Ok(verdict) => return Ok(verdict),
        }
    }
}

/// Makes the session's own team and leads it; returns the session's id.
fn own_team(workplace: &mut Workplace) -> Result<String, Failure> {
    let id = uuid::Uuid::new_v4().to_string();
    workplace.lead(&Name::new("team", &TeamSession::team_of(&id))?);
    Ok(id)
}

/// The reason why a session was not directed to its end.
enum Stopped {
    /// Another process directs it.
    Directed(String),
    Failed(Failure),
}

impl<E: Into<Failure>> From<E> for Stopped {
    fn from(error: E) -> Self {
        Self::Failed(error.into())
    }
}

/// Directs the session until nothing is left to do or a person ends it.
fn direct(session: &Session, ui: &Arc<dyn SessionUi>) -> Result<Verdict, Stopped> {
    // The tasks to land now; while it is set, nothing else is done.
    let mut landing: Option<BTreeSet<TaskId>> = None;
    let mut leaving = false;
    let mut looked = false;
    let mut stale = None;
    let _turn = alone(session)?;
    if session.trees {
        let trees = session.workplace.trees()?;
        // Without its list of worktrees it would fail task after task.
        trees.list()?;
        stale = Some(StaleTrees::new(trees, Arc::clone(ui)));
    }
    let bystander = bystander(session);
    let close = |ending: &Ending, signal: Option<u8>| -> Result<Verdict, Stopped> {
        if let Some(note) = bystander.as_ref().and_then(|it| it.disturbed("Teammates")) {
            ui.show(&SessionEvent::Note(&note));
        }
        Ok(close::close(session, ending, signal, ui.as_ref())?)
    };
    loop {
        let control = Arc::new(Control::default());
        let setup = setup(session, landing.clone())?;
        let mut engine = match Director::new(setup, Arc::clone(&control)) {
            Ok(engine) => engine,
            Err(DirectorError::Taken { who, .. }) => return Err(Stopped::Directed(who)),
            Err(error) => return Err(error.into()),
        };
        enlist(session)?;
        if !std::mem::replace(&mut looked, true) {
            for finding in crate::doctor(&session.workplace.agents()?, true)? {
                ui.show(&SessionEvent::Finding(&finding));
            }
            for finding in unreadable_tasks(session)? {
                ui.show(&SessionEvent::Finding(&finding));
            }
        }
        stale.iter_mut().for_each(StaleTrees::look);
        let overseer = Overseer::start(session, Arc::clone(&control), ui)?;
        let ending = engine.run(&mut |event: DirectorEvent| {
            if event == DirectorEvent::Tick {
                stale.iter_mut().for_each(StaleTrees::look);
                return;
            }
            overseer.heard(&event);
            lead::told(session, &event);
            ui.show(&SessionEvent::Director(&event));
        })?;
        let signal = overseer.finish();
        leaving |= control.level() >= Level::Stop;
        if signal.is_some() || (leaving && landing.is_some()) {
            drop(engine);
            return close(&ending, signal);
        }
        let more = matches!(ending.stand, Stand::Waiting(_)) && ending.stopped.is_none();
        if more && !leaving {
            continue;
        }
        // A session that asks is not over: no other process directs the team meanwhile.
        let chosen = match landing.is_none() && session.merge == Merge::Ask {
            true => offers::ask(session, ui.as_ref())?,
            false => None,
        };
        drop(engine);
        if landing.take().is_some() {
            // A failed landing may have become work.
            if something_ready(session)? {
                continue;
            }
        } else if chosen.is_some() {
            landing = chosen;
            continue;
        } else if !leaving && ending.stopped.is_some() && something_ready(session)? {
            // A task came in just when everything seemed done.
            continue;
        }
        return close(&ending, None);
    }
}

/// One session of a team at a time, also if several machines share its board. On one machine the
/// lock of the director ensures that, and a second process follows the first.
fn alone(session: &Session) -> Result<Option<Turn>, Stopped> {
    let agents = session.workplace.agents()?;
    if agents.shared().is_none() || agents.are_directed()? {
        return Ok(None);
    }
    match agents.turn("session")? {
        Some(turn) => Ok(Some(turn)),
        None => {
            let team = &session.team;
            let message = format!("team {team} has a session on another machine");
            let hint = format!("help it from here with: ccb worker --team {team}");
            Err(Failure::refused("directed", message).with_hint(hint).into())
        }
    }
}

/// Observes the checkout the session is run from, where teammates with worktrees do not work.
fn bystander(session: &Session) -> Option<Bystander> {
    let home = session.workplace.home().path();
    let looked = || Bystander::look(&session.workplace.directory, &[home]);
    session.trees.then(looked).flatten()
}

/// True if a task can start.
fn something_ready(session: &Session) -> Result<bool, Failure> {
    let board = session.workplace.board();
    let snapshot = board.snapshot()?;
    let labels = usual_labels();
    let possible = |task: &taskboard::Task| {
        !task.is_internal()
            && snapshot.is_ready(task)
            && task.needs().iter().all(|label| labels.contains(label))
            && (task.run_command().is_some() || !session.commands_only)
    };
    Ok(snapshot.tasks().any(possible))
}

/// Unreadable tasks: the session cannot do them, and does not end well without them.
fn unreadable_tasks(session: &Session) -> Result<Vec<crate::Finding>, Failure> {
    let board = session.workplace.board();
    if !board.exists() {
        return Ok(Vec::new());
    }
    let snapshot = board.snapshot()?;
    let finding = |(id, bad): (&TaskId, &taskboard::Unreadable)| crate::Finding {
        kind: "unreadable",
        message: format!(
            "task {id} is unreadable ({}); `ccb doctor --fix` keeps its file and parks the task",
            bad.detail
        ),
        fixed: None,
    };
    Ok(snapshot.unreadable().iter().map(finding).collect())
}

/// Tasks that are done and whose worktrees hold work that is on no other branch.
fn unlanded(session: &Session) -> Result<Vec<TaskId>, Failure> {
    if !session.trees {
        return Ok(Vec::new());
    }
    let agents = session.workplace.agents()?;
    Ok(landing::unlanded(&agents)?)
}

/// With `landing`, the work on these tasks lands, and nothing else is done.
fn setup(session: &Session, landing: Option<BTreeSet<TaskId>>) -> Result<Setup, Failure> {
    let landing_only = landing.is_some();
    let workplace = &session.workplace;
    let (_, set_up) = workplace.usual_tree()?;
    let into = session.record.into.clone().unwrap_or_default();
    let landings =
        (session.trees && (session.merge == Merge::Auto || landing_only)).then(|| Landings {
            into: into.clone(),
            strategy: crate::actions::land::strategy_of(&session.record, workplace),
            check: session.record.verify.clone(),
            set_up: set_up.clone(),
            conflicts_become_tasks: true,
            only: landing,
        });
    let seats = match landing_only {
        true => Vec::new(),
        false => mates(session)?,
    };
    Ok(Setup {
        agents: workplace.agents()?,
        crew: Box::new(TaskCrew {
            workplace: workplace.clone(),
            definitions: definitions::load(None, workplace)?,
            runtime: session.record.runtime.clone(),
            model: session.record.model.clone(),
            permission_mode: session.record.permission_mode.clone(),
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
        most_grace: None,
        max_attempts: session.attempts,
        gate: Some(gate(workplace.agents()?.fleet())),
        labels: usual_labels(),
        patient: false,
        remote: Remote::of(&workplace.agents()?),
    })
}

/// The gate that enforces the limits of the team.
fn gate(fleet: Fleet) -> Gate {
    Box::new(move || Closed::by(&fleet))
}

fn mates(session: &Session) -> Result<Vec<Seat>, Failure> {
    let by_runtime = session.record.mates_by_runtime.iter();
    let mut runtimes: Vec<Option<&String>> = by_runtime
        .flat_map(|(name, number)| std::iter::repeat_n(Some(name), *number))
        .collect();
    runtimes.resize(session.record.mates, None);
    let seat = |(number, runtime): (usize, Option<&String>)| -> Result<Seat, Failure> {
        let commands_only = match runtime {
            Some(name) => {
                let spec = agent::session_runtime(Some(name), &session.workplace)?;
                !spec.kind.has_model()
            }
            None => session.commands_only,
        };
        Ok(Seat {
            name: Some(Name::new("agent", &format!("mate-{number}"))?),
            commands_only,
            runtime: runtime.cloned(),
        })
    };
    (1..).zip(runtimes).map(seat).collect()
}

/// Writes the teammates into the roster, before any of them starts.
fn enlist(session: &Session) -> Result<(), Failure> {
    let team = session.workplace.team_named(session.team.clone());
    let roster = team.enter()?;
    for seat in mates(session)? {
        let Some(name) = seat
            .name
            .filter(|name| roster.member(name.as_str()).is_none())
        else {
            continue;
        };
        let member = NewMember {
            cwd: Some(team_actions::directory(&session.workplace)?),
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

/// The state when the engine has ended.
fn verdict_of(session: &Session, ending: &Ending) -> Result<Verdict, Failure> {
    if ending.spent.is_some() {
        return Ok(Verdict::Budget);
    }
    let board = session.workplace.board();
    let snapshot = board.snapshot()?;
    let mut open = snapshot
        .tasks()
        .filter(|task| !task.is_internal() && task.status != taskboard::Status::Completed);
    // A conflict without an agent to resolve it is left to land, and nothing has failed.
    let unreadable = !snapshot.unreadable().is_empty();
    if unreadable || open.any(|task| !landing::is_conflict(task)) {
        return Ok(Verdict::Failed);
    }
    let left = !ending.not_landed.is_empty()
        || (session.merge != Merge::Never && !unlanded(session)?.is_empty());
    Ok(match left {
        true => Verdict::Conflicts,
        false => Verdict::Done,
    })
}
