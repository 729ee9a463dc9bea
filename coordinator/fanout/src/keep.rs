//! Stores the work of finished tasks: commits, patches, transcripts and output of checks.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, SyncSender};
use std::thread::JoinHandle;
use std::time::Duration;

use landing::commit_of;
use runs::Agents;
use swarm::run::{CheckEnd, Checked, Exit};
use taskboard::{Status, Task, TaskId};
use worktrees::patch::FileStat;
use worktrees::{RemoveRequest, Slug, TreeError, Trees};

use super::board::{Prepared, bundle};
use super::error::FanoutError;
use super::plan::TaskIsolation;
use super::report::{CheckReport, FileChange, TaskReport};
use super::results::{Keep, Results};
use super::run::{pin_name, planned_as};
use super::task::PlannedTask;

/// Maximum bytes of a check's output in the report itself.
const TAIL: u64 = 4096;

/// Time that a host may take to clean up after its task is completed.
const FINISHING: Duration = Duration::from_secs(30);

/// The work that a task left.
#[derive(Debug, Clone, Default)]
pub(super) struct Done {
    /// The commit it started from.
    pub(super) base: Option<String>,
    /// The commit of its result, if it changed files.
    pub(super) commit: Option<String>,
    /// The run that did it.
    pub(super) run: Option<String>,
}

/// The id of an agent and the number of its life.
pub(super) fn life(run: &str) -> (&str, u32) {
    match run.split_once('#') {
        Some((id, life)) => (id, life.parse().unwrap_or(1)),
        None => (run, 1),
    }
}

/// The end of the run of a task's last attempt.
pub(super) fn exit_of(agents: &Agents, run: &str) -> Option<Exit> {
    let (id, life) = life(run);
    agents.run(id).exit(life).ok().flatten()
}

/// The work that all tasks left.
pub(super) fn done(
    agents: &Agents,
    tasks: &[PlannedTask],
    prepared: &Prepared,
    reports: &[TaskReport],
) -> Vec<Done> {
    let board = agents.board();
    let of = |at: usize| {
        let Some(task) = prepared.ids[at].and_then(|id| board.get(id).ok()) else {
            return Done::default();
        };
        if task.status == Status::Completed && reports[at].outcome.is_success() {
            return of_completed(&task);
        }
        let attempts = task.attempts();
        let run = attempts.last().map(|last| last.run.clone());
        let proof = run.as_deref().and_then(|run| exit_of(agents, run)?.proof);
        let proof = proof.filter(|proof| proof.changed).unwrap_or_default();
        Done {
            base: proof.base,
            commit: proof.commit,
            run,
        }
    };
    (0..tasks.len()).map(of).collect()
}

fn of_completed(task: &Task) -> Done {
    let result = task.result().unwrap_or_default();
    Done {
        base: result.base,
        commit: result.commit.filter(|_| result.changed == Some(true)),
        run: result.run,
    }
}

/// Stores the results of the whole board under one name, also where a job with a fresh clone finds
/// them.
pub(super) fn save(agents: &Agents, trees: &Trees, base: &str) {
    if let Err(error) = try_to_save(agents, trees, base) {
        tracing::warn!(%error, "another clone cannot go on from here");
    }
}

fn try_to_save(agents: &Agents, trees: &Trees, base: &str) -> Result<(), FanoutError> {
    let snapshot = agents.board().snapshot()?;
    let mut commits = Vec::new();
    let mut singles = Vec::new();
    for task in snapshot.tasks() {
        let commit = commit_of(task).filter(|commit| trees.has_commit(commit));
        let key = planned_as(task).map(|(_, key)| pin_name(key));
        if let (Status::Completed, Some(commit), Some(key)) = (task.status, commit, key) {
            commits.push(commit);
            singles.push(key);
        }
    }
    if commits.is_empty() {
        return Ok(());
    }
    let all = format!("fanout/all/{}", agents.board().name());
    let names = match trees.keep_together(&all, &commits, &singles)? {
        true => vec![all],
        false => {
            let there = |name: &String| trees.pinned(name).is_ok_and(|pin| pin.is_some());
            singles.into_iter().filter(there).collect()
        }
    };
    if !names.is_empty() {
        trees.save_pins(&names, base, &bundle(agents))?;
    }
    Ok(())
}

/// The changes of a task.
struct Change {
    patch: Result<Vec<u8>, TreeError>,
    files: Vec<FileStat>,
}

/// The changes of tasks, in the same order; `None` for a task without changes, or without need for
/// a patch.
fn changes(top: &Path, tasks: &[PlannedTask], done: &[Done]) -> Vec<Option<Change>> {
    let pair = |(task, done): (&PlannedTask, &Done)| {
        let worktree = task.isolation == TaskIsolation::Worktree;
        Some((done.base.clone()?, done.commit.clone()?)).filter(|_| worktree)
    };
    let pairs: Vec<_> = tasks.iter().zip(done).map(pair).collect();
    let wanted: Vec<_> = pairs.iter().flatten().cloned().collect();
    let patches = worktrees::patch::format_all(top, &wanted);
    let stats = worktrees::patch::stat_all(top, &wanted);
    let made = patches.into_iter().zip(stats);
    let mut made = made.map(|(patch, files)| Change {
        patch,
        files: files.unwrap_or_default(),
    });
    let each = pairs.into_iter().map(|pair| pair.and_then(|_| made.next()));
    each.collect()
}

/// Writes the stored files of tasks.
pub(super) struct Archive<'a> {
    pub(super) agents: &'a Agents,
    /// The top of the worktree.
    pub(super) top: &'a Path,
    pub(super) results: &'a Results,
}

impl Archive<'_> {
    /// Stores the work of all tasks. Returns notes for every reader.
    pub(super) fn keep_all(
        &self,
        tasks: &[PlannedTask],
        done: &[Done],
        reports: &mut [TaskReport],
    ) -> Result<Vec<String>, FanoutError> {
        let changes = changes(self.top, tasks, done);
        let mut notes = Vec::new();
        for (((task, done), report), change) in tasks.iter().zip(done).zip(reports).zip(changes) {
            notes.extend(self.keep(task, done, change, report)?);
        }
        Ok(notes)
    }

    /// Writes patches, transcripts and logs of a task, and names them in its report. Returns notes
    /// for every reader.
    fn keep(
        &self,
        task: &PlannedTask,
        left: &Done,
        change: Option<Change>,
        report: &mut TaskReport,
    ) -> Result<Option<String>, FanoutError> {
        let note = match change {
            Some(change) => self.keep_patch(task, change, report)?,
            None => None,
        };
        let Some((id, number)) = left.run.as_deref().map(life) else {
            return Ok(note);
        };
        let run = self.agents.run(id);
        let files = [
            ("transcript", Keep::Transcript, run.transcript_path()),
            ("check", Keep::Check, run.check_path()),
        ];
        for (name, what, path) in files {
            if let Ok(Some(bytes)) = store::atomic::read(&path) {
                let file = self.results.keep(&task.id, what, &bytes)?;
                report.files.insert(name.into(), file);
            }
        }
        let exit = run.exit(number).ok().flatten();
        let checked = exit.and_then(|exit| exit.proof?.check);
        report.check = checked.map(|checked| check_report(&checked));
        if !report.outcome.is_success() && report.worktree.is_none() {
            let slug = Slug::new(&format!("agent-{id}")).ok();
            let trees = self.agents.trees().ok();
            let entry = slug
                .zip(trees)
                .and_then(|(slug, trees)| trees.get(&slug).ok());
            report.worktree = entry.map(|entry| entry.path().to_string_lossy().into_owned());
        }
        Ok(note)
    }

    fn keep_patch(
        &self,
        task: &PlannedTask,
        change: Change,
        report: &mut TaskReport,
    ) -> Result<Option<String>, FanoutError> {
        report.changes = change.files.into_iter().map(Into::into).collect();
        let kept = change
            .patch
            .map_err(FanoutError::from)
            .and_then(|patch| self.results.keep_patch(&task.id, &patch));
        match kept {
            Ok(patch) => {
                let secret = format!("{} seems to hold a secret", patch.file);
                report.files.insert("patch".into(), patch.file);
                Ok(patch.holds_secret.then_some(secret))
            }
            Err(error) if report.outcome.is_success() => Err(error),
            Err(error) => {
                tracing::info!(%error, "no patch of what failed");
                Ok(None)
            }
        }
    }
}

impl From<FileStat> for FileChange {
    fn from(stat: FileStat) -> Self {
        Self {
            path: stat.path,
            added: stat.added,
            deleted: stat.deleted,
        }
    }
}

fn check_report(checked: &Checked) -> CheckReport {
    let tail = store::log::tail(Path::new(&checked.log), TAIL).unwrap_or_default();
    CheckReport {
        command: checked.command.clone(),
        exit_code: match checked.passed {
            true => Some(0),
            false => checked.end.and_then(CheckEnd::code),
        },
        flaky: checked.flaky.clone(),
        duration_ms: checked.duration_ms,
        place: checked.place,
        tail: tail.trim_end().to_owned(),
    }
}

/// Removes worktrees beside the director's work: those of completed tasks that could not be used
/// again, and of failed ones, if there are many. It is never far behind: a caller that reports a
/// completed task waits if it is.
#[derive(Debug)]
pub(super) struct Keeper {
    to: Option<SyncSender<(TaskId, usize, Ended)>>,
    /// True if the remaining worktrees are left to the next run.
    hurry: Arc<AtomicBool>,
    thread: Option<JoinHandle<HashMap<usize, Done>>>,
}

/// How a task ended whose worktree is removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ended {
    Done,
    Failed,
}

impl Keeper {
    /// Starts a keeper for the tasks of a plan, in its order.
    pub(super) fn start(agents: Agents, tasks: Vec<PlannedTask>, jobs: usize) -> Self {
        let (to, from) = mpsc::sync_channel::<(TaskId, usize, Ended)>(jobs);
        let hurry = Arc::new(AtomicBool::new(false));
        let hurried = Arc::clone(&hurry);
        let thread = std::thread::spawn(move || {
            let mut kept = HashMap::new();
            while let Ok(first) = from.recv() {
                if hurried.load(Ordering::SeqCst) {
                    continue;
                }
                // All that have ended by now share one sync.
                let batch: Vec<_> = std::iter::once(first).chain(from.try_iter()).collect();
                let (done, failed): (Vec<_>, Vec<_>) =
                    batch.into_iter().partition(|(.., how)| *how == Ended::Done);
                let planned = done.iter();
                let planned = planned.filter_map(|(id, at, _)| Some((*id, tasks.get(*at)?)));
                put_away(&agents, planned);
                for (id, at, _) in failed {
                    let left = tasks
                        .get(at)
                        .and_then(|it| put_away_failed(&agents, id, it));
                    kept.extend(left.map(|left| (at, left)));
                }
            }
            kept
        });
        Self {
            to: Some(to),
            hurry,
            thread: Some(thread),
        }
    }

    /// Handles a completed task.
    pub(super) fn done(&self, id: TaskId, at: usize) {
        self.ended(id, at, Ended::Done);
    }

    /// Handles a task that failed for good, if its worktrees are too many.
    pub(super) fn failed(&self, id: TaskId, at: usize) {
        self.ended(id, at, Ended::Failed);
    }

    fn ended(&self, id: TaskId, at: usize, how: Ended) {
        if let Some(to) = &self.to {
            to.send((id, at, how)).ok();
        }
    }

    /// Waits until all worktrees are removed; in a `hurry`, only for the removals that have begun.
    /// Returns the stored work of failed tasks whose worktrees are gone, by their place.
    pub(super) fn finish(mut self, hurry: bool) -> HashMap<usize, Done> {
        self.hurry.store(hurry, Ordering::SeqCst);
        self.to = None;
        let thread = self.thread.take();
        thread
            .and_then(|thread| thread.join().ok())
            .unwrap_or_default()
    }
}

/// The ref that keeps the commit of a failed task whose worktree is removed.
fn failed_name(agents: &Agents, task: &str) -> String {
    format!("fanout/failed/{}/{task}", agents.team_name())
}

/// Commits the work of each attempt, keeps it under a name of its own (`TASK` for the last one,
/// `TASK@N` for the others), and deletes the worktrees. A worktree that cannot be committed is
/// kept.
fn put_away_failed(agents: &Agents, id: TaskId, planned: &PlannedTask) -> Option<Done> {
    let task = agents.board().get(id).ok()?;
    let trees = agents.trees().ok()?;
    let mut left = None;
    for (number, attempt) in task.attempts().iter().enumerate().rev() {
        let (run, _) = life(&attempt.run);
        agents.run(run).wait_dead(FINISHING).ok();
        let name = format!("agent-{run}");
        let Some(slug) = Slug::new(&name).ok().filter(|slug| trees.get(slug).is_ok()) else {
            continue;
        };
        let words = format!("{}\n\nFailed attempt {}\n", planned.subject, number + 1);
        let kept = trees.seal(&slug, &words).and_then(|sealed| {
            if sealed.changed {
                let kept_as = match left {
                    None => planned.id.clone(),
                    Some(_) => format!("{}@{}", planned.id, number + 1),
                };
                trees.pin(&failed_name(agents, &kept_as), &sealed.commit)?;
                trees.make_durable()?;
            }
            remove(&trees, agents, &task, &name, Some(&sealed.commit))?;
            Ok(sealed)
        });
        match kept {
            Ok(sealed) => {
                left.get_or_insert(Done {
                    base: sealed.base.filter(|_| sealed.changed),
                    commit: sealed.changed.then_some(sealed.commit),
                    run: Some(attempt.run.clone()),
                });
            }
            Err(error) => tracing::info!(%error, tree = name, "the worktree stays"),
        }
    }
    left
}

/// Reports the worktrees of failed tasks that were removed, if there were more than are kept.
pub(super) fn note_put_away(
    agents: &Agents,
    gone: &HashMap<usize, Done>,
    most: usize,
) -> Option<String> {
    let name = failed_name(agents, "TASK");
    (!gone.is_empty()).then(|| {
        format!(
            "{} failed tasks have no worktree any more: only the first {most} keep theirs \
             (`keepFailed` in the plan). Their patches are in the results, their commits are \
             refs/ccb/{name}",
            gone.len()
        )
    })
}

/// Deletes the commits of tasks that failed in an earlier run and are run again.
pub(super) fn forget_failed(
    agents: &Agents,
    trees: &Trees,
    tasks: &[PlannedTask],
) -> Result<(), FanoutError> {
    let ids: HashSet<&str> = tasks.iter().map(|task| task.id.as_str()).collect();
    let mut names = trees.pins_below(&failed_name(agents, ""))?;
    names.retain(|name| {
        let id = name.rsplit('/').next().and_then(|id| id.split('@').next());
        id.is_some_and(|id| ids.contains(id))
    });
    Ok(trees.unpin(&names)?)
}

/// Removes worktrees. Their commits get names of their own, which are on the disk before the
/// worktrees go to the trash. A worktree that cannot be removed now is kept until the next time.
fn put_away<'a>(agents: &Agents, done: impl Iterator<Item = (TaskId, &'a PlannedTask)>) {
    let Ok(trees) = agents.trees() else {
        return;
    };
    let kept: Vec<Pinned> = done
        .filter_map(|(id, planned)| pin(agents, &trees, id, planned))
        .collect();
    if kept.is_empty() {
        return;
    }
    if let Err(error) = trees.make_durable() {
        tracing::warn!(%error, "the trees stay: only they are known to be on the disk");
        return;
    }
    for Pinned { task, tree, commit } in kept {
        // Failed attempts are not needed any more; a person can still read them in the trash.
        let failed = task.attempts();
        let failed = failed.iter().map(|attempt| life(&attempt.run).0);
        let failed = failed.map(|id| (format!("agent-{id}"), false));
        for (name, kept) in failed.chain([(tree, true)]) {
            let kept = kept.then_some(commit.as_str());
            if let Err(error) = remove(&trees, agents, &task, &name, kept) {
                tracing::info!(%error, tree = name, "the tree stays");
            }
        }
    }
}

/// A task whose commit has a name of its own.
struct Pinned {
    task: Task,
    tree: String,
    commit: String,
}

/// Gives the commit of a task that is done a name of its own.
fn pin(agents: &Agents, trees: &Trees, id: TaskId, planned: &PlannedTask) -> Option<Pinned> {
    let task = agents.board().get(id).ok()?;
    let result = task.result()?;
    let (commit, tree) = (result.commit?, result.worktree?);
    // Its host may still be running: the board learns of the end first.
    if let Some(run) = result.run {
        agents.run(life(&run).0).wait_dead(FINISHING).ok();
    }
    let used_again = Slug::new(&tree).is_ok_and(|slug| trees.get(&slug).is_err());
    if used_again && task.attempts().is_empty() {
        return None;
    }
    if let Err(error) = trees.pin(&pin_name(&planned.key), &commit) {
        tracing::warn!(%error, "only its tree keeps the result");
        return None;
    }
    Some(Pinned { task, tree, commit })
}

/// Removes a worktree. If the kept commit is all there is, its files are deleted at once; otherwise
/// the rest goes to the trash.
fn remove(
    trees: &Trees,
    agents: &Agents,
    task: &Task,
    name: &str,
    kept: Option<&str>,
) -> Result<(), worktrees::TreeError> {
    let slug = Slug::new(name)?;
    if trees.get(&slug).is_err() {
        return Ok(());
    }
    let request = RemoveRequest {
        discard: true,
        kept,
        ..RemoveRequest::default()
    };
    let removed = trees.remove(&slug, &request)?;
    agents.board().unbind_worktree(task.id, slug.as_str()).ok();
    trees.forget_task(&removed.entry)
}
