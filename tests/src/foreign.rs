//! The other tool that works on the same task files, as faithfully as possible.
//!
//! It locks with plain directories (`.lock.lock/` to create, `<id>.json.lock/` to change one task),
//! never with `flock`; it takes over a directory whose mtime is ten seconds old, gives up after
//! thirty tries, and rewrites files in place, so that others can see half of one.

use std::cell::Cell;
use std::fs::{DirBuilder, File};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustix::fs::{AtFlags, CWD, Timespec, Timestamps};
use serde_json::{Map, Value, json};
use store::clock::{Clock, SystemClock};

/// Age of a lock directory, in milliseconds, from which it may be taken over.
const STALE_MS: i64 = 10_000;
const RETRIES: u32 = 30;
const SHORTEST_PAUSE: Duration = Duration::from_millis(5);
const LONGEST_PAUSE: Duration = Duration::from_millis(100);
/// Pause between its steps: it is slow, so others run in between and see half-done changes.
const STEP: Duration = Duration::from_millis(1);

/// The other tool, at work on one list.
#[derive(Debug)]
pub struct ForeignTool {
    dir: PathBuf,
    /// True after the first lock of a process, which probes how exactly the file system keeps
    /// times.
    probed: Cell<bool>,
}

/// A lock directory, kept fresh until it is dropped.
#[derive(Debug)]
pub struct ForeignLock {
    path: PathBuf,
    released: Arc<AtomicBool>,
    heartbeat: std::thread::Thread,
}

impl ForeignTool {
    pub fn new(list_dir: impl Into<PathBuf>) -> Self {
        Self {
            dir: list_dir.into(),
            probed: Cell::new(false),
        }
    }

    /// Creates a task and returns its id: one more than any on disk or in `.highwatermark`.
    pub fn create(&self, subject: &str, more: &Map<String, Value>) -> io::Result<u64> {
        std::fs::create_dir_all(&self.dir)?;
        File::options()
            .create(true)
            .append(true)
            .open(self.dir.join(".lock"))?;
        let _lock = self.lock(".lock")?;
        let id = self.highest_id()?.max(self.high_water()) + 1;
        let mut task = json!({
            "id": id.to_string(), "subject": subject, "description": "", "status": "pending",
            "blocks": [], "blockedBy": [],
        });
        if let Some(task) = task.as_object_mut() {
            task.extend(more.clone());
        }
        write_in_place(&self.task_file(id), &task, || {})?;
        Ok(id)
    }

    /// Reads a task, passes it to `change`, and writes it back; true if it was there.
    pub fn update(
        &self,
        id: u64,
        change: impl FnOnce(&mut Map<String, Value>),
    ) -> io::Result<bool> {
        self.update_slowly(id, change, || {})
    }

    /// The same, calling `half_way` when half of the file is written.
    pub fn update_slowly(
        &self,
        id: u64,
        change: impl FnOnce(&mut Map<String, Value>),
        half_way: impl FnOnce(),
    ) -> io::Result<bool> {
        let path = self.task_file(id);
        if !path.exists() {
            return Ok(false);
        }
        let _lock = self.lock_task(id)?;
        let bytes = match std::fs::read(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
            bytes => bytes?,
        };
        let mut task: Map<String, Value> = serde_json::from_slice(&bytes)?;
        change(&mut task);
        std::thread::park_timeout(STEP);
        write_in_place(&path, &Value::Object(task), half_way)?;
        Ok(true)
    }

    /// Deletes a task and records its id, so that it is not used again.
    pub fn delete(&self, id: u64) -> io::Result<()> {
        let _list = self.lock(".lock")?;
        let _task = self.lock_task(id)?;
        if self.high_water() < id {
            std::fs::write(self.dir.join(".highwatermark"), id.to_string())?;
        }
        std::fs::remove_file(self.task_file(id))
    }

    /// Locks one task.
    pub fn lock_task(&self, id: u64) -> io::Result<ForeignLock> {
        self.lock(&format!("{id}.json"))
    }

    fn lock(&self, file: &str) -> io::Result<ForeignLock> {
        let path = self.dir.join(format!("{file}.lock"));
        let mut pause = SHORTEST_PAUSE;
        for _ in 0..RETRIES {
            if self.try_lock(&path)? {
                return Ok(ForeignLock::keep_fresh(path));
            }
            std::thread::park_timeout(pause);
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
        let text = format!("ELOCKED: {} is held by another process", path.display());
        Err(io::Error::new(ErrorKind::WouldBlock, text))
    }

    fn try_lock(&self, path: &Path) -> io::Result<bool> {
        if self.make(path)? {
            return Ok(true);
        }
        match std::fs::metadata(path) {
            // Released in between: once more, without checking its age again.
            Err(error) if error.kind() == ErrorKind::NotFound => self.make(path),
            Err(error) => Err(error),
            Ok(meta) if mtime_ms(&meta) < SystemClock.now_ms() - STALE_MS => {
                remove_dir(path)?;
                self.make(path)
            }
            Ok(_) => Ok(false),
        }
    }

    fn make(&self, path: &Path) -> io::Result<bool> {
        match DirBuilder::new().create(path) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => return Ok(false),
            result => result?,
        }
        if !self.probed.replace(true) {
            // The probe leaves a time of up to 1.005 s in the future.
            let next_second = (SystemClock.now_ms() / 1000 + 1) * 1000;
            set_mtime(path, next_second + 5)?;
        }
        Ok(true)
    }

    fn highest_id(&self) -> io::Result<u64> {
        let mut highest = 0;
        for entry in std::fs::read_dir(&self.dir)? {
            let name = entry?.file_name();
            let id = name.to_str().and_then(|name| name.strip_suffix(".json"));
            highest = id.and_then(|id| id.parse().ok()).unwrap_or(0).max(highest);
        }
        Ok(highest)
    }

    fn high_water(&self) -> u64 {
        let text = std::fs::read_to_string(self.dir.join(".highwatermark"));
        text.ok()
            .and_then(|text| text.trim().parse().ok())
            .unwrap_or(0)
    }

    fn task_file(&self, id: u64) -> PathBuf {
        self.dir.join(format!("{id}.json"))
    }
}

impl ForeignLock {
    fn keep_fresh(path: PathBuf) -> Self {
        let released = Arc::new(AtomicBool::new(false));
        let (stop, fresh) = (Arc::clone(&released), path.clone());
        let thread = std::thread::spawn(move || {
            loop {
                std::thread::park_timeout(Duration::from_millis(STALE_MS.unsigned_abs() / 2));
                if stop.load(Ordering::SeqCst) {
                    return;
                }
                set_mtime(&fresh, SystemClock.now_ms()).ok();
            }
        });
        Self {
            path,
            released,
            heartbeat: thread.thread().clone(),
        }
    }
}

impl Drop for ForeignLock {
    fn drop(&mut self) {
        self.released.store(true, Ordering::SeqCst);
        self.heartbeat.unpark();
        // By name, without asking who owns it by now: the other tool does it so.
        remove_dir(&self.path).ok();
    }
}

/// Sets the time at which `path` was last changed.
pub fn set_mtime(path: &Path, ms: i64) -> io::Result<()> {
    let time = Timespec {
        tv_sec: ms / 1000,
        tv_nsec: ms % 1000 * 1_000_000,
    };
    let times = Timestamps {
        last_access: time,
        last_modification: time,
    };
    Ok(rustix::fs::utimensat(CWD, path, &times, AtFlags::empty())?)
}

/// Makes a lock directory look as if its holder had not touched it for a minute.
pub fn make_stale(lock_dir: &Path) {
    set_mtime(lock_dir, SystemClock.now_ms() - 60_000).expect("the lock directory is there");
}

fn mtime_ms(meta: &std::fs::Metadata) -> i64 {
    meta.mtime() * 1000 + meta.mtime_nsec() / 1_000_000
}

fn remove_dir(path: &Path) -> io::Result<()> {
    match std::fs::remove_dir(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        result => result,
    }
}

/// Truncates the file and writes it in two steps, so that others really see half of it.
fn write_in_place(path: &Path, task: &Value, half_way: impl FnOnce()) -> io::Result<()> {
    let text = format!("{task:#}");
    let (first, second) = text.as_bytes().split_at(text.len() / 2);
    let mut file = File::create(path)?;
    file.write_all(first)?;
    std::thread::park_timeout(STEP);
    half_way();
    file.write_all(second)
}
