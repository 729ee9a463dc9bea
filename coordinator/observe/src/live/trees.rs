//! Reads worktrees and history in the background of a view, because git is slow.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use swarm::run::{Exit, RunDir};
use worktrees::patch;

use super::progress::{AttemptScene, DiffSize};
use super::scene::TaskScene;

/// Minimum pause between two worktrees, in ms: the view is optional, and the agents need the
/// machine.
const PAUSE: i64 = 2_000;

/// A worktree to inspect.
#[derive(Debug)]
pub(super) struct Wanted {
    /// The agent's run.
    pub(super) id: String,
    /// The directory of its work.
    pub(super) dir: PathBuf,
}

/// Runs one job after another on a thread of its own.
#[derive(Debug)]
struct Aside<T> {
    sender: Sender<(String, Option<T>)>,
    found: Receiver<(String, Option<T>)>,
    busy: bool,
}

impl<T> Default for Aside<T> {
    fn default() -> Self {
        let (sender, found) = channel();
        Self {
            sender,
            found,
            busy: false,
        }
    }
}

impl<T: Send + 'static> Aside<T> {
    fn begin(&mut self, id: String, work: impl FnOnce() -> Option<T> + Send + 'static) {
        self.busy = true;
        let sender = self.sender.clone();
        thread::spawn(move || {
            // The receiver may be gone.
            sender.send((id, work())).ok();
        });
    }

    fn take(&mut self) -> Option<(String, Option<T>)> {
        let found = self.found.try_recv().ok();
        self.busy &= found.is_none();
        found
    }
}

/// Fingerprints of worktrees, one at a time.
#[derive(Debug, Default)]
pub(super) struct TreePrints {
    aside: Aside<String>,
    asked: Option<i64>,
}

impl TreePrints {
    /// Inspects this worktree, unless another inspection runs or has just ended: then ask again
    /// later.
    pub(super) fn ask(&mut self, wanted: Wanted, now_ms: i64) {
        let soon = |at: i64| (0..PAUSE).contains(&(now_ms - at));
        if self.aside.busy || self.asked.is_some_and(soon) {
            return;
        }
        self.asked = Some(now_ms);
        let Wanted { id, dir } = wanted;
        self.aside
            .begin(id, move || worktrees::fingerprint_of(&dir));
    }

    /// The fingerprint found since the last call. A worktree that git cannot read is not suspected.
    pub(super) fn take(&mut self) -> Option<(String, String)> {
        let (id, print) = self.aside.take()?;
        Some((id, print?))
    }
}

/// The sizes of failed attempts' changes. A finished run does not change any more, so it is read
/// once.
#[derive(Debug, Default)]
pub(super) struct Sizes {
    known: HashMap<String, DiffSize>,
    asked: HashSet<String>,
    aside: Aside<DiffSize>,
}

impl Sizes {
    /// Adds the known sizes to the attempts of these tasks, and reads more of them.
    pub(super) fn fill(&mut self, tasks: &mut Arc<Vec<TaskScene>>, runs: &Path, repository: &Path) {
        while let Some((run, size)) = self.aside.take() {
            self.known.extend(size.map(|size| (run, size)));
        }
        let lacks = |task: &TaskScene| task.attempts.iter().any(|attempt| attempt.size.is_none());
        // Others have the same list: it is copied only if something is added.
        let lacking: Vec<usize> = (0..)
            .zip(tasks.iter())
            .filter(|(_, task)| lacks(task))
            .map(|(n, _)| n)
            .collect();
        let news = |attempt: &AttemptScene| {
            attempt.size.is_none() && self.known.contains_key(&attempt.run)
        };
        if lacking.iter().any(|n| tasks[*n].attempts.iter().any(news)) {
            let tasks = Arc::make_mut(tasks);
            for n in &lacking {
                for attempt in &mut tasks[*n].attempts {
                    attempt.size = self.known.get(&attempt.run).copied();
                }
            }
        }
        for attempt in lacking.iter().flat_map(|n| &tasks[*n].attempts) {
            if attempt.size.is_none()
                && !self.aside.busy
                && let Some(run) = run_of(&attempt.run, runs)
                && self.asked.insert(attempt.run.clone())
            {
                let repository = repository.to_owned();
                self.aside
                    .begin(attempt.run.clone(), move || size_of(&run, &repository));
            }
        }
    }
}

/// The run and the life that made an attempt, if a run did.
fn run_of(attempt: &str, runs: &Path) -> Option<(RunDir, u32)> {
    let (id, life) = match attempt.split_once('#') {
        Some((id, life)) => (id, life.parse().ok()?),
        None => (attempt, 1),
    };
    let id = store::agent_id::AgentId::parse(id)?;
    Some((RunDir::new(runs, id.as_str()), life))
}

fn size_of((run, life): &(RunDir, u32), repository: &Path) -> Option<DiffSize> {
    let Exit { proof, .. } = run.exit(*life).ok().flatten()?;
    let proof = proof?;
    let files = patch::stat(repository, proof.base.as_ref()?, proof.commit.as_ref()?).ok()?;
    Some(DiffSize {
        files: files.len(),
        added: files.iter().filter_map(|file| file.added).sum(),
        deleted: files.iter().filter_map(|file| file.deleted).sum(),
    })
}
