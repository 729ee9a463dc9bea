//! Advisory locks on files that are never deleted.
//!
//! The kernel releases such a lock when its holder dies, however it dies. Deleting a lock file
//! would let two processes hold "the same" lock, so ccb never does. A lock protects one short
//! read-modify-write; the owner of a task is data, not a held lock.

use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::thread;

use std::time::{Duration, Instant};

use crate::atomic::open_private;
use crate::error::{IoContext, Result, StoreError};
use crate::watchdog::Waiting;

/// Time a process may keep taking the lock again before it yields to others.
const TURN: Duration = Duration::from_micros(500);

/// Time limit in a lock's queue; after it, the process waits for the lock itself.
const QUEUE_PATIENCE: Duration = Duration::from_millis(250);
/// Time during which a queue that did not move is skipped.
const QUEUE_DISTRUST: Duration = Duration::from_secs(10);

/// Default time limit for taking a lock.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(10);

/// An exclusive lock, held until this value is dropped.
#[derive(Debug)]
#[must_use = "the lock is released when this is dropped"]
pub struct FileLock(ReusableLock);

impl FileLock {
    /// Waits up to `timeout` for the exclusive lock on `path`, creating the file if needed.
    ///
    /// `what` says in words what the lock protects, for the error. Not reentrant: a second
    /// call in the same process waits for the first guard.
    pub fn exclusive(path: &Path, what: &str, timeout: Duration) -> Result<Self> {
        let mut lock = ReusableLock::new(path.to_owned());
        lock.acquire(|| what, timeout)?;
        Ok(Self(lock))
    }

    /// Takes the lock if it is free.
    pub fn try_exclusive(path: &Path) -> Result<Option<Self>> {
        let mut lock = ReusableLock::new(path.to_owned());
        Ok(lock.try_acquire()?.then_some(Self(lock)))
    }

    /// Takes the lock together with any number of others, unless a process holds it exclusively.
    ///
    /// For long uses: a process that wants to remove the protected thing asks for the exclusive
    /// lock.
    pub fn try_shared(path: &Path) -> Result<Option<Self>> {
        let mut lock = ReusableLock::new(path.to_owned());
        let file = lock.file()?;
        let taken = retried(|| fs4::FileExt::try_lock_shared(file));
        Ok(taken.context("lock", path)?.then_some(Self(lock)))
    }

    /// A second handle on the lock, for a child process: if this process is killed, the lock stays
    /// held until the child has ended, too.
    pub fn handle(&self) -> Result<File> {
        let path = &self.0.path;
        match &self.0.file {
            Some(file) => file.try_clone().context("lock", path),
            None => open_private(path),
        }
    }

    /// Gives the lock to the owner of the returned handle: it is free when the last copy of the
    /// handle is closed, in whatever process.
    pub fn hand_over(mut self) -> Result<File> {
        match self.0.file.take() {
            // The value that is dropped now has no file to unlock.
            Some(file) => Ok(file),
            None => open_private(&self.0.path),
        }
    }

    /// The same as [`Self::try_exclusive`], but waits up to `patience` if the process that took the
    /// lock is dead. A program that it was just starting when it was killed holds the lock for a
    /// moment longer.
    pub fn try_exclusive_after_death(path: &Path, patience: Duration) -> Result<Option<Self>> {
        let deadline = Instant::now() + patience;
        loop {
            let taken = Self::try_exclusive(path)?;
            if taken.is_some() || Instant::now() >= deadline || known_holder(path).is_some() {
                return Ok(taken);
            }
            thread::sleep(Duration::from_millis(2));
        }
    }

    /// The holder of the lock on `path`, as far as the system tells; for messages.
    pub fn describe_holder(path: &Path) -> String {
        holder(path)
    }
}

impl Drop for FileLock {
    fn drop(&mut self) {
        self.0.release();
    }
}

/// A lock that is taken and released many times without opening its file again.
///
/// # Fairness
///
/// When a lock is released, the kernel wakes the waiters, and the fastest process takes it: as a
/// rule the one that has just released it, because it is running. So a lock may have a *queue*, a
/// second lock that is held while waiting for the first. After its turn a process takes the lock
/// only through the queue, where the waiters are ahead of it.
#[derive(Debug)]
pub struct ReusableLock {
    path: PathBuf,
    file: Option<File>,
    /// Start of our turn, or the last time we yielded to others.
    turn: Instant,
    queue: Option<Box<Self>>,
    /// The queue is skipped until then, because it did not move.
    no_queue_before: Option<Instant>,
}

impl ReusableLock {
    /// The lock on `path`, not yet taken.
    pub fn new(path: PathBuf) -> Self {
        Self {
            path,
            file: None,
            turn: Instant::now(),
            queue: None,
            no_queue_before: None,
        }
    }

    /// The same with a queue, whose lock is `queue`: no process passes a waiter for longer than a
    /// moment.
    pub fn with_queue(path: PathBuf, queue: PathBuf) -> Self {
        Self {
            queue: Some(Box::new(Self::new(queue))),
            ..Self::new(path)
        }
    }

    /// Waits up to `timeout` for the lock. Must not be held already.
    ///
    /// `what` says in words what the lock protects, for the error.
    pub fn acquire<W: Into<String>>(
        &mut self,
        what: impl FnOnce() -> W,
        timeout: Duration,
    ) -> Result<()> {
        if self.try_acquire()? {
            return Ok(());
        }
        // Waiting in the kernel's queue, not by trying again and again: that would starve us
        // behind processes that lock and unlock in a loop.
        let started = Instant::now();
        let queued = self.stand_in_queue(started + timeout.min(QUEUE_PATIENCE))?;
        let waiting = Waiting::until(started + timeout).context("lock", &self.path)?;
        let taken = self.wait(started + timeout);
        if let (Some(queue), true) = (&mut self.queue, queued) {
            queue.release();
        }
        drop(waiting);
        if taken? {
            self.turn = Instant::now();
            return Ok(());
        }
        Err(StoreError::LockTimeout {
            what: what().into(),
            holder: holder(&self.path),
            waited: started.elapsed(),
            path: self.path.clone(),
        })
    }

    /// Takes the queue's lock, but gives up early: its holder may be a stopped process, and the
    /// queue only makes the order fair; the lock itself is what protects.
    fn stand_in_queue(&mut self, deadline: Instant) -> Result<bool> {
        let now = Instant::now();
        let Some(queue) = &mut self.queue else {
            return Ok(false);
        };
        if self.no_queue_before.is_some_and(|then| now < then) {
            return queue.try_acquire();
        }
        let waiting = Waiting::until(deadline).context("lock", &self.path)?;
        let queued = queue.wait(deadline)?;
        drop(waiting);
        self.no_queue_before = (!queued).then(|| now + QUEUE_DISTRUST);
        Ok(queued)
    }

    /// Blocks until the lock is ours, or until `deadline`; from then on the watchdog interrupts the
    /// call.
    fn wait(&mut self, deadline: Instant) -> Result<bool> {
        let path = self.path.clone();
        let file = self.file()?;
        loop {
            match fs4::FileExt::lock(file) {
                Ok(()) => return Ok(true),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error).context("lock", &path),
            }
            if Instant::now() >= deadline {
                return Ok(false);
            }
        }
    }

    /// Takes the lock if it is free and no process waits whose turn it is.
    pub fn try_acquire(&mut self) -> Result<bool> {
        let trusted = self
            .no_queue_before
            .is_none_or(|then| Instant::now() >= then);
        if self.turn.elapsed() > TURN
            && trusted
            && let Some(queue) = &mut self.queue
        {
            if !queue.try_acquire()? {
                return Ok(false);
            }
            let path = self.path.clone();
            let taken = self.file();
            let taken = taken.and_then(|file| try_lock(file).context("lock", &path));
            if let Some(queue) = &mut self.queue {
                queue.release();
            }
            self.turn = Instant::now();
            return taken;
        }
        try_lock(self.file()?).context("lock", &self.path)
    }

    /// True if the lock's file has been opened.
    pub fn was_opened(&self) -> bool {
        self.file.is_some()
    }

    /// Releases the lock, if it is held.
    pub fn release(&mut self) {
        if let Some(file) = &self.file {
            if let Err(error) = fs4::FileExt::unlock(file) {
                tracing::error!(%error, path = %self.path.display(), "unlock failed");
                // Closing the file releases the lock as well.
                self.file = None;
            }
            // The lock is not handed over to the first waiter; without the yield this process would
            // often take it again before the waiter has woken up. But a change of processes costs
            // as much as a short section, so a few in a row are fine. If there is a queue, the
            // waiters are found there.
            if self.queue.is_none() && self.turn.elapsed() > TURN {
                self.turn = Instant::now();
                rustix::thread::sched_yield();
            }
        }
    }

    /// The open lock file. A deleted one is no lock any more: open the new one.
    fn file(&mut self) -> Result<&File> {
        let linked = |file: &File| file.metadata().is_ok_and(|meta| meta.nlink() > 0);
        if !self.file.as_ref().is_some_and(linked) {
            self.file = None;
        }
        match &mut self.file {
            Some(file) => Ok(file),
            empty => Ok(empty.insert(open_private(&self.path)?)),
        }
    }
}

/// Waits at most `limit` until no process holds the lock on `path` exclusively; true if so. No
/// file, no lock. Takes nothing: another process may take it right after.
pub fn wait_until_free(path: &Path, limit: Duration) -> Result<bool> {
    let Some(file) = File::open(path).if_there("open", path)? else {
        return Ok(true);
    };
    if !is_file_held(&file).context("lock", path)? {
        return Ok(true);
    }
    let started = Instant::now();
    let _waiting = Waiting::until(started + limit).context("lock", path)?;
    loop {
        match fs4::FileExt::lock_shared(&file) {
            Ok(()) => return Ok(true),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error).context("lock", path),
        }
        if started.elapsed() >= limit {
            return Ok(false);
        }
    }
}

/// True if some process holds the lock on `path` at this moment; no file, no lock.
pub fn is_held(path: &Path) -> Result<bool> {
    match File::open(path).if_there("open", path)? {
        Some(file) => is_file_held(&file).context("lock", path),
        None => Ok(false),
    }
}

/// The same for an open file.
///
/// Asks with a shared lock that is released at once, so that two askers at the same time never take
/// each other for the holder.
pub fn is_file_held(file: &File) -> io::Result<bool> {
    let free = retried(|| fs4::FileExt::try_lock_shared(file))?;
    if free {
        fs4::FileExt::unlock(file)?;
    }
    Ok(!free)
}

fn try_lock(file: &File) -> io::Result<bool> {
    // Spelled out because std has methods of the same name that would win.
    retried(|| fs4::FileExt::try_lock(file))
}

/// True if `attempt` took the lock; asked again if a signal got in between.
fn retried(mut attempt: impl FnMut() -> Result<(), fs4::TryLockError>) -> io::Result<bool> {
    loop {
        match attempt() {
            Ok(()) => return Ok(true),
            Err(fs4::TryLockError::WouldBlock) => return Ok(false),
            Err(fs4::TryLockError::Error(error)) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(fs4::TryLockError::Error(error)) => return Err(error),
        }
    }
}

/// Names the holder of the lock on `path`, as far as the kernel tells.
fn holder(path: &Path) -> String {
    known_holder(path).map_or_else(|| "another process".to_owned(), describe_process)
}

/// The process that took the lock, if it still runs and the system tells.
fn known_holder(path: &Path) -> Option<u32> {
    // The kernel returns its table in pieces, and entries slip through between two pieces when
    // others lock and unlock meanwhile.
    let found = (0..20).find_map(|_| holder_pid(path));
    found.filter(|pid| Path::new("/proc").join(pid.to_string()).exists())
}

/// Finds the lock's holder in the kernel's table of locks.
fn holder_pid(path: &Path) -> Option<u32> {
    let meta = std::fs::metadata(path).ok()?;
    let (major, minor) = (rustix::fs::major(meta.dev()), rustix::fs::minor(meta.dev()));
    let exact = format!("{major:02x}:{minor:02x}:{}", meta.ino());
    let inode = format!(":{}", meta.ino());
    let table = std::fs::read_to_string("/proc/locks").ok()?;
    // Some file systems show another device there; then the inode alone must do.
    find_holder(&table, |place| place == exact)
        .or_else(|| find_holder(&table, |place| place.ends_with(&inode)))
}

fn find_holder(table: &str, matches: impl Fn(&str) -> bool) -> Option<u32> {
    // "1: FLOCK  ADVISORY  WRITE 1234 fd:01:5678 0 EOF"; waiters have "->" as second field.
    table.lines().find_map(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let [_, kind, _, _, pid, device_and_inode, ..] = fields[..] else {
            return None;
        };
        (kind != "->" && matches(device_and_inode))
            .then(|| pid.parse().ok())
            .flatten()
    })
}

fn describe_process(pid: u32) -> String {
    let proc = PathBuf::from(format!("/proc/{pid}"));
    let command = std::fs::read(proc.join("cmdline"))
        .map(|bytes| {
            String::from_utf8_lossy(&bytes)
                .replace('\0', " ")
                .trim()
                .to_owned()
        })
        .unwrap_or_default();
    let short: String = command
        .chars()
        .filter(|c| !c.is_control())
        .take(80)
        .collect();
    let stopped = std::fs::read_to_string(proc.join("status"))
        .is_ok_and(|status| status.lines().any(|line| line.starts_with("State:\tT")));
    match (short.is_empty(), stopped) {
        (true, _) => format!("process {pid}"),
        (false, false) => format!("process {pid} ({short})"),
        (false, true) => format!("process {pid} ({short}), which is stopped"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_holder_waits_and_the_error_names_the_first() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(".lock");
        let first = FileLock::exclusive(&path, "the list", DEFAULT_TIMEOUT).unwrap();
        let error = FileLock::exclusive(&path, "the list", Duration::from_millis(30)).unwrap_err();
        let text = error.to_string();
        assert!(text.contains("the list"), "{text}");
        let us = format!("process {}", std::process::id());
        assert!(text.contains(&us), "{text}");
        assert!(FileLock::try_exclusive(&path).unwrap().is_none());
        drop(first);
        // The waiter that gave up must not hold the lock for long once it gets it.
        let again = FileLock::exclusive(&path, "the list", DEFAULT_TIMEOUT).unwrap();
        drop(again);
        assert!(path.exists(), "lock files are never deleted");
    }

    #[test]
    fn what_a_killed_holder_was_starting_is_waited_for_and_a_living_one_is_not() {
        use std::io::{BufRead, BufReader, Write};
        use std::process::{Command, Stdio};

        use rustix::process::{Pid, Signal, kill_process};

        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(".lock");
        let (soon, long) = (Duration::from_millis(50), Duration::from_secs(60));
        // `flock` takes the lock and ends; the shell's child has the file open.
        let script = r#"exec 9>"$1"; flock 9 || exit 1; sleep 600 & exec 9>&-; echo $!; wait"#;
        let mut shell = Command::new("sh")
            .args(["-c", script, "sh"])
            .arg(&path)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut said = String::new();
        let mut out = BufReader::new(shell.stdout.take().unwrap());
        out.read_line(&mut said).unwrap();
        let Ok(child) = said.trim().parse() else {
            writeln!(io::stderr(), "skipped: there is no flock(1)").ok();
            shell.wait().unwrap();
            return;
        };
        let child = Pid::from_raw(child).unwrap();
        let taken = FileLock::try_exclusive_after_death(&path, soon).unwrap();
        assert!(taken.is_none(), "it is not free yet");
        let waiting = std::thread::spawn({
            let path = path.clone();
            move || FileLock::try_exclusive_after_death(&path, long).unwrap()
        });
        kill_process(child, Signal::KILL).unwrap();
        shell.wait().unwrap();
        let held = waiting.join().unwrap().expect("it is free now");
        // Otherwise this would never end.
        let ever = Duration::from_secs(100_000);
        let other = FileLock::try_exclusive_after_death(&path, ever).unwrap();
        assert!(other.is_none(), "we have it, and we live");
        drop(held);
    }

    #[test]
    fn asking_who_holds_a_lock_does_not_take_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("alive.lock");
        assert!(!is_held(&path).unwrap());
        assert!(!path.exists(), "asking makes no file");
        let held = FileLock::exclusive(&path, "the run", DEFAULT_TIMEOUT).unwrap();
        assert!(is_held(&path).unwrap());
        drop(held);
        assert!(!is_held(&path).unwrap());
        // Another asker holds a shared lock for a moment.
        let asking = File::open(&path).unwrap();
        fs4::FileExt::lock_shared(&asking).unwrap();
        assert!(!is_held(&path).unwrap());
    }

    #[test]
    fn waiting_for_a_lock_to_be_free_takes_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("alive.lock");
        assert!(wait_until_free(&path, Duration::ZERO).unwrap());
        let held = FileLock::exclusive(&path, "the run", DEFAULT_TIMEOUT).unwrap();
        assert!(!wait_until_free(&path, Duration::from_millis(20)).unwrap());
        let waiting = std::thread::spawn({
            let path = path.clone();
            move || wait_until_free(&path, Duration::from_secs(60)).unwrap()
        });
        drop(held);
        assert!(waiting.join().unwrap());
        assert!(FileLock::try_exclusive(&path).unwrap().is_some());
    }

    #[test]
    fn a_child_process_does_not_inherit_the_lock() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(".lock");
        let held = FileLock::exclusive(&path, "x", DEFAULT_TIMEOUT).unwrap();
        let mut child = std::process::Command::new("cat")
            .stdin(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        drop(held);
        let free = FileLock::try_exclusive(&path).unwrap().is_some();
        drop(child.stdin.take());
        child.wait().unwrap();
        assert!(free, "the lock must be free while the child still runs");
    }

    #[test]
    fn who_waits_is_not_passed_by_one_that_has_had_its_turn() {
        use std::sync::mpsc;
        let dir = tempfile::tempdir().unwrap();
        let (path, queue) = (dir.path().join(".lock"), dir.path().join("queue"));
        let lock = || ReusableLock::with_queue(path.clone(), queue.clone());
        let mut writer = lock();
        for _ in 0..50 {
            writer.acquire(|| "the list", DEFAULT_TIMEOUT).unwrap();
            let (go, may_go) = mpsc::channel::<()>();
            let mut other = lock();
            // It looks at the lock before the queue: a process it sees there waits.
            other.turn = Instant::now() + DEFAULT_TIMEOUT;
            let waiting = std::thread::spawn(move || {
                other.acquire(|| "the list", DEFAULT_TIMEOUT).unwrap();
                may_go.recv().unwrap();
                other.release();
            });
            while FileLock::try_exclusive(&queue).unwrap().is_some() {
                std::thread::yield_now();
            }
            // Within its turn it may take the lock again; the waiter has not even woken up.
            writer.turn = Instant::now() + TURN;
            writer.release();
            let again = writer.try_acquire().unwrap();
            if again {
                // The turn is over.
                writer.turn = Instant::now().checked_sub(TURN * 2).unwrap();
                writer.release();
            } else {
                writer.turn = Instant::now().checked_sub(TURN * 2).unwrap();
            }
            assert!(!writer.try_acquire().unwrap(), "it is the other's turn");
            go.send(()).unwrap();
            waiting.join().unwrap();
        }
        // A process in the queue that does not wait for the lock, because it is stopped.
        let stopped = FileLock::try_exclusive(&queue).unwrap();
        writer.acquire(|| "the list", DEFAULT_TIMEOUT).unwrap();
        drop(stopped);
        let error = lock().acquire(|| "the list", Duration::from_millis(30));
        assert!(matches!(error, Err(StoreError::LockTimeout { .. })));
        assert!(
            FileLock::try_exclusive(&queue).unwrap().is_some(),
            "who gave up does not stand in the queue"
        );
    }
}
