//! Workers that the lead starts itself, besides those the director starts for the board.
//!
//! Each worker has a task of its own that no list shows. So the rules for tasks hold for it: its
//! work is committed, checked and landed, its files are reserved while it runs, and a kill loses
//! nothing of it. The director gives such a task to no other agent; the lead decides whether a
//! failed worker resumes.

use landing::{Results, WORKER_OF, commit_of, is_workers, queued};
use runs::{AgentError, Agents, Prove};
use serde::Serialize;
use serde_json::Map;
use swarm::run::{FileRules, Meta, RunState};
use taskboard::{Board, Caller, NewTask, Status, Task, TaskFacts, TaskId, Update};
use worktrees::{Slug, TreeError, Trees};

use super::inputs::overlap;
use super::setup::Setup;

/// Metadata key: the task is kept out of lists.
const INTERNAL: &str = "_internal";

/// The task of a worker, as the lead describes it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WorkerTask {
    /// The subject in a few words.
    pub subject: String,
    /// The agent that is notified.
    pub lead: String,
    /// The only files it changes.
    pub paths: Vec<String>,
    /// The command that must succeed before the task counts as done.
    pub verify: Option<String>,
}

impl WorkerTask {
    /// Creates the task on the board.
    pub fn create(&self, board: &Board) -> Result<TaskId, AgentError> {
        let facts = TaskFacts {
            paths: (!self.paths.is_empty()).then(|| self.paths.clone()),
            verify: self.verify.clone().map(Some),
            ..TaskFacts::default()
        };
        let mut metadata = Map::new();
        metadata.insert(INTERNAL.into(), true.into());
        metadata.insert(WORKER_OF.into(), self.lead.as_str().into());
        facts.put_into(&mut metadata);
        let new = NewTask {
            subject: self.subject.clone(),
            metadata,
            ..NewTask::default()
        };
        let created = board.create(&[new], None)?;
        let first = created.first().map(|task| task.id);
        first.ok_or_else(|| AgentError::Invalid("the worker's task was not created".into()))
    }

    /// The required proof of the task.
    pub fn prove(&self, id: TaskId, board: &Board, protect: &[String]) -> Prove {
        Prove {
            verify: self.verify.clone(),
            commit: Some(format!("{}\n\nTask: {}#{id}\n", self.subject, board.name())),
            // The lead decides whether the task is retried.
            max_attempts: usize::MAX,
            files: FileRules {
                paths: self.paths.clone(),
                protect: protect.to_vec(),
            },
            ..Prove::default()
        }
    }

    /// Reopens the completed task of a worker that is about to resume.
    pub fn reopen(meta: &Meta, board: &Board) -> Result<(), AgentError> {
        let Some(id) = meta.task_id.as_ref().and_then(|id| id.parse().ok()) else {
            return Ok(());
        };
        let done = board
            .get(id)
            .is_ok_and(|task| is_workers(&task) && task.status == Status::Completed);
        if done {
            let update = Update {
                status: Some(Status::Pending),
                ..Update::default()
            };
            let caller = Caller::forced("engine");
            board.update(id, &update, &caller, None)?;
        }
        Ok(())
    }
}

/// The task that keeps a worker from changing `paths` now, if there is one: an agent works on it,
/// or will as soon as a slot is free.
pub fn may_begin(paths: &[String], board: &Board) -> Result<Option<Task>, AgentError> {
    if paths.is_empty() || !board.exists() {
        return Ok(None);
    }
    let snapshot = board.snapshot()?;
    let in_the_way = |task: &&Task| {
        let begun = task.status == Status::InProgress;
        let next = !task.is_internal() && snapshot.is_ready(task);
        (begun || next) && overlap(&task.paths(), paths)
    };
    let found = snapshot.tasks().find(in_the_way).cloned();
    Ok(found)
}

/// The base of a worker that is to see all finished work: the branch, and the results that have
/// still to land. If those conflict, the branch alone.
pub fn base_of_all(into: &str, agents: &Agents) -> Result<String, AgentError> {
    let trees = agents.trees()?;
    let tip = trees.tip_of(into)?;
    let board = agents.board();
    if !board.exists() {
        return Ok(tip);
    }
    let snapshot = board.snapshot()?;
    let results = Results::new(agents, &trees);
    let waiting = snapshot
        .tasks()
        .filter(|task| results.queued(task).is_some());
    let commits: Vec<String> = waiting.filter_map(commit_of).collect();
    match trees.compose(&tip, &commits) {
        Ok(all) => Ok(all),
        Err(TreeError::Conflicts { .. }) => Ok(tip),
        Err(error) => Err(error.into()),
    }
}

/// The reaction to a lead worker's task that others changed.
pub(super) enum Aside {
    /// A worker works on it.
    AtWork(Box<Meta>),
    /// The task is done, and may have to land.
    Done,
    Nothing,
}

impl Setup {
    pub(super) fn aside(&self, id: TaskId) -> Aside {
        let Some(task) = self.board().get(id).ok().filter(is_workers) else {
            return Aside::Nothing;
        };
        if task.status == Status::Completed {
            return Aside::Done;
        }
        let run = match (task.status, task.lease()) {
            (Status::InProgress, Some(lease)) => lease.run,
            _ => return Aside::Nothing,
        };
        let meta = run.and_then(|id| {
            let run = self.agents.run(&id);
            run.meta().ok().filter(|_| run.is_alive().unwrap_or(false))
        });
        match meta {
            Some(meta) if meta.launch.prove.is_some() => Aside::AtWork(Box::new(meta)),
            _ => Aside::Nothing,
        }
    }
}

/// A worktree whose work is on no other branch and does not wait to land.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LeftTree {
    /// The agent it belongs to.
    pub agent: String,
    /// The description of the agent's work.
    pub description: String,
    /// The worktree's name.
    pub worktree: String,
    /// A summary of its changes, or why it is kept.
    pub why: String,
    /// True if a person or the lead stopped the agent: then the worktree is kept on purpose.
    #[serde(skip)]
    pub stopped: bool,
}

/// The worktrees with changes that ended agents of the team left and that do not land
/// automatically: those of failed, stopped or killed agents.
pub fn left_trees(agents: &Agents) -> Result<Vec<LeftTree>, AgentError> {
    let Ok(trees) = agents.trees() else {
        return Ok(Vec::new());
    };
    let board = agents.board();
    let waiting = waiting(agents, &trees)?;
    let (listed, _) = agents.list()?;
    let mut left = Vec::new();
    for meta in listed
        .into_iter()
        .filter(|one| !one.alive)
        .map(|one| one.meta)
    {
        let Some(tree) = &meta.worktree else {
            continue;
        };
        let task = meta.task_id.as_ref().and_then(|id| id.parse().ok());
        let task = task.and_then(|id| board.get(id).ok());
        if task.is_some_and(|task| task.status == Status::Completed) {
            // The work landed, or another attempt replaced it.
            continue;
        }
        let kept = tree.outcome.as_ref().filter(|outcome| outcome.kept);
        let (Some(outcome), false) = (kept, waiting.contains(&tree.name)) else {
            continue;
        };
        let Ok(slug) = Slug::new(&tree.name) else {
            continue;
        };
        let Ok(entry) = trees.get(&slug) else {
            continue;
        };
        let landed = entry
            .merged
            .filter(|landed| !landed.pending && !landed.undone);
        let nothing_new = |head: &str| matches!(trees.unsealed(&slug, head), Ok(None));
        if landed.is_none_or(|landed| !nothing_new(&landed.head)) {
            left.push(LeftTree {
                agent: meta.agent_id.clone(),
                description: meta.description.clone(),
                worktree: tree.name.clone(),
                why: outcome.why.clone(),
                stopped: meta.state == RunState::Killed,
            });
        }
    }
    Ok(left)
}

/// The worktrees of completed tasks that have not landed.
fn waiting(agents: &Agents, trees: &Trees) -> Result<Vec<String>, AgentError> {
    let board = agents.board();
    if !board.exists() {
        return Ok(Vec::new());
    }
    let snapshot = board.snapshot()?;
    let shared = agents.shared().is_some();
    let waiting = snapshot
        .tasks()
        .filter(|task| queued(task, trees, shared).is_some());
    Ok(waiting.filter_map(|task| task.result()?.worktree).collect())
}
