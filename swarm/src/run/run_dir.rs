//! The files of one run, and the locks that say who is there.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::Value;
use store::atomic::{self, Durability, Staged};
use store::fault::{pass, reached};
use store::fifo::{self, Bell, Ringer};
use store::home::{create_durable_dir, create_private_dir};
use store::lock::{FileLock, is_held, wait_until_free};
use store::{Category, Explain, Facts, IoContext, StoreError};

use super::exit::Exit;
use super::meta::{Meta, VERSION};
use crate::fault;
use crate::process::ProcessId;

/// Time for which taking a lock is tried: a process that only asks if a run is alive has it,
/// shared, for a moment.
const TRY_LOCK_FOR: Duration = Duration::from_secs(2);
/// Maximum wait for the run's short lock.
const SHORT: Duration = Duration::from_secs(10);

const EXIT: &str = "exit.json";
const KEEPER: &str = "keeper.json";

/// The reason why a run's files could not be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum RunError {
    /// There is no such run.
    #[error("there is no agent {id}")]
    NotFound { id: String },
    /// A file of it says something that cannot be.
    #[error("{}: {why}", path.display())]
    Corrupt { path: PathBuf, why: String },
    /// A later version wrote it.
    #[error("{}: written by a newer version of ccb (format {found}); it is read, not changed", path.display())]
    Newer { path: PathBuf, found: u64 },
    /// The run has a supervisor.
    #[error("agent {id} is running")]
    Running { id: String },
    /// A file could not be read, written or locked.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Explain for RunError {
    fn facts(&self) -> Facts {
        match self {
            Self::NotFound { .. } => Facts::new(Category::NotFound, "agent_not_found")
                .hint("`ccb agent list` shows the agents there are"),
            Self::Corrupt { .. } => Facts::new(Category::Failed, "agent_failed"),
            Self::Newer { .. } => Facts::new(Category::Invalid, "newer_version"),
            Self::Running { .. } => Facts::new(Category::Refused, "running"),
            Self::Store(error) => error.facts(),
        }
    }
}

/// The files of one run.
#[derive(Debug, Clone)]
pub struct RunDir {
    runs: PathBuf,
    dir: PathBuf,
    id: String,
}

/// The right to supervise a run, until it is dropped; guard and host have it from their starter.
#[derive(Debug)]
pub struct Held {
    pub(super) alive: FileLock,
}

impl Held {
    /// The lock, to be given to a guard. From here on the run is alive as long as a process has a
    /// copy of it.
    pub fn hand_over(self) -> Result<std::fs::File, RunError> {
        Ok(self.alive.hand_over()?)
    }
}

/// Says that a caller waits for the run's result and passes it on, until it is dropped.
#[derive(Debug)]
#[must_use = "nobody waits any more when this is dropped"]
pub struct Waiter {
    _lock: FileLock,
}

impl RunDir {
    /// The run `id` among `runs`; it need not exist.
    pub fn new(runs: &Path, id: &str) -> Self {
        Self {
            runs: runs.to_owned(),
            dir: runs.join(id),
            id: id.to_owned(),
        }
    }

    /// The run whose directory this is.
    pub fn at(dir: &Path) -> Option<Self> {
        let id = dir.file_name()?.to_str()?;
        Some(Self::new(dir.parent()?, id))
    }

    /// The agent's id.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The run's directory.
    pub fn path(&self) -> &Path {
        &self.dir
    }

    /// The directory that this run and the others of its team are in.
    pub fn runs_dir(&self) -> &Path {
        &self.runs
    }

    /// The path of the output of the check of its work.
    pub fn check_path(&self) -> PathBuf {
        self.dir.join("check.log")
    }

    /// The path of its output.
    pub fn output_path(&self) -> PathBuf {
        self.dir.join("output.log")
    }

    /// The path of its events.
    pub fn transcript_path(&self) -> PathBuf {
        self.dir.join("transcript.jsonl")
    }

    /// The path of the log of guard and host, for maintainers.
    pub fn log_path(&self) -> PathBuf {
        self.dir.join("host.log")
    }

    /// Writes the run down, before it has any process, and takes it. The record is on the disk
    /// afterwards: nothing else knows what the run was for.
    pub fn create(&self, meta: &Meta, prompt: &str) -> Result<Held, RunError> {
        create_durable_dir(&self.dir, Durability::Full)?;
        let held = self.take()?;
        // From here on a later command looks after it if we do not come far.
        self.mark_active()?;
        reached(fault::RUN_MARKED);
        self.write("prompt", prompt.as_bytes(), Durability::Ordered)?;
        fifo::create(&self.dir.join("control"))?;
        self.put_meta(meta, Durability::Full)?;
        reached(fault::RUN_REGISTERED);
        Ok(held)
    }

    fn mark_active(&self) -> Result<(), RunError> {
        let active = self.active_dir();
        create_durable_dir(&active, Durability::Full)?;
        atomic::open_private(&self.active_path())?;
        Ok(atomic::sync_dir(&active, Durability::Full)?)
    }

    /// Takes a run without a supervisor.
    pub fn take(&self) -> Result<Held, RunError> {
        let path = self.dir.join("alive.lock");
        let deadline = Instant::now() + TRY_LOCK_FOR;
        loop {
            if let Some(alive) = FileLock::try_exclusive(&path)? {
                return Ok(Held { alive });
            }
            // Another process supervises it, and does not only ask for its state.
            if is_held(&path)? || Instant::now() >= deadline {
                return Err(RunError::Running {
                    id: self.id.clone(),
                });
            }
            std::thread::yield_now();
        }
    }

    /// True if a process supervises it.
    pub fn is_alive(&self) -> Result<bool, RunError> {
        Ok(is_held(&self.dir.join("alive.lock"))?)
    }

    /// Waits until it has no supervisor any more, at most `limit`; true if that is so.
    pub fn wait_dead(&self, limit: Duration) -> Result<bool, RunError> {
        Ok(wait_until_free(&self.dir.join("alive.lock"), limit)?)
    }

    /// Waits until the end of the run is recorded, at most `limit`. `None` if that is not so by
    /// then, or if no process is left that could record it.
    pub fn wait_exit(&self, life: u32, limit: Duration) -> Result<Option<Exit>, RunError> {
        let started = Instant::now();
        let free = wait_until_free(&self.dir.join("result.lock"), limit)?;
        if let Some(exit) = self.exit(life)? {
            return Ok(Some(exit));
        }
        // The guard is gone, or was not there yet; a process that is left has the other lock.
        if free && self.wait_dead(limit.saturating_sub(started.elapsed()))? {
            return self.exit(life);
        }
        Ok(None)
    }

    /// The lock that the guard holds until the end of the run is recorded.
    pub fn hold_result(&self) -> Result<FileLock, RunError> {
        let path = self.dir.join("result.lock");
        Ok(FileLock::exclusive(&path, "the run's result", SHORT)?)
    }

    /// Held for moments: by a process that resumes the run, or decides who tells its parent.
    pub fn lock(&self) -> Result<FileLock, RunError> {
        let what = format!("agent {}", self.id);
        Ok(FileLock::exclusive(&self.dir.join("lock"), &what, SHORT)?)
    }

    /// Says that the caller waits for the result and will pass it on.
    pub fn waiter(&self) -> Result<Waiter, RunError> {
        let path = self.dir.join("waiters.lock");
        let deadline = Instant::now() + TRY_LOCK_FOR;
        loop {
            if let Some(lock) = FileLock::try_shared(&path)? {
                return Ok(Waiter { _lock: lock });
            }
            if Instant::now() >= deadline {
                return Err(RunError::Running {
                    id: self.id.clone(),
                });
            }
            std::thread::yield_now();
        }
    }

    /// True if a caller waits for the result and will pass it on.
    pub fn has_waiter(&self) -> Result<bool, RunError> {
        let path = self.dir.join("waiters.lock");
        Ok(path.exists() && FileLock::try_exclusive(&path)?.is_none())
    }

    /// The record of the run.
    pub fn meta(&self) -> Result<Meta, RunError> {
        let not_found = || RunError::NotFound {
            id: self.id.clone(),
        };
        let path = self.dir.join("meta.json");
        let bytes = atomic::read(&path)?.ok_or_else(not_found)?;
        parse(&bytes, &path)
    }

    /// True if this is its name; cases do not matter. Files of other runs are not read, so that
    /// many can be asked.
    pub fn is_named(&self, name: &str) -> Result<bool, RunError> {
        let path = self.dir.join("meta.json");
        let Some(bytes) = atomic::read(&path)? else {
            return Ok(false);
        };
        // Names hold no quotes, so what stands between two of them is the whole of it.
        let mut pieces = bytes.split(|byte| *byte == b'"');
        let mentioned = pieces.any(|piece| piece.eq_ignore_ascii_case(name.as_bytes()));
        if !mentioned {
            return Ok(false);
        }
        // A file that cannot be read has no name.
        let meta: Option<Meta> = parse(&bytes, &path).ok();
        let own = meta.and_then(|meta| meta.name);
        Ok(own.is_some_and(|own| own.eq_ignore_ascii_case(name)))
    }

    /// Writes down what is known about the run. After a power cut it may be what was written
    /// before, but never nothing.
    pub fn write_meta(&self, meta: &Meta) -> Result<(), RunError> {
        self.put_meta(meta, Durability::Ordered)
    }

    fn put_meta(&self, meta: &Meta, durability: Durability) -> Result<(), RunError> {
        if meta.v > VERSION {
            return Err(RunError::Newer {
                path: self.dir.join("meta.json"),
                found: meta.v,
            });
        }
        let mut meta = meta.clone();
        meta.v = VERSION;
        self.write("meta.json", &json(&meta)?, durability)
    }

    /// The run's first prompt.
    pub fn prompt(&self) -> Result<String, RunError> {
        let path = self.dir.join("prompt");
        let bytes = atomic::read(&path)?.unwrap_or_default();
        String::from_utf8(bytes).map_err(|error| RunError::Corrupt {
            path,
            why: error.to_string(),
        })
    }

    /// The end of this life, if it has ended.
    pub fn exit(&self, life: u32) -> Result<Option<Exit>, RunError> {
        let exit: Option<Exit> = self.read(EXIT)?;
        if let Some(exit) = exit.filter(|exit| exit.life == life) {
            return Ok(Some(exit));
        }
        // A waiter for this life may come after the next one has begun.
        let aside: Option<Exit> = self.read(&put_aside(life))?;
        Ok(aside.filter(|exit| exit.life == life))
    }

    /// Records how a life ended, unless that is recorded already; returns the record.
    pub fn end(&self, exit: &Exit, durability: Durability) -> Result<Exit, RunError> {
        let path = self.dir.join(EXIT);
        self.put_exit_aside(exit.life)?;
        if let Some(first) = self.exit(exit.life)? {
            return Ok(first);
        }
        pass(fault::RUN_ENDING).context("create", &path)?;
        let created = Staged::write(&self.dir, &json(exit)?, durability)?.create(&path)?;
        atomic::sync_parent(&path, durability)?;
        reached(fault::RUN_ENDED);
        match (created, self.exit(exit.life)?) {
            (false, Some(first)) => Ok(first),
            _ => Ok(exit.clone()),
        }
    }

    /// A new life begins: the run is marked again, and the end of the last life is put aside.
    pub fn begin_life(&self, meta: &mut Meta) -> Result<(), RunError> {
        self.mark_active()?;
        meta.life = meta.life.max(1) + 1;
        meta.used_before = meta.usage;
        meta.restarts = 0;
        self.write_meta(meta)?;
        reached(fault::RUN_NEXT_LIFE);
        self.put_exit_aside(meta.life)
    }

    /// Puts an `exit.json` aside that cannot be read, so that the run can be finished. Only for a
    /// caller that has taken the run.
    pub fn put_damaged_exit_aside(&self) -> Result<(), RunError> {
        atomic::set_unreadable_aside(&self.dir.join(EXIT))?;
        Ok(())
    }

    /// Moves a run whose files cannot be read out of the way, whole, to `dir`; returns where it is.
    /// Only for a caller that has taken it.
    pub fn set_aside(&self, dir: &Path) -> Result<PathBuf, RunError> {
        create_private_dir(dir)?;
        let mut number = 0;
        let aside = loop {
            let aside = dir.join(format!("{}-{number}", self.id));
            if atomic::rename_new(&self.dir, &aside)? {
                break aside;
            }
            number += 1;
        };
        self.settle()?;
        Ok(aside)
    }

    /// Makes room for the end of this life.
    fn put_exit_aside(&self, life: u32) -> Result<(), RunError> {
        let exit: Option<Exit> = self.read(EXIT)?;
        if let Some(earlier) = exit.filter(|exit| exit.life < life) {
            let aside = self.dir.join(put_aside(earlier.life));
            atomic::rename(&self.dir.join(EXIT), &aside)?;
        }
        Ok(())
    }

    /// Deletes what the agent printed, for when there is no room for anything else.
    pub fn drop_output(&self) -> Result<(), RunError> {
        for name in ["output.1.log", "output.log"] {
            atomic::remove(&self.dir.join(name))?;
        }
        Ok(())
    }

    /// There is nothing left to do for this run.
    pub fn settle(&self) -> Result<(), RunError> {
        atomic::remove(&self.active_path())?;
        Ok(())
    }

    /// True if there is something left to do for it.
    pub fn is_active(&self) -> bool {
        self.active_path().exists()
    }

    /// Writes down that this process starts the run's commands.
    pub fn write_keeper(&self) -> Result<(), RunError> {
        let bytes = json(&ProcessId::own())?;
        self.write(KEEPER, &bytes, Durability::Ordered)
    }

    /// True if this process starts the run's commands.
    pub fn is_keeper(&self, process: &ProcessId) -> bool {
        let keeper: Result<Option<ProcessId>, RunError> = self.read(KEEPER);
        keeper.is_ok_and(|keeper| keeper.as_ref() == Some(process))
    }

    /// The conversation our own loop has kept with the run, if it has come so far.
    pub fn conversation(&self) -> Option<PathBuf> {
        let path = self.dir.join("conversation.jsonl");
        let written = std::fs::metadata(&path).is_ok_and(|it| it.len() > 0);
        written.then_some(path)
    }

    /// Rings for the run's supervisor.
    pub fn ring(&self) {
        Ringer::new(self.dir.join("control")).ring();
    }

    /// Listens for rings.
    pub(super) fn bell(&self) -> Result<Bell, RunError> {
        let path = self.dir.join("control");
        fifo::create(&path)?;
        Ok(Bell::new(&path)?)
    }

    pub(super) fn write(
        &self,
        name: &str,
        bytes: &[u8],
        durability: Durability,
    ) -> Result<(), RunError> {
        let path = self.dir.join(name);
        Ok(atomic::replace(&self.dir, &path, bytes, durability)?)
    }

    pub(super) fn read<T: serde::de::DeserializeOwned>(
        &self,
        name: &str,
    ) -> Result<Option<T>, RunError> {
        let path = self.dir.join(name);
        match atomic::read(&path)? {
            Some(bytes) => parse(&bytes, &path).map(Some),
            None => Ok(None),
        }
    }

    fn active_dir(&self) -> PathBuf {
        self.runs.join(super::list::ACTIVE)
    }

    fn active_path(&self) -> PathBuf {
        self.active_dir().join(&self.id)
    }
}

/// The name under which the end of a life is kept when another one has begun.
fn put_aside(life: u32) -> String {
    format!("exit-{life}.json")
}

pub(super) fn json(value: &impl serde::Serialize) -> Result<Vec<u8>, RunError> {
    let mut bytes = serde_json::to_vec_pretty(value).map_err(|error| RunError::Corrupt {
        path: PathBuf::new(),
        why: error.to_string(),
    })?;
    bytes.push(b'\n');
    Ok(bytes)
}

fn parse<T: serde::de::DeserializeOwned>(bytes: &[u8], path: &Path) -> Result<T, RunError> {
    let corrupt = |error: serde_json::Error| RunError::Corrupt {
        path: path.to_owned(),
        why: error.to_string(),
    };
    let value: Value = serde_json::from_slice(bytes).map_err(corrupt)?;
    serde_json::from_value(value).map_err(corrupt)
}
