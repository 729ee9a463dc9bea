//! The delivered spans: `.ccb/telemetry.jsonl` of a team, for a process that continues after
//! another one was killed. Only the holder of the lock beside it exports.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use store::StoreError;
use store::atomic;
use store::home::create_private_dir;
use store::lock::FileLock;
use store::log::LogTail;

use super::model::SpanId;

/// One line.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
enum Line {
    /// A session or plan begins, ms since the epoch.
    Began(i64),
    /// These spans were delivered.
    Sent(Vec<String>),
}

/// The delivered spans of the present session or plan.
#[derive(Debug)]
pub(super) struct Ledger {
    path: PathBuf,
    log: LogTail,
    /// The start, ms since the epoch; a process that continues keeps it.
    pub(super) began_ms: i64,
    sent: HashSet<SpanId>,
    _lock: FileLock,
}

impl Ledger {
    /// Continues the work of a process that has exited, or begins; `None` if another process
    /// exports. `dir` is the team's.
    pub(super) fn open(dir: &Path, now_ms: i64) -> Result<Option<Self>, StoreError> {
        let dir = dir.join(".ccb");
        create_private_dir(&dir)?;
        let Some(lock) = FileLock::try_exclusive(&dir.join("telemetry.lock"))? else {
            return Ok(None);
        };
        let path = dir.join("telemetry.jsonl");
        let mut log = LogTail::new(path.clone(), 0);
        let bytes = log.read_new()?.bytes;
        let mut ledger = Self {
            path,
            log,
            began_ms: now_ms,
            sent: HashSet::new(),
            _lock: lock,
        };
        match ledger.read(&bytes) {
            Some(began_ms) => ledger.began_ms = began_ms,
            None => ledger.append(&Line::Began(now_ms))?,
        }
        Ok(Some(ledger))
    }

    fn read(&mut self, bytes: &[u8]) -> Option<i64> {
        let mut began = None;
        let lines = bytes.split(|byte| *byte == b'\n');
        for line in lines.filter_map(|line| serde_json::from_slice::<Line>(line).ok()) {
            match line {
                Line::Began(at) => began = Some(at),
                Line::Sent(ids) => {
                    let ids = ids.iter().filter_map(|id| id.parse::<SpanId>().ok());
                    self.sent.extend(ids);
                }
            }
        }
        began
    }

    /// True if a span was delivered.
    pub(super) fn has(&self, id: SpanId) -> bool {
        self.sent.contains(&id)
    }

    /// Records delivered spans.
    pub(super) fn sent(&mut self, ids: &[SpanId]) -> Result<(), StoreError> {
        let new: Vec<SpanId> = ids
            .iter()
            .copied()
            .filter(|id| self.sent.insert(*id))
            .collect();
        if new.is_empty() {
            return Ok(());
        }
        self.append(&Line::Sent(new.iter().map(ToString::to_string).collect()))
    }

    /// Ends the session or plan: the next one is a trace of its own.
    pub(super) fn end(self) -> Result<(), StoreError> {
        atomic::remove(&self.path).map(|_| ())
    }

    fn append(&mut self, line: &Line) -> Result<(), StoreError> {
        let mut text = serde_json::to_string(line).unwrap_or_default();
        text.push('\n');
        self.log.append(text.as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::super::model::TraceId;
    use super::*;

    #[test]
    fn who_goes_on_knows_what_was_delivered_and_since_when() {
        let dir = tempfile::tempdir().unwrap();
        let id = |name: &str| TraceId::of("t").span(name);
        let mut first = Ledger::open(dir.path(), 100).unwrap().unwrap();
        assert!(
            Ledger::open(dir.path(), 150).unwrap().is_none(),
            "one exports"
        );
        first.sent(&[id("a"), id("b")]).unwrap();
        drop(first);
        // A kill leaves half a line.
        let path = dir.path().join(".ccb/telemetry.jsonl");
        let mut text = std::fs::read_to_string(&path).unwrap();
        text.push_str("{\"sent\":[\"00");
        store::atomic::replace(
            dir.path(),
            &path,
            text.as_bytes(),
            store::atomic::Durability::Relaxed,
        )
        .unwrap();
        let mut second = Ledger::open(dir.path(), 200).unwrap().unwrap();
        assert_eq!(second.began_ms, 100);
        assert!(second.has(id("a")) && second.has(id("b")) && !second.has(id("c")));
        second.sent(&[id("c")]).unwrap();
        drop(second);
        let third = Ledger::open(dir.path(), 250).unwrap().unwrap();
        assert!(third.has(id("c")));
        third.end().unwrap();
        let next = Ledger::open(dir.path(), 300).unwrap().unwrap();
        assert_eq!(next.began_ms, 300);
        assert!(!next.has(id("a")));
    }
}
