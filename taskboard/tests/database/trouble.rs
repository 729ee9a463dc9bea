//! Names, lists, and databases that are not as they should be.

use database::{COMMON, Component, Database, DatabaseError, migrate};
use serde_json::json;
use store::Explain;
use taskboard::{BoardError, ClaimRequest, MIGRATIONS, NewTask, Next, Reference, prune};

use crate::site::{Site, ids, new, ops};

#[test]
fn lists_do_not_know_each_other_and_ids_are_never_used_twice() {
    let Some(site) = Site::new() else { return };
    let (one, two) = (site.board("one"), site.board("two"));
    assert!(!one.exists());
    one.create(&[new("a"), new("b")], None).unwrap();
    assert!(one.exists() && !two.exists());
    two.create(&[new("c")], None).unwrap();
    assert_eq!((ids(&one).len(), ids(&two).len()), (2, 1));
    assert_eq!(one.reset(false).unwrap(), 2);
    let next = one.create(&[new("d")], None).unwrap()[0].id;
    assert_eq!(next.get(), 3);
    assert_eq!(ops(&two), ["create 1"]);
    let clash = site.board("ONE").create(&[new("e")], None).unwrap_err();
    assert_eq!(clash.kind(), "bad_name", "{clash}");
}

#[test]
fn hostile_texts_are_kept_as_they_are() {
    let Some(site) = Site::new() else { return };
    let board = site.board("hostile");
    let texts = [
        "'; DROP TABLE tasks; --",
        "$1 @. \\x00 {1,2}",
        "\u{202e}\u{1F600}",
        "NULL",
    ];
    for text in texts {
        let metadata = json!({"k": text, "nul": "a\u{0}b", "n": 1e-7, "deep": {"z": [null, 12345678901234567_u64]}});
        let task = NewTask {
            description: format!("{text}\nmore"),
            metadata: metadata.as_object().unwrap().clone(),
            ..new(text)
        };
        let made = board.create(&[task], None).unwrap().remove(0);
        assert_eq!(board.get(made.id).unwrap(), made);
        let Next::Claimed(claimed) = board.claim_next(&ClaimRequest::new(text)).unwrap() else {
            panic!("it is ready");
        };
        assert_eq!(claimed.task.owner.as_deref(), Some(text));
        assert_eq!(claimed.task.metadata, made.metadata);
        assert_eq!(board.unassign(text).unwrap().len(), 1);
        board.delete(made.id, &taskboard::Caller::new("x")).unwrap();
    }
}

#[test]
fn the_longest_chain_goes_first_however_it_came_to_be() {
    let Some(site) = Site::new() else { return };
    let board = site.board("chains");
    let made = board
        .create(&[new("a"), new("b"), new("c"), new("d")], None)
        .unwrap();
    let id = |n: usize| made[n].id;
    let order = || {
        board
            .ready()
            .unwrap()
            .iter()
            .map(|id| id.get())
            .collect::<Vec<_>>()
    };
    assert_eq!(order(), [1, 2, 3, 4]);
    board.block(id(1), id(2)).unwrap();
    assert_eq!(order(), [2, 1, 4]);
    board.block(id(2), id(0)).unwrap();
    assert_eq!(order(), [2, 4]);
    // A task in front of it all, by a reference of the new one.
    let front = NewTask {
        blocks: vec![Reference::Id(id(1))],
        ..new("e")
    };
    let front = board.create(&[front], None).unwrap()[0].id;
    assert_eq!(order(), [5, 4]);
    let cycle = board.block(id(0), front).unwrap_err();
    let BoardError::Cycle { path } = &cycle else {
        panic!("{cycle}");
    };
    assert_eq!(path.first(), path.last());
    board.unblock(front, id(1)).unwrap();
    assert_eq!(order(), [2, 4, 5]);
    board.delete(id(2), &taskboard::Caller::new("x")).unwrap();
    assert_eq!(order(), [1, 2, 4, 5]);
    assert_eq!(board.doctor(false).unwrap(), []);
}

#[test]
fn a_schema_that_is_not_prepared_or_too_new_is_refused() {
    let Some(site) = Site::new() else { return };
    let bare = Database::new(site.server.settings("elsewhere"));
    let board = site.board_on(&bare, "l");
    for error in [
        board.create(&[new("a")], None).map(drop).unwrap_err(),
        board.snapshot().map(drop).unwrap_err(),
        board
            .claim_next(&ClaimRequest::new("a"))
            .map(drop)
            .unwrap_err(),
    ] {
        assert_eq!(error.kind(), "old_schema", "{error}");
        assert!(error.hint().unwrap().contains("ccb board migrate"));
    }
    const FIRST: &str = include_str!("../../migrations/001.sql");
    let newer = Component {
        name: "board",
        migrations: &[FIRST, "SELECT 1"],
    };
    migrate(&bare, &[&COMMON, &newer], false).unwrap();
    let board = site.board_on(&Database::new(site.server.settings("elsewhere")), "l");
    let error = board.create(&[new("a")], None).unwrap_err();
    assert_eq!(error.kind(), "newer_version", "{error}");
    let error = migrate(&bare, &[&COMMON, &MIGRATIONS], false).unwrap_err();
    assert!(matches!(error, DatabaseError::NewSchema { .. }), "{error}");
}

#[test]
fn a_read_only_database_can_be_looked_at() {
    let Some(site) = Site::new() else { return };
    site.board("l").create(&[new("a")], None).unwrap();
    let alter = "ALTER ROLE ccb SET default_transaction_read_only = on";
    site.database.read(|session| session.batch(alter)).unwrap();
    let board = site.board_on(&Database::new(site.server.settings("ccb")), "l");
    assert_eq!(ids(&board).len(), 1);
    let error = board.create(&[new("b")], None).unwrap_err();
    assert_eq!(error.kind(), "database_read_only", "{error}");
    let error = board.claim_next(&ClaimRequest::new("a")).unwrap_err();
    assert_eq!(error.kind(), "database_read_only", "{error}");
}

#[test]
fn what_is_old_is_forgotten_and_whoever_follows_is_told() {
    let Some(site) = Site::new() else { return };
    let board = site.board("old");
    board.create(&[new("a"), new("b")], None).unwrap();
    let mut watch = board.watch(Some(0)).unwrap();
    std::thread::sleep(std::time::Duration::from_millis(50));
    let age = std::time::Duration::from_millis(10);
    let would = prune(&site.database, age, true).unwrap();
    assert_eq!(would.changes, 2);
    assert_eq!(watch.poll().unwrap().len(), 2, "nothing is gone yet");
    let mut watch = board.watch(Some(0)).unwrap();
    let gone = prune(&site.database, age, false).unwrap();
    assert!(gone.changes == 2 && gone.operations >= 1, "{gone:?}");
    assert_eq!(prune(&site.database, age, true).unwrap().changes, 0);
    let error = watch.poll().unwrap_err();
    assert!(error.to_string().contains("go on from 2"), "{error}");
    assert_eq!(ids(&board).len(), 2, "tasks stay");
    board.claim_next(&ClaimRequest::new("a")).unwrap();
    let mut watch = board.watch(Some(2)).unwrap();
    assert_eq!(watch.poll().unwrap()[0].seq, 3);
}

#[test]
fn a_view_follows_the_board() {
    let Some(site) = Site::new() else { return };
    let board = site.board("viewed");
    let mut glance = board.glance();
    assert!(!glance.look(0).unwrap());
    assert!(!board.exists(), "looking makes no list");
    let made = board.create(&[new("a"), new("b")], None).unwrap();
    assert!(glance.look(1_000).unwrap());
    assert_eq!(glance.snapshot().tasks().count(), 2);
    board.claim(made[0].id, &ClaimRequest::new("mate")).unwrap();
    board
        .delete(made[1].id, &taskboard::Caller::new("x"))
        .unwrap();
    assert!(glance.look(2_000).unwrap());
    let owner = glance.snapshot().get(made[0].id).unwrap().owner.clone();
    assert_eq!(
        (owner.as_deref(), glance.snapshot().tasks().count()),
        (Some("mate"), 1)
    );
    assert!(!glance.look(3_000).unwrap());
    let history = glance.history().unwrap();
    let ops: Vec<&str> = history.iter().map(|change| change.op.as_str()).collect();
    assert_eq!(ops, ["create", "create", "claim", "delete"]);
}
