//! Several machines, each with a home of its own, and one database.

use harness::{Answer, McpClient, TestHome, git, texts};
use serde_json::{Value, json};

use crate::CCB;

/// A member of `board` who joined from this home.
fn join(home: &TestHome, name: &str) -> Value {
    home.ok(&["team", "join", "board", "--as", name])["member"].clone()
}

/// The last message.
fn last(home: &TestHome, name: &str) -> Value {
    let all = home.ok(&["mail", "inbox", "--all", "--as", name]);
    all["messages"].as_array().unwrap().last().unwrap().clone()
}

fn two() -> (TestHome, TestHome) {
    let one = TestHome::new(CCB);
    let other = one.neighbour();
    one.ok(&["team", "create", "board"]);
    (one, other)
}

#[test]
fn whoever_joined_elsewhere_can_be_written_to() {
    let (one, other) = two();
    let ann = join(&one, "ann");
    let bob = join(&other, "bob");
    assert_ne!(ann["ccb"]["machine"], bob["ccb"]["machine"]);
    assert_eq!(ann["ccb"]["host"], bob["ccb"]["host"]);
    assert_eq!(one.members("board"), ["team-lead", "ann", "bob"]);

    one.ok(&["mail", "send", "bob", "hello there", "--as", "ann"]);
    assert_eq!(last(&other, "bob")["text"], "hello there");
    let wrong = one.fails(3, &["mail", "send", "bobby", "x", "--as", "ann"]);
    assert_eq!(wrong["error"]["kind"], "recipient_not_found");
    assert!(wrong["error"]["hint"].as_str().unwrap().contains("bob"));

    other.ok(&["mail", "send", "*", "to all", "--as", "bob"]);
    for (home, name) in [(&one, "ann"), (&one, "team-lead")] {
        assert_eq!(last(home, name)["text"], "to all", "{name}");
    }
    let mut lead = McpClient::connect(one.command(&["mcp", "--role", "lead"]));
    let question = json!({"type": "shutdown_request", "reason": "that is all"});
    let asked = lead.ok("SendMessage", json!({"to": "bob", "message": question}));
    let id = asked["request"]["id"].as_str().unwrap();
    assert_eq!(last(&other, "bob")["kind"], "shutdown_request");
    let waiting = other.ok(&["mail", "requests", "--as", "bob"]);
    assert_eq!(waiting["requests"][0]["id"], id);
    other.ok(&["mail", "approve", id, "--as", "bob"]);
    assert_eq!(last(&one, "team-lead")["kind"], "shutdown_approved");

    // A task that is given to it is announced to it.
    let task = one.create("for bob").to_string();
    one.ok(&["task", "update", &task, "--owner", "bob", "--as", "ann"]);
    assert_eq!(last(&other, "bob")["kind"], "task_assignment");
}

#[test]
fn clients_of_two_machines_work_on_one_board() {
    let (one, other) = two();
    let client = |home: &TestHome, name: &str| {
        McpClient::connect(home.command(&["mcp", "--role", "teammate", "--as", name]))
    };
    let mut ann = client(&one, "ann");
    let mut bob = client(&other, "bob");
    ann.ok("TaskCreate", json!({"subject": "one", "description": ""}));
    let message = json!({"to": "bob", "message": "take it", "summary": "take it"});
    ann.ok("SendMessage", message);
    let came = texts(&bob.call("TaskList", json!({})));
    assert!(
        came[0].contains("one") && came[1].contains("take it"),
        "{came:?}"
    );
    bob.ok(
        "TaskUpdate",
        json!({"taskId": "1", "status": "in_progress"}),
    );
    let (error, _) = ann.fails(
        "TaskUpdate",
        json!({"taskId": "1", "status": "in_progress"}),
    );
    assert_eq!(error["error"]["kind"], "already_claimed");
    let states = |home: &TestHome| {
        let shown = home.ok(&["team", "show", "board"]);
        let members = shown["team"]["members"].as_array().unwrap().clone();
        let state = |member: &Value| member["state"].as_str().unwrap().to_owned();
        members.iter().map(state).collect::<Vec<_>>()
    };
    for home in [&one, &other] {
        assert_eq!(states(home), ["away", "reading", "reading"]);
    }
    let refused = one.fails(4, &["team", "delete", "board"]);
    assert_eq!(refused["error"]["kind"], "members_alive");
    assert_eq!(bob.finish().code, Some(0));
    assert_eq!(states(&one), ["away", "reading", "away"]);
}

/// A clone of the repository at `origin`, beside the homes.
fn clone(home: &TestHome, name: &str, origin: &str) -> std::path::PathBuf {
    let place = home.path().join(name);
    std::fs::create_dir_all(&place).unwrap();
    git(&place, &["init", "--quiet"]);
    git(&place, &["remote", "add", "origin", origin]);
    place
}

#[test]
fn a_team_is_of_one_repository_wherever_that_was_cloned() {
    let one = TestHome::new(CCB);
    let other = one.neighbour();
    let here = clone(&one, "tool", "git@example.org:team/tool.git");
    let there = clone(
        &other,
        "my-copy",
        "https://bob:s3cret@example.org/team/tool",
    );
    let elsewhere = clone(&other, "else", "https://example.org/team/else");
    let run = |home: &TestHome, directory: &std::path::Path, args: &[&str]| {
        let mut command = home.command_without_list(&["--json"]);
        command.args(args).current_dir(directory);
        Answer::of(command.output().unwrap())
    };
    let made = run(&one, &here, &["team", "create", "crew"]).json();
    assert_eq!(made["team"]["ccb"]["repository"], "example.org/team/tool");
    let joined = run(&other, &there, &["team", "join", "crew", "--as", "bob"]);
    assert_eq!(joined.code, Some(0), "{joined:?}");
    assert!(!joined.stdout.contains("s3cret"));
    let refused = run(&other, &elsewhere, &["team", "join", "crew", "--as", "eve"]);
    assert_eq!(refused.code, Some(4), "{refused:?}");
    assert_eq!(refused.json()["error"]["kind"], "other_repository");
    let refused = run(&other, &elsewhere, &["--team", "crew", "task", "list"]);
    assert_eq!(refused.code, Some(4), "{refused:?}");

    // Without a name, the list is the repository's, and that is the same for both.
    let made = run(&one, &here, &["task", "create", "shared"]);
    assert_eq!(made.code, Some(0), "{made:?}");
    let listed = run(&other, &there, &["task", "list"]).json();
    assert_eq!(listed["tasks"][0]["subject"], "shared");
    let listed = run(&other, &elsewhere, &["task", "list"]).json();
    assert_eq!(listed["tasks"], json!([]));
}

#[test]
fn a_name_in_another_case_is_refused_on_every_machine() {
    let (one, other) = two();
    let clash = other.fails(2, &["team", "create", "Board"]);
    assert_eq!(clash["error"]["kind"], "bad_name");
    let clash = other.fails(2, &["team", "show", "BOARD"]);
    assert_eq!(clash["error"]["kind"], "bad_name");
    // A list without a team has its name as well.
    one.ok(&["task", "create", "x", "--list", "Others"]);
    let clash = other.fails(2, &["team", "create", "others"]);
    assert_eq!(clash["error"]["kind"], "bad_name");
    join(&one, "Ann");
    let taken = other.fails(2, &["team", "join", "board", "--as", "ann"]);
    assert_eq!(taken["error"]["kind"], "bad_name");
}
