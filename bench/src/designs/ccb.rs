//! ccb's board, through its public interface only.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use store::atomic::Durability;
use store::home::{Home, create_private_dir};
use store::name::Name;
use store::settings::LockMode;
use taskboard::{Board, BoardError, BoardOptions, ClaimRequest, NewTask, Next, TaskId};

use super::{Claimer, LOCK_TIMEOUT, write_files};
use crate::Failure;

/// The list's name; its directory is `<home>/tasks/bench`.
pub(crate) const LIST: &str = "bench";

/// A board in a long-lived process.
pub(crate) struct Worker {
    board: Board,
}

/// The directory of the task files.
pub(crate) fn list_dir(home: &Path) -> PathBuf {
    home.join("tasks").join(LIST)
}

/// Writes the task files as another tool would and lets the board read them, so that its own log
/// and index are there. Creating them through the board takes much longer.
pub(crate) fn prepare(home: &Path, tasks: u64) -> Result<(), Failure> {
    let dir = list_dir(home);
    create_private_dir(&dir)?;
    write_files(&dir, tasks)?;
    std::fs::write(dir.join(".highwatermark"), tasks.to_string())?;
    Worker::open(home, false, false)?.warm_up()
}

/// The owner of each task.
pub(crate) fn owners(home: &Path) -> Result<HashMap<u64, String>, Failure> {
    let snapshot = Worker::open(home, false, false)?.board.snapshot()?;
    if let Some(bad) = snapshot.unreadable().values().next() {
        return Err(format!("a task file became unreadable: {}", bad.detail).into());
    }
    let owned = |task: &taskboard::Task| Some((task.id.get(), task.owner.clone()?));
    Ok(snapshot.tasks().filter_map(owned).collect())
}

impl Worker {
    pub(crate) fn open(home: &Path, flock_only: bool, durable: bool) -> Result<Self, Failure> {
        let options = BoardOptions {
            lock_mode: if flock_only {
                LockMode::Flock
            } else {
                LockMode::Shared
            },
            durability: if durable {
                Durability::Full
            } else {
                Durability::Relaxed
            },
            lock_timeout: LOCK_TIMEOUT,
            ..BoardOptions::default()
        };
        let home = Home::new(home.to_owned())?;
        Ok(Self {
            board: Board::new(&home, Name::new("list", LIST)?, options),
        })
    }

    /// Reads all tasks; returns their number.
    pub(crate) fn list(&self) -> Result<usize, Failure> {
        Ok(self.board.snapshot()?.tasks().count())
    }

    /// Finds the tasks that could be claimed now; returns their number.
    pub(crate) fn ready(&self) -> Result<usize, Failure> {
        Ok(self.board.ready()?.len())
    }

    /// Creates `count` tasks in one step.
    pub(crate) fn create(&self, count: usize) -> Result<Duration, Failure> {
        let new = |n| NewTask {
            subject: format!("One more task, number {n}"),
            description: "Created while the clock runs.".into(),
            ..NewTask::default()
        };
        let batch: Vec<NewTask> = (0..count).map(new).collect();
        let started = Instant::now();
        self.board.create(&batch, None)?;
        Ok(started.elapsed())
    }
}

impl Claimer for Worker {
    /// Claims a missing task: the whole way of a claim up to the answer, without changing anything.
    fn warm_up(&mut self) -> Result<(), Failure> {
        let nobody = TaskId::new(TaskId::MAX).ok_or("no such id")?;
        match self.board.claim(nobody, &ClaimRequest::new("warm-up")) {
            Err(BoardError::NotFound { .. }) => Ok(()),
            Err(error) => Err(error.into()),
            Ok(_) => Err("claimed a task that is not there".into()),
        }
    }

    fn claim(&mut self, agent: &str) -> Result<Option<u64>, Failure> {
        match self.board.claim_next(&ClaimRequest::new(agent))? {
            Next::Claimed(claimed) => Ok(Some(claimed.task.id.get())),
            Next::Nothing(_) => Ok(None),
            Next::Busy(_) => Err("the busy check was not asked for".into()),
        }
    }
}
