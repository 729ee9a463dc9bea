//! Changes of several files that happen as a whole.
//!
//! The intent is written and synced before the first file is touched. If the process dies
//! half-way, the next lock section carries the steps out again. A step says what is to be
//! true of a file, not what to write into it, so doing it twice, or after another tool has
//! changed the file, is fine.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use store::StoreError;
use store::atomic::{self, Staged, Stamp};
use store::fault::reached;
use store::lockdir::{HeldDirs, STALE_AFTER};

use crate::error::BoardError;
use crate::fault;
use crate::files::Files;
use crate::files::read::{self, Read};
use crate::files::section::{ListDir, Section, Stop, release, take_dirs};
use crate::format;
use crate::id::{TaskId, insert};
use crate::task::Task;

/// A change of several files, on disk while it is being made.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Intent {
    v: u64,
    op: String,
    pub(crate) steps: Vec<Step>,
}

/// The desired state of one file.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase", tag = "do")]
pub(crate) enum Step {
    /// The staged file is the task's file.
    Publish { id: TaskId, staged: String },
    /// There is no such file.
    Remove { id: TaskId },
    /// The task names these others.
    Link {
        id: TaskId,
        #[serde(default)]
        blocks: Vec<TaskId>,
        #[serde(default)]
        blocked_by: Vec<TaskId>,
    },
    /// The task does not name them.
    Unlink {
        id: TaskId,
        #[serde(default)]
        blocks: Vec<TaskId>,
        #[serde(default)]
        blocked_by: Vec<TaskId>,
    },
}

const INTENT_VERSION: u64 = 1;
/// Maximum number of lock directories held at once; more would be held for too long.
const STEPS_AT_ONCE: usize = 16;

impl Intent {
    pub(crate) fn new(op: &str, steps: Vec<Step>) -> Self {
        Self {
            v: INTENT_VERSION,
            op: op.to_owned(),
            steps,
        }
    }
}

impl Step {
    pub(crate) fn id(&self) -> TaskId {
        match self {
            Self::Publish { id, .. }
            | Self::Remove { id }
            | Self::Link { id, .. }
            | Self::Unlink { id, .. } => *id,
        }
    }
}

impl Section<'_> {
    /// Makes a change of several files that happens as a whole, even if this process dies.
    pub(crate) fn carry_out(&mut self, op: &'static str, intent: &Intent) -> Result<(), Stop> {
        let durability = self.files.durability();
        let path = self.files.intent_path();
        let bytes = serde_json::to_vec_pretty(intent)
            .map_err(|error| BoardError::invalid("intent", error.to_string()))?;
        if intent
            .steps
            .iter()
            .any(|step| matches!(step, Step::Publish { .. }))
        {
            atomic::sync_dir(&self.files.tmp_dir(), durability)?;
        }
        self.dirty = true;
        self.slow = true;
        if let Err(error) = atomic::replace(&self.files.tmp_dir(), &path, &bytes, durability) {
            // It may be in place all the same, if only the sync of its name failed.
            return Err(take_back(&path, op, error.into()));
        }
        reached(fault::INTENT_WRITTEN);
        match apply(self.files, intent) {
            Ok(()) => {}
            Err((0, stop)) => return Err(take_back(&path, op, stop)),
            Err((_, stop)) => {
                let source = match stop {
                    Stop::Error(error) => error,
                    Stop::Retry { path, age } => busy(path, age),
                };
                return Err(BoardError::Unfinished {
                    what: op,
                    source: Box::new(source),
                }
                .into());
            }
        }
        finish_intent(self.files).map_err(|source| BoardError::NotDurable { source })?;
        for step in &intent.steps {
            // The effect of a creation or deletion on linked tasks has its own name.
            let op = match step {
                Step::Publish { .. } | Step::Remove { .. } => op,
                Step::Link { .. } => "block",
                Step::Unlink { .. } => "unblock",
            };
            self.note_changed(op, step.id())?;
        }
        Ok(())
    }
}

/// Removes an intent of which not one file was touched, as if it had never been.
fn take_back(path: &Path, op: &'static str, stop: Stop) -> Stop {
    match atomic::remove(path) {
        Ok(_) => stop,
        // It is still there, so the next command will carry it out.
        Err(error) => BoardError::Unfinished {
            what: op,
            source: Box::new(error.into()),
        }
        .into(),
    }
}

/// Carries out what a dead process left unfinished; says which tasks it touched.
pub(crate) fn redo_intent(files: &Files) -> Result<HashMap<TaskId, &'static str>, Stop> {
    let path = files.intent_path();
    let Some(bytes) = atomic::read(&path)? else {
        return Ok(HashMap::new());
    };
    let intent: Intent = serde_json::from_slice(&bytes).map_err(|error| {
        BoardError::invalid(
            path.display().to_string(),
            format!("unreadable intent: {error}"),
        )
    })?;
    StoreError::check_version(&path, intent.v, INTENT_VERSION)?;
    reached(fault::INTENT_REDO);
    tracing::info!(
        op = intent.op,
        "finishing what an interrupted command began"
    );
    apply(files, &intent).map_err(|(_, stop)| stop)?;
    finish_intent(files)?;
    Ok(intent
        .steps
        .iter()
        .map(|step| (step.id(), "recover"))
        .collect())
}

fn finish_intent(files: &Files) -> Result<(), StoreError> {
    let path = files.intent_path();
    atomic::sync_dir(&files.dir, files.durability())?;
    reached(fault::INTENT_APPLIED);
    atomic::remove(&path)?;
    // If its removal were lost in a power cut, the intent would come back and undo later changes.
    atomic::sync_parent(&path, files.durability())?;
    Ok(())
}

/// Carries out all steps; an error says how many were done before it.
fn apply(files: &Files, intent: &Intent) -> Result<(), (usize, Stop)> {
    let mut done = 0;
    for steps in intent.steps.chunks(STEPS_AT_ONCE) {
        let ids: Vec<TaskId> = steps
            .iter()
            .filter(|step| !matches!(step, Step::Publish { .. }))
            .map(Step::id)
            .collect();
        let held = take_dirs_patiently(files, &ids, done > 0).map_err(|stop| (done, stop))?;
        for step in steps {
            apply_step(files, step).map_err(|error| (done, error.into()))?;
            done += 1;
            reached(fault::INTENT_STEP);
        }
        release(held).map_err(|error| (done, error.into()))?;
    }
    Ok(())
}

/// Once a change has begun it is worth waiting for the rest of its files.
fn take_dirs_patiently(
    files: &Files,
    ids: &[TaskId],
    begun: bool,
) -> Result<Option<HeldDirs>, Stop> {
    let deadline = Instant::now() + STALE_AFTER + Duration::from_secs(2);
    loop {
        match take_dirs(files, ListDir::Leave, ids) {
            Err(Stop::Retry { .. }) if begun && Instant::now() < deadline => {
                std::thread::sleep(Duration::from_millis(2));
            }
            result => return result,
        }
    }
}

fn apply_step(files: &Files, step: &Step) -> Result<(), BoardError> {
    let path = files.task_path(step.id());
    match step {
        Step::Publish { id, staged } => {
            let staged = files.tmp_dir().join(staged);
            if staged.exists() && !Staged::adopt(staged, Stamp::default()).create(&path)? {
                tracing::error!(%id, "another tool has taken a reserved id");
            }
        }
        Step::Remove { .. } => {
            atomic::remove(&path)?;
        }
        Step::Link {
            id,
            blocks,
            blocked_by,
        } => edit(files, *id, |task| {
            blocks
                .iter()
                .for_each(|other| insert(&mut task.blocks, *other));
            blocked_by
                .iter()
                .for_each(|other| insert(&mut task.blocked_by, *other));
        })?,
        Step::Unlink {
            id,
            blocks,
            blocked_by,
        } => edit(files, *id, |task| {
            task.blocks.retain(|other| !blocks.contains(other));
            task.blocked_by.retain(|other| !blocked_by.contains(other));
        })?,
    }
    Ok(())
}

/// Changes a task's present file. Skips a file that is gone or unreadable: the half edge this may
/// leave is completed once the file can be read.
fn edit(files: &Files, id: TaskId, change: impl Fn(&mut Task)) -> Result<(), BoardError> {
    let Read::Task(entry) = read::read_task(&files.dir, id)? else {
        tracing::warn!(%id, "cannot update its edges: the file is not readable");
        return Ok(());
    };
    let mut task = entry.task.clone();
    change(&mut task);
    if task == entry.task {
        return Ok(());
    }
    let bytes = format::to_bytes(&task);
    Staged::write(&files.tmp_dir(), &bytes, files.durability())?.replace(&files.task_path(id))?;
    Ok(())
}

fn busy(path: PathBuf, age: Duration) -> BoardError {
    StoreError::LockTimeout {
        what: "a task".into(),
        path,
        holder: "another tool".into(),
        waited: age,
    }
    .into()
}
