//! The ends of agents.

use swarm::process::Ending;
use swarm::runtime::{Event, Order, TurnStatus};

use super::bench::{Bench, LIMIT, touch};
use super::{ASKED, Act, Verdict, prompt, skip};
use crate::wait::wait_until;

pub(super) fn finish_lets_the_turn_end(bench: &Bench<'_>) -> Verdict {
    let (busy, go) = (bench.path("busy"), bench.path("go"));
    let acts = [Act::Touch(&busy), Act::ToolUntil(&go)];
    let mut session = bench.launch(&prompt!(bench, &acts, "all of it"));
    session.wait_file(&busy);
    session.order(Order::Finish);
    touch(&go);
    let turn = session.turn();
    assert_eq!(turn.status, TurnStatus::Completed, "{turn:?}");
    assert!(turn.text.contains("all of it"), "{turn:?}");
    assert_eq!(session.end(), Ending::Exited(0));
    Verdict::Passed
}

pub(super) fn finish_lets_questions_be_answered(bench: &Bench<'_>) -> Verdict {
    let (busy, go, asked) = (bench.path("busy"), bench.path("go"), bench.path(ASKED));
    let acts = [
        Act::Touch(&busy),
        Act::BusyUntil(&go),
        Act::TouchIfAllowed(&asked),
    ];
    let mut session = bench.launch(&prompt!(bench, &acts, "done"));
    session.wait_file(&busy);
    session.order(Order::Finish);
    touch(&go);
    let question = session.until("a question", |event| {
        matches!(event, Event::Permission { .. })
    });
    let Event::Permission { id, .. } = question else {
        panic!("{question:?}");
    };
    session.order(Order::Answer {
        id,
        allow: true,
        reason: None,
    });
    assert_eq!(session.turn().status, TurnStatus::Completed);
    assert_eq!(session.end(), Ending::Exited(0));
    assert!(asked.exists());
    Verdict::Passed
}

pub(super) fn stop_ends_it(bench: &Bench<'_>) -> Verdict {
    if !bench.subject().obeys_stop() {
        return skip("it can only be ended by signals");
    }
    let (busy, never) = (bench.path("busy"), bench.path("never"));
    let acts = [Act::Touch(&busy), Act::BusyUntil(&never)];
    let mut session = bench.launch(&prompt!(bench, &acts, "never"));
    session.wait_file(&busy);
    session.order(Order::Stop);
    session.end();
    let ended = |event: &Event| matches!(event, Event::TurnEnded(turn) if turn.status == TurnStatus::Completed);
    assert!(!session.log.iter().any(ended), "{}", session.summary());
    assert!(bench.running().is_empty());
    Verdict::Passed
}

pub(super) fn orders_after_the_end_are_dropped(bench: &Bench<'_>) -> Verdict {
    let mut session = bench.launch(&prompt!(bench, &[], "done"));
    session.turn();
    session.order(Order::Finish);
    session.end();
    // More than any queue holds: none of them may block.
    for _ in 0..200 {
        session.order(Order::Interrupt);
        session.order(Order::Stop);
        session.send("too late");
    }
    Verdict::Passed
}

pub(super) fn nobody_listens(bench: &Bench<'_>) -> Verdict {
    let go = bench.path("go");
    let mut session = bench.launch(&prompt!(bench, &[Act::BusyUntil(&go)], "done"));
    session.stop_listening();
    session.order(Order::Finish);
    touch(&go);
    wait_until(LIMIT, "it to end", || bench.running().is_empty());
    Verdict::Passed
}

pub(super) fn it_closes_its_output_and_lives(bench: &Bench<'_>) -> Verdict {
    let (closed, go) = (bench.path("closed"), bench.path("go"));
    let acts = [Act::Touch(&closed), Act::CloseOutputUntil(&go)];
    let mut session = bench.launch(&prompt!(bench, &acts, "unheard"));
    session.wait_file(&closed);
    assert_eq!(bench.running().len(), 1);
    touch(&go);
    session.order(Order::Finish);
    assert_eq!(session.end(), Ending::Exited(0));
    assert!(bench.running().is_empty());
    Verdict::Passed
}

fn left_behind(bench: &Bench<'_>, noisy: bool) -> Verdict {
    let pids = bench.pid_dir();
    let acts = [Act::LeaveBehind { pids: &pids, noisy }];
    let mut session = bench.launch(&prompt!(bench, &acts, "done"));
    assert_eq!(session.turn().status, TurnStatus::Completed);
    session.order(Order::Finish);
    assert_eq!(session.end(), Ending::Exited(0));
    // The end was reported though the streams are still open.
    assert_eq!(bench.pids().alive().len(), 1);
    Verdict::Passed
}

pub(super) fn something_is_left_behind(bench: &Bench<'_>) -> Verdict {
    left_behind(bench, false)
}

pub(super) fn something_noisy_is_left_behind(bench: &Bench<'_>) -> Verdict {
    left_behind(bench, true)
}
