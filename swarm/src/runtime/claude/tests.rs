use std::ffi::OsString;

use serde_json::{Value, json};
use uuid::Uuid;

use super::super::testing::{ends, events, failed, lines, message, play, say, words};
use super::super::translator::{Step, Translator};
use super::super::{Event, Launch, McpServer, Order, Start, TurnStatus};
use super::arguments::{arguments, environment};
use super::translate::Claude;

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
        ..McpServer::default()
    }
}

fn claude() -> Claude {
    let mut claude = Claude::new(&launch(), "s".into());
    claude.begin();
    claude
}

#[test]
fn the_prompt_follows_the_greeting_and_is_not_confirmed() {
    let mut claude = Claude::new(&launch(), "s".into());
    let steps = claude.begin();
    let lines = lines(&steps);
    assert_eq!(lines[0]["request"]["subtype"], "initialize");
    assert_eq!(lines[1]["message"]["content"][0]["text"], "Go.");
    assert_eq!(events(&steps), []);
    let id = lines[1]["uuid"].as_str().unwrap();
    let started = json!({ "type": "command_lifecycle", "command_uuid": id, "state": "started" });
    assert_eq!(say(&mut claude, &started.to_string()), []);
}

#[test]
fn without_a_prompt_it_is_up_at_once() {
    let launch = Launch::default();
    let mut claude = Claude::new(&launch, "s".into());
    let steps = claude.begin();
    assert_eq!(lines(&steps).len(), 1);
    assert_eq!(words(&steps), ["started"]);
    let init = json!({ "type": "system", "subtype": "init", "session_id": "s" });
    assert_eq!(say(&mut claude, &init.to_string()), []);
}

#[test]
fn a_question_waits_for_its_answer() {
    let mut claude = claude();
    let recorded = include_str!("testdata/permission.jsonl");
    let steps = play(&mut claude, recorded);
    assert_eq!(
        words(&steps),
        [
            "started",
            "text First.",
            "use Bash",
            "may Bash",
            "result false",
            "use Bash",
            "may Bash",
            "result true",
            "text Done.",
            "usage 9537 75",
            "Completed Done.",
        ]
    );
    assert_eq!(lines(&steps), Vec::<Value>::new());
    let Event::Started { session, model } = &events(&steps)[0] else {
        unreachable!("checked above");
    };
    assert!(session.as_deref().unwrap().parse::<Uuid>().is_ok());
    assert_eq!(model.as_deref(), Some("claude-opus-5-5"));
}

#[test]
fn answers_carry_what_was_asked() {
    let mut claude = claude();
    for id in ["1", "2"] {
        let ask = json!({
            "type": "control_request",
            "request_id": id,
            "request": { "subtype": "can_use_tool", "tool_name": "Bash", "input": { "command": id } },
        });
        let steps = say(&mut claude, &ask.to_string());
        assert_eq!(
            words(&steps),
            ["started", "may Bash"][usize::from(id == "2")..]
        );
    }
    let answer = |claude: &mut Claude, id: &str, allow: bool| {
        let reason = (!allow).then(|| "the lead says no".to_owned());
        let id = id.to_owned();
        lines(&claude.told(Order::Answer { id, allow, reason }))
    };
    let yes = answer(&mut claude, "1", true);
    assert_eq!(
        yes[0]["response"],
        json!({
            "subtype": "success",
            "request_id": "1",
            "response": { "behavior": "allow", "updatedInput": { "command": "1" } },
        })
    );
    // Once is enough.
    assert_eq!(answer(&mut claude, "1", true), Vec::<Value>::new());
    let no = answer(&mut claude, "2", false);
    let no = &no[0]["response"]["response"];
    assert_eq!(
        *no,
        json!({ "behavior": "deny", "message": "the lead says no" })
    );
}

#[test]
fn a_question_that_was_taken_back_needs_no_answer() {
    let mut claude = claude();
    let ask = r#"{"type":"control_request","request_id":"1","request":{"subtype":"can_use_tool","tool_name":"Bash","input":{}}}"#;
    say(&mut claude, ask);
    say(
        &mut claude,
        r#"{"type":"control_cancel_request","request_id":"1"}"#,
    );
    let (id, allow, reason) = ("1".to_owned(), true, None);
    assert_eq!(claude.told(Order::Answer { id, allow, reason }), []);
}

#[test]
fn our_tools_are_allowed_in_plan_mode_and_a_lost_server_is_named() {
    let mut with_ours = launch();
    with_ours.mcp_servers = vec![ours()];
    let mut claude = Claude::new(&with_ours, "s".into());
    claude.begin();
    let recorded = include_str!("testdata/own_tool_in_plan_mode.jsonl");
    let steps = play(&mut claude, recorded);
    assert_eq!(
        words(&steps)[..4],
        [
            "started",
            "output",
            "use mcp__ccb__TaskCreate",
            "result false"
        ]
    );
    let Event::Output { bytes, .. } = &events(&steps)[1] else {
        unreachable!("checked above");
    };
    assert_eq!(bytes, b"[MCP server gone: failed]\n");
    let answers = lines(&steps);
    let answer = &answers[0]["response"]["response"];
    assert_eq!(
        *answer,
        json!({ "behavior": "allow", "updatedInput": { "x": "1" } })
    );
    // Without our server, something else of that name asks like the rest.
    let steps = play(&mut self::claude(), recorded);
    assert!(words(&steps).contains(&"may mcp__ccb__TaskCreate".to_owned()));
    assert_eq!(lines(&steps), Vec::<Value>::new());
}

#[test]
fn a_name_that_only_begins_like_ours_asks() {
    let mut with_ours = launch();
    with_ours.mcp_servers = vec![ours()];
    let mut claude = Claude::new(&with_ours, "s".into());
    claude.begin();
    let ask = r#"{"type":"control_request","request_id":"1","request":{"subtype":"can_use_tool","tool_name":"mcp__ccbx__Rm","input":{}}}"#;
    assert_eq!(
        words(&say(&mut claude, ask)),
        ["started", "may mcp__ccbx__Rm"]
    );
}

#[test]
fn an_interrupt_of_ours_is_not_a_failure() {
    let recorded = include_str!("testdata/interrupt.jsonl");
    let mut claude = claude();
    let order = claude.told(Order::Interrupt);
    assert_eq!(lines(&order)[0]["request"]["subtype"], "interrupt");
    let steps = play(&mut claude, recorded);
    assert_eq!(
        words(&steps),
        [
            "started",
            "use Bash",
            "result true",
            "usage 3012 25",
            "Interrupted"
        ]
    );
    assert_eq!(ends(&steps)[0].error, None);
    // Another process sent it SIGINT, upon which it exits with 0.
    let steps = play(&mut self::claude(), recorded);
    failed(&steps, TurnStatus::Failed, "from outside");
}

#[test]
fn an_urgent_message_does_not_wait_for_a_tool() {
    let mut claude = claude();
    let tool = r#"{"type":"assistant","message":{"content":[{"type":"tool_use","id":"t","name":"Bash","input":{}}]}}"#;
    let result = r#"{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"t","content":"ok"}]}}"#;
    play(&mut claude, tool);
    let sent = lines(&claude.told(Order::Send(message('a', true))));
    assert_eq!(sent[0]["request"]["subtype"], "interrupt");
    assert_eq!(sent[1]["priority"], "now");
    // Without one its priority is enough.
    play(&mut claude, result);
    let sent = lines(&claude.told(Order::Send(message('b', true))));
    assert_eq!(sent.len(), 1, "{sent:?}");
    assert_eq!(sent[0]["priority"], "now");
}

#[test]
fn messages_are_confirmed_once_when_they_arrive() {
    let mut claude = claude();
    for last in ['a', 'b'] {
        let sent = claude.told(Order::Send(message(last, false)));
        let sent = &lines(&sent)[0];
        assert_eq!(sent.get("priority"), None);
        assert_eq!(
            sent["message"]["content"][0]["text"],
            format!("message {last}")
        );
    }
    let steps = play(&mut claude, include_str!("testdata/mid_turn.jsonl"));
    assert_eq!(
        words(&steps),
        [
            "started",
            "use Bash",
            "result false",
            "accepted a",
            "accepted b",
            "text Done.",
            "usage 6267 50",
            "Completed Done.",
        ]
    );
}

#[test]
fn an_urgent_message_ends_the_turn_and_starts_the_next() {
    let mut claude = claude();
    let sent = claude.told(Order::Send(message('a', true)));
    assert_eq!(lines(&sent)[0]["priority"], "now");
    let steps = play(&mut claude, include_str!("testdata/now.jsonl"));
    assert_eq!(
        words(&steps),
        [
            "started",
            "text a b c d e ",
            "Interrupted a b c d e",
            "accepted a",
            "text Now.",
            "usage 3034 25",
            "Completed Now.",
        ]
    );
}

#[test]
fn a_refused_login_ends_the_turn_after_the_second_try() {
    let mut claude = claude();
    let steps = play(&mut claude, include_str!("testdata/refused.jsonl"));
    assert_eq!(words(&steps), ["started", "stalled", "stalled", "Failed"]);
    assert_eq!(lines(&steps).len(), 1);
    assert_eq!(lines(&steps)[0]["request"]["subtype"], "interrupt");
    failed(&steps, TurnStatus::Failed, "log in");
    // The next turn is judged for itself.
    let ok = r#"{"type":"result","subtype":"success","is_error":false,"result":"ok"}"#;
    assert_eq!(ends(&say(&mut claude, ok))[0].status, TurnStatus::Completed);
}

#[test]
fn a_missing_login_says_what_to_do() {
    let steps = play(&mut claude(), include_str!("testdata/not_logged_in.jsonl"));
    assert_eq!(words(&steps), ["started", "Failed"]);
    failed(&steps, TurnStatus::Failed, "Please run /login");
    failed(&steps, TurnStatus::Failed, "ANTHROPIC_API_KEY");
}

#[test]
fn what_the_provider_refuses_is_told_apart() {
    let quota = play(&mut claude(), include_str!("testdata/quota.jsonl"));
    assert_eq!(words(&quota), ["started", "stalled", "Quota"]);
    failed(&quota, TurnStatus::Quota, "429");
    let overloaded = play(&mut claude(), include_str!("testdata/overloaded.jsonl"));
    failed(&overloaded, TurnStatus::Quota, "529");
    // "subtype" is "success" here.
    let bad = play(&mut claude(), include_str!("testdata/bad_request.jsonl"));
    assert_eq!(words(&bad), ["started", "Failed"]);
    failed(&bad, TurnStatus::Failed, "API Error: 400");
}

#[test]
fn a_cut_stream_is_tried_again() {
    let steps = play(&mut claude(), include_str!("testdata/cut.jsonl"));
    assert_eq!(
        words(&steps),
        [
            "started",
            "stalled",
            "text a b",
            "usage 3004 25",
            "Completed a b"
        ]
    );
}

#[test]
fn limits_are_limits() {
    let turns = play(&mut claude(), include_str!("testdata/max_turns.jsonl"));
    failed(&turns, TurnStatus::LimitReached, "number of turns");
    let budget = play(&mut claude(), include_str!("testdata/budget.jsonl"));
    failed(&budget, TurnStatus::LimitReached, "budget");
}

#[test]
fn a_session_that_is_not_there_is_a_failure_without_a_session() {
    let steps = play(&mut claude(), include_str!("testdata/no_session.jsonl"));
    assert_eq!(words(&steps), ["started", "Failed"]);
    let Event::Started { session, .. } = &events(&steps)[0] else {
        unreachable!("checked above");
    };
    assert_eq!(*session, None);
    failed(&steps, TurnStatus::Failed, "No conversation found");
}

#[test]
fn a_process_can_end_several_turns() {
    let steps = play(&mut claude(), include_str!("testdata/background.jsonl"));
    let words = words(&steps);
    let ends: Vec<_> = words
        .iter()
        .filter(|word| word.starts_with("Completed"))
        .collect();
    assert_eq!(ends, ["Completed launched", "Completed noticed"]);
    assert_eq!(
        words.iter().filter(|word| *word == "started").count(),
        1,
        "{words:?}"
    );
    // The text of a helper is not the agent's text.
    assert!(!words.contains(&"text sub done".to_owned()), "{words:?}");
}

#[test]
fn usage_is_of_this_turn_and_not_of_the_session() {
    let usage = |claude: &mut Claude, result: Value| {
        let steps = say(claude, &result.to_string());
        let usage = events(&steps).into_iter().find_map(|event| match event {
            Event::Usage(usage) => Some(usage),
            _ => None,
        });
        usage.unwrap()
    };
    let model = json!({
        "inputTokens": 5, "cacheReadInputTokens": 20, "cacheCreationInputTokens": 3,
        "outputTokens": 7, "costUSD": 0.25,
    });
    let result = json!({
        "type": "result", "subtype": "success", "is_error": false, "total_cost_usd": 9.0,
        "usage": { "input_tokens": 1 }, "modelUsage": { "a": { "inputTokens": 1000 } },
        "model_usage_since_last_result": { "a": model, "b": model },
    });
    let used = usage(&mut claude(), result);
    assert_eq!((used.input_tokens, used.output_tokens), (56, 14));
    assert!((used.cost_usd - 0.5).abs() < 1e-9);

    // Versions that do not have it: what the session cost is all they say.
    let old = |total: f64| {
        json!({
            "type": "result", "subtype": "success", "is_error": false, "total_cost_usd": total,
            "usage": { "input_tokens": 1, "cache_read_input_tokens": 2, "output_tokens": 3 },
        })
    };
    let mut new = claude();
    assert!((usage(&mut new, old(1.0)).cost_usd - 1.0).abs() < 1e-9);
    assert!((usage(&mut new, old(1.5)).cost_usd - 0.5).abs() < 1e-9);
    let mut resumed = launch();
    let session = "s".to_owned();
    resumed.start = Start::Resume { session };
    let mut resumed = Claude::new(&resumed, "s".into());
    assert!(usage(&mut resumed, old(8.0)).cost_usd.abs() < 1e-9);
    let used = usage(&mut resumed, old(8.5));
    assert!((used.cost_usd - 0.5).abs() < 1e-9);
    assert_eq!((used.input_tokens, used.output_tokens), (3, 3));
}

#[test]
fn what_a_newer_version_says_is_passed_on_or_left_out() {
    let mut claude = claude();
    let object = |text: &str| serde_json::from_str(text).unwrap();
    // A line that we do not understand is kept as output.
    assert_eq!(claude.heard(&object(r#"{"type":"hologram"}"#)), None);
    assert_eq!(claude.heard(&object(r#"{"no":"type"}"#)), None);
    let known = [
        r#"{"type":"system","subtype":"brand_new"}"#,
        r#"{"type":"assistant"}"#,
        r#"{"type":"assistant","message":{"content":"text"}}"#,
        r#"{"type":"assistant","message":{"content":[{"type":"hologram"},7]}}"#,
        r#"{"type":"user","message":null}"#,
        r#"{"type":"command_lifecycle","state":"started","command_uuid":"x"}"#,
    ];
    for line in known {
        assert_eq!(say(&mut claude, line), [], "{line}");
    }
    // A request that we do not know gets an answer, or it would wait for ever.
    let ask = r#"{"type":"control_request","request_id":"9","request":{"subtype":"hologram"}}"#;
    let answer = lines(&say(&mut claude, ask));
    assert_eq!(answer[0]["response"]["subtype"], "error");
    assert_eq!(answer[0]["response"]["request_id"], "9");
    // An unknown end is not a success.
    let steps = say(&mut claude, r#"{"type":"result"}"#);
    failed(&steps, TurnStatus::Failed, "no reason");
}

#[test]
fn stopping_does_not_wait_for_the_turn() {
    let mut claude = claude();
    let steps = claude.told(Order::Stop);
    let subtypes: Vec<_> = lines(&steps)
        .iter()
        .map(|line| line["request"]["subtype"].clone())
        .collect();
    assert_eq!(subtypes, ["interrupt", "end_session"]);
    assert_eq!(steps.last(), Some(&Step::Close));
}

#[test]
fn finishing_waits_for_the_turn_and_for_messages() {
    let result = r#"{"type":"result","subtype":"success","is_error":false,"result":"ok"}"#;
    let mut claude = claude();
    assert_eq!(claude.told(Order::Finish), []);
    claude.told(Order::Send(message('a', false)));
    assert!(!say(&mut claude, result).contains(&Step::Close));
    let started = json!({
        "type": "command_lifecycle",
        "command_uuid": message('a', false).id,
        "state": "started",
    });
    let steps = say(&mut claude, &started.to_string());
    assert_eq!(words(&steps), ["accepted a"]);
    assert_eq!(say(&mut claude, result).last(), Some(&Step::Close));
    // And one that is idle need not wait.
    let mut claude = self::claude();
    say(&mut claude, result);
    assert_eq!(claude.told(Order::Finish), [Step::Close]);
}

#[test]
fn it_cannot_be_made_to_remember_endless_questions() {
    let mut claude = claude();
    let mut denied = 0;
    for id in 0..1000 {
        let ask = json!({
            "type": "control_request",
            "request_id": id.to_string(),
            "request": { "subtype": "can_use_tool", "tool_name": "Bash", "input": {} },
        });
        denied += lines(&say(&mut claude, &ask.to_string())).len();
    }
    assert_eq!(denied, 1000 - 256);
}

fn value_of(arguments: &[OsString], flag: &str) -> Option<String> {
    let at = arguments.iter().position(|argument| argument == flag)?;
    Some(arguments[at + 1].to_string_lossy().into_owned())
}

#[test]
fn it_gets_tools_for_work_and_no_others() {
    let dir = tempfile::tempdir().unwrap();
    let mut launch = launch();
    launch.scratch = dir.path().into();
    launch.mcp_servers = vec![ours()];
    launch.tools = Some(
        ["Bash(git *)", "Read", "TaskCreate", "mcp__ccb__TaskGet"]
            .map(str::to_owned)
            .into(),
    );
    launch.disallowed_tools = vec!["WebFetch".into()];
    let all = arguments(&launch, "s").unwrap();
    assert_eq!(value_of(&all, "--tools").as_deref(), Some("Bash,Read"));
    assert_eq!(
        value_of(&all, "--allowedTools").as_deref(),
        Some("mcp__ccb,Bash(git *)")
    );
    assert_eq!(
        value_of(&all, "--disallowedTools").as_deref(),
        Some("WebFetch")
    );
    let file = value_of(&all, "--mcp-config").unwrap();
    let config: Value = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
    assert_eq!(config["mcpServers"]["ccb"]["args"], json!(["mcp"]));
    let env = environment(&launch);
    assert!(env.contains(&("ENABLE_TOOL_SEARCH".into(), "false".into())));

    launch.mcp_servers.clear();
    let all = arguments(&launch, "s").unwrap();
    assert_eq!(value_of(&all, "--tools").as_deref(), Some("Bash,Read"));
    assert_eq!(
        value_of(&all, "--disallowedTools").as_deref(),
        Some("WebFetch")
    );
    assert_eq!(value_of(&all, "--mcp-config"), None);
}

#[test]
fn one_that_only_decides_has_no_tools_of_its_own() {
    let dir = tempfile::tempdir().unwrap();
    let mut launch = launch();
    launch.scratch = dir.path().into();
    launch.mcp_servers = vec![ours()];
    launch.tools = Some(vec!["mcp__ccb".into()]);
    launch
        .env
        .push(("CCB_SCRATCHPAD".into(), dir.path().into()));
    assert!(launch.hands_off());
    let all = arguments(&launch, "s").unwrap();
    assert_eq!(value_of(&all, "--tools").as_deref(), Some(""));
    assert_eq!(
        value_of(&all, "--allowedTools").as_deref(),
        Some("mcp__ccb")
    );
    assert!(!all.iter().any(|one| one == dir.path().as_os_str()));
}

#[test]
fn the_notes_of_the_team_are_open_to_it() {
    let dir = tempfile::tempdir().unwrap();
    let mut launch = launch();
    launch.trusted = true;
    let there = dir.path().as_os_str();
    for (path, open) in [(dir.path().to_owned(), true), ("/no/such".into(), false)] {
        launch.env = vec![("CCB_SCRATCHPAD".into(), path.into())];
        let all = arguments(&launch, "s").unwrap();
        let given = all
            .windows(2)
            .any(|two| two[0] == "--add-dir" && two[1] == there);
        assert_eq!(given, open);
    }
}

#[test]
fn sessions_are_named_by_us() {
    let mut launch = launch();
    let all = arguments(&launch, "new").unwrap();
    assert_eq!(value_of(&all, "--session-id").as_deref(), Some("new"));
    assert_eq!(value_of(&all, "--resume"), None);
    launch.start = Start::Resume {
        session: "old".into(),
    };
    let all = arguments(&launch, "old").unwrap();
    assert_eq!(value_of(&all, "--resume").as_deref(), Some("old"));
    assert_eq!(value_of(&all, "--session-id"), None);
    launch.start = Start::Fork {
        session: "old".into(),
        at: None,
    };
    let all = arguments(&launch, "new").unwrap();
    assert_eq!(value_of(&all, "--resume").as_deref(), Some("old"));
    assert_eq!(value_of(&all, "--session-id").as_deref(), Some("new"));
    assert!(all.contains(&"--fork-session".into()));
}

#[test]
fn the_rest_of_the_arguments() {
    let dir = tempfile::tempdir().unwrap();
    let mut launch = launch();
    launch.scratch = dir.path().into();
    launch.system_prompt = Some("You are small.".into());
    launch.model = Some("haiku".into());
    launch.effort = Some("high".into());
    launch.permission_mode = Some("acceptEdits".into());
    launch.max_turns = Some(3);
    launch.max_cost_usd = Some(0.5);
    let all = arguments(&launch, "s").unwrap();
    let file = value_of(&all, "--system-prompt-file").unwrap();
    assert_eq!(std::fs::read_to_string(file).unwrap(), "You are small.");
    for (flag, value) in [
        ("--model", "haiku"),
        ("--effort", "high"),
        ("--permission-mode", "acceptEdits"),
        ("--max-turns", "3"),
        ("--max-budget-usd", "0.5"),
        ("--setting-sources", "user"),
        ("--add-dir", "/repo"),
    ] {
        assert_eq!(value_of(&all, flag).as_deref(), Some(value));
    }
    // Asking is what happens without a mode; a number is no level of effort.
    launch.permission_mode = Some("bubble".into());
    launch.effort = Some("4000".into());
    launch.trusted = true;
    let all = arguments(&launch, "s").unwrap();
    for flag in ["--permission-mode", "--effort", "--setting-sources"] {
        assert_eq!(value_of(&all, flag), None);
    }
    let env = environment(&launch);
    assert!(env.contains(&("MAX_THINKING_TOKENS".into(), "4000".into())));
}

#[test]
fn the_environment_is_the_agents_own() {
    let mut launch = launch();
    launch.env = vec![
        ("CLAUDECODE".into(), "1".into()),
        ("CLAUDE_CODE_MAX_RETRIES".into(), "2".into()),
        ("PATH".into(), "/bin".into()),
    ];
    let env = environment(&launch);
    assert!(!env.iter().any(|(name, _)| name == "CLAUDECODE"));
    assert!(env.contains(&("CLAUDE_CODE_MAX_RETRIES".into(), "2".into())));
    assert!(env.contains(&("PATH".into(), "/bin".into())));
}

#[test]
fn its_mode_is_changed_while_it_runs() {
    let mut claude = claude();
    let order = |mode: &str| Order::SetMode { mode: mode.into() };
    let answer = |line: &Value, subtype: &str| {
        let response =
            json!({ "subtype": subtype, "request_id": line["request_id"], "error": "no" });
        json!({ "type": "control_response", "response": response }).to_string()
    };
    let told = lines(&claude.told(order("acceptEdits")));
    let wanted = json!({ "subtype": "set_permission_mode", "mode": "acceptEdits" });
    assert_eq!(told[0]["request"], wanted);
    let yes = answer(&told[0], "success");
    // Before it has introduced itself: that is not its beginning.
    assert_eq!(words(&say(&mut claude, &yes)), ["mode acceptEdits true"]);
    assert_eq!(say(&mut claude, &yes), [], "once");
    let told = lines(&claude.told(order("plan")));
    let steps = say(&mut claude, &answer(&told[0], "error"));
    assert_eq!(words(&steps), ["mode plan false"]);
}

#[test]
fn hooks_of_the_definition_go_into_its_settings() {
    let dir = tempfile::tempdir().unwrap();
    let mut launch = launch();
    launch.scratch = dir.path().to_owned();
    launch.hooks.insert("PreToolUse".into(), json!([]));
    let arguments = arguments(&launch, "s").unwrap();
    let at = arguments.iter().position(|word| word == "--settings");
    let file = &arguments[at.unwrap() + 1];
    let text = std::fs::read_to_string(file).unwrap();
    assert_eq!(text, r#"{"hooks":{"PreToolUse":[]}}"#);
}

#[test]
fn the_users_servers_are_left_unless_something_says_otherwise() {
    let strict = |launch: &Launch| {
        let all = arguments(launch, "s").unwrap();
        all.iter().any(|arg| arg == "--strict-mcp-config")
    };
    let mut launch = launch();
    assert!(!strict(&launch));
    for (tools, hidden) in [
        (vec!["Read", "Edit"], true),
        (vec!["Read", "mcp__ccb__TaskList"], true),
        (vec!["Read", "Edit", "mcp__db"], false),
        (vec!["*"], false),
    ] {
        launch.tools = Some(tools.iter().map(|tool| (*tool).to_owned()).collect());
        assert_eq!(strict(&launch), hidden, "{tools:?}");
    }
    launch.tools = Some(vec!["Edit".into(), "mcp__db__query".into()]);
    let all = arguments(&launch, "s").unwrap();
    let allowed = value_of(&all, "--allowedTools").unwrap();
    assert!(
        allowed.split(',').any(|tool| tool == "mcp__db__query"),
        "{allowed}"
    );
    launch.tools = None;
    launch.only_given_servers = true;
    assert!(strict(&launch));
}
