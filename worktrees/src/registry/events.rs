//! The log of events about worktrees, one line each: `events.jsonl`.
//!
//! A record for people and for tools that follow along; ccb decides nothing by it. An event that
//! cannot be written is reported in the trace and skipped.

use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Value, json};
use store::atomic;
use store::clock::rfc3339;
use store::lock::FileLock;
use store::log::{self, LogTail};

use crate::error::TreeError;
use crate::layout::Layout;
use crate::registry::Entry;

/// Size, in bytes, from which a file is moved to `events.1.jsonl`, replacing the one before.
const ROTATE_AT: u64 = 4 * 1024 * 1024;
/// A holder needs the lock only for one write.
const LOCK_TIMEOUT: Duration = Duration::from_secs(2);

/// A task as an event names it; its status is the caller's to know.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EventTask {
    /// Its id.
    pub id: String,
    /// Its status, if the caller knows it.
    pub status: Option<String>,
}

/// One line.
#[derive(Debug, Clone)]
pub(crate) struct Event {
    name: String,
    pub(crate) task: Option<EventTask>,
    pub(crate) worktree: Value,
    pub(crate) error: Option<String>,
}

impl Event {
    pub(crate) fn of(name: impl Into<String>, entry: &Entry) -> Self {
        let made_for = entry.made_for().map(|(_, id)| id);
        let task = entry.task_id.as_deref().or(made_for);
        let task = task.map(|id| EventTask {
            id: id.to_owned(),
            status: None,
        });
        let worktree = json!({
            "name": entry.name,
            "path": entry.path,
            "status": entry.status.as_str(),
        });
        Self {
            name: name.into(),
            task,
            worktree,
            error: None,
        }
    }

    /// An event about a worktree of which only its name need be left.
    pub(crate) fn named(name: impl Into<String>, worktree: &str) -> Self {
        Self {
            name: name.into(),
            task: None,
            worktree: json!({ "name": worktree }),
            error: None,
        }
    }

    pub(crate) fn with_error(mut self, error: &TreeError) -> Self {
        self.error = Some(error.to_string());
        self
    }

    /// Marks that the process that began it died.
    pub(crate) fn interrupted(mut self) -> Self {
        self.error = Some("interrupted".into());
        self
    }

    fn to_json(&self, now_ms: i64) -> Value {
        let mut line = json!({
            "event": self.name,
            "ts": rfc3339(now_ms),
            "task": {},
            "worktree": self.worktree,
        });
        if let Some(EventTask { id, status }) = &self.task {
            line["task"]["id"] = id.clone().into();
            if let Some(status) = status {
                line["task"]["status"] = status.clone().into();
            }
        }
        if let Some(error) = &self.error {
            line["error"] = error.clone().into();
        }
        line
    }
}

/// Appends `event`; a failure does not fail the reported operation.
pub(crate) fn emit(layout: &Layout, now_ms: i64, event: &Event) {
    if let Err(error) = append(layout, &event.to_json(now_ms)) {
        tracing::warn!(event = event.name, %error, "an event could not be written");
    }
}

fn append(layout: &Layout, line: &Value) -> Result<(), TreeError> {
    let path = layout.events();
    let _lock = FileLock::exclusive(&layout.events_lock(), "the events", LOCK_TIMEOUT)?;
    let size = std::fs::metadata(&path).map_or(0, |meta| meta.len());
    if size > ROTATE_AT {
        atomic::rename(&path, &path.with_extension("1.jsonl"))?;
    }
    append_line(path, format!("{line}\n").as_bytes())?;
    Ok(())
}

/// Appends a line to a log, after cutting off a half line that a crash left.
pub(crate) fn append_line(path: PathBuf, line: &[u8]) -> Result<LogTail, TreeError> {
    // The end is enough to see whether half a line is there.
    let size = std::fs::metadata(&path).map_or(0, |meta| meta.len());
    let mut tail = LogTail::new(path, size.saturating_sub(64 * 1024));
    tail.read_new()?;
    tail.append(line)?;
    Ok(tail)
}

/// The last `limit` events, oldest first.
pub(crate) fn recent(layout: &Layout, limit: usize) -> Result<Vec<Value>, TreeError> {
    let path = layout.events();
    let mut events = Vec::new();
    for path in [path.with_extension("1.jsonl"), path] {
        let lines = log::read_from(&path, 0)?.lines;
        events.extend(lines.iter().filter_map(|line| {
            serde_json::from_slice::<Value>(line)
                .map_err(|error| tracing::warn!(%error, "an event cannot be read"))
                .ok()
        }));
    }
    let skip = events.len().saturating_sub(limit);
    Ok(events.split_off(skip))
}
