//! MCP servers of native agents: those of definitions, the user's, the repository's, and ccb's own.

use harness::model::{Step, prompt};
use harness::runs::{LONG, left_of};
use harness::{NativeTeam, tools_of, wait_until, write};
use serde_json::{Value, json};

use crate::{CCB, FAKE_MCP};

/// Runs an agent of a type with these `keys`; returns its answer and its tools.
fn run(team: &NativeTeam, keys: &Value, steps: &[Step]) -> (harness::Answer, Vec<String>) {
    let mut definition = json!({"description": "d", "prompt": "You work."});
    for (key, value) in keys.as_object().unwrap() {
        definition[key] = value.clone();
    }
    let types = json!({ "own": definition }).to_string();
    let order = prompt("Do it.", steps);
    let before = team.requests().len();
    let how = [
        "--json",
        "agent",
        "--agents",
        &types,
        "spawn",
        "--runtime",
        "native",
        "--wait",
    ];
    let answer = team.run(&[&how[..], &["--type", "own", &order]].concat());
    let requests = team.requests();
    let tools = requests.get(before).map(tools_of).unwrap_or_default();
    (answer, tools)
}

#[test]
fn servers_of_a_definition_and_of_the_user_are_called() {
    let team = NativeTeam::new(CCB);
    let users = json!({"mcpServers": {"mine": {"command": FAKE_MCP, "args": ["look"]}}});
    write(&team.home.path().join(".claude.json"), &users.to_string());
    let inline = json!({"db": {"command": FAKE_MCP, "args": ["query", "drop"]}});
    let keys = json!({
        "mcpServers": [inline], "requiredMcpServers": ["db"], "disallowedTools": ["mcp__db__drop"],
        "permissionMode": "bypassPermissions",
    });
    let steps = [
        Step::tool("mcp__db__query", json!({})).and_tool("mcp__mine__look", json!({})),
        Step::text("heard {{last}}"),
    ];
    let (answer, tools) = run(&team, &keys, &steps);
    assert_eq!(answer.code, Some(0), "{answer:?}");
    assert!(answer.stdout.contains("heard ours: "), "{answer:?}");
    let has = |tool: &str| tools.iter().any(|name| name == tool);
    assert!(has("mcp__db__query") && has("mcp__mine__look"), "{tools:?}");
    assert!(!has("mcp__db__drop"), "{tools:?}");
    let results = team.requests().pop().unwrap().body.to_string();
    assert!(results.contains("ours: query for ") && results.contains("ours: look for "));
    // The user's servers can be left out.
    team.home
        .settings(r#"{"agents": {"userMcpServers": false}}"#);
    let (_, tools) = run(&team, &keys, &[Step::text("ok")]);
    assert!(
        tools.iter().any(|name| name == "mcp__db__query"),
        "{tools:?}"
    );
    assert!(
        !tools.iter().any(|name| name == "mcp__mine__look"),
        "{tools:?}"
    );
}

#[test]
fn an_agent_does_not_start_without_the_servers_it_needs() {
    let team = NativeTeam::new(CCB);
    let broken = json!({"db": {"command": "sh", "args": ["-c", "echo 'no licence' >&2; exit 3"]}});
    let keys = json!({"mcpServers": [broken], "requiredMcpServers": ["db"]});
    let (answer, _) = run(&team, &keys, &[Step::text("never")]);
    assert_eq!(answer.code, Some(1), "{answer:?}");
    assert!(answer.stdout.contains("missing: db: "), "{answer:?}");
    assert_eq!(team.model.requests().len(), 0, "no request was paid for");
    // A broken one that is not required is left out, and the agent works.
    let keys = json!({"mcpServers": [broken]});
    let (answer, tools) = run(&team, &keys, &[Step::text("without it")]);
    assert_eq!(answer.code, Some(0), "{answer:?}");
    assert!(
        !tools.iter().any(|name| name.starts_with("mcp__db")),
        "{tools:?}"
    );
}

#[test]
fn the_repositorys_servers_need_trust() {
    let team = NativeTeam::new(CCB);
    let servers = json!({"mcpServers": {"theirs": {"command": FAKE_MCP, "args": ["look"]}}});
    write(&team.repo.main().join(".mcp.json"), &servers.to_string());
    let theirs = |tools: &[String]| tools.iter().any(|name| name == "mcp__theirs__look");
    let (_, tools) = run(&team, &json!({}), &[Step::text("ok")]);
    assert!(!theirs(&tools), "{tools:?}");
    team.ok(&["trust"]);
    let (answer, tools) = run(&team, &json!({}), &[Step::text("ok")]);
    assert!(theirs(&tools), "{tools:?} {answer:?}");
}

#[test]
fn ours_need_no_process_and_mail_comes_while_it_works() {
    let team = NativeTeam::new(CCB);
    let gate = team.home.path().join("gate");
    let steps = [
        Step::tool(
            "mcp__ccb__TaskCreate",
            json!({"subject": "one", "description": "d"}),
        ),
        Step::tool("mcp__ccb__TaskList", json!({})).wait_for(&gate),
        Step::text("listed: {{last}}"),
    ];
    let order = prompt("Work with the board.", &steps);
    team.ok(&["team", "create", "board"]);
    let how = ["agent", "spawn", "--runtime", "native", "--name", "ann"];
    let started = team.ok(&[&how[..], &["--background", order.as_str()]].concat());
    let id = started["agent"]["agentId"].as_str().unwrap().to_owned();
    wait_until(LONG, "the task", || team.home.task_file(1).exists());
    wait_until(LONG, "the second request", || team.requests().len() >= 2);
    let processes = left_of(&id);
    let served = |line: &String| line.contains(" mcp ");
    assert!(!processes.iter().any(served), "{processes:?}");
    team.ok(&["mail", "send", "ann", "the printer burns"]);
    std::fs::write(&gate, "").unwrap();
    let heard = |text: &str| {
        let requests = team.requests();
        let mut bodies = requests.iter().map(|request| request.body.to_string());
        bodies.any(|body| body.contains(text) && body.contains("teammate-message"))
    };
    wait_until(LONG, "the message", || heard("the printer burns"));
    assert!(heard("#1"), "the board was listed");
    team.ok(&["agent", "stop", &id]);
}
