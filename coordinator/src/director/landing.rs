//! Getting what was done for tasks onto a branch, one task after the other.
//!
//! The tree of a completed task and the task itself say everything that has to be known, so a
//! landing that was cut short is found again at the next start.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::AtomicBool;

use taskboard::{NewTask, Status, Task, TaskFacts, TaskId};
use worktrees::{AfterCheck, Check, MergeRequest, MergeStrategy, SetUp, Slug, TreeError, Trees};

use super::base::is_commit_checked;
use super::lead_workers::is_workers;
use super::setup::Setup;
use crate::run::{AgentError, Agents};

/// Where finished work goes.
#[derive(Debug, Clone)]
pub(crate) struct Landings {
    pub into: String,
    /// What the branch gets.
    pub strategy: MergeStrategy,
    /// Something that has to pass on every merged result, besides the task's own check.
    pub check: Option<String>,
    /// What a tree gets in which a check runs.
    pub set_up: SetUp,
    pub conflicts_become_tasks: bool,
}

/// What became of a task's work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Landing {
    pub(super) task: TaskId,
    pub(super) outcome: Landed,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Landed {
    /// The branch stands here now.
    At(String),
    /// There was nothing to land.
    Nothing,
    /// Both sides changed these files; this task is to put it right.
    Conflict(Vec<String>, Option<TaskId>),
    /// The result did not pass; the task is open again.
    Rejected(String),
    /// It is not on the branch, and why.
    Left(String),
    /// Something was killed on the way, or could not be read or written: it is tried again.
    Hindered(String),
}

/// What is known of a task that waits to land.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Queued {
    pub(super) task: TaskId,
    pub(super) blocked_by: Vec<TaskId>,
    pub(super) files: BTreeSet<String>,
    /// What it was about.
    pub(super) paths: Vec<String>,
}

/// Which of those that wait lands first: nothing before what it builds on; then the one that
/// shares files with the fewest others, since most of the rest stays as it was checked.
/// One that `rests` waits, and so does what builds on it.
pub(super) fn next_to_land(
    queue: &BTreeMap<TaskId, Queued>,
    rests: &BTreeSet<TaskId>,
) -> Option<TaskId> {
    let mut awake = queue.values().filter(|one| !rests.contains(&one.task));
    let free = awake
        .clone()
        .filter(|one| !one.blocked_by.iter().any(|id| queue.contains_key(id)));
    let shared = |one: &Queued| {
        let others = queue.values().filter(|other| other.task != one.task);
        others
            .filter(|other| !other.files.is_disjoint(&one.files))
            .count()
    };
    let best = free.min_by_key(|one| (shared(one), one.task));
    // A cycle, which only other tools can make, must not keep everything.
    let best = best.or_else(|| awake.next().filter(|_| rests.is_empty()));
    best.map(|one| one.task)
}

/// The completed tasks of a team whose work is on no branch but their own.
pub(crate) fn unlanded(agents: &Agents) -> Result<Vec<TaskId>, AgentError> {
    let board = agents.board();
    if !board.dir().is_dir() {
        return Ok(Vec::new());
    }
    let trees = agents.trees()?;
    let snapshot = board.snapshot()?;
    let waiting = snapshot.tasks().filter_map(|task| queued(task, &trees));
    Ok(waiting.map(|queued| queued.task).collect())
}

/// Under which a task to solve a conflict says whose.
const CONFLICT_OF: &str = "conflictOf";

/// The tree whose conflict this task is to solve.
fn conflict_of(task: &Task) -> Option<&str> {
    task.metadata.as_ref()?.get(CONFLICT_OF)?.as_str()
}

/// Whether the task was made to solve a conflict.
pub(crate) fn is_conflict(task: &Task) -> bool {
    conflict_of(task).is_some()
}

/// What waits to land of a task, if something does.
pub(super) fn queued(task: &Task, trees: &Trees) -> Option<Queued> {
    let result = task.result()?;
    if task.status != Status::Completed || result.changed != Some(true) {
        return None;
    }
    let slug = Slug::new(&result.worktree?).ok()?;
    let entry = trees.get(&slug).ok()?;
    // Its agent may have gone on since something of it landed.
    let is_on_branch = |landed: &worktrees::LandingRecord| {
        !landed.pending && result.commit.as_ref().is_none_or(|c| *c == landed.head)
    };
    if entry.merged.as_ref().is_some_and(is_on_branch) {
        return None;
    }
    let files = match (&result.base, &result.commit) {
        (Some(base), Some(commit)) => trees.changed_paths(base, commit).unwrap_or_default(),
        _ => Vec::new(),
    };
    Some(Queued {
        task: task.id,
        blocked_by: task.blocked_by.clone(),
        files: files.into_iter().collect(),
        paths: task.paths(),
    })
}

impl Setup {
    /// Lands the work on one task.
    pub(super) fn land(&self, id: TaskId, landings: &Landings, stop: &AtomicBool) -> Landing {
        let outcome = match self.try_landing(id, landings, stop) {
            Ok(outcome) => outcome,
            Err(error) if error.is_passing() => Landed::Hindered(error.to_string()),
            Err(error) => Landed::Left(error.to_string()),
        };
        Landing { task: id, outcome }
    }

    fn try_landing(
        &self,
        id: TaskId,
        landings: &Landings,
        stop: &AtomicBool,
    ) -> Result<Landed, AgentError> {
        let task = self.board().get(id)?;
        let result = task.result().unwrap_or_default();
        let Some(name) = &result.worktree else {
            return Ok(Landed::Nothing);
        };
        let slug = Slug::new(name)?;
        let trees = self.agents.trees()?;
        // Checked already if the result has the files of the commit the check has passed on, and
        // that is the director's own word.
        let verify = self.board().check_of(&task)?;
        let passed = is_commit_checked(&result) && self.board().believes(&task)?;
        let proven = result.commit.filter(|_| passed && landings.check.is_none());
        let commands = [verify.as_deref(), landings.check.as_deref()];
        let command: Vec<&str> = commands.into_iter().flatten().collect();
        let check = (!command.is_empty()).then(|| Check {
            command: command
                .iter()
                .map(|part| format!("( {part}\n)"))
                .collect::<Vec<_>>()
                .join(" && "),
            timeout: self.verify_timeout,
            set_up: landings.set_up.clone(),
            after: AfterCheck::Keep,
            stop,
        });
        let request = MergeRequest {
            into: Some(landings.into.clone()),
            strategy: landings.strategy,
            message: None,
            check,
            proven,
            dry_run: false,
        };
        match trees.merge(&slug, &request) {
            Ok(merged) => {
                // A worker may be spoken to again at any moment; its tree goes at the end.
                if !is_workers(&task) {
                    self.put_away_all(&trees, &slug, &task, &landings.into);
                }
                Ok(Landed::At(merged.after))
            }
            Err(TreeError::Conflicts { files, .. }) => {
                let became = match landings.conflicts_become_tasks {
                    true => Some(self.conflict_task(&task, &slug, &files, landings)?),
                    false => None,
                };
                Ok(Landed::Conflict(files, became))
            }
            // Whoever killed it said nothing about the result.
            Err(error @ TreeError::CheckFailed { killed: true, .. }) => {
                Ok(Landed::Hindered(error.to_string()))
            }
            Err(TreeError::CheckFailed { how, log, .. }) => {
                let why = rejection(&landings.into, &how, &log);
                let landing = format!("landing-{}", uuid::Uuid::new_v4());
                self.take_back(task.id, landing, "rejected", &why)?;
                Ok(Landed::Rejected(why))
            }
            Err(error) if error.is_passing() => Ok(Landed::Hindered(error.to_string())),
            Err(error) => Ok(Landed::Left(error.to_string())),
        }
    }

    /// A task to bring two pieces of work together, made once.
    fn conflict_task(
        &self,
        task: &Task,
        slug: &Slug,
        files: &[String],
        landings: &Landings,
    ) -> Result<TaskId, AgentError> {
        let key = format!("{slug}");
        let snapshot = self.board().snapshot()?;
        let made = snapshot
            .tasks()
            .find(|other| conflict_of(other) == Some(key.as_str()));
        if let Some(made) = made {
            return Ok(made.id);
        }
        let branch = slug.branch();
        let into = &landings.into;
        let description = format!(
            "Task #{} (\"{}\") is done on branch {branch}, but {into} has changed the same \
             lines since. Both sides are right by themselves; what is wanted is a result that \
             does what both were meant to do.\n\nFiles:\n{}\n\nIn your working tree, which is \
             at {into}, run `git merge {branch}`, resolve the conflicts, and commit. Look at \
             both sides first: `git log -p {into}..{branch}` and `git log -p {branch}..{into}`. \
             Do not drop either.",
            task.id,
            task.subject,
            files
                .iter()
                .map(|file| format!("- {file}"))
                .collect::<Vec<_>>()
                .join("\n"),
        );
        let facts = TaskFacts {
            paths: Some(files.to_vec()),
            priority: Some(task.priority().saturating_add(1)),
            verify: self.board().check_of(task)?.map(Some),
            ..TaskFacts::default()
        };
        let mut metadata = facts.into_metadata();
        metadata.insert(CONFLICT_OF.into(), key.into());
        let new = NewTask {
            subject: format!("Bring {branch} and {into} together"),
            description,
            metadata,
            ..NewTask::default()
        };
        let created = self.board().create(&[new], None)?;
        let first = created.first().map(|task| task.id);
        first.ok_or_else(|| AgentError::Invalid("the conflict's task was not created".into()))
    }
}

fn rejection(into: &str, how: &str, log: &std::path::Path) -> String {
    let printed = store::log::tail(log, 4096).unwrap_or_default();
    format!(
        "together with what is on {into} the check failed ({how}):\n{}",
        printed.trim_end()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_built_on_lands_first_then_what_touches_least() {
        let id = |number| TaskId::new(number).unwrap();
        let queue = |all: &[(u64, &[u64], &str)]| -> BTreeMap<TaskId, Queued> {
            let one = |(number, blocked_by, files): &(u64, &[u64], &str)| Queued {
                task: id(*number),
                blocked_by: blocked_by.iter().map(|number| id(*number)).collect(),
                files: files.split_whitespace().map(str::to_owned).collect(),
                paths: Vec::new(),
            };
            all.iter().map(|it| (id(it.0), one(it))).collect()
        };
        let none = BTreeSet::new();
        let next = |all: &[(u64, &[u64], &str)]| {
            let next = next_to_land(&queue(all), &none);
            next.map(TaskId::get)
        };
        assert_eq!(next(&[]), None);
        assert_eq!(next(&[(1, &[2], "a"), (2, &[], "a")]), Some(2));
        assert_eq!(
            next(&[(1, &[], "a b"), (2, &[], "a"), (3, &[], "c")]),
            Some(3)
        );
        assert_eq!(next(&[(1, &[9], "a"), (2, &[], "a")]), Some(1));
        // One that rests, and one that builds on it.
        let two = queue(&[(1, &[], "a"), (2, &[1], "b"), (3, &[], "a c")]);
        let rests = BTreeSet::from([id(1)]);
        assert_eq!(next_to_land(&two, &rests), Some(id(3)));
        // Two that wait for each other.
        assert_eq!(next(&[(1, &[2], "a"), (2, &[1], "a")]), Some(1));
    }
}
