//! A task.

use std::str::FromStr;

use serde_json::{Map, Value};

use crate::id::TaskId;
use crate::invalid::Invalid;

/// One task, as its file says.
#[derive(Debug, Clone, PartialEq)]
pub struct Task {
    /// The task's number.
    pub id: TaskId,
    /// The goal, in one line.
    pub subject: String,
    /// The details.
    pub description: String,
    /// The subject as an activity ("Fixing the build"), for progress displays; `None` without one.
    pub active_form: Option<String>,
    /// The agent that works on it, or will; `None` without one.
    pub owner: Option<String>,
    /// The progress.
    pub status: Status,
    /// Tasks that wait for this one. Derived; `blocked_by` of those is the truth.
    pub blocks: Vec<TaskId>,
    /// Tasks this one waits for.
    pub blocked_by: Vec<TaskId>,
    /// Other data. ccb keeps its own under the key `ccb`; [`crate::TaskFacts`] writes it and
    /// methods of this type read it.
    pub metadata: Option<Map<String, Value>>,
    /// Unknown keys, kept as they were.
    pub(crate) extra: Map<String, Value>,
}

store::words! {
    /// The progress of a task.
    #[derive(Default, PartialOrd, Ord)]
    pub enum Status {
        /// Not started.
        #[default]
        Pending = "pending",
        /// An agent works on it.
        InProgress = "in_progress",
        /// Done.
        Completed = "completed",
    }
}

impl Status {
    /// The status's number in logs and indexes.
    pub(crate) fn code(self) -> u8 {
        self as u8
    }

    /// The status with this number; `None` if there is none.
    pub(crate) fn from_code(code: u64) -> Option<Self> {
        Self::ALL.get(usize::try_from(code).ok()?).copied()
    }
}

impl FromStr for Status {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        Self::parse(text).ok_or_else(|| {
            let what = format!("status {text:?}");
            Invalid::new(what, "it must be pending, in_progress or completed")
        })
    }
}

impl Task {
    /// The activity text, or the subject where there is none.
    pub fn active_form(&self) -> &str {
        self.active_form.as_deref().unwrap_or(&self.subject)
    }

    /// True if it is kept out of lists.
    pub fn is_internal(&self) -> bool {
        let flag = self
            .metadata
            .as_ref()
            .and_then(|meta| meta.get("_internal"));
        flag == Some(&Value::Bool(true))
    }
}

/// The longest subject, in characters.
pub(crate) const MAX_SUBJECT: usize = 1_000;
/// The longest description, and the largest metadata, in bytes.
pub(crate) const MAX_TEXT: usize = 256 * 1024;

pub(crate) fn too_long(what: &str, limit: usize) -> Invalid {
    let why = format!(
        "over {} KiB; put it into a file and name the file here",
        limit / 1024
    );
    Invalid::new(what, why)
}

/// Checks a text that stands on one line (subject, activity, owner).
pub(crate) fn check_line(what: &str, text: &str) -> Result<(), Invalid> {
    if text.trim().is_empty() {
        return Err(Invalid::new(what, "it is empty"));
    }
    if text.chars().count() > MAX_SUBJECT {
        return Err(Invalid::new(what, format!("over {MAX_SUBJECT} characters")));
    }
    if text.chars().any(char::is_control) {
        return Err(Invalid::new(
            what,
            "it contains a line break or another control character",
        ));
    }
    Ok(())
}

/// Checks a description.
pub(crate) fn check_description(text: &str) -> Result<(), Invalid> {
    if text.contains('\0') {
        return Err(Invalid::new("description", "it contains a NUL character"));
    }
    if text.len() > MAX_TEXT {
        return Err(too_long("description", MAX_TEXT));
    }
    Ok(())
}
