//! The server, and the boards of the workers.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::process::Command;
use std::time::Duration;

use database::throw_away::Server;
use database::{COMMON, Database, Session, Type, migrate};
use store::home::Home;
use store::name::Name;
use taskboard::{Board, BoardOptions, MIGRATIONS, NewTask};

use super::worker::{Report, What};
use crate::{Failure, fleet};

/// Above this a board is filled once for all numbers of workers: no run empties it.
const LARGE: u64 = 100_000;

/// The board on which workers claim once before it counts, so that the plans of their connections
/// are made.
pub(super) const WARM: &str = "warm";

pub(super) struct Site {
    pub(super) server: Server,
    database: Database,
    dir: tempfile::TempDir,
    /// The filled boards, by their purpose.
    filled: RefCell<BTreeMap<(bool, u64), String>>,
    count: RefCell<u32>,
}

impl Site {
    pub(super) fn start() -> Result<Option<Self>, Failure> {
        let options = [
            "fsync=on",
            "synchronous_commit=on",
            "max_connections=300",
            "shared_buffers=512MB",
            "max_wal_size=4GB",
        ];
        let Some(server) = Server::start_with(&options) else {
            return Ok(None);
        };
        let settings = server.settings("ccb");
        let database = Database::new(settings.with_patience(Duration::from_secs(300)));
        migrate(&database, &[&COMMON, &MIGRATIONS], false)?;
        let site = Self {
            server,
            database,
            dir: tempfile::tempdir()?,
            filled: RefCell::default(),
            count: RefCell::default(),
        };
        site.fill_list(WARM, 2_000)?;
        Ok(Some(site))
    }

    pub(super) fn version(&self) -> Result<String, Failure> {
        let about = self.database.about()?;
        Ok(format!(
            "PostgreSQL {} with fsync and synchronous_commit on, shared_buffers 512 MB, in the \
             directory for temporary files, on the machine of the workers.",
            about.version
        ))
    }

    pub(super) fn url(&self) -> String {
        self.server.url("ccb")
    }

    pub(super) fn scratch(&self) -> Result<tempfile::TempDir, Failure> {
        Ok(tempfile::Builder::new().tempdir_in(self.dir.path())?)
    }

    pub(super) fn board(&self, list: &str) -> Result<Board, Failure> {
        board(&self.database, self.dir.path(), list)
    }

    /// Empties everything.
    pub(super) fn clear(&self) -> Result<(), Failure> {
        self.filled.borrow_mut().clear();
        let empty = "TRUNCATE @.tasks, @.changes, @.operations, @.lists; \
            DROP TABLE IF EXISTS @.bare";
        self.database.read(|session| session.batch(empty))?;
        self.fill_list(WARM, 2_000)
    }

    /// Lets `count` workers claim for `time` from a board of `tasks` tasks.
    pub(super) fn race(
        &self,
        what: What,
        tasks: u64,
        count: u32,
        time: Duration,
    ) -> Result<Vec<Report>, Failure> {
        let list = self.filled(what, tasks)?;
        // Pending writes of earlier runs are not this one's.
        self.database.read(|session| session.batch("CHECKPOINT"))?;
        // More processes than that would measure how the machine starts them.
        let processes = count.min(32);
        let command = |n: u32| {
            let mut command = Command::new(std::env::current_exe()?);
            let threads = (count / processes).to_string();
            let millis = time.as_millis().to_string();
            let first = (n * (count / processes)).to_string();
            command.args(["postgres-worker", "--url", &self.url(), "--list", &list]);
            command.args(["--what", what.word(), "--threads", &threads]);
            command.args(["--first", &first, "--millis", &millis]);
            command.arg("--home").arg(self.dir.path());
            Ok(command)
        };
        let commands: Result<Vec<Command>, Failure> = (0..processes).map(command).collect();
        fleet::race(commands?, time)
    }

    /// A board with this many ready tasks, or the bare table with this many rows.
    fn filled(&self, what: What, tasks: u64) -> Result<String, Failure> {
        let key = (what == What::Bare, tasks);
        if tasks >= LARGE
            && let Some(list) = self.filled.borrow().get(&key)
        {
            return Ok(list.clone());
        }
        *self.count.borrow_mut() += 1;
        let list = format!("list-{}", self.count.borrow());
        let count = i64::try_from(tasks)?;
        if what == What::Bare {
            self.fill_bare(count)?;
        } else {
            self.fill_list(&list, count)?;
        }
        self.filled.borrow_mut().insert(key, list.clone());
        Ok(list)
    }

    fn fill_bare(&self, count: i64) -> Result<(), Failure> {
        let make = "DROP TABLE IF EXISTS @.bare; \
            CREATE TABLE @.bare (id bigint PRIMARY KEY, done boolean NOT NULL, owner text, body text); \
            CREATE INDEX ON @.bare (id) WHERE NOT done; ALTER TABLE @.bare SET \
            (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000)";
        self.database.read(|session| session.batch(make))?;
        let fill = "INSERT INTO @.bare SELECT n, false, NULL, '{\"subject\":\"task ' || n || \
            '\",\"description\":\"\",\"metadata\":{}}' FROM generate_series(1, $1) n";
        let insert = |session: &Session<'_>| session.execute(fill, &[(&count, Type::INT8)]);
        self.database.read(insert)?;
        Ok(self
            .database
            .read(|session| session.batch("VACUUM ANALYZE @.bare"))?)
    }

    /// Fills it without history, and not through the board: that would take longer than the
    /// measurement.
    fn fill_list(&self, list: &str, count: i64) -> Result<(), Failure> {
        let task = NewTask {
            subject: "task 1".into(),
            ..NewTask::default()
        };
        self.board(list)?.create(&[task], None)?;
        let fill = "INSERT INTO @.tasks (list, id, status, priority, chain, open_blockers, parked, \
            internal, checks, blocked_by, blocks, lease_token, body) \
            SELECT t.list, n, 0, 0, 1, 0, false, false, false, '{}', '{}', 0, \
            replace(replace(t.body, 'task 1', 'task ' || n), '\"id\":\"1\"', '\"id\":\"' || n || '\"') FROM @.tasks t, generate_series(2, $2) n \
            WHERE t.list = (SELECT id FROM @.lists WHERE name = $1) AND t.id = 1";
        self.database
            .read(|session| session.execute(fill, &[(&list, Type::TEXT), (&count, Type::INT8)]))?;
        Ok(self
            .database
            .read(|session| session.batch("VACUUM ANALYZE @.tasks"))?)
    }
}

/// A list in a database.
pub(super) fn board(
    database: &Database,
    home: &std::path::Path,
    list: &str,
) -> Result<Board, Failure> {
    let options = BoardOptions {
        database: Some(database.clone()),
        ..BoardOptions::default()
    };
    let home = Home::new(home.to_owned())?;
    Ok(Board::new(&home, Name::new("list", list)?, options))
}
