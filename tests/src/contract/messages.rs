//! Messages to agents while they run.

use swarm::process::Ending;
use swarm::runtime::{Event, Messages, Order, TurnStatus};

use super::bench::{Bench, touch};
use super::{Act, Verdict, prompt, skip};

pub(super) fn a_message_between_turns(bench: &Bench<'_>) -> Verdict {
    if bench.runtime().abilities().messages == Messages::Never {
        return skip("it takes no messages");
    }
    let mut session = bench.launch(&prompt!(bench, &[], "first"));
    session.turn();
    let id = session.send("look at the <harbour> & \"tell\"\nme");
    session.accepted(id);
    session.turn();
    assert!(
        bench
            .subject()
            .was_told(&session, "look at the <harbour> & \"tell\"\nme")
    );
    session.order(Order::Finish);
    assert_eq!(session.end(), Ending::Exited(0));
    assert_eq!(session.times_accepted(id), 1);
    assert_eq!(session.turns(), 2);
    Verdict::Passed
}

pub(super) fn a_message_at_a_tool_boundary(bench: &Bench<'_>) -> Verdict {
    let messages = bench.runtime().abilities().messages;
    if !matches!(messages, Messages::AtToolBoundary | Messages::AnyTime) {
        return skip("it takes no messages within a turn");
    }
    let gates: Vec<_> = (0..6).map(|n| bench.path(&format!("gate-{n}"))).collect();
    let acts: Vec<_> = gates.iter().map(|gate| Act::ToolUntil(gate)).collect();
    let mut session = bench.launch(&prompt!(bench, &acts, "done"));
    session.tool();
    let id = session.send("the lighthouse is dark");
    // On its way it may miss a boundary, but not all of them.
    for gate in &gates {
        touch(gate);
        session.until("the message is taken in, or another tool", |event| {
            matches!(
                event,
                Event::ToolUse { .. } | Event::Accepted { .. } | Event::TurnEnded(_)
            )
        });
        if session.times_accepted(id) > 0 {
            break;
        }
    }
    gates.iter().for_each(|gate| touch(gate));
    assert_eq!(session.times_accepted(id), 1, "{}", session.summary());
    assert_eq!(session.turns(), 0, "it waited for the end of the turn");
    session.turn();
    assert!(bench.subject().was_told(&session, "the lighthouse is dark"));
    session.order(Order::Finish);
    session.end();
    assert_eq!(session.times_accepted(id), 1);
    assert_eq!(session.turns(), 1);
    Verdict::Passed
}

pub(super) fn many_messages_each_once(bench: &Bench<'_>) -> Verdict {
    if bench.runtime().abilities().messages == Messages::Never {
        return skip("it takes no messages");
    }
    let go = bench.path("go");
    let mut session = bench.launch(&prompt!(bench, &[Act::ToolUntil(&go)], "done"));
    session.tool();
    let ids: Vec<_> = (0..5)
        .map(|n| session.send(&format!("message {n}.")))
        .collect();
    touch(&go);
    while ids.iter().any(|&id| session.times_accepted(id) == 0) {
        session.event().expect("it goes on");
    }
    // The turns they began end by themselves.
    session.order(Order::Finish);
    session.end();
    for (n, &id) in ids.iter().enumerate() {
        assert_eq!(session.times_accepted(id), 1, "{}", session.summary());
        assert!(bench.subject().was_told(&session, &format!("message {n}.")));
    }
    Verdict::Passed
}

pub(super) fn an_urgent_message_breaks_in(bench: &Bench<'_>) -> Verdict {
    let abilities = bench.runtime().abilities();
    if abilities.messages == Messages::Never || !abilities.interrupt {
        return skip("it takes no messages, or cannot be interrupted");
    }
    let (never, busy) = (bench.path("never"), bench.path("busy"));
    let acts = [Act::Touch(&busy), Act::BusyUntil(&never)];
    let mut session = bench.launch(&prompt!(bench, &acts, "never"));
    session.wait_file(&busy);
    let id = session.send_now(&prompt!(bench, &[], "at once"));
    session.accepted(id);
    while !session.turn().text.contains("at once") {}
    session.order(Order::Finish);
    session.end();
    assert_eq!(session.times_accepted(id), 1);
    Verdict::Passed
}

/// Interrupts an agent that does `act`, and talks to it afterwards.
fn interrupted(bench: &Bench<'_>, prompt: &str, again: &str) {
    let busy = bench.path("busy");
    let mut session = bench.launch(prompt);
    session.wait_file(&busy);
    session.order(Order::Interrupt);
    let turn = session.turn();
    assert_eq!(turn.status, TurnStatus::Interrupted, "{turn:?}");
    bench.assert_running(1);
    let id = session.send(again);
    session.accepted(id);
    let turn = session.turn();
    assert_eq!(turn.status, TurnStatus::Completed, "{turn:?}");
    assert!(turn.text.contains("still here"), "{turn:?}");
    session.order(Order::Finish);
    assert_eq!(session.end(), Ending::Exited(0));
    assert_eq!(session.turns(), 2);
}

pub(super) fn an_interrupt_leaves_it_alive(bench: &Bench<'_>) -> Verdict {
    let abilities = bench.runtime().abilities();
    if abilities.messages == Messages::Never || !abilities.interrupt {
        return skip("it cannot be interrupted");
    }
    let (busy, never) = (bench.path("busy"), bench.path("never"));
    let acts = [Act::Touch(&busy), Act::BusyUntil(&never)];
    let prompt = prompt!(bench, &acts, "never");
    interrupted(bench, &prompt, &prompt!(bench, &[], "still here"));
    Verdict::Passed
}

pub(super) fn an_interrupt_ends_a_tool(bench: &Bench<'_>) -> Verdict {
    let abilities = bench.runtime().abilities();
    if abilities.messages == Messages::Never || !abilities.interrupt {
        return skip("it cannot be interrupted");
    }
    let (busy, never) = (bench.path("busy"), bench.path("never"));
    let acts = [Act::Touch(&busy), Act::ToolUntil(&never)];
    let prompt = prompt!(bench, &acts, "never");
    interrupted(bench, &prompt, &prompt!(bench, &[], "still here"));
    Verdict::Passed
}
