//! Where board, mail and rosters are kept: in files, or in PostgreSQL.
//!
//! [`Backends::open`] chooses once. This file is the only one in the coordinator's rooms that asks
//! whether ccb was built with PostgreSQL; the others ask [`Backends::place`] whether several machines
//! share the board.

use std::any::Any;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use mailbox::{MailOptions, Mailbox};
use store::Failure;
use store::home::Home;
use store::name::Name;
use swarm::run::SharedPlace;
use taskboard::{Board, BoardError, BoardOptions, LeaseTerm};
use team::{TeamOptions, Teams};
use worktrees::Repository;

use crate::finding::Finding;
use crate::worker::KnownWorker;

#[cfg(feature = "postgres")]
pub mod postgres;
#[cfg(feature = "postgres")]
use postgres::open as in_database;

/// Board, mail and rosters of one home, wherever they are kept.
#[derive(Debug, Clone)]
pub struct Backends {
    home: Home,
    backend: Arc<dyn Backend>,
}

impl Backends {
    /// Everything is in the files of `home`.
    pub fn files(home: &Home) -> Self {
        Self {
            home: home.clone(),
            backend: Arc::new(Files),
        }
    }

    /// Everything is in files, or in the database of `place` if there is one; `variable` reads the
    /// environment that may hold its password. Nothing is connected yet.
    pub fn open(
        home: &Home,
        place: Option<SharedPlace>,
        lock_timeout: Duration,
        variable: impl Fn(&str) -> Option<OsString>,
    ) -> Result<Self, Failure> {
        let Some(place) = place else {
            return Ok(Self::files(home));
        };
        Ok(Self {
            home: home.clone(),
            backend: in_database(place, lock_timeout, &variable)?,
        })
    }

    /// The board of the list `name`.
    pub fn board(&self, name: Name, options: BoardOptions) -> Board {
        self.backend.board(&self.home, name, options)
    }

    /// The mail of `team`.
    pub fn mail(&self, team: &Name, options: MailOptions) -> Mailbox {
        self.backend.mail(&self.home, team, options)
    }

    /// The teams, as seen from `repository`.
    pub fn teams(&self, repository: Option<&Repository>, lock_timeout: Duration) -> Teams {
        let options = TeamOptions {
            lock_timeout,
            ..TeamOptions::default()
        };
        self.backend.teams(&self.home, repository, options)
    }

    /// The database, if several machines share it.
    pub fn place(&self) -> Option<&SharedPlace> {
        self.backend.place()
    }

    /// The same database for a caller with other settings, or in another repository.
    #[must_use]
    pub fn with_place(&self, place: impl FnOnce(String) -> SharedPlace) -> Self {
        let Some(known) = self.place() else {
            return self.clone();
        };
        Self {
            home: self.home.clone(),
            backend: self.backend.with_place(place(known.board.clone())),
        }
    }

    /// The same for a caller that waits at most `patience` for a database.
    #[must_use]
    pub fn with_patience(&self, patience: Duration) -> Self {
        Self {
            home: self.home.clone(),
            backend: self.backend.with_patience(patience),
        }
    }

    /// The term after which a claim of `holder`, a run or a client, ends.
    pub fn lease_of(&self, holder: &str) -> LeaseTerm {
        let run = holder.to_owned();
        match self.place() {
            Some(place) => LeaseTerm::Heartbeat {
                run,
                milliseconds: i64::try_from(place.lease_ms).unwrap_or(i64::MAX),
            },
            None => LeaseTerm::Run(run),
        }
    }

    /// Takes the lock `name`, which ends `term` after its holder was last heard of; `None` if another
    /// process has it. Where no other machine can take it, the caller always gets it.
    pub(crate) fn lock(&self, name: &str, term: Duration) -> Result<Option<Turn>, BoardError> {
        self.backend.lock(name, term)
    }

    /// Joins the workers of `list`; refused if another machine, or another home, has a worker of that
    /// name. A worker that was killed takes its own place again.
    pub(crate) fn join_as_worker(
        &self,
        list: &Name,
        name: &Name,
        labels: &BTreeSet<String>,
    ) -> Result<Turn, Failure> {
        let list = list.as_str().to_lowercase();
        self.backend.join_as_worker(&self.home, &list, name, labels)
    }

    /// The workers of `list` that are there now.
    pub(crate) fn workers(&self, list: &Name) -> Result<Vec<KnownWorker>, BoardError> {
        self.backend.workers(&list.as_str().to_lowercase())
    }

    /// Adds what is wrong with the database; false if it cannot be used, so nothing in it can be
    /// checked.
    pub fn findings(&self, findings: &mut Vec<Finding>) -> bool {
        self.backend.findings(findings)
    }

    /// Refuses `address` if it holds a password and was an argument, which every user of the machine
    /// can read.
    pub fn check_argument(&self, address: &str) -> Result<(), Failure> {
        self.backend.check_argument(address)
    }
}

/// A turn, until it is dropped.
#[derive(Debug)]
pub struct Turn(Option<Box<dyn Held>>);

/// A turn that another machine could have had.
trait Held: Debug + Send + Sync {
    fn let_run_out(self: Box<Self>);
}

impl Turn {
    /// Ends the turn after its term: until then no other process takes it.
    pub fn let_run_out(self) {
        if let Some(held) = self.0 {
            held.let_run_out();
        }
    }
}

/// Where board, mail and rosters are kept.
trait Backend: Any + Debug + Send + Sync {
    fn board(&self, home: &Home, name: Name, options: BoardOptions) -> Board;

    fn mail(&self, home: &Home, team: &Name, options: MailOptions) -> Mailbox;

    fn teams(&self, home: &Home, repository: Option<&Repository>, options: TeamOptions) -> Teams;

    fn place(&self) -> Option<&SharedPlace>;

    /// The same, told about another place.
    fn with_place(&self, place: SharedPlace) -> Arc<dyn Backend>;

    fn with_patience(&self, patience: Duration) -> Arc<dyn Backend>;

    fn lock(&self, name: &str, term: Duration) -> Result<Option<Turn>, BoardError>;

    /// `list` is in lower case.
    fn join_as_worker(
        &self,
        home: &Home,
        list: &str,
        name: &Name,
        labels: &BTreeSet<String>,
    ) -> Result<Turn, Failure>;

    /// `list` is in lower case.
    fn workers(&self, list: &str) -> Result<Vec<KnownWorker>, BoardError>;

    fn findings(&self, findings: &mut Vec<Finding>) -> bool;

    fn check_argument(&self, address: &str) -> Result<(), Failure>;
}

/// Everything is in the files of this machine, so there is no other one to agree with.
#[derive(Debug)]
struct Files;

impl Backend for Files {
    fn board(&self, home: &Home, name: Name, options: BoardOptions) -> Board {
        Board::new(home, name, options)
    }

    fn mail(&self, home: &Home, team: &Name, options: MailOptions) -> Mailbox {
        Mailbox::new(home, team, options)
    }

    fn teams(&self, home: &Home, repository: Option<&Repository>, options: TeamOptions) -> Teams {
        let common_dir = repository.and_then(|repository| repository.common_dir.to_str());
        let options = TeamOptions {
            repository: common_dir.map(str::to_owned),
            ..options
        };
        Teams::new(home, options)
    }

    fn place(&self) -> Option<&SharedPlace> {
        None
    }

    fn with_place(&self, _: SharedPlace) -> Arc<dyn Backend> {
        Arc::new(Self)
    }

    fn with_patience(&self, _: Duration) -> Arc<dyn Backend> {
        Arc::new(Self)
    }

    fn lock(&self, _: &str, _: Duration) -> Result<Option<Turn>, BoardError> {
        Ok(Some(Turn(None)))
    }

    fn join_as_worker(
        &self,
        _: &Home,
        _: &str,
        _: &Name,
        _: &BTreeSet<String>,
    ) -> Result<Turn, Failure> {
        Ok(Turn(None))
    }

    fn workers(&self, _: &str) -> Result<Vec<KnownWorker>, BoardError> {
        Ok(Vec::new())
    }

    fn findings(&self, _: &mut Vec<Finding>) -> bool {
        true
    }

    fn check_argument(&self, _: &str) -> Result<(), Failure> {
        Ok(())
    }
}

/// The database of `place`; refused in a program that cannot talk to databases.
#[cfg(not(feature = "postgres"))]
fn in_database(
    _: SharedPlace,
    _: Duration,
    _: &dyn Fn(&str) -> Option<OsString>,
) -> Result<Arc<dyn Backend>, Failure> {
    let message = "the board is in PostgreSQL, and this ccb was built without it";
    Err(Failure::usage("no_postgres", message)
        .with_hint("build it with: cargo install --path cli --features postgres"))
}
