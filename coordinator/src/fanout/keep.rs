//! What is kept of finished tasks: their commits, patches, transcripts and what checks printed.

use std::path::Path;
use std::sync::mpsc::{self, Sender};
use std::thread::JoinHandle;
use std::time::Duration;

use swarm::run::{CheckEnd, Checked, Exit};
use taskboard::{Status, Task, TaskId};
use worktrees::{RemoveRequest, Slug, Trees};

use super::board::{Prepared, bundle};
use super::error::FanoutError;
use super::plan::TaskIsolation;
use super::report::{CheckReport, TaskReport};
use super::results::{Keep, Results};
use super::run::pin_name;
use super::task::PlannedTask;
use crate::run::Agents;

/// How much of what a check printed is in the report itself.
const TAIL: u64 = 4096;

/// How long a host may take to see to everything after its task is completed.
const FINISHING: Duration = Duration::from_secs(30);

/// What a task left behind.
#[derive(Debug, Clone, Default)]
pub(super) struct Done {
    /// What it started from.
    pub(super) base: Option<String>,
    /// What it came to, if something changed.
    pub(super) commit: Option<String>,
    /// The run that did it.
    pub(super) run: Option<String>,
}

/// The id of an agent and which of its lives is meant.
pub(super) fn life(run: &str) -> (&str, u32) {
    match run.split_once('#') {
        Some((id, life)) => (id, life.parse().unwrap_or(1)),
        None => (run, 1),
    }
}

/// How the run ended that a task's last attempt was.
pub(super) fn exit_of(agents: &Agents, run: &str) -> Option<Exit> {
    let (id, life) = life(run);
    agents.run(id).exit(life).ok().flatten()
}

/// What all tasks left behind.
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

/// Keeps the results where a job with a fresh clone finds them.
pub(super) fn save(
    agents: &Agents,
    trees: &Trees,
    tasks: &[PlannedTask],
    done: &[Done],
    base: &str,
) {
    let names = tasks.iter().zip(done);
    let names = names.filter(|(_, done)| done.commit.is_some());
    let names: Vec<String> = names
        .map(|(task, _)| pin_name(task))
        .filter(|name| trees.pinned(name).is_ok_and(|pin| pin.is_some()))
        .collect();
    if names.is_empty() {
        return;
    }
    if let Err(error) = trees.save_pins(&names, base, &bundle(agents)) {
        tracing::warn!(%error, "another clone cannot go on from here");
    }
}

/// Writes what there is to keep of tasks.
pub(super) struct Archive<'a> {
    pub(super) agents: &'a Agents,
    /// The top of the working tree.
    pub(super) top: &'a Path,
    pub(super) results: &'a Results,
}

impl Archive<'_> {
    /// Writes patches, transcripts and logs of a task, and says in its report where they are.
    /// Returns what everybody should know.
    pub(super) fn keep(
        &self,
        task: &PlannedTask,
        left: &Done,
        report: &mut TaskReport,
    ) -> Result<Option<String>, FanoutError> {
        let note = self.keep_patch(task, left, report)?;
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
        Ok(note)
    }

    fn keep_patch(
        &self,
        task: &PlannedTask,
        left: &Done,
        report: &mut TaskReport,
    ) -> Result<Option<String>, FanoutError> {
        let (Some(base), Some(commit), TaskIsolation::Worktree) =
            (&left.base, &left.commit, task.isolation)
        else {
            return Ok(None);
        };
        match self.results.keep_patch(&task.id, self.top, base, commit) {
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

/// Puts trees away whose results are kept, beside the engine's work.
#[derive(Debug)]
pub(super) struct Keeper {
    to: Option<Sender<(TaskId, usize)>>,
    thread: Option<JoinHandle<()>>,
}

impl Keeper {
    /// For the tasks of a plan, in its order.
    pub(super) fn start(agents: Agents, tasks: Vec<PlannedTask>) -> Self {
        let (to, from) = mpsc::channel::<(TaskId, usize)>();
        let thread = std::thread::spawn(move || {
            while let Ok(first) = from.recv() {
                // All that are done by now share one sync.
                let batch: Vec<_> = std::iter::once(first).chain(from.try_iter()).collect();
                let planned = batch.iter();
                let planned = planned.filter_map(|(id, at)| Some((*id, tasks.get(*at)?)));
                put_away(&agents, planned);
            }
        });
        Self {
            to: Some(to),
            thread: Some(thread),
        }
    }

    /// This task is done.
    pub(super) fn done(&self, id: TaskId, at: usize) {
        if let Some(to) = &self.to {
            to.send((id, at)).ok();
        }
    }

    /// Waits until everything is put away.
    pub(super) fn finish(mut self) {
        self.to = None;
        if let Some(thread) = self.thread.take() {
            thread.join().ok();
        }
    }
}

/// The commits are kept under names of their own, which are on the disk before the trees go
/// where all removed trees go. A tree that cannot go now stays, and goes the next time.
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
        // Attempts that failed are of no use any more; in the trash they can still be looked at.
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
    // Its host may still be at it: the board knows of the end first.
    if let Some(run) = result.run {
        agents.run(life(&run).0).wait_dead(FINISHING).ok();
    }
    if let Err(error) = trees.pin(&pin_name(planned), &commit) {
        tracing::warn!(%error, "only its tree keeps the result");
        return None;
    }
    Some(Pinned { task, tree, commit })
}

/// Removes a tree. If the kept commit is all there is, its files are gone at once; whatever else
/// is in it stays in the trash.
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
