//! Unmodified clients call every tool of every role. They are not part of this repository:
//! `tests/clients/run.sh` installs them and sets their paths.

use std::collections::BTreeSet;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use harness::{Answer, TestHome, TestRepo, real_program, texts};
use serde_json::{Value, json};

use crate::CCB;

/// A call and its expected result: words in it, an error, or anything but an error.
struct Call {
    tool: &'static str,
    arguments: Value,
    expect: Expect,
}

enum Expect {
    Fine,
    Names(&'static str),
    Error(&'static str),
}

fn call(tool: &'static str, arguments: Value, expect: Expect) -> Call {
    Call {
        tool,
        arguments,
        expect,
    }
}

const ROLES: [(&str, &str); 4] = [
    ("lead", "team-lead"),
    ("coordinator", "team-lead"),
    ("teammate", "alice"),
    ("worker", "alice"),
];

/// Every tool of a role, in an order that makes sense.
fn calls(role: &str, agent: &'static str) -> Vec<Call> {
    use Expect::{Error, Fine, Names};
    if role == "worker" {
        return Vec::new();
    }
    let new = json!({"subject": "One", "description": "All of it", "metadata": {"n": 1}});
    let mut calls = vec![
        call("TaskCreate", new, Names("#1")),
        call("TaskGet", json!({"taskId": "1"}), Names("#1")),
        call("TaskList", json!({}), Names("#1")),
        call(
            "TaskUpdate",
            json!({"taskId": "1", "status": "in_progress"}),
            Names("#1"),
        ),
        call(
            "TaskUpdate",
            json!({"taskId": "1", "status": "completed"}),
            Fine,
        ),
        call("TaskGet", json!({"taskId": "9"}), Error("task_not_found")),
        call(
            "SendMessage",
            json!({"to": "bob", "message": "Hello", "summary": "a greeting"}),
            Fine,
        ),
        call(
            "SendMessage",
            json!({"to": "bob", "message": {"type": "shutdown_request", "reason": "done"}}),
            Fine,
        ),
        call("TaskStop", json!({"task_id": "1"}), Error("board_task")),
        call(
            "TaskOutput",
            json!({"task_id": "1", "block": false}),
            Error("board_task"),
        ),
    ];
    calls.extend(agents(role));
    if role != "coordinator" {
        calls.push(call("EnterWorktree", json!({"name": agent}), Fine));
        calls.push(call("ExitWorktree", json!({"action": "remove"}), Fine));
    }
    if role != "teammate" {
        let tree = json!({"action": "create", "name": role});
        calls.push(call("Worktrees", tree, Fine));
        calls.push(call(
            "Worktrees",
            json!({"action": "status", "name": "none"}),
            Error("worktree_not_found"),
        ));
    }
    if role == "teammate" {
        calls.push(call("ExitPlanMode", json!({"plan": "First this"}), Fine));
    }
    if role == "lead" {
        calls.push(call(
            "TeamCreate",
            json!({"team_name": "board"}),
            Error("team_exists"),
        ));
        calls.push(call("TeamDelete", json!({}), Fine));
        calls.push(call(
            "TeamCreate",
            json!({"team_name": "board"}),
            Names("board"),
        ));
    }
    calls
}

/// The calls about agents that need no model: they run commands.
fn agents(role: &str) -> Vec<Call> {
    let agent = json!({"description": "say hello", "prompt": "echo hello"});
    let mut calls = vec![call("Agent", agent, Expect::Fine)];
    if role != "teammate" {
        // Any agent of the team, also one that another process started.
        let id = json!({"task_id": "helper", "block": false});
        calls.push(call("TaskOutput", id, Expect::Fine));
        calls.push(call("TaskStop", json!({"task_id": "helper"}), Expect::Fine));
        calls.push(call(
            "TaskStop",
            json!({"task_id": "helper"}),
            Expect::Error("not_running"),
        ));
    }
    calls
}

/// A team with a teammate that plans, and a repository.
struct Place {
    home: TestHome,
    repo: TestRepo,
}

impl Place {
    fn new() -> Self {
        let place = Self {
            home: TestHome::in_memory(CCB),
            repo: TestRepo::new(),
        };
        place.ok(&["team", "create", "board"]);
        for member in ["alice", "bob"] {
            place.ok(&["team", "join", "board", "--as", member]);
        }
        for member in ["alice", "bob"] {
            place.set(member);
        }
        place
            .home
            .settings(r#"{"agents": {"defaultRuntime": "shell"}}"#);
        // It waits until it is stopped.
        let agent = ["agent", "spawn", "exec sleep 1000", "--background"];
        let without_team = place.home.command_without_list(&["--json"]);
        let mut command = without_team;
        command.env("CLAUDE_CODE_TEAM_NAME", "board").args(agent);
        command
            .args(["--name", "helper"])
            .current_dir(place.repo.main());
        let started = Answer::of(command.output().unwrap());
        assert_eq!(started.code, Some(0), "{started:?}");
        place
    }

    /// Sets a member to plan mode, and to inactive by its own record: a running server counts.
    fn set(&self, member: &str) {
        let path = self.home.team_dir().join("config.json");
        let text = std::fs::read_to_string(&path).unwrap();
        let mut roster: Value = serde_json::from_str(&text).unwrap();
        for value in roster["members"].as_array_mut().unwrap() {
            if value["name"] == member {
                value["mode"] = "plan".into();
                value["isActive"] = false.into();
            }
        }
        std::fs::write(&path, roster.to_string()).unwrap();
    }

    /// Ends the agent, which may still run.
    fn end(&self) {
        self.home.run(&["agent", "stop", "helper"]);
    }

    fn ok(&self, args: &[&str]) -> Value {
        let mut command = self.home.command(&["--json"]);
        let output = command.args(args).current_dir(self.repo.main()).output();
        let answer = Answer::of(output.unwrap());
        assert_eq!(answer.code, Some(0), "{args:?}: {answer:?}");
        answer.json()
    }

    /// The command line of a server.
    fn server(&self, role: &str, agent: &str) -> Vec<String> {
        let home = self.home.path().to_str().unwrap();
        let main = self.repo.main().to_str().unwrap();
        let words = [
            CCB, "--home", home, "-C", main, "--team", "board", "mcp", "--role", role,
        ];
        let mut words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        words.extend(["--as".to_owned(), agent.to_owned()]);
        words
    }

    /// Checks that a result is the expected one.
    fn check(&self, role: &str, call: &Call, result: &Value) {
        let place = format!("{role} {} {}: {result:#}", call.tool, call.arguments);
        let words = texts(result).join("\n");
        let error = matches!(call.expect, Expect::Error(_));
        assert_eq!(result["isError"], json!(error), "{place}");
        // Some clients would show their models nothing else if there were any.
        assert!(result.get("structuredContent").is_none(), "{place}");
        assert!(!words.is_empty(), "{place}");
        if let Expect::Names(what) = call.expect {
            assert!(words.contains(what), "{place}");
        }
        eprintln!("    {role}: {} {}", call.tool, outcome(&call.expect));
    }
}

fn outcome(expect: &Expect) -> String {
    match expect {
        Expect::Fine => "worked".to_owned(),
        Expect::Names(what) => format!("named {what}"),
        Expect::Error(kind) => format!("refused as it should be ({kind})"),
    }
}

/// Every tool in the list was called, and nothing else.
fn check_all_called(role: &str, tools: &[String], calls: &[Call]) {
    let listed: BTreeSet<&str> = tools.iter().map(String::as_str).collect();
    let called: BTreeSet<&str> = calls.iter().map(|call| call.tool).collect();
    assert_eq!(listed, called, "{role}");
}

pub(crate) fn the_inspector_calls_every_tool() {
    let inspector = PathBuf::from(real_program("CCB_TEST_MCP_INSPECTOR"));
    for (role, agent) in ROLES {
        let place = Place::new();
        let server = place.server(role, agent);
        // It complains about schemas that some clients or models cannot take.
        let list = inspect(
            &inspector,
            &place,
            &server,
            &["--method", "tools/list", "--strict"],
        );
        let tools = list["tools"].as_array().unwrap();
        let tools: Vec<String> = tools
            .iter()
            .map(|t| t["name"].as_str().unwrap().to_owned())
            .collect();
        let calls = calls(role, agent);
        check_all_called(role, &tools, &calls);
        eprintln!("inspector, {role}: {} tools, no complaints", tools.len());
        for call in &calls {
            let mut args = vec!["--method", "tools/call", "--tool-name", call.tool];
            let pairs: Vec<String> = call
                .arguments
                .as_object()
                .unwrap()
                .iter()
                .map(|(name, value)| match value {
                    Value::String(text) => format!("{name}={text}"),
                    other => format!("{name}={other}"),
                })
                .collect();
            for pair in &pairs {
                args.extend(["--tool-arg", pair]);
            }
            let result = inspect(&inspector, &place, &server, &args);
            place.check(role, call, &result);
        }
        place.end();
    }
}

/// One run of the inspector: a server of its own for every call.
fn inspect(inspector: &Path, place: &Place, server: &[String], args: &[&str]) -> Value {
    let mut command = Command::new(inspector);
    command.arg("--cli").args(server).args(args);
    command.env_clear().env("HOME", place.home.path());
    command.envs(std::env::var_os("PATH").map(|path| ("PATH", path)));
    let output = command
        .stdin(Stdio::null())
        .output()
        .expect("the inspector starts");
    let answer = Answer::of(output);
    // For a list the exit code says if it has complaints.
    let complains = args.contains(&"--strict") && answer.code != Some(0);
    // It adds a line of its own if a tool refused.
    let mut values = serde_json::Deserializer::from_str(&answer.stdout).into_iter::<Value>();
    match values.next() {
        Some(Ok(value)) if !complains => value,
        _ => panic!("{args:?}: {answer:?}"),
    }
}

pub(crate) fn pythons_client_calls_every_tool() {
    let python = PathBuf::from(real_program("CCB_TEST_MCP_PYTHON"));
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("clients/client.py");
    for (role, agent) in ROLES {
        let place = Place::new();
        let calls = calls(role, agent);
        // One call a session, so that each can be compared before the next changes anything.
        let mut tools = Vec::new();
        let sessions = calls.iter().map(std::slice::from_ref).chain([&[][..]]);
        for session in sessions {
            let wanted: Vec<Value> = session
                .iter()
                .map(|call| json!({"name": call.tool, "arguments": call.arguments}))
                .collect();
            let job = json!({
                "command": place.server(role, agent),
                "cwd": place.repo.main(),
                "env": {"HOME": place.home.path(), "PATH": std::env::var("PATH").unwrap_or_default()},
                "calls": wanted,
            });
            let answer = run_python(&python, &script, &job);
            assert_eq!(answer["server"]["serverInfo"]["name"], "ccb", "{answer}");
            if tools.is_empty() {
                let names = answer["tools"].as_array().unwrap().iter();
                tools = names
                    .map(|name| name.as_str().unwrap().to_owned())
                    .collect();
                eprintln!("Python, {role}: {} tools", tools.len());
            }
            for (call, result) in session.iter().zip(answer["results"].as_array().unwrap()) {
                place.check(role, call, result);
            }
        }
        check_all_called(role, &tools, &calls);
        place.end();
    }
}

fn run_python(python: &Path, script: &Path, job: &Value) -> Value {
    let mut child = Command::new(python)
        .arg(script)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("Python starts");
    let mut input = child.stdin.take().unwrap();
    input.write_all(job.to_string().as_bytes()).unwrap();
    drop(input);
    Answer::of(child.wait_with_output().unwrap()).json()
}
