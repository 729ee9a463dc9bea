//! Detects that a team exists, is being deleted, or is gone.

use std::path::{Path, PathBuf};

use store::atomic::Stamp;
use team::Team;

/// Poll interval of a database, in ms.
#[cfg(feature = "postgres")]
const EVERY: i64 = 500;

/// Follows the existence of a team; creates nothing.
#[derive(Debug)]
pub(super) struct Presence {
    team: Team,
    list: PathBuf,
    /// True if it existed once.
    seen: bool,
    /// True if its own directory existed, and not only its board.
    had_dir: bool,
    /// The roster's stamp when it was last read for a deletion.
    stamp: Option<Stamp>,
    deleting: bool,
    /// The same for a roster in a database, with the time of the query.
    #[cfg(feature = "postgres")]
    version: Option<i64>,
    #[cfg(feature = "postgres")]
    asked: Option<i64>,
}

/// The existence of a team.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Present {
    /// It exists, or never existed.
    Yes,
    /// Its parts are deleted one after another.
    BeingDeleted,
    /// It existed once, and is gone.
    Gone,
}

impl Presence {
    /// Follows this team and its board.
    pub(super) fn new(team: Team, list: PathBuf) -> Self {
        Self {
            team,
            list,
            seen: false,
            had_dir: false,
            stamp: None,
            deleting: false,
            #[cfg(feature = "postgres")]
            version: None,
            #[cfg(feature = "postgres")]
            asked: None,
        }
    }

    /// The existence of the team according to a database. Fails if the database does not answer.
    #[cfg(feature = "postgres")]
    pub(super) fn in_database(&mut self, now_ms: i64) -> Result<Present, team::TeamError> {
        let due = |at: i64| now_ms - at >= EVERY || now_ms < at;
        if self.asked.is_none_or(due) {
            let version = self.team.version()?;
            if version != self.version {
                let roster = version.and_then(|_| self.team.roster().ok());
                self.deleting = roster.is_some_and(|roster| roster.deleting_since.is_some());
                self.version = version;
            }
            self.seen |= version.is_some();
            self.asked = Some(now_ms);
        }
        Ok(match (self.version, self.deleting) {
            (None, _) if self.seen => Present::Gone,
            (_, true) => Present::BeingDeleted,
            _ => Present::Yes,
        })
    }

    pub(super) fn now(&mut self) -> Present {
        let dir = self.team.dir();
        // A deleted team leaves a directory without files of a team.
        let stamp = super::team::stamp_of(&dir.join("config.json"));
        let there = stamp.is_some() || dir.join("runs").exists();
        // It may also leave the empty directory of its board.
        let list = self.list.is_dir();
        let left = list && (!self.had_dir || has_tasks(&self.list));
        if self.seen && !there && !left {
            return Present::Gone;
        }
        self.had_dir |= there;
        self.seen |= there || list;
        if stamp != self.stamp {
            let roster = stamp.as_ref().and_then(|_| self.team.roster().ok());
            self.deleting = roster.is_some_and(|roster| roster.deleting_since.is_some());
            self.stamp = stamp;
        }
        match self.deleting {
            true => Present::BeingDeleted,
            false => Present::Yes,
        }
    }
}

/// True if there is a task on a board.
fn has_tasks(list: &Path) -> bool {
    let files = std::fs::read_dir(list).into_iter().flatten().flatten();
    let mut names = files.map(|file| file.file_name());
    names.any(|name| name.to_string_lossy().ends_with(".json"))
}
