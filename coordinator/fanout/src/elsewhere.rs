//! Results that the same plan has proven in another place: another clone of the repository, or a
//! machine that had this home before. A content key contains everything that matters about a task,
//! and the place is not part of it.

use std::collections::{HashMap, HashSet};

use landing::commit_of;
use runs::Agents;
use runs::results::results_of;
use store::name::Name;
use taskboard::{Board, BoardOptions, Hooks, Status, Task, TaskId, TaskResult, Veto};
use worktrees::Trees;

use super::board::{BUNDLE, Prepared, engine, is_proven};
use super::error::FanoutError;
use super::follow::Halt;
use super::run::planned_as;

/// Results by the content keys of their tasks.
pub(super) fn proven(
    agents: &Agents,
    trees: &Trees,
    wanted: &HashSet<&str>,
) -> HashMap<String, TaskResult> {
    let mut found = HashMap::new();
    for team in places(agents) {
        let home = agents.home();
        if found.len() == wanted.len() || !home.list(&team).is_dir() {
            continue;
        }
        let board = Board::new(home, team.clone(), BoardOptions::default());
        let snapshot = match board.snapshot() {
            Ok(snapshot) => snapshot,
            Err(error) => {
                tracing::info!(%error, %team, "its results are not taken over");
                continue;
            }
        };
        let is_wanted = |task: &&Task| {
            let key = planned_as(task).map(|(_, key)| key);
            task.status == Status::Completed && key.is_some_and(|key| wanted.contains(key))
        };
        let tasks: Vec<&Task> = snapshot.tasks().filter(is_wanted).collect();
        let here = |task: &&Task| commit_of(task).is_none_or(|commit| trees.has_commit(&commit));
        let bundle = home.team(&team).join(BUNDLE);
        if !tasks.iter().all(here)
            && bundle.exists()
            && let Err(error) = trees.load_pins(&bundle)
        {
            tracing::info!(%error, %team, "its commits are not taken over");
        }
        for task in tasks.into_iter().filter(|task| is_proven(task, trees)) {
            if let (Some((_, key)), Some(result)) = (planned_as(task), task.result()) {
                found.insert(key.to_owned(), without_place(result));
            }
        }
    }
    found
}

/// Makes sure that the results of completed tasks are in this repository, whichever machine made
/// them; `false` if some are not.
pub(super) fn obtain(agents: &Agents, trees: &Trees, tasks: &[Task]) -> bool {
    let missing = |task: &&Task| {
        let done = task.status == Status::Completed;
        done && commit_of(task).is_some_and(|commit| !trees.has_commit(&commit))
    };
    let remote = agents.shared().and_then(|place| place.remote.as_ref());
    if let Some(remote) = remote
        && tasks.iter().any(|task| missing(&task))
        && let Err(error) = trees.obtain_all(remote, &results_of(agents.board().name().as_str()))
    {
        tracing::warn!(%error, "results of other machines are not taken over");
    }
    !tasks.iter().any(|task| missing(&task))
}

/// The same for the tasks of a plan at its end.
pub(super) fn bring_here(
    agents: &Agents,
    trees: &Trees,
    prepared: &Prepared,
    halt: &mut Halt,
) -> Result<(), FanoutError> {
    if agents.shared().is_none() {
        return Ok(());
    }
    let snapshot = agents.board().snapshot()?;
    let planned = prepared.ids.iter().flatten();
    let tasks = planned.filter_map(|id| snapshot.get(*id).cloned());
    if !obtain(agents, trees, &tasks.collect::<Vec<_>>()) {
        let words = "some results of other machines could not be fetched".to_owned();
        halt.words.get_or_insert(words);
    }
    Ok(())
}

/// The teams the plan has had: their names differ in the last part.
fn places(agents: &Agents) -> Vec<Name> {
    let own = agents.team_name().as_str();
    let Some((begin, _)) = own.rsplit_once('-') else {
        return Vec::new();
    };
    let entries = std::fs::read_dir(agents.home().teams());
    let names = entries.into_iter().flatten().flatten();
    let names = names.filter_map(|entry| entry.file_name().into_string().ok());
    let mut names: Vec<String> = names
        .filter(|name| {
            let rest = name
                .strip_prefix(begin)
                .and_then(|rest| rest.strip_prefix('-'));
            name != own && rest.is_some_and(|rest| rest.len() == 8)
        })
        .collect();
    names.sort();
    let names = names.iter().filter_map(|name| Name::new("team", name).ok());
    names.collect()
}

/// Drops the run and the worktree: the run is not one of this team, and its worktree is gone.
fn without_place(result: TaskResult) -> TaskResult {
    TaskResult {
        run: None,
        worktree: None,
        ..result
    }
}

/// Completes a task with a result that was found.
pub(super) fn take_over(board: &Board, id: TaskId, result: TaskResult) -> Result<(), FanoutError> {
    board.complete(id, &engine(), Some(&Found(result)))?;
    Ok(())
}

struct Found(TaskResult);

impl Hooks for Found {
    fn before_complete(&self, _: &Task) -> Result<Option<TaskResult>, Veto> {
        Ok(Some(self.0.clone()))
    }
}
