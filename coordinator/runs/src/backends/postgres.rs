//! Board, mail and rosters in PostgreSQL, which several machines share.
//!
//! `meta.json` of a run has the address without its password. The password comes from the environment
//! of the process that acts.

mod server;

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use database::{Claimant, Database, DatabaseError, Secrets, Settings, Taken};
use mailbox::{MailOptions, Mailbox};
use store::Failure;
use store::home::Home;
use store::machine::Machine;
use store::name::Name;
use swarm::run::SharedPlace;
use taskboard::{Board, BoardError, BoardOptions};
use team::{Beside, TeamError, TeamOptions, Teams};
use uuid::Uuid;
use worktrees::Repository;

use super::{Backend, Backends, Held, Turn};
use crate::env;
use crate::finding::Finding;
use crate::worker::{KnownWorker, host_name};

pub use server::{SCHEMA, findings_of};

/// A database, and what is agreed about it.
#[derive(Debug, Clone)]
struct Postgres {
    database: Database,
    place: SharedPlace,
}

impl Backends {
    /// The database itself, for commands that are about it.
    pub fn database(&self) -> Option<&Database> {
        let backend: &dyn std::any::Any = &*self.backend;
        let postgres: Option<&Postgres> = backend.downcast_ref();
        postgres.map(|postgres| &postgres.database)
    }
}

/// The database at the address of `place`, with the password that these variables hold.
pub(super) fn open(
    place: SharedPlace,
    lock_timeout: Duration,
    variable: &dyn Fn(&str) -> Option<OsString>,
) -> Result<Arc<dyn Backend>, Failure> {
    let settings = settings(&place.board, variable)?;
    Ok(Arc::new(Postgres {
        place: SharedPlace {
            board: settings.address().to_owned(),
            ..place
        },
        database: Database::new(settings.with_lock_timeout(lock_timeout)),
    }))
}

fn settings(
    address: &str,
    variable: &dyn Fn(&str) -> Option<OsString>,
) -> Result<Settings, DatabaseError> {
    let set = |name: &str| variable(name).filter(|value| !value.is_empty());
    let secrets = Secrets {
        password: set("PGPASSWORD").and_then(|value| value.into_string().ok()),
        pass_file: set("PGPASSFILE").map(PathBuf::from).or_else(|| {
            let home = PathBuf::from(set("HOME")?);
            Some(home.join(".pgpass"))
        }),
    };
    let given = set(env::BOARD).and_then(|value| value.into_string().ok());
    let found = Settings::parse(address, &secrets)?;
    // Only the address in the environment may hold a password.
    let with_password = given
        .filter(|_| !found.has_password_in_address())
        .and_then(|given| Settings::parse(&given, &secrets).ok())
        .filter(|given| given.address() == found.address());
    Ok(with_password.unwrap_or(found))
}

impl Backend for Postgres {
    fn board(&self, home: &Home, name: Name, options: BoardOptions) -> Board {
        let options = BoardOptions {
            database: Some(self.database.clone()),
            ..options
        };
        Board::new(home, name, options)
    }

    fn mail(&self, home: &Home, team: &Name, options: MailOptions) -> Mailbox {
        Mailbox::on(&self.database, home, team, options)
    }

    /// The repository is called by the address of its remote `origin`, which is the same on every
    /// machine. A repository without such a remote is on one machine alone, and is called after its
    /// place there.
    fn teams(&self, home: &Home, repository: Option<&Repository>, options: TeamOptions) -> Teams {
        let common_dir = |here: &Repository| here.common_dir.to_str().map(str::to_owned);
        let machine =
            Machine::of(home).inspect_err(|error| tracing::warn!(%error, "this machine has no id"));
        let options = TeamOptions {
            repository: repository.and_then(|here| here.address().or_else(|| common_dir(here))),
            machine: machine.ok(),
            beside: Some(Arc::new(self.clone())),
            ..options
        };
        Teams::on(&self.database, home, options)
    }

    fn place(&self) -> Option<&SharedPlace> {
        Some(&self.place)
    }

    fn with_place(&self, place: SharedPlace) -> Arc<dyn Backend> {
        let database = self.database.clone();
        Arc::new(Self { database, place })
    }

    fn with_patience(&self, patience: Duration) -> Arc<dyn Backend> {
        let settings = self.database.settings().clone();
        Arc::new(Self {
            database: Database::new(settings.with_patience(patience)),
            place: self.place.clone(),
        })
    }

    fn lock(&self, name: &str, term: Duration) -> Result<Option<Turn>, BoardError> {
        let claimant = Claimant {
            who: &this_process(),
            holder: Uuid::new_v4(),
            labels: &[],
        };
        let taken = database::Turn::take(&self.database, name, claimant, term)?;
        Ok(taken.ok().map(turn))
    }

    fn join_as_worker(
        &self,
        home: &Home,
        list: &str,
        name: &Name,
        labels: &BTreeSet<String>,
    ) -> Result<Turn, Failure> {
        let machine = format!("{} {}", machine_id(), home.path().display());
        let labels: Vec<String> = labels.iter().cloned().collect();
        let claimant = Claimant {
            who: &this_process(),
            holder: Uuid::new_v5(&Uuid::NAMESPACE_URL, machine.as_bytes()),
            labels: &labels,
        };
        let lock = format!("{}{}", worker_locks(list), name.as_str().to_lowercase());
        let taken = database::Turn::take(&self.database, &lock, claimant, self.place.lease())?;
        taken.map(turn).map_err(|Taken { who, left, .. }| {
            let message = format!("a worker named {name} works on list {list} already: {who}");
            Failure::refused("worker_exists", message).with_hint(format!(
                "choose another name with --name; if that worker is gone, its name is free in {} s",
                left.as_secs() + 1
            ))
        })
    }

    fn workers(&self, list: &str) -> Result<Vec<KnownWorker>, BoardError> {
        let prefix = worker_locks(list);
        let locks = database::turns(&self.database, &prefix)?;
        let known = |(lock, taken): (String, Taken)| KnownWorker {
            name: lock.strip_prefix(&prefix).unwrap_or_default().to_owned(),
            labels: BTreeSet::from_iter(taken.labels),
        };
        Ok(locks.into_iter().map(known).collect())
    }

    fn findings(&self, findings: &mut Vec<Finding>) -> bool {
        server::look(&self.database, findings)
    }

    fn check_argument(&self, address: &str) -> Result<(), Failure> {
        if !Settings::holds_password(address) {
            return Ok(());
        }
        let message = "everybody on this machine can read the password in --board";
        Err(Failure::usage("password_in_argument", message).with_hint(
            "set $CCB_BOARD to the address with the password, or leave the password out and use \
                 $PGPASSWORD or ~/.pgpass",
        ))
    }
}

impl Beside for Postgres {
    fn inboxes_being_read(&self, team: &Name) -> Result<Vec<String>, TeamError> {
        Ok(mailbox::inboxes_being_read(&self.database, team)?)
    }

    fn delete_mail(&self, team: &Name) -> Result<(), TeamError> {
        Ok(mailbox::delete_all(&self.database, team)?)
    }

    fn list_alike(&self, team: &Name) -> Result<Option<String>, TeamError> {
        Ok(taskboard::list_alike(&self.database, team)?)
    }
}

impl Held for database::Turn {
    fn let_run_out(self: Box<Self>) {
        Self::let_run_out(*self);
    }
}

fn turn(held: database::Turn) -> Turn {
    Turn(Some(Box::new(held)))
}

/// This process, for people on other machines.
fn this_process() -> String {
    format!("{} (process {})", host_name(), std::process::id())
}

/// The beginning of the names of the locks that the workers of a list hold.
fn worker_locks(list: &str) -> String {
    format!("{list} worker ")
}

/// The id that tells this machine from others of the same name.
fn machine_id() -> String {
    let read = |path| std::fs::read_to_string(path).ok();
    let id = read("/etc/machine-id").filter(|id| !id.trim().is_empty());
    id.map_or_else(host_name, |id| id.trim().to_owned())
}
