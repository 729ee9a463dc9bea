use serde_json::{Value, json};

use super::super::testing::{converse, ends, events, failed, lines, message, say, words};
use super::super::translator::{Step, Translator};
use super::super::{Event, Launch, McpServer, Order, Start, TurnStatus};
use super::options::{arguments, opening, turn_permissions};
use super::translate::Codex;

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
        args: vec!["mcp".into()],
        env: [("ROLE".to_owned(), "worker".to_owned())].into(),
    }
}

fn methods(lines: &[Value]) -> Vec<&str> {
    let methods = lines.iter().filter_map(|line| line["method"].as_str());
    methods.collect()
}

fn quiet(words: Vec<String>) -> Vec<String> {
    let mut words = words;
    words.retain(|word| !word.starts_with("usage"));
    words
}

#[test]
fn questions_are_answered() {
    let mut questions = 0;
    let mut codex = Codex::new(launch());
    let recorded = include_str!("testdata/questions.jsonl");
    let steps = converse(&mut codex, recorded, |event| match event {
        Event::Permission { id, .. } => {
            questions += 1;
            let (id, allow, reason) = (id.clone(), questions == 1, None);
            vec![Order::Answer { id, allow, reason }]
        }
        Event::TurnEnded(_) => vec![Order::Finish],
        _ => Vec::new(),
    });
    assert_eq!(
        words(&steps),
        [
            "started",
            "use shell",
            "may shell",
            "result false",
            "usage 100 10",
            "use shell",
            "may shell",
            "result true",
            "usage 200 20",
            "text Done.",
            "usage 300 30",
            "Completed Done.",
        ]
    );
    let told = lines(&steps);
    assert_eq!(
        methods(&told),
        ["initialize", "initialized", "thread/start", "turn/start"]
    );
    assert_eq!(told[0].get("jsonrpc"), None);
    let answers: Vec<_> = told.iter().filter_map(|line| line.get("result")).collect();
    assert_eq!(answers[0], &json!({ "decision": "accept" }));
    assert_eq!(answers[1], &json!({ "decision": "decline" }));
    assert_eq!(steps.last(), Some(&Step::Close));
    assert!(
        matches!(&events(&steps)[0], Event::Started { session: Some(_), model: Some(model) }
        if model == "test-model")
    );
}

#[test]
fn a_message_is_steered_into_the_turn_or_begins_one() {
    let mut codex = Codex::new(launch());
    let recorded = include_str!("testdata/message.jsonl");
    let steps = converse(&mut codex, recorded, |event| match event {
        Event::Started { .. } => vec![Order::Send(message('a', false))],
        Event::TurnEnded(end) if end.text == "It is done." => {
            vec![Order::Send(message('b', false))]
        }
        _ => Vec::new(),
    });
    assert_eq!(
        quiet(words(&steps)),
        [
            "started",
            "use shell",
            "result false",
            "accepted a",
            "text It is done.",
            "Completed It is done.",
            "accepted b",
            "text Two.",
            "Completed Two.",
        ]
    );
    let told = lines(&steps);
    let told: Vec<_> = told
        .iter()
        .filter(|line| line["method"] == "turn/steer")
        .collect();
    assert_eq!(told.len(), 1);
    // It names the turn it is meant for.
    assert!(told[0]["params"]["expectedTurnId"].is_string());
}

#[test]
fn interrupts_end_the_turn_and_not_the_program() {
    let mut turns = 0;
    let mut codex = Codex::new(launch());
    let recorded = include_str!("testdata/interrupts.jsonl");
    let steps = converse(&mut codex, recorded, |event| match event {
        Event::Started { .. } => vec![Order::Interrupt],
        Event::TurnEnded(_) => {
            turns += 1;
            match turns {
                1 => vec![Order::Send(message('a', false))],
                _ => Vec::new(),
            }
        }
        Event::Accepted { message: id } if *id == message('a', false).id => {
            vec![Order::Send(message('b', true))]
        }
        _ => Vec::new(),
    });
    let words: Vec<_> = quiet(words(&steps))
        .into_iter()
        .filter(|word| !word.starts_with("text"))
        .collect();
    assert_eq!(
        words,
        [
            "started",
            "Interrupted",
            "accepted a",
            "Interrupted",
            "accepted b",
            "Completed At once.",
        ]
    );
}

#[test]
fn usage_does_not_count_what_was_before() {
    let mut forked = launch();
    let session = "old".to_owned();
    forked.start = Start::Fork { session, at: None };
    for (launch, recorded) in [
        (forked.clone(), include_str!("testdata/fork.jsonl")),
        (launch(), include_str!("testdata/resume.jsonl")),
    ] {
        let steps = converse(&mut Codex::new(launch), recorded, |_| Vec::new());
        assert_eq!(
            words(&steps),
            ["started", "text Two.", "usage 7 3", "Completed Two."]
        );
    }
    let (method, params) = opening(&forked);
    assert_eq!(method, "thread/fork");
    assert_eq!(params["threadId"], "old");
    assert_eq!(params["excludeTurns"], true);
}

#[test]
fn a_total_that_comes_twice_counts_once() {
    let mut codex = busy();
    let usage = |total: u64| {
        let tokens = |number: u64| json!({ "inputTokens": number, "outputTokens": 1 });
        let usage = json!({ "total": tokens(total), "last": tokens(10) });
        json!({ "method": "thread/tokenUsage/updated", "params": { "threadId": "t", "tokenUsage": usage } })
            .to_string()
    };
    assert_eq!(words(&say(&mut codex, &usage(110))), ["usage 10 1"]);
    assert_eq!(words(&say(&mut codex, &usage(110))), [""; 0]);
    assert_eq!(words(&say(&mut codex, &usage(150))), ["usage 40 0"]);
}

#[test]
fn a_session_that_is_not_there() {
    let mut launch = launch();
    let session = "gone".to_owned();
    launch.start = Start::Resume { session };
    let mut codex = Codex::new(launch);
    let recorded = include_str!("testdata/no_session.jsonl");
    let steps = converse(&mut codex, recorded, |_| Vec::new());
    failed(&steps, TurnStatus::Failed, "no rollout found");
    assert_eq!(steps.last(), Some(&Step::Close));
}

#[test]
fn our_tools_need_no_permission() {
    let mut launch = launch();
    launch.mcp_servers = vec![ours()];
    let recorded = include_str!("testdata/own_tool.jsonl");
    let steps = converse(&mut Codex::new(launch), recorded, |_| Vec::new());
    let all = quiet(words(&steps));
    assert_eq!(
        all[..3],
        ["started", "use mcp__ccb__TaskCreate", "result false"]
    );
    let answer = lines(&steps)
        .into_iter()
        .find(|line| line.get("result").is_some());
    assert_eq!(answer.unwrap()["result"]["action"], "accept");
    // Another server of that name asks.
    let steps = converse(&mut Codex::new(self::launch()), recorded, |_| Vec::new());
    assert!(words(&steps).contains(&"may mcp__ccb__TaskCreate".to_owned()));
}

#[test]
fn refusals_are_told_apart() {
    let mut turns = 0;
    let recorded = include_str!("testdata/refusals.jsonl");
    let steps = converse(&mut Codex::new(launch()), recorded, |event| match event {
        Event::TurnEnded(_) => {
            turns += 1;
            match turns {
                1 => vec![Order::Send(message('a', false))],
                2 => vec![Order::Send(message('b', false))],
                _ => Vec::new(),
            }
        }
        _ => Vec::new(),
    });
    let ends = ends(&steps);
    let statuses: Vec<_> = ends.iter().map(|end| end.status).collect();
    assert_eq!(
        statuses,
        [TurnStatus::Failed, TurnStatus::Quota, TurnStatus::Completed]
    );
    assert!(ends[0].error.as_ref().unwrap().contains("codex login"));
    assert!(words(&steps).contains(&"stalled".to_owned()));
    let limit = json!({ "message": "You have hit it", "codexErrorInfo": "usageLimitExceeded" });
    let line = json!({
        "method": "turn/completed",
        "params": { "threadId": "t", "turn": { "status": "failed", "error": limit } },
    });
    let steps = say(&mut busy(), &line.to_string());
    failed(&steps, TurnStatus::Quota, "You have hit it");
}

/// In its first turn.
fn busy() -> Codex {
    let mut codex = Codex::new(launch());
    codex.begin();
    say(&mut codex, r#"{"id":1,"result":{}}"#);
    say(&mut codex, r#"{"id":2,"result":{"thread":{"id":"t"}}}"#);
    say(&mut codex, r#"{"id":3,"result":{"turn":{"id":"turn1"}}}"#);
    codex
}

fn ended(codex: &mut Codex, status: &str) -> Vec<Step> {
    let turn = json!({ "id": "turn1", "status": status });
    let line = json!({ "method": "turn/completed", "params": { "threadId": "t", "turn": turn } });
    say(codex, &line.to_string())
}

#[test]
fn a_message_that_came_too_late_begins_the_next_turn() {
    // Codex says so after the turn's end, which has put it first already.
    let mut codex = busy();
    codex.told(Order::Send(message('a', false)));
    let steps = ended(&mut codex, "completed");
    assert_eq!(methods(&lines(&steps)), ["turn/start"]);
    let refused = r#"{"id":4,"error":{"code":-32600,"message":"no"}}"#;
    assert_eq!(say(&mut codex, refused), []);
    let steps = say(&mut codex, r#"{"id":5,"result":{"turn":{"id":"turn2"}}}"#);
    assert_eq!(steps, []);

    // Codex says so before the turn's end, after which it can continue.
    let mut codex = busy();
    codex.told(Order::Send(message('a', false)));
    assert_eq!(say(&mut codex, refused), []);
    let steps = ended(&mut codex, "completed");
    assert_eq!(methods(&lines(&steps)), ["turn/start"]);

    // The turn ended without reading it.
    let mut codex = busy();
    codex.told(Order::Send(message('a', false)));
    say(&mut codex, r#"{"id":4,"result":{"turnId":"turn1"}}"#);
    let steps = ended(&mut codex, "completed");
    let told = lines(&steps);
    assert_eq!(methods(&told), ["turn/start"]);
    assert_eq!(told[0]["params"]["input"][0]["text"], "message a");
}

#[test]
fn an_interrupt_waits_for_the_turns_name_and_not_for_a_turn() {
    let mut codex = Codex::new(launch());
    codex.begin();
    say(&mut codex, r#"{"id":1,"result":{}}"#);
    say(&mut codex, r#"{"id":2,"result":{"thread":{"id":"t"}}}"#);
    assert_eq!(codex.told(Order::Interrupt), []);
    let steps = say(&mut codex, r#"{"id":3,"result":{"turn":{"id":"turn1"}}}"#);
    assert_eq!(lines(&steps)[0]["params"]["turnId"], "turn1");
    let steps = ended(&mut codex, "interrupted");
    assert_eq!(words(&steps), ["Interrupted"]);
    // Nothing to break off.
    assert_eq!(codex.told(Order::Interrupt), []);
    // Before it is up.
    let mut codex = Codex::new(launch());
    codex.begin();
    codex.told(Order::Interrupt);
    say(&mut codex, r#"{"id":1,"result":{}}"#);
    let steps = say(&mut codex, r#"{"id":2,"result":{"thread":{"id":"t"}}}"#);
    assert_eq!(words(&steps), ["started", "Interrupted"]);
    assert_eq!(lines(&steps), Vec::<Value>::new());
}

#[test]
fn an_interrupt_from_elsewhere_is_a_failure() {
    let steps = ended(&mut busy(), "interrupted");
    failed(&steps, TurnStatus::Failed, "from outside");
    let steps = ended(&mut busy(), "brand_new");
    failed(&steps, TurnStatus::Failed, "brand_new");
}

#[test]
fn finishing_waits_and_stopping_interrupts() {
    let mut codex = busy();
    assert_eq!(codex.told(Order::Finish), []);
    assert_eq!(ended(&mut codex, "completed").last(), Some(&Step::Close));
    let mut codex = busy();
    let steps = codex.told(Order::Stop);
    assert_eq!(methods(&lines(&steps)), ["turn/interrupt"]);
    let steps = ended(&mut codex, "interrupted");
    assert_eq!(words(&steps), ["Interrupted"]);
    assert_eq!(steps.last(), Some(&Step::Close));
    let mut codex = Codex::new(launch());
    codex.begin();
    assert_eq!(codex.told(Order::Stop), [Step::Close]);
}

#[test]
fn every_kind_of_question_has_an_answer() {
    let mut codex = busy();
    let patch = json!({ "type": "fileChange", "id": "i", "changes": [{ "path": "/a" }] });
    let begun = json!({ "method": "item/started", "params": { "threadId": "t", "item": patch } });
    say(&mut codex, &begun.to_string());
    let ask = |id: u64, method: &str, params: Value| {
        json!({ "id": id, "method": method, "params": params }).to_string()
    };
    let file = ask(
        1,
        "item/fileChange/requestApproval",
        json!({ "itemId": "i" }),
    );
    let steps = say(&mut codex, &file);
    let Event::Permission { tool, input, .. } = &events(&steps)[0] else {
        unreachable!("it asks");
    };
    assert_eq!(
        (tool.as_str(), &input["changes"][0]["path"]),
        ("apply_patch", &json!("/a"))
    );
    let wanted = json!({ "network": { "enabled": true } });
    let more = json!({ "permissions": wanted });
    let more = ask(2, "item/permissions/requestApproval", more);
    assert_eq!(words(&say(&mut codex, &more)), ["may permissions"]);
    for (id, allow, answer) in [
        ("1", false, json!({ "decision": "decline" })),
        ("2", true, json!({ "permissions": wanted })),
    ] {
        let (id, reason) = (id.to_owned(), None);
        let steps = codex.told(Order::Answer { id, allow, reason });
        assert_eq!(lines(&steps)[0]["result"], answer);
    }
    for (method, params, answer) in [
        (
            "mcpServer/elicitation/request",
            json!({ "serverName": "x", "mode": "form" }),
            json!({ "action": "decline" }),
        ),
        (
            "item/tool/requestUserInput",
            json!({}),
            json!({ "answers": {} }),
        ),
    ] {
        let steps = say(&mut codex, &ask(5, method, params));
        assert_eq!(lines(&steps)[0]["result"], answer);
    }
    let steps = say(&mut codex, &ask(6, "brand/new", json!({})));
    assert_eq!(lines(&steps)[0]["error"]["code"], -32601);
}

#[test]
fn what_is_not_understood_does_no_harm() {
    let mut codex = busy();
    let object = |text: &str| serde_json::from_str(text).unwrap();
    assert_eq!(codex.heard(&object(r#"{"hello":1}"#)), None);
    for line in [
        r#"{"method":"brand/new","params":{}}"#,
        r#"{"method":"item/completed","params":{"item":{"type":"brandNew"}}}"#,
        r#"{"method":"item/completed","params":null}"#,
        r#"{"method":"item/started","params":{"threadId":"other","item":{"type":"commandExecution"}}}"#,
        r#"{"id":77,"result":{}}"#,
    ] {
        assert_eq!(say(&mut codex, line), [], "{line}");
    }
}

#[test]
fn what_it_is_told_before_the_first_turn() {
    let mut launch = launch();
    launch.mcp_servers = vec![ours()];
    launch.env = vec![("CCB_HOME".into(), "/home/x".into())];
    launch.system_prompt = Some("You are small.".into());
    launch.model = Some("m".into());
    let (method, params) = opening(&launch);
    assert_eq!(method, "thread/start");
    assert_eq!(params["baseInstructions"], "You are small.");
    assert_eq!(params["model"], "m");
    let server = &params["config"]["mcp_servers"]["ccb"];
    assert_eq!(server["args"], json!(["mcp"]));
    // Its servers do not get its environment by themselves.
    assert_eq!(
        server["env"],
        json!({ "CCB_HOME": "/home/x", "ROLE": "worker" })
    );
    // With ours or without, its own agents, plans and questions are withheld.
    let with = arguments(&launch);
    assert_eq!(with[..3], ["app-server", "--disable", "plugins"]);
    assert!(with.contains(&"agents.enabled=false"), "{with:?}");
    assert!(!with.contains(&"web_search=disabled"), "{with:?}");
    launch.mcp_servers.clear();
    assert_eq!(arguments(&launch), with);
    for (mode, approval, sandbox) in [
        (Some("bypassPermissions"), "never", "danger-full-access"),
        (Some("acceptEdits"), "on-request", "workspace-write"),
        (Some("plan"), "on-request", "read-only"),
        (Some("dontAsk"), "never", "read-only"),
        (None, "untrusted", "workspace-write"),
        (Some("brand new"), "untrusted", "workspace-write"),
    ] {
        launch.permission_mode = mode.map(str::to_owned);
        let (_, params) = opening(&launch);
        assert_eq!(params["approvalPolicy"], approval);
        assert_eq!(params["sandbox"], sandbox);
    }
}

#[test]
fn its_mode_counts_from_the_next_turn_on() {
    let mut codex = busy();
    let mode = "plan".to_owned();
    let steps = codex.told(Order::SetMode { mode });
    assert_eq!(words(&steps), ["mode plan true"]);
    ended(&mut codex, "completed");
    let told = lines(&codex.told(Order::Send(message('a', false))));
    assert_eq!(told[0]["params"]["approvalPolicy"], "on-request");
    assert_eq!(
        told[0]["params"]["sandboxPolicy"],
        json!({ "type": "readOnly" })
    );
}

#[test]
fn it_writes_to_the_notes_of_the_team_where_it_may_write_at_all() {
    let dir = tempfile::tempdir().unwrap();
    let mut launch = launch();
    launch.env = vec![("CCB_SCRATCHPAD".into(), dir.path().into())];
    for (mode, open) in [("acceptEdits", true), ("plan", false)] {
        launch.permission_mode = Some(mode.into());
        let (_, params) = opening(&launch);
        let roots = &params["config"]["sandbox_workspace_write"]["writable_roots"];
        let expected = if open {
            json!([dir.path()])
        } else {
            Value::Null
        };
        assert_eq!(*roots, expected, "{mode}");
        let (_, policy) = turn_permissions(&launch);
        assert_eq!(policy.get("writableRoots").is_some(), open, "{mode}");
    }
}
