//! A message sent while a program works is in its model's next request: for every client that
//! docs/mcp.md sets up, as a client that only its user runs.

use std::process::Command;

use harness::model::{Step, prompt};
use harness::runs::LONG;
use harness::{RealWorld, Talk, real_program, wait_until};
use serde_json::json;
use swarm::runtime::{AcpRuntime, ClaudeRuntime, CodexRuntime, Launch, McpServer, Order, Runtime};

use crate::CCB;

/// The message. It must arrive unchanged.
const WORDS: &str = "run `cargo fmt && cargo test`, then look at <main>";

fn check(
    name: &str,
    more: &[&str],
    launch: fn(&RealWorld, &str) -> Launch,
    runtime: fn(Vec<String>) -> Box<dyn Runtime>,
    tool: &str,
) {
    let mut command = vec![real_program(&format!("CCB_TEST_{}", name.to_uppercase()))];
    command.extend(more.iter().map(ToString::to_string));
    let world = RealWorld::new();
    let (home, go) = (world.path("home"), world.path("go"));
    let ccb = |args: &[&str]| {
        let run = Command::new(CCB)
            .args(["--home", home.to_str().unwrap(), "--team", "fixers"])
            .args(args)
            .current_dir(world.repo())
            .output()
            .unwrap();
        assert!(run.status.success(), "{args:?}: {run:?}");
    };
    ccb(&["team", "create", "fixers"]);
    let steps = [
        Step::tool(tool, json!({})),
        Step::tool(tool, json!({})).wait_for(&go),
        Step::text("Read."),
    ];
    let mut launch = launch(&world, &prompt("Go.", &steps));
    // The harness marks what it starts; a user's client bears no mark.
    let unmarked = ["-u", "CCB_RUN_ID", CCB];
    let args = ["--home", home.to_str().unwrap(), "--team", "fixers", "mcp"];
    let role = ["--role", "teammate", "--as", name];
    launch.mcp_servers.push(McpServer {
        name: "ccb".into(),
        command: "env".into(),
        args: unmarked
            .iter()
            .chain(&args)
            .chain(&role)
            .map(ToString::to_string)
            .collect(),
        ..McpServer::default()
    });
    let mut talk = Talk::start(&*runtime(command), launch).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            wait_until(LONG, "it to work", || world.model.scripted().len() >= 2);
            ccb(&["mail", "send", name, WORDS, "--as", "team-lead"]);
            std::fs::write(&go, "").unwrap();
        });
        assert_eq!(talk.turn().text, "Read.", "{name}");
    });
    talk.order(Order::Finish);
    talk.kill();
    talk.end();
    let requests = world.model.scripted();
    let written = json!(WORDS).to_string();
    let written = &written[1..written.len() - 1];
    for (n, shown) in [(1, false), (2, true)] {
        // A result may stand in a text that is itself quoted.
        let body = requests[n].body.to_string().replace("\\\\", "\\");
        let times = body.matches(written).count();
        assert_eq!(times, usize::from(shown), "{name}, request {n}: {body}");
    }
}

fn acp(command: Vec<String>) -> Box<dyn Runtime> {
    Box::new(AcpRuntime::new(command))
}

pub(crate) fn a_message_reaches_the_model_of_claude() {
    let runtime = |command| Box::new(ClaudeRuntime::new(command)) as Box<dyn Runtime>;
    check(
        "claude",
        &[],
        RealWorld::claude,
        runtime,
        "mcp__ccb__TaskList",
    );
}

pub(crate) fn a_message_reaches_the_model_of_codex() {
    let runtime = |command| Box::new(CodexRuntime::new(command)) as Box<dyn Runtime>;
    check(
        "codex",
        &[],
        RealWorld::codex,
        runtime,
        "mcp__ccb::TaskList",
    );
}

pub(crate) fn a_message_reaches_the_model_of_opencode() {
    check(
        "opencode",
        &["acp"],
        RealWorld::opencode,
        acp,
        "ccb_TaskList",
    );
}

pub(crate) fn a_message_reaches_the_model_of_gemini() {
    check(
        "gemini",
        &["--acp"],
        RealWorld::gemini,
        acp,
        "mcp_ccb_TaskList",
    );
}
