//! Mail of earlier formats must load for ever; files of a later format are not written to.

use std::path::Path;

use harness::TestHome;
use serde_json::{Value, json};

use crate::{CCB, MAIL_WORKER};

/// A home whose team is a copy of `tests/fixtures/mailbox-v1`.
fn home() -> TestHome {
    let home = TestHome::in_memory(CCB);
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/mailbox-v1");
    copy(&fixture, &home.team_dir());
    home
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let dest = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &dest);
        } else {
            std::fs::copy(entry.path(), &dest).unwrap();
        }
    }
}

fn column<'v>(listing: &'v Value, key: &str) -> Vec<&'v Value> {
    let messages = listing["messages"].as_array().unwrap();
    messages.iter().map(|message| &message[key]).collect()
}

#[test]
fn mail_of_format_1_loads() {
    let home = home();
    let all = home.ok(&["mail", "inbox", "--all", "--as", "bob"]);
    assert_eq!(column(&all, "seq"), [1, 2, 3, 4, 5], "with the archive");
    let states = column(&all, "state");
    assert_eq!(
        states,
        [
            "acknowledged",
            "acknowledged",
            "queued",
            "delivered",
            "queued"
        ]
    );
    assert_eq!(all["acked"], 2);
    assert_eq!(
        all["rejected"], 2,
        "the one from before, and the one in the log"
    );
    assert_eq!(
        all["messages"][3]["text"],
        "Urgent: \"quotes\", <tags> & emoji 🦀"
    );
    let read = home.ok(&["mail", "read", "--as", "bob"]);
    assert_eq!(column(&read, "seq"), [4, 3, 5]);
    assert_eq!(read["messages"][0]["redelivered"], true);
    assert_eq!(read["messages"][1].get("redelivered"), None);
    assert_eq!(
        home.ok(&["mail", "send", "bob", "next"])["message"]["seq"],
        6
    );
    // The broadcast is not copied again, the notification not sent again.
    let sent = home.ok(&["mail", "send", "*", "more"]);
    assert_eq!(sent["message"]["broadcast"], 2);
    let args = ["worker", "notify", "run-1"];
    let again = harness::mail_command(&home, MAIL_WORKER, &args).output();
    assert_eq!(again.unwrap().stdout, b"already there\n");
    let lead = home.ok(&["mail", "inbox", "--as", "team-lead"]);
    assert_eq!(column(&lead, "seq"), [2, 3, 4, 6], "5 has expired");
    let kinds = column(&lead, "kind");
    let expected = [
        "plan_approval_request",
        "task_notification",
        "idle_notification",
        "message",
    ];
    assert_eq!(kinds, expected);
    let requests = home.ok(&["mail", "requests", "--all"]);
    assert_eq!(requests["requests"][0]["state"], "pending");
    assert_eq!(requests["requests"][1]["answer"]["feedback"], "smaller");
    let id = requests["requests"][0]["id"].as_str().unwrap();
    home.ok(&["mail", "approve", id, "--as", "team-lead"]);
}

#[test]
fn later_formats_are_read_but_not_written() {
    let newer = |file: &str| {
        let home = home();
        let path = home.team_dir().join(file);
        let text = std::fs::read_to_string(&path).unwrap();
        // Complete lines only: a torn one has no format.
        let end = text.rfind('\n').map_or(text.len(), |end| end + 1);
        let text = text[..end].replace("\"v\":1", "\"v\":2");
        let text = text
            .replace("\"v\": 1", "\"v\": 2")
            .replace("not a message\n", "");
        std::fs::write(&path, &text).unwrap();
        (home, path, text)
    };
    for (file, command) in [
        ("inboxes/bob/log.jsonl", &["mail", "send", "bob", "x"][..]),
        ("inboxes/bob/cursor.json", &["mail", "read", "--as", "bob"]),
        ("inboxes/bob/marks.jsonl", &["mail", "send", "*", "x"]),
        ("broadcast.jsonl", &["mail", "send", "*", "x"]),
    ] {
        let (home, path, text) = newer(file);
        let error = home.fails(2, command);
        assert_eq!(error["error"]["kind"], "newer_version", "{file}");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), text, "{file}");
        let inbox = home.ok(&["mail", "inbox", "--as", "bob"]);
        assert_eq!(column(&inbox, "seq"), [3, 4, 5], "{file}");
    }
    let id = "01a1e2e0-d585-7cbc-9b86-f39f96cf2135";
    let (home, path, text) = newer(&format!("requests/{id}.json"));
    let error = home.fails(2, &["mail", "approve", id, "--as", "team-lead"]);
    assert_eq!(error["error"]["kind"], "newer_version");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
    let requests = home.ok(&["mail", "requests"]);
    assert_eq!(
        requests["requests"][0]["body"],
        json!({"plan": "1. write 2. test"})
    );
}

/// Another tool keeps its own files in the same place.
#[test]
fn files_of_other_tools_are_left_alone() {
    let home = home();
    let path = home.team_dir().join("inboxes/bob.json");
    let theirs = "[{\"from\":\"x\",\"text\":\"y\",\"read\":false}]";
    std::fs::write(&path, theirs).unwrap();
    home.ok(&["mail", "send", "bob", "x"]);
    home.ok(&["mail", "read", "--as", "bob"]);
    assert_eq!(std::fs::read_to_string(&path).unwrap(), theirs);
}
