//! The messages between processes in `.ccb/slots`, a file of fixed-length lines.
//!
//! The first line is the mtime the list's directory had when a process last left it with everything
//! in the index. If the directory has another mtime, another tool changed it. A word after it says
//! that some edges are on one side only. The second line says how far the index file has come, so
//! that not every process writes it. The third line says when a process last read every file.
//!
//! Every other line belongs to one process at a time, the *worker* that holds the kernel lock on
//! `.ccb/workers/<n>`. It says what the worker asks for, and the holder of the list's lock answers
//! there and wakes it (`.ccb/workers/<n>.wake`). See `serve` for the protocol.
//!
//! None of this decides anything: a line that is damaged, late or left by a dead process costs a
//! moment, never a task.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use store::IoContext;
use store::atomic::open_private;
use store::clock::monotonic_ns;
use store::fifo::{self, Bell, Ringer};
use store::home::create_private_dir;
use store::lock::{FileLock, is_file_held};

use crate::error::BoardError;
use crate::files::slot::{Choice, LONG, Slot, decode, encode};

/// Of the lines of the header.
const SHORT: usize = 32;
/// Length of the header in bytes.
const HEADER: usize = 3 * SHORT;
/// Maximum number of workers; further processes have to ask without a slot.
const WORKERS: usize = 256;

/// Says that some edges are on one side only.
const HALVES: &str = "halves";

/// The directory's mtime when it was last left in order with every edge on both sides; for readers
/// that take no lock and make no file.
pub(crate) fn settled_whole(ours: &Path) -> Option<i64> {
    let mut line = [0; SHORT];
    let count = File::open(ours.join("slots"))
        .and_then(|file| file.read_at(&mut line, 0))
        .ok()?;
    let text = std::str::from_utf8(&line[..count]).ok()?;
    let mut words = text.lines().next()?.split_ascii_whitespace();
    let mtime_ns = words.next()?.parse().ok()?;
    words.next().is_none().then_some(mtime_ns)
}

/// Names one worker of the moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct WorkerId(usize);

#[derive(Debug)]
pub(crate) struct Slots {
    path: PathBuf,
    file: File,
    workers: PathBuf,
    /// The slot of this process; `None` until it needs one.
    own: Option<Own>,
    /// The known state of other workers.
    others: Vec<Peer>,
    /// The workers that were read last and left waiting, because it is not their turn.
    left_waiting: Vec<WorkerId>,
    /// The workers whose lines this process has changed.
    answered: Vec<WorkerId>,
    buffer: Vec<u8>,
}

#[derive(Debug)]
struct Own {
    id: WorkerId,
    _lock: FileLock,
    bell: Arc<Bell>,
    /// True if a thread of this process waits for its bell.
    asleep: bool,
}

/// Open files of another worker.
#[derive(Debug, Default)]
struct Peer {
    lock: Option<File>,
    ringer: Option<Ringer>,
}

impl Slots {
    pub(crate) fn open(ours: &Path) -> Result<Self, BoardError> {
        let path = ours.join("slots");
        let file = open_private(&path)?;
        Ok(Self {
            path,
            file,
            workers: ours.join("workers"),
            own: None,
            others: Vec::new(),
            left_waiting: Vec::new(),
            answered: Vec::new(),
            buffer: vec![0; HEADER + 40 * LONG],
        })
    }

    /// The directory's mtime when it was last left in order.
    pub(crate) fn settled(&self) -> Result<Option<i64>, BoardError> {
        self.number(0)
    }

    /// `halves`: some edges are on one side only, because both sides would make a cycle.
    pub(crate) fn set_settled(&self, mtime_ns: i64, halves: bool) -> Result<(), BoardError> {
        let word = if halves { HALVES } else { "" };
        self.write(0, SHORT, &format!("{mtime_ns} {word}"))
    }

    /// The position in the log up to which the index file is written.
    pub(crate) fn indexed(&self) -> Result<Option<u64>, BoardError> {
        self.number(SHORT)
    }

    pub(crate) fn set_indexed(&self, offset: u64) -> Result<(), BoardError> {
        self.write(SHORT, SHORT, &offset.to_string())
    }

    /// True if a process has read every file since `start`, by the machine's monotonic clock.
    pub(crate) fn scanned_since(&self, start: i64) -> Result<bool, BoardError> {
        let scanned: Option<i64> = self.number(2 * SHORT)?;
        // A time in the future is from before the machine was started.
        Ok(scanned.is_some_and(|at| (start..=monotonic_ns()).contains(&at)))
    }

    pub(crate) fn set_scanned(&self, monotonic_ns: i64) -> Result<(), BoardError> {
        self.write(2 * SHORT, SHORT, &monotonic_ns.to_string())
    }

    /// Makes this process a worker, if it can be. The caller holds the list's lock, so no process
    /// takes the lines that the last worker with the same number left for this one's.
    pub(crate) fn register(&mut self) -> Result<bool, BoardError> {
        if self.own.is_none() {
            create_private_dir(&self.workers)?;
            for id in (0..WORKERS).map(WorkerId) {
                let Some(lock) = FileLock::try_exclusive(&self.lock_path(id))? else {
                    continue;
                };
                let wake = self.wake_path(id);
                fifo::create(&wake)?;
                let bell = Arc::new(Bell::new(&wake)?);
                self.set(id, &Slot::Free)?;
                self.own = Some(Own {
                    id,
                    _lock: lock,
                    bell,
                    asleep: false,
                });
                break;
            }
        }
        Ok(self.own.is_some())
    }

    /// The number of this worker; `None` if the process has no slot.
    pub(crate) fn own_id(&self) -> Option<WorkerId> {
        self.own.as_ref().map(|own| own.id)
    }

    /// This process's own line; free if it has none.
    pub(crate) fn own(&self) -> Result<Slot, BoardError> {
        let Some(own) = &self.own else {
            return Ok(Slot::Free);
        };
        let mut line = [0; LONG];
        let count = self.read_at(&mut line, place(own.id))?;
        Ok(decode(&line[..count]).unwrap_or(Slot::Free))
    }

    pub(crate) fn set_own(&self, slot: &Slot) -> Result<(), BoardError> {
        match &self.own {
            Some(own) => self.set(own.id, slot),
            None => Ok(()),
        }
    }

    /// The bell that a sleeping thread of this process waits for.
    pub(crate) fn fall_asleep(&mut self) -> Option<Arc<Bell>> {
        let own = self.own.as_mut()?;
        own.asleep = true;
        Some(own.bell.clone())
    }

    pub(crate) fn awake(&mut self) {
        if let Some(own) = &mut self.own {
            own.asleep = false;
        }
    }

    /// Leaves workers waiting that cannot be served now; the process that changes what they wait
    /// for will serve them.
    pub(crate) fn leave_waiting(&mut self, workers: Vec<WorkerId>) {
        self.left_waiting = workers;
    }

    /// The worker that could be served, was not there at the last read, and has read the log
    /// farthest; and its position.
    pub(crate) fn somebody_waits(&mut self) -> Option<(WorkerId, u64)> {
        let left = std::mem::take(&mut self.left_waiting);
        let found = self.read_all().ok().and_then(|lines| {
            lines
                .filter(|(id, line)| {
                    matches!(line.first(), Some(b'a' | b'y')) && !left.contains(id)
                })
                .filter_map(|(id, line)| Some((id, seen(line)?)))
                .max_by_key(|(_, seen)| *seen)
        });
        self.left_waiting = left;
        found
    }

    /// The lines of all workers that wait, for another process or for their disk.
    pub(crate) fn waiting(&mut self) -> Result<Vec<(WorkerId, Slot)>, BoardError> {
        let lines = self.read_all()?;
        Ok(lines
            .filter(|(_, line)| line.first().is_some_and(|tag| b"acy".contains(tag)))
            .filter_map(|(id, line)| Some((id, decode(line)?)))
            .collect())
    }

    /// True if no worker is still preparing a task that was chosen before this process's own; those
    /// probably come first.
    pub(crate) fn own_comes_first(&mut self, own: Choice) -> Result<bool, BoardError> {
        let lines = self.read_all()?;
        let since = format!("{:016x}", own.since).into_bytes();
        let earlier =
            |line: &[u8]| line.first() == Some(&b'c') && line.get(18..34) < Some(&since[..]);
        Ok(!lines.map(|(_, line)| line).any(earlier))
    }

    /// The highest position in the log that the workers in the middle of a claim have read.
    pub(crate) fn others_have_seen(&mut self) -> Result<u64, BoardError> {
        let own = self.own_id();
        let lines = self.read_all()?.filter(|(id, _)| Some(*id) != own);
        let active = lines.filter(|(_, line)| matches!(line.first(), Some(b'a' | b'c' | b'y')));
        Ok(active.filter_map(|(_, line)| seen(line)).max().unwrap_or(0))
    }

    fn read_all(&mut self) -> Result<impl Iterator<Item = (WorkerId, &[u8])>, BoardError> {
        // Longer than what is usually there, so that one call shows that it was all.
        let mut buffer = std::mem::take(&mut self.buffer);
        let mut count = self.read_at(&mut buffer, 0)?;
        if count == buffer.len() {
            buffer.resize(HEADER + WORKERS * LONG, 0);
            count = self.read_at(&mut buffer, 0)?;
        }
        self.buffer = buffer;
        let lines = self.buffer[..count].get(HEADER..).unwrap_or_default();
        Ok((0..).map(WorkerId).zip(lines.chunks(LONG)))
    }

    pub(crate) fn set(&self, id: WorkerId, slot: &Slot) -> Result<(), BoardError> {
        let text = encode(slot)
            .ok_or_else(|| BoardError::invalid("request", "it does not fit into a slot"))?;
        let offset = usize::try_from(place(id)).unwrap_or(usize::MAX);
        self.write(offset, LONG, &text)
    }

    /// Writes into another worker's line; the worker is woken when the lock is released, because
    /// earlier it would only take the processor from this process.
    pub(crate) fn answer(&mut self, id: WorkerId, slot: &Slot) -> Result<(), BoardError> {
        self.set(id, slot)?;
        self.answered.push(id);
        Ok(())
    }

    pub(crate) fn wake_served(&mut self) {
        for id in std::mem::take(&mut self.answered) {
            self.wake(id);
        }
    }

    /// True if the worker's process lives.
    pub(crate) fn is_alive(&mut self, id: WorkerId) -> Result<bool, BoardError> {
        if self.own_id() == Some(id) {
            return Ok(true);
        }
        let path = self.lock_path(id);
        let peer = self.peer(id);
        let file = match &mut peer.lock {
            Some(file) => file,
            empty => empty.insert(open_private(&path)?),
        };
        Ok(is_file_held(file).context("lock", &path)?)
    }

    /// Tells the worker that its line has changed.
    pub(crate) fn wake(&mut self, id: WorkerId) {
        let own = self.own.as_ref().filter(|own| own.id == id);
        if own.is_some_and(|own| !own.asleep) {
            return;
        }
        let path = self.wake_path(id);
        let peer = self.peer(id);
        peer.ringer.get_or_insert_with(|| Ringer::new(path)).ring();
    }

    fn peer(&mut self, id: WorkerId) -> &mut Peer {
        if self.others.len() <= id.0 {
            self.others.resize_with(id.0 + 1, Peer::default);
        }
        &mut self.others[id.0]
    }

    fn lock_path(&self, id: WorkerId) -> PathBuf {
        self.workers.join(id.0.to_string())
    }

    fn wake_path(&self, id: WorkerId) -> PathBuf {
        self.workers.join(format!("{}.wake", id.0))
    }

    fn number<T: std::str::FromStr>(&self, offset: usize) -> Result<Option<T>, BoardError> {
        let mut line = [0; SHORT];
        let count = self.read_at(&mut line, offset as u64)?;
        let text = std::str::from_utf8(&line[..count]).ok();
        let word = text.and_then(|text| text.split_ascii_whitespace().next());
        Ok(word.and_then(|word| word.parse().ok()))
    }

    fn read_at(&self, bytes: &mut [u8], offset: u64) -> Result<usize, BoardError> {
        let read = self.file.read_at(bytes, offset);
        Ok(read.context("read", &self.path)?)
    }

    fn write(&self, offset: usize, length: usize, text: &str) -> Result<(), BoardError> {
        let mut line = text.as_bytes().to_vec();
        line.resize(length, b' ');
        line[length - 1] = b'\n';
        let written = self.file.write_all_at(&line, offset as u64);
        Ok(written.context("write", &self.path)?)
    }
}

/// The position up to which the worker with this line has read the log.
fn seen(line: &[u8]) -> Option<u64> {
    let digits = std::str::from_utf8(line.get(1..17)?).ok()?;
    u64::from_str_radix(digits, 16).ok()
}

fn place(id: WorkerId) -> u64 {
    (HEADER + id.0 * LONG) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::LeaseTerm;
    use crate::files::slot::Ask;
    use std::time::Duration;

    fn asked(agent: &str) -> Slot {
        Slot::Asked(Ask {
            seen: 7,
            agent: agent.into(),
            lease: Some(LeaseTerm::Run("r".into())),
            durable: true,
        })
    }

    #[test]
    fn what_a_worker_asks_is_seen_by_others_while_it_lives() {
        let dir = tempfile::tempdir().unwrap();
        let mut first = Slots::open(dir.path()).unwrap();
        let mut second = Slots::open(dir.path()).unwrap();
        assert_eq!(second.settled().unwrap(), None);
        first.set_settled(-5, false).unwrap();
        assert_eq!(second.settled().unwrap(), Some(-5));
        assert_eq!(settled_whole(dir.path()), Some(-5));
        first.set_settled(-5, true).unwrap();
        assert_eq!(second.settled().unwrap(), Some(-5));
        assert_eq!(settled_whole(dir.path()), None);
        assert!(first.register().unwrap() && second.register().unwrap());
        assert_ne!(first.own_id(), second.own_id());
        first.set_own(&asked("bob")).unwrap();
        let seen = second.waiting().unwrap();
        let id = first.own_id().unwrap();
        assert_eq!(seen, [(id, asked("bob"))]);
        assert!(second.is_alive(id).unwrap());
        second.set(id, &Slot::StartOver).unwrap();
        second.wake(id);
        assert!(first.fall_asleep().unwrap().wait(Duration::from_secs(60)));
        assert_eq!(first.own().unwrap(), Slot::StartOver);
        drop(first);
        assert!(!second.is_alive(id).unwrap());
        let mut third = Slots::open(dir.path()).unwrap();
        third.register().unwrap();
        assert_eq!(third.own_id(), Some(id), "the number is used again");
        assert_eq!(third.own().unwrap(), Slot::Free, "what it said is not");
    }

    #[test]
    fn damaged_lines_and_long_names_are_left_out() {
        let dir = tempfile::tempdir().unwrap();
        let mut slots = Slots::open(dir.path()).unwrap();
        slots.register().unwrap();
        slots.set_own(&asked("bob")).unwrap();
        assert_eq!(slots.waiting().unwrap().len(), 1);
        let at = place(slots.own_id().unwrap()) + 50;
        slots.file.write_all_at(b"X", at).unwrap();
        assert!(slots.waiting().unwrap().is_empty());
        assert_eq!(slots.own().unwrap(), Slot::Free);
        assert!(slots.set_own(&asked(&"x".repeat(LONG))).is_err());
    }
}
