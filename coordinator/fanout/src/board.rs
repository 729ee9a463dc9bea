//! A plan's tasks on the board: found by their content keys, made if they are missing or unusable.

use std::collections::{BTreeSet, HashMap};
use std::path::PathBuf;
use std::time::Duration;

use landing::{commit_of, discard, is_commit_checked};
use runs::Agents;
use serde_json::json;
use taskboard::{
    Board, Caller, NewTask, Reference, Snapshot, Status, Task, TaskFacts, TaskId, TaskResult,
};
use worktrees::{Slug, Trees};

use super::elsewhere;
use super::error::FanoutError;
use super::keep::life;
use super::plan::TaskIsolation;
use super::run::{MARK, failed_before, planned_as};
use super::task::{PlannedTask, Work, places};

/// Maximum number of proven tasks that are kept from earlier versions of the plan.
const MOST_OTHERS: usize = 1000;
/// The longest subject a board takes.
const MAX_SUBJECT: usize = 1000;
/// The file in which a team keeps the commits of its plan's proven tasks.
pub(super) const BUNDLE: &str = "proven.bundle";
/// The path that tasks in the repository itself claim, so that they run one after another.
const IN_PLACE: &str = ".ccb-in-place";

/// The tasks of a plan on the board.
#[derive(Debug)]
pub(super) struct Prepared {
    /// In the order of the plan; `None` for a task that is not to run.
    pub(super) ids: Vec<Option<TaskId>>,
    /// True for the tasks that were proven before.
    pub(super) cached: Vec<bool>,
}

impl Prepared {
    /// The place in the plan of a task on the board.
    pub(super) fn place(&self, id: TaskId) -> Option<usize> {
        self.ids.iter().position(|one| *one == Some(id))
    }
}

/// The requested state of the board.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wanted<'a> {
    /// The tasks of the plan.
    pub(super) tasks: &'a [PlannedTask],
    /// The tasks that are not to run, by their place.
    pub(super) without: &'a HashMap<usize, Option<String>>,
    /// True if no earlier result counts.
    pub(super) fresh: bool,
    /// The commit that tasks start from.
    pub(super) base: &'a str,
}

/// Puts the tasks on the board, except those that are not to run. Tasks that are proven for the
/// same content, or that an agent works on, are kept.
pub(super) fn prepare(
    agents: &Agents,
    trees: &Trees,
    wanted: Wanted<'_>,
) -> Result<Prepared, FanoutError> {
    agents.reconcile()?;
    let board = agents.board();
    let mut prepared = Prepared {
        ids: vec![None; wanted.tasks.len()],
        cached: vec![false; wanted.tasks.len()],
    };
    let (mut older, mut earlier) = (HashMap::new(), HashMap::new());
    if board.exists() {
        earlier = earlier_failures(board, trees)?;
        older = keep_useful(agents, board, trees, wanted, &mut prepared)?;
    }
    let new = create(board, wanted, &earlier, &mut prepared)?;
    take_over(agents, trees, wanted, &new, older, &mut prepared)?;
    Ok(prepared)
}

/// The number of earlier failures of a task, and the reason of the last one.
#[derive(Debug)]
struct Earlier {
    failures: usize,
    last: String,
}

/// Returns the failures of tasks that will run again, by key. The worktrees of those attempts go to
/// the trash: the next attempt replaces them.
fn earlier_failures(board: &Board, trees: &Trees) -> Result<HashMap<String, Earlier>, FanoutError> {
    let mut found = HashMap::new();
    for task in board.snapshot()?.tasks() {
        let Some((_, key)) = planned_as(task).filter(|_| task.parked().is_some()) else {
            continue;
        };
        for attempt in task.attempts() {
            let slug = Slug::new(&format!("agent-{}", life(&attempt.run).0)).ok();
            if let Some(entry) = slug.and_then(|slug| trees.get(&slug).ok())
                && let Err(error) = discard(trees, &entry)
            {
                tracing::info!(%error, "the worktree of a failed attempt stays");
            }
        }
        let last = task.attempts().pop().map(|last| last.why);
        let failures = task.failures() + failed_before(task).0;
        if let Some(last) = last {
            found.insert(key.to_owned(), Earlier { failures, last });
        }
    }
    Ok(found)
}

/// Keeps usable tasks; returns results that count but were made from another base, by key.
fn keep_useful(
    agents: &Agents,
    board: &Board,
    trees: &Trees,
    wanted: Wanted<'_>,
    prepared: &mut Prepared,
) -> Result<HashMap<String, TaskResult>, FanoutError> {
    let Wanted {
        tasks,
        without,
        fresh,
        base,
    } = wanted;
    let mut older = HashMap::new();
    let places: HashMap<&str, usize> = tasks
        .iter()
        .enumerate()
        .filter(|(at, _)| !without.contains_key(at) && !fresh)
        .map(|(at, task)| (task.key.as_str(), at))
        .collect();
    let snapshot = board.snapshot()?;
    bring_back(agents, trees, &snapshot);
    let mut others = Vec::new();
    for task in snapshot.tasks() {
        let place = planned_as(task).and_then(|(_, key)| places.get(key).copied());
        let place = place.filter(|at| prepared.ids[*at].is_none());
        let useful = match task.status {
            Status::Completed => is_proven(task, trees) && board.believes(task)?,
            Status::InProgress => true,
            Status::Pending => task.parked().is_none(),
        };
        let moved = place
            .filter(|at| useful && tasks[*at].has_inputs())
            .and_then(|at| Some((at, task.result()?)))
            .filter(|(_, result)| result.base.as_deref().is_some_and(|from| from != base));
        if let (Some((at, result)), Status::Completed) = (moved, task.status) {
            older.insert(tasks[at].key.clone(), result);
            drop_task(agents, board, task)?;
            continue;
        }
        match place.filter(|_| useful) {
            Some(at) => {
                prepared.ids[at] = Some(task.id);
                prepared.cached[at] = task.status == Status::Completed;
            }
            None if useful && task.status == Status::Completed && !fresh && place.is_none() => {
                others.push(task);
            }
            None => drop_task(agents, board, task)?,
        }
    }
    // The oldest are deleted first.
    let too_many = others.len().saturating_sub(MOST_OTHERS);
    for task in others.into_iter().take(too_many) {
        drop_task(agents, board, task)?;
    }
    Ok(older)
}

/// The file that keeps a plan's results besides the repository: a job that begins with a fresh
/// clone has the home of the last one, but not its commits.
pub(super) fn bundle(agents: &Agents) -> PathBuf {
    agents.runs_dir().with_file_name(BUNDLE)
}

/// Restores results that are not in this repository.
fn bring_back(agents: &Agents, trees: &Trees, snapshot: &Snapshot) {
    if agents.shared().is_some() {
        let tasks: Vec<Task> = snapshot.tasks().cloned().collect();
        elsewhere::obtain(agents, trees, &tasks);
        return;
    }
    let path = bundle(agents);
    let mut commits = snapshot.tasks().filter_map(commit_of);
    if !path.exists() || commits.all(|commit| trees.has_commit(&commit)) {
        return;
    }
    if let Err(error) = trees.load_pins(&path) {
        tracing::info!(%error, "earlier results are not taken over");
    }
}

/// True if a completed task has a proof that is still there.
pub(super) fn is_proven(task: &Task, trees: &Trees) -> bool {
    let Some(result) = task.result() else {
        return false;
    };
    let passed = match task.verify_command() {
        // A commit is proven by a check of the commit.
        Some(_) if result.commit.is_some() => is_commit_checked(&result),
        Some(_) => result.check_passed(),
        None => true,
    };
    passed && result.commit.is_none_or(|commit| trees.has_commit(&commit))
}

/// Removes a task from the board that is not wanted any more; its agent is stopped.
fn drop_task(agents: &Agents, board: &Board, task: &Task) -> Result<(), FanoutError> {
    let run = task.lease().and_then(|lease| lease.run);
    if let Some(run) = run.filter(|_| task.status == Status::InProgress) {
        let id = run.split('#').next().unwrap_or(&run);
        if let Ok(meta) = agents.run(id).meta() {
            let why = Some("its plan has changed".to_owned());
            let stopped = agents.stop(&meta, "the engine", why, None);
            if let Err(error) = stopped {
                tracing::info!(%error, "it was not running");
            }
            agents.run(id).wait_dead(Duration::from_secs(30)).ok();
        }
    }
    match board.delete(task.id, &engine()) {
        Ok(_) | Err(taskboard::BoardError::NotFound { .. }) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// The caller that prepares the board; it needs no approval.
pub(super) fn engine() -> Caller {
    Caller::forced("engine")
}

/// Completes new tasks that were proven for the same content in another place.
fn take_over(
    agents: &Agents,
    trees: &Trees,
    wanted: Wanted<'_>,
    new: &[usize],
    older: HashMap<String, TaskResult>,
    prepared: &mut Prepared,
) -> Result<(), FanoutError> {
    // A result that changes the repository itself must be made in each repository.
    let movable = |at: &&usize| wanted.tasks[**at].isolation == TaskIsolation::Worktree;
    let new: Vec<usize> = new.iter().filter(movable).copied().collect();
    if wanted.fresh || new.is_empty() {
        return Ok(());
    }
    let keys = new.iter().map(|at| wanted.tasks[*at].key.as_str());
    let mut found = elsewhere::proven(agents, trees, &keys.collect());
    found.extend(older);
    for at in new {
        let result = found.remove(&wanted.tasks[at].key);
        let result =
            result.and_then(|result| from_base(trees, result, wanted.base, &wanted.tasks[at]));
        if let (Some(result), Some(id)) = (result, prepared.ids[at]) {
            elsewhere::take_over(agents.board(), id, result)?;
            prepared.cached[at] = true;
        }
    }
    Ok(())
}

/// The result as if it had been made from `base`; `None` if that is not possible.
fn from_base(
    trees: &Trees,
    result: TaskResult,
    base: &str,
    task: &PlannedTask,
) -> Option<TaskResult> {
    let from = result.base.clone();
    let moved = from.as_deref().is_some_and(|from| from != base) && task.has_inputs();
    let (true, Some(from)) = (moved, from) else {
        return Some(result);
    };
    let commit = match (&result.commit, result.changed) {
        (Some(commit), Some(true)) => Some(trees.transplant(&from, commit, base)?),
        (Some(_), _) => Some(base.to_owned()),
        (None, _) => None,
    };
    Some(TaskResult {
        base: Some(base.to_owned()),
        commit,
        ..result
    })
}

/// Makes the missing tasks and the edges; returns the new tasks.
fn create(
    board: &Board,
    wanted: Wanted<'_>,
    earlier: &HashMap<String, Earlier>,
    prepared: &mut Prepared,
) -> Result<Vec<usize>, FanoutError> {
    let Wanted { tasks, without, .. } = wanted;
    let places = places(tasks);
    let old = prepared.ids.clone();
    let new: Vec<usize> = (0..tasks.len())
        .filter(|at| old[*at].is_none() && !without.contains_key(at))
        .collect();
    let batch: Vec<NewTask> = new
        .iter()
        .map(|at| {
            let on = tasks[*at].depends_on.iter();
            let on = on.filter_map(|id| Some((id, *places.get(id.as_str())?)));
            let reference = |(id, place): (&String, usize)| match old[place] {
                Some(id) => Reference::Id(id),
                None => Reference::Key(id.clone()),
            };
            NewTask {
                blocked_by: on.map(reference).collect(),
                ..as_task(&tasks[*at], earlier.get(&tasks[*at].key))
            }
        })
        .collect();
    for (at, made) in new.iter().zip(board.create(&batch, None)?) {
        prepared.ids[*at] = Some(made.id);
    }
    // A kept task may wait for one that was made again.
    let snapshot = board.snapshot()?;
    for (at, task) in tasks.iter().enumerate() {
        let Some(id) = old[at].filter(|_| !prepared.cached[at]) else {
            continue;
        };
        let there: BTreeSet<TaskId> = snapshot.blockers(id).into_iter().collect();
        let on = task.depends_on.iter();
        let on = on.filter_map(|id| prepared.ids[*places.get(id.as_str())?]);
        for blocker in on.filter(|blocker| !there.contains(blocker)) {
            board.block(blocker, id)?;
        }
    }
    Ok(new)
}

fn as_task(task: &PlannedTask, earlier: Option<&Earlier>) -> NewTask {
    let (run, description) = match &task.work {
        Work::Run(command) => (Some(command.clone()), String::new()),
        Work::Prompt(text) => (None, text.clone()),
    };
    let facts = TaskFacts {
        needs: None,
        priority: Some(task.priority),
        run,
        verify: task.verify.clone().map(Some),
        agent: task.agent.clone(),
        paths: Some(match task.isolation {
            TaskIsolation::Worktree => task.paths.clone(),
            TaskIsolation::None => vec![IN_PLACE.to_owned()],
        }),
    };
    let mut metadata = facts.into_metadata();
    let mut mark = json!({"id": task.id, "key": task.key});
    if let Some(earlier) = earlier {
        mark["failures"] = earlier.failures.into();
        mark["lastFailure"] = earlier.last.as_str().into();
    }
    metadata.insert(MARK.into(), mark);
    NewTask {
        key: Some(task.id.clone()),
        subject: task.subject.chars().take(MAX_SUBJECT).collect(),
        description,
        metadata,
        ..NewTask::default()
    }
}
