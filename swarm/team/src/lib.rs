//! Rosters: who belongs to a team, recorded before any member starts.
//!
//! # What this room knows
//!
//! * The roster ([`Roster`], [`Member`]), in the format that Claude Code reads, and every change of it.
//! * The members of a team that are alive ([`Team::living`]), by locks and by the roster.
//! * Deleting a team in steps that can be repeated ([`Team::begin_delete`], [`Team::finish_delete`]).
//! * Where rosters are kept: one of two backends behind one port (`backend`), files ([`Teams::new`]) or
//!   rows of PostgreSQL (`Teams::on`, feature `postgres`). `tests/` hold both to the same promises.
//!
//! ```text
//! <home>/teams/.lock                    held while a team's directory is made
//! <home>/teams/<team>/config.json       the roster
//! <home>/teams/<team>/.ccb/lock         held while the roster changes; never deleted
//! <home>/teams/<team>/.ccb/tmp/         rosters that are being written
//! <home>/teams/<team>/.ccb/trash/       what a deletion has set aside and not yet deleted
//! <home>/teams/<team>/runs/<agent>/alive.lock         held while that agent runs
//! <home>/teams/<team>/inboxes/<agent>/consumer.lock   held while a reader takes its mail
//! ```
//!
//! # What it must not know (and where to go instead)
//!
//! * How an agent runs: `swarm::run`. This crate asks only whether a lock is held.
//! * Mail and task lists: `mailbox`, `taskboard`. Rosters in a database ask for them through
//!   [`Beside`], which the coordinator implements.
//! * Worktrees and tasks of a team that is deleted: `coordinator` removes them between the two steps.
//! * The right to change a roster, and the agent it is changed for: `coordinator`.
//!
//! # The way through
//!
//! ```text
//! read:    config.json (read again while it does not parse) or a row ─▶ Document ─▶ Roster
//! change:  .ccb/lock ─▶ Document ─▶ change ─▶ .ccb/tmp ─▶ rename over config.json, or one transaction
//! living:  locks of runs/ and inboxes/ + Roster ─▶ Living
//! delete:  begin (roster says so) ─▶ coordinator deletes the rest ─▶ finish: set aside, delete, roster last
//! ```
//!
//! # Crash points
//!
//! [`FAULT_POINTS`], all `team.*`: `dir-made` (a directory without a roster), `marked` (the roster says that
//! the team is being deleted), `set-aside`, `aside` and `emptied` (between the steps of the deletion). After
//! each of them the same command completes what it began. `tests/it/team_crash.rs` stops every change at
//! every point; `swarm/team/tests/` cuts the link to the database.
//!
//! # Where things are
//!
//! Paths start at the repository's root; a short name is beside the last path of its cell.
//!
//! | to | look at |
//! |---|---|
//! | change a team's roster | `swarm/team/src/change.rs`; its format is in `swarm/team/src/format.rs`; where it is kept: `swarm/team/src/backend.rs` (the port), `swarm/team/src/files.rs` |
//! | change rosters in PostgreSQL | `swarm/team/src/rows.rs`, `swarm/team/migrations/001.sql`; what is beside them: `swarm/team/src/beside.rs`, `coordinator/runs/src/backends/postgres.rs`; links that break: `swarm/team/tests/database/cuts.rs` |
//! | know who of a team is alive | `swarm/team/src/living.rs` |
//!
//! # A change of a roster
//!
//! Under `.ccb/lock` of the team: read `config.json` (again for up to a second if it does not parse, because Claude Code writes it in
//! place), check version and repository, patch the document, write it aside, look whether another tool has written meanwhile, rename,
//! sync. The document is patched and never rebuilt, so what we do not know survives. A member is recorded before it starts; it is
//! alive if its run's `alive.lock` or its inbox's `consumer.lock` is held, or if it joined as active and has no run.
//!
//! A team ends in steps that can be taken again: the roster says so (from here on no member can join), the tasks go as in `reset`, inboxes,
//! requests and runs are moved to `.ccb/trash/` and deleted there, `config.json` goes last. If the board says no, the first step is
//! taken back.

mod backend;
mod beside;
mod change;
mod delete;
mod error;
mod fault;
mod files;
mod format;
#[doc(hidden)]
pub mod fuzz;
mod life;
mod living;
#[cfg(feature = "postgres")]
mod rows;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use store::atomic::Durability;
use store::clock::{Clock, SystemClock};
use store::home::Home;
use store::lock::DEFAULT_TIMEOUT;
use store::machine::Machine;
use store::name::Name;

pub use backend::Version;
pub use beside::Beside;
pub use change::{MemberUpdate, NewTeam};
pub use error::TeamError;
pub use fault::FAULT_POINTS;
pub use format::{COLORS, Member, NewMember, Roster};
pub use life::{Life, Living};
#[cfg(feature = "postgres")]
pub use rows::MIGRATIONS;

use backend::Backend;
use files::Files;
use format::Document;

/// One team, which need not exist yet.
#[derive(Debug)]
pub struct Team {
    name: Name,
    home: Home,
    dir: PathBuf,
    options: TeamOptions,
    backend: Arc<dyn Backend>,
}

/// All teams of a home, or of the database that their rosters are in.
#[derive(Debug, Clone)]
pub struct Teams {
    home: Home,
    options: TeamOptions,
    backend: Arc<dyn Backend>,
}

/// The options of a team.
#[derive(Debug, Clone)]
pub struct TeamOptions {
    /// The repository the caller is in: its shared git directory, or for rosters in a database a
    /// name that is the same on every machine. A team of another one is not changed; from outside
    /// every repository, and for teams of none, everything goes.
    pub repository: Option<String>,
    /// The machine the caller is on, where a team may be on several; members record theirs.
    pub machine: Option<Machine>,
    /// The mail and lists beside a roster in a database; `None` for files.
    pub beside: Option<Arc<dyn Beside>>,
    /// Says if a change survives a power cut before it is acknowledged.
    pub durability: Durability,
    /// Maximum wait for the roster's lock.
    pub lock_timeout: Duration,
    /// The source of the time.
    pub clock: Arc<dyn Clock>,
}

impl Default for TeamOptions {
    fn default() -> Self {
        Self {
            repository: None,
            machine: None,
            beside: None,
            durability: Durability::Full,
            lock_timeout: DEFAULT_TIMEOUT,
            clock: Arc::new(SystemClock),
        }
    }
}

/// A team that was found, readable or not.
#[derive(Debug)]
pub struct Listed {
    /// Its name.
    pub name: String,
    /// Its roster, or why that cannot be read.
    pub roster: Result<Roster, TeamError>,
}

impl Teams {
    /// The teams of `home` whose rosters are files.
    pub fn new(home: &Home, options: TeamOptions) -> Self {
        Self::kept(home, options, Arc::new(Files))
    }

    /// The constructor chooses the backend; nothing after it asks which one it is.
    fn kept(home: &Home, options: TeamOptions, backend: Arc<dyn Backend>) -> Self {
        Self {
            home: home.clone(),
            options,
            backend,
        }
    }

    /// The team `name`.
    pub fn team(&self, name: Name) -> Team {
        Team {
            dir: self.home.team(&name),
            home: self.home.clone(),
            name,
            options: self.options.clone(),
            backend: Arc::clone(&self.backend),
        }
    }

    /// All of them, of every repository, by name.
    pub fn list(&self) -> Result<Vec<Listed>, TeamError> {
        self.backend.list(self)
    }

    /// The repository the caller is in, as rosters record it.
    pub fn repository(&self) -> Option<&str> {
        self.options.repository.as_deref()
    }
}

impl Team {
    /// The team's name.
    pub fn name(&self) -> &Name {
        &self.name
    }

    /// The team's directory on this machine.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Its present members, read without a lock and from any repository.
    pub fn roster(&self) -> Result<Roster, TeamError> {
        self.understood(&self.backend.read(self)?)
    }

    /// The same for a caller that is going to act in the team's name: refused from another
    /// repository.
    pub fn enter(&self) -> Result<Roster, TeamError> {
        let roster = self.roster()?;
        self.check_repository(&roster)?;
        Ok(roster)
    }

    /// A number or stamp that differs after every change of the roster; `None` if there is no
    /// roster.
    pub fn version(&self) -> Result<Option<Version>, TeamError> {
        self.backend.version(self)
    }

    fn check_repository(&self, roster: &Roster) -> Result<(), TeamError> {
        match (&roster.repository, &self.options.repository) {
            (Some(theirs), Some(ours)) if theirs != ours => Err(TeamError::OtherRepository {
                team: self.name.to_string(),
                theirs: theirs.clone(),
                ours: ours.clone(),
            }),
            _ => Ok(()),
        }
    }

    fn understood(&self, document: &Document) -> Result<Roster, TeamError> {
        document
            .read(&self.name)
            .map_err(|error| self.corrupt(error.why))
    }

    fn corrupt(&self, detail: String) -> TeamError {
        TeamError::Corrupt {
            team: self.name.to_string(),
            path: self.backend.path(self),
            detail,
        }
    }

    fn not_found(&self) -> TeamError {
        TeamError::NotFound {
            name: self.name.to_string(),
            nearest: nearest(self.name.as_str(), self.backend.names(self)),
        }
    }
}

/// Up to three of `candidates` that may have been meant, the most similar first.
fn nearest(given: &str, mut candidates: Vec<String>) -> Vec<String> {
    let mut found = Vec::new();
    while found.len() < 3
        && let Some(name) = store::nearest(given, candidates.iter().map(String::as_str))
    {
        let name = name.to_owned();
        candidates.retain(|candidate| *candidate != name);
        found.push(name);
    }
    found
}

#[cfg(test)]
mod tests;
