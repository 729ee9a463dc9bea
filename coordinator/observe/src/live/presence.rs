//! Detects that a team exists, is being deleted, or is gone.

use std::path::{Path, PathBuf};

use team::{Team, TeamError, Version};

/// Poll interval of a database, in ms. Files are read every time.
const EVERY: i64 = 500;

/// Follows the existence of a team; creates nothing.
#[derive(Debug)]
pub(super) struct Presence {
    team: Team,
    /// The directory of its board, where that is in files; a team in files may be there without a
    /// roster.
    list: Option<PathBuf>,
    /// True if it existed once.
    seen: bool,
    /// True if its own directory existed, and not only its board.
    had_dir: bool,
    /// The roster's version when it said whether the team is being deleted.
    version: Option<Version>,
    deleting: bool,
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
    pub(super) fn new(team: Team, list: Option<PathBuf>) -> Self {
        Self {
            team,
            list,
            seen: false,
            had_dir: false,
            version: None,
            deleting: false,
            asked: None,
        }
    }

    /// The existence of the team. Fails if a database does not answer.
    pub(super) fn now(&mut self, now_ms: i64) -> Result<Present, TeamError> {
        let due = |at: i64| now_ms - at >= EVERY || now_ms < at;
        if self.list.is_some() || self.asked.is_none_or(due) {
            let version = self.team.version()?;
            if version != self.version {
                let roster = version.as_ref().and_then(|_| self.team.roster().ok());
                self.deleting = roster.is_some_and(|roster| roster.deleting_since.is_some());
                self.version = version;
            }
            self.asked = Some(now_ms);
        }
        let there = self.has_files() || self.version.is_some();
        if self.seen && !there {
            return Ok(Present::Gone);
        }
        self.seen |= there;
        Ok(if self.deleting {
            Present::BeingDeleted
        } else {
            Present::Yes
        })
    }

    /// True if a team in files is there, with or without a roster.
    fn has_files(&mut self) -> bool {
        let Some(list) = &self.list else {
            return false;
        };
        // A deleted team leaves a directory without files of a team.
        let there = self.version.is_some() || self.team.dir().join("runs").exists();
        // It may also leave the empty directory of its board.
        let left = list.is_dir() && (!self.had_dir || has_tasks(list));
        self.had_dir |= there;
        there || left
    }
}

/// True if there is a task on a board.
fn has_tasks(list: &Path) -> bool {
    let files = std::fs::read_dir(list).into_iter().flatten().flatten();
    let mut names = files.map(|file| file.file_name());
    names.any(|name| name.to_string_lossy().ends_with(".json"))
}
