//! Opening a list and looking at it.

#[path = "../files/live.rs"]
mod live;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use store::atomic::{Durability, Stamp};
use store::clock::{Clock, SystemClock};
use store::home::{Home, create_durable_dir, create_private_dir};
use store::lockdir::LockDirs;
use store::name::Name;
use store::secret_filter::SecretFilter;
use store::settings::{LockMode, Settings};

use crate::changes::Paths;
use crate::error::{BoardError, Refusal};
use crate::facts::TaskResult;
use crate::id::TaskId;
use crate::slots::settled_whole;
use crate::snapshot::{Read, Snapshot, read_task};
use crate::task::Task;

pub(crate) use live::{Live, Loaded};

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
    pub(crate) name: Name,
    pub(crate) lists: PathBuf,
    pub(crate) dir: PathBuf,
    pub(crate) options: BoardOptions,
    pub(crate) lock_dirs: LockDirs,
    pub(crate) live: Mutex<Live>,
    /// Held while this process asks for the next task.
    pub(crate) asking: Mutex<()>,
    /// The list's number in its database; 0 while that is not known.
    #[cfg(feature = "postgres")]
    pub(crate) list_number: std::sync::atomic::AtomicI32,
}

/// How a board behaves.
#[derive(Debug, Clone)]
pub struct BoardOptions {
    /// Whether lock directories of other tools are respected.
    pub lock_mode: LockMode,
    /// Whether a change survives a power cut before it is acknowledged.
    pub durability: Durability,
    /// How long to wait for the list's lock.
    pub lock_timeout: Duration,
    /// Where the time comes from.
    pub clock: Arc<dyn Clock>,
    /// What is taken out of the texts of a task before they are written.
    pub secret_filter: SecretFilter,
    /// The database the tasks are in; in files if there is none.
    #[cfg(feature = "postgres")]
    pub database: Option<database::Database>,
}

impl From<&Settings> for BoardOptions {
    fn from(settings: &Settings) -> Self {
        Self {
            lock_mode: settings.lock_mode,
            durability: Durability::of(settings.durable),
            lock_timeout: settings.lock_timeout,
            clock: Arc::new(SystemClock),
            secret_filter: SecretFilter::default(),
            #[cfg(feature = "postgres")]
            database: None,
        }
    }
}

impl Default for BoardOptions {
    fn default() -> Self {
        Self::from(&Settings::default())
    }
}

/// Who wants to change a task, and how much they insist.
#[derive(Debug, Clone)]
pub struct Caller {
    /// The agent's (or person's) name.
    pub agent: String,
    /// The token of the lease it believes to hold.
    pub token: Option<u64>,
    /// Change what belongs to others, and what is blocked.
    pub force: bool,
}

impl Caller {
    /// A caller without token that does not insist.
    pub fn new(agent: impl Into<String>) -> Self {
        Self {
            agent: agent.into(),
            token: None,
            force: false,
        }
    }

    /// One without token that changes what belongs to others, and what is blocked.
    pub fn forced(agent: impl Into<String>) -> Self {
        Self {
            force: true,
            ..Self::new(agent)
        }
    }

    /// Refuses if the token given is not the task's current one.
    pub(crate) fn check_token(&self, task: &Task) -> Result<(), BoardError> {
        match self.token {
            Some(token) if task.lease().is_none_or(|lease| lease.token != token) => {
                Err(BoardError::refused(task, Refusal::LeaseLost { token }))
            }
            _ => Ok(()),
        }
    }

    /// Refuses if somebody else owns the task.
    pub(crate) fn check_owner(&self, task: &Task) -> Result<(), BoardError> {
        match &task.owner {
            Some(owner) if !self.force && *owner != self.agent => Err(BoardError::refused(
                task,
                Refusal::AlreadyClaimed {
                    owner: owner.clone(),
                },
            )),
            _ => Ok(()),
        }
    }
}

/// Questions the board asks before a change is made. Called outside every lock.
pub trait Hooks {
    /// Before a task becomes visible. Its id is reserved and lost if refused.
    fn before_create(&self, task: &Task) -> Result<(), Veto> {
        let _ = task;
        Ok(())
    }

    /// Before a task is completed. The change is made only if the task is still exactly the
    /// one shown. What is returned is kept as its result.
    fn before_complete(&self, task: &Task) -> Result<Option<TaskResult>, Veto> {
        let _ = task;
        Ok(None)
    }
}

/// Why a change must not be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Veto {
    /// Told to whoever wanted the change.
    pub reason: String,
    /// No hook said so: the file that names the hooks cannot be read.
    pub bad_settings: bool,
}

impl Veto {
    /// A hook said no.
    pub fn new(reason: impl Into<String>) -> Self {
        Self {
            reason: reason.into(),
            bad_settings: false,
        }
    }
}

impl From<Veto> for BoardError {
    fn from(veto: Veto) -> Self {
        let reason = veto.reason;
        match veto.bad_settings {
            true => Self::BadSettings { reason },
            false => Self::Vetoed { reason },
        }
    }
}

impl Board {
    /// The list `name` in `home`; it is created by the first change.
    pub fn new(home: &Home, name: Name, options: BoardOptions) -> Self {
        Self::at(home.lists(), home.list(&name), name, options)
    }

    fn at(lists: PathBuf, dir: PathBuf, name: Name, options: BoardOptions) -> Self {
        let ours = dir.join(".ccb");
        let lock_dirs = LockDirs::new(ours.join("tmp"), ours.join("held"));
        let live = Mutex::new(Live::new(&dir));
        Self {
            name,
            lists,
            dir,
            options,
            lock_dirs,
            live,
            asking: Mutex::default(),
            #[cfg(feature = "postgres")]
            list_number: std::sync::atomic::AtomicI32::default(),
        }
    }

    /// The same list, opened once more.
    #[cfg(feature = "postgres")]
    pub(crate) fn again(&self) -> Self {
        let options = self.options.clone();
        Self::at(
            self.lists.clone(),
            self.dir.clone(),
            self.name.clone(),
            options,
        )
    }

    /// The list's name.
    pub fn name(&self) -> &Name {
        &self.name
    }

    /// Whether the list is there: somebody has changed it before. Looking makes none.
    pub fn exists(&self) -> bool {
        #[cfg(feature = "postgres")]
        if let Some(there) = self.exists_in_tables() {
            return there;
        }
        self.dir.is_dir()
    }

    /// The list's directory. A board in a database has none, and this names nothing.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// One task as it is now, read without a lock.
    pub fn get(&self, id: TaskId) -> Result<Task, BoardError> {
        #[cfg(feature = "postgres")]
        if let Some(found) = self.get_from_tables(id) {
            return found;
        }
        match read_task(&self.dir, id)? {
            Read::Task(entry) => Ok(entry.task),
            Read::Absent => Err(BoardError::NotFound { id }),
            Read::Unreadable(bad) => Err(bad.error(id)),
        }
    }

    /// One task and those it waits for or that wait for it, read without a lock. Does not grow
    /// with the board, unless another tool was here since ccb last looked: then only a look at
    /// every file tells who names the task.
    pub fn around(&self, id: TaskId) -> Result<Snapshot, BoardError> {
        #[cfg(feature = "postgres")]
        if let Some(found) = self.around_from_tables(id) {
            return found;
        }
        let mtime = std::fs::metadata(&self.dir).ok();
        let mtime = mtime.map(|meta| Stamp::of(&meta).mtime_ns);
        match mtime.is_some() && mtime == settled_whole(&self.dir.join(".ccb")) {
            true => Snapshot::around(&self.dir, id),
            false => self.snapshot(),
        }
    }

    /// All tasks as they are now, read without a lock.
    pub fn snapshot(&self) -> Result<Snapshot, BoardError> {
        #[cfg(feature = "postgres")]
        if let Some(found) = self.snapshot_from_tables() {
            return found;
        }
        Snapshot::load(&self.dir)
    }

    pub(crate) fn create_dirs(&self) -> Result<(), BoardError> {
        let tmp = self.tmp_dir();
        if !tmp.is_dir() {
            self.name.check_no_clash("list", &self.lists)?;
            create_durable_dir(&tmp, self.durability())?;
            create_private_dir(&records_dir(&self.dir))?;
        }
        Ok(())
    }

    pub(crate) fn task_path(&self, id: TaskId) -> PathBuf {
        self.dir.join(id.file_name())
    }

    pub(crate) fn tmp_dir(&self) -> PathBuf {
        self.dir.join(".ccb/tmp")
    }

    /// A file in `tmp_dir`, unless the name is none we would have given.
    pub(crate) fn staged_path(&self, name: &str) -> Option<PathBuf> {
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '-';
        (!name.is_empty() && name.chars().all(plain)).then(|| self.tmp_dir().join(name))
    }

    pub(crate) fn index_path(&self) -> PathBuf {
        self.dir.join(".ccb/index")
    }

    pub(crate) fn intent_path(&self) -> PathBuf {
        self.dir.join(".ccb/intent.json")
    }

    pub(crate) fn high_water_path(&self) -> PathBuf {
        self.dir.join(".highwatermark")
    }

    pub(crate) fn history_paths(&self) -> Paths {
        Paths::new(&self.dir.join(".ccb"))
    }

    pub(crate) fn durability(&self) -> Durability {
        self.options.durability
    }

    pub(crate) fn now_ms(&self) -> i64 {
        self.options.clock.now_ms()
    }
}

/// Where the records of checks of the list in `dir` are.
pub(crate) fn records_dir(dir: &Path) -> PathBuf {
    dir.join(".ccb/checks")
}
