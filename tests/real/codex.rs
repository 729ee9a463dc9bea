//! The real Codex on a scripted model. `CCB_TEST_CODEX` names the program.

use harness::model::{Step, prompt};
use harness::{
    RealWorld, Talk, accepted, fake_tools, freely, is_waiting, let_go, message, real_program,
    waiting,
};
use serde_json::{Value, json};
use swarm::process::Ending;
use swarm::runtime::{CodexRuntime, Event, Launch, Order, Start, TurnStatus};
use uuid::Uuid;

use crate::FAKE_MCP;

fn codex() -> CodexRuntime {
    CodexRuntime::new(vec![real_program("CCB_TEST_CODEX")])
}

fn start(runtime: &CodexRuntime, launch: Launch) -> Talk {
    Talk::start(runtime, launch).unwrap()
}

fn run(command: &str) -> Step {
    let input = json!({ "cmd": command, "yield_time_ms": 60_000 });
    Step::tool("exec_command", input)
}

fn answer(talk: &mut Talk, allow: bool) -> (String, Value) {
    let (id, tool, input) = talk.until("a question", |event| match event {
        Event::Permission { id, tool, input } => Some((id, tool, input)),
        _ => None,
    });
    let reason = None;
    talk.order(Order::Answer { id, allow, reason });
    (tool, input)
}

fn used(talk: &Talk) -> (u64, u64) {
    let mut sum = (0, 0);
    for event in &talk.seen {
        if let Event::Usage(usage) = event {
            sum = (sum.0 + usage.input_tokens, sum.1 + usage.output_tokens);
        }
    }
    sum
}

pub(crate) fn a_turn_with_questions_and_answers() {
    let codex = codex();
    let world = RealWorld::new();
    let steps = [
        run("touch yes.txt").usage(100, 10),
        run("touch no.txt").usage(200, 20),
        Step::text("Done.").usage(300, 30),
    ];
    let mut launch = world.codex(&prompt("Go.", &steps));
    launch.system_prompt = Some("YOU ARE A TEST.".into());
    launch.max_turns = Some(5);
    let mut talk = start(&codex, launch);
    let (tool, input) = answer(&mut talk, true);
    assert_eq!(tool, "shell");
    assert!(input["command"].as_str().unwrap().contains("touch yes.txt"));
    answer(&mut talk, false);
    let end = talk.turn();
    assert_eq!(
        (end.status, end.text.as_str()),
        (TurnStatus::Completed, "Done.")
    );
    assert!(world.repo().join("yes.txt").exists());
    assert!(!world.repo().join("no.txt").exists());
    assert_eq!(used(&talk), (600, 60));
    assert!(
        !talk.output().contains("cannot be told"),
        "the host keeps limits"
    );
    assert!(
        world.model.scripted()[0]
            .body
            .to_string()
            .contains("YOU ARE A TEST.")
    );
    assert!(
        talk.seen
            .iter()
            .any(|event| matches!(event, Event::ToolResult { is_error: true, .. }))
    );
    assert_eq!(talk.finish(), Ending::Exited(0));
    assert!(talk.left_behind().is_empty());
}

pub(crate) fn a_message_arrives_at_the_next_tool_boundary() {
    let codex = codex();
    let world = RealWorld::new();
    let steps = [run(&waiting(&world.repo(), "a")), Step::text("It is done.")];
    let mut talk = start(&codex, freely(world.codex(&prompt("Go.", &steps))));
    is_waiting(&world.repo(), "a");
    let (id, order) = message("MESSAGE FROM THE SIDE", false);
    talk.order(order);
    let_go(&world.repo(), "a", "open");
    accepted(&mut talk, id);
    assert_eq!(talk.turn().text, "It is done.");
    let requests = world.model.scripted();
    assert!(!requests[0].body.to_string().contains("FROM THE SIDE"));
    assert!(requests[1].body.to_string().contains("FROM THE SIDE"));

    let (id, order) = message(&prompt("More.", &[Step::text("Two.")]), false);
    talk.order(order);
    accepted(&mut talk, id);
    assert_eq!(talk.turn().text, "Two.");
    let confirmed = talk
        .seen
        .iter()
        .filter(|event| matches!(event, Event::Accepted { .. }));
    assert_eq!(confirmed.count(), 2);
    talk.finish();
}

pub(crate) fn it_is_interrupted_by_order_and_by_an_urgent_message() {
    let codex = codex();
    let world = RealWorld::new();
    let steps = [run(&waiting(&world.repo(), "a"))];
    let mut talk = start(&codex, freely(world.codex(&prompt("Go.", &steps))));
    is_waiting(&world.repo(), "a");
    talk.order(Order::Interrupt);
    assert_eq!(talk.turn().status, TurnStatus::Interrupted);

    let before = world.model.scripted().len();
    let (_, order) = message(&prompt("Hang.", &[Step::text("begun").hang()]), false);
    talk.order(order);
    let limit = std::time::Duration::from_secs(60);
    world
        .model
        .wait_for(limit, "the call that hangs", |requests| {
            requests
                .iter()
                .filter(|request| request.is_scripted())
                .count()
                > before
        });
    let (id, order) = message(&prompt("Now.", &[Step::text("At once.")]), true);
    talk.order(order);
    assert_eq!(talk.turn().status, TurnStatus::Interrupted);
    accepted(&mut talk, id);
    assert_eq!(talk.turn().text, "At once.");
    assert_eq!(talk.finish(), Ending::Exited(0));
    assert!(talk.left_behind().is_empty());
}

pub(crate) fn stopping_ends_it_in_the_middle_of_a_tool() {
    let codex = codex();
    let world = RealWorld::new();
    let steps = [run(&waiting(&world.repo(), "a"))];
    let mut talk = start(&codex, freely(world.codex(&prompt("Go.", &steps))));
    is_waiting(&world.repo(), "a");
    talk.order(Order::Stop);
    assert_eq!(talk.turn().status, TurnStatus::Interrupted);
    assert!(matches!(talk.end(), Ending::Exited(_)));
    assert!(talk.left_behind().is_empty());
}

pub(crate) fn finishing_lets_the_turn_end() {
    let codex = codex();
    let world = RealWorld::new();
    let steps = [run(&waiting(&world.repo(), "a")), Step::text("Done.")];
    let mut talk = start(&codex, freely(world.codex(&prompt("Go.", &steps))));
    is_waiting(&world.repo(), "a");
    talk.order(Order::Finish);
    let_go(&world.repo(), "a", "open");
    assert_eq!(talk.turn().text, "Done.");
    assert_eq!(talk.end(), Ending::Exited(0));
}

pub(crate) fn a_session_goes_on_and_can_be_copied() {
    let codex = codex();
    let world = RealWorld::new();
    let mut talk = start(
        &codex,
        world.codex(&prompt("FIRST WORDS", &[Step::text("One.").usage(50, 5)])),
    );
    talk.turn();
    talk.finish();
    let session = talk.session().unwrap();
    for start_at in [
        Start::Fork {
            session: session.clone(),
            at: None,
        },
        Start::Resume {
            session: session.clone(),
        },
    ] {
        let mut launch = world.codex(&prompt("LATER WORDS", &[Step::text("Two.").usage(7, 3)]));
        launch.start = start_at.clone();
        let mut talk = start(&codex, launch);
        assert_eq!(talk.turn().text, "Two.");
        talk.finish();
        // Its own usage, not that of the session.
        assert_eq!(used(&talk), (7, 3));
        let is_fork = matches!(start_at, Start::Fork { .. });
        assert_eq!(talk.session().unwrap() != session, is_fork);
        let requests = world.model.scripted();
        let last = requests.last().unwrap().body.to_string();
        assert!(last.contains("FIRST WORDS") && last.contains("LATER WORDS"));
    }
    let mut launch = world.codex("Go.");
    let session = Uuid::new_v4().to_string();
    launch.start = Start::Resume { session };
    let mut talk = start(&codex, launch);
    let end = talk.turn();
    assert_eq!(end.status, TurnStatus::Failed);
    assert!(end.error.unwrap().contains("no rollout found"));
    assert_eq!(talk.session(), None);
    talk.end();
}

pub(crate) fn our_tools_are_there_and_its_own_agents_are_not() {
    let codex = codex();
    let world = RealWorld::new();
    let steps = [
        Step::tool("mcp__ccb::TaskCreate", json!({})),
        Step::text("{{last}}"),
    ];
    let mut launch = world.codex(&prompt("Go.", &steps));
    launch.mcp_servers = vec![fake_tools(FAKE_MCP, &["TaskCreate", "SendMessage"])];
    let mut talk = start(&codex, launch);
    let end = talk.turn();
    assert!(
        end.text.contains("ours: TaskCreate for talk-"),
        "{end:?} {:?}",
        talk.output()
    );
    assert!(
        !talk
            .seen
            .iter()
            .any(|event| matches!(event, Event::Permission { .. }))
    );
    assert!(
        talk.seen
            .iter()
            .any(|event| matches!(event, Event::ToolUse { name, .. }
        if name == "mcp__ccb__TaskCreate"))
    );
    talk.finish();
    let tools = &world.model.scripted()[0].tools;
    assert!(
        tools.iter().any(|tool| tool == "mcp__ccb::SendMessage"),
        "{tools:?}"
    );
    assert!(
        !tools.iter().any(|tool| tool.contains("agent")),
        "{tools:?}"
    );
}

pub(crate) fn what_the_provider_refuses_is_told_apart() {
    let codex = codex();
    let world = RealWorld::new();
    let mut talk = start(&codex, world.codex(&prompt("Go.", &[Step::http(401)])));
    let end = talk.turn();
    assert_eq!(end.status, TurnStatus::Failed);
    assert!(end.error.unwrap().contains("codex login"));
    assert!(
        talk.seen
            .iter()
            .any(|event| matches!(event, Event::Stalled { .. }))
    );
    let (_, order) = message(&prompt("Again.", &[Step::http(429)]), false);
    talk.order(order);
    assert_eq!(talk.turn().status, TurnStatus::Quota);
    let (_, order) = message(&prompt("Again.", &[Step::text("Well.")]), false);
    talk.order(order);
    assert_eq!(talk.turn().text, "Well.");
    talk.finish();
}
