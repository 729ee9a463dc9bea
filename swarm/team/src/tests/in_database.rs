//! Rosters in a database of a throw-away server.

#![expect(clippy::duplicate_mod, reason = "both places keep the same promises")]

/// Creating, joining, leaving.
#[path = "changes.rs"]
mod changes;
/// Members that are alive, and deleting.
#[path = "ending.rs"]
mod ending;
/// Rosters other tools, and other versions, wrote.
#[path = "foreign.rs"]
mod foreign;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock};

use database::throw_away::Server;
use database::{COMMON, Database, Type, migrate};
use serde_json::Value;
use store::home::create_private_dir;
use tempfile::TempDir;

use super::*;

struct Scene {
    dir: TempDir,
    database: Database,
    readers: Arc<Readers>,
}

/// Inboxes that have a reader.
#[derive(Debug, Default)]
struct Readers(Mutex<Vec<String>>);

impl Beside for Readers {
    fn inboxes_being_read(&self, _: &Name) -> Result<Vec<String>, TeamError> {
        Ok(self.0.lock().unwrap().clone())
    }

    fn delete_mail(&self, _: &Name) -> Result<(), TeamError> {
        self.0.lock().unwrap().clear();
        Ok(())
    }

    fn list_alike(&self, _: &Name) -> Result<Option<String>, TeamError> {
        Ok(None)
    }
}

impl Scene {
    fn new() -> Self {
        static SERVER: OnceLock<Option<Server>> = OnceLock::new();
        static SCHEMAS: AtomicU64 = AtomicU64::new(0);
        let server = SERVER.get_or_init(Server::start).as_ref();
        let server = server.expect("PostgreSQL is installed; tests/postgres/run.sh looks first");
        let schema = format!("s{}", SCHEMAS.fetch_add(1, Ordering::SeqCst));
        let database = Database::new(server.settings(&schema));
        migrate(&database, &[&COMMON, &MIGRATIONS], false).unwrap();
        let stopped = format!(
            "CREATE OR REPLACE FUNCTION @.teams_now() RETURNS bigint LANGUAGE sql VOLATILE \
             AS 'SELECT {NOW}::bigint'"
        );
        database.read(|session| session.batch(&stopped)).unwrap();
        Self {
            dir: tempfile::tempdir().unwrap(),
            database,
            readers: Arc::default(),
        }
    }

    fn home(&self) -> Home {
        Home::new(self.dir.path().to_owned()).unwrap()
    }

    fn teams_in(&self, repository: Option<&str>) -> Teams {
        let options = TeamOptions {
            repository: repository.map(str::to_owned),
            beside: Some(Arc::clone(&self.readers) as Arc<dyn Beside>),
            durability: Durability::Relaxed,
            ..TeamOptions::default()
        };
        Teams::on(&self.database, &self.home(), options)
    }

    fn teams(&self) -> Teams {
        self.teams_in(None)
    }

    fn team_in(&self, name: &str, repository: Option<&str>) -> Team {
        self.teams_in(repository)
            .team(Name::new("team", name).unwrap())
    }

    fn team(&self) -> Team {
        self.team_in("fixers", None)
    }

    fn created(&self) -> Team {
        let team = self.team();
        team.create(&NewTeam::default()).unwrap();
        team
    }

    /// A team whose roster another tool wrote.
    fn foreign(&self, config: &str) -> Team {
        let insert = "INSERT INTO @.teams (id, name, roster) VALUES ('fixers', 'fixers', $1)";
        let params = [(&config as _, Type::TEXT)];
        let inserted = self
            .database
            .read(|session| session.execute(insert, &params));
        assert_eq!(inserted.unwrap(), 1);
        self.team()
    }

    /// Reads the inbox of `agent` from now on.
    fn reader(&self, _: &Team, agent: &str) -> Arc<Readers> {
        self.readers.0.lock().unwrap().push(agent.to_owned());
        Arc::clone(&self.readers)
    }
}

fn bytes(team: &Team) -> Vec<u8> {
    let backend: &dyn std::any::Any = &*team.backend;
    let rows::Rows(database) = backend.downcast_ref().unwrap();
    let select = "SELECT roster FROM @.teams WHERE id = $1";
    let id = team.name.as_str().to_ascii_lowercase();
    let text: Result<String, database::DatabaseError> = database.read(|session| {
        let row = session.query_one(select, &[(&id, Type::TEXT)])?;
        session.column(&row, "roster")
    });
    text.unwrap().into_bytes()
}

fn on_disk(team: &Team) -> Value {
    serde_json::from_slice(&bytes(team)).unwrap()
}
