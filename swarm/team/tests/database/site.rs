//! A throw-away server, and machines that keep their rosters in it.

use std::sync::{Arc, Mutex};

use database::throw_away::Server;
use database::{COMMON, Database, Secrets, Settings, migrate};
use store::home::Home;
use store::machine::Machine;
use store::name::Name;
use team::{Beside, MIGRATIONS, NewMember, Team, TeamError, TeamOptions, Teams};
use tempfile::TempDir;

/// A server with a prepared schema; `None` where PostgreSQL is not installed.
pub(crate) struct Site {
    pub(crate) server: Server,
    /// Inboxes that have a reader, in any team.
    pub(crate) readers: Arc<Mutex<Vec<String>>>,
}

#[derive(Debug)]
struct Readers(Arc<Mutex<Vec<String>>>);

impl Beside for Readers {
    fn inboxes_being_read(&self, _: &Name) -> Result<Vec<String>, TeamError> {
        Ok(self.0.lock().unwrap().clone())
    }

    fn delete_mail(&self, _: &Name) -> Result<(), TeamError> {
        Ok(())
    }

    fn list_alike(&self, _: &Name) -> Result<Option<String>, TeamError> {
        Ok(None)
    }
}

/// A home, and its way to the database.
pub(crate) struct Host {
    dir: TempDir,
    database: Database,
    pub(crate) options: TeamOptions,
}

impl Site {
    pub(crate) fn new() -> Option<Self> {
        let server = Server::start()?;
        let database = Database::new(server.settings("ccb"));
        migrate(&database, &[&COMMON, &MIGRATIONS], false).unwrap();
        let readers = Arc::default();
        Some(Self { server, readers })
    }

    pub(crate) fn host(&self) -> Host {
        self.host_through(self.server.port())
    }

    /// A machine whose way to the database is another port.
    pub(crate) fn host_through(&self, port: u16) -> Host {
        let url = self.server.url_at(port, "ccb");
        let database = Database::new(Settings::parse(&url, &Secrets::default()).unwrap());
        let dir = tempfile::tempdir().unwrap();
        let machine = Machine::of(&Home::new(dir.path().to_owned()).unwrap()).unwrap();
        let options = TeamOptions {
            machine: Some(machine),
            beside: Some(Arc::new(Readers(Arc::clone(&self.readers)))),
            ..TeamOptions::default()
        };
        Host {
            dir,
            database,
            options,
        }
    }
}

impl Host {
    pub(crate) fn home(&self) -> Home {
        Home::new(self.dir.path().to_owned()).unwrap()
    }

    pub(crate) fn team(&self, name: &str) -> Team {
        self.teams().team(Name::new("team", name).unwrap())
    }

    pub(crate) fn teams(&self) -> Teams {
        Teams::on(&self.database, &self.home(), self.options.clone())
    }
}

pub(crate) fn agent(name: &str) -> NewMember {
    NewMember::new(Name::new("agent", name).unwrap())
}

pub(crate) fn names(team: &Team) -> Vec<String> {
    let members = team.roster().unwrap().members;
    members.into_iter().map(|member| member.name).collect()
}
