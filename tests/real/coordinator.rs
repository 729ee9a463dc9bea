//! The real Claude Code on a scripted model as a coordinator. `CCB_TEST_CLAUDE` names the program.

use harness::model::{Step, prompt};
use harness::{RealTeam, RealWorld, Talk, real_program};
use serde_json::{Value, json};
use swarm::runtime::{ClaudeRuntime, McpServer};

use crate::CCB;

pub(crate) fn the_tools_in_its_request_are_those_of_the_column() {
    let program = real_program("CCB_TEST_CLAUDE");
    let world = RealWorld::new();
    let mut launch = world.claude(&prompt("Go.", &[Step::text("Seen.")]));
    launch.tools = Some(vec!["mcp__ccb".into()]);
    launch.permission_mode = Some("default".into());
    launch.mcp_servers.push(McpServer {
        name: "ccb".into(),
        // The harness marks what it starts, and a mark without its run gives no tools.
        command: "env".into(),
        args: ["-u", "CCB_RUN_ID", CCB, "mcp", "--role", "coordinator"]
            .map(str::to_owned)
            .to_vec(),
        env: [
            (
                "CCB_HOME".to_owned(),
                world.path("home").to_string_lossy().into_owned(),
            ),
            ("CLAUDE_CODE_TEAM_NAME".to_owned(), "board".to_owned()),
        ]
        .into_iter()
        .collect(),
    });
    let runtime = ClaudeRuntime::new(vec![program]);
    let mut talk = Talk::start(&runtime, launch).unwrap();
    assert_eq!(talk.turn().text, "Seen.");
    talk.finish();
    let requests = world.model.scripted();
    let tools = requests[0].body["tools"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    let name = |tool: &Value| tool["name"].as_str().unwrap_or_default().to_owned();
    let mut names: Vec<String> = tools.iter().map(name).collect();
    names.sort();
    let column = [
        "Agent",
        "SendMessage",
        "TaskCreate",
        "TaskGet",
        "TaskList",
        "TaskOutput",
        "TaskStop",
        "TaskUpdate",
        "Worktrees",
    ];
    assert_eq!(names, column.map(|tool| format!("mcp__ccb__{tool}")));
}

/// A worker's turn: writes a file, and ends.
fn work(words: &str, file: &str, text: &str) -> String {
    let steps = [
        Step::tool("Write", json!({ "file_path": file, "content": text })),
        Step::text("done"),
    ];
    prompt(words, &steps)
}

pub(crate) fn a_coordinator_hands_out_hears_follows_up_and_the_result_is_on_the_branch() {
    let team = RealTeam::claude(CCB, &json!({ "agents": { "stopGraceMs": 2000 } }));
    let order = format!(
        "Paths: one.txt, two.txt\nVerify: grep -qx 1 one.txt\n{}",
        work("FIRST ORDER", "one.txt", "1\n")
    );
    let agent = json!({
        "description": "write the file", "subagent_type": "worker", "name": "first", "prompt": order,
    });
    let more = json!({
        "to": "first", "summary": "one more", "message": work("SECOND ORDER", "two.txt", "2\n"),
    });
    let mut steps = vec![
        Step::tool("mcp__ccb__Agent", agent),
        Step::text("It is started."),
        // The notification is the next thing it hears.
        Step::tool("mcp__ccb__SendMessage", more),
        Step::text("It goes on."),
    ];
    steps.extend((0..6).map(|_| Step::text("I have heard.")));
    let lead = prompt("Coordinate.", &steps);
    let main = team.repo.main().to_str().unwrap();
    let answer = team.home.run(&[
        "-C",
        main,
        "--json",
        "--coordinator",
        "--runtime",
        "claude",
        "--mates",
        "2",
        "--merge",
        "auto",
        "--verify",
        "test -e one.txt",
        &lead,
    ]);
    assert_eq!(answer.code, Some(0), "{answer:?}");
    for (file, text) in [("one.txt", "1\n"), ("two.txt", "2\n")] {
        assert_eq!(
            team.repo.git(&["show", &format!("main:{file}")]),
            text,
            "{answer:?}"
        );
    }
    let bodies: Vec<String> = team
        .world
        .model
        .scripted()
        .iter()
        .map(|r| r.body.to_string())
        .collect();
    let heard = |body: &&String| body.contains("Coordinate.") && body.contains("task-notification");
    assert!(
        bodies.iter().any(|body| heard(&body)),
        "it was told in a message"
    );
    let knows = |body: &&String| body.contains("SECOND ORDER") && body.contains("FIRST ORDER");
    let worker = bodies.iter().filter(|body| !body.contains("Coordinate."));
    assert!(
        worker.clone().any(|body| knows(&body)),
        "the worker knew what it had done"
    );
}
