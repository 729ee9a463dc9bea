//! A throw-away server, and boards in it.

use database::throw_away::Server;
use database::{COMMON, Database, Secrets, Settings, migrate};
use store::home::Home;
use store::name::Name;
use taskboard::{Board, BoardOptions, MIGRATIONS, NewTask, TaskId};

/// A server with a prepared schema; `None` where PostgreSQL is not installed.
pub(crate) struct Site {
    pub(crate) server: Server,
    pub(crate) database: Database,
    dir: tempfile::TempDir,
}

impl Site {
    pub(crate) fn new() -> Option<Self> {
        Self::with(&[])
    }

    pub(crate) fn with(options: &[&str]) -> Option<Self> {
        let site = Self::start(options)?;
        migrate(&site.database, &[&COMMON, &MIGRATIONS], false).unwrap();
        Some(site)
    }

    /// Without a schema.
    pub(crate) fn bare() -> Option<Self> {
        Self::start(&[])
    }

    fn start(options: &[&str]) -> Option<Self> {
        let server = Server::start_with(options)?;
        let database = Database::new(server.settings("ccb"));
        let dir = tempfile::tempdir().unwrap();
        Some(Self {
            server,
            database,
            dir,
        })
    }

    pub(crate) fn board(&self, list: &str) -> Board {
        self.board_on(&self.database, list)
    }

    pub(crate) fn board_on(&self, database: &Database, list: &str) -> Board {
        let home = Home::new(self.dir.path().to_owned()).unwrap();
        let options = BoardOptions {
            database: Some(database.clone()),
            ..BoardOptions::default()
        };
        Board::new(&home, Name::new("list", list).unwrap(), options)
    }

    /// Puts the board's clock so many milliseconds ahead of the server's.
    pub(crate) fn set_clock(&self, ahead_ms: i64) {
        let clock = format!(
            "CREATE OR REPLACE FUNCTION @.clock_ms() RETURNS bigint LANGUAGE sql VOLATILE AS \
             'SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint + {ahead_ms}'"
        );
        self.database.read(|session| session.batch(&clock)).unwrap();
    }

    /// The same database through another port.
    pub(crate) fn through(&self, port: u16) -> Database {
        let url = self.server.url_at(port, "ccb");
        Database::new(Settings::parse(&url, &Secrets::default()).unwrap())
    }
}

pub(crate) fn new(subject: &str) -> NewTask {
    NewTask {
        subject: subject.into(),
        ..NewTask::default()
    }
}

pub(crate) fn ids(board: &Board) -> Vec<TaskId> {
    let snapshot = board.snapshot().unwrap();
    snapshot.tasks().map(|task| task.id).collect()
}

/// Every number of the history, with what was done.
pub(crate) fn ops(board: &Board) -> Vec<String> {
    let mut watch = board.watch(Some(0)).unwrap();
    let mut ops = Vec::new();
    loop {
        let changes = watch.poll().unwrap();
        if changes.is_empty() {
            return ops;
        }
        for change in changes {
            assert_eq!(change.seq, ops.len() as u64 + 1, "numbers without gaps");
            ops.push(format!("{} {}", change.op, change.id));
        }
    }
}
