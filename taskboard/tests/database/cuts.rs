//! The link is cut at every message of every kind of change: it happens once all the same.

use taskboard::{Board, Caller, ClaimRequest, Next, Status};

use crate::proxy::{Cut, Proxy};
use crate::site::{Site, ids, new, ops};

/// Runs `change` on a fresh list with the link cut after 0, 1, 2, … messages, until it is done
/// before the cut, and lets `check` read the result.
fn at_every_message(
    site: &Site,
    name: &str,
    prepare: impl Fn(&Board),
    change: impl Fn(&Board),
    check: impl Fn(&Board, &str),
) {
    for cut in [Cut::BeforeServer, Cut::AfterServer] {
        let proxy = Proxy::start(site.server.port(), cut);
        let database = site.through(proxy.port());
        for after in 0.. {
            let list = format!("{name}-{}-{after}", cut as u8);
            prepare(&site.board(&list));
            let board = site.board_on(&database, &list);
            // A connection that is there, so that the cut is in the change and not before it.
            board.snapshot().unwrap();
            proxy.cut_after(after);
            change(&board);
            let was_cut = proxy.was_cut();
            check(
                &site.board(&list),
                &format!("{cut:?} after {after} messages"),
            );
            if !was_cut {
                assert!(after > 0, "nothing was ever cut");
                break;
            }
            assert!(after < 100, "it is cut for ever");
        }
    }
}

#[test]
fn a_change_happens_once_wherever_the_link_is_cut() {
    let Some(site) = Site::new() else { return };
    at_every_message(
        &site,
        "create",
        |_| (),
        |board| {
            let made = board.create(&[new("a"), new("b")], None).unwrap();
            assert_eq!(made.len(), 2);
        },
        |board, when| {
            // The ids of a reservation whose answer was lost are lost, the tasks are there once.
            assert_eq!(ids(board).len(), 2, "{when}");
            assert_eq!(ops(board).len(), 2, "{when}");
        },
    );
    let two = |board: &Board| drop(board.create(&[new("a"), new("b")], None).unwrap());
    at_every_message(
        &site,
        "next",
        two,
        |board| {
            let next = board.claim_next(&ClaimRequest::new("ann")).unwrap();
            let Next::Claimed(claimed) = next else {
                panic!("{next:?}");
            };
            assert_eq!(claimed.task.owner.as_deref(), Some("ann"));
            assert_eq!(board.get(claimed.task.id).unwrap(), claimed.task);
        },
        |board, when| {
            let snapshot = board.snapshot().unwrap();
            let taken = snapshot.tasks().filter(|task| task.owner.is_some()).count();
            assert_eq!(taken, 1, "{when}");
            assert_eq!(ops(board), ["create 1", "create 2", "claim 1"], "{when}");
        },
    );
    at_every_message(
        &site,
        "done",
        |board| {
            let made = board.create(&[new("a"), new("b")], None).unwrap();
            board.block(made[0].id, made[1].id).unwrap();
        },
        |board| {
            let first = ids(board)[0];
            let done = board.complete(first, &Caller::new("ann"), None).unwrap();
            assert_eq!(done.task.status, Status::Completed);
            // The answer is the original one, also if it had to be asked for again.
            assert_eq!(done.unblocked, [ids(board)[1]]);
        },
        |board, when| {
            let completed = ops(board)
                .iter()
                .filter(|op| op.starts_with("complete"))
                .count();
            assert_eq!(completed, 1, "{when}");
            assert_eq!(board.ready().unwrap(), [ids(board)[1]], "{when}");
        },
    );
    at_every_message(
        &site,
        "delete",
        two,
        |board| {
            let first = ids(board)[0];
            let gone = board.delete(first, &Caller::new("ann")).unwrap();
            assert_eq!((gone.id, gone.subject.as_str()), (first, "a"));
        },
        |board, when| assert_eq!(ids(board).len(), 1, "{when}"),
    );
}
