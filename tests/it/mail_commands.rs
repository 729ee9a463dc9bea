//! The answers and exit codes of `ccb mail`.

use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::time::Duration;

use harness::{Answer, TestHome, wait_until};
use serde_json::{Value, json};

use crate::{CCB, MAIL_WORKER};

fn home() -> TestHome {
    let home = TestHome::in_memory(CCB);
    home.team(&["team-lead", "Bob", "carol"]);
    home
}

fn ask(home: &TestHome) -> String {
    let args = ["worker", "ask", "bob", "team-lead", "a plan"];
    let output = harness::mail_command(home, MAIL_WORKER, &args)
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    Answer::of(output).stdout.trim().to_owned()
}

fn texts(listing: &Value) -> Vec<&str> {
    let messages = listing["messages"].as_array().unwrap().iter();
    messages.map(|m| m["text"].as_str().unwrap()).collect()
}

#[test]
fn from_sending_to_acknowledging() {
    let home = home();
    let sent = home.ok(&["mail", "send", "bob", "hello\nworld"]);
    let message = &sent["message"];
    assert_eq!(message["to"], "Bob", "as the roster spells it");
    assert_eq!(message["from"], "user");
    assert_eq!(
        (&message["kind"], &message["priority"]),
        (&json!("message"), &json!("next"))
    );
    assert_eq!(message["summary"], "hello", "the first line");
    assert_eq!(message["seq"], 1);
    home.ok(&[
        "mail",
        "send",
        "a-Bob",
        "urgent",
        "--priority",
        "now",
        "--as",
        "carol",
        "--summary",
        "U",
        "--reply-to",
        message["id"].as_str().unwrap(),
    ]);
    let stdin = home.run_with_input(&["--json", "mail", "send", "bob@board", "-"], b"piped\n");
    assert_eq!(stdin.json()["message"]["text"], "piped");

    let inbox = home.ok(&["mail", "inbox", "--as", "bob"]);
    assert_eq!(texts(&inbox), ["hello\nworld", "urgent", "piped"]);
    assert_eq!(inbox["acked"], 0);
    assert_eq!(inbox["messages"][0]["state"], "queued");
    let answer = &inbox["messages"][1];
    assert_eq!(answer["inReplyTo"], message["id"]);
    assert_eq!(
        (&answer["from"], &answer["summary"]),
        (&json!("carol"), &json!("U"))
    );

    let read = home.ok(&["mail", "read", "--as", "bob"]);
    assert_eq!(
        texts(&read),
        ["urgent", "hello\nworld", "piped"],
        "by priority"
    );
    assert_eq!(read["messages"][0].get("redelivered"), None);
    let inbox = home.ok(&["mail", "inbox", "--as", "bob"]);
    assert_eq!(inbox["messages"][2]["state"], "delivered");
    let again = home.ok(&["mail", "read", "2", "--as", "bob"]);
    assert_eq!(again["messages"][0]["redelivered"], true);
    assert_eq!(again["messages"][0]["id"], answer["id"]);

    let acked = home.ok(&["mail", "ack", "2", "--as", "bob"]);
    assert_eq!(
        acked,
        json!({"acked": 2, "acknowledged": [1, 2], "unread": []})
    );
    assert_eq!(
        texts(&home.ok(&["mail", "inbox", "--as", "bob"])),
        ["piped"]
    );
    let all = home.ok(&["mail", "inbox", "--all", "--as", "bob"]);
    assert_eq!(all["messages"].as_array().unwrap().len(), 3);
    let error = home.fails(4, &["mail", "read", "1", "--as", "bob"]);
    assert_eq!(error["error"]["kind"], "already_acknowledged");
    home.ok(&["mail", "send", "bob", "unseen"]);
    let acked = home.ok(&["mail", "ack", "4", "--as", "bob"]);
    assert_eq!(acked["unread"], json!([4]));
}

#[test]
fn everyone_but_the_sender() {
    let home = home();
    let sent = home.ok(&["mail", "send", "*", "to all", "--as", "carol"]);
    assert_eq!(sent["message"]["recipients"], json!(["team-lead", "Bob"]));
    assert_eq!(sent["message"]["broadcast"], 1);
    for (agent, expected) in [("bob", 1), ("team-lead", 1), ("carol", 0), ("dan", 0)] {
        let inbox = home.ok(&["mail", "inbox", "--as", agent]);
        assert_eq!(
            inbox["messages"].as_array().unwrap().len(),
            expected,
            "{agent}"
        );
    }
    let copy = &home.ok(&["mail", "inbox", "--as", "bob"])["messages"][0];
    assert_eq!(copy["id"], sent["message"]["id"]);
}

#[test]
fn the_lead_can_always_be_written_to() {
    let home = TestHome::in_memory(CCB);
    home.ok(&["mail", "send", "team-lead", "hi"]);
    let inbox = home.ok(&["mail", "inbox", "--as", "team-lead"]);
    assert_eq!(texts(&inbox), ["hi"]);
    home.fails(3, &["mail", "send", "bob", "hi"]);
    home.fails(2, &["mail", "send", "*", "hi"]);
}

#[test]
fn requests_are_answered_once() {
    let home = home();
    let id = ask(&home);
    let listed = home.ok(&["mail", "requests"]);
    let request = &listed["requests"][0];
    assert_eq!(request["id"], *id);
    assert_eq!(request["kind"], "plan_approval_request");
    assert_eq!(request["body"], json!({"plan": "a plan"}));
    assert_eq!(request["state"], "pending");
    let inbox = home.ok(&["mail", "inbox", "--as", "team-lead"]);
    assert_eq!(
        inbox["messages"][0]["body"],
        json!({"requestId": id, "plan": "a plan"})
    );
    let error = home.fails(4, &["mail", "approve", &id]);
    assert_eq!(error["error"]["kind"], "not_yours");
    let answer = [
        "mail",
        "approve",
        &id,
        "--feedback",
        "go",
        "--as",
        "team-lead",
    ];
    let approved = home.ok(&answer);
    assert_eq!(approved["request"]["state"], "approved");
    assert_eq!(approved["request"]["answer"]["feedback"], "go");
    let error = home.fails(
        4,
        &[
            "mail",
            "reject",
            &id,
            "--feedback",
            "no",
            "--as",
            "team-lead",
        ],
    );
    assert_eq!(error["error"]["kind"], "already_answered");
    let message = error["error"]["message"].as_str().unwrap();
    assert!(message.contains("approved by team-lead"), "{message}");
    assert_eq!(home.ok(&["mail", "requests"])["requests"], json!([]));
    let all = home.ok(&["mail", "requests", "--all"]);
    assert_eq!(all["requests"].as_array().unwrap().len(), 1);
    let told = home.ok(&["mail", "read", "--as", "bob"]);
    assert_eq!(told["messages"][0]["kind"], "plan_approval_response");
    let expected = json!({"requestId": id, "approved": true, "feedback": "go"});
    assert_eq!(told["messages"][0]["body"], expected);
}

#[test]
fn watch_prints_what_arrives() {
    let home = home();
    home.ok(&["mail", "send", "bob", "before"]);
    let mut watch = home
        .command(&["--json", "mail", "watch", "--as", "bob"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(watch.stdout.take().unwrap()).lines();
    // It watches from some moment on; earlier messages are not shown.
    let mut sent = 1;
    let (sender, printed) = std::sync::mpsc::channel();
    let reader = std::thread::spawn(move || {
        for line in lines.by_ref() {
            sender.send(line.unwrap()).unwrap();
        }
    });
    let mut first = None;
    wait_until(Duration::from_secs(60), "the first line", || {
        sent += 1;
        home.ok(&["mail", "send", "bob", &format!("m{sent}")]);
        first = printed.recv_timeout(Duration::from_millis(200)).ok();
        first.is_some()
    });
    let first: Value = serde_json::from_str(&first.unwrap()).unwrap();
    let mut seq = first["seq"].as_u64().unwrap();
    assert!(seq > 1, "{first}");
    home.ok(&["mail", "send", "*", "to all"]);
    let mut last = first;
    while last["text"] != "to all" {
        let line = printed.recv_timeout(Duration::from_secs(60)).unwrap();
        last = serde_json::from_str(&line).unwrap();
        seq += 1;
        assert_eq!(last["seq"], seq, "{last}");
    }
    let pid = rustix::process::Pid::from_child(&watch);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    assert_eq!(watch.wait().unwrap().code(), Some(143));
    let end: Value = serde_json::from_str(&printed.recv().unwrap()).unwrap();
    assert_eq!(end, json!({"event": "end", "seq": seq}));
    reader.join().unwrap();
    // Watching is not reading.
    assert_eq!(
        home.ok(&["mail", "inbox", "--as", "bob"])["messages"][1]["state"],
        "queued"
    );
    let args = [
        "--json",
        "mail",
        "watch",
        "--as",
        "bob",
        "--since",
        "0",
        "--no-follow",
    ];
    let all = home.run(&args).json_lines();
    assert_eq!(all.len() as u64, seq + 1);
}

#[test]
fn people_get_tables_and_words() {
    let home = home();
    home.ok(&[
        "mail",
        "send",
        "bob",
        "\u{1b}[31mred\nmore",
        "--as",
        "carol",
    ]);
    let id = ask(&home);
    let inbox = home.run(&["mail", "inbox", "--as", "bob"]).stdout;
    assert!(inbox.starts_with("SEQ  STATE  FROM"), "{inbox}");
    assert!(
        inbox.contains("carol") && !inbox.contains('\u{1b}'),
        "{inbox}"
    );
    let read = home.run(&["mail", "read", "--as", "bob"]).stdout;
    assert!(
        read.contains("more\n") && read.contains("--as bob mail ack 1"),
        "{read}"
    );
    let again = home.run(&["mail", "read", "--as", "bob"]).stdout;
    assert!(again.contains("again"), "{again}");
    let requests = home.run(&["mail", "requests"]).stdout;
    assert!(
        requests.contains(&id) && requests.contains("a plan"),
        "{requests}"
    );
    let empty = home.run(&["mail", "inbox", "--as", "carol"]).stdout;
    assert_eq!(empty, "no messages\n");
}

#[test]
fn the_team_comes_from_the_environment_or_the_repository() {
    let home = home();
    let sent = home
        .command_without_list(&["--json", "mail", "send", "bob", "hi"])
        .env("CLAUDE_CODE_TEAM_NAME", "board")
        .output()
        .unwrap();
    assert!(sent.status.success(), "{sent:?}");
    let other = home
        .command_without_list(&["--json", "mail", "send", "team-lead", "hi"])
        .output()
        .unwrap();
    assert!(other.status.success(), "{other:?}");
    let inbox = home
        .command_without_list(&["--json", "--team", "default", "mail", "inbox"])
        .args(["--as", "team-lead"])
        .output()
        .unwrap();
    assert_eq!(texts(&Answer::of(inbox).json()), ["hi"]);
    let clash = home.command_without_list(&["--json", "--team", "BOARD", "mail", "inbox"]);
    assert_eq!({ clash }.output().unwrap().status.code(), Some(2));
}
