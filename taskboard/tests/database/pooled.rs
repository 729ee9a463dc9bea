//! The same board behind PgBouncer in transaction mode, where two transactions of one process may be
//! on different connections and nothing is heard.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use database::throw_away::Bouncer;
use taskboard::{Board, Caller, ClaimRequest, LeaseTerm, Status};

use crate::many::work;
use crate::site::{Site, new, ops};

#[test]
fn every_task_is_done_once_and_in_its_order() {
    let Some(site) = Site::new() else { return };
    let Some(bouncer) = Bouncer::start(&site.server, 3) else {
        return;
    };
    let board = || site.board_on(&site.through(bouncer.port()), "pooled");
    let batch: Vec<_> = (0..60).map(|n| new(&format!("task {n}"))).collect();
    let made = board().create(&batch, None).unwrap();
    for pair in made.chunks(2) {
        board().block(pair[0].id, pair[1].id).unwrap();
    }
    let done = Mutex::new(Vec::new());
    let boards: Vec<Board> = (0..6).map(|_| board()).collect();
    std::thread::scope(|scope| {
        for (n, board) in boards.iter().enumerate() {
            let done = &done;
            scope.spawn(move || work(board, &format!("agent-{n}"), done));
        }
    });
    let done = done.into_inner().unwrap();
    assert_eq!(done.len(), made.len());
    for pair in made.chunks(2) {
        let place = |id| done.iter().position(|it| *it == id).unwrap();
        assert!(place(pair[0].id) < place(pair[1].id));
    }
    assert_eq!(board().doctor(false).unwrap(), []);
    let history = ops(&site.board("pooled"));
    let claims = history.iter().filter(|op| op.starts_with("claim"));
    assert_eq!(claims.count(), made.len());
}

#[test]
fn whoever_watches_sees_changes_without_hearing_of_them() {
    let Some(site) = Site::new() else { return };
    let Some(bouncer) = Bouncer::start(&site.server, 2) else {
        return;
    };
    let board = site.board_on(&site.through(bouncer.port()), "watched");
    board.create(&[new("a")], None).unwrap();
    let mut watch = board.watch(None).unwrap();
    let id = site.board("watched").create(&[new("b")], None).unwrap()[0].id;
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        watch.wait(Duration::from_secs(5));
        let seen = watch.poll().unwrap();
        if !seen.is_empty() {
            assert_eq!(seen[0].id, id);
            break;
        }
        assert!(Instant::now() < deadline, "it is never seen");
    }
}

#[test]
fn a_lease_keeps_a_late_writer_out() {
    let Some(site) = Site::new() else { return };
    let Some(bouncer) = Bouncer::start(&site.server, 2) else {
        return;
    };
    let board = site.board_on(&site.through(bouncer.port()), "leases");
    let id = board.create(&[new("a")], None).unwrap()[0].id;
    let request = ClaimRequest {
        lease: Some(LeaseTerm::Milliseconds(60_000)),
        ..ClaimRequest::new("ann")
    };
    let claimed = board.claim(id, &request).unwrap();
    let ann = Caller {
        token: claimed.token,
        ..Caller::new("ann")
    };
    site.set_clock(61_000);
    assert!(board.complete(id, &ann, None).is_err());
    assert_eq!(board.get(id).unwrap().status, Status::Pending);
}
