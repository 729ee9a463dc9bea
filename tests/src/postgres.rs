//! Homes whose board is in a database of a throw-away server.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use database::throw_away::Server;
use database::{COMMON, Database, DatabaseError, Type, migrate};
use serde_json::Value;
use store::home::Home;
use store::name::Name;
use taskboard::{Board, BoardOptions};

/// In front of the path of a `ccb`: the board is in a database.
pub const MARK: &str = "in-a-database:";

/// A schema of its own in the one server of this process.
#[derive(Debug)]
pub(crate) struct InDatabase {
    pub(crate) url: String,
    pub(crate) database: Database,
}

impl InDatabase {
    pub(crate) fn new() -> Self {
        static SERVER: OnceLock<Option<Server>> = OnceLock::new();
        static SCHEMAS: AtomicU64 = AtomicU64::new(0);
        let server = SERVER.get_or_init(Server::start).as_ref();
        let server = server.expect("PostgreSQL is installed; tests/postgres/run.sh looks first");
        let schema = format!("s{}", SCHEMAS.fetch_add(1, Ordering::SeqCst));
        let database = Database::new(server.settings(&schema));
        let all = [
            &COMMON,
            &taskboard::MIGRATIONS,
            &mailbox::MIGRATIONS,
            &team::MIGRATIONS,
        ];
        migrate(&database, &all, false).expect("a schema");
        Self {
            url: server.url(&schema),
            database,
        }
    }

    /// The number of connections of this name that the server still works for.
    pub(crate) fn connections(&self, name: &str) -> i64 {
        let sql = "SELECT count(*) AS number FROM pg_stat_activity WHERE application_name = $1";
        let counted = self.database.read(|session| {
            let row = session.query_one(sql, &[(&name, Type::TEXT)])?;
            session.column::<i64>(&row, "number")
        });
        counted.expect("the server's connections")
    }

    pub(crate) fn expire_lease(&self, id: u64) {
        let sql = format!("UPDATE @.tasks SET lease_until = 1 WHERE id = {id}");
        self.database
            .read(|session| session.batch(&sql))
            .expect("a lease");
    }

    /// A team's roster.
    pub(crate) fn roster(&self, team: &str) -> Option<Value> {
        let all = self.rosters().into_iter();
        let (_, text) = all.into_iter().find(|(name, _)| name == team)?;
        Some(serde_json::from_str(&text).expect("JSON"))
    }

    /// All rosters, by name.
    pub(crate) fn rosters(&self) -> Vec<(String, String)> {
        let rows = self.database.read(|session| {
            let rows = session.query("SELECT name, roster FROM @.teams ORDER BY name", &[])?;
            let pair = |row| Ok((session.column(row, "name")?, session.column(row, "roster")?));
            rows.iter().map(pair).collect::<Result<_, DatabaseError>>()
        });
        rows.expect("rosters")
    }

    pub(crate) fn write_roster(&self, team: &str, roster: &Value) {
        let write = "INSERT INTO @.teams (id, name, roster) VALUES (lower($1), $1, $2) \
             ON CONFLICT (id) DO UPDATE SET roster = $2, version = nextval('@.team_versions')";
        let text = roster.to_string();
        let params = [(&team as _, Type::TEXT), (&text as _, Type::TEXT)];
        let written = self
            .database
            .read(|session| session.execute(write, &params));
        written.expect("a roster");
    }

    /// The tasks of a list, as their files would be.
    pub(crate) fn tasks(&self, home: &std::path::Path, list: &str) -> Vec<Value> {
        let home = Home::new(home.to_owned()).expect("a home");
        let options = BoardOptions {
            database: Some(self.database.clone()),
            ..BoardOptions::default()
        };
        let board = Board::new(&home, Name::new("list", list).expect("a name"), options);
        let snapshot = board.snapshot().expect("a board");
        snapshot.tasks().map(|task| task.to_json()).collect()
    }
}
