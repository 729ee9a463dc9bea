//! Many at once: every task is done once, whatever happens to the server.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use taskboard::{Board, Caller, ClaimRequest, Next, Nothing, Status, TaskId};

use crate::site::{Site, new, ops};

/// Claims and completes until everything is done; notes who did what.
pub(crate) fn work(board: &Board, agent: &str, done: &Mutex<Vec<TaskId>>) {
    loop {
        match board.claim_next(&ClaimRequest::new(agent)).unwrap() {
            Next::Claimed(claimed) => {
                let id = claimed.task.id;
                board.complete(id, &Caller::new(agent), None).unwrap();
                done.lock().unwrap().push(id);
            }
            Next::Nothing(Nothing::AllDone) => return,
            Next::Nothing(_) => std::thread::sleep(Duration::from_millis(2)),
            Next::Busy(with) => panic!("{agent} is busy with {with:?}"),
        }
    }
}

#[test]
fn every_task_is_done_once_although_the_server_is_killed_again_and_again() {
    let Some(mut site) = Site::new() else { return };
    let count = 400;
    let batch: Vec<_> = (0..count).map(|n| new(&format!("task {n}"))).collect();
    let made = site.board("load").create(&batch, None).unwrap();
    // Every fourth one waits for the one before it.
    for pair in made.chunks(4) {
        site.board("load").block(pair[0].id, pair[3].id).unwrap();
    }
    let done = Mutex::new(Vec::new());
    let over = AtomicBool::new(false);
    let boards: Vec<Board> = (0..8).map(|_| site.board("load")).collect();
    let killed = std::thread::scope(|scope| {
        let workers: Vec<_> = boards
            .iter()
            .enumerate()
            .map(|(n, board)| {
                let done = &done;
                scope.spawn(move || work(board, &format!("agent-{n}"), done))
            })
            .collect();
        let server = &mut site.server;
        let killer = scope.spawn(|| {
            let mut killed = 0;
            while !over.load(Ordering::SeqCst) && killed < 3 {
                std::thread::sleep(Duration::from_millis(150));
                server.kill();
                server.launch();
                killed += 1;
            }
            killed
        });
        for worker in workers {
            worker.join().unwrap();
        }
        over.store(true, Ordering::SeqCst);
        killer.join().unwrap()
    });
    assert!(killed > 0);
    let mut done = done.into_inner().unwrap();
    done.sort_unstable();
    let all: Vec<TaskId> = made.iter().map(|task| task.id).collect();
    assert_eq!(done, all, "each once");
    let mut times: BTreeMap<String, usize> = BTreeMap::new();
    for op in ops(&site.board("load")) {
        *times.entry(op).or_default() += 1;
    }
    for id in all {
        assert_eq!(times[&format!("claim {id}")], 1, "{id}");
        assert_eq!(times[&format!("complete {id}")], 1, "{id}");
    }
}

#[test]
fn two_requests_of_one_agent_do_not_both_find_it_idle() {
    let Some(site) = Site::new() else { return };
    let batch: Vec<_> = (0..40).map(|n| new(&format!("task {n}"))).collect();
    site.board("busy").create(&batch, None).unwrap();
    let request = ClaimRequest {
        check_busy: true,
        ..ClaimRequest::new("ann")
    };
    let boards: Vec<Board> = (0..8).map(|_| site.board("busy")).collect();
    let claimed: usize = std::thread::scope(|scope| {
        let ask = |board| {
            let request = &request;
            scope.spawn(move || {
                matches!(Board::claim_next(board, request).unwrap(), Next::Claimed(_))
            })
        };
        let all: Vec<_> = boards.iter().map(ask).collect();
        all.into_iter()
            .filter(|_| true)
            .map(|one| usize::from(one.join().unwrap()))
            .sum()
    });
    assert_eq!(claimed, 1);
}

#[test]
fn whoever_watches_sees_every_change_once_and_in_the_order_of_each_task() {
    let Some(site) = Site::new() else { return };
    let watched = site.board("watched");
    let mut watch = watched.watch(None).unwrap();
    let batch: Vec<_> = (0..120).map(|n| new(&format!("task {n}"))).collect();
    watched.create(&batch, None).unwrap();
    let done = Mutex::new(Vec::new());
    let boards: Vec<Board> = (0..6).map(|_| site.board("watched")).collect();
    let seen = std::thread::scope(|scope| {
        for (n, board) in boards.iter().enumerate() {
            let done = &done;
            scope.spawn(move || work(board, &format!("agent-{n}"), done));
        }
        let mut seen: Vec<(u64, String, TaskId)> = Vec::new();
        while seen.len() < 3 * batch.len() {
            for change in watch.poll().unwrap() {
                seen.push((change.seq, change.op, change.id));
            }
            watch.wait(Duration::from_millis(20));
        }
        seen
    });
    for (n, (seq, _, _)) in seen.iter().enumerate() {
        assert_eq!(*seq, n as u64 + 1);
    }
    for task in watched.snapshot().unwrap().tasks() {
        assert_eq!(task.status, Status::Completed);
        let of_task = seen.iter().filter(|(_, _, id)| *id == task.id);
        let ops: Vec<&str> = of_task.map(|(_, op, _)| op.as_str()).collect();
        assert_eq!(ops, ["create", "claim", "complete"]);
    }
}
