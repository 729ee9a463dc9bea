//! The end of a team: its worktrees, its tasks, its mail, its runs, and at last its roster.

use std::time::{Duration, Instant};

use store::{Explain, Facts};
use swarm::run::RunDir;
use taskboard::{Board, BoardError, Status};
use team::{Living, Roster, Team, TeamError};
use worktrees::{AgentEnd, Slug, Trees};

use crate::run::{AgentError, stop_all};

/// Maximum time for the processes of an agent to end after the agent.
const LAST_MOMENTS: Duration = Duration::from_secs(5);

/// The deleted parts of a team.
#[derive(Debug)]
pub struct Deleted {
    /// The team as it was.
    pub roster: Roster,
    /// Agents that were running and were stopped; only with force.
    pub stopped: Vec<String>,
    /// Processes that are still alive without a supervisor; only with force.
    pub living: Vec<Living>,
    /// Number of deleted tasks.
    pub tasks: usize,
    /// The fate of the members' worktrees.
    pub trees: Vec<TreeEnd>,
}

/// Deletes although members are alive or tasks are in progress.
#[derive(Debug, Clone, Copy)]
pub struct Force<'a> {
    /// The name of the agent or user that deletes the team.
    pub by: &'a str,
    /// The run of the agent that deletes the team, which is not stopped; `None` for a person.
    pub own_run: Option<&'a str>,
    /// Maximum time for agents to end without force.
    pub grace: Duration,
}

/// The fate of a member's worktree.
#[derive(Debug)]
pub struct TreeEnd {
    /// The worktree's name.
    pub name: String,
    /// The worktree's path, even if it is removed.
    pub path: String,
    /// True if it had no changes, so it was removed with its branch.
    pub removed: bool,
    /// The reason for keeping it; `None` if it was removed.
    pub why: Option<String>,
}

/// The errors of deleting a team.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum DeleteError {
    /// The roster refused; nothing has changed.
    #[error(transparent)]
    Team(#[from] TeamError),
    /// The task list refused; nothing has changed.
    #[error(transparent)]
    Board(#[from] BoardError),
    /// The agents cannot be stopped; nothing is deleted.
    #[error(transparent)]
    Agents(#[from] AgentError),
    /// A part of the team is deleted, or no agent can join any more; repeating the command finishes
    /// it.
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

/// Deletes `team` and empties `board`, the list of the same name. Removes those of its members'
/// worktrees among `trees` that have no changes and keeps the others; reports a worktree that
/// cannot be removed.
///
/// Without `force`, refuses and changes nothing while members are alive or tasks are in progress;
/// with it, stops running agents first. If it is cut short, the same call later finishes it. Ids of
/// tasks are never given out again: the board's high-water mark stays.
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
    // No agent can join or start any more. A running agent would write to deleted files.
    let mut stopped = Vec::new();
    if let Some(force) = force.filter(|_| !living.is_empty()) {
        let before = std::mem::replace(&mut living, stop_agents(team, &roster, force)?);
        let left = |one: &Living| living.iter().any(|other| other.name == one.name);
        let gone = before.into_iter().filter(|one| !left(one));
        stopped = gone.map(|one| one.name).collect();
    }
    // The worktrees before the tasks that name them; but not if the tasks are going to refuse.
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
        // This comes at the very end.
        Err(error @ TeamError::NotDurable { .. }) => Err(error.into()),
        Err(error) => Err(unfinished(error.into())),
    }
}

/// Stops the team's agents; returns those that are alive after that. If that fails, the team can be
/// used again.
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

/// Waits a moment for ended agents that still have a process: their lead was notified of their end.
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

/// Removes the members' worktrees that nothing was done in.
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
