//! What a task is.

use std::fmt;
use std::str::FromStr;

use serde_json::{Map, Value};
use store::clock::{parse_rfc3339, rfc3339};
use store::secret_filter::SecretFilter;

use crate::error::BoardError;
use crate::id::TaskId;

/// One task, as its file says.
#[derive(Debug, Clone, PartialEq)]
pub struct Task {
    /// Its number.
    pub id: TaskId,
    /// What is to be done, in one line.
    pub subject: String,
    /// The details.
    pub description: String,
    /// The subject as an activity ("Fixing the build"), for progress displays.
    pub active_form: Option<String>,
    /// Who works on it, or is to work on it.
    pub owner: Option<String>,
    /// How far it is.
    pub status: Status,
    /// Tasks that wait for this one. Derived; `blocked_by` of those is the truth.
    pub blocks: Vec<TaskId>,
    /// Tasks this one waits for.
    pub blocked_by: Vec<TaskId>,
    /// Anything else. What is ours is under the key `ccb`.
    pub metadata: Option<Map<String, Value>>,
    /// Keys we do not know, kept as they were.
    pub(crate) extra: Map<String, Value>,
}

/// How far a task is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Status {
    /// Not started.
    #[default]
    Pending,
    /// Somebody works on it.
    InProgress,
    /// Done.
    Completed,
}

impl Status {
    /// The word in the file.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::InProgress => "in_progress",
            Self::Completed => "completed",
        }
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Status {
    type Err = BoardError;

    fn from_str(text: &str) -> Result<Self, BoardError> {
        match text {
            "pending" => Ok(Self::Pending),
            "in_progress" => Ok(Self::InProgress),
            "completed" => Ok(Self::Completed),
            _ => Err(BoardError::invalid(
                format!("status {text:?}"),
                "it must be pending, in_progress or completed",
            )),
        }
    }
}

/// A claim that can be lost: made for a run of the engine, or for a limited time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lease {
    /// The agent it was given to.
    pub agent: String,
    /// The run that holds it, if the engine started the agent.
    pub run: Option<String>,
    /// Grows with every lease of the task; a write with an older one is refused.
    pub token: u64,
    /// When it ends (epoch milliseconds), if it ends by itself.
    pub expires_at: Option<i64>,
}

/// The keys of `metadata.ccb` a caller may set; the others are kept by the engine.
const SETTABLE: &[&str] = &["priority", "run", "agent", "verify", "paths"];

/// What is carried out is not changed: a command without its password does something else.
const COMMANDS: &[&str] = &["run", "verify"];

impl Task {
    /// Takes out of its texts what must not be written down. Commands stay as they are.
    pub(crate) fn remove_secrets(&mut self, filter: &SecretFilter) {
        if filter.is_none() {
            return;
        }
        filter.text(&mut self.subject);
        filter.text(&mut self.description);
        if let Some(text) = &mut self.active_form {
            filter.text(text);
        }
        for (key, value) in self.metadata.iter_mut().flatten() {
            match value {
                Value::Object(ours) if key == "ccb" => {
                    for (key, value) in ours {
                        if !COMMANDS.contains(&key.as_str()) {
                            filter.value(value);
                        }
                    }
                }
                other => filter.value(other),
            }
        }
    }

    /// The activity text, or the subject where there is none.
    pub fn active_form(&self) -> &str {
        self.active_form.as_deref().unwrap_or(&self.subject)
    }

    /// Whether it is kept out of lists.
    pub fn is_internal(&self) -> bool {
        let flag = self
            .metadata
            .as_ref()
            .and_then(|meta| meta.get("_internal"));
        flag == Some(&Value::Bool(true))
    }

    /// Higher goes first; 0 where nothing is said.
    pub fn priority(&self) -> i64 {
        self.ours("priority").and_then(Value::as_i64).unwrap_or(0)
    }

    /// The command that does it, if a command does.
    pub fn run_command(&self) -> Option<&str> {
        self.ours("run").and_then(Value::as_str)
    }

    /// The command that proves it is done.
    pub fn verify_command(&self) -> Option<&str> {
        self.ours("verify").and_then(Value::as_str)
    }

    /// The files it is about, if that is said.
    pub fn paths(&self) -> Vec<String> {
        let paths = self.ours("paths").and_then(Value::as_array);
        let text = |value: &Value| value.as_str().map(str::to_owned);
        paths.map_or_else(Vec::new, |all| all.iter().filter_map(text).collect())
    }

    /// The kind of agent it is for.
    pub fn agent_type(&self) -> Option<&str> {
        self.ours("agent").and_then(Value::as_str)
    }

    /// What was noted as its result when it was completed.
    pub fn result(&self) -> Option<&Value> {
        self.ours("result")
    }

    /// Whether somebody only says that it is done: it has a check, and nobody has seen it pass.
    pub fn is_reported(&self) -> bool {
        let proved = self.result().is_some_and(|result| {
            let passed = result.get("check").and_then(|check| check.get("passed"));
            passed == Some(&Value::Bool(true)) || result.get("verified") == Some(&Value::Bool(true))
        });
        self.status == Status::Completed && self.verify_command().is_some() && !proved
    }

    /// Why it is parked, if it is.
    pub fn parked(&self) -> Option<&str> {
        match self.ours("parked")? {
            Value::Null | Value::Bool(false) => None,
            Value::String(reason) => Some(reason),
            other => Some(
                other
                    .get("reason")
                    .and_then(Value::as_str)
                    .unwrap_or("no reason noted"),
            ),
        }
    }

    /// The lease its owner holds. One that does not match the owner is void.
    pub fn lease(&self) -> Option<Lease> {
        let lease = self.ours("lease")?;
        let agent = lease.get("agent")?.as_str()?;
        let held = self.owner.as_deref() == Some(agent) && self.status == Status::InProgress;
        held.then(|| Lease {
            agent: agent.to_owned(),
            run: lease.get("run").and_then(Value::as_str).map(str::to_owned),
            token: self.last_token(),
            expires_at: lease
                .get("expiresAt")
                .and_then(Value::as_str)
                .and_then(parse_rfc3339),
        })
    }

    /// Whether its lease has run out.
    pub(crate) fn lease_expired(&self, now_ms: i64) -> bool {
        self.lease()
            .and_then(|lease| lease.expires_at)
            .is_some_and(|end| end <= now_ms)
    }

    /// The last token given out for it, 0 if none was.
    pub(crate) fn last_token(&self) -> u64 {
        self.ours("lease")
            .and_then(|lease| lease.get("token")?.as_u64())
            .unwrap_or(0)
    }

    pub(crate) fn set_lease(&mut self, lease: &Lease) {
        let mut map = Map::new();
        map.insert("agent".into(), lease.agent.clone().into());
        if let Some(run) = &lease.run {
            map.insert("run".into(), run.clone().into());
        }
        map.insert("token".into(), lease.token.into());
        if let Some(end) = lease.expires_at {
            map.insert("expiresAt".into(), rfc3339(end).into());
        }
        self.set_ours("lease", Some(map.into()));
    }

    /// Ends the lease but remembers its token, so that the next one is larger whatever the
    /// clock says.
    pub(crate) fn end_lease(&mut self) {
        match self.last_token() {
            0 => self.set_ours("lease", None),
            token => self.set_ours("lease", Some(serde_json::json!({ "token": token }))),
        }
    }

    /// Back to the start: nobody's, no lease, not parked, unless nobody knows what it is proved
    /// by.
    pub(crate) fn make_pending(&mut self) {
        self.status = Status::Pending;
        self.owner = None;
        self.end_lease();
        if !self.is_disputed() {
            self.set_ours("parked", None);
        }
    }

    pub(crate) fn worktree_value(&self) -> Option<&Value> {
        self.ours("worktree")
    }

    pub(crate) fn ours(&self, key: &str) -> Option<&Value> {
        self.metadata.as_ref()?.get("ccb")?.get(key)
    }

    /// Sets or removes a key of `metadata.ccb`, tidying up what becomes empty.
    pub(crate) fn set_ours(&mut self, key: &str, value: Option<Value>) {
        if value.is_none() && self.ours(key).is_none() {
            return;
        }
        let meta = self.metadata.get_or_insert_default();
        let ours = meta
            .entry("ccb")
            .or_insert_with(|| Value::Object(Map::new()));
        if !ours.is_object() {
            // Not written by us; keep it out of the way rather than lose it.
            let stray = std::mem::replace(ours, Value::Object(Map::new()));
            ours["stray"] = stray;
        }
        if let Some(ours) = ours.as_object_mut() {
            match value {
                Some(value) => {
                    ours.insert(key.to_owned(), value);
                }
                None => {
                    ours.shift_remove(key);
                }
            }
        }
        if ours.as_object().is_some_and(Map::is_empty) {
            meta.shift_remove("ccb");
        }
        if meta.is_empty() {
            self.metadata = None;
        }
    }

    /// Merges `changes` into the metadata; `null` removes a key. Within `ccb` only the keys
    /// that are a caller's business may be set.
    pub(crate) fn merge_metadata(
        &mut self,
        changes: &Map<String, Value>,
    ) -> Result<(), BoardError> {
        check_metadata(changes)?;
        for (key, value) in changes {
            if let ("ccb", Some(ours)) = (key.as_str(), value.as_object()) {
                for (key, value) in ours {
                    self.set_ours(key, (!value.is_null()).then(|| value.clone()));
                }
            } else if value.is_null() {
                let meta = self.metadata.as_mut();
                if meta.is_some_and(|meta| {
                    meta.shift_remove(key);
                    meta.is_empty()
                }) {
                    self.metadata = None;
                }
            } else {
                self.metadata
                    .get_or_insert_default()
                    .insert(key.clone(), value.clone());
            }
        }
        Ok(())
    }
}

/// Checks metadata a caller wants to set.
pub(crate) fn check_metadata(changes: &Map<String, Value>) -> Result<(), BoardError> {
    if serde_json::to_string(changes).is_ok_and(|text| text.len() > MAX_TEXT) {
        return Err(too_long("metadata", MAX_TEXT));
    }
    let Some(ours) = changes.get("ccb") else {
        return Ok(());
    };
    let Some(ours) = ours.as_object() else {
        return Err(BoardError::invalid("metadata.ccb", "it must be an object"));
    };
    for (key, value) in ours {
        let what = format!("metadata.ccb.{key}");
        let right = match key.as_str() {
            _ if !SETTABLE.contains(&key.as_str()) => {
                let known = SETTABLE.join(", ");
                return Err(BoardError::invalid(
                    what,
                    format!("only {known} can be set"),
                ));
            }
            _ if value.is_null() => true,
            "priority" => value.is_i64(),
            "paths" => value
                .as_array()
                .is_some_and(|a| a.iter().all(Value::is_string)),
            _ => value.as_str().is_some_and(|text| !text.contains('\0')),
        };
        if !right {
            let expected = match key.as_str() {
                "priority" => "it must be a whole number",
                "paths" => "it must be a list of strings",
                _ => "it must be text without NUL characters",
            };
            return Err(BoardError::invalid(what, expected));
        }
    }
    Ok(())
}

/// The longest subject, in characters.
pub(crate) const MAX_SUBJECT: usize = 1_000;
/// The longest description, and the largest metadata, in bytes.
pub(crate) const MAX_TEXT: usize = 256 * 1024;

fn too_long(what: &str, limit: usize) -> BoardError {
    let why = format!(
        "over {} KiB; put it into a file and name the file here",
        limit / 1024
    );
    BoardError::invalid(what, why)
}

/// Checks a text that stands on one line (subject, activity, owner).
pub(crate) fn check_line(what: &str, text: &str) -> Result<(), BoardError> {
    if text.trim().is_empty() {
        return Err(BoardError::invalid(what, "it is empty"));
    }
    if text.chars().count() > MAX_SUBJECT {
        return Err(BoardError::invalid(
            what,
            format!("over {MAX_SUBJECT} characters"),
        ));
    }
    if text.chars().any(char::is_control) {
        return Err(BoardError::invalid(
            what,
            "it contains a line break or another control character",
        ));
    }
    Ok(())
}

/// Checks a description.
pub(crate) fn check_description(text: &str) -> Result<(), BoardError> {
    if text.contains('\0') {
        return Err(BoardError::invalid(
            "description",
            "it contains a NUL character",
        ));
    }
    if text.len() > MAX_TEXT {
        return Err(too_long("description", MAX_TEXT));
    }
    Ok(())
}
