//! Clients that vanish, servers that die, locks that are held, and many at once.

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::time::{Duration, Instant};

use harness::{McpClient, TestHome, wait_until};
use serde_json::{Value, json};
use store::lock::FileLock;

use crate::CCB;

fn home() -> TestHome {
    let home = TestHome::in_memory(CCB);
    home.ok(&["team", "create", "board"]);
    home
}

fn server(home: &TestHome, agent: &str) -> std::process::Command {
    home.command(&["mcp", "--role", "teammate", "--as", agent])
}

/// The server dies at every write point of a change: the next one finds the task as it was before
/// or as it is after, and continues.
#[test]
fn a_server_that_dies_in_a_call_leaves_nothing_half_done() {
    let first = home();
    first.create("one");
    first.create("two");
    let call =
        json!({"taskId": "1", "status": "in_progress", "addBlocks": ["2"], "subject": "new"});
    // Once with a trace, to know the points.
    let traced = first.copy();
    let trace = traced.path().join("trace");
    let mut command = server(&traced, "alice");
    command.env("CCB_FAULT_TRACE", &trace);
    let mut mcp = McpClient::start(command);
    mcp.ok("TaskUpdate", call.clone());
    assert_eq!(mcp.finish().code, Some(0));
    // A lease has a number of its own each time.
    let tasks = |home: &TestHome| -> Vec<Value> {
        let mut tasks = home.tasks_on_disk();
        tasks.truncate(2);
        for task in &mut tasks {
            task.as_object_mut().unwrap().remove("metadata");
        }
        tasks
    };
    let after = tasks(&traced);
    let before = tasks(&first);
    assert_eq!(after[0]["status"], "pending", "its client is gone");
    assert_ne!(before, after);
    let text = std::fs::read_to_string(&trace).unwrap();
    let mut counts: std::collections::BTreeMap<&str, usize> = Default::default();
    let mut crashed = 0;
    for point in text.lines() {
        let nth = counts.entry(point).or_default();
        *nth += 1;
        let home = first.copy();
        let mut command = server(&home, "alice");
        command.env("CCB_FAULT", format!("crash:{point}:{nth}"));
        let mut mcp = McpClient::start(command);
        mcp.begin(
            "tools/call",
            json!({"name": "TaskUpdate", "arguments": call}),
        );
        mcp.hang_up();
        while mcp.next_message().is_some() {}
        drop(mcp);
        // The next one finishes the change.
        let mut mcp = McpClient::start(server(&home, "alice"));
        mcp.ok("TaskCreate", json!({"subject": "next", "description": ""}));
        let now = tasks(&home);
        let is_before = now == before;
        assert!(is_before || now == after, "{point} {nth}: {now:#?}");
        crashed += 1;
    }
    assert!(crashed > 5, "{text}");
}

/// A client that hangs up with calls under way: they are finished without an answer, exit 0.
#[test]
fn a_client_that_vanishes_leaves_whole_calls() {
    let home = home();
    let mut mcp = McpClient::start(server(&home, "alice"));
    for n in 0..20 {
        let task = json!({"subject": format!("task {n}"), "description": ""});
        mcp.begin(
            "tools/call",
            json!({"name": "TaskCreate", "arguments": task}),
        );
    }
    // And one that is not finished being written.
    let end = {
        mcp.send_line(r#"{"jsonrpc":"2.0","id":99,"method":"ping"}"#);
        mcp.finish()
    };
    assert_eq!(end.code, Some(0), "{end:?}");
    assert_eq!(home.tasks_on_disk().len(), 20);
    let ids: BTreeSet<String> = end
        .rest
        .iter()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .filter_map(|answer| {
            let words = answer["result"]["content"][0]["text"].as_str()?;
            Some(words.strip_prefix("Task #")?.split_once(' ')?.0.to_owned())
        })
        .collect();
    assert_eq!(ids.len(), 20);
}

/// A client that writes and does not read: it has to wait, and the server does not store answers
/// without end. When it reads, everything is there.
#[test]
fn a_client_that_only_writes_has_to_wait() {
    let home = home();
    let mut command = server(&home, "alice");
    let (mut from_server, output) = std::io::pipe().unwrap();
    let (input, mut to_server) = std::io::pipe().unwrap();
    let mut child = command.stdin(input).stdout(output).spawn().unwrap();
    drop(command);
    const COUNT: usize = 400;
    let padding = "x".repeat(1 << 16);
    let writer = std::thread::spawn(move || {
        for n in 0..COUNT {
            let line = match n % 2 {
                0 => json!({"jsonrpc": "2.0", "id": n, "method": "tools/call",
                            "params": {"name": "TaskGet", "arguments": {"taskId": padding}}}),
                _ => json!({"jsonrpc": "2.0", "id": n, "method": padding}),
            };
            writeln!(to_server, "{line}").unwrap();
        }
    });
    // Without a reader it does not accept everything.
    let stat = || {
        let path = format!("/proc/{}/status", child.id());
        let status = std::fs::read_to_string(path).unwrap_or_default();
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix("VmRSS:").map(str::to_owned));
        line.and_then(|line| line.split_whitespace().next()?.parse::<usize>().ok())
            .unwrap_or(0)
    };
    let mut quiet = (0, 0);
    wait_until(Duration::from_secs(60), "it to stop taking in more", || {
        let now = stat();
        quiet = match now == quiet.0 {
            true => (now, quiet.1 + 1),
            false => (now, 0),
        };
        quiet.1 > 20
    });
    assert!(!writer.is_finished(), "everything was taken in");
    let mut text = String::new();
    let reader = std::thread::spawn(move || {
        from_server.read_to_string(&mut text).unwrap();
        text
    });
    writer.join().unwrap();
    let text = reader.join().unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert_eq!(text.lines().count(), COUNT);
}

#[test]
fn a_board_that_is_locked_is_an_error_that_names_the_holder() {
    let home = home();
    home.create("one");
    home.settings(r#"{"taskboard": {"lockTimeoutMs": 200}}"#);
    let mut mcp = McpClient::connect(server(&home, "alice"));
    let lock = FileLock::try_exclusive(&home.list_dir().join(".lock"))
        .unwrap()
        .expect("free");
    let call = mcp.begin(
        "tools/call",
        json!({"name": "TaskUpdate", "arguments": {"taskId": "1", "status": "in_progress"}}),
    );
    // A request that only reads does not wait behind it.
    let ping = mcp.begin("ping", json!({}));
    assert!(mcp.answer(&ping)["result"].is_object());
    let answer = mcp.answer(&call);
    let error = &answer["result"]["structuredContent"]["error"];
    assert_eq!(error["kind"], "lock_timeout", "{answer}");
    let by_hand = home.fails(
        5,
        &[
            "task",
            "update",
            "1",
            "--status",
            "in_progress",
            "--as",
            "alice",
        ],
    );
    assert_eq!(error["hint"], by_hand["error"]["hint"]);
    let holder = std::process::id().to_string();
    assert!(
        error["message"].as_str().unwrap().contains(&holder),
        "{error}"
    );
    drop(lock);
    mcp.ok(
        "TaskUpdate",
        json!({"taskId": "1", "status": "in_progress"}),
    );
}

/// Two clients and three commands take tasks from one board until it is empty.
#[test]
fn clients_and_commands_on_one_board_lose_nothing() {
    const TASKS: usize = 60;
    let home = home();
    home.settings(r#"{"taskboard": {"durable": false}, "mailbox": {"durable": false}}"#);
    let deadline = Instant::now() + Duration::from_secs(120);
    let by_tools = |agent: &str| {
        let mut mcp = McpClient::connect(server(&home, agent));
        let mut made = Vec::new();
        let mut done = Vec::new();
        for n in 0..TASKS / 5 {
            let task = json!({"subject": format!("{agent} {n}"), "description": ""});
            made.push(mcp.ok("TaskCreate", task)["task"]["id"].clone());
        }
        while done.len() < TASKS / 5 {
            assert!(Instant::now() < deadline, "{agent} has {done:?}");
            let tasks = mcp.ok("TaskList", json!({}))["tasks"].clone();
            let free = tasks
                .as_array()
                .unwrap()
                .iter()
                .find(|task| task["status"] == "pending" && task.get("owner").is_none());
            let Some(id) = free.map(|task| task["id"].clone()) else {
                continue;
            };
            let claim = mcp.call("TaskUpdate", json!({"taskId": id, "status": "in_progress"}));
            if claim["isError"] == json!(true) {
                assert_eq!(
                    claim["structuredContent"]["error"]["kind"], "already_claimed",
                    "{claim}"
                );
                continue;
            }
            mcp.ok("TaskUpdate", json!({"taskId": id, "status": "completed"}));
            done.push(id);
        }
        assert_eq!(mcp.finish().code, Some(0));
        (made, done)
    };
    let by_commands = |agent: &str| {
        let mut made = Vec::new();
        let mut done = Vec::new();
        for n in 0..TASKS / 5 {
            let task = home.ok(&["task", "create", &format!("{agent} {n}")]);
            made.push(task["task"]["id"].clone());
        }
        while done.len() < TASKS / 5 {
            assert!(Instant::now() < deadline, "{agent} has {done:?}");
            let answer = home.run(&["--json", "task", "next", "--as", agent]);
            if answer.code != Some(0) {
                assert_eq!(answer.code, Some(3), "{answer:?}");
                continue;
            }
            let id = answer.json()["task"]["id"].clone();
            home.ok(&["task", "done", id.as_str().unwrap(), "--as", agent]);
            done.push(id);
        }
        (made, done)
    };
    let results: Vec<(Vec<Value>, Vec<Value>)> = std::thread::scope(|scope| {
        let mut threads = Vec::new();
        for agent in ["alice", "bob"] {
            threads.push(scope.spawn(move || by_tools(agent)));
        }
        for agent in ["carl", "dora", "emil"] {
            threads.push(scope.spawn(move || by_commands(agent)));
        }
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .collect()
    });
    let (made, done): (Vec<Vec<Value>>, Vec<Vec<Value>>) = results.into_iter().unzip();
    let all = |each: Vec<Vec<Value>>| {
        let ids: Vec<String> = each.iter().flatten().map(Value::to_string).collect();
        let distinct: BTreeSet<String> = ids.iter().cloned().collect();
        assert_eq!((ids.len(), distinct.len()), (TASKS, TASKS));
        distinct
    };
    assert_eq!(all(made), all(done));
    let tasks = home.tasks_on_disk();
    assert!(tasks.len() == TASKS && tasks.iter().all(|task| task["status"] == "completed"));
}

/// A client that another program runs and that dies gives its tasks back, and the lead is notified.
#[test]
fn what_a_client_had_claimed_is_free_when_it_is_gone() {
    for (how, killed) in [("it hangs up", false), ("it is killed", true)] {
        let home = home();
        home.create("one");
        home.create("two");
        let mut mcp = McpClient::connect(server(&home, "alice"));
        mcp.ok(
            "TaskUpdate",
            json!({"taskId": "1", "status": "in_progress"}),
        );
        mcp.ok("TaskUpdate", json!({"taskId": "1", "status": "completed"}));
        mcp.ok(
            "TaskUpdate",
            json!({"taskId": "2", "status": "in_progress"}),
        );
        assert!(
            home.ok(&["doctor"])["findings"]
                .as_array()
                .unwrap()
                .is_empty(),
            "{how}"
        );
        match killed {
            true => mcp.kill(),
            false => assert_eq!(mcp.finish().code, Some(0)),
        }
        let task = home.ok(&["task", "show", "2"]);
        assert_eq!(task["task"]["status"], "pending", "{how}: {task}");
        assert!(task["task"].get("owner").is_none(), "{how}: {task}");
        assert_eq!(
            home.ok(&["task", "show", "1"])["task"]["status"],
            "completed",
            "{how}"
        );
        let inbox = home.ok(&["mail", "inbox", "--as", "team-lead"]);
        let told = inbox["messages"].as_array().unwrap();
        let gone: Vec<&Value> = told
            .iter()
            .filter(|m| m["kind"] == "teammate_terminated")
            .collect();
        assert_eq!(gone.len(), 1, "{how}: {inbox}");
        assert_eq!(gone[0]["body"]["teammate"], "alice");
        assert_eq!(gone[0]["body"]["returnedTasks"], json!(["2"]));
    }
}
