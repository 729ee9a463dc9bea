//! The numbered history of a list: what `watch` reads, and what keeps indexes up to date.
//!
//! `.ccb/log.jsonl` has one line per change: `{"seq","ts","op","id","foreign"?,"slim","task"}`.
//! `slim` is the part that the index needs, so that a process that follows the
//! board does not have to read the task itself.
//!
//! The log is bounded: when it is full it becomes `log.1.jsonl` and a new one begins.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use store::IoContext;
use store::atomic::Stamp;
use store::clock::rfc3339;
use store::log::read_from;

use crate::error::BoardError;
use crate::files::quick::{self, Head};
use crate::history::Change;
use crate::id::TaskId;
use crate::rules::index::Slim;
use crate::task::{Status, Task};

/// The format of the log's lines.
pub(crate) const LOG_VERSION: u64 = 1;

/// Higher numbers are damage: counting never gets there, and JSON readers round them.
const MAX_SEQ: u64 = 1 << 53;

/// A change of a task in the current lock section that is not logged yet.
#[derive(Debug)]
pub(crate) struct Draft {
    pub(crate) op: &'static str,
    pub(crate) id: TaskId,
    /// `None` when it was deleted.
    pub(crate) after: Option<(Slim, Value)>,
    pub(crate) foreign: bool,
}

/// Status, owner, parked, flags, priority, blockedBy, blocks, lease end, run, fingerprint,
/// mtime, size: an array, because it is parsed once per process and change.
#[derive(Serialize, Deserialize)]
struct Packed<'a>(
    u8,
    Option<std::borrow::Cow<'a, str>>,
    Option<std::borrow::Cow<'a, str>>,
    u8,
    i64,
    Vec<u64>,
    Vec<u64>,
    Option<i64>,
    Option<std::borrow::Cow<'a, str>>,
    u64,
    i64,
    u64,
);

#[derive(Serialize, Deserialize)]
struct Line<'a> {
    #[serde(default)]
    v: u64,
    seq: u64,
    #[serde(default, skip_serializing_if = "str::is_empty")]
    ts: &'a str,
    #[serde(default, skip_serializing_if = "str::is_empty")]
    op: &'a str,
    id: TaskId,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    foreign: bool,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    slim: Option<Packed<'a>>,
}

/// The lines for `drafts`, numbered from `seq` + 1 on.
pub(crate) fn lines(drafts: &[Draft], seq: u64, now_ms: i64) -> Result<Vec<u8>, BoardError> {
    let ts = rfc3339(now_ms);
    let mut bytes = Vec::with_capacity(drafts.len() * 512);
    for (draft, seq) in drafts.iter().zip(seq + 1..) {
        let slim = draft.after.as_ref().map(|(slim, _)| pack(slim));
        let line = Line {
            v: LOG_VERSION,
            seq,
            ts: &ts,
            op: draft.op,
            id: draft.id,
            foreign: draft.foreign,
            slim,
        };
        let failed = |error: serde_json::Error| BoardError::invalid("log line", error.to_string());
        serde_json::to_writer(&mut bytes, &line).map_err(failed)?;
        if let Some((_, task)) = &draft.after {
            // In front of the closing brace; see `head`.
            bytes.pop();
            bytes.extend_from_slice(TASK);
            serde_json::to_writer(&mut bytes, task).map_err(failed)?;
            bytes.push(b'}');
        }
        bytes.push(b'\n');
    }
    Ok(bytes)
}

/// The text between the head of a line and the task. It cannot come earlier: a quote inside a JSON
/// string is escaped.
const TASK: &[u8] = b",\"task\":";

/// Reads the part of a line that the index needs, without parsing the task.
pub(crate) fn head(line: &[u8]) -> Option<Head> {
    let head = quick::head(line).or_else(|| any_head(line));
    head.filter(|head| head.seq <= MAX_SEQ)
}

/// The same for lines with anything unusual in them.
pub(crate) fn any_head(line: &[u8]) -> Option<Head> {
    let end = memchr::memmem::find(line, TASK);
    let head = end.map(|end| [&line[..end], b"}"].concat());
    let line: Line<'_> = serde_json::from_slice(head.as_deref().unwrap_or(line)).ok()?;
    let slim = line.slim.map(unpack).transpose().ok()?;
    // A task that exists has both; a deleted one has neither.
    (slim.is_some() || end.is_none()).then_some(Head {
        v: line.v,
        seq: line.seq,
        id: line.id,
        slim,
    })
}

fn pack(slim: &Slim) -> Packed<'_> {
    let numbers = |ids: &[TaskId]| ids.iter().map(|id| id.get()).collect();
    Packed(
        slim.status.code(),
        slim.owner.as_deref().map(Into::into),
        slim.parked.as_deref().map(Into::into),
        u8::from(slim.internal) | u8::from(slim.checks) << 1,
        slim.priority,
        numbers(&slim.blocked_by),
        numbers(&slim.blocks),
        slim.lease_end,
        slim.run.as_deref().map(Into::into),
        slim.fingerprint,
        slim.stamp.mtime_ns,
        slim.stamp.size,
    )
}

fn unpack(packed: Packed<'_>) -> Result<Slim, BoardError> {
    let bad = || BoardError::invalid("log line", "not what ccb writes");
    let ids = |numbers: Vec<u64>| -> Result<Box<[TaskId]>, BoardError> {
        numbers
            .into_iter()
            .map(|n| TaskId::new(n).ok_or_else(bad))
            .collect()
    };
    Ok(Slim {
        status: Status::from_code(packed.0.into()).ok_or_else(bad)?,
        owner: packed.1.map(|text| text.into_owned().into()),
        parked: packed.2.map(|text| text.into_owned().into()),
        internal: packed.3 & 1 != 0,
        checks: packed.3 & 2 != 0,
        priority: packed.4,
        blocked_by: ids(packed.5)?,
        blocks: ids(packed.6)?,
        lease_end: packed.7,
        run: packed.8.map(|text| text.into_owned().into()),
        fingerprint: packed.9,
        stamp: Stamp {
            mtime_ns: packed.10,
            size: packed.11,
        },
    })
}

/// The paths of the history.
#[derive(Debug, Clone)]
pub(crate) struct Paths {
    pub(crate) log: PathBuf,
    pub(crate) old: PathBuf,
}

impl Paths {
    pub(crate) fn new(ours: &Path) -> Self {
        Self {
            log: ours.join("log.jsonl"),
            old: ours.join("log.1.jsonl"),
        }
    }
}

/// The start of a log's first line, which distinguishes it from the log before a rotation.
pub(crate) fn log_identity(path: &Path) -> Result<u64, BoardError> {
    use std::io::Read;
    let mut start = Vec::new();
    if let Some(file) = std::fs::File::open(path).if_there("read", path)? {
        let read = file.take(48).read_to_end(&mut start);
        read.context("read", path)?;
    }
    Ok(store::fingerprint(&start))
}

/// Reads changes as they are logged, without a lock.
#[derive(Debug)]
pub(crate) struct ChangeReader {
    paths: Paths,
    identity: Option<u64>,
    offset: u64,
    last: u64,
    /// True if a missing earlier part counts as no gap.
    from_the_first: bool,
}

impl ChangeReader {
    /// Reads on after change number `since`.
    pub(crate) fn new(paths: Paths, since: u64) -> Self {
        Self {
            paths,
            identity: None,
            offset: 0,
            last: since,
            from_the_first: false,
        }
    }

    /// Reads everything that is still there.
    pub(crate) fn from_the_first(paths: Paths) -> Self {
        Self {
            from_the_first: true,
            ..Self::new(paths, 0)
        }
    }

    /// The number of the last change returned (or skipped).
    pub(crate) fn last(&self) -> u64 {
        self.last
    }

    /// The changes logged since the last call.
    ///
    /// An error if changes between the last one returned and the first one left are gone.
    pub(crate) fn read(&mut self) -> Result<Vec<Change>, BoardError> {
        let identity = log_identity(&self.paths.log)?;
        let mut lines = Vec::new();
        if self.identity != Some(identity) {
            // The first read, or the log was rotated: the rest of the old one comes first.
            lines = read_from(&self.paths.old, 0)?.lines;
            self.offset = 0;
        }
        let new = read_from(&self.paths.log, self.offset)?;
        lines.extend(new.lines);
        let mut changes: Vec<Change> = Vec::new();
        for line in lines {
            let Ok(change) = serde_json::from_slice::<Change>(&line) else {
                continue;
            };
            if change.seq <= self.last || change.seq > MAX_SEQ {
                continue;
            }
            if change.seq > self.last + 1 && changes.is_empty() && !self.from_the_first {
                return Err(BoardError::forgotten(self.last, change.seq));
            }
            self.last = change.seq;
            changes.push(change);
        }
        self.identity = Some(identity);
        self.offset = new.next_offset;
        Ok(changes)
    }
}

/// The version of task `id` with this fingerprint, if the history has it.
pub(crate) fn find_logged(
    paths: &Paths,
    id: TaskId,
    fingerprint: u64,
) -> Result<Option<Task>, BoardError> {
    for path in [&paths.log, &paths.old] {
        for line in read_from(path, 0)?.lines {
            let same = |head: Head| {
                head.id == id
                    && head
                        .slim
                        .is_some_and(|slim| slim.fingerprint == fingerprint)
            };
            if head(&line).is_some_and(same)
                && let Ok(Change {
                    task: Some(task), ..
                }) = serde_json::from_slice(&line)
            {
                return Ok(crate::format::parse(id, task.to_string().as_bytes()).ok());
            }
        }
    }
    Ok(None)
}

/// The last version of task `id` in the history, to rebuild a task with an unreadable file.
pub(crate) fn last_logged(paths: &Paths, id: TaskId) -> Result<Option<Task>, BoardError> {
    let mut last = None;
    for path in [&paths.old, &paths.log] {
        for line in read_from(path, 0)?.lines {
            if let Ok(change) = serde_json::from_slice::<Change>(&line)
                && change.id == id
            {
                last = change.task;
            }
        }
    }
    Ok(last.and_then(|task| crate::format::parse(id, task.to_string().as_bytes()).ok()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::index_file::tests::slim;
    use proptest::prelude::*;
    use store::atomic;

    #[test]
    fn a_change_with_the_highest_number_there_is_counts_as_damage() {
        let line = |seq: u64| format!(r#"{{"v":1,"seq":{seq},"ts":"t","op":"delete","id":"1"}}"#);
        assert_eq!(head(line(5).as_bytes()).unwrap().seq, 5);
        assert!(head(line(u64::MAX).as_bytes()).is_none());
        let dir = tempfile::tempdir().unwrap();
        let paths = Paths::new(dir.path());
        let text = format!("{}\n{}\n", line(u64::MAX), line(1));
        let put = atomic::replace(dir.path(), &paths.log, text.as_bytes(), Default::default());
        put.unwrap();
        let mut reader = ChangeReader::new(paths, 0);
        let seqs: Vec<u64> = reader.read().unwrap().iter().map(|one| one.seq).collect();
        assert_eq!(seqs, [1]);
    }

    proptest! {
        #[test]
        fn the_quick_reader_and_the_real_one_agree(slim in slim(), id in 1..9_u64, seq in 0..99_u64) {
            let id = TaskId::new(id).unwrap();
            let plain = [&slim.owner, &slim.parked, &slim.run]
                .into_iter()
                .flatten()
                .all(|text| !text.contains(['"', '\\']) && !text.contains(char::is_control));
            let after = Some((slim.clone(), serde_json::json!({"subject": ",\"task\":{"})));
            let draft = Draft { op: "claim", id, after, foreign: false };
            let bytes = lines(&[draft], seq, 0).unwrap();
            let line = bytes.strip_suffix(b"\n").unwrap();
            let real = any_head(line);
            prop_assert_eq!(real.as_ref().unwrap().slim.as_ref(), Some(&slim));
            let quick = quick::head(line);
            // Otherwise the whole thing is for nothing.
            prop_assert!(quick.is_some() || !plain || slim.priority == i64::MIN
                || slim.lease_end == Some(i64::MIN) || slim.stamp.mtime_ns == i64::MIN);
            if quick.is_some() {
                prop_assert_eq!(quick, real);
            }
            for cut in 0..line.len() {
                quick::head(&line[..cut]);
            }
        }
    }
}
