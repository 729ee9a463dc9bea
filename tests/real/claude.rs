//! The real Claude Code on a scripted model. `CCB_TEST_CLAUDE` names the program.

use std::path::Path;

use harness::model::{Step, prompt};
use harness::{
    RealWorld, Talk, accepted, fake_tools, freely, is_waiting, let_go, message, real_program,
    shell, waiting,
};
use serde_json::json;
use swarm::process::Ending;
use swarm::runtime::{ClaudeRuntime, Event, Launch, Order, Start, TurnStatus};
use uuid::Uuid;

use crate::FAKE_MCP;

fn claude() -> ClaudeRuntime {
    ClaudeRuntime::new(vec![real_program("CCB_TEST_CLAUDE")])
}

fn start(runtime: &ClaudeRuntime, launch: Launch) -> Talk {
    Talk::start(runtime, launch).unwrap()
}

fn answer(talk: &mut Talk, allow: bool) -> String {
    let (id, tool) = talk.until("a question", |event| match event {
        Event::Permission { id, tool, .. } => Some((id, tool)),
        _ => None,
    });
    let reason = (!allow).then(|| "the lead says no".to_owned());
    talk.order(Order::Answer { id, allow, reason });
    tool
}

pub(crate) fn a_turn_with_questions_and_answers() {
    let claude = claude();
    let world = RealWorld::new();
    let steps = [
        Step::tool("Bash", shell("touch yes.txt")).usage(100, 10),
        Step::tool("Bash", shell("touch no.txt")).usage(200, 20),
        Step::text("answer: {{last}}").usage(300, 30),
    ];
    let mut talk = start(&claude, world.claude(&prompt("Go.", &steps)));
    assert_eq!(answer(&mut talk, true), "Bash");
    assert_eq!(answer(&mut talk, false), "Bash");
    let end = talk.turn();
    assert_eq!(end.status, TurnStatus::Completed);
    assert_eq!(end.text, "answer: the lead says no");
    assert!(
        matches!(&talk.seen[0], Event::Started { session: Some(id), model: Some(_) }
        if id.parse::<Uuid>().is_ok())
    );
    let usage = talk.seen.iter().find_map(|event| match event {
        Event::Usage(usage) => Some(*usage),
        _ => None,
    });
    let usage = usage.unwrap();
    assert_eq!((usage.input_tokens, usage.output_tokens), (600, 60));
    assert!(usage.cost_usd > 0.0);
    assert_eq!(talk.finish(), Ending::Exited(0));
    assert!(world.repo().join("yes.txt").exists());
    assert!(!world.repo().join("no.txt").exists());
    assert!(talk.left_behind().is_empty());
}

pub(crate) fn a_message_arrives_at_the_next_tool_boundary() {
    let claude = claude();
    let world = RealWorld::new();
    let steps = [
        Step::tool("Bash", shell(&waiting(&world.repo(), "a"))),
        Step::text("It is {{last}}."),
    ];
    let mut talk = start(&claude, freely(world.claude(&prompt("Go.", &steps))));
    is_waiting(&world.repo(), "a");
    let (id, order) = message("MESSAGE FROM THE SIDE", false);
    talk.order(order);
    let_go(&world.repo(), "a", "open");
    accepted(&mut talk, id);
    assert_eq!(talk.turn().text, "It is open.");
    let requests = world.model.scripted();
    assert!(!requests[0].body.to_string().contains("FROM THE SIDE"));
    assert!(requests[1].body.to_string().contains("FROM THE SIDE"));
    let again = talk
        .seen
        .iter()
        .filter(|event| matches!(event, Event::Accepted { .. }));
    assert_eq!(again.count(), 1);
    talk.finish();
}

pub(crate) fn a_message_to_an_idle_agent_is_its_next_turn() {
    let claude = claude();
    let world = RealWorld::new();
    let mut talk = start(
        &claude,
        world.claude(&prompt("Go.", &[Step::text("One.").usage(10, 1)])),
    );
    assert_eq!(talk.turn().text, "One.");
    let (id, order) = message(&prompt("More.", &[Step::text("Two.").usage(20, 2)]), false);
    talk.order(order);
    accepted(&mut talk, id);
    assert_eq!(talk.turn().text, "Two.");
    let used: Vec<u64> = talk
        .seen
        .iter()
        .filter_map(|event| match event {
            Event::Usage(usage) => Some(usage.input_tokens),
            _ => None,
        })
        .collect();
    assert_eq!(used, [10, 20]);
    talk.finish();
}

pub(crate) fn an_urgent_message_interrupts() {
    let claude = claude();
    let world = RealWorld::new();
    let hang = [Step::text("begun").hang()];
    let mut talk = start(&claude, world.claude(&prompt("Go.", &hang)));
    let limit = std::time::Duration::from_secs(60);
    world.model.wait_for(limit, "the first call", |requests| {
        requests.iter().any(harness::model::Recorded::is_scripted)
    });
    let (id, order) = message(&prompt("Now.", &[Step::text("At once.")]), true);
    talk.order(order);
    assert_eq!(talk.turn().status, TurnStatus::Interrupted);
    accepted(&mut talk, id);
    assert_eq!(talk.turn().text, "At once.");
    talk.finish();
}

pub(crate) fn an_interrupted_tool_dies_and_the_agent_lives() {
    let claude = claude();
    let world = RealWorld::new();
    let steps = [Step::tool("Bash", shell(&waiting(&world.repo(), "a")))];
    let mut talk = start(&claude, freely(world.claude(&prompt("Go.", &steps))));
    is_waiting(&world.repo(), "a");
    talk.order(Order::Interrupt);
    let end = talk.turn();
    assert_eq!((end.status, end.error), (TurnStatus::Interrupted, None));
    let (_, order) = message(&prompt("On.", &[Step::text("Still here.")]), false);
    talk.order(order);
    assert_eq!(talk.turn().text, "Still here.");
    assert_eq!(talk.finish(), Ending::Exited(0));
    assert!(talk.left_behind().is_empty());
}

pub(crate) fn stopping_ends_it_in_the_middle_of_a_tool() {
    let claude = claude();
    let world = RealWorld::new();
    let steps = [Step::tool("Bash", shell(&waiting(&world.repo(), "a")))];
    let mut talk = start(&claude, freely(world.claude(&prompt("Go.", &steps))));
    is_waiting(&world.repo(), "a");
    talk.order(Order::Stop);
    assert_eq!(talk.turn().status, TurnStatus::Interrupted);
    assert!(matches!(talk.end(), Ending::Exited(_)));
    assert!(talk.left_behind().is_empty());
}

pub(crate) fn a_session_goes_on_and_can_be_copied() {
    let claude = claude();
    let world = RealWorld::new();
    let mut talk = start(
        &claude,
        world.claude(&prompt("FIRST WORDS", &[Step::text("One.")])),
    );
    talk.turn();
    talk.finish();
    let session = talk.session().unwrap();

    let mut launch = world.claude(&prompt("SECOND WORDS", &[Step::text("Two.").usage(7, 7)]));
    launch.start = Start::Fork {
        session: session.clone(),
        at: None,
    };
    let mut fork = start(&claude, launch);
    assert_eq!(fork.turn().text, "Two.");
    fork.finish();
    assert_ne!(fork.session().unwrap(), session);
    let body = world.model.scripted().last().unwrap().body.to_string();
    assert!(body.contains("FIRST WORDS") && body.contains("SECOND WORDS"));
    // The usage of the copy is its own.
    let usage = fork.seen.iter().find_map(|event| match event {
        Event::Usage(usage) => Some(usage.input_tokens),
        _ => None,
    });
    assert_eq!(usage, Some(7));

    let mut launch = world.claude(&prompt("THIRD WORDS", &[Step::text("Three.")]));
    launch.start = Start::Resume {
        session: session.clone(),
    };
    let mut resumed = start(&claude, launch);
    assert_eq!(resumed.turn().text, "Three.");
    resumed.finish();
    assert_eq!(resumed.session(), Some(session));
    let body = world.model.scripted().last().unwrap().body.to_string();
    assert!(body.contains("FIRST WORDS") && !body.contains("SECOND WORDS"));
}

pub(crate) fn a_session_that_is_not_there_says_so() {
    let claude = claude();
    let world = RealWorld::new();
    let mut launch = world.claude("Go.");
    let session = Uuid::new_v4().to_string();
    launch.start = Start::Resume { session };
    let mut talk = start(&claude, launch);
    let end = talk.turn();
    assert_eq!(end.status, TurnStatus::Failed);
    assert!(end.error.unwrap().contains("No conversation found"));
    talk.end();
}

pub(crate) fn our_tools_are_there_and_its_own_are_not() {
    let claude = claude();
    let world = RealWorld::new();
    let steps = [
        Step::tool("mcp__ccb__TaskCreate", json!({})),
        Step::text("{{last}}"),
    ];
    let mut launch = world.claude(&prompt("Go.", &steps));
    launch
        .env
        .push(("CLAUDE_CODE_ENABLE_TASKS".into(), "1".into()));
    launch.mcp_servers = vec![fake_tools(FAKE_MCP, &["TaskCreate", "SendMessage"])];
    // It asks in plan mode even for allowed tools.
    launch.permission_mode = Some("plan".into());
    let mut talk = start(&claude, launch);
    let end = talk.turn();
    assert!(
        end.text.starts_with("ours: TaskCreate for talk-"),
        "{end:?}"
    );
    let asked = talk
        .seen
        .iter()
        .any(|event| matches!(event, Event::Permission { .. }));
    assert!(!asked);
    talk.finish();
    let tools = &world.model.scripted()[0].tools;
    for tool in [
        "mcp__ccb__TaskCreate",
        "mcp__ccb__SendMessage",
        "Bash",
        "Edit",
        "Read",
        "Write",
    ] {
        assert!(tools.iter().any(|name| name == tool), "{tools:?}");
    }
    let clash = |name: &&String| {
        [
            "Task", "Agent", "Send", "List", "Team", "Cron", "Enter", "Exit", "Todo", "Tool",
            "Work", "Sched", "Ask",
        ]
        .iter()
        .any(|start| name.starts_with(start))
    };
    assert_eq!(tools.iter().find(clash), None, "{tools:?}");
}

pub(crate) fn a_refused_login_fails_soon_and_says_what_to_do() {
    let claude = claude();
    let world = RealWorld::new();
    let mut talk = start(&claude, world.claude(&prompt("Go.", &[Step::http(401)])));
    let end = talk.turn();
    assert_eq!(end.status, TurnStatus::Failed);
    assert!(end.error.unwrap().contains("log in"));
    let stalled = talk
        .seen
        .iter()
        .filter(|event| matches!(event, Event::Stalled { .. }));
    assert!(stalled.count() < 4);
    talk.finish();
}

pub(crate) fn a_provider_that_refuses_for_now_is_a_quota() {
    let claude = claude();
    let world = RealWorld::new();
    let mut launch = world.claude(&prompt("Go.", &[Step::http(429).retry_after(1)]));
    launch
        .env
        .push(("CLAUDE_CODE_MAX_RETRIES".into(), "1".into()));
    let mut talk = start(&claude, launch);
    assert_eq!(talk.turn().status, TurnStatus::Quota);
    assert!(
        talk.seen
            .iter()
            .any(|event| matches!(event, Event::Stalled { .. }))
    );
    talk.finish();
}

pub(crate) fn limits_on_turns_and_money() {
    let claude = claude();
    let world = RealWorld::new();
    let steps = [Step::tool("Bash", shell("echo 1")), Step::text("never")];
    let mut launch = freely(world.claude(&prompt("Go.", &steps)));
    launch.max_turns = Some(1);
    let mut talk = start(&claude, launch);
    assert_eq!(talk.turn().status, TurnStatus::LimitReached);
    talk.finish();
    let mut launch = freely(world.claude(&prompt("Go.", &steps)));
    launch.max_cost_usd = Some(0.000_001);
    let mut talk = start(&claude, launch);
    assert_eq!(talk.turn().status, TurnStatus::LimitReached);
    talk.finish();
}

/// A repository with notes for agents and a hook.
fn with_hook(repo: &Path) {
    std::fs::create_dir_all(repo.join(".claude")).unwrap();
    std::fs::write(repo.join("CLAUDE.md"), "NOTES FOR AGENTS\n").unwrap();
    let touch = format!("touch {}", repo.join("hook-ran").display());
    let hook = json!({ "hooks": [{ "type": "command", "command": touch }] });
    let settings = json!({ "hooks": { "SessionStart": [hook] } });
    std::fs::write(repo.join(".claude/settings.json"), settings.to_string()).unwrap();
}

pub(crate) fn a_repositorys_hooks_run_only_where_it_is_trusted() {
    let claude = claude();
    for trusted in [false, true] {
        let world = RealWorld::new();
        with_hook(&world.repo());
        let mut launch = world.claude(&prompt("Go.", &[Step::text("Done.")]));
        launch.trusted = trusted;
        let mut talk = start(&claude, launch);
        assert_eq!(talk.turn().text, "Done.");
        talk.finish();
        assert_eq!(world.repo().join("hook-ran").exists(), trusted);
        let body = world.model.scripted()[0].body.to_string();
        assert!(body.contains("NOTES FOR AGENTS"), "trusted: {trusted}");
    }
}

pub(crate) fn its_prompt_and_its_tools_are_as_ordered() {
    let claude = claude();
    let world = RealWorld::new();
    let mut launch = world.claude(&prompt("Go.", &[Step::text("Done.")]));
    launch.system_prompt = Some("YOU ARE A TEST.".into());
    launch.tools = Some(vec!["Read".into(), "Bash(git *)".into()]);
    launch.model = Some("claude-test-model".into());
    let mut talk = start(&claude, launch);
    talk.turn();
    talk.finish();
    assert!(
        matches!(&talk.seen[0], Event::Started { model: Some(model), .. }
        if model == "claude-test-model")
    );
    let request = &world.model.scripted()[0];
    let system = request.body["system"].to_string();
    assert!(system.contains("YOU ARE A TEST."));
    assert!(!system.contains("software engineering"));
    let mut tools = request.tools.clone();
    // A stand-in for what it would load on demand.
    tools.retain(|tool| tool != "DeferredToolPlaceholder");
    tools.sort();
    assert_eq!(tools, ["Bash", "Read"]);
}

pub(crate) fn a_killed_program_ends_without_a_turn() {
    let claude = claude();
    let world = RealWorld::new();
    let steps = [Step::tool("Bash", shell(&waiting(&world.repo(), "a")))];
    let mut talk = start(&claude, freely(world.claude(&prompt("Go.", &steps))));
    is_waiting(&world.repo(), "a");
    talk.kill();
    assert_eq!(talk.end(), Ending::Signaled(9));
    let ended = talk
        .seen
        .iter()
        .any(|event| matches!(event, Event::TurnEnded(_)));
    assert!(!ended);
}
