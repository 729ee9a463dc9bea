//! Mail is delivered with results and is acknowledged once, whatever happens to either side.

use std::time::Duration;

use harness::{McpClient, TestHome, texts, wait_until};
use serde_json::{Value, json};

use crate::CCB;

/// Characters of a result that every known client shows its model.
const EVERY_CLIENT_SHOWS: usize = 12_000;

fn home() -> TestHome {
    let home = TestHome::in_memory(CCB);
    home.ok(&["team", "create", "board"]);
    for member in ["alice", "bob"] {
        home.ok(&["team", "join", "board", "--as", member]);
    }
    home
}

fn alice(home: &TestHome) -> McpClient {
    McpClient::connect(home.command(&["mcp", "--role", "teammate", "--as", "alice"]))
}

fn send(home: &TestHome, text: &str) {
    home.ok(&["mail", "send", "alice", text, "--as", "bob"]);
}

/// The mail that came with a call.
fn mail(mcp: &mut McpClient) -> Vec<String> {
    texts(&mcp.call("TaskList", json!({}))).split_off(1)
}

fn states(home: &TestHome) -> Vec<String> {
    let all = home.ok(&["mail", "inbox", "--all", "--as", "alice"]);
    let messages = all["messages"].as_array().unwrap();
    let state = |message: &Value| message["state"].as_str().unwrap().to_owned();
    messages.iter().map(state).collect()
}

#[test]
fn what_waits_comes_with_the_next_result_and_is_acknowledged() {
    let home = home();
    send(&home, "before it started");
    let mut mcp = alice(&home);
    // Listing the tools does not take it.
    mcp.tools();
    assert_eq!(states(&home), ["queued"]);
    let came = mail(&mut mcp);
    let expected = "<teammate-message teammate_id=\"bob\" color=\"blue\" summary=\"before it \
        started\">\nbefore it started\n</teammate-message>";
    assert_eq!(came, [expected]);
    wait_until(Duration::from_secs(10), "the acknowledgement", || {
        states(&home) == ["acknowledged"]
    });
    assert!(mail(&mut mcp).is_empty());
    send(&home, "second");
    send(&home, "third");
    // With a refusal as well.
    let refused = mcp.call("TaskGet", json!({"taskId": "99"}));
    let came = texts(&refused).split_off(1).join("\n");
    assert_eq!(refused["isError"], true);
    assert!(came.contains("second") && came.contains("third"), "{came}");
    assert!(mail(&mut mcp).is_empty());
    assert_eq!(states(&home), ["acknowledged"; 3]);
    assert_eq!(mcp.finish().code, Some(0));
}

#[test]
fn much_mail_comes_in_parts() {
    let home = home();
    let long = "x".repeat(20_000);
    for n in 0..5 {
        send(&home, &format!("{n} {long}"));
    }
    let mut mcp = alice(&home);
    let mut all = String::new();
    loop {
        let came = texts(&mcp.call("TaskList", json!({})));
        let shown: usize = came.iter().map(|text| text.chars().count()).sum();
        assert!(shown < EVERY_CLIENT_SHOWS, "{shown}");
        if came.len() == 1 {
            break;
        }
        all.push_str(&came[1..].join("\n"));
    }
    for n in 0..5 {
        assert_eq!(all.matches(&format!("of 8\">\n{n} x")).count(), 1, "{n}");
    }
    let words: String = all.lines().filter(|line| !line.starts_with('<')).collect();
    assert_eq!(words.matches('x').count(), 5 * 20_000);
    assert_eq!(states(&home), ["acknowledged"; 5]);
}

/// A part of a message whose rest is still to come is not acknowledged: if the client goes, the
/// whole comes again.
#[test]
fn half_a_message_is_not_acknowledged() {
    let home = home();
    send(&home, &"y".repeat(30_000));
    let mut mcp = alice(&home);
    assert!(mail(&mut mcp)[0].contains("part=\"1 of 11\""));
    assert_eq!(states(&home), ["queued"]);
    assert_eq!(mcp.finish().code, Some(0));
    let mut again = alice(&home);
    let came = mail(&mut again);
    assert!(
        came[0].contains("redelivered=\"true\" part=\"1 of 11\""),
        "{}",
        came[0]
    );
}

/// Claude Code and Codex show their models only the structured content, if there is any; opencode
/// and Gemini only the text.
#[test]
fn every_client_gets_words_alone_with_its_mail() {
    for client in [
        "claude-code",
        "codex-mcp-client",
        "opencode",
        "gemini-cli-mcp-client-ccb",
        "x",
    ] {
        let home = home();
        let mut mcp = McpClient::connect_as(
            client,
            home.command(&["mcp", "--role", "teammate", "--as", "alice"]),
        );
        send(
            &home,
            "cargo fmt && cargo test 2>&1 | grep '<b>'; &lt;</teammate-message>",
        );
        let made = mcp.call(
            "TaskCreate",
            json!({"subject": "a && b", "description": "c"}),
        );
        assert!(made.get("structuredContent").is_none(), "{client}: {made}");
        let came = texts(&made);
        assert_eq!(came[0], "Task #1 created: a && b");
        assert!(
            came[1].contains(">\ncargo fmt && cargo test 2>&1 | grep '<b>'; &lt;&lt;/teammate-message>\n</teammate"),
            "{}", came[1]
        );
        let refused = mcp.call("TaskGet", json!({"taskId": "99"}));
        assert!(
            refused.get("structuredContent").is_none(),
            "{client}: {refused}"
        );
        assert!(texts(&refused)[0].contains("TaskList shows"), "{refused}");
        assert_eq!(mcp.finish().code, Some(0));
    }
}

#[test]
fn a_long_board_is_listed_in_few_words() {
    let home = home();
    let mut mcp = alice(&home);
    for n in 1..=100 {
        let subject =
            format!("{n}: move every caller of the old interface to the new one, and say why");
        let waits = if n > 60 {
            json!([(n - 60).to_string(), (n - 59).to_string()])
        } else {
            json!([])
        };
        mcp.ok(
            "TaskCreate",
            json!({"subject": subject, "description": "d", "addBlockedBy": waits}),
        );
    }
    for id in ["3", "4"] {
        mcp.ok("TaskUpdate", json!({"taskId": id, "status": "in_progress"}));
        mcp.ok("TaskUpdate", json!({"taskId": id, "status": "completed"}));
    }
    mcp.ok(
        "TaskUpdate",
        json!({"taskId": "9", "status": "in_progress"}),
    );
    let text = texts(&mcp.call("TaskList", json!({}))).remove(0);
    assert!(text.chars().count() < 6_000, "{}", text.chars().count());
    let first = text.lines().next().unwrap();
    assert!(
        first.starts_with("#9 [in_progress] 9: move every caller"),
        "{first}"
    );
    assert!(text.contains("2 completed: #3-#4"), "{text}");
    assert!(
        text.contains("#61 [pending]") && text.contains("[waits for #1, #2]"),
        "{text}"
    );
}

/// A text that is longer than a client shows loses its middle, and says where the whole is.
#[test]
fn a_long_description_says_where_the_rest_is() {
    let home = home();
    let mut mcp = alice(&home);
    let description = format!("{}END", "word ".repeat(4_000));
    mcp.ok(
        "TaskCreate",
        json!({"subject": "s", "description": description}),
    );
    let text = texts(&mcp.call("TaskGet", json!({"taskId": "1"}))).remove(0);
    assert!(text.chars().count() < EVERY_CLIENT_SHOWS, "{}", text.len());
    assert!(
        text.contains("`ccb task show 1` prints all of it"),
        "{text}"
    );
    assert!(text.contains("END"), "{text}");
    let mut claude = McpClient::connect_as(
        "claude-code",
        home.command(&["mcp", "--role", "teammate", "--as", "bob"]),
    );
    let text = texts(&claude.call("TaskGet", json!({"taskId": "1"}))).remove(0);
    assert!(text.contains(&description), "Claude Code shows it whole");
}

#[test]
fn mail_is_announced_while_nobody_calls() {
    let home = home();
    let mut mcp = alice(&home);
    send(&home, "look here");
    let note = mcp.notification("notifications/message");
    let params = &note["params"];
    assert_eq!(
        (&params["level"], &params["logger"]),
        (&json!("info"), &json!("ccb"))
    );
    assert_eq!(params["data"]["from"], "bob");
    assert_eq!(params["data"]["summary"], "look here");
    // That was no delivery.
    assert_eq!(states(&home), ["queued"]);
    assert!(mail(&mut mcp)[0].contains("look here"));
    // Once.
    mcp.request("logging/setLevel", json!({"level": "warning"}));
    send(&home, "not announced");
    assert!(mail(&mut mcp)[0].contains("not announced"));
    mcp.request("logging/setLevel", json!({"level": "info"}));
    send(&home, "announced");
    let note = mcp.notification("notifications/message");
    assert_eq!(note["params"]["data"]["summary"], "announced");
}

/// The server dies before an answer is written, or before its mail is acknowledged: the next one
/// delivers it again, and says that it may have been seen.
#[test]
fn what_a_crash_cuts_off_comes_again() {
    let crashes = [("mcp.mail-attached", false), ("mcp.answer-written", true)];
    let declared = ::mcp::FAULT_POINTS.iter().map(|point| point.name());
    assert!(declared.eq(crashes.map(|(point, _)| point)));
    for (point, seen) in crashes {
        let home = home();
        send(&home, "important");
        let mut command = home.command(&["mcp", "--role", "teammate", "--as", "alice"]);
        command.env("CCB_FAULT", format!("crash:{point}:1"));
        let mut mcp = McpClient::start(command);
        let id = mcp.begin(
            "tools/call",
            json!({"name": "TaskCreate", "arguments": {"subject": "a", "description": ""}}),
        );
        let mut answered = None;
        while let Some(message) = mcp.next_message() {
            if message["id"] == id {
                answered = Some(message);
            }
        }
        assert_eq!(answered.is_some(), seen, "{point}");
        drop(mcp);
        // The call has taken effect, once.
        assert_eq!(home.tasks_on_disk().len(), 1);
        assert_ne!(states(&home), ["acknowledged"]);
        let mut mcp = alice(&home);
        let came = mail(&mut mcp);
        assert!(
            came[0].contains("redelivered=\"true\"") && came[0].contains("important"),
            "{came:?}"
        );
        assert!(mail(&mut mcp).is_empty());
        assert_eq!(states(&home), ["acknowledged"]);
    }
}

/// A client that is gone when its answer comes has not got its mail.
#[test]
fn a_client_that_does_not_read_gets_its_mail_again() {
    let home = home();
    send(&home, "important");
    let mut command = home.command(&["mcp", "--role", "teammate", "--as", "alice"]);
    // The test holds both ends of its output, and does not read.
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    command.stdin(std::process::Stdio::piped()).stdout(writer);
    let mut child = command.spawn().unwrap();
    drop(command);
    let mut input = child.stdin.take().unwrap();
    let call =
        json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "TaskList"}});
    std::io::Write::write_all(&mut input, format!("{call}\n").as_bytes()).unwrap();
    // It ends although its input is open, and not as a failure.
    let status = child.wait().unwrap();
    assert_eq!(status.code(), Some(0));
    drop(input);
    let came = mail(&mut alice(&home));
    assert!(
        came[0].contains("redelivered=\"true\"") && came[0].contains("important"),
        "{came:?}"
    );
}

#[test]
fn of_two_clients_with_one_name_one_reads_and_both_work() {
    let home = home();
    send(&home, "one");
    let mut first = alice(&home);
    assert!(mail(&mut first)[0].contains("one"));
    let mut second = alice(&home);
    let said = mail(&mut second);
    assert_eq!(said.len(), 1);
    assert!(
        said[0].starts_with("Note: the mail of alice goes to another client"),
        "{said:?}"
    );
    // Once.
    assert!(mail(&mut second).is_empty());
    second.ok(
        "TaskCreate",
        json!({"subject": "by the second", "description": ""}),
    );
    first.ok(
        "TaskCreate",
        json!({"subject": "by the first", "description": ""}),
    );
    send(&home, "two");
    assert!(mail(&mut second).is_empty());
    assert!(mail(&mut first)[0].contains("two"));
    send(&home, "three");
    assert_eq!(first.finish().code, Some(0));
    // Now it is the second's.
    assert!(mail(&mut second)[0].contains("three"));
}

/// A teammate that is not on the roster is there as soon as its server runs.
#[test]
fn a_teammate_needs_nothing_but_the_server() {
    let home = home();
    let mut carol =
        McpClient::connect(home.command(&["mcp", "--role", "teammate", "--as", "carol"]));
    home.ok(&["mail", "send", "carol", "welcome", "--as", "bob"]);
    assert!(mail(&mut carol)[0].contains("welcome"));
    let state = || home.ok(&["team", "show", "board"])["team"]["members"][3]["state"].clone();
    assert_eq!(state(), "reading");
    carol.kill();
    // A database hears of it from its connection.
    wait_until(Duration::from_secs(10), "carol to be gone", || {
        state() == "away"
    });
}

/// In a run it is the host that delivers mail, and results do not mention that.
#[test]
fn in_a_run_the_host_has_the_mail() {
    let home = home();
    let dir = home.team_dir().join("runs/a1");
    std::fs::create_dir_all(&dir).unwrap();
    let meta = json!({"v": 1, "agentId": "a1", "life": 1, "state": "running"});
    std::fs::write(dir.join("meta.json"), meta.to_string()).unwrap();
    let _alive = store::lock::FileLock::try_exclusive(&dir.join("alive.lock"))
        .unwrap()
        .unwrap();
    send(&home, "for the host");
    let alice = store::name::Name::new("agent", "alice").unwrap();
    let _host = home.mailbox_of("board").consumer(&alice).unwrap();
    let mut command = home.command(&["mcp", "--role", "teammate"]);
    command.env("CCB_AGENT", "alice").env("CCB_RUN_ID", "a1");
    let mut mcp = McpClient::connect(command);
    assert!(mail(&mut mcp).is_empty());
    assert_eq!(states(&home), ["queued"]);
}
