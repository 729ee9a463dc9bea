//! Leases go by the database's clock, and a late writer is kept out.

use std::time::Duration;

use taskboard::{BoardError, Caller, ClaimRequest, LeaseTerm, Next, Refusal, Status};

use crate::site::{Site, new, ops};

fn leased(agent: &str, lease: LeaseTerm) -> ClaimRequest {
    ClaimRequest {
        lease: Some(lease),
        ..ClaimRequest::new(agent)
    }
}

#[test]
fn a_lease_ends_by_the_clock_of_the_database_and_its_token_is_worth_nothing_then() {
    let Some(site) = Site::new() else { return };
    let board = site.board("leases");
    let id = board.create(&[new("a")], None).unwrap()[0].id;
    let claimed = board
        .claim(id, &leased("ann", LeaseTerm::Milliseconds(300)))
        .unwrap();
    let first = Caller {
        token: claimed.token,
        ..Caller::new("ann")
    };
    assert!(matches!(
        board.claim_next(&ClaimRequest::new("bob")).unwrap(),
        Next::Nothing(_)
    ));
    std::thread::sleep(Duration::from_millis(400));
    // Refused, and what ran out is returned all the same.
    let late = board.complete(id, &first, None).unwrap_err();
    assert!(
        matches!(
            late,
            BoardError::Refused {
                reason: Refusal::LeaseLost { .. },
                ..
            }
        ),
        "{late}"
    );
    assert_eq!(board.get(id).unwrap().status, Status::Pending);
    let Next::Claimed(second) = board
        .claim_next(&leased("bob", LeaseTerm::Milliseconds(60_000)))
        .unwrap()
    else {
        panic!("it is free again");
    };
    assert!(second.token > claimed.token);
    assert!(board.release(id, &first).is_err());
    assert_eq!(ops(&board), ["create 1", "claim 1", "expire 1", "claim 1"]);
}

#[test]
fn a_heartbeat_keeps_every_task_of_a_run_and_none_that_ran_out() {
    let Some(site) = Site::new() else { return };
    let board = site.board("beats");
    let made = board.create(&[new("a"), new("b"), new("c")], None).unwrap();
    let beat = |run: &str, ms: i64| LeaseTerm::Heartbeat {
        run: run.into(),
        milliseconds: ms,
    };
    let claims: Vec<_> = made[..2]
        .iter()
        .map(|task| {
            board
                .claim(task.id, &leased("ann", beat("r1", 500)))
                .unwrap()
        })
        .collect();
    board
        .claim(made[2].id, &leased("bob", beat("r2", 300)))
        .unwrap();
    for _ in 0..4 {
        std::thread::sleep(Duration::from_millis(200));
        let held = board.renew("r1", 500).unwrap();
        let expected: Vec<_> = claims
            .iter()
            .map(|claimed| (claimed.task.id, claimed.token.unwrap()))
            .collect();
        assert_eq!(held, expected);
    }
    assert!(board.renew("r2", 500).unwrap().is_empty(), "too late");
    assert_eq!(board.ready().unwrap(), [made[2].id]);
    assert_eq!(board.release_run("r1").unwrap().len(), 2);
}

#[test]
fn clocks_ten_minutes_apart_change_nothing_about_leases() {
    let Some(site) = Site::new() else { return };
    for ahead in [600_000, -600_000] {
        site.set_clock(ahead);
        let board = site.board(&format!("apart-{}", ahead > 0));
        let id = board.create(&[new("a")], None).unwrap()[0].id;
        let Next::Claimed(claimed) = board
            .claim_next(&leased("ann", LeaseTerm::Milliseconds(60_000)))
            .unwrap()
        else {
            panic!("it is ready");
        };
        let other = board.claim_next(&ClaimRequest::new("bob")).unwrap();
        assert!(matches!(other, Next::Nothing(_)), "{other:?}");
        // The lease's time is over there, whatever the time is here.
        site.set_clock(ahead + 61_000);
        let Next::Claimed(second) = board.claim_next(&ClaimRequest::new("bob")).unwrap() else {
            panic!("it is free again");
        };
        assert_eq!(second.task.id, id);
        let ann = Caller {
            token: claimed.token,
            ..Caller::new("ann")
        };
        assert!(board.complete(id, &ann, None).is_err());
    }
}

#[test]
fn a_task_that_becomes_ready_is_found_although_claims_have_passed_its_place() {
    let Some(site) = Site::new() else { return };
    let board = site.board("head");
    let batch: Vec<_> = (0..200).map(|n| new(&format!("task {n}"))).collect();
    let made = board.create(&batch, None).unwrap();
    let next = || match board.claim_next(&ClaimRequest::new("ann")).unwrap() {
        Next::Claimed(claimed) => claimed.task.id.get(),
        other => panic!("{other:?}"),
    };
    // Far enough that the place from which claims look has moved.
    for expected in 1..=130 {
        assert_eq!(next(), expected);
    }
    // Given back, created with a higher priority, waited for: each comes before the rest.
    board.release(made[4].id, &Caller::new("ann")).unwrap();
    assert_eq!(next(), 5);
    let urgent = taskboard::NewTask {
        metadata: serde_json::json!({"ccb": {"priority": 9}})
            .as_object()
            .unwrap()
            .clone(),
        ..new("urgent")
    };
    let urgent = board.create(&[urgent], None).unwrap()[0].id;
    assert_eq!(next(), urgent.get());
    for expected in 131..=199 {
        assert_eq!(next(), expected);
    }
    let late = taskboard::NewTask {
        blocked_by: vec![taskboard::Reference::Id(made[0].id)],
        metadata: serde_json::json!({"ccb": {"priority": 5}})
            .as_object()
            .unwrap()
            .clone(),
        ..new("waits for the first")
    };
    let late = board.create(&[late], None).unwrap()[0].id;
    board
        .complete(made[0].id, &Caller::new("ann"), None)
        .unwrap();
    assert_eq!(next(), late.get());
    assert_eq!(next(), 200);
    assert!(matches!(
        board.claim_next(&ClaimRequest::new("ann")).unwrap(),
        Next::Nothing(_)
    ));
}
