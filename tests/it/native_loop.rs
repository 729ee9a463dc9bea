//! ccb's own loop and a model's answers: calls, limits, a full context, kills.

use std::path::Path;

use harness::model::{Step, prompt};
use harness::native_world::{NativeWorld, WIRES, error as reason, goes_on, results, stalls};
use serde_json::{Value, json};
use swarm::process::Ending;
use swarm::provider::{Prices, Wire};
use swarm::runtime::{Event, Order, Start, TurnStatus, Usage};

use crate::CCB;

fn world(wire: Wire) -> NativeWorld {
    NativeWorld::new(CCB, wire)
}

#[test]
fn a_call_that_makes_no_sense_is_answered_and_the_turn_goes_on() {
    for wire in WIRES {
        let world = world(wire);
        let broken = Step::default().and_raw_tool("Bash", "{\"command\": \"touch ");
        let list = Step::default().and_raw_tool("Bash", "[1, 2]");
        let unknown = Step::tool("Bahs", json!({"command": "touch x"}));
        let mut talk = world.follow(&[broken, list, unknown, Step::text("I see")]);
        let turn = talk.turn();
        assert_eq!(turn.status, TurnStatus::Completed, "{wire}: {turn:?}");
        let results = results(&talk);
        let wrong = ["is not JSON", "not an object", "no tool \"Bahs\""];
        for ((output, is_error), words) in results.iter().zip(wrong) {
            assert!(output.contains(words) && *is_error, "{wire}: {results:?}");
        }
        // The model sees the same.
        let told = world.requests()[3].conversation.clone();
        assert!(wrong.iter().all(|words| told.was_told(words)), "{told:?}");
        talk.finish();
    }
}

#[test]
fn a_model_that_repeats_itself_is_told_then_ended() {
    for wire in WIRES {
        let world = world(wire);
        let same = || Step::tool("NoSuchTool", json!({"path": "a"}));
        let steps: Vec<Step> = (0..40).map(|_| same()).collect();
        let mut talk = world.follow(&steps);
        let turn = talk.turn();
        assert_eq!(turn.status, TurnStatus::Failed, "{wire}: {turn:?}");
        assert!(
            reason(&turn).contains("repeated the same call of NoSuchTool 10 times"),
            "{turn:?}"
        );
        let told = |(text, _): &&(String, bool)| text.contains("this very call");
        assert_eq!(results(&talk).iter().filter(told).count(), 6);
        goes_on(&mut talk);
    }
}

#[test]
fn an_endless_turn_ends_at_its_limit() {
    let world = world(Wire::Anthropic);
    let steps: Vec<Step> = (0..40)
        .map(|n| Step::tool("NoSuchTool", json!({ "n": n })))
        .collect();
    let mut launch = world.launch(&prompt("Go.", &steps));
    launch.max_turns = Some(7);
    let mut talk = world.start(launch);
    let turn = talk.turn();
    assert_eq!(turn.status, TurnStatus::LimitReached, "{turn:?}");
    assert!(reason(&turn).contains("limit of 7 turns"), "{turn:?}");
    assert_eq!(world.requests().len(), 7);
    talk.finish();
}

#[test]
fn a_limit_on_cost_ends_it_before_the_next_request() {
    let world = world(Wire::Anthropic);
    let steps: Vec<Step> = (0..9)
        .map(|n| Step::tool("NoSuchTool", json!({ "n": n })).usage(1000, 100))
        .collect();
    let mut launch = world.launch(&prompt("Go.", &steps));
    launch.max_cost_usd = Some(0.01);
    if let Some(provider) = &mut launch.provider {
        // The prices of Anthropic's Sonnet: $0.0045 for each of these.
        provider.model = "claude-sonnet-4-5".into();
    }
    let mut talk = world.start(launch);
    let turn = talk.turn();
    assert_eq!(turn.status, TurnStatus::LimitReached, "{turn:?}");
    assert!(reason(&turn).contains("limit of $0.01"), "{turn:?}");
    assert_eq!(world.requests().len(), 3);
    talk.finish();
}

#[test]
fn a_model_without_a_price_costs_an_unknown_amount_and_has_no_limit_on_it() {
    let world = world(Wire::Anthropic);
    let used = Step::text("done").usage(1000, 100);
    let mut talk = world.follow(std::slice::from_ref(&used));
    assert_eq!(talk.turn().text, "done");
    let usage: Vec<Usage> = talk
        .seen
        .iter()
        .filter_map(|event| match event {
            Event::Usage(usage) => Some(*usage),
            _ => None,
        })
        .collect();
    assert_eq!(usage[0].known_cost(), None, "{usage:?}");
    assert_eq!(usage[0].unpriced_tokens, 1100);
    talk.finish();
    let requests = world.requests().len();
    let mut launch = world.launch(&prompt("Go.", std::slice::from_ref(&used)));
    launch.max_cost_usd = Some(1.0);
    let mut talk = world.start(launch);
    let turn = talk.turn();
    assert_eq!(turn.status, TurnStatus::Failed, "{turn:?}");
    let why = reason(&turn);
    assert!(
        why.contains("\"scripted-1\"")
            && why.contains("is not known")
            && why.contains("modelPrices"),
        "{why}"
    );
    assert_eq!(world.requests().len(), requests, "nothing was paid for");
    // A user who knows the price can set it, also to zero.
    let mut launch = world.launch(&prompt("Go.", &[used]));
    launch.max_cost_usd = Some(1.0);
    if let Some(provider) = &mut launch.provider {
        provider.prices = Some(Prices::default());
    }
    let mut talk = world.start(launch);
    assert_eq!(talk.turn().text, "done");
    talk.finish();
}

#[test]
fn a_full_context_is_summed_up_and_the_work_goes_on() {
    for wire in WIRES {
        let world = world(wire);
        let after = [Step::text("went on")];
        let summary = prompt("All that matters.", &after);
        let steps = [
            Step::tool("NoSuchTool", json!({"n": 1})).usage(90_000, 10),
            Step::text(&summary),
        ];
        let mut launch = world.launch(&prompt("The task.", &steps));
        if let Some(provider) = &mut launch.provider {
            provider.context_window = Some(100_000);
        }
        let mut talk = world.start(launch);
        let turn = talk.turn();
        assert_eq!(turn.text, "went on", "{wire}: {turn:?}");
        let requests = world.requests();
        assert_eq!(requests.len(), 3);
        assert!(requests[1].conversation.was_told("Write a summary"));
        // The new beginning holds the task and the summary, and nothing else.
        let last = &requests[2].conversation;
        assert!(last.was_told("The task.") && last.was_told("All that matters."));
        assert!(!last.was_told("no tool \"NoSuchTool\""), "{last:?}");
        let compaction: Vec<Value> = world
            .lines()
            .into_iter()
            .filter(|line| line["type"] == "compaction")
            .collect();
        assert_eq!(compaction.len(), 1);
        assert_eq!(compaction[0]["parentUuid"], Value::Null);
        assert!(stalls(&talk).iter().any(|why| why.contains("summarizes")));
        // It can be resumed from there.
        let session = talk.session().unwrap();
        talk.finish();
        let mut launch = world.launch(&prompt("More.", &[Step::text("again")]));
        launch.start = Start::Resume { session };
        let mut talk = world.start(launch);
        assert_eq!(talk.turn().text, "again");
        let requests = world.requests();
        let resumed = &requests[3].conversation;
        assert!(resumed.was_told("All that matters.") && resumed.was_told("More."));
        talk.finish();
    }
}

#[test]
fn a_context_that_cannot_be_made_shorter_ends_the_turn() {
    for wire in WIRES {
        let world = world(wire);
        let mut step = Step::http(400);
        let error = json!({ "type": "invalid_request_error", "code": "context_length_exceeded",
            "message": "prompt is too long: 9 tokens > 8 maximum" });
        step.body = Some(json!({ "error": error }));
        let mut talk = world.follow(&[step]);
        let turn = talk.turn();
        assert_eq!(turn.status, TurnStatus::Failed, "{wire}: {turn:?}");
        let why = reason(&turn);
        assert!(
            why.contains("does not fit into the model's context"),
            "{why}"
        );
        assert!(world.requests().len() <= 4, "it does not try for ever");
        talk.finish();
    }
}

#[test]
fn every_line_of_the_file_is_linked_to_the_one_before() {
    let world = world(Wire::Anthropic);
    let mut talk = world.follow(&[Step::tool("NoSuchTool", json!({})), Step::text("done")]);
    talk.turn();
    talk.finish();
    let lines = world.lines();
    let kinds: Vec<&str> = lines
        .iter()
        .filter_map(|line| line["type"].as_str())
        .collect();
    let expected = [
        "session",
        "prefix",
        "user",
        "assistant",
        "tool_result",
        "assistant",
        "turn",
    ];
    assert_eq!(kinds, expected);
    for pair in lines.windows(2) {
        assert_eq!(pair[1]["parentUuid"], pair[0]["uuid"]);
    }
}

/// A command that leaves a mark in `file` each time it runs.
fn mark(file: &Path) -> String {
    format!("echo done >> '{}'", file.display())
}

#[test]
fn killed_between_an_effect_and_its_line_it_says_so_and_does_nothing_twice() {
    for wire in WIRES {
        let world = world(wire);
        let file = world.path("cwd/effects");
        // The tool's effect is there, its result is not: the process that would write it is gone.
        let command = format!("{}; kill -9 $PPID", mark(&file));
        let steps = [Step::tool("Bash", json!({ "command": command }))];
        let mut talk = world.follow(&steps);
        assert_eq!(talk.end(), Ending::Signaled(9));
        let session = talk.session().unwrap();
        let kinds = |kind: &str| {
            let lines = world.lines();
            lines.iter().filter(|line| line["type"] == kind).count()
        };
        assert_eq!((kinds("assistant"), kinds("tool_result")), (1, 0));
        let mut launch = world.launch(&prompt("Go on.", &[Step::text("I looked")]));
        launch.start = Start::Resume {
            session: session.clone(),
        };
        let mut talk = world.start(launch);
        let turn = talk.turn();
        assert_eq!(turn.text, "I looked", "{wire}: {turn:?}");
        assert_eq!(talk.session(), Some(session));
        let last = world.requests().pop().unwrap();
        let told = last
            .conversation
            .was_told("may or may not have had its effect");
        assert!(told, "{wire}: {:?}", last.conversation);
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "done\n");
        talk.finish();
    }
}

#[test]
fn a_result_without_end_is_cut_for_everybody() {
    let world = world(Wire::Anthropic);
    let flood = "head -c 50000000 /dev/zero | tr '\\0' x";
    let steps = [
        Step::tool("Bash", json!({ "command": flood })),
        Step::text("enough"),
    ];
    let mut talk = world.follow(&steps);
    assert_eq!(talk.turn().text, "enough");
    let results = results(&talk);
    assert!(results[0].0.len() < 200_000, "{}", results[0].0.len());
    let length = |value: &Value| value.to_string().len();
    assert!(length(&world.requests()[1].body) < 400_000);
    let file = world.path("records/conversation.jsonl");
    assert!(std::fs::metadata(file).unwrap().len() < 400_000);
    talk.finish();
}

#[test]
fn calls_that_only_read_run_beside_each_other_and_others_in_order() {
    let world = world(Wire::Anthropic);
    let gate = world.path("cwd/gate");
    let wait = format!(
        "until [ -e '{}' ]; do :; done; echo 1 >> order",
        gate.display()
    );
    let after = format!("echo 2 >> order; touch '{}'", gate.display());
    let read = |name: &str| {
        let file = world.path("cwd").join(name);
        std::fs::write(&file, name).unwrap();
        json!({ "file_path": file })
    };
    let reads = Step::tool("Read", read("a")).and_tool("Read", read("b"));
    let writes = Step::tool("Bash", json!({ "command": after }))
        .and_tool("Bash", json!({ "command": wait }));
    let mut talk = world.follow(&[reads, writes, Step::text("done")]);
    assert_eq!(talk.turn().text, "done");
    // Both reads had begun before one of them had its result.
    let kinds: Vec<&str> = talk
        .seen
        .iter()
        .filter_map(|event| match event {
            Event::ToolUse { .. } => Some("use"),
            Event::ToolResult { .. } => Some("result"),
            _ => None,
        })
        .collect();
    let expected = [
        "use", "use", "result", "result", "use", "result", "use", "result",
    ];
    assert_eq!(kinds, expected);
    let order = std::fs::read_to_string(world.path("cwd/order")).unwrap();
    assert_eq!(order, "2\n1\n");
    talk.finish();
}

#[test]
fn where_no_summary_is_to_be_had_the_oldest_results_go() {
    for wire in WIRES {
        let world = world(wire);
        let long = |n: u64| {
            let command = format!("echo number {n}; seq 1 400");
            Step::tool("Bash", json!({ "command": command }))
        };
        let steps = [
            long(1).usage(10_000, 10),
            long(2).usage(95_000, 10),
            // Asked for a summary it says nothing; then the work continues.
            Step::default(),
        ];
        let mut launch = world.launch(&prompt("The task.", &steps));
        if let Some(provider) = &mut launch.provider {
            provider.context_window = Some(100_000);
        }
        let mut talk = world.start(launch);
        talk.until("a request after that", |event| match event {
            Event::Stalled { why } if why.contains("dropping the oldest") => Some(()),
            _ => None,
        });
        world
            .server
            .wait_for(harness::runs::LONG, "a fourth request", |all| all.len() > 3);
        let requests = world.requests();
        let last = &requests[3].conversation;
        assert!(
            last.was_told("was dropped to make room"),
            "{wire}: {last:?}"
        );
        assert!(!last.was_told("number 1\n1\n2"), "{wire}");
        assert!(last.was_told("number 2\n1\n2"), "{wire}");
        let dropped: Vec<Value> = world
            .lines()
            .into_iter()
            .filter(|line| line["type"] == "dropped")
            .collect();
        assert_eq!(dropped.len(), 1, "{dropped:?}");
        talk.order(Order::Stop);
        talk.end();
    }
}

#[test]
fn a_stop_ends_the_command_that_runs() {
    let world = world(Wire::Anthropic);
    let begun = world.path("cwd/begun");
    let command = format!("touch '{}'; sleep 1000", begun.display());
    let mut talk = world.follow(&[Step::tool("Bash", json!({ "command": command }))]);
    harness::wait_until(harness::runs::LONG, "the command", || begun.exists());
    talk.order(Order::Stop);
    assert_eq!(talk.end(), Ending::Exited(0));
    harness::wait_until(harness::runs::LONG, "nothing to be left", || {
        talk.left_behind().is_empty()
    });
}
