//! Copies of conversations: what they share with their original, byte for byte.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use swarm::fork::{Moved, directive};
use uuid::Uuid;

use super::conversation::{Conversation, Prefix};
use super::fork::{ForkPoint, fork_point};
use super::journal::Entry;
use super::model::{Answer, Block, Format, Stop, Tokens, Wire};

const WIRES: [Wire; 3] = [Wire::Anthropic, Wire::Chat, Wire::Responses];
const HEAD: &[u8] = b"{\"messages\":[";

fn answer(text: &str, calls: &[&str]) -> Answer {
    let mut blocks = vec![Block::text(text)];
    blocks.extend(calls.iter().map(|id| Block::ToolUse {
        id: (*id).to_owned(),
        name: "Agent".into(),
        // A number that is not the same after a sloppy reading.
        input: json!({"z": 0.1 + 0.2, "a": 1e300, "n": u64::MAX}),
    }));
    Answer {
        blocks,
        stop: Stop::End,
        tokens: Tokens::default(),
        malformed: Vec::new(),
    }
}

/// A parent that has made three calls, the second of which has its result.
fn parent(dir: &Path, wire: Wire) -> (Conversation, Vec<u8>) {
    let mut parent = Conversation::create(dir, Format(wire)).unwrap();
    parent
        .begins_with(Prefix {
            system: "You lead.".into(),
            tools: vec![json!({"name": "Agent"})],
            plain: false,
        })
        .unwrap();
    for turn in 0..4 {
        parent.say(&format!("step {turn}"), None).unwrap();
        parent.answered(&answer("well", &["early"])).unwrap();
        parent.result("early", "fine".into(), false).unwrap();
    }
    parent.say("fan out", None).unwrap();
    let sent = parent.request(HEAD, None).to_vec();
    parent
        .answered(&answer("five of them", &["c1", "c2", "c3"]))
        .unwrap();
    parent.result("c2", "started".into(), false).unwrap();
    (parent, sent)
}

fn session(of: &str) -> Entry {
    Entry::Session {
        v: 1,
        cwd: PathBuf::from("/w"),
        model: "m".into(),
        provider: "p".into(),
        fork_of: Some(of.to_owned()),
    }
}

fn fork(of: &str, at: Option<Uuid>, dir: &Path, wire: Wire, order: &str) -> Conversation {
    let mut fork = Conversation::fork(of, at, dir, Format(wire)).unwrap();
    fork.happened(session(of)).unwrap();
    fork.settle().unwrap();
    fork.say(&directive(order, &Moved::default()), None)
        .unwrap();
    fork
}

fn same(one: &[u8], two: &[u8]) -> usize {
    one.iter().zip(two).take_while(|(a, b)| a == b).count()
}

/// The offset at which the last text of a request begins.
fn last_text(request: &[u8]) -> usize {
    let text = std::str::from_utf8(request).unwrap();
    text.rfind("<fork-boilerplate>").unwrap()
}

#[test]
fn copies_of_one_answer_differ_in_their_order_alone() {
    for wire in WIRES {
        let dir = tempfile::tempdir().unwrap();
        let (mut parent, sent) = parent(dir.path(), wire);
        let name = parent.session();
        let at = fork_point(&name, dir.path(), &ForkPoint::Call("c3".into())).unwrap();
        let others: Vec<_> = (0..5).map(|_| tempfile::tempdir().unwrap()).collect();
        let mut requests = Vec::new();
        for (n, other) in others.iter().enumerate() {
            let order = format!("{n} look at it");
            let fork = fork(&name, Some(at), other.path(), wire, &order);
            requests.push(fork.request(HEAD, None).to_vec());
            // Its parent continues meanwhile.
            parent.result("c1", format!("started {n}"), false).unwrap();
        }
        // All of the parent's request, to the byte, is the beginning of each.
        let shared = sent.len() - sent.iter().rev().take_while(|b| b"]}".contains(b)).count();
        for request in &requests {
            assert!(same(request, &sent) >= shared, "{wire}");
            let text = std::str::from_utf8(request).unwrap();
            assert_eq!(
                text.matches("You do not get the result.").count(),
                3,
                "{wire}"
            );
            assert!(!text.contains("\"started"), "{wire}: {text}");
            serde_json::from_slice::<Value>(request).unwrap();
        }
        for request in &requests[1..] {
            let differs = same(request, &requests[0]);
            let order = requests[0].len() - "0 look at it\"}]}]}".len();
            assert!(differs >= last_text(request), "{wire}");
            assert!(differs >= order.min(request.len() - 16) - 16, "{wire}");
        }
    }
}

#[test]
fn the_cache_is_marked_where_the_parent_marked_it_and_before_the_order() {
    let dir = tempfile::tempdir().unwrap();
    let (parent, sent) = parent(dir.path(), Wire::Anthropic);
    let other = tempfile::tempdir().unwrap();
    let name = parent.session();
    let at = fork_point(&name, dir.path(), &ForkPoint::Call("c1".into())).unwrap();
    let mut fork = fork(&name, Some(at), other.path(), Wire::Anthropic, "go");
    let marks = |bytes: &[u8]| -> Vec<(usize, usize)> {
        let json: Value = serde_json::from_slice(bytes).unwrap();
        let messages = json["messages"].as_array().unwrap().clone();
        let mut marks = Vec::new();
        for (at, message) in messages.iter().enumerate() {
            for (block, content) in message["content"].as_array().unwrap().iter().enumerate() {
                if !content["cache_control"].is_null() {
                    marks.push((at, block));
                }
            }
        }
        marks
    };
    let before = marks(&sent);
    assert_eq!(before.len(), 2);
    let after = marks(&fork.request(HEAD, None));
    // With that of the system's text there are four, which is all that the service takes.
    assert_eq!(after[..2], before[..]);
    assert_eq!(after[2], (before[1].0 + 2, 2), "behind the third result");
    assert_eq!(after.len(), 3);
    // A second try sends the same; so does one that was killed before the first answer.
    let first = fork.request(HEAD, None);
    let again = fork.session();
    drop(fork);
    fork = Conversation::open(&again, other.path(), Format(Wire::Anthropic)).unwrap();
    fork.settle().unwrap();
    assert_eq!(fork.request(HEAD, None), first);
    // Then it is a conversation like any other.
    fork.answered(&answer("I see", &[])).unwrap();
    fork.say("more", None).unwrap();
    assert_eq!(marks(&fork.request(HEAD, None)).len(), 2);
}

#[test]
fn a_copy_can_be_made_at_every_line() {
    for wire in WIRES {
        let dir = tempfile::tempdir().unwrap();
        let (parent, _) = parent(dir.path(), wire);
        let name = parent.session();
        let text = std::fs::read_to_string(&name).unwrap();
        for (number, line) in text.lines().enumerate() {
            let line: Value = serde_json::from_str(line).unwrap();
            let at: Uuid = line["uuid"].as_str().unwrap().parse().unwrap();
            let point = ForkPoint::Line(at);
            assert_eq!(fork_point(&name, dir.path(), &point), Ok(at));
            let other = tempfile::tempdir().unwrap();
            let fork = fork(&name, Some(at), other.path(), wire, "go");
            let copied = std::fs::read_to_string(fork.session()).unwrap();
            let lines: Vec<&str> = text.lines().take(number + 1).collect();
            assert!(copied.starts_with(&lines.join("\n")), "{wire} {number}");
            let request = fork.request(HEAD, None);
            let request: Value = serde_json::from_slice(&request).unwrap();
            assert!(request.to_string().contains("fork-boilerplate"));
        }
        // Without a given line, the copy reaches up to the last line of the file.
        let last: Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
        let newest = fork_point(&name, dir.path(), &ForkPoint::Newest).unwrap();
        assert_eq!(last["uuid"], newest.to_string());
    }
}

#[test]
fn a_copy_is_not_copied_and_a_line_that_is_not_there_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let (parent, _) = parent(dir.path(), Wire::Chat);
    let name = parent.session();
    let other = tempfile::tempdir().unwrap();
    let copy = fork(&name, None, other.path(), Wire::Chat, "go");
    let refused = |point: &ForkPoint| fork_point(&copy.session(), dir.path(), point).unwrap_err();
    assert!(refused(&ForkPoint::Newest).contains("a fork cannot fork"));
    let third = tempfile::tempdir().unwrap();
    let error = Conversation::fork(&copy.session(), None, third.path(), Format(Wire::Chat));
    assert!(error.unwrap_err().to_string().contains("cannot fork"));
    // The mark is lost; the order is left.
    let text = std::fs::read_to_string(copy.session()).unwrap();
    let unmarked: Vec<&str> = text
        .lines()
        .filter(|line| !line.contains("forkOf"))
        .collect();
    let file = other.path().join("unmarked.jsonl");
    let relaxed = store::atomic::Durability::Relaxed;
    let bytes = unmarked.join("\n") + "\n";
    store::atomic::replace(other.path(), &file, bytes.as_bytes(), relaxed).unwrap();
    let file = file.to_string_lossy();
    let error = fork_point(&file, other.path(), &ForkPoint::Newest).unwrap_err();
    assert!(error.contains("cannot fork"), "{error}");
    let error = Conversation::fork(&file, None, third.path(), Format(Wire::Chat));
    assert!(error.unwrap_err().to_string().contains("cannot fork"));
    // Others may speak of the tag.
    let spoken = tempfile::tempdir().unwrap();
    let mut about = Conversation::create(spoken.path(), Format(Wire::Chat)).unwrap();
    about.say("What is a <fork-boilerplate>?", None).unwrap();
    assert!(fork_point(&about.session(), spoken.path(), &ForkPoint::Newest).is_ok());
    let nowhere = ForkPoint::Line(Uuid::nil());
    let error = fork_point(&name, dir.path(), &nowhere).unwrap_err();
    assert!(error.contains(&Uuid::nil().to_string()), "{error}");
    let error = Conversation::fork(&name, Some(Uuid::nil()), third.path(), Format(Wire::Chat));
    assert!(error.unwrap_err().to_string().contains("has no line"));
    let nothing = fork_point("/nowhere/x.jsonl", dir.path(), &ForkPoint::Newest);
    assert!(nothing.unwrap_err().contains("not there"));
}

#[test]
fn a_summary_begins_a_new_prefix_and_a_copys_task_is_its_order() {
    for wire in WIRES {
        let dir = tempfile::tempdir().unwrap();
        let (mut parent, before) = parent(dir.path(), wire);
        parent.settle().unwrap();
        let (text, why) = ("A summary.".to_owned(), "full".to_owned());
        parent.happened(Entry::Compaction { text, why }).unwrap();
        let sent = parent.request(HEAD, None).to_vec();
        assert!(same(&sent, &before) < before.len() / 4, "{wire}");
        parent.answered(&answer("on", &["d"])).unwrap();
        let name = parent.session();
        let other = tempfile::tempdir().unwrap();
        let copy = fork(&name, None, other.path(), wire, "the order");
        let request = copy.request(HEAD, None);
        let shared = sent.len() - sent.iter().rev().take_while(|b| b"]}".contains(b)).count();
        assert!(same(&request, &sent) >= shared, "{wire}");
        assert!(copy.task().ends_with("the order"), "{}", copy.task());
        // Before the summary there is the old prefix.
        let text = std::fs::read_to_string(&name).unwrap();
        let line = text
            .lines()
            .find(|line| line.contains("five of them"))
            .unwrap();
        let line: Value = serde_json::from_str(line).unwrap();
        let at = line["uuid"].as_str().unwrap().parse().unwrap();
        let other = tempfile::tempdir().unwrap();
        let copy = fork(&name, Some(at), other.path(), wire, "go back");
        let shared = before.len()
            - before
                .iter()
                .rev()
                .take_while(|b| b"]}".contains(b))
                .count();
        assert!(same(&copy.request(HEAD, None), &before) >= shared, "{wire}");
    }
}
