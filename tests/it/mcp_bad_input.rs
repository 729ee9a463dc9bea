//! Messages outside the protocol, and arguments that tools refuse: a proper error, and nothing
//! changed.

use std::process::Command;

use harness::{McpClient, TestHome, wait_until};
use serde_json::{Value, json};
use store::lock::FileLock;

use crate::CCB;

fn home() -> TestHome {
    let home = TestHome::in_memory(CCB);
    home.ok(&["team", "create", "board"]);
    home.ok(&["team", "join", "board", "--as", "alice"]);
    home
}

fn server(home: &TestHome) -> Command {
    home.command(&["mcp", "--role", "teammate", "--as", "alice"])
}

#[test]
fn lines_that_are_no_requests_are_answered_and_forgotten() {
    let home = home();
    let mut mcp = McpClient::start(server(&home));
    let cases = [
        ("{not json", -32700, json!(null)),
        ("\u{0}\u{1}", -32700, json!(null)),
        ("[]", -32600, json!(null)),
        ("7", -32600, json!(null)),
        ("{}", -32600, json!(null)),
        (
            r#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#,
            -32600,
            json!(null),
        ),
        (
            r#"{"jsonrpc":"2.0","id":{},"method":"ping"}"#,
            -32600,
            json!(null),
        ),
        (r#"{"jsonrpc":"2.0","id":5}"#, -32600, json!(5)),
        (
            r#"{"jsonrpc":"2.0","id":"p","method":"server/discover"}"#,
            -32601,
            json!("p"),
        ),
        (
            r#"{"jsonrpc":"2.0","id":6,"method":"no/such"}"#,
            -32601,
            json!(6),
        ),
        (
            r#"{"jsonrpc":"2.0","id":7,"method":"resources/list"}"#,
            -32601,
            json!(7),
        ),
        (
            r#"{"jsonrpc":"2.0","id":8,"method":"tools/call","params":[]}"#,
            -32602,
            json!(8),
        ),
        (
            r#"{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":4}}"#,
            -32602,
            json!(9),
        ),
        (
            r#"{"jsonrpc":"2.0","id":10,"method":"tools/call","params":{"name":"TaskList","arguments":[]}}"#,
            -32602,
            json!(10),
        ),
        (
            r#"{"jsonrpc":"2.0","id":11,"method":"tools/call"}"#,
            -32602,
            json!(11),
        ),
        (
            r#"{"jsonrpc":"2.0","id":12,"method":"tools/call","params":{"name":"NoSuch"}}"#,
            -32602,
            json!(12),
        ),
        (
            r#"{"jsonrpc":"2.0","id":13,"method":"initialize","params":{}}"#,
            -32602,
            json!(13),
        ),
    ];
    for (line, code, id) in cases {
        mcp.send_line(line);
        let answer = mcp.next_message().unwrap();
        assert_eq!(answer["error"]["code"], code, "{line}: {answer}");
        assert_eq!(answer["id"], id, "{line}: {answer}");
        assert_eq!(answer["jsonrpc"], "2.0");
    }
    // A message without an id gets no answer.
    mcp.send_line(r#"{"jsonrpc":"2.0","method":"no/such/notification","params":{"a":1}}"#);
    mcp.send_line(r#"{"jsonrpc":"2.0","method":"tools/call","params":{"name":"TaskList"}}"#);
    mcp.send_line("");
    // It works anyway, also without the handshake.
    let listed = mcp.call("TaskList", json!({}));
    assert_eq!(harness::texts(&listed), ["No tasks. TaskCreate makes one."]);
    let end = mcp.finish();
    assert_eq!((end.code, end.rest.len()), (Some(0), 0), "{end:?}");
}

#[test]
fn a_version_the_server_knows_is_taken_and_another_is_not() {
    let home = home();
    for (asked, given) in [
        ("2024-11-05", "2024-11-05"),
        ("2025-03-26", "2025-03-26"),
        ("2025-06-18", "2025-06-18"),
        ("2025-11-25", "2025-11-25"),
        ("2026-07-28", "2025-11-25"),
        ("1999-01-01", "2025-11-25"),
    ] {
        let mut mcp = McpClient::start(server(&home));
        let hello = mcp.initialize(asked);
        assert_eq!(hello["protocolVersion"], given, "{hello}");
        assert_eq!(hello["serverInfo"]["name"], "ccb");
        assert!(hello["capabilities"]["tools"].is_object());
    }
}

#[test]
fn arguments_that_are_wrong_are_named() {
    let home = home();
    let mut mcp = McpClient::connect(server(&home));
    let long = "x".repeat(300);
    let cases = [
        (
            "TaskCreate",
            json!({}),
            "the argument \"subject\" is missing. It takes subject, ",
        ),
        (
            "TaskCreate",
            json!({"subject": "a"}),
            "the argument \"description\" is missing",
        ),
        (
            "TaskCreate",
            json!({"subject": 3, "description": ""}),
            "\"subject\" is a number, not a string",
        ),
        (
            "TaskCreate",
            json!({"subject": "a", "description": "", "activeFrom": "b"}),
            "there is no argument \"activeFrom\". Did you mean \"activeForm\"?",
        ),
        (
            "TaskCreate",
            json!({"subject": "a", "description": "", "metadata": "x"}),
            "\"metadata\" is a string, not an object",
        ),
        (
            "TaskCreate",
            json!({"subject": "a", "description": "", "metadata": {"ccb": {"lease": 1}}}),
            "lease",
        ),
        (
            "TaskCreate",
            json!({"subject": long, "description": "\u{0}"}),
            "",
        ),
        (
            "TaskList",
            json!({"all": true}),
            "there is no argument \"all\". It takes no arguments",
        ),
        ("TaskUpdate", json!({"taskId": "1"}), "nothing is to change"),
        (
            "TaskUpdate",
            json!({"taskId": "1", "status": "done"}),
            "\"status\" cannot be \"done\". It takes pending, in_progress, completed, deleted",
        ),
        (
            "TaskUpdate",
            json!({"taskId": "1", "status": "complete"}),
            "Did you mean \"completed\"?",
        ),
        (
            "TaskUpdate",
            json!({"taskId": "1", "addBlocks": "2"}),
            "\"addBlocks\" is a string, not an array",
        ),
        (
            "TaskUpdate",
            json!({"taskId": "1", "addBlocks": ["2", true]}),
            "\"addBlocks[1]\" is a boolean, not a string",
        ),
        (
            "SendMessage",
            json!({"to": "alice", "message": 3}),
            "\"message\" is a number, not a string or an object",
        ),
        (
            "SendMessage",
            json!({"to": "alice", "message": {"type": "shutdown"}}),
            "\"message.type\" cannot be \"shutdown\"",
        ),
        (
            "SendMessage",
            json!({"to": "alice", "message": {"type": "shutdown_request", "why": "x"}}),
            "there is no argument \"message.why\"",
        ),
        (
            "TaskOutput",
            json!({"task_id": "a1", "timeout": 700_000}),
            "the most is 600000",
        ),
        (
            "TaskOutput",
            json!({"task_id": "a1", "block": "yes"}),
            "\"block\" is a string, not a boolean",
        ),
        (
            "Agent",
            json!({"description": "d", "prompt": " "}),
            "\"prompt\" is empty",
        ),
        (
            "Agent",
            json!({"description": "d", "prompt": "p", "isolation": "remote"}),
            "isolation \"remote\" is not supported. Use \"worktree\"",
        ),
        (
            "Agent",
            json!({"description": "d", "prompt": "p", "isolation": "worktree", "cwd": "/"}),
            "cwd and isolation exclude each other",
        ),
        // A teammate starts no teammates.
        (
            "Agent",
            json!({"description": "d", "prompt": "p", "name": "carol"}),
            "there is no argument \"name\"",
        ),
        (
            "ExitWorktree",
            json!({"action": "keep", "discard_changes": true}),
            "\"remove\" only",
        ),
    ];
    for (tool, arguments, words) in cases {
        let result = mcp.call(tool, arguments.clone());
        if words.is_empty() {
            continue;
        }
        let text = harness::texts(&result).remove(0);
        assert_eq!(result["isError"], true, "{tool} {arguments}: {result}");
        assert!(text.contains(words), "{tool} {arguments}: {text}");
        assert!(
            result["structuredContent"]["error"]["kind"].is_string(),
            "{result}"
        );
    }
    let (error, _) = mcp.fails("TaskGet", json!({"taskId": 77}));
    assert_eq!(error["error"]["kind"], "task_not_found");
    // `null` means absent, as everywhere.
    mcp.ok(
        "TaskCreate",
        json!({"subject": "a", "description": "", "activeForm": null}),
    );
}

#[test]
fn a_message_that_is_too_long_is_refused_without_being_kept() {
    let home = home();
    let mut mcp = McpClient::connect(server(&home));
    let before = memory(mcp.pid());
    let long = "x".repeat(64 << 20);
    let call = |id: u64| {
        format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"TaskCreate","arguments":{{"subject":"a","description":"{long}"}}}}}}"#
        )
    };
    mcp.send_line(&call(71));
    let answer = mcp.next_message().unwrap();
    assert_eq!(
        (&answer["id"], &answer["error"]["code"]),
        (&json!(71), &json!(-32600))
    );
    assert!(
        answer["error"]["message"]
            .as_str()
            .unwrap()
            .contains("longer than"),
        "{answer}"
    );
    let grown = memory(mcp.pid()).saturating_sub(before);
    assert!(grown < 24 << 20, "grew by {grown} bytes");
    // Up to the limit the board itself refuses.
    let (error, _) = mcp.fails(
        "TaskCreate",
        json!({"subject": "a", "description": "x".repeat(3 << 20)}),
    );
    assert_eq!(error["error"]["kind"], "invalid");
    assert!(
        mcp.ok("TaskList", json!({}))["tasks"]
            .as_array()
            .unwrap()
            .is_empty()
    );
}

/// The resident memory of a process in bytes.
fn memory(pid: u32) -> usize {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmRSS:"));
    let kib = line.and_then(|line| line.split_whitespace().nth(1)?.parse::<usize>().ok());
    kib.unwrap_or(0) << 10
}

#[test]
fn who_calls_is_not_up_to_the_caller() {
    let home = home();
    // A teammate has a name, a lead has the lead's.
    let answer = home.fails(2, &["mcp", "--role", "teammate"]);
    assert_eq!(answer["error"]["kind"], "no_agent");
    home.fails(2, &["mcp", "--role", "boss"]);
    home.fails(2, &["mcp"]);
    let mut command = home.command(&["mcp", "--role", "lead"]);
    let mut mcp = McpClient::connect(home.command(&["mcp", "--role", "lead"]));
    let sent = mcp.ok(
        "SendMessage",
        json!({"to": "alice", "message": "x", "summary": "s"}),
    );
    assert_eq!(sent["message"]["from"], "team-lead");
    // Inside an agent the engine started, another name is refused.
    command.args(["--as", "bob", "--json"]);
    command.env("CCB_AGENT", "alice").env("CCB_RUN_ID", "a1");
    let answer = harness::Answer::of(command.output().unwrap());
    assert_eq!(answer.code, Some(4), "{answer:?}");
    assert_eq!(answer.json()["error"]["kind"], "not_yours");
    let mut command = home.command(&["mcp", "--role", "teammate"]);
    command.env("CCB_AGENT", "alice");
    let mut mcp = McpClient::connect(command);
    let sent = mcp.ok(
        "SendMessage",
        json!({"to": "team-lead", "message": "x", "summary": "s"}),
    );
    assert_eq!(sent["message"]["from"], "alice");
    let (_, text) = mcp.fails("TaskUpdate", json!({"taskId": "1", "as": "bob"}));
    assert!(text.contains("there is no argument \"as\""), "{text}");
}

/// A run as the engine records it, held by this process.
fn run(home: &TestHome, id: &str, token: u64) -> FileLock {
    let dir = home.team_dir().join("runs").join(id);
    std::fs::create_dir_all(&dir).unwrap();
    std::fs::write(
        dir.join("meta.json"),
        json!({"v": 1, "agentId": id, "life": 1, "state": "running", "token": token}).to_string(),
    )
    .unwrap();
    FileLock::try_exclusive(&dir.join("alive.lock"))
        .unwrap()
        .expect("free")
}

fn in_run(home: &TestHome, id: &str, token: &str) -> McpClient {
    let mut command = home.command(&["mcp", "--role", "teammate"]);
    command
        .env("CCB_AGENT", "alice")
        .env("CCB_RUN_ID", id)
        .env("CCB_RUN_TOKEN", token);
    McpClient::connect(command)
}

#[test]
fn a_run_that_has_ended_changes_nothing_any_more() {
    let home = home();
    home.settings(r#"{"taskboard":{"manyTasksPerAgent":true}}"#);
    home.create("one");
    home.create("two");
    let alive = run(&home, "a1", 7);
    let mut mcp = in_run(&home, "a1", "7");
    let claimed = mcp.ok(
        "TaskUpdate",
        json!({"taskId": "1", "status": "in_progress"}),
    );
    let lease = &claimed["task"]["metadata"]["ccb"]["lease"];
    assert_eq!(
        (&lease["agent"], &lease["run"]),
        (&json!("alice"), &json!("a1"))
    );
    mcp.ok("TaskUpdate", json!({"taskId": "1", "description": "more"}));
    // Another start of the same run has taken over.
    let mut old = in_run(&home, "a1", "6");
    let lost = |mcp: &mut McpClient| {
        let before = home.tasks_on_disk();
        let (error, text) = mcp.fails("TaskUpdate", json!({"taskId": "1", "status": "completed"}));
        assert_eq!(error["error"]["kind"], "lease_lost", "{error}");
        assert!(text.to_lowercase().contains("stop"), "{text}");
        assert_eq!(home.tasks_on_disk(), before);
    };
    lost(&mut old);
    // A claim by an earlier run of the agent is not this one's.
    let other = run(&home, "a2", 8);
    let mut next = in_run(&home, "a2", "8");
    lost(&mut next);
    next.ok(
        "TaskUpdate",
        json!({"taskId": "2", "status": "in_progress"}),
    );
    drop(other);
    wait_until(
        std::time::Duration::from_secs(10),
        "the lock to be free",
        || {
            let (error, _) = next.fails("TaskList", json!({"x": 1}));
            error["error"]["kind"] == "lease_lost"
        },
    );
    lost(&mut next);
    mcp.ok("TaskUpdate", json!({"taskId": "1", "status": "completed"}));
    drop(alive);
    let mut unknown = in_run(&home, "a9", "1");
    let (error, _): (Value, _) = unknown.fails("TaskList", json!({}));
    assert_eq!(error["error"]["kind"], "lease_lost");
}
