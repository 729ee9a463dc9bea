//! The end of a team: its working trees, its tasks, its mail, its runs, and at last its roster.

use std::time::{Duration, Instant};

use store::{Explain, Facts};
use swarm::run::RunDir;
use taskboard::{Board, BoardError, Status};
use team::{Living, Roster, Team, TeamError};
use worktrees::{AgentEnd, Slug, Trees};

use crate::run::{AgentError, stop_all};

/// How long the processes of an agent may take to go away after its end.
const LAST_MOMENTS: Duration = Duration::from_secs(5);

/// What was deleted.
#[derive(Debug)]
pub struct Deleted {
    /// The team as it was.
    pub roster: Roster,
    /// Agents that were running and have been stopped; only with force.
    pub stopped: Vec<String>,
    /// Who is still alive and on its own now; only with force.
    pub living: Vec<Living>,
    /// How many tasks there were.
    pub tasks: usize,
    /// What became of its members' working trees.
    pub trees: Vec<TreeEnd>,
}

/// Deletes although members are alive or tasks are in progress.
#[derive(Debug, Clone, Copy)]
pub struct Force<'a> {
    /// Who does it.
    pub by: &'a str,
    /// The run of whoever does it, which is not stopped.
    pub own_run: Option<&'a str>,
    /// How long agents may take to end by themselves.
    pub grace: Duration,
}

/// What became of a member's working tree.
#[derive(Debug)]
pub struct TreeEnd {
    /// The tree's name.
    pub name: String,
    /// Where it is, or was.
    pub path: String,
    /// Nothing was in it, so it was removed with its branch.
    pub removed: bool,
    /// Why it stays.
    pub why: Option<String>,
}

/// Why a team was not deleted.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum DeleteError {
    /// Its roster said no; nothing has changed.
    #[error(transparent)]
    Team(#[from] TeamError),
    /// Its tasks said no; nothing has changed.
    #[error(transparent)]
    Board(#[from] BoardError),
    /// Its agents cannot be stopped; nothing has been deleted.
    #[error(transparent)]
    Agents(#[from] AgentError),
    /// A part of it is gone, or nobody can join any more; doing it again finishes it.
    #[error("team {team:?} is deleted only in part: {source}")]
    Unfinished { team: String, source: Box<Self> },
}

impl Explain for DeleteError {
    fn facts(&self) -> Facts {
        match self {
            Self::Team(error) => error.facts(),
            Self::Board(error) => error.facts(),
            Self::Agents(error) => error.facts(),
            Self::Unfinished { source, .. } => {
                Facts::new(source.category(), "unfinished").hint("the same command finishes it")
            }
        }
    }
}

/// Deletes `team` and empties `board`, the list of the same name. Of its members' trees among
/// `trees` those without changes are removed, the others stay; one that cannot be is reported.
///
/// Without `force` it is refused while members are alive or tasks are in progress, and then
/// nothing has changed; with it, running agents are stopped first. If it is cut short, the same call later finishes it. Ids of tasks
/// are never given out again: the board's high-water mark stays.
pub fn delete_team(
    team: &Team,
    board: &Board,
    trees: Option<&Trees>,
    force: Option<&Force<'_>>,
) -> Result<Deleted, DeleteError> {
    let unfinished = |source: DeleteError| DeleteError::Unfinished {
        team: team.name().to_string(),
        source: Box::new(source),
    };
    if force.is_none() {
        await_ended(team);
    }
    let (roster, mut living) = match team.begin_delete(force.is_some()) {
        Ok(begun) => begun,
        // The mark is set, but cannot be relied on; take it off again.
        Err(TeamError::NotDurable { source }) => {
            return Err(match team.cancel_delete() {
                Ok(()) => TeamError::Store(source).into(),
                Err(_) => unfinished(TeamError::Store(source).into()),
            });
        }
        Err(error) => return Err(error.into()),
    };
    // Nobody can join or start any more. Whoever went on would write to files that are gone.
    let mut stopped = Vec::new();
    if let Some(force) = force.filter(|_| !living.is_empty()) {
        let before = std::mem::replace(&mut living, stop_agents(team, &roster, force)?);
        let left = |one: &Living| living.iter().any(|other| other.name == one.name);
        let gone = before.into_iter().filter(|one| !left(one));
        stopped = gone.map(|one| one.name).collect();
    }
    // The trees before the tasks that name them; but not if the tasks are going to refuse.
    let trees = match trees.filter(|_| force.is_some() || !in_progress(board)) {
        Some(trees) => end_trees(&roster, trees),
        None => Vec::new(),
    };
    let tasks = match empty(board, force.is_some()) {
        Ok(tasks) => tasks,
        // Tasks are gone.
        Err(error @ (BoardError::Unfinished { .. } | BoardError::NotDurable { .. })) => {
            return Err(unfinished(error.into()));
        }
        Err(error) => {
            return Err(match team.cancel_delete() {
                Ok(()) => error.into(),
                Err(_) => unfinished(error.into()),
            });
        }
    };
    match team.finish_delete() {
        Ok(()) => Ok(Deleted {
            roster,
            stopped,
            living,
            tasks,
            trees,
        }),
        // That comes at the very end.
        Err(error @ TeamError::NotDurable { .. }) => Err(error.into()),
        Err(error) => Err(unfinished(error.into())),
    }
}

/// Stops the team's agents; returns who is alive after that. If that fails, the team can be used again.
fn stop_agents(
    team: &Team,
    roster: &Roster,
    force: &Force<'_>,
) -> Result<Vec<Living>, DeleteError> {
    let runs = team.dir().join("runs");
    let why = "its team is deleted";
    let stopped = stop_all(&runs, force.own_run, force.by, why, force.grace);
    if let Err(error) = stopped {
        team.cancel_delete()?;
        return Err(error.into());
    }
    Ok(team.living(roster)?)
}

/// Waits a moment for agents that have ended and of which a process is still there: their lead was
/// told that they are gone.
fn await_ended(team: &Team) {
    let runs = team.dir().join("runs");
    let Ok((metas, _)) = swarm::run::all(&runs) else {
        return;
    };
    let deadline = Instant::now() + LAST_MOMENTS;
    for meta in metas {
        let run = RunDir::new(&runs, &meta.agent_id);
        if run.is_alive().unwrap_or(false) && matches!(run.exit(meta.life), Ok(Some(_))) {
            let left = deadline.saturating_duration_since(Instant::now());
            run.wait_dead(left).ok();
        }
    }
}

fn in_progress(board: &Board) -> bool {
    board.snapshot().is_ok_and(|snapshot| {
        snapshot
            .tasks()
            .any(|task| task.status == Status::InProgress)
    })
}

/// Removes the members' trees that nothing was done in.
fn end_trees(roster: &Roster, trees: &Trees) -> Vec<TreeEnd> {
    let registered = match trees.list() {
        Ok(list) => list,
        Err(error) => {
            tracing::warn!(%error, "the working trees are left as they are");
            return Vec::new();
        }
    };
    let belongs = |path: &str| {
        let mut paths = roster
            .members
            .iter()
            .filter_map(|m| m.worktree_path.as_deref());
        paths.any(|member| member == path)
    };
    let mut ends = Vec::new();
    for entry in registered.iter().filter(|entry| entry.is_live()) {
        let path = entry.path().to_string_lossy().into_owned();
        if !belongs(&path) {
            continue;
        }
        let (removed, why) = match Slug::new(&entry.name).and_then(|slug| trees.agent_ended(&slug))
        {
            Ok(AgentEnd::Removed(_)) => (true, None),
            Ok(AgentEnd::Kept { changes, why, .. }) => {
                (false, Some(why.unwrap_or_else(|| changes.describe())))
            }
            Err(error) => (false, Some(error.to_string())),
        };
        ends.push(TreeEnd {
            name: entry.name.clone(),
            path,
            removed,
            why,
        });
    }
    ends
}

/// Not through the board where there is none: it would be made by that.
fn empty(board: &Board, force: bool) -> Result<usize, BoardError> {
    if board.exists() {
        board.reset(force)
    } else {
        Ok(0)
    }
}
