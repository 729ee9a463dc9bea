//! `session.json` of a team: what a session needs to go on.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use store::atomic::{self, Durability};
use store::home::{Home, create_private_dir};
use store::lock::{DEFAULT_TIMEOUT, FileLock};
use store::name::Name;
use store::settings::MatesIn;
use store::{Category, Explain, Facts, StoreError};

/// The version of the file format.
const VERSION: u64 = 1;
/// Under which what a team's session is like stands.
const KEY: &str = "session";

/// The settings of a team's session; flags of a later start replace them one by one.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TeamSession {
    /// The session's unique id.
    pub session_id: String,
    /// `team` or `coordinator`.
    pub mode: String,
    /// The goal of the session; `None` if it has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prompt: Option<String>,
    /// The runtime of the lead; `None` if the person at the terminal leads.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lead: Option<String>,
    /// The runtime of the teammates; `None` for the default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub runtime: Option<String>,
    /// Number of teammates.
    pub mates: usize,
    /// Number of teammates by runtime, if their runtimes differ.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub mates_by_runtime: BTreeMap<String, usize>,
    /// `auto`, `ask` or `never`.
    pub merge: String,
    /// The branch on which finished work lands; `None` for the default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub into: Option<String>,
    /// How results land on it: `merge`, `squash` or `rebase`; `None` for the default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub strategy: Option<String>,
    /// The command that must succeed on everything that lands; `None` for the default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verify: Option<String>,
    /// Maximum number of attempts at a task; `None` for the default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attempts: Option<u16>,
    /// Maximum duration of a check, in seconds; `None` for the default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verify_timeout: Option<u64>,
    /// Number of failures after which no further task starts; `None` for the default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_failures: Option<u16>,
    /// Where teammates on `native` run; `None` for the value of the settings.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mates_in: Option<MatesIn>,
    /// The model of the teammates; `None` for the default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The teammates' permission mode; `None` leaves it to their definitions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub permission_mode: Option<String>,
    /// True if a person is at the terminal that the session was started on.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub attended: bool,
    /// True if teammates work in the main worktree.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub no_worktrees: bool,
    /// The run of the lead, if it is an agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lead_run: Option<String>,
    /// The start of the session, RFC 3339.
    pub started_at: String,
    /// The time when the session ended or was ended; `None` if it was killed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<String>,
    /// Fields of later versions.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

impl TeamSession {
    /// True if its lead does nothing itself.
    pub fn has_coordinator(&self) -> bool {
        self.mode == "coordinator"
    }

    /// The name of the team of a session that was given none.
    pub fn team_of(session_id: &str) -> String {
        let start: String = session_id.chars().take(8).collect();
        format!("session-{start}")
    }
}

/// The errors of a session's file.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum SessionFileError {
    /// A file or a lock.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The file is not a session file.
    #[error("{} cannot be read: {why}", path.display())]
    Unreadable { path: PathBuf, why: String },
}

impl Explain for SessionFileError {
    fn facts(&self) -> Facts {
        match self {
            Self::Store(error) => error.facts(),
            Self::Unreadable { .. } => Facts::new(Category::Failed, "session_unreadable"),
        }
    }
}

/// One team's `session.json`.
#[derive(Debug)]
pub struct SessionFile {
    /// The team's directory.
    dir: PathBuf,
}

impl SessionFile {
    /// Of this team.
    pub fn new(home: &Home, team: &Name) -> Self {
        let dir = home.team(team);
        Self { dir }
    }

    /// The settings of the team's session, if there was one.
    pub fn session(&self) -> Result<Option<TeamSession>, SessionFileError> {
        match self.load()?.remove(KEY) {
            None | Some(Value::Null) => Ok(None),
            Some(value) => serde_json::from_value(value)
                .map(Some)
                .map_err(|error| self.unreadable(&error)),
        }
    }

    /// Reads the session for a caller that only displays it: reads a newer version's file as far as
    /// it is understood, and returns its format.
    pub fn glance(&self) -> Result<(Option<TeamSession>, Option<u64>), SessionFileError> {
        let Some(bytes) = atomic::read(&self.path())? else {
            return Ok((None, None));
        };
        let mut file: Map<String, Value> =
            serde_json::from_slice(&bytes).map_err(|error| self.unreadable(&error))?;
        let found = file.get("v").and_then(Value::as_u64).unwrap_or(VERSION);
        let newer = (found > VERSION).then_some(found);
        let session = match file.remove(KEY) {
            None | Some(Value::Null) => None,
            Some(value) => match serde_json::from_value(value) {
                Ok(session) => Some(session),
                Err(_) if newer.is_some() => None,
                Err(error) => return Err(self.unreadable(&error)),
            },
        };
        Ok((session, newer))
    }

    /// Writes down what it is like.
    pub fn put_session(&self, session: &TeamSession) -> Result<(), SessionFileError> {
        let _lock = self.lock()?;
        let mut file = self.load()?;
        let value = serde_json::to_value(session).map_err(|error| self.unreadable(&error))?;
        file.insert(KEY.into(), value);
        self.save(file)
    }

    /// The file's path.
    pub fn path(&self) -> PathBuf {
        self.dir.join("session.json")
    }

    /// Keeps other processes from changing it until the lock is dropped.
    pub fn lock(&self) -> Result<FileLock, SessionFileError> {
        create_private_dir(&self.dir.join(".ccb/tmp"))?;
        let lock = self.dir.join(".ccb/session.lock");
        Ok(FileLock::exclusive(&lock, "the session", DEFAULT_TIMEOUT)?)
    }

    /// All of it; empty if there is no such file.
    pub fn load(&self) -> Result<Map<String, Value>, SessionFileError> {
        let Some(bytes) = atomic::read(&self.path())? else {
            return Ok(Map::new());
        };
        let file: Map<String, Value> =
            serde_json::from_slice(&bytes).map_err(|error| self.unreadable(&error))?;
        let found = file.get("v").and_then(Value::as_u64).unwrap_or(VERSION);
        StoreError::check_version(&self.path(), found, VERSION)?;
        Ok(file)
    }

    /// Replaces it. The caller holds the lock.
    pub fn save(&self, mut file: Map<String, Value>) -> Result<(), SessionFileError> {
        file.insert("v".into(), VERSION.into());
        let text = format!("{:#}\n", Value::Object(file));
        let tmp = self.dir.join(".ccb/tmp");
        atomic::replace(&tmp, &self.path(), text.as_bytes(), Durability::Full)?;
        Ok(())
    }

    /// The error for a file that cannot be read.
    pub fn unreadable(&self, error: &serde_json::Error) -> SessionFileError {
        SessionFileError::Unreadable {
            path: self.path(),
            why: error.to_string(),
        }
    }
}
