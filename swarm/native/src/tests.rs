//! Conversations that are resumed from wherever their file ends.

use std::path::Path;

use serde_json::{Value, json};

use super::conversation::Conversation;
use super::model::{Answer, Block, Format, Stop, Tokens, Wire};

const WIRES: [Wire; 3] = [Wire::Anthropic, Wire::Chat, Wire::Responses];
const HEAD: &[u8] = b"{\"messages\":[";

fn answer(text: &str, calls: &[&str]) -> Answer {
    let mut blocks = vec![Block::text(text)];
    blocks.extend(calls.iter().map(|id| Block::ToolUse {
        id: (*id).to_owned(),
        name: "Bash".into(),
        input: json!({"command": "true"}),
    }));
    Answer {
        blocks,
        stop: Stop::End,
        tokens: Tokens::default(),
        malformed: Vec::new(),
    }
}

/// Some of everything.
fn talk(conversation: &mut Conversation) {
    conversation.say("do it", None).unwrap();
    conversation
        .answered(&answer("I try", &["a", "b"]))
        .unwrap();
    // The other way round than they were made.
    conversation.result("b", "x".repeat(450), false).unwrap();
    conversation.result("a", "no".into(), true).unwrap();
    conversation
        .say("hurry", Some(uuid::Uuid::from_u128(7)))
        .unwrap();
    conversation.answered(&answer("more", &["c"])).unwrap();
    conversation.result("c", "y".repeat(450), false).unwrap();
    conversation.answered(&answer("done", &[])).unwrap();
    conversation.say("and now?", None).unwrap();
}

fn request(conversation: &Conversation) -> Vec<u8> {
    conversation.request(HEAD, None).to_vec()
}

fn open(file: &Path, wire: Wire) -> Conversation {
    let session = file.to_string_lossy();
    let dir = file.parent().unwrap();
    let mut conversation = Conversation::open(&session, dir, Format(wire)).unwrap();
    conversation.settle().unwrap();
    conversation
}

/// Every call has exactly one result, in the very next message of Anthropic's form.
fn check_anthropic(bytes: &[u8]) {
    let json: Value = serde_json::from_slice(bytes).unwrap();
    let messages = json["messages"].as_array().unwrap();
    let ids = |message: Option<&Value>, kind: &str, key: &str| -> Vec<String> {
        let blocks = message.map(|message| &message["content"]);
        let blocks = blocks.and_then(Value::as_array).into_iter().flatten();
        let of_kind = blocks.filter(|block| block["type"] == kind);
        of_kind
            .map(|block| block[key].as_str().unwrap().to_owned())
            .collect()
    };
    for (at, message) in messages.iter().enumerate() {
        let called = ids(Some(message), "tool_use", "id");
        let answered = ids(messages.get(at + 1), "tool_result", "tool_use_id");
        assert_eq!(called, answered, "{json:#}");
    }
    assert_eq!(messages.last().unwrap()["role"], "user");
}

#[test]
fn every_beginning_of_a_file_is_a_conversation_that_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    let format = Format(Wire::Anthropic);
    let mut whole = Conversation::create(dir.path(), format).unwrap();
    talk(&mut whole);
    let bytes = std::fs::read(dir.path().join("conversation.jsonl")).unwrap();
    let other = tempfile::tempdir().unwrap();
    let file = other.path().join("conversation.jsonl");
    for end in 0..=bytes.len() {
        store::atomic::replace(
            other.path(),
            &file,
            &bytes[..end],
            store::atomic::Durability::Relaxed,
        )
        .unwrap();
        let mut again = open(&file, Wire::Anthropic);
        again.say("go on", None).unwrap();
        check_anthropic(&request(&again));
        let text = String::from_utf8(request(&again)).unwrap();
        let lines = bytes[..end].iter().filter(|byte| **byte == b'\n').count();
        let open_calls = match lines {
            2 => 2,
            3 | 6 => 1,
            _ => 0,
        };
        let told = text.matches("may or may not have had its effect").count();
        assert_eq!(told, open_calls, "{lines} lines: {text}");
        // The decision is written down, so that the next time is the same.
        let sent = request(&again);
        drop(again);
        assert_eq!(request(&open(&file, Wire::Anthropic)), sent);
    }
}

#[test]
fn a_resumed_conversation_sends_the_same_bytes() {
    for wire in WIRES {
        let dir = tempfile::tempdir().unwrap();
        let mut first = Conversation::create(dir.path(), Format(wire)).unwrap();
        talk(&mut first);
        let sent = request(&first);
        let session = first.session();
        let again = open(Path::new(&session), wire);
        assert_eq!(request(&again), sent, "{wire}");
        assert!(again.has_taken(&uuid::Uuid::from_u128(7)));
        assert_eq!(again.task(), "do it");
        // A copy begins with them, and leaves the first one alone.
        let other = tempfile::tempdir().unwrap();
        let mut copy = Conversation::fork(&session, None, other.path(), Format(wire)).unwrap();
        assert_eq!(request(&copy), sent, "{wire}");
        assert_ne!(copy.session(), session);
        copy.say("you are a copy", None).unwrap();
        assert_eq!(request(&open(Path::new(&session), wire)), sent, "{wire}");
    }
}

#[test]
fn long_results_are_left_out_one_half_at_a_time() {
    let dir = tempfile::tempdir().unwrap();
    let mut conversation = Conversation::create(dir.path(), Format(Wire::Chat)).unwrap();
    talk(&mut conversation);
    let length = request(&conversation).len();
    assert!(conversation.drop_results().unwrap());
    let shorter = request(&conversation);
    assert!(shorter.len() < length - 300);
    let session = conversation.session();
    assert_eq!(request(&open(Path::new(&session), Wire::Chat)), shorter);
    assert!(conversation.drop_results().unwrap());
    assert!(
        !conversation.drop_results().unwrap(),
        "nothing is left to leave out"
    );
    assert!(
        String::from_utf8(request(&conversation))
            .unwrap()
            .contains("do it")
    );
}

#[test]
fn two_agents_in_one_directory_have_files_of_their_own() {
    let dir = tempfile::tempdir().unwrap();
    let create = || Conversation::create(dir.path(), Format(Wire::Chat)).unwrap();
    let (first, second) = (create(), create());
    assert!(first.session().ends_with("/conversation.jsonl"));
    assert_ne!(first.session(), second.session());
}

#[test]
fn what_cannot_be_read_is_said() {
    let dir = tempfile::tempdir().unwrap();
    let open = |session: &str| {
        let opened = Conversation::open(session, dir.path(), Format(Wire::Chat));
        opened.unwrap_err().to_string()
    };
    assert!(open("nonsense").contains("not there; start a new agent"));
    let file = dir.path().join("conversation.jsonl");
    let damaged = b"{\"uuid\":\"00000000-0000-0000-0000-000000000000\"\n{}\n";
    let relaxed = store::atomic::Durability::Relaxed;
    store::atomic::replace(dir.path(), &file, damaged, relaxed).unwrap();
    assert!(open(&file.to_string_lossy()).contains("line 1 of"));
}
