//! Real agents that speak the Agent Client Protocol, on a scripted model. `CCB_TEST_OPENCODE`,
//! `CCB_TEST_GEMINI` and `CCB_TEST_QWEN` name the programs.

use harness::model::{Step, prompt};
use harness::{
    RealWorld, Talk, accepted, fake_tools, is_waiting, let_go, message, real_program, shell,
    waiting,
};
use serde_json::json;
use swarm::process::Ending;
use swarm::runtime::{
    AcpRuntime, Event, Launch, LaunchError, Messages, Order, Runtime, Start, TurnStatus,
};

use crate::FAKE_MCP;

/// An agent under test.
struct Agent {
    runtime: AcpRuntime,
    /// Its tool for shell commands.
    shell: &'static str,
    /// The name it has for ccb's tool `TaskCreate`.
    ours: &'static str,
    launch: fn(&RealWorld, &str) -> Launch,
    /// True if the end of its input ends it.
    ends: bool,
}

fn agent(
    variable: &str,
    argument: &str,
    [shell, ours]: [&'static str; 2],
    launch: fn(&RealWorld, &str) -> Launch,
) -> Agent {
    let command = vec![real_program(variable), argument.into()];
    Agent {
        runtime: AcpRuntime::new(command),
        shell,
        ours,
        launch,
        ends: variable != "CCB_TEST_GEMINI",
    }
}

fn opencode() -> Agent {
    let tools = ["bash", "ccb_TaskCreate"];
    agent("CCB_TEST_OPENCODE", "acp", tools, RealWorld::opencode)
}

fn gemini() -> Agent {
    let tools = ["run_shell_command", "mcp_ccb_TaskCreate"];
    agent("CCB_TEST_GEMINI", "--acp", tools, RealWorld::gemini)
}

fn qwen() -> Agent {
    let tools = ["run_shell_command", "mcp__ccb__TaskCreate"];
    agent("CCB_TEST_QWEN", "--acp", tools, RealWorld::qwen)
}

impl Agent {
    fn start(&self, launch: Launch) -> Talk {
        Talk::start(&self.runtime, launch).unwrap()
    }

    /// Lets it finish; kills it if it does not end by itself, as a host would.
    fn finish(&self, talk: &mut Talk) {
        talk.order(Order::Finish);
        if !self.ends {
            talk.kill();
        }
        let ending = talk.end();
        assert!(
            !self.ends || matches!(ending, Ending::Exited(_)),
            "{ending:?}"
        );
        assert!(talk.left_behind().is_empty());
    }

    fn answer(&self, talk: &mut Talk, allow: bool) {
        let id = talk.until("a question", |event| match event {
            Event::Permission { id, .. } => Some(id),
            _ => None,
        });
        let reason = None;
        talk.order(Order::Answer { id, allow, reason });
    }
}

/// Two turns with questions, ccb's tools, an interrupt, and another turn.
fn it_works(agent: &Agent) {
    let world = RealWorld::new();
    let steps = [
        Step::tool(agent.shell, shell("touch yes.txt")),
        Step::tool(agent.ours, json!({})),
        Step::text("All done."),
    ];
    let mut launch = (agent.launch)(&world, &prompt("Go.", &steps));
    launch.mcp_servers = vec![fake_tools(FAKE_MCP, &["TaskCreate"])];
    launch.permission_mode = Some("acceptEdits".into());
    launch.system_prompt = Some("YOU ARE A TEST.".into());
    let mut talk = agent.start(launch);
    agent.answer(&mut talk, true);
    let end = talk.turn();
    assert_eq!(
        (end.status, end.text.as_str()),
        (TurnStatus::Completed, "All done.")
    );
    assert!(world.repo().join("yes.txt").exists());
    assert!(talk.session().is_some());
    let results: Vec<_> = talk
        .seen
        .iter()
        .filter_map(|event| match event {
            Event::ToolResult { output, .. } => Some(output.clone()),
            _ => None,
        })
        .collect();
    assert_eq!(results.len(), 2, "{:#?}", talk.seen);
    assert!(
        results[1].starts_with("ours: TaskCreate for talk-"),
        "{results:?}"
    );
    // ccb's tool needed no permission.
    let asked = talk
        .seen
        .iter()
        .filter(|event| matches!(event, Event::Permission { .. }));
    assert_eq!(asked.count(), 1);
    let uses: Vec<_> = talk
        .seen
        .iter()
        .filter_map(|event| match event {
            Event::ToolUse { name, .. } => Some(name.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(uses.len(), 2, "{uses:?}");
    assert!(
        talk.seen
            .iter()
            .any(|event| matches!(event, Event::Usage(_)))
    );
    assert!(
        world.model.scripted()[0]
            .body
            .to_string()
            .contains("YOU ARE A TEST.")
    );

    let steps = [
        Step::tool(agent.shell, shell("touch no.txt")),
        Step::text("Well."),
    ];
    let (id, order) = message(&prompt("More.", &steps), false);
    talk.order(order);
    accepted(&mut talk, id);
    agent.answer(&mut talk, false);
    talk.turn();
    assert!(!world.repo().join("no.txt").exists());

    let wait = waiting(&world.repo(), "a");
    let (_, order) = message(
        &prompt("On.", &[Step::tool(agent.shell, shell(&wait))]),
        false,
    );
    talk.order(order);
    agent.answer(&mut talk, true);
    is_waiting(&world.repo(), "a");
    talk.order(Order::Interrupt);
    assert_eq!(talk.turn().status, TurnStatus::Interrupted);
    let (_, order) = message(&prompt("On.", &[Step::text("Still here.")]), false);
    talk.order(order);
    assert_eq!(talk.turn().text, "Still here.");
    agent.finish(&mut talk);
}

pub(crate) fn opencode_works() {
    it_works(&opencode());
}

pub(crate) fn gemini_works() {
    it_works(&gemini());
}

pub(crate) fn qwen_works() {
    it_works(&qwen());
}

/// A message while it works: accepted at once, or kept until the turn is over; it never interrupts
/// the turn.
fn a_message_while_busy(agent: &Agent) {
    let world = RealWorld::new();
    let steps = [
        Step::tool(agent.shell, shell(&waiting(&world.repo(), "a"))),
        Step::text("First: {{last}}"),
    ];
    let mut launch = (agent.launch)(&world, &prompt("Go.", &steps));
    launch.permission_mode = Some("bypassPermissions".into());
    let mut talk = agent.start(launch);
    is_waiting(&world.repo(), "a");
    let (id, order) = message("MESSAGE FROM THE SIDE", false);
    talk.order(order);
    let_go(&world.repo(), "a", "open");
    let end = talk.turn();
    assert_eq!(end.status, TurnStatus::Completed, "{end:?}");
    let said = format!("{:?}", talk.seen);
    assert!(said.contains("First: "), "{said}");
    if agent.runtime.abilities().messages == Messages::BetweenTurns {
        assert_eq!(talk.turn().status, TurnStatus::Completed);
    }
    let confirmed = talk
        .seen
        .iter()
        .filter(|event| matches!(event, Event::Accepted { .. }));
    assert_eq!(confirmed.count(), 1);
    assert!(talk.seen.contains(&Event::Accepted { message: id }));
    let last = world.model.scripted().last().unwrap().body.to_string();
    assert!(last.contains("FROM THE SIDE"));

    let (_, order) = message(&prompt("Hang.", &[Step::text("begun").hang()]), false);
    let before = world.model.scripted().len();
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
    agent.finish(&mut talk);
}

pub(crate) fn opencode_takes_in_a_message_while_busy() {
    a_message_while_busy(&opencode());
}

pub(crate) fn gemini_is_not_cancelled_by_a_message() {
    a_message_while_busy(&gemini());
}

pub(crate) fn qwen_is_not_cancelled_by_a_message() {
    a_message_while_busy(&qwen());
}

fn a_refused_login(agent: &Agent) {
    let world = RealWorld::new();
    let mut talk = agent.start((agent.launch)(&world, &prompt("Go.", &[Step::http(401)])));
    let end = talk.turn();
    assert_eq!(end.status, TurnStatus::Failed);
    assert!(end.error.as_ref().unwrap().contains("log in") || end.error.unwrap().contains("login"));
    agent.finish(&mut talk);
}

pub(crate) fn opencode_without_a_login() {
    a_refused_login(&opencode());
}

pub(crate) fn gemini_without_a_login() {
    a_refused_login(&gemini());
}

pub(crate) fn qwen_without_a_login() {
    a_refused_login(&qwen());
}

fn a_session_goes_on(agent: &Agent, can_fork: bool) {
    let world = RealWorld::new();
    let launch = (agent.launch)(&world, &prompt("FIRST WORDS", &[Step::text("One.")]));
    let mut talk = agent.start(launch);
    talk.turn();
    agent.finish(&mut talk);
    let session = talk.session().unwrap();
    let mut starts = vec![Start::Resume {
        session: session.clone(),
    }];
    let fork = Start::Fork {
        session: session.clone(),
        at: None,
    };
    if can_fork {
        starts.insert(0, fork.clone());
    } else {
        let mut launch = (agent.launch)(&world, "Go.");
        launch.start = fork;
        let refused = Talk::start(&agent.runtime, launch);
        assert!(matches!(refused, Err(LaunchError::Unsupported(_))));
    }
    for start in starts {
        let mut launch = (agent.launch)(&world, &prompt("LATER WORDS", &[Step::text("Two.")]));
        launch.start = start.clone();
        let mut talk = agent.start(launch);
        let end = talk.turn();
        assert_eq!(end.text, "Two.", "{end:?} {:#?}", talk.seen);
        // Messages from before the session was reopened are not repeated.
        assert!(!format!("{:?}", talk.seen).contains("One."));
        agent.finish(&mut talk);
        let is_fork = matches!(start, Start::Fork { .. });
        assert_eq!(talk.session().unwrap() != session, is_fork);
        let requests = world.model.scripted();
        let last = requests.last().unwrap().body.to_string();
        assert!(last.contains("FIRST WORDS") && last.contains("LATER WORDS"));
    }
}

pub(crate) fn opencode_goes_on_and_copies() {
    a_session_goes_on(&opencode(), true);
}

pub(crate) fn qwen_goes_on() {
    a_session_goes_on(&qwen(), false);
}

pub(crate) fn gemini_cannot_go_on() {
    let agent = gemini();
    let world = RealWorld::new();
    for start in [
        Start::Resume {
            session: "x".into(),
        },
        Start::Fork {
            session: "x".into(),
            at: None,
        },
    ] {
        let mut launch = world.gemini("Go.");
        launch.start = start;
        let refused = Talk::start(&agent.runtime, launch);
        assert!(matches!(refused, Err(LaunchError::Unsupported(_))));
    }
}

pub(crate) fn opencode_uses_the_model_it_is_told() {
    let agent = opencode();
    let world = RealWorld::new();
    let mut launch = world.opencode(&prompt("Go.", &[Step::text("Done.")]));
    launch.model = Some("fake/other".into());
    let mut talk = agent.start(launch);
    assert_eq!(talk.turn().text, "Done.");
    assert!(
        matches!(&talk.seen[0], Event::Started { model: Some(model), .. } if model == "fake/other")
    );
    agent.finish(&mut talk);
    assert_eq!(world.model.scripted()[0].body["model"], "other");

    let mut launch = world.opencode("Go.");
    launch.model = Some("fake/none".into());
    let mut talk = agent.start(launch);
    let end = talk.turn();
    assert_eq!(end.status, TurnStatus::Failed);
    assert!(end.error.unwrap().contains("fake/other"));
    talk.end();
}
