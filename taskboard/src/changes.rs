//! The numbered history of a list: what `watch` reads.
//!
//! `.ccb/log.jsonl` has one line per change, `{"seq","ts","op","id","task","print"}`, where
//! `print` is the fingerprint of the file after the change. Comparing the last print of every
//! task with the files shows what other tools (or a process that died before it could write
//! its line) changed; the first process that sees this under the lock gives it a number.
//! `.ccb/seen.json` saves reading the log from the start; it may be lost at any time.
//!
//! The log is bounded: at [`ROTATE_AT`] it becomes `log.1.jsonl` and a new one begins.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use store::StoreError;
use store::atomic::{self, Durability};
use store::clock::rfc3339;
use store::fault::reached;
use store::log::LineLog;

use crate::error::BoardError;
use crate::fault;
use crate::id::TaskId;
use crate::snapshot::Snapshot;
use crate::task::Task;

/// The log is rotated when it is larger than this.
const ROTATE_AT: u64 = 16 * 1024 * 1024;
/// A checkpoint is written when this much was logged since the last one.
const CHECKPOINT_EVERY: u64 = 64 * 1024;
const VERSION: u64 = 1;

/// One numbered change of one task.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    /// Counts up by one per change of the list.
    pub seq: u64,
    /// When it was written down, RFC 3339.
    pub ts: String,
    /// What was done: `create`, `claim`, `complete`, `delete`, …
    pub op: String,
    /// To which task.
    pub id: TaskId,
    /// The task afterwards; `None` when it was deleted.
    pub task: Option<Value>,
    /// It was made by another tool, or by a process that died at it.
    pub foreign: bool,
}

impl Change {
    /// As `watch --json` prints it.
    pub fn to_json(&self) -> Value {
        let mut line = serde_json::json!({
            "seq": self.seq, "ts": self.ts, "op": self.op, "id": self.id, "task": self.task,
        });
        if self.foreign {
            line["foreign"] = true.into();
        }
        line
    }
}

/// What was done to a task in the current lock section and is not logged yet.
#[derive(Debug)]
pub(crate) struct Draft {
    pub(crate) op: &'static str,
    pub(crate) id: TaskId,
    /// `None` when it was deleted.
    pub(crate) after: Option<(Value, u64)>,
    pub(crate) foreign: bool,
}

#[derive(Deserialize)]
struct LoggedHead {
    seq: u64,
    id: TaskId,
    print: Option<String>,
}

#[derive(Deserialize)]
struct Logged {
    seq: u64,
    ts: String,
    op: String,
    id: TaskId,
    #[serde(default)]
    task: Option<Value>,
    #[serde(default)]
    foreign: bool,
}

#[derive(Serialize, Deserialize)]
struct Checkpoint {
    v: u64,
    seq: u64,
    offset: u64,
    /// Of the first bytes of the log it belongs to.
    log: String,
    max_id: u64,
    seen: HashMap<TaskId, String>,
}

/// The history as one lock section sees it.
#[derive(Debug)]
pub(crate) struct History {
    paths: Paths,
    seq: u64,
    offset: u64,
    checkpoint_at: u64,
    max_id: u64,
    seen: HashMap<TaskId, u64>,
}

#[derive(Debug, Clone)]
pub(crate) struct Paths {
    log: LineLog,
    old: PathBuf,
    checkpoint: PathBuf,
    tmp: PathBuf,
}

impl Paths {
    pub(crate) fn new(ours: &Path) -> Self {
        Self {
            log: LineLog::new(ours.join("log.jsonl")),
            old: ours.join("log.1.jsonl"),
            checkpoint: ours.join("seen.json"),
            tmp: ours.join("tmp"),
        }
    }
}

impl History {
    /// Reads what was logged so far. The caller holds the lock.
    pub(crate) fn load(paths: Paths) -> Result<Self, BoardError> {
        let mut history = Self {
            paths,
            seq: 0,
            offset: 0,
            checkpoint_at: 0,
            max_id: 0,
            seen: HashMap::new(),
        };
        // Where to go on in the log before the last rotation, if it is to be read at all.
        if let Some(offset) = history.resume_from_checkpoint()? {
            let old = LineLog::new(history.paths.old.clone());
            history.replay(&old.read_from(offset)?.lines);
        }
        let lines = history.paths.log.read_from(history.offset)?;
        history.replay(&lines.lines);
        history.offset = lines.next_offset;
        Ok(history)
    }

    fn resume_from_checkpoint(&mut self) -> Result<Option<u64>, BoardError> {
        let from_the_start = Ok(Some(0));
        let Some(bytes) = atomic::read(&self.paths.checkpoint)? else {
            return from_the_start;
        };
        let Ok(checkpoint) = serde_json::from_slice::<Checkpoint>(&bytes) else {
            tracing::warn!(path = %self.paths.checkpoint.display(), "unreadable, ignored");
            return from_the_start;
        };
        if checkpoint.v > VERSION {
            return Err(StoreError::NewerVersion {
                path: self.paths.checkpoint.clone(),
                found: checkpoint.v,
                known: VERSION,
            }
            .into());
        }
        let old = LineLog::new(self.paths.old.clone());
        let fits = |log: &LineLog| -> Result<bool, BoardError> {
            Ok(checkpoint.log == log_identity(log.path())? && log.len()? >= checkpoint.offset)
        };
        let (offset, in_old) = if fits(&self.paths.log)? {
            (checkpoint.offset, None)
        } else if fits(&old)? {
            (0, Some(checkpoint.offset))
        } else {
            return from_the_start;
        };
        self.offset = offset;
        self.checkpoint_at = offset;
        self.seq = checkpoint.seq;
        self.max_id = checkpoint.max_id;
        self.seen = checkpoint
            .seen
            .into_iter()
            .filter_map(|(id, print)| Some((id, u64::from_str_radix(&print, 16).ok()?)))
            .collect();
        Ok(in_old)
    }

    fn replay(&mut self, lines: &[Vec<u8>]) {
        for line in lines {
            let Ok(head) = serde_json::from_slice::<LoggedHead>(line) else {
                tracing::warn!(log = %self.paths.log.path().display(), "malformed line skipped");
                continue;
            };
            self.seq = self.seq.max(head.seq);
            self.max_id = self.max_id.max(head.id.get());
            match head
                .print
                .and_then(|print| u64::from_str_radix(&print, 16).ok())
            {
                Some(print) => self.seen.insert(head.id, print),
                None => self.seen.remove(&head.id),
            };
        }
    }

    /// The number of the last change.
    pub(crate) fn seq(&self) -> u64 {
        self.seq
    }

    /// The highest id that ever appears in the history that is left.
    pub(crate) fn max_id(&self) -> u64 {
        self.max_id
    }

    /// What differs between the history and the files. `recovered` names what we redid
    /// ourselves after a crash.
    pub(crate) fn unlogged(
        &self,
        snapshot: &Snapshot,
        recovered: &HashMap<TaskId, &'static str>,
    ) -> Vec<Draft> {
        let mut drafts = Vec::new();
        let mut add = |id, guess, after| {
            let op = recovered.get(&id).copied();
            drafts.push(Draft {
                op: op.unwrap_or(guess),
                id,
                after,
                foreign: op.is_none(),
            });
        };
        for (id, entry) in snapshot.entries() {
            let seen = self.seen.get(&id);
            if seen != Some(&entry.fingerprint) {
                let guess = if seen.is_some() { "update" } else { "create" };
                add(id, guess, Some((entry.task.to_json(), entry.fingerprint)));
            }
        }
        let mut gone: Vec<TaskId> = self
            .seen
            .keys()
            .filter(|id| snapshot.get(**id).is_none() && !snapshot.unreadable().contains_key(id))
            .copied()
            .collect();
        gone.sort_unstable();
        for id in gone {
            add(id, "delete", None);
        }
        drafts
    }

    /// Numbers `drafts` and writes them down.
    pub(crate) fn append(&mut self, drafts: &[Draft], now_ms: i64) -> Result<(), BoardError> {
        if drafts.is_empty() {
            return Ok(());
        }
        self.rotate_if_large()?;
        let ts = rfc3339(now_ms);
        let mut lines = Vec::with_capacity(drafts.len());
        for (draft, seq) in drafts.iter().zip(self.seq + 1..) {
            let mut line = Map::new();
            line.insert("seq".into(), seq.into());
            line.insert("ts".into(), ts.clone().into());
            line.insert("op".into(), draft.op.into());
            line.insert("id".into(), draft.id.to_string().into());
            if draft.foreign {
                line.insert("foreign".into(), true.into());
            }
            if let Some((task, print)) = &draft.after {
                line.insert("print".into(), format!("{print:x}").into());
                line.insert("task".into(), task.clone());
            }
            lines.push(Value::Object(line).to_string().into_bytes());
        }
        let (torn, offset) = self.paths.log.append(&lines, Durability::Relaxed)?;
        if !torn.is_empty() {
            tracing::info!(
                bytes = torn.len(),
                "cut an unfinished line off the change log"
            );
        }
        self.replay(&lines);
        self.offset = offset;
        if offset.saturating_sub(self.checkpoint_at) > CHECKPOINT_EVERY {
            self.write_checkpoint()?;
        }
        Ok(())
    }

    fn rotate_if_large(&mut self) -> Result<(), BoardError> {
        if self.offset < ROTATE_AT {
            return Ok(());
        }
        // Belongs to the log that is about to be moved, and is valid before and after.
        self.write_checkpoint()?;
        atomic::rename(self.paths.log.path(), &self.paths.old)?;
        reached(fault::LOG_ROTATED);
        self.offset = 0;
        self.checkpoint_at = 0;
        Ok(())
    }

    fn write_checkpoint(&mut self) -> Result<(), BoardError> {
        let checkpoint = Checkpoint {
            v: VERSION,
            seq: self.seq,
            offset: self.offset,
            log: log_identity(self.paths.log.path())?,
            max_id: self.max_id,
            seen: self
                .seen
                .iter()
                .map(|(id, print)| (*id, format!("{print:x}")))
                .collect(),
        };
        let bytes = serde_json::to_vec(&checkpoint)
            .map_err(|error| BoardError::invalid("checkpoint", error.to_string()))?;
        let Paths {
            tmp, checkpoint, ..
        } = &self.paths;
        atomic::replace(tmp, checkpoint, &bytes, Durability::Relaxed)?;
        self.checkpoint_at = self.offset;
        Ok(())
    }
}

/// The start of the log's first line, which tells it from the one before a rotation.
fn log_identity(path: &Path) -> Result<String, BoardError> {
    use std::io::Read;
    let mut start = Vec::new();
    match std::fs::File::open(path) {
        Ok(file) => {
            file.take(48)
                .read_to_end(&mut start)
                .map_err(|source| StoreError::Io {
                    verb: "read",
                    path: path.to_owned(),
                    source,
                })?;
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
        Err(source) => {
            return Err(StoreError::Io {
                verb: "read",
                path: path.to_owned(),
                source,
            }
            .into());
        }
    }
    Ok(format!("{:x}", store::fingerprint(&start)))
}

/// Reads changes as they are logged, without a lock.
#[derive(Debug)]
pub(crate) struct ChangeReader {
    paths: Paths,
    identity: String,
    offset: u64,
    last: u64,
}

impl ChangeReader {
    /// Reads on after change number `since`.
    pub(crate) fn new(paths: Paths, since: u64) -> Self {
        Self {
            paths,
            identity: String::new(),
            offset: 0,
            last: since,
        }
    }

    /// The number of the last change returned (or skipped).
    pub(crate) fn last(&self) -> u64 {
        self.last
    }

    /// What was logged since the last call.
    ///
    /// An error if changes between the last one returned and the first one left are gone.
    pub(crate) fn read(&mut self) -> Result<Vec<Change>, BoardError> {
        let identity = log_identity(self.paths.log.path())?;
        let mut lines = Vec::new();
        if identity != self.identity {
            // The first read, or the log was rotated: the rest of the old one comes first.
            lines = LineLog::new(self.paths.old.clone()).read_from(0)?.lines;
            self.offset = 0;
        }
        let new = self.paths.log.read_from(self.offset)?;
        lines.extend(new.lines);
        let mut changes = Vec::new();
        for line in lines {
            let Ok(logged) = serde_json::from_slice::<Logged>(&line) else {
                continue;
            };
            if logged.seq <= self.last {
                continue;
            }
            if logged.seq > self.last + 1 && changes.is_empty() {
                return Err(BoardError::invalid(
                    format!("--since {}", self.last),
                    format!(
                        "changes before {} are gone; read the list and go on from {}",
                        logged.seq,
                        logged.seq - 1
                    ),
                ));
            }
            self.last = logged.seq;
            let Logged {
                seq,
                ts,
                op,
                id,
                task,
                foreign,
            } = logged;
            changes.push(Change {
                seq,
                ts,
                op,
                id,
                task,
                foreign,
            });
        }
        self.identity = identity;
        self.offset = new.next_offset;
        Ok(changes)
    }
}

/// The last version of task `id` in the history, for rebuilding one whose file is unreadable.
pub(crate) fn last_logged(paths: &Paths, id: TaskId) -> Result<Option<Task>, BoardError> {
    let mut last = None;
    for log in [&LineLog::new(paths.old.clone()), &paths.log] {
        for line in log.read_from(0)?.lines {
            if let Ok(logged) = serde_json::from_slice::<Logged>(&line)
                && logged.id == id
            {
                last = logged.task;
            }
        }
    }
    Ok(last.and_then(|task| crate::format::parse(id, task.to_string().as_bytes()).ok()))
}
