//! ccb's own loop and its model: every protocol, every refusal, every broken answer.

use std::path::Path;

use harness::model::{Outcome, Recorded, Step, prompt};
use harness::native_world::{KEY, NativeWorld, WIRES, error, goes_on, results, send, stalls};
use serde_json::json;
use swarm::process::Ending;
use swarm::provider::Wire;
use swarm::runtime::{Event, Order, TurnStatus};

use crate::CCB;

fn world(wire: Wire) -> NativeWorld {
    NativeWorld::new(CCB, wire)
}

#[test]
fn what_is_refused_for_good_is_asked_once_and_says_what_to_do() {
    for wire in WIRES {
        for (status, hint) in [
            (401, "rejected the key in SCRIPTED_KEY"),
            (
                403,
                "does not allow this key to use the model \"scripted-1\"",
            ),
            (404, "has no model \"scripted-1\""),
        ] {
            let world = world(wire);
            let mut talk = world.follow(&[Step::http(status)]);
            let turn = talk.turn();
            assert_eq!(turn.status, TurnStatus::Failed, "{turn:?}");
            let why = error(&turn);
            assert!(
                why.contains(hint) && why.contains(&status.to_string()),
                "{why}"
            );
            assert!(why.contains("ccb doctor --probe"), "{why}");
            assert_eq!(world.requests().len(), 1, "{wire} {status}");
            goes_on(&mut talk);
        }
    }
}

#[test]
fn a_key_that_is_not_there_is_named() {
    let world = world(Wire::Anthropic);
    let mut launch = world.launch("hello");
    launch.env.retain(|(name, _)| name != "SCRIPTED_KEY");
    let mut talk = world.start(launch);
    let turn = talk.turn();
    assert_eq!(turn.status, TurnStatus::Failed, "{turn:?}");
    assert!(error(&turn).contains("SCRIPTED_KEY is not set"), "{turn:?}");
    assert_eq!(world.requests().len(), 0);
}

#[test]
fn nobody_at_the_address_is_said_with_the_address() {
    let world = world(Wire::Chat);
    let mut launch = world.launch("hello");
    if let Some(provider) = &mut launch.provider {
        // A port without a server, and a password that must not be shown.
        provider.base_url = "http://me:hidden@127.0.0.1:1/v1".into();
    }
    let mut talk = world.start(launch);
    talk.until("a wait", |event| match event {
        Event::Stalled { why } => Some(why),
        _ => None,
    });
    let why = stalls(&talk).join("\n");
    assert!(
        why.contains("127.0.0.1:1") && !why.contains("hidden"),
        "{why}"
    );
    talk.order(Order::Stop);
    assert_eq!(talk.end(), Ending::Exited(0));
}

#[test]
fn who_has_too_much_to_do_is_asked_again() {
    for wire in WIRES {
        for status in [429, 529, 500] {
            let world = world(wire);
            let mut talk = world.follow(&[Step::text("at last").http_first(status, 2)]);
            let turn = talk.turn();
            assert_eq!(turn.status, TurnStatus::Completed, "{turn:?}");
            assert_eq!(world.requests().len(), 3, "{wire} {status}");
            let stalls = stalls(&talk);
            assert_eq!(stalls.len(), 2, "{stalls:?}");
            assert!(stalls[0].contains("retrying in"), "{stalls:?}");
            talk.finish();
        }
    }
}

#[test]
fn retry_after_is_obeyed_or_becomes_a_pause() {
    for wire in WIRES {
        let short = world(wire);
        let step = Step::text("at last").http_first(429, 1).retry_after(1);
        let mut talk = short.follow(&[step]);
        assert_eq!(talk.turn().status, TurnStatus::Completed);
        let stalls = stalls(&talk);
        assert!(stalls[0].contains("retrying in 1."), "{stalls:?}");
        talk.finish();
        let long = world(wire);
        let mut talk = long.follow(&[Step::http(429).retry_after(3600)]);
        let turn = talk.turn();
        assert_eq!(turn.status, TurnStatus::Quota, "{turn:?}");
        assert!(error(&turn).contains("retry after 3600 s"), "{turn:?}");
        assert_eq!(long.requests().len(), 1);
        goes_on(&mut talk);
    }
}

#[test]
fn a_quota_that_is_used_up_is_no_rush() {
    for wire in WIRES {
        let world = world(wire);
        let mut step = Step::http(429);
        let error = json!({ "type": "insufficient_quota", "code": "insufficient_quota",
            "message": "You exceeded your current quota" });
        step.body = Some(json!({ "error": error }));
        let mut talk = world.follow(&[step]);
        let turn = talk.turn();
        assert_eq!(turn.status, TurnStatus::Quota, "{turn:?}");
        assert_eq!(world.requests().len(), 1);
        talk.finish();
    }
}

#[test]
fn a_stream_that_breaks_off_is_asked_for_again() {
    for wire in WIRES {
        for step in [
            Step::text("one").drop_stream().times(1),
            Step::tool("NoSuchTool", json!({"n": 1}))
                .drop_stream()
                .times(1),
            Step::text("one").stream_error("overloaded_error").times(1),
        ] {
            let world = world(wire);
            let calls = step.calls().len();
            let mut talk = world.follow(&[step, Step::text("two")]);
            let turn = talk.turn();
            assert_eq!(turn.status, TurnStatus::Completed, "{wire}: {turn:?}");
            // Nothing of the first try is left: each call was made once.
            assert_eq!(results(&talk).len(), calls, "{wire}");
            let requests = world.requests();
            assert_eq!(requests[0].outcome, Some(Outcome::Cut));
            assert_eq!(requests.len(), 2 + calls);
            assert_eq!(requests[0].body, requests[1].body, "{wire}");
            talk.finish();
        }
    }
}

#[test]
fn a_proxy_may_hold_an_answer_back() {
    for wire in WIRES {
        let world = world(wire);
        let step = Step::tool("NoSuchTool", json!({})).buffered();
        let mut talk = world.follow(&[step, Step::text("all at once").buffered()]);
        let turn = talk.turn();
        assert_eq!(turn.text, "all at once", "{wire}: {turn:?}");
        talk.finish();
    }
}

#[test]
fn answers_without_words_and_without_end_have_an_outcome() {
    for (wire, too_long, refusal) in [
        (Wire::Anthropic, "max_tokens", "refusal"),
        (Wire::Chat, "length", "content_filter"),
        (Wire::Responses, "max_output_tokens", "content_filter"),
    ] {
        let empty = world(wire);
        let mut talk = empty.follow(&[Step::default(), Step::default(), Step::default()]);
        let turn = talk.turn();
        assert_eq!(turn.status, TurnStatus::Failed, "{wire}: {turn:?}");
        assert!(error(&turn).contains("was empty 3 times"), "{turn:?}");
        goes_on(&mut talk);
        let long = world(wire);
        let step = || Step::text("and so on").stop(too_long);
        let mut talk = long.follow(&[step(), step(), step()]);
        let turn = talk.turn();
        assert_eq!(turn.status, TurnStatus::Failed, "{wire}: {turn:?}");
        assert!(
            error(&turn).contains("reached the length limit"),
            "{turn:?}"
        );
        goes_on(&mut talk);
        let in_call = world(wire);
        let step = Step::default()
            .and_raw_tool("Bash", "{\"command\": \"touch x")
            .stop(too_long);
        let mut talk = in_call.follow(&[step, Step::text("in parts, then")]);
        assert_eq!(talk.turn().status, TurnStatus::Completed, "{wire}");
        let results = results(&talk);
        assert!(
            results[0].0.contains("in the middle of this call"),
            "{results:?}"
        );
        talk.finish();
        let refused = world(wire);
        let mut talk = refused.follow(&[Step::text("no").stop(refusal)]);
        let turn = talk.turn();
        assert_eq!(turn.status, TurnStatus::Failed, "{wire}: {turn:?}");
        assert!(error(&turn).contains("refused to continue"), "{turn:?}");
        talk.finish();
    }
}

#[test]
fn an_interrupt_closes_the_connection() {
    for wire in WIRES {
        let world = world(wire);
        let mut talk = world.follow(&[Step::text("x").hang()]);
        world
            .server
            .wait_for(harness::runs::LONG, "a request", |all| !all.is_empty());
        talk.order(Order::Interrupt);
        assert_eq!(talk.turn().status, TurnStatus::Interrupted);
        assert_eq!(world.requests()[0].outcome, Some(Outcome::AskerGone));
        goes_on(&mut talk);
    }
}

#[test]
fn what_it_sends_is_the_same_bytes_each_time() {
    for wire in WIRES {
        let world = world(wire);
        let calls = (0..4).map(|n| Step::tool("NoSuchTool", json!({ "n": n })));
        let steps: Vec<Step> = calls.chain([Step::text("done")]).collect();
        let mut talk = world.follow(&steps);
        talk.turn();
        talk.finish();
        let bodies: Vec<String> = world
            .requests()
            .iter()
            .map(|request| request.body.to_string())
            .map(|body| body.replace(r#","cache_control":{"type":"ephemeral"}"#, ""))
            .collect();
        for pair in bodies.windows(2) {
            let before = pair[0].trim_end_matches(['}', ']']);
            assert!(
                pair[1].starts_with(before),
                "{wire}\n{}\n{}",
                pair[0],
                pair[1]
            );
        }
    }
}

/// The files below `dir` that contain `word`.
fn mentions(dir: &Path, word: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(mentions(&path, word));
        } else if let Ok(bytes) = std::fs::read(&path)
            && bytes
                .windows(word.len())
                .any(|part| part == word.as_bytes())
        {
            found.push(path.display().to_string());
        }
    }
    found
}

#[test]
fn the_key_is_in_no_file_and_no_event() {
    for wire in WIRES {
        let world = world(wire);
        let mut refused = Step::http(401);
        // Some services repeat their input. The script does not hold it: the number of the request,
        // 1, makes it whole.
        let message = format!("the key {} is wrong", KEY.replacen('1', "{{n}}", 1));
        refused.body = Some(json!({ "error": { "message": message } }));
        let mut talk = world.follow(&[refused]);
        let turn = talk.turn();
        assert!(
            error(&turn).contains("the key [redacted] is wrong"),
            "{turn:?}"
        );
        // Nor do its commands have it, or its results if they find it somewhere.
        let look = "env; cat /proc/$PPID/environ | tr '\\0' '\\n'; true";
        let look = Step::tool("Bash", json!({ "command": look }));
        send(&mut talk, &prompt("Again.", &[look, Step::text("fine")]));
        assert_eq!(talk.turn().text, "fine");
        let results = results(&talk);
        assert!(results[0].0.contains("PATH="), "{results:?}");
        talk.finish();
        assert_eq!(mentions(world.dir.path(), KEY), [""; 0]);
        let seen = format!("{:?}", talk.seen);
        assert!(!seen.contains(KEY), "{seen}");
        let sent = world.requests()[0].headers.clone();
        assert!(
            sent.iter().any(|(_, value)| value.contains(KEY)),
            "it was used"
        );
    }
}

#[test]
fn who_cannot_think_harder_is_asked_without() {
    for wire in WIRES {
        let world = world(wire);
        let mut step = Step::text("plainly").http_first(400, 1);
        let message = "this model does not support thinking, reasoning or effort";
        step.body = Some(json!({ "error": { "type": "invalid_request", "message": message } }));
        let mut launch = world.launch(&prompt("Go.", &[step]));
        launch.effort = Some("high".into());
        let mut talk = world.start(launch);
        assert_eq!(talk.turn().text, "plainly", "{wire}");
        let requests = world.requests();
        let asks = |request: &Recorded| {
            let keys = ["thinking", "reasoning_effort", "reasoning"];
            keys.iter().any(|key| !request.body[*key].is_null())
        };
        assert_eq!([asks(&requests[0]), asks(&requests[1])], [true, false]);
        assert!(stalls(&talk)[0].contains("without `effort`"));
        talk.finish();
    }
}

#[test]
fn silence_is_not_waited_out_for_ever() {
    for wire in WIRES {
        let world = world(wire);
        let go = world.path("go");
        let mut launch = world.launch(&prompt("Go.", &[Step::text("late").hang_until(&go)]));
        if let Some(provider) = &mut launch.provider {
            provider.idle_timeout_ms = Some(300);
        }
        let mut talk = world.start(launch);
        let why = talk.until("a wait", |event| match event {
            Event::Stalled { why } => Some(why),
            _ => None,
        });
        assert!(why.contains("sent nothing for too long"), "{why}");
        std::fs::write(&go, "").unwrap();
        assert_eq!(talk.turn().text, "late", "{wire}");
        assert_eq!(world.requests()[0].outcome, Some(Outcome::AskerGone));
        talk.finish();
    }
}
