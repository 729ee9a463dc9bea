//! Rosters as files: the default, and what other tools read and write as well.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use store::IoContext;
use store::atomic::{self, Staged, Stamp};
use store::fault::reached;
use store::home::create_private_dir;
use store::lock::FileLock;
use store::name::Name;
use store::tree::names_in;

use crate::backend::{Backend, Change, First, Version};
use crate::error::TeamError;
use crate::fault;
use crate::format::Document;
use crate::{Listed, Roster, Team, Teams};

/// A roster that does not parse is read again for so long: other tools write it in place.
const REREAD_FOR: Duration = Duration::from_secs(1);
const PAUSE: Duration = Duration::from_millis(5);
/// Attempts to change a file that another tool writes meanwhile.
const TRIES: usize = 20;

/// Rosters in `config.json` of each team's directory.
#[derive(Debug)]
pub(crate) struct Files;

impl Backend for Files {
    fn list(&self, teams: &Teams) -> Result<Vec<Listed>, TeamError> {
        let mut found = Vec::new();
        for name in names_in(&teams.home.teams())? {
            // Other tools may have names we would not give; those directories are not ours.
            let Ok(name) = Name::new("team", &name) else {
                continue;
            };
            let team = teams.team(name);
            match team.roster() {
                Err(TeamError::NotFound { .. }) => {}
                roster => found.push(Listed {
                    name: team.name.to_string(),
                    roster,
                }),
            }
        }
        Ok(found)
    }

    fn names(&self, team: &Team) -> Vec<String> {
        let teams = team.home.teams();
        let mut names = names_in(&teams).unwrap_or_default();
        names.retain(|name| teams.join(name).join("config.json").is_file());
        names
    }

    fn path(&self, team: &Team) -> PathBuf {
        team.config_path()
    }

    fn read(&self, team: &Team) -> Result<Document, TeamError> {
        Ok(team.read_file()?.0)
    }

    fn create(&self, team: &Team, first: First<'_>) -> Result<Document, TeamError> {
        team.make_dir()?;
        let _lock = team.lock()?;
        team.sweep()?;
        match team.read_file() {
            Ok((document, _)) => return Err(team.is_there(&document)),
            Err(TeamError::NotFound { .. }) => {}
            Err(error) => return Err(error),
        }
        let document = first(team.options.clock.now_ms())?;
        team.stage(&document)?.replace(&team.config_path())?;
        team.sync()?;
        Ok(document)
    }

    fn change(&self, team: &Team, apply: Change<'_>) -> Result<Roster, TeamError> {
        let now = team.options.clock.now_ms();
        let _lock = team.locked()?;
        for _ in 0..TRIES {
            let (mut document, stamp) = team.read_file()?;
            let roster = team.understood(&document)?;
            team.check_writable(&document, &roster)?;
            apply(&mut document, &roster, now)?;
            let changed = team.understood(&document)?;
            let staged = team.stage(&document)?;
            // Other tools know nothing of our lock; do not undo what they have just written.
            if team.stamp()? == Some(stamp) {
                staged.replace(&team.config_path())?;
                team.sync()?;
                return Ok(changed);
            }
        }
        Err(team.keeps_changing())
    }

    fn delete(&self, team: &Team) -> Result<(), TeamError> {
        {
            let _lock = team.locked()?;
            team.check_marked(&self.read(team)?)?;
            team.set_all_aside()?;
            reached(fault::TEAM_ASIDE);
        }
        team.empty_trash()?;
        // The roster must not be the first to be gone after a power cut.
        atomic::sync_dir(&team.dir, team.options.durability)?;
        let _lock = team.locked()?;
        team.check_marked(&self.read(team)?)?;
        atomic::remove(&team.config_path())?;
        team.sync()
    }

    fn version(&self, team: &Team) -> Result<Option<Version>, TeamError> {
        // For an onlooker, a file that cannot be read is not there.
        let meta = std::fs::metadata(team.config_path()).ok();
        Ok(meta.map(|meta| Version::File(Stamp::of(&meta))))
    }
}

impl Team {
    /// The roster's file, read again for a while if it does not parse.
    fn read_file(&self) -> Result<(Document, Stamp), TeamError> {
        let started = Instant::now();
        loop {
            let Some((bytes, stamp)) = atomic::read_stamped(&self.config_path())? else {
                return Err(self.not_found());
            };
            match Document::parse(&self.name, &bytes) {
                Ok(document) => return Ok((document, stamp)),
                Err(detail) if started.elapsed() > REREAD_FOR => return Err(self.corrupt(detail)),
                Err(_) => std::thread::sleep(PAUSE),
            }
        }
    }

    pub(super) fn lock(&self) -> Result<FileLock, TeamError> {
        let what = format!("the roster of team {:?}", self.name.as_str());
        let path = self.ours().join("lock");
        Ok(FileLock::exclusive(
            &path,
            &what,
            self.options.lock_timeout,
        )?)
    }

    /// The lock of a team that exists, with everything a change needs around it.
    fn locked(&self) -> Result<FileLock, TeamError> {
        if self.stamp()?.is_none() {
            return Err(self.not_found());
        }
        // A team another tool made has no directory of ours.
        create_private_dir(&self.tmp_dir())?;
        let lock = self.lock()?;
        self.sweep()?;
        Ok(lock)
    }

    /// Makes the team's directory; a lock over all teams keeps two names apart that differ
    /// only in case.
    fn make_dir(&self) -> Result<(), TeamError> {
        let teams = self.home.teams();
        create_private_dir(&teams)?;
        let timeout = self.options.lock_timeout;
        let _lock = FileLock::exclusive(&teams.join(".lock"), "the directory of teams", timeout)?;
        self.name.check_no_clash("team", &teams)?;
        // The team's tasks will be in a list of the same name.
        self.name.check_no_clash("team", &self.home.lists())?;
        create_private_dir(&self.tmp_dir())?;
        reached(fault::TEAM_DIR_MADE);
        atomic::sync_dir(&teams, self.options.durability)?;
        Ok(atomic::sync_parent(&teams, self.options.durability)?)
    }

    /// Removes what writers that died have left. The caller holds the lock, so no process writes.
    fn sweep(&self) -> Result<(), TeamError> {
        for name in names_in(&self.tmp_dir())? {
            atomic::remove(&self.tmp_dir().join(name))?;
        }
        Ok(())
    }

    fn stage(&self, document: &Document) -> Result<Staged, TeamError> {
        let bytes = document.to_bytes();
        Ok(Staged::write(
            &self.tmp_dir(),
            &bytes,
            self.options.durability,
        )?)
    }

    fn sync(&self) -> Result<(), TeamError> {
        atomic::sync_dir(&self.dir, self.options.durability)
            .map_err(|source| TeamError::NotDurable { source })
    }

    /// The stamp of the roster's file, if there is one.
    fn stamp(&self) -> Result<Option<Stamp>, TeamError> {
        let path = self.config_path();
        let meta = std::fs::symlink_metadata(&path).if_there("read", &path)?;
        Ok(meta.as_ref().map(Stamp::of))
    }

    pub(super) fn config_path(&self) -> PathBuf {
        self.dir.join("config.json")
    }

    pub(super) fn ours(&self) -> PathBuf {
        self.dir.join(".ccb")
    }

    pub(super) fn tmp_dir(&self) -> PathBuf {
        self.ours().join("tmp")
    }

    pub(super) fn trash_dir(&self) -> PathBuf {
        self.ours().join("trash")
    }
}
