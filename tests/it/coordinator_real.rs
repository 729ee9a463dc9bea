//! The real Claude Code on a scripted model as a coordinator. `CCB_TEST_CLAUDE` names the program.

use harness::model::{Step, prompt};
use harness::{RealWorld, Talk, real_program};
use serde_json::Value;
use swarm::runtime::{ClaudeRuntime, McpServer};

use crate::CCB;

#[test]
fn the_tools_in_its_request_are_those_of_the_column() {
    let Some(program) = real_program("CCB_TEST_CLAUDE") else {
        return;
    };
    let world = RealWorld::new();
    let mut launch = world.claude(&prompt("Go.", &[Step::text("Seen.")]));
    launch.tools = Some(Vec::new());
    launch.permission_mode = Some("default".into());
    launch.mcp_servers.push(McpServer {
        name: "ccb".into(),
        command: CCB.into(),
        args: ["mcp", "--role", "coordinator"].map(str::to_owned).to_vec(),
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
    ];
    assert_eq!(names, column.map(|tool| format!("mcp__ccb__{tool}")));
}
