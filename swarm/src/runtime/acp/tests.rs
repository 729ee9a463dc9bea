use serde_json::{Value, json};

use super::super::testing::{converse, events, failed, lines, message, play, say, words};
use super::super::translator::{Step, Translator};
use super::super::{Event, Launch, McpServer, Messages, Order, Start, TurnStatus};
use super::options::{arguments, environment};
use super::quirks::Quirks;
use super::translate::Acp;

fn launch() -> Launch {
    Launch {
        prompt: "Go.".into(),
        cwd: "/repo".into(),
        ..Launch::default()
    }
}

fn ours() -> McpServer {
    McpServer {
        name: "ccb".into(),
        command: "/bin/ccb".into(),
        ..McpServer::default()
    }
}

fn quirks(program: &str) -> Quirks {
    Quirks::of_command(&[program.to_owned()])
}

fn acp(launch: Launch) -> Acp {
    Acp::new(launch, quirks("unknown"))
}

fn methods(lines: &[Value]) -> Vec<&str> {
    let methods = lines.iter().filter_map(|line| line["method"].as_str());
    methods.collect()
}

/// The host of the recorded conversations: yes, no, yes and interrupt, then one more.
fn host() -> impl FnMut(&Event) -> Vec<Order> {
    let (mut questions, mut turns) = (0, 0);
    move |event| match event {
        Event::Permission { id, .. } => {
            questions += 1;
            let (id, allow, reason) = (id.clone(), questions != 2, None);
            let answer = Order::Answer { id, allow, reason };
            if questions == 3 {
                vec![answer, Order::Interrupt]
            } else {
                vec![answer]
            }
        }
        Event::TurnEnded(_) => {
            turns += 1;
            match turns {
                1 => vec![Order::Send(message('a', false))],
                2 => vec![Order::Send(message('b', false))],
                3 => vec![Order::Send(message('c', false))],
                _ => vec![Order::Finish],
            }
        }
        _ => Vec::new(),
    }
}

#[test]
fn a_conversation_with_opencode() {
    let mut launch = launch();
    launch.mcp_servers = vec![ours()];
    launch.system_prompt = Some("You are small.".into());
    launch.effort = Some("high".into());
    let mut acp = acp(launch);
    let steps = converse(&mut acp, include_str!("testdata/opencode.jsonl"), host());
    assert_eq!(
        words(&steps),
        [
            "started",
            "output",
            "use bash",
            "may bash",
            "result false",
            "use ccb_TaskCreate",
            "result false",
            "text All done.",
            "usage 7931 25",
            "Completed All done.",
            "accepted a",
            "use bash",
            "may bash",
            "result true",
            "usage 7984 25",
            "Completed",
            "accepted b",
            "use bash",
            "may bash",
            "result false",
            "Interrupted",
            "accepted c",
            "text Still here.",
            "usage 8268 25",
            "Completed Still here.",
        ]
    );
    let lines = lines(&steps);
    assert_eq!(
        methods(&lines),
        [
            "initialize",
            "session/new",
            "session/prompt",
            "session/prompt",
            "session/prompt",
            "session/cancel",
            "session/prompt"
        ]
    );
    assert_eq!(lines[1]["params"]["cwd"], "/repo");
    assert_eq!(lines[1]["params"]["mcpServers"][0]["name"], "ccb");
    assert_eq!(lines[2]["params"]["prompt"][0]["text"], "You are small.");
    assert_eq!(lines[2]["params"]["prompt"][1]["text"], "Go.");
    let answers: Vec<_> = lines
        .iter()
        .filter(|line| line.get("result").is_some())
        .collect();
    let options: Vec<_> = answers
        .iter()
        .map(|answer| answer["result"]["outcome"]["optionId"].as_str().unwrap())
        .collect();
    assert_eq!(options, ["once", "reject", "once"]);
    assert_eq!(steps.last(), Some(&Step::Close));
    let used = events(&steps).into_iter().find_map(|event| match event {
        Event::ToolUse { input, .. } => Some(input),
        _ => None,
    });
    // The arguments come after the first news of the call.
    assert_eq!(used.unwrap()["command"], "touch yes.txt");
    assert!(
        matches!(&events(&steps)[0], Event::Started { session: Some(session), model: Some(model) }
        if session.starts_with("ses_") && model == "fake/m")
    );
}

#[test]
fn a_conversation_with_gemini() {
    let mut launch = launch();
    launch.mcp_servers = vec![ours()];
    launch.permission_mode = Some("acceptEdits".into());
    let mut acp = acp(launch);
    let steps = converse(&mut acp, include_str!("testdata/gemini.jsonl"), host());
    assert_eq!(
        words(&steps),
        [
            "started",
            "use run_shell_command",
            "may run_shell_command",
            "result false",
            "use mcp_ccb_TaskCreate",
            "result false",
            "text All done.",
            "usage 36480 75",
            "Completed All done.",
            "accepted a",
            "use run_shell_command",
            "may run_shell_command",
            "result true",
            "text Well.",
            "usage 24714 50",
            "Completed Well.",
            "accepted b",
            "use run_shell_command",
            "may run_shell_command",
            "result false",
            "Interrupted",
            "accepted c",
            "text Still here.",
            "usage 12560 25",
            "Completed Still here.",
        ]
    );
    let lines = lines(&steps);
    assert_eq!(lines[2]["method"], "session/set_mode");
    assert_eq!(lines[2]["params"]["modeId"], "autoEdit");
}

#[test]
fn a_prompt_never_goes_to_a_busy_agent_that_would_cancel() {
    let mut sent = false;
    let mut acp = acp(Launch {
        permission_mode: Some("bypassPermissions".into()),
        ..launch()
    });
    let recorded = include_str!("testdata/gemini_busy.jsonl");
    let steps = converse(&mut acp, recorded, |event| match event {
        Event::ToolUse { .. } if !sent => {
            sent = true;
            vec![Order::Send(message('a', false))]
        }
        Event::TurnEnded(end) if end.text.starts_with("script is over") => {
            vec![
                Order::Send(message('b', false)),
                Order::Send(message('c', true)),
            ]
        }
        _ => Vec::new(),
    });
    let words: Vec<_> = words(&steps)
        .into_iter()
        .filter(|word| !word.starts_with("text") && !word.starts_with("usage"))
        .map(|word| {
            word.split_whitespace()
                .take(2)
                .collect::<Vec<_>>()
                .join(" ")
        })
        .collect();
    assert_eq!(
        words,
        [
            "started",
            "use run_shell_command",
            "result false",
            "Completed First:",
            "accepted a",
            "Completed script",
            "accepted b",
            "Interrupted",
            "accepted c",
        ]
    );
    // The answers to a prompt come before the next is sent.
    let mut open = 0;
    for line in lines(&steps) {
        if line["method"] == "session/prompt" {
            open += 1;
        }
    }
    assert_eq!(open, 4);
}

#[test]
fn opencode_gets_a_message_while_it_works() {
    let mut sent = false;
    let mut acp = acp(launch());
    let recorded = include_str!("testdata/opencode_busy.jsonl");
    let steps = converse(&mut acp, recorded, |event| match event {
        Event::ToolUse { .. } if !sent => {
            sent = true;
            vec![Order::Send(message('a', false))]
        }
        _ => Vec::new(),
    });
    let all = words(&steps);
    // Two prompts, one turn, one count of what was used.
    let ends: Vec<_> = all
        .iter()
        .filter(|word| word.starts_with("Completed"))
        .collect();
    assert_eq!(ends.len(), 1, "{all:?}");
    assert_eq!(all.iter().filter(|word| *word == "accepted a").count(), 1);
    let used = all.iter().filter(|word| word.starts_with("usage"));
    assert_eq!(used.count(), 1, "{all:?}");
}

#[test]
fn a_copied_session_does_not_tell_its_history_again() {
    let mut launch = launch();
    let session = "ses_old".to_owned();
    launch.start = Start::Fork { session, at: None };
    let mut acp = acp(launch);
    let recorded = include_str!("testdata/opencode_fork.jsonl");
    let steps = converse(&mut acp, recorded, |_| Vec::new());
    assert_eq!(
        words(&steps),
        ["started", "text Two.", "usage 7706 25", "Completed Two."]
    );
    let lines = lines(&steps);
    assert_eq!(methods(&lines)[1], "session/fork");
    assert_eq!(lines[1]["params"]["sessionId"], "ses_old");
}

#[test]
fn the_model_is_set_or_it_does_not_start() {
    let mut launch = launch();
    launch.model = Some("fake/other".into());
    let mut acp = acp(launch.clone());
    let recorded = include_str!("testdata/opencode_model.jsonl");
    let steps = converse(&mut acp, recorded, |_| Vec::new());
    let told = lines(&steps);
    assert_eq!(told[2]["params"]["configId"], "model");
    assert_eq!(told[2]["params"]["value"], "fake/other");
    assert!(
        matches!(&events(&steps)[0], Event::Started { model: Some(model), .. }
        if model == "fake/other")
    );

    launch.model = Some("fake/none".into());
    let mut acp = self::acp(launch);
    let recorded = include_str!("testdata/opencode_no_model.jsonl");
    let steps = converse(&mut acp, recorded, |_| Vec::new());
    failed(&steps, TurnStatus::Failed, "fake/m, fake/other");
    assert_eq!(steps.last(), Some(&Step::Close));
    assert!(!methods(&lines(&steps)).contains(&"session/prompt"));
}

#[test]
fn a_refused_login_says_how_to_log_in() {
    for (recorded, words) in [
        (
            include_str!("testdata/opencode_refused.jsonl"),
            "opencode auth login",
        ),
        (
            include_str!("testdata/gemini_refused.jsonl"),
            "GEMINI_API_KEY",
        ),
    ] {
        let steps = converse(&mut acp(launch()), recorded, |_| Vec::new());
        failed(&steps, TurnStatus::Failed, words);
    }
}

/// Answers to `initialize` and to opening a session.
fn opened(acp: &mut Acp, abilities: &Value, session: &Value) -> Vec<Step> {
    acp.begin();
    let first =
        json!({ "id": 1, "result": { "protocolVersion": 1, "agentCapabilities": abilities } });
    let mut steps = say(acp, &first.to_string());
    steps.extend(say(acp, &json!({ "id": 2, "result": session }).to_string()));
    steps
}

#[test]
fn it_logs_in_only_with_a_key() {
    let wants = r#"{"id":2,"error":{"code":-32000,"message":"Authentication required"}}"#;
    let introduced = r#"{"id":1,"result":{"protocolVersion":1,"agentInfo":{"name":"qwen-code"}}}"#;
    let mut with_key = launch();
    with_key.env = vec![("OPENAI_API_KEY".into(), "k".into())];
    let mut qwen = acp(with_key);
    qwen.begin();
    play(&mut qwen, introduced);
    let steps = say(&mut qwen, wants);
    let told = lines(&steps);
    assert_eq!(told[0]["method"], "authenticate");
    assert_eq!(told[0]["params"]["methodId"], "openai");
    let steps = say(&mut qwen, r#"{"id":3,"result":{}}"#);
    assert_eq!(methods(&lines(&steps)), ["session/new"]);
    // Once.
    let steps = say(&mut qwen, &wants.replace("\"id\":2", "\"id\":4"));
    failed(&steps, TurnStatus::Failed, "OPENAI_API_KEY");

    let mut without = acp(launch());
    without.begin();
    play(&mut without, introduced);
    let steps = say(&mut without, wants);
    failed(&steps, TurnStatus::Failed, "log in");
    assert_eq!(steps.last(), Some(&Step::Close));
}

#[test]
fn a_session_is_resumed_or_loaded() {
    let mut launch = launch();
    let session = "old".to_owned();
    launch.start = Start::Resume { session };
    let both = json!({ "loadSession": true, "sessionCapabilities": { "resume": {} } });
    let introduced =
        json!({ "id": 1, "result": { "protocolVersion": 1, "agentCapabilities": both } });
    let mut agent = acp(launch.clone());
    agent.begin();
    let steps = say(&mut agent, &introduced.to_string());
    assert_eq!(methods(&lines(&steps)), ["session/resume"]);
    // It announced what it does not have.
    let steps = say(
        &mut agent,
        r#"{"id":2,"error":{"code":-32601,"message":"no"}}"#,
    );
    assert_eq!(methods(&lines(&steps)), ["session/load"]);
    let steps = say(&mut agent, r#"{"id":3,"result":{}}"#);
    assert!(
        matches!(&events(&steps)[0], Event::Started { session: Some(session), .. }
        if session == "old")
    );

    let mut agent = acp(launch);
    agent.begin();
    let steps = say(&mut agent, r#"{"id":1,"result":{"protocolVersion":1}}"#);
    failed(&steps, TurnStatus::Failed, "neither");
}

#[test]
fn another_version_is_refused() {
    let mut agent = acp(launch());
    agent.begin();
    let steps = say(&mut agent, r#"{"id":1,"result":{"protocolVersion":2}}"#);
    failed(&steps, TurnStatus::Failed, "version 2");
    // Nothing that comes later changes that.
    assert_eq!(
        say(&mut agent, r#"{"id":2,"result":{"sessionId":"s"}}"#),
        []
    );
}

#[test]
fn planning_is_planning() {
    let mut launch = launch();
    launch.permission_mode = Some("plan".into());
    let modes = json!({ "sessionId": "s", "modes": { "availableModes": [{ "id": "plan" }] } });
    let mut agent = acp(launch.clone());
    let steps = opened(&mut agent, &json!({}), &modes);
    assert_eq!(lines(&steps).last().unwrap()["params"]["modeId"], "plan");
    let steps = say(&mut agent, r#"{"id":3,"error":{"code":1,"message":"no"}}"#);
    failed(&steps, TurnStatus::Failed, "the mode plan was refused");
    let steps = opened(
        &mut acp(launch.clone()),
        &json!({}),
        &json!({ "sessionId": "s" }),
    );
    failed(&steps, TurnStatus::Failed, "planning");
    // A mode that only asks less is not needed.
    launch.permission_mode = Some("acceptEdits".into());
    let steps = opened(&mut acp(launch), &json!({}), &json!({ "sessionId": "s" }));
    assert_eq!(methods(&lines(&steps)).last(), Some(&"session/prompt"));
}

/// An agent that has its first prompt.
fn busy() -> Acp {
    let mut agent = acp(launch());
    opened(&mut agent, &json!({}), &json!({ "sessionId": "s" }));
    agent
}

fn question(id: u64) -> String {
    let call = json!({ "toolCallId": "c", "title": "rm x", "kind": "execute", "rawInput": {} });
    json!({
        "id": id,
        "method": "session/request_permission",
        "params": {
            "sessionId": "s",
            "toolCall": call,
            "options": [{ "optionId": "yes", "kind": "allow_always" }],
        },
    })
    .to_string()
}

#[test]
fn an_interrupt_answers_what_is_open() {
    let mut agent = busy();
    say(&mut agent, &question(7));
    let steps = agent.told(Order::Interrupt);
    let told = lines(&steps);
    assert_eq!(told[0]["method"], "session/cancel");
    assert_eq!(told[1]["id"], 7);
    assert_eq!(told[1]["result"]["outcome"]["outcome"], "cancelled");
    // The reason it gives does not matter: one says "end_turn", another gives an error.
    let steps = say(
        &mut agent,
        r#"{"id":3,"error":{"code":-32603,"message":"aborted"}}"#,
    );
    assert_eq!(words(&steps), ["Interrupted"]);
}

#[test]
fn a_no_without_a_way_to_say_it_is_a_cancel() {
    let mut agent = busy();
    let steps = say(&mut agent, &question(7));
    assert_eq!(words(&steps), ["use execute", "may execute"]);
    let (id, allow, reason) = ("7".to_owned(), false, None);
    let steps = agent.told(Order::Answer { id, allow, reason });
    assert_eq!(
        lines(&steps)[0]["result"]["outcome"]["outcome"],
        "cancelled"
    );
    say(&mut agent, &question(8));
    let (id, allow, reason) = ("8".to_owned(), true, None);
    let steps = agent.told(Order::Answer { id, allow, reason });
    assert_eq!(lines(&steps)[0]["result"]["outcome"]["optionId"], "yes");
}

#[test]
fn a_name_like_ours_is_not_ours() {
    let mut launch = launch();
    launch.mcp_servers = vec![ours()];
    let mut agent = acp(launch);
    opened(&mut agent, &json!({}), &json!({ "sessionId": "s" }));
    for (id, call, title) in [
        (5, "mcp_ccb_x_Rm__1", "Rm (ccb_x MCP Server)"),
        (6, "c", "mcp__ccbx__Rm"),
    ] {
        let ask = json!({
            "id": id,
            "method": "session/request_permission",
            "params": { "toolCall": { "toolCallId": call, "title": title }, "options": [] },
        });
        let steps = say(&mut agent, &ask.to_string());
        assert_eq!(lines(&steps), Vec::<Value>::new(), "{call}");
    }
}

#[test]
fn finishing_waits_for_the_turn_and_what_is_queued() {
    let mut agent = busy();
    assert_eq!(agent.told(Order::Send(message('a', false))), []);
    assert_eq!(agent.told(Order::Finish), []);
    let steps = say(&mut agent, r#"{"id":3,"result":{"stopReason":"end_turn"}}"#);
    assert_eq!(methods(&lines(&steps)), ["session/prompt"]);
    assert!(!steps.contains(&Step::Close));
    let steps = say(&mut agent, r#"{"id":4,"result":{"stopReason":"end_turn"}}"#);
    assert_eq!(steps.last(), Some(&Step::Close));
    // And one that is idle need not wait.
    let mut agent = busy();
    say(&mut agent, r#"{"id":3,"result":{"stopReason":"end_turn"}}"#);
    assert_eq!(agent.told(Order::Finish), [Step::Close]);
}

#[test]
fn stopping_waits_for_nothing() {
    let mut agent = busy();
    agent.told(Order::Send(message('a', false)));
    let steps = agent.told(Order::Stop);
    assert_eq!(methods(&lines(&steps)), ["session/cancel"]);
    assert_eq!(steps.last(), Some(&Step::Close));
    let steps = say(
        &mut agent,
        r#"{"id":3,"result":{"stopReason":"cancelled"}}"#,
    );
    assert_eq!(words(&steps), ["Interrupted"]);
    assert_eq!(lines(&steps), Vec::<Value>::new());
    let mut starting = acp(launch());
    starting.begin();
    assert_eq!(starting.told(Order::Stop), [Step::Close]);
}

#[test]
fn an_interrupt_before_it_is_up_is_not_lost() {
    let mut agent = acp(launch());
    agent.told(Order::Interrupt);
    let steps = opened(&mut agent, &json!({}), &json!({ "sessionId": "s" }));
    assert_eq!(words(&steps), ["started", "Interrupted"]);
    assert!(!methods(&lines(&steps)).contains(&"session/prompt"));
    let steps = agent.told(Order::Send(message('a', false)));
    assert_eq!(methods(&lines(&steps)), ["session/prompt"]);
}

#[test]
fn ends_of_turns() {
    for (reason, status) in [
        ("end_turn", TurnStatus::Completed),
        ("max_tokens", TurnStatus::LimitReached),
        ("max_turn_requests", TurnStatus::LimitReached),
        ("refusal", TurnStatus::Failed),
        ("cancelled", TurnStatus::Failed),
        ("brand_new", TurnStatus::Failed),
    ] {
        let answer = json!({ "id": 3, "result": { "stopReason": reason } });
        let steps = say(&mut busy(), &answer.to_string());
        let ends = super::super::testing::ends(&steps);
        assert_eq!(ends[0].status, status, "{reason}");
    }
    let quota = r#"{"id":3,"error":{"code":429,"message":"slow down"}}"#;
    failed(&say(&mut busy(), quota), TurnStatus::Quota, "slow down");
    let hidden = r#"{"id":3,"error":{"code":-32603,"message":"Internal error","data":{"details":"401 no"}}}"#;
    failed(&say(&mut busy(), hidden), TurnStatus::Failed, "log in");
}

#[test]
fn what_it_asks_that_we_do_not_do_gets_an_answer() {
    let mut agent = busy();
    let ask = r#"{"id":"x","method":"fs/read_text_file","params":{}}"#;
    let told = lines(&say(&mut agent, ask));
    assert_eq!(told[0]["id"], "x");
    assert_eq!(told[0]["error"]["code"], -32601);
    // A line that is no message of the protocol is output; an empty one is nothing.
    let object = |text: &str| serde_json::from_str(text).unwrap();
    assert_eq!(agent.heard(&object(r#"{"hello":1}"#)), None);
    assert_eq!(say(&mut agent, r#"{"method":"brand/new"}"#), []);
    assert_eq!(say(&mut agent, r#"{"id":99,"result":{}}"#), []);
    for update in [
        json!(null),
        json!({ "sessionUpdate": "brand_new" }),
        json!([1]),
    ] {
        let line =
            json!({ "method": "session/update", "params": { "sessionId": "s", "update": update } });
        assert_eq!(say(&mut agent, &line.to_string()), []);
    }
}

#[test]
fn text_comes_in_pieces_that_are_not_tiny() {
    let mut agent = busy();
    let chunk = |text: &str| {
        let content = json!({ "type": "text", "text": text });
        let update = json!({ "sessionUpdate": "agent_message_chunk", "content": content });
        json!({ "method": "session/update", "params": { "sessionId": "s", "update": update } })
            .to_string()
    };
    for word in ["a ", "b ", "c"] {
        assert_eq!(say(&mut agent, &chunk(word)), []);
    }
    let steps = say(&mut agent, r#"{"id":3,"result":{"stopReason":"end_turn"}}"#);
    assert_eq!(words(&steps), ["text a b c", "Completed a b c"]);
    // And do not grow for ever.
    let mut agent = busy();
    let long = "x".repeat(10_000);
    let steps: Vec<Step> = (0..100)
        .flat_map(|_| say(&mut agent, &chunk(&long)))
        .collect();
    assert!(words(&steps).len() > 20);
}

#[test]
fn what_it_may_is_where_it_looks_for_it() {
    let mut launch = launch();
    launch.model = Some("m".into());
    launch.mcp_servers = vec![ours()];
    let dir = tempfile::tempdir().unwrap();
    launch.scratch = dir.path().into();
    let gemini = arguments(&launch, &quirks("gemini")).unwrap();
    assert_eq!(gemini[..3], ["--model", "m", "--admin-policy"]);
    let qwen = arguments(&launch, &quirks("qwen")).unwrap();
    let before = [
        "--model",
        "m",
        "--allowed-tools",
        "mcp__ccb",
        "--exclude-tools",
    ];
    assert_eq!(qwen[..5], before);
    assert_eq!(arguments(&launch, &quirks("opencode")).unwrap(), [""; 0]);
    assert_eq!(arguments(&launch, &quirks("unknown")).unwrap(), [""; 0]);
    for (mode, bash, edit) in [
        ("bypassPermissions", "allow", "allow"),
        ("acceptEdits", "ask", "allow"),
        ("plan", "ask", "deny"),
        ("default", "ask", "ask"),
    ] {
        launch.permission_mode = Some(mode.into());
        let env = environment(&launch, &quirks("opencode"));
        let rules = env[0].1.to_str().unwrap();
        let rules: Value = serde_json::from_str(rules).unwrap();
        assert_eq!(
            (rules["bash"].as_str(), rules["edit"].as_str()),
            (Some(bash), Some(edit))
        );
    }
    // Of what the user has set and what is ours, the stricter.
    let theirs = r#"{"bash": "deny", "edit": "allow", "task": "allow", "x": "allow"}"#;
    launch.env = vec![("OPENCODE_PERMISSION".into(), theirs.into())];
    let env = environment(&launch, &quirks("opencode"));
    let rules: Value = serde_json::from_str(env[0].1.to_str().unwrap()).unwrap();
    assert_eq!(
        (&rules["bash"], &rules["edit"], &rules["task"], &rules["x"]),
        (
            &json!("deny"),
            &json!("ask"),
            &json!("deny"),
            &json!("allow")
        )
    );
    assert_eq!(quirks("unknown").messages, Messages::BetweenTurns);
}

#[test]
fn its_mode_is_changed_where_it_offers_that() {
    let mut agent = acp(launch());
    let modes = json!({ "availableModes": [{ "id": "plan" }, { "id": "auto-edit" }] });
    let session = json!({ "sessionId": "s", "modes": modes });
    opened(&mut agent, &json!({}), &session);
    let order = |mode: &str| Order::SetMode { mode: mode.into() };
    let told = lines(&agent.told(order("acceptEdits")));
    assert_eq!(told[0]["method"], "session/set_mode");
    assert_eq!(told[0]["params"]["modeId"], "auto-edit");
    let answer = json!({ "id": told[0]["id"], "result": {} }).to_string();
    assert_eq!(words(&say(&mut agent, &answer)), ["mode acceptEdits true"]);
    let steps = agent.told(order("dontAsk"));
    assert_eq!(words(&steps), ["mode dontAsk false"]);
}
