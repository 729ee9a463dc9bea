//! Whether a team is there, is being deleted, or is gone.

use std::path::{Path, PathBuf};

use store::atomic::Stamp;
use team::Team;

/// A database is asked once in so many ms.
#[cfg(feature = "postgres")]
const EVERY: i64 = 500;

/// Follows whether a team is there; makes nothing.
#[derive(Debug)]
pub(super) struct Presence {
    team: Team,
    list: PathBuf,
    /// It was there once.
    seen: bool,
    /// Its own directory was there, and not only its board.
    had_dir: bool,
    /// The roster as it was when it said whether the team is being deleted.
    stamp: Option<Stamp>,
    deleting: bool,
    /// The same where the roster is in a database, and when that was asked.
    #[cfg(feature = "postgres")]
    version: Option<i64>,
    #[cfg(feature = "postgres")]
    asked: Option<i64>,
}

/// Whether a team is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Present {
    /// It is, or never was.
    Yes,
    /// One part of it goes after the other.
    BeingDeleted,
    /// It was.
    Gone,
}

impl Presence {
    /// Of this team and its board.
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

    /// Whether the team is there, as a database says. Fails if that does not answer.
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
        // One that was deleted leaves a directory with nothing of a team in it.
        let stamp = super::team::stamp_of(&dir.join("config.json"));
        let there = stamp.is_some() || dir.join("runs").exists();
        // It may leave the directory of its board as well, empty.
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

/// Whether there is a task on a board.
fn has_tasks(list: &Path) -> bool {
    let files = std::fs::read_dir(list).into_iter().flatten().flatten();
    let mut names = files.map(|file| file.file_name());
    names.any(|name| name.to_string_lossy().ends_with(".json"))
}
