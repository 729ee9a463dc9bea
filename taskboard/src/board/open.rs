//! Opening a list and reading it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use store::clock::Clock;
use store::home::Home;
use store::name::Name;
use store::secret_filter::SecretFilter;

use crate::backend::Backend;
use crate::error::BoardError;
use crate::files::Files;
use crate::finding::Finding;
use crate::id::TaskId;
use crate::memory::Memory;
use crate::options::BoardOptions;
use crate::snapshot::Snapshot;
use crate::task::Task;

/// One task list.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use store::{home::Home, name::Name};
/// use taskboard::{Board, BoardOptions, ClaimRequest, NewTask, Status};
///
/// let dir = tempfile::tempdir()?;
/// let home = Home::new(dir.path().to_owned())?;
/// let board = Board::new(&home, Name::new("list", "work")?, BoardOptions::default());
/// let new = NewTask { subject: "Fix the build".into(), ..NewTask::default() };
/// let id = board.create(&[new], None)?[0].id;
/// let claimed = board.claim(id, &ClaimRequest::new("ann"))?;
/// assert_eq!(claimed.task.status, Status::InProgress);
/// assert!(board.claim(id, &ClaimRequest::new("bob")).is_err());
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Board {
    pub(super) name: Name,
    dir: PathBuf,
    clock: Arc<dyn Clock>,
    pub(super) secret_filter: SecretFilter,
    pub(super) backend: Box<dyn Backend>,
}

impl Board {
    /// The list `name` in `home`, or in the database that the options name; it is created by the
    /// first change.
    pub fn new(home: &Home, name: Name, options: BoardOptions) -> Self {
        let dir = home.list(&name);
        let (clock, filter) = (Arc::clone(&options.clock), options.secret_filter.clone());
        let backend = choose(home, &dir, &name, options);
        Self {
            name,
            dir,
            clock,
            secret_filter: filter,
            backend,
        }
    }

    /// The list `name` in `memory`, for tests of what uses boards. Every rule is the same; other
    /// processes and other tools see nothing of it.
    pub fn in_memory(memory: &Memory, name: Name, options: BoardOptions) -> Self {
        let BoardOptions {
            clock,
            secret_filter,
            ..
        } = options;
        Self {
            backend: Box::new(memory.open(&name, Arc::clone(&clock))),
            name,
            dir: PathBuf::new(),
            clock,
            secret_filter,
        }
    }

    /// The list's name.
    pub fn name(&self) -> &Name {
        &self.name
    }

    /// True if the list was changed before. Makes no list.
    pub fn exists(&self) -> bool {
        self.backend.exists()
    }

    /// The list's directory. A board that is not in files has none, and this names nothing.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// One task as it is now, read without a lock.
    pub fn get(&self, id: TaskId) -> Result<Task, BoardError> {
        self.backend.get(id)
    }

    /// One task, its blockers and the tasks that wait for it, read without a lock. The cost does
    /// not grow with the board, unless another tool changed it since ccb's last read: then ccb must
    /// read every file to find the tasks that name this one.
    pub fn around(&self, id: TaskId) -> Result<Snapshot, BoardError> {
        self.backend.around(id)
    }

    /// All tasks as they are now, read without a lock.
    pub fn snapshot(&self) -> Result<Snapshot, BoardError> {
        self.backend.snapshot()
    }

    /// The tasks that can be claimed now, best first.
    pub fn ready(&self) -> Result<Vec<TaskId>, BoardError> {
        self.backend.ready()
    }

    /// Searches for damage; with `fix`, repairs what can be repaired without losing anything.
    pub fn doctor(&self, fix: bool) -> Result<Vec<Finding>, BoardError> {
        self.backend.doctor(fix)
    }

    pub(super) fn now_ms(&self) -> i64 {
        self.clock.now_ms()
    }

    /// The files of a board that is in files.
    #[cfg(test)]
    pub(crate) fn files(&self) -> &Files {
        let backend: &dyn std::any::Any = &*self.backend;
        backend.downcast_ref().unwrap()
    }
}

/// The backend that the options name, chosen here and nowhere else.
fn choose(home: &Home, dir: &Path, name: &Name, options: BoardOptions) -> Box<dyn Backend> {
    #[cfg(feature = "postgres")]
    if let Some(database) = &options.database {
        let tables = crate::tables::Tables::new(database, name, options.lock_timeout);
        return Box::new(tables);
    }
    let (dir, name) = (dir.to_owned(), name.clone());
    Box::new(Files::new(home.lists(), dir, name, options))
}
