//! Everything that runs in a repository or left something there, at one moment: sessions, plans,
//! agents, and what needs a person.
//!
//! It is read from files, or from the database the board is in, takes no lock and changes nothing,
//! so any number of people and programs can look at once.

pub(crate) mod attention;
mod last_words;

use std::collections::BTreeMap;

use landing::Unlanded;
use mailbox::{Request, RequestState};
use project::away::{Away, Whereabouts};
use project::workplace::Workplace;
use runs::fleet::Gate;
use runs::session_file::{SessionFile, TeamSession};
use serde::{Serialize, Serializer};
use store::Failure;
use store::clock::{Clock, SystemClock, rfc3339};
use store::name::Name;
use swarm::run::{Meta, RunState};
use swarm::runtime::Usage;
use taskboard::{Snapshot, Status, TaskId};
use worktrees::Repository;

pub use self::attention::{Attention, Need};
use self::attention::{BoardNeeds, Seen};
use self::last_words::{LastWords, last_words};

/// All of it.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Overview {
    /// The teams that belong to the repository, those at work first.
    pub teams: Vec<TeamView>,
    /// The items that need a person, the most urgent first.
    pub attention: Vec<Attention>,
    /// Number of worktrees by state.
    pub worktrees: BTreeMap<&'static str, usize>,
}

/// The purpose of a team.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// A session with teammates.
    Session,
    /// A session with a coordinator.
    Coordinator,
    /// A plan.
    Fanout,
    /// People and programs that share a board.
    Board,
}

/// One team.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TeamView {
    /// Its name.
    pub name: String,
    /// The purpose.
    pub kind: Kind,
    /// True if a process directs it now.
    pub running: bool,
    /// True if its session ended without being killed.
    pub ended: bool,
    /// The prompt of its session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prompt: Option<String>,
    /// The counts of its tasks.
    pub tasks: Counts,
    /// Its agents that are alive.
    pub agents: Vec<AgentView>,
    /// The usage of all its agents, also those that have ended.
    #[serde(serialize_with = "usage_json")]
    pub usage: Usage,
    /// Requests that wait for an answer.
    #[serde(skip)]
    pub requests: Vec<Request>,
    /// The tasks whose finished work has not landed.
    pub unlanded: Vec<TaskId>,
    /// Those of them without proof.
    pub unchecked: Vec<TaskId>,
    /// The stored record of its session.
    #[serde(skip)]
    pub session: Option<TeamSession>,
}

impl TeamView {
    /// True if there is nothing to report: no agent works, no task is open, nothing is left.
    pub fn is_at_rest(&self) -> bool {
        let open = self.tasks.pending + self.tasks.in_progress + self.tasks.unreadable;
        !self.running
            && self.agents.is_empty()
            && self.requests.is_empty()
            && self.unlanded.is_empty()
            && open == 0
    }
}

/// Number of tasks in each state.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Counts {
    /// Not begun: includes the next two.
    pub pending: usize,
    /// Tasks that can start.
    pub ready: usize,
    /// Tasks that failed too often.
    pub parked: usize,
    /// Tasks in progress.
    pub in_progress: usize,
    /// Completed tasks.
    pub completed: usize,
    /// Completed tasks without proof.
    pub unchecked: usize,
    /// Tasks whose file cannot be read.
    pub unreadable: usize,
}

impl Counts {
    /// Counts a board.
    pub fn of(snapshot: &Snapshot) -> Self {
        let mut counts = Self {
            unreadable: snapshot.unreadable().len(),
            ..Self::default()
        };
        for task in snapshot.tasks().filter(|task| !task.is_internal()) {
            match task.status {
                Status::Completed => {
                    counts.completed += 1;
                    counts.unchecked += usize::from(task.unchecked().is_some());
                }
                Status::InProgress => counts.in_progress += 1,
                Status::Pending => {
                    counts.pending += 1;
                    counts.parked += usize::from(task.parked().is_some());
                    counts.ready += usize::from(snapshot.is_ready(task));
                }
            }
        }
        counts
    }

    /// Number of all tasks.
    pub fn total(&self) -> usize {
        self.pending + self.in_progress + self.completed + self.unreadable
    }
}

/// An agent that is alive.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentView {
    /// Its id.
    pub agent_id: String,
    /// Its address.
    pub name: String,
    /// Its state.
    pub state: &'static str,
    /// The task it works on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
    /// Its work, in a few words.
    pub description: String,
    /// The start, RFC 3339.
    pub since: String,
    /// Number of tokens.
    pub tokens: u64,
    /// The same in detail.
    #[serde(serialize_with = "usage_json")]
    pub usage: Usage,
    /// True if it is a copy of another agent.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub fork: bool,
    /// The reason of a stall that it reported.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stalled: Option<String>,
    /// Its last message, action or output.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last: Option<String>,
    /// The time of `last`, RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_at: Option<String>,
    /// The host it is on, if that is another machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub machine: Option<String>,
    /// The colour it is shown in.
    #[serde(skip)]
    pub color: Option<String>,
}

fn usage_json<S: Serializer>(usage: &Usage, to: S) -> Result<S::Ok, S::Error> {
    usage.to_json().serialize(to)
}

/// Looks at everything that belongs to the workplace's repository; at one team alone if it was
/// named for this very command.
pub fn look(workplace: &Workplace) -> Result<Overview, Failure> {
    let mut teams = Vec::new();
    let mut attention = Vec::new();
    for name in teams_of(workplace)? {
        let there = workplace.in_team(&name);
        let (team, board) = look_at(&name, &there)?;
        attention.extend(needs(&team, board.as_ref(), &there)?);
        teams.push(team);
    }
    teams.sort_by_key(|team: &TeamView| (!team.running, team.is_at_rest(), team.name.clone()));
    attention.sort_by_key(|one| one.need);
    let mut trees = BTreeMap::new();
    // Outside of a repository there are none.
    if let Ok(all) = workplace.trees() {
        for tree in all.list()?.iter().filter(|tree| tree.is_live()) {
            *trees.entry(tree.status.as_str()).or_default() += 1;
        }
    }
    Ok(Overview {
        teams,
        attention,
        worktrees: trees,
    })
}

/// The items of a team that need a person.
fn needs(
    team: &TeamView,
    board: Option<&Snapshot>,
    workplace: &Workplace,
) -> Result<Vec<Attention>, Failure> {
    let spent = match workplace.agents()?.fleet().gate() {
        Ok(Gate::Spent { what }) => Some(what),
        _ => None,
    };
    let now = SystemClock.now_ms();
    let here = team.agents.iter().filter(|agent| agent.machine.is_none());
    let silent = here.filter_map(|agent| {
        let how = attention::silence_of(agent, now)?;
        Some((agent.name.clone(), how))
    });
    let board = board.map(|board| BoardNeeds::of(board, &team.name));
    Ok(attention::of_team(&Seen {
        name: &team.name,
        kind: team.kind,
        running: team.running,
        cut_short: team.session.is_some() && !team.running && !team.ended,
        requests: &team.requests,
        silent: silent.collect(),
        spent: spent.as_deref(),
        board: board.as_ref(),
        unlanded: &team.unlanded,
    }))
}

/// The teams to look at: the one that was named, or those of the repository and its own list.
pub(crate) fn teams_of(workplace: &Workplace) -> Result<Vec<Name>, Failure> {
    let own = workplace.team()?;
    if workplace.team_is_explicit() {
        return Ok(vec![own]);
    }
    let mut names = vec![own];
    if workplace.is_in_database() {
        let here = workplace.repository_name();
        for team in workplace.all_teams()? {
            let theirs = team
                .roster
                .as_ref()
                .ok()
                .and_then(|it| it.repository.as_deref());
            if let (Ok(name), true) = (Name::new("team", &team.name), theirs == here)
                && !names.contains(&name)
            {
                names.push(name);
            }
        }
        return Ok(names);
    }
    let here = workplace.common_dir();
    for entry in std::fs::read_dir(workplace.home().teams())
        .into_iter()
        .flatten()
    {
        let name = entry
            .ok()
            .and_then(|entry| entry.file_name().into_string().ok());
        let Some(name) = name.and_then(|name| Name::new("team", &name).ok()) else {
            continue;
        };
        if !names.contains(&name) && belongs(&name, here, workplace) {
            names.push(name);
        }
    }
    Ok(names)
}

/// True if a team works on this repository, according to its roster, else to its runs.
fn belongs(name: &Name, here: Option<&str>, workplace: &Workplace) -> bool {
    let roster = workplace.team_named(name.clone()).roster();
    if let Ok(roster) = &roster
        && roster.repository.is_some()
    {
        return roster.repository.as_deref() == here;
    }
    let Ok(agents) = workplace.in_team(name).agents() else {
        return false;
    };
    let runs = std::fs::read_dir(agents.runs_dir()).into_iter().flatten();
    let ids = runs.filter_map(|run| run.ok()?.file_name().into_string().ok());
    let ids = ids.filter(|id| !id.starts_with('.'));
    let mut metas = ids.filter_map(|id| agents.run(&id).meta().ok());
    // The directory it was started in, which is inside the repository.
    let directory = metas.find_map(|meta| meta.repository);
    let repository = directory.and_then(|directory| Repository::discover(&directory));
    repository.is_some_and(|repository| repository.common_dir.to_str() == here)
}

fn look_at(name: &Name, workplace: &Workplace) -> Result<(TeamView, Option<Snapshot>), Failure> {
    let agents = workplace.agents()?;
    let (all, _) = agents.list()?;
    let mut usage = Usage::default();
    for listed in &all {
        usage.add(&listed.meta.usage);
    }
    let alive: Vec<_> = all.into_iter().filter(|listed| listed.alive).collect();
    let requests = workplace.mailbox()?.requests()?.requests;
    let session = SessionFile::new(workplace.home(), name).session()?;
    let board = workplace.board();
    let snapshot = match board.exists() {
        true => Some(board.snapshot()?),
        // A look does not create a list.
        false => None,
    };
    let tasks = snapshot.as_ref().map(Counts::of).unwrap_or_default();
    let unlanded: Vec<Unlanded> = landing::candidates(&agents).unwrap_or_default();
    let planned = |snapshot: &Snapshot| {
        let mut tasks = snapshot.tasks();
        tasks.any(|task| fanout::planned_as(task).is_some())
    };
    let plan_runs = {
        let lock = fanout::lock_of(&workplace.home().team(name));
        lock.exists() && store::lock::is_held(&lock).unwrap_or(false)
    };
    let kind = match &session {
        Some(session) if session.has_coordinator() => Kind::Coordinator,
        Some(_) => Kind::Session,
        None if plan_runs || snapshot.as_ref().is_some_and(planned) => Kind::Fanout,
        None => Kind::Board,
    };
    let mut views: Vec<AgentView> = alive
        .iter()
        .map(|listed| {
            let run = agents.run(&listed.meta.agent_id);
            agent_view(&listed.meta, last_words(&run), snapshot.as_ref())
        })
        .collect();
    if let (true, Some(snapshot)) = (workplace.is_in_database(), &snapshot) {
        let local: Vec<&str> = views.iter().map(|agent| agent.name.as_str()).collect();
        let known = Whereabouts::of(&workplace.team_named(name.clone()))?;
        views.extend(known.away(snapshot, &local).into_iter().map(away_view));
    }
    let view = TeamView {
        name: name.to_string(),
        kind,
        running: plan_runs || agents.are_directed()?,
        ended: session.as_ref().is_some_and(|it| it.ended_at.is_some()),
        prompt: session.as_ref().and_then(|it| it.prompt.clone()),
        tasks,
        agents: views,
        usage,
        requests: requests
            .into_iter()
            .filter(|request| request.state == RequestState::Pending)
            .collect(),
        unchecked: unlanded
            .iter()
            .filter(|work| work.unchecked.is_some())
            .map(|work| work.task)
            .collect(),
        unlanded: unlanded.iter().map(|work| work.task).collect(),
        session,
    };
    Ok((view, snapshot))
}

/// An agent of another machine.
fn away_view(away: Away) -> AgentView {
    let state = match away.task {
        Some(_) => RunState::Running,
        None => RunState::Idle,
    };
    AgentView {
        agent_id: away.id,
        name: away.name,
        state: state.as_str(),
        task: away.task.map(|id| id.to_string()),
        description: away.doing,
        since: rfc3339(away.since_ms),
        tokens: 0,
        usage: Usage::default(),
        fork: false,
        stalled: None,
        last: None,
        last_at: None,
        machine: Some(away.host),
        color: away.color,
    }
}

fn agent_view(meta: &Meta, last: Option<LastWords>, board: Option<&Snapshot>) -> AgentView {
    let id: Option<TaskId> = meta.task_id.as_ref().and_then(|id| id.parse().ok());
    let task = id.and_then(|id| board?.get(id));
    AgentView {
        agent_id: meta.agent_id.clone(),
        name: meta.address().to_owned(),
        state: meta.state.as_str(),
        task: meta.task_id.clone(),
        description: match task {
            Some(task) => task.active_form().to_owned(),
            None => meta.description.clone(),
        },
        since: meta.started_at.clone(),
        tokens: meta.usage.total_tokens(),
        usage: meta.usage,
        fork: meta.fork,
        stalled: meta.stalled.clone(),
        last_at: last.as_ref().map(|last| last.at.clone()),
        last: last.map(|last| last.text),
        machine: None,
        color: meta.launch.color.clone(),
    }
}
