//! The events of turns.

use swarm::process::Ending;
use swarm::runtime::{Event, Messages, Order, TurnStatus};

use super::bench::{Bench, touch};
use super::{ASKED, Act, Verdict, prompt, skip};

pub(super) fn every_turn_ends(bench: &Bench<'_>) -> Verdict {
    if bench.runtime().abilities().messages == Messages::Never {
        return skip("it has one turn only");
    }
    let mut session = bench.launch(&prompt!(bench, &[Act::Say("a")], "turn 0"));
    assert!(session.turn().text.contains("turn 0"));
    for n in 1..4 {
        let message = prompt!(bench, &[Act::Say("b")], &format!("turn {n}"));
        let id = session.send(&message);
        let turn = session.turn();
        assert_eq!(turn.status, TurnStatus::Completed, "{turn:?}");
        assert!(turn.text.contains(&format!("turn {n}")), "{turn:?}");
        assert_eq!(session.times_accepted(id), 1, "{}", session.summary());
    }
    session.order(Order::Finish);
    assert_eq!(session.end(), Ending::Exited(0));
    assert_eq!(session.turns(), 4);
    Verdict::Passed
}

pub(super) fn a_failure_is_a_failure(bench: &Bench<'_>) -> Verdict {
    let mut session = bench.launch(&prompt!(bench, &[Act::Fail("the bridge is out")], ""));
    let turn = session.turn();
    assert_eq!(turn.status, TurnStatus::Failed, "{turn:?}");
    let error = turn.error.expect("a reason");
    assert!(error.contains("the bridge is out"), "{error}");
    session.order(Order::Finish);
    session.end();
    assert_eq!(session.turns(), 1);
    Verdict::Passed
}

pub(super) fn a_quota_is_a_quota(bench: &Bench<'_>) -> Verdict {
    let mut session = bench.launch(&prompt!(bench, &[Act::Quota], ""));
    let turn = session.turn();
    assert_eq!(turn.status, TurnStatus::Quota, "{turn:?}");
    session.order(Order::Finish);
    session.end();
    Verdict::Passed
}

pub(super) fn no_result_is_no_turn(bench: &Bench<'_>) -> Verdict {
    let mut session = bench.launch(&prompt!(bench, &[Act::Say("bye"), Act::Quit], ""));
    // Its exit code reports success.
    assert_eq!(session.end(), Ending::Exited(0));
    assert_eq!(session.turns(), 0, "{}", session.summary());
    Verdict::Passed
}

pub(super) fn usage_adds_up(bench: &Bench<'_>) -> Verdict {
    let first = Act::Usage {
        input: 1000,
        output: 20,
    };
    let second = Act::Usage {
        input: 300,
        output: 4,
    };
    let acts = [first, Act::Touch(&bench.path("a")), second];
    let mut session = bench.launch(&prompt!(bench, &acts, "done"));
    session.turn();
    session.order(Order::Finish);
    session.end();
    let usage = session.usage();
    assert_eq!(
        (usage.input_tokens, usage.output_tokens),
        (1300, 24),
        "{}",
        session.summary()
    );
    Verdict::Passed
}

pub(super) fn tools_are_seen(bench: &Bench<'_>) -> Verdict {
    let go = bench.path("go");
    let mut session = bench.launch(&prompt!(bench, &[Act::ToolUntil(&go)], "done"));
    if bench.runtime().abilities().messages == Messages::Never {
        touch(&go);
        session.end();
        return skip("it has no tools");
    }
    let begun = session.until("a tool", |event| matches!(event, Event::ToolUse { .. }));
    touch(&go);
    let Event::ToolUse { id: begun, .. } = begun else {
        panic!("{begun:?}");
    };
    session.until(
        "its result",
        |event| matches!(event, Event::ToolResult { id, is_error: false, .. } if *id == begun),
    );
    session.turn();
    session.order(Order::Finish);
    session.end();
    Verdict::Passed
}

/// Asks for a file and answers; returns the end of the tool.
fn asked(bench: &Bench<'_>, prompt: &str, allow: bool) -> Event {
    let mut session = bench.launch(prompt);
    let asked = session.until("a question", |event| {
        matches!(event, Event::Permission { .. })
    });
    let Event::Permission { id, .. } = &asked else {
        panic!("{asked:?}");
    };
    assert!(
        !bench.path(ASKED).exists(),
        "it did not wait for the answer"
    );
    session.order(Order::Answer {
        id: id.clone(),
        allow,
        reason: (!allow).then(|| "not today".to_owned()),
    });
    let turn = session.turn();
    assert_eq!(turn.status, TurnStatus::Completed, "{turn:?}");
    session.order(Order::Finish);
    session.end();
    asked
}

pub(super) fn what_is_allowed_is_done(bench: &Bench<'_>) -> Verdict {
    let file = bench.path(ASKED);
    asked(
        bench,
        &prompt!(bench, &[Act::TouchIfAllowed(&file)], "done"),
        true,
    );
    assert!(file.exists());
    Verdict::Passed
}

pub(super) fn what_is_denied_is_not_done(bench: &Bench<'_>) -> Verdict {
    let file = bench.path(ASKED);
    asked(
        bench,
        &prompt!(bench, &[Act::TouchIfAllowed(&file)], "done"),
        false,
    );
    assert!(!file.exists());
    Verdict::Passed
}
