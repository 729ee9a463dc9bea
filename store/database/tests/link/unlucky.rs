use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use database::throw_away::Server;
use database::{COMMON, Component, Database, DatabaseError, Operation, Secrets, Settings, migrate};

const FIRST: &str = include_str!("../../migrations/001.sql");
const LOCK: &str = "SELECT pg_advisory_xact_lock(4711); CREATE TABLE @.second (n int)";

/// Forwards a link, with a delay for every piece of as many milliseconds as the second value says.
fn slow_link(server: u16) -> (u16, Arc<AtomicU64>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let late = Arc::new(AtomicU64::new(0));
    let delay = Arc::clone(&late);
    std::thread::spawn(move || {
        for client in listener.incoming().map_while(Result::ok) {
            let Ok(server) = TcpStream::connect(("127.0.0.1", server)) else {
                continue;
            };
            for (from, to) in [(&client, &server), (&server, &client)] {
                let (mut from, mut to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
                let delay = Arc::clone(&delay);
                std::thread::spawn(move || {
                    let mut buffer = vec![0; 1 << 16];
                    while let Ok(count @ 1..) = from.read(&mut buffer) {
                        std::thread::sleep(Duration::from_millis(delay.load(Ordering::SeqCst)));
                        if to.write_all(&buffer[..count]).is_err() {
                            break;
                        }
                    }
                });
            }
        }
    });
    (port, late)
}

fn nothing(database: &Database, operation: Operation) -> Result<(), DatabaseError> {
    database.change(operation, |_| Ok::<(), DatabaseError>(()))
}

fn count(database: &Database) -> i64 {
    let counted = database.read(|session| {
        let row = session.query_one("SELECT count(*) AS n FROM @.operations", &[])?;
        session.column(&row, "n")
    });
    counted.unwrap_or_else(|error: DatabaseError| panic!("{error}"))
}

#[test]
fn a_slow_link_is_waited_for_and_one_that_is_too_slow_is_told() {
    let Some(server) = Server::start() else {
        return;
    };
    let direct = Database::new(server.settings("ccb"));
    migrate(&direct, &[&COMMON], false).unwrap();
    let (port, late) = slow_link(server.port());
    let settings = Settings::parse(&server.url_at(port, "ccb"), &Secrets::default()).unwrap();
    let patient = Database::new(settings.clone());
    late.store(60, Ordering::SeqCst);
    nothing(&patient, Operation::new()).unwrap();
    assert_eq!(count(&direct), 1);
    let hasty = Database::new(settings.with_patience(Duration::from_millis(700)));
    late.store(3_000, Ordering::SeqCst);
    let operation = Operation::new();
    let error = nothing(&hasty, operation).unwrap_err();
    assert!(
        matches!(
            error,
            DatabaseError::TimedOut { .. }
                | DatabaseError::Unreachable { .. }
                | DatabaseError::Unknown { .. }
        ),
        "{error}"
    );
    // Made or not: the same operation again makes it once.
    late.store(0, Ordering::SeqCst);
    nothing(&patient, operation).unwrap();
    assert_eq!(count(&direct), 2);
}

#[test]
fn a_full_server_is_waited_for() {
    let full = ["max_connections=4", "superuser_reserved_connections=0"];
    let Some(server) = Server::start_with(&full) else {
        return;
    };
    let database = Database::new(server.settings("ccb"));
    migrate(&database, &[&COMMON], false).unwrap();
    let hold: Vec<Database> = (0..3)
        .map(|_| Database::new(server.settings("ccb")))
        .collect();
    for one in &hold {
        one.about().unwrap();
    }
    let quick = server
        .settings("ccb")
        .with_patience(Duration::from_millis(300));
    let error = Database::new(quick).about().unwrap_err();
    assert!(
        matches!(error, DatabaseError::TooManyConnections { .. }),
        "{error}"
    );
    let waiting = Database::new(server.settings("ccb"));
    let waiter = std::thread::spawn(move || nothing(&waiting, Operation::new()));
    drop(hold);
    waiter.join().unwrap().unwrap();
    assert_eq!(count(&database), 1);
}

/// The connection that waits for lock 4711 is the migration; ends it, as a crash would.
fn cut_the_migration(database: &Database) {
    let cut = "SELECT count(pg_terminate_backend(pid)) AS n FROM pg_locks \
        WHERE locktype = 'advisory' AND objid = 4711 AND NOT granted";
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        let ended: Result<i64, DatabaseError> = database.read(|session| {
            let row = session.query_one(cut, &[])?;
            session.column(&row, "n")
        });
        if ended.unwrap() > 0 {
            return;
        }
        assert!(Instant::now() < deadline, "no connection migrates");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn a_migration_that_is_cut_leaves_nothing_and_is_done_by_the_next_try() {
    let Some(server) = Server::start() else {
        return;
    };
    let database = Database::new(server.settings("ccb"));
    migrate(&database, &[&COMMON], false).unwrap();
    let two = Component {
        name: "database",
        migrations: &[FIRST, LOCK],
    };
    let (hold, release) = std::sync::mpsc::channel::<()>();
    let holder = Database::new(server.settings("ccb"));
    let (held, is_held) = std::sync::mpsc::channel();
    let holding = std::thread::spawn(move || {
        let kept: Result<(), DatabaseError> = holder.read(|session| {
            session.query("SELECT pg_advisory_lock(4711)", &[])?;
            held.send(()).ok();
            release.recv().ok();
            session
                .query("SELECT pg_advisory_unlock(4711)", &[])
                .map(drop)
        });
        kept.unwrap();
    });
    is_held.recv().unwrap();
    let migrating = Database::new(server.settings("ccb"));
    let migration = std::thread::spawn(move || migrate(&migrating, &[&two], false));
    cut_the_migration(&database);
    // In the middle of it nothing is visible, and the program that knows less still works.
    assert_eq!(database.versions().unwrap(), [("database".to_owned(), 1)]);
    nothing(&database, Operation::new()).unwrap();
    drop(hold);
    holding.join().unwrap();
    assert_eq!(migration.join().unwrap().unwrap(), ["database 2"]);
    assert_eq!(database.versions().unwrap(), [("database".to_owned(), 2)]);
}

/// The primary dies under load, and its standby becomes the primary.
#[test]
fn after_a_fail_over_every_change_is_there_once() {
    const WRITERS: i64 = 4;
    const BEFORE: i64 = 20;
    const AFTER: i64 = 20;
    let Some(mut primary) = Server::start() else {
        return;
    };
    let standby = primary.standby();
    let address = format!(
        "postgres://ccb@127.0.0.1:{},127.0.0.1:{}/postgres?schema=ccb&sslmode=disable&patience=60",
        primary.port(),
        standby.port()
    );
    let settings = Settings::parse(&address, &Secrets::default()).unwrap();
    let database = Database::new(settings.clone());
    migrate(&database, &[&COMMON], false).unwrap();
    let (done, heard) = std::sync::mpsc::channel();
    let writers: Vec<_> = (0..WRITERS)
        .map(|_| {
            let (database, done) = (Database::new(settings.clone()), done.clone());
            std::thread::spawn(move || {
                for _ in 0..BEFORE + AFTER {
                    nothing(&database, Operation::new()).unwrap();
                    done.send(()).unwrap();
                }
            })
        })
        .collect();
    for _ in 0..WRITERS * BEFORE {
        heard.recv_timeout(Duration::from_secs(60)).unwrap();
    }
    primary.kill();
    standby.promote();
    for writer in writers {
        writer.join().unwrap();
    }
    assert_eq!(count(&database), WRITERS * (BEFORE + AFTER));
    assert!(!database.about().unwrap().read_only);
}
