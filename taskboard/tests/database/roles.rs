//! The rights that the guide gives to the two roles are enough, and no more than that.

use std::time::Duration;

use database::{COMMON, Database, DatabaseError, Secrets, Settings, migrate};
use taskboard::{Caller, ClaimRequest, MIGRATIONS, Next, metrics, prune};

use crate::site::{Site, new, ops};

/// The commands that the guide gives an administrator to run after `ccb board migrate`.
fn grants() -> String {
    let guide = include_str!("../../../docs/many-machines.md");
    let (_, rest) = guide
        .split_once("<!-- grants -->")
        .expect("the guide has them");
    let (_, rest) = rest.split_once("```sql\n").expect("as SQL");
    let (sql, _) = rest.split_once("```").expect("a block ends");
    sql.to_owned()
}

fn connect(site: &Site, user: &str) -> Database {
    let url = site.server.url("ccb").replace("ccb@", &format!("{user}@"));
    Database::new(Settings::parse(&url, &Secrets::default()).unwrap())
}

#[test]
fn an_owner_migrates_and_a_worker_works_and_cannot_migrate() {
    let Some(site) = Site::bare() else { return };
    let make = "CREATE ROLE ccb_owner LOGIN; CREATE ROLE ccb_worker LOGIN; \
        GRANT CREATE ON DATABASE postgres TO ccb_owner";
    site.database.read(|session| session.batch(make)).unwrap();
    let (owner, worker) = (connect(&site, "ccb_owner"), connect(&site, "ccb_worker"));
    let error = migrate(&worker, &[&COMMON, &MIGRATIONS], false).unwrap_err();
    assert!(matches!(error, DatabaseError::Server { .. }), "{error}");
    migrate(&owner, &[&COMMON, &MIGRATIONS], false).unwrap();
    let before = site.board_on(&worker, "l").create(&[new("a")], None);
    assert!(before.is_err(), "nothing was granted yet");
    owner.read(|session| session.batch(&grants())).unwrap();

    let worker = connect(&site, "ccb_worker");
    let board = site.board_on(&worker, "l");
    let made = board.create(&[new("a"), new("b")], None).unwrap();
    board.block(made[0].id, made[1].id).unwrap();
    let Next::Claimed(claimed) = board.claim_next(&ClaimRequest::new("ann")).unwrap() else {
        panic!("one is ready");
    };
    board
        .complete(claimed.task.id, &Caller::new("ann"), None)
        .unwrap();
    let history = ops(&board);
    assert!(history.contains(&"complete 1".to_owned()), "{history:?}");
    assert!(board.doctor(false).unwrap().is_empty());
    assert_eq!(metrics(&worker).unwrap()[0].completed, 1);
    assert!(worker.health().unwrap().hears);
    prune(&worker, Duration::ZERO, false).unwrap();
    for refused in [
        "DROP TABLE @.tasks",
        "TRUNCATE @.tasks",
        "CREATE TABLE @.more (n int)",
        "CREATE OR REPLACE FUNCTION @.clock_ms() RETURNS bigint LANGUAGE sql AS 'SELECT 0::bigint'",
        "DELETE FROM @.migrations",
    ] {
        let done = worker.read(|session| session.batch(refused));
        assert!(done.is_err(), "{refused}");
    }
}
