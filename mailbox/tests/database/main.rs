//! The promises of mail on PostgreSQL, also with a broken link or server.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test stops where something is wrong"
)]

/// Broken links, servers that restart, readers that are taken for dead.
mod faults;
#[path = "../contract/suite/mod.rs"]
mod mail_suite;
/// The same promises behind PgBouncer.
mod pooled;
/// Cuts links.
mod proxy;

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use database::throw_away::Server;
use database::{COMMON, Database, Settings, migrate};
use mailbox::{Limits, MIGRATIONS, MailOptions, Mailbox};
use store::home::Home;
use store::name::Name;

use mail_suite::Team;

/// One server for all tests that leave it as it is; each has its own schema. It ends with the last
/// of them, so that nothing is left running.
///
/// `None` if PostgreSQL is not installed; the test prints that.
fn server() -> Option<Arc<Server>> {
    static SERVER: Mutex<Weak<Server>> = Mutex::new(Weak::new());
    let mut shared = SERVER.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(server) = shared.upgrade() {
        return Some(server);
    }
    let server = Arc::new(Server::start()?);
    *shared = Arc::downgrade(&server);
    Some(server)
}

/// A schema with the tables of mail; `database` goes straight to the server.
struct Schema {
    name: String,
    database: Database,
}

impl Schema {
    fn new(server: &Server) -> Self {
        let name = format!("mail_{}", uuid::Uuid::new_v4().simple());
        let database = Database::new(server.settings(&name));
        migrate(&database, &[&COMMON, &MIGRATIONS], false).unwrap();
        Self { name, database }
    }

    /// Lets time pass on the only clock that counts.
    fn pass(&self, ms: i64) {
        let clock = format!(
            "CREATE OR REPLACE FUNCTION @.mail_now() RETURNS bigint LANGUAGE sql VOLATILE AS \
             $$ SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint + {ms} $$"
        );
        let done: Result<(), database::DatabaseError> =
            self.database.read(|session| session.batch(&clock));
        done.unwrap();
    }

    fn now(&self) -> i64 {
        let now: Result<i64, database::DatabaseError> = self.database.read(|session| {
            let row = session.query_one("SELECT @.mail_now() AS now", &[])?;
            session.column(&row, "now")
        });
        now.unwrap()
    }
}

/// The mail of the team `team`, as a process sees it that has just started.
fn open(database: &Database, options: MailOptions) -> Mailbox {
    // The directory is not used.
    let home = Home::new("/nonexistent".into()).unwrap();
    let options = MailOptions {
        reader_timeout: Duration::from_millis(50),
        ..options
    };
    Mailbox::on(
        database,
        &home,
        &Name::new("team", "team").unwrap(),
        options,
    )
}

fn team() -> Option<Team> {
    let server = server()?;
    let at = Arc::clone(&server);
    Some(team_on(&server, move |schema| at.settings(schema)))
}

/// A team whose mail is in a schema of its own, which every member reaches as `settings` says.
fn team_on(
    server: &Arc<Server>,
    settings: impl Fn(&str) -> Settings + Send + Sync + 'static,
) -> Team {
    let schema = Arc::new(Schema::new(server));
    let (read, moved) = (Arc::clone(&schema), Arc::clone(&schema));
    let passed = AtomicI64::new(0);
    Team {
        limits: Limits::default(),
        open_with: Box::new(move |options| {
            let database = Database::new(settings(&schema.name));
            open(&database, options)
        }),
        now: Box::new(move || read.now()),
        pass: Box::new(move |ms| {
            let passed = passed.fetch_add(ms, Ordering::SeqCst);
            moved.pass(passed + ms);
        }),
    }
}

mail_suite::every_promise!(match team() {
    Some(team) => team,
    None => return,
});
