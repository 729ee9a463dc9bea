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
