use database::throw_away::Server;
use database::{COMMON, Component, Database, DatabaseError, Operation, Settings, migrate};

const FIRST: &str = include_str!("../../migrations/001.sql");
const MORE: &str = "CREATE TABLE @.more (n int)";

/// A server and a migrated schema; `None` where PostgreSQL is not installed.
fn prepared() -> Option<(Server, Database)> {
    let server = Server::start()?;
    let database = Database::new(server.settings("ccb"));
    assert_eq!(
        migrate(&database, &[&COMMON], true).unwrap(),
        ["database 1"]
    );
    assert_eq!(
        migrate(&database, &[&COMMON], false).unwrap(),
        ["database 1"]
    );
    assert!(migrate(&database, &[&COMMON], false).unwrap().is_empty());
    Some((server, database))
}

fn counted(database: &Database) -> Result<i64, DatabaseError> {
    database.read(|session| {
        let row = session.query_one("SELECT count(*) AS n FROM @.operations", &[])?;
        session.column(&row, "n")
    })
}

#[test]
fn a_change_is_made_once_and_its_answer_is_kept() {
    let Some((mut server, database)) = prepared() else {
        return;
    };
    database.require(&COMMON).unwrap();
    let operation = Operation::new();
    let change = || database.change(operation, |_| Ok::<(), DatabaseError>(()));
    change().unwrap();
    // The same operation again finds that it was made.
    change().unwrap();
    assert_eq!(counted(&database).unwrap(), 1);
    // Connections that the server has closed are replaced.
    server.kill();
    let waiting = std::thread::spawn({
        let database = database.clone();
        move || database.change(Operation::new(), |_| Ok::<(), DatabaseError>(()))
    });
    std::thread::sleep(std::time::Duration::from_millis(200));
    server.launch();
    waiting.join().unwrap().unwrap();
    assert_eq!(counted(&database).unwrap(), 2);
}

#[test]
fn a_schema_of_another_version_is_refused_and_half_a_migration_leaves_nothing() {
    let Some((server, database)) = prepared() else {
        return;
    };
    let newer = Component {
        name: "database",
        migrations: &[FIRST, MORE],
    };
    let error = database.require(&newer).unwrap_err();
    assert!(
        matches!(
            error,
            DatabaseError::OldSchema {
                found: 1,
                needed: 2,
                ..
            }
        ),
        "{error}"
    );
    let broken = Component {
        name: "database",
        migrations: &[FIRST, MORE, "SELECT nonsense"],
    };
    migrate(&database, &[&broken], false).unwrap_err();
    assert_eq!(database.versions().unwrap(), [("database".to_owned(), 1)]);
    migrate(&database, &[&newer], false).unwrap();
    let old = Database::new(server.settings("ccb"));
    for error in [
        old.require(&COMMON),
        migrate(&old, &[&COMMON], false).map(drop),
    ] {
        let error = error.unwrap_err();
        assert!(
            matches!(
                error,
                DatabaseError::NewSchema {
                    found: 2,
                    known: 1,
                    ..
                }
            ),
            "{error}"
        );
    }
    // Many migrations at once all succeed, and each is applied once.
    let settings = server.settings("crowd");
    let crowd: Vec<_> = (0..8)
        .map(|_| {
            let database = Database::new(settings.clone());
            std::thread::spawn(move || migrate(&database, &[&COMMON], false).unwrap().len())
        })
        .collect();
    let applied: usize = crowd.into_iter().map(|one| one.join().unwrap()).sum();
    assert_eq!(applied, 1);
}

#[test]
fn a_server_that_is_not_there_full_or_read_only_gets_a_clear_word() {
    let Some(server) =
        Server::start_with(&["max_connections=4", "superuser_reserved_connections=0"])
    else {
        return;
    };
    let database = Database::new(server.settings("ccb"));
    migrate(&database, &[&COMMON], false).unwrap();
    let read_only = |on: &str| {
        database.read(|session| {
            session.batch(&format!(
                "ALTER ROLE ccb SET default_transaction_read_only = {on}"
            ))
        })
    };
    read_only("on").unwrap();
    let other = Database::new(server.settings("ccb"));
    let error = other
        .change(Operation::new(), |_| Ok::<(), DatabaseError>(()))
        .unwrap_err();
    assert!(matches!(error, DatabaseError::ReadOnly { .. }), "{error}");
    assert!(other.about().unwrap().read_only);
    drop(other);
    // All hold on to a connection.
    let hold: Vec<Database> = (0..4)
        .map(|_| Database::new(quick(server.settings("ccb"))))
        .collect();
    let full = hold.iter().find_map(|one| one.about().err());
    let full = full.expect("the fifth connection is one too many");
    assert!(
        matches!(full, DatabaseError::TooManyConnections { .. }),
        "{full}"
    );
    drop(server);
    let error = Database::new(quick(hold[0].settings().clone()))
        .about()
        .unwrap_err();
    assert!(
        matches!(error, DatabaseError::Unreachable { .. }),
        "{error}"
    );
}

fn quick(settings: Settings) -> Settings {
    settings.with_patience(std::time::Duration::from_millis(500))
}

#[test]
fn a_word_wakes_who_listens() {
    let Some((_server, database)) = prepared() else {
        return;
    };
    let mut listener = database.listen("ccb_changes");
    listener.prepare();
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(60);
    let mut hear = || {
        while !listener.wait(std::time::Duration::from_secs(10)) {
            assert!(std::time::Instant::now() < deadline, "nothing was heard");
        }
    };
    // The first notification is our own; it shows that notifications arrive.
    hear();
    let speaker = std::thread::spawn(move || {
        database
            .read(|session| session.batch("NOTIFY ccb_changes"))
            .unwrap();
    });
    hear();
    speaker.join().unwrap();
}
