//! The landing state of the work on a task: none, ready to land, landed, undone.

use std::collections::BTreeMap;

use runs::Agents;
use serde::Serialize;
use store::Failure;
use taskboard::{Board, Snapshot, Status, Task, TaskId};
use worktrees::{Entry, Landing, Slug, Trees};

use super::queue::{Results, is_on_branch};
use super::shared::has_landed;

/// Finished work on a task that is on no branch but its own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Unlanded {
    /// The task.
    pub task: TaskId,
    /// The list it is on.
    pub list: String,
    /// The subject of the task.
    pub subject: String,
    /// The owner of the task.
    pub owner: Option<String>,
    /// The worktree with the work.
    pub worktree: String,
    /// The commit the work started from.
    pub base: Option<String>,
    /// The commit with all of it.
    pub commit: Option<String>,
    /// Its check.
    pub check: Option<String>,
    /// The reason why it is unproven; `None` if a check passed.
    pub unchecked: Option<String>,
    /// The files it changes.
    pub files: Vec<String>,
    /// True if it landed, and that was undone.
    pub undone: bool,
}

/// The landing state of the work on a task, with details.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum WorkState {
    /// It is done and waits to land.
    Waiting(Box<Unlanded>),
    /// It is on the branch that this landing names.
    Landed(Box<Landing>),
    /// Another machine landed it on this branch.
    LandedElsewhere(String),
    /// It landed, the landing was undone, and the worktree is gone.
    Undone(Box<Landing>),
    /// The task is done, and has no changes to land.
    Nothing,
    /// The task is not done.
    Open,
}

/// The landing state of the work on a task, in one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LandState {
    /// The task is not done.
    NotDone,
    /// It has no changes to land.
    Nothing,
    /// It is on no branch but its own.
    Waiting,
    /// It is on the branch.
    Landed,
    /// It landed, and that was undone.
    Undone,
}

/// The landing state of the work on a task.
pub(super) fn state_of(task: &Task, results: Results<'_>) -> Result<WorkState, Failure> {
    if task.status != Status::Completed {
        return Ok(WorkState::Open);
    }
    if let Some(work) = waiting(task, results) {
        return Ok(WorkState::Waiting(Box::new(work)));
    }
    let Results { list, trees, .. } = results;
    let name = format!("{list}#{}", task.id);
    let of_it = |landing: &Landing| landing.task.as_deref() == Some(name.as_str());
    let last = trees.landings()?.into_iter().rev().find(of_it);
    Ok(match last {
        Some(landing) if landing.stands() => WorkState::Landed(Box::new(landing)),
        Some(landing) => WorkState::Undone(Box::new(landing)),
        None => match task
            .result()
            .filter(has_landed)
            .and_then(|result| result.landed)
        {
            Some(landed) => WorkState::LandedElsewhere(landed.into),
            None => WorkState::Nothing,
        },
    })
}

/// The landing state of the work on every task of a board, from the records of worktrees and
/// landings: reads each file once and runs no git command. If several machines share the board, the
/// work may be on another machine.
pub fn standings(
    board: &Snapshot,
    list: &str,
    trees: &Trees,
    shared: bool,
) -> Result<BTreeMap<TaskId, LandState>, Failure> {
    let entries = trees.list()?;
    let landings = trees.recorded_landings()?;
    let of_task = |task: &Task| -> LandState {
        let result = task.result().unwrap_or_default();
        if task.status != Status::Completed {
            return LandState::NotDone;
        }
        if result.undone == Some(true) {
            return LandState::Undone;
        }
        let name = result.worktree.as_deref().unwrap_or_default();
        let entry = entries
            .iter()
            .rfind(|entry| entry.name == name && entry.is_live());
        if let Some(entry) = entry.filter(|_| result.changed == Some(true)) {
            let landed = entry.merged.as_ref();
            return match landed.is_some_and(|landed| is_on_branch(landed, &result)) {
                true => LandState::Landed,
                false => LandState::Waiting,
            };
        }
        let name = format!("{list}#{}", task.id);
        let mut last = landings.iter().rev();
        match last.find(|one| one.task.as_ref() == Some(&name)) {
            Some(landing) if landing.stands() => LandState::Landed,
            Some(_) => LandState::Undone,
            None if has_landed(&result) => LandState::Landed,
            None if shared && result.changed == Some(true) => LandState::Waiting,
            None => LandState::Nothing,
        }
    };
    let tasks = board.tasks().map(|task| (task.id, of_task(task)));
    Ok(tasks.collect())
}

/// The work on a task that is to land, or why there is none.
pub(super) fn to_land(task: &Task, results: Results<'_>) -> Result<Unlanded, Failure> {
    let (id, list) = (task.id, results.list);
    let refused = |kind, message: String| Failure::refused(kind, message);
    Err(match state_of(task, results)? {
        WorkState::Waiting(work) => return Ok(*work),
        WorkState::Landed(landing) => refused(
            "landed",
            format!("task {id} is on {} already", landing.into),
        )
        .with_hint(format!("`ccb undo L{}` takes it back", landing.id)),
        WorkState::LandedElsewhere(into) => refused(
            "landed",
            format!("task {id} is on {into} already: another machine landed it"),
        ),
        WorkState::Undone(_) => refused(
            "nothing_to_land",
            format!("task {id}: its landing was undone, and its worktree is gone"),
        )
        .with_hint(format!(
            "`ccb --list {list} reject {id} --feedback TEXT` has it done again"
        )),
        WorkState::Nothing => refused(
            "nothing_to_land",
            format!("task {id} changed nothing that could land"),
        ),
        WorkState::Open => refused("not_done", format!("task {id} is not done")).with_hint(
            format!("`ccb --list {list} task show {id}` says how it stands"),
        ),
    })
}

/// The finished work on the list of `agents` that has not landed, in the order of the tasks. It
/// includes work whose landing was undone.
pub fn candidates(agents: &Agents) -> Result<Vec<Unlanded>, Failure> {
    let board = agents.board();
    if !board.exists() {
        return Ok(Vec::new());
    }
    let trees = agents.trees()?;
    of_board(board, Results::new(agents, &trees))
}

/// The same for every list that has worktrees in this repository.
pub fn candidates_everywhere(agents: &Agents) -> Result<Vec<Unlanded>, Failure> {
    let trees = agents.trees()?;
    let mut lists: BTreeMap<String, Board> = BTreeMap::new();
    // The work of other machines has no worktree here.
    let own = agents.board().name().to_string();
    if let Some(board) = agents.shared().and_then(|_| agents.board_of(&own)) {
        lists.insert(own, board);
    }
    for entry in trees.list()?.iter().filter(|entry| entry.is_live()) {
        if let Some(list) = list_of(entry)
            && !lists.contains_key(list)
            && let Some(board) = agents.board_of(list)
        {
            lists.insert(list.to_owned(), board);
        }
    }
    let mut all = Vec::new();
    for board in lists.values() {
        let results = Results {
            list: board.name().as_str(),
            ..Results::new(agents, &trees)
        };
        all.extend(of_board(board, results)?);
    }
    Ok(all)
}

fn list_of(entry: &Entry) -> Option<&str> {
    let made_for = entry.made_for().map(|(list, _)| list);
    entry.task_list.as_deref().or(made_for)
}

fn of_board(board: &Board, results: Results<'_>) -> Result<Vec<Unlanded>, Failure> {
    let snapshot = board.snapshot()?;
    let found = snapshot.tasks().filter_map(|task| waiting(task, results));
    Ok(found.collect())
}

/// The work on a task, if it waits to land.
fn waiting(task: &Task, results: Results<'_>) -> Option<Unlanded> {
    let Results { list, trees, .. } = results;
    let result = task.result()?;
    let undone = result.undone == Some(true);
    let name = result.worktree.clone()?;
    let files: Vec<String> = match undone {
        false => results.queued(task)?.files.into_iter().collect(),
        true => {
            let done = task.status == Status::Completed;
            let there = || trees.get(&Slug::new(&name).ok()?).ok();
            done.then(there).flatten()?;
            let (base, commit) = (result.base.as_ref()?, result.commit.as_ref()?);
            trees.changed_paths(base, commit).unwrap_or_default()
        }
    };
    Some(Unlanded {
        task: task.id,
        list: list.to_owned(),
        subject: task.subject.clone(),
        owner: task.owner.clone(),
        worktree: name,
        base: result.base,
        commit: result.commit,
        check: task.verify_command().map(str::to_owned),
        unchecked: task.unchecked().map(|why| why.to_string()),
        files,
        undone,
    })
}
