//! Worktrees that are not needed any more: of work that landed, and of attempts that failed.

use std::collections::BTreeMap;

use runs::{AgentError, Agents};
use serde::Serialize;
use taskboard::{Board, Status, Task, TaskId};
use worktrees::{Entry, RemoveRequest, Slug, TreeError, Trees};

use super::lander::Lander;
use super::queue::{Results, commit_of, queued};

/// A worktree of an attempt at a task whose result came from another attempt and is on its branch.
#[derive(Debug)]
pub struct Superseded {
    /// The worktree.
    pub entry: Entry,
    /// The task.
    pub task: TaskId,
    /// The list the task is on.
    pub list: String,
}

/// The worktrees of failed attempts at tasks that are done and have landed. Their work is
/// superseded; they go to the trash, from which a person can restore them.
pub fn superseded(agents: &Agents) -> Result<Vec<Superseded>, AgentError> {
    let trees = agents.trees()?;
    let live = trees.list()?.into_iter().filter(Entry::is_live);
    let candidates: Vec<(Entry, String, TaskId)> = live
        .filter_map(|entry| {
            let (list, id) = entry.made_for()?;
            let (list, id) = (list.to_owned(), id.parse().ok()?);
            Some((entry, list, id))
        })
        .collect();
    let mut boards: BTreeMap<String, Option<Board>> = BTreeMap::new();
    let mut found = Vec::new();
    for (entry, list, id) in candidates {
        let board = boards
            .entry(list.clone())
            .or_insert_with(|| agents.board_of(&list));
        let Some(task) = board.as_ref().and_then(|board| board.get(id).ok()) else {
            continue;
        };
        if is_superseded(&entry, &task, &list, Results::new(agents, &trees)) {
            found.push(Superseded {
                entry,
                task: id,
                list,
            });
        }
    }
    Ok(found)
}

/// A worktree that was made for a task of the team and is still there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct StayingTree {
    /// Its name.
    pub worktree: String,
    /// The task.
    pub task: TaskId,
    /// The reason why it is kept.
    pub why: String,
}

/// The worktrees of the team's tasks that are still there, and why.
pub fn staying_trees(agents: &Agents) -> Result<Vec<StayingTree>, AgentError> {
    let board = agents.board();
    let Ok(trees) = agents.trees() else {
        return Ok(Vec::new());
    };
    if !board.exists() {
        return Ok(Vec::new());
    }
    let shared = agents.shared().is_some();
    let mut staying = Vec::new();
    for entry in trees.list()?.iter().filter(|entry| entry.is_live()) {
        let made_for = entry.made_for();
        let ours = made_for.filter(|(list, _)| *list == board.name().as_str());
        let Some(id) = ours.and_then(|(_, id)| id.parse::<TaskId>().ok()) else {
            continue;
        };
        let why = match board.get(id) {
            Err(_) => "its task is gone".to_owned(),
            Ok(task) if task.status == Status::Completed => match queued(&task, &trees, shared) {
                Some(_) => "its work has not landed".to_owned(),
                None => trees.changes_of(entry).describe(),
            },
            Ok(task) if task.parked().is_some() => "its task is parked".to_owned(),
            Ok(_) => "its task is not done".to_owned(),
        };
        staying.push(StayingTree {
            worktree: entry.name.clone(),
            task: id,
            why,
        });
    }
    Ok(staying)
}

/// True if the worktree is of a failed attempt at a task that is done for good.
fn is_superseded(entry: &Entry, task: &Task, list: &str, results: Results<'_>) -> bool {
    let its_own = task.result().and_then(|result| result.worktree) == Some(entry.name.clone());
    // Another task may use it since.
    let bound =
        |to: &String| *to != task.id.to_string() || entry.task_list.as_deref() != Some(list);
    let elsewhere = entry.task_id.as_ref().is_some_and(bound);
    let done = task.status == Status::Completed && !task.is_reported();
    done && !its_own
        && !elsewhere
        && queued(task, results.trees, results.shared.is_some()).is_none()
}

impl Lander<'_> {
    /// Removes the worktree of work that has just landed, and those of earlier attempts. A worktree
    /// in use is kept and tried again at the end.
    pub(crate) fn put_away_all(&self, trees: &Trees, slug: &Slug, task: &Task, into: &str) {
        if let Err(error) = self.put_away(trees, slug, task, into) {
            tracing::info!(%error, tree = %slug, "the tree stays for now");
        }
        for error in put_away_superseded(self.agents, Some(task.id)) {
            tracing::info!(error, "a tree of an earlier attempt stays for now");
        }
    }

    fn put_away(
        &self,
        trees: &Trees,
        slug: &Slug,
        task: &Task,
        into: &str,
    ) -> Result<(), TreeError> {
        // All of it is on the branch, with or without a landing of its own: then nothing is lost.
        let on_branch = match commit_of(task) {
            Some(commit) => {
                let tip = trees.tip_of(into)?;
                trees.unsealed(slug, &commit)?.is_none() && trees.contains(&tip, &commit)?
            }
            None => false,
        };
        remove(self.agents, trees, slug, task, on_branch)
    }

    /// Removes the worktrees of work that landed but that were in use then, or whose director was
    /// killed, and of failed attempts. Returns those that are kept although they could go, with the
    /// reasons.
    pub fn put_away_landed(&self, into: &str) -> Result<Vec<String>, AgentError> {
        if !self.agents.board().exists() {
            return Ok(Vec::new());
        }
        let trees = self.agents.trees()?;
        let mut stay = Vec::new();
        // Removals that a killed process began come first.
        if let Err(error) = trees.sweep() {
            stay.push(format!("a worktree is left half done: {error}"));
        }
        for task in self.agents.board().snapshot()?.tasks() {
            let name = task.result().and_then(|result| result.worktree);
            let Some(slug) = name.and_then(|name| Slug::new(&name).ok()) else {
                continue;
            };
            if task.status != Status::Completed || trees.get(&slug).is_err() {
                continue;
            }
            match self.put_away(&trees, &slug, task, into) {
                // A worktree with work that has not landed is kept.
                Ok(()) | Err(TreeError::HasChanges { .. } | TreeError::NotFound { .. }) => {}
                Err(error) => stay.push(format!(
                    "worktree {slug} of task {} stays: {error}",
                    task.id
                )),
            }
        }
        stay.extend(put_away_superseded(self.agents, None));
        Ok(stay)
    }
}

/// Removes the worktree of a completed task whose result is at the remote: no part of it is only
/// here.
pub fn put_away_sent(agents: &Agents, id: TaskId) -> Result<(), AgentError> {
    let trees = agents.trees()?;
    let task = agents.board().get(id)?;
    let result = task.result().unwrap_or_default();
    let sent = agents.shared().is_some_and(|place| place.remote.is_some());
    let (Some(name), Some(commit), true) = (&result.worktree, &result.commit, sent) else {
        return Ok(());
    };
    let slug = Slug::new(name)?;
    if task.status == Status::Completed && trees.unsealed(&slug, commit)?.is_none() {
        remove(agents, &trees, &slug, &task, true)?;
    }
    Ok(())
}

/// Removes the worktree of a task; with `discard` also if its commits are on no branch here.
fn remove(
    agents: &Agents,
    trees: &Trees,
    slug: &Slug,
    task: &Task,
    discard: bool,
) -> Result<(), TreeError> {
    let request = RemoveRequest {
        discard,
        ..RemoveRequest::default()
    };
    let removed = trees.remove(slug, &request)?;
    let board = agents.board();
    board.unbind_worktree(task.id, slug.as_str()).ok();
    trees.forget_task(&removed.entry).ok();
    Ok(())
}

/// Moves worktrees of superseded attempts into the trash: of one task of the team, or of all.
/// Returns those that are kept although they could go, with the reasons.
pub fn put_away_superseded(agents: &Agents, only: Option<TaskId>) -> Vec<String> {
    let found = agents
        .trees()
        .and_then(|trees| Ok((superseded(agents)?, trees)));
    let (found, trees) = match found {
        Ok(found) => found,
        Err(error) => return vec![error.to_string()],
    };
    let list = agents.board().name().as_str();
    let mut stay = Vec::new();
    for one in found {
        if one.list != list || only.is_some_and(|id| id != one.task) {
            continue;
        }
        if let Err(error) = discard(&trees, &one.entry) {
            let (name, task) = (&one.entry.name, one.task);
            stay.push(format!("worktree {name} of task {task} stays: {error}"));
        }
    }
    stay
}

/// Moves a worktree into the trash with all its files: a person can restore it from there.
pub fn discard(trees: &Trees, entry: &Entry) -> Result<(), TreeError> {
    let request = RemoveRequest {
        discard: true,
        ..RemoveRequest::default()
    };
    match trees.remove(&Slug::new(&entry.name)?, &request) {
        Ok(_) | Err(TreeError::NotFound { .. }) => Ok(()),
        Err(error) => Err(error),
    }
}
