use std::time::Duration;

use database::throw_away::{Bouncer, Server};
use database::{COMMON, Database, DatabaseError, Operation, Secrets, Settings, migrate};

/// Two connections to the server, so that transactions of one client are on either.
#[test]
fn changes_work_where_transactions_are_pooled_and_it_is_known_that_nothing_is_heard() {
    let Some(server) = Server::start() else {
        return;
    };
    let Some(bouncer) = Bouncer::start(&server, 2) else {
        return;
    };
    let url = server.url_at(bouncer.port(), "pooled");
    let settings = Settings::parse(&url, &Secrets::default()).unwrap();
    let pooled = Database::new(settings.clone());
    assert_eq!(migrate(&pooled, &[&COMMON], false).unwrap().len(), 1);
    std::thread::scope(|scope| {
        for _ in 0..6 {
            let database = Database::new(settings.clone());
            scope.spawn(move || {
                for _ in 0..20 {
                    let made = database.change(Operation::new(), |session| {
                        session.execute("SELECT 1", &[])?;
                        Ok::<(), DatabaseError>(())
                    });
                    made.unwrap();
                }
            });
        }
    });
    let count = pooled.read(|session| {
        let row = session.query_one("SELECT count(*) AS n FROM @.operations", &[])?;
        session.column::<i64>(&row, "n")
    });
    assert_eq!(count.unwrap(), 120);
    // Time limits are those of the transaction, and stay with it.
    let kept = pooled.read(|session| {
        let row = session.query_one("SELECT current_setting('lock_timeout') AS t", &[])?;
        session.column::<String>(&row, "t")
    });
    assert_eq!(kept.unwrap(), "0");
    assert!(!pooled.health().unwrap().hears);
    assert!(
        Database::new(server.settings("pooled"))
            .health()
            .unwrap()
            .hears
    );
    let mut listener = pooled.listen("pooled_word");
    assert!(
        !listener.wait(Duration::from_secs(10)),
        "it is time to look"
    );
}
