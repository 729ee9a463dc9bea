//! The requests of a definition besides its prompt: MCP servers, skills, and (by a setting) a
//! configuration of its own.

use harness::script::Script;
use harness::{Answer, TestHome, Workplace, write};
use serde_json::{Value, json};

use crate::{CCB, FAKE_AGENT, FAKE_MCP};

fn home() -> TestHome {
    let home = TestHome::in_memory(CCB);
    home.with_fake_runtime(FAKE_AGENT, "");
    home
}

/// Starts an agent whose definition has these keys besides the required ones.
fn spawn(home: &TestHome, keys: &Value, script: &Script) -> Answer {
    let mut definition = json!({"description": "d", "prompt": "You work."});
    for (key, value) in keys.as_object().unwrap() {
        definition[key] = value.clone();
    }
    let types = json!({ "own": definition }).to_string();
    let prompt = script.to_prompt();
    home.run(&[
        "--json",
        "agent",
        "--agents",
        &types,
        "spawn",
        "--runtime",
        "fake",
        "--type",
        "own",
        &prompt,
    ])
}

/// The plan given to the runtime, as it is kept with the run.
fn plan(home: &TestHome, answer: &Answer) -> Value {
    assert_eq!(answer.code, Some(0), "{answer:?}");
    let id = answer.json()["agent"]["agentId"]
        .as_str()
        .unwrap()
        .to_owned();
    home.run_meta(&id)["launch"].clone()
}

fn server_names(plan: &Value) -> Vec<&str> {
    let servers = plan["mcpServers"].as_array().unwrap().iter();
    servers
        .filter_map(|server| server["name"].as_str())
        .collect()
}

#[test]
fn servers_come_by_name_or_inline() {
    let home = home();
    let known = json!({"mcpServers": {"database": {"command": FAKE_MCP, "args": ["query"], "env": {"A": "1"}}}});
    write(&home.path().join(".claude.json"), &known.to_string());
    let keys = json!({"mcpServers": ["database", {"own": {"command": FAKE_MCP}}]});
    let plan = plan(&home, &spawn(&home, &keys, &Script::new().done("ok")));
    assert_eq!(server_names(&plan), ["ccb", "database", "own"]);
    assert_eq!(plan["mcpServers"][1]["args"], json!(["query"]));
    let unknown = spawn(&home, &json!({"mcpServers": ["databse"]}), &Script::new());
    assert_eq!(unknown.code, Some(2), "{unknown:?}");
    assert!(
        unknown.stdout.contains("did you mean \\\"database\\\"?"),
        "{unknown:?}"
    );
    let far = json!({"mcpServers": [{"far": {"type": "http", "url": "http://localhost:1"}}]});
    let far = spawn(&home, &far, &Script::new());
    assert_eq!(far.json()["error"]["kind"], "bad_mcp_server", "{far:?}");
}

#[test]
fn it_does_not_start_without_the_servers_it_needs() {
    let home = home();
    let up = home.path().join("up");
    let script = Script::new().touch(&up).done("ok");
    let needs =
        |config: Value| json!({"mcpServers": [{"db": config}], "requiredMcpServers": ["db"]});
    for (config, why) in [
        (json!({"command": "/no/such/server"}), "cannot start"),
        (json!({"command": "sh", "args": ["-c", "exit 3"]}), "it "),
        (json!({"command": FAKE_MCP}), "no tools"),
        (
            json!({"command": "sh", "args": ["-c", "echo garbage; cat >/dev/null & exit 0"]}),
            "it ",
        ),
    ] {
        let answer = spawn(&home, &needs(config.clone()), &script);
        assert_eq!(answer.code, Some(1), "{config}: {answer:?}");
        assert!(answer.stdout.contains("db: "), "named: {answer:?}");
        assert!(answer.stdout.contains(why), "{config}: {answer:?}");
        assert!(!up.exists());
    }
    let good = json!({"command": FAKE_MCP, "args": ["query"]});
    let answer = spawn(&home, &needs(good), &script);
    assert_eq!(answer.code, Some(0), "{answer:?}");
    assert!(up.exists());
    let missing = spawn(&home, &json!({"requiredMcpServers": ["nowhere"]}), &script);
    assert_eq!(
        missing.json()["error"]["kind"],
        "unknown_mcp_server",
        "{missing:?}"
    );
}

#[test]
fn skills_are_part_of_the_prompt() {
    let home = home();
    let skill = "---\nname: brew\ndescription: d\n---\nBoil the water first.\n";
    write(&home.path().join("skills/brew/SKILL.md"), skill);
    let answer = spawn(
        &home,
        &json!({"skills": ["brew"]}),
        &Script::new().done("ok"),
    );
    let plan = plan(&home, &answer);
    let prompt = plan["systemPrompt"].as_str().unwrap();
    assert!(prompt.starts_with("You work."), "{prompt}");
    assert!(prompt.ends_with("Boil the water first."), "{prompt}");
    assert!(!prompt.contains("description"), "{prompt}");
    for name in ["brow", "../brew", "brew/../brew"] {
        let unknown = spawn(&home, &json!({"skills": [name]}), &Script::new());
        assert_eq!(unknown.code, Some(2), "{name}: {unknown:?}");
    }
}

#[test]
fn a_configuration_of_its_own_is_the_runs_and_stays_with_it() {
    let home = TestHome::in_memory(CCB);
    home.with_fake_runtime(FAKE_AGENT, r#""isolation":{"configHome":"own"}"#);
    let told = home.path().join("told");
    let id = home.spawn_fake(&Script::new().describe(&told).done("ok"), &[]);
    home.await_settled(&id);
    let told: Value = serde_json::from_slice(&std::fs::read(&told).unwrap()).unwrap();
    for name in ["CLAUDE_CONFIG_DIR", "CODEX_HOME", "XDG_CONFIG_HOME"] {
        let dir = told["environment"][name].as_str().unwrap();
        assert!(
            dir.starts_with(home.run_dir(&id).to_str().unwrap()),
            "{dir}"
        );
        assert!(
            std::path::Path::new(dir).is_dir(),
            "there for a resume: {dir}"
        );
    }
}

#[test]
fn what_the_repository_brings_along_needs_trust() {
    let place = Workplace::new(CCB);
    place.home.with_fake_runtime(FAKE_AGENT, "");
    let definition = format!(
        "---\nname: own\ndescription: d\nmcpServers:\n  - db: {{command: {FAKE_MCP}}}\n  - shared\n\
         hooks: {{PreToolUse: [{{command: p}}]}}\n---\nYou work.\n"
    );
    place.repo.write(".claude/agents/own.md", &definition);
    let shared = json!({"mcpServers": {"shared": {"command": FAKE_MCP}}});
    place.repo.write(".mcp.json", &shared.to_string());
    let prompt = Script::new().done("ok").to_prompt();
    let spawn = [
        "agent",
        "spawn",
        "--runtime",
        "fake",
        "--type",
        "own",
        &prompt,
    ];
    let error = place.fails(4, "not_trusted", &spawn);
    assert!(
        error["hint"].as_str().unwrap().contains("ccb trust"),
        "{error}"
    );
    let shown = place.ok(&["trust", "--show"]);
    let kinds: Vec<&str> = shown["items"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|item| item["kind"].as_str())
        .collect();
    assert_eq!(kinds, ["mcp-server", "agent-hooks", "agent-mcp-server"]);
    place.ok(&["trust"]);
    place.ok(&spawn);
}

/// The arguments of a runtime say if the repository's settings count.
#[test]
fn the_programs_own_settings_count_only_where_they_are_trusted_as_they_are() {
    let place = Workplace::new(CCB);
    let fake = place.home.path().join("claude");
    let args = place.home.path().join("args");
    // A program that prints its arguments and ends without a result.
    let script = format!("#!/bin/sh\necho \"$@\" > {}\n", args.display());
    write(&fake, &script);
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&fake, mode).unwrap();
    let runtime = json!({"runtimes": {"c": {"kind": "claude", "command": [fake]}}});
    place.home.settings(&runtime.to_string());
    let settings = json!({"hooks": {"PreToolUse": [{"command": "x"}]}, "env": {"A": "1"}});
    place
        .repo
        .write(".claude/settings.json", &settings.to_string());
    let restricted = |dir: &std::path::Path| {
        std::fs::remove_file(&args).ok();
        let dir = dir.to_str().unwrap();
        let spawn = ["agent", "spawn", "--runtime", "c", "--cwd", dir, "hello"];
        place.run(&spawn);
        let said = std::fs::read_to_string(&args).unwrap();
        said.contains("--setting-sources")
    };
    assert!(restricted(place.repo.main()));
    place.ok(&["trust"]);
    assert!(!restricted(place.repo.main()));
    // Another worktree has another file.
    place.ok(&["worktree", "create", "a"]);
    let tree = place.repo.tree("a");
    assert!(restricted(&tree), "nothing is there");
    write(&tree.join(".claude/settings.json"), &settings.to_string());
    assert!(!restricted(&tree), "the same");
    write(&tree.join(".claude/settings.json"), r#"{"env":{"A":"2"}}"#);
    assert!(restricted(&tree));
}

#[test]
fn an_agent_is_shown_in_its_own_colour() {
    let home = home();
    home.ok(&["team", "create", "board"]);
    let show = |keys: Value| {
        let answer = spawn(&home, &keys, &Script::new().done("ok"));
        let id = answer.json()["agent"]["agentId"]
            .as_str()
            .unwrap()
            .to_owned();
        home.ok(&["agent", "show", &id])["agent"]["color"].clone()
    };
    assert_eq!(show(json!({"color": "orange"})), "orange");
    assert_eq!(show(json!({})), Value::Null);
    let types = json!({"own": {"description": "d", "prompt": "p", "color": "pink"}}).to_string();
    let prompt = Script::new().done("ok").to_prompt();
    let args = [
        "agent",
        "--agents",
        &types,
        "spawn",
        "--runtime",
        "fake",
        "--type",
        "own",
    ];
    let alice = home.ok(&[&args[..], &["--name", "alice", &prompt]].concat());
    home.await_settled(alice["agent"]["agentId"].as_str().unwrap());
    let roster = home.roster("board");
    let members = roster["members"].as_array().unwrap();
    let alice = members.iter().find(|member| member["name"] == "alice");
    assert_eq!(alice.unwrap()["color"], "pink");
}

/// Events that happen inside Claude Code: elsewhere such hooks do not run, and ccb warns.
#[test]
fn hooks_that_cannot_run_are_warned_about() {
    let home = home();
    let hook = json!([{"hooks": [{"type": "command", "command": "true"}]}]);
    let script = Script::new().done("fine");
    let hooks = json!({"hooks": {"PreToolUse": hook, "Stop": hook, "SubagentStart": hook}});
    let answer = spawn(&home, &hooks, &script);
    assert_eq!(answer.code, Some(0), "{answer:?}");
    assert!(
        answer
            .stderr
            .contains("the PreToolUse hooks of its definition do not run"),
        "{answer:?}"
    );
    let answer = spawn(&home, &json!({"hooks": {"Stop": hook}}), &script);
    assert_eq!(answer.stderr, "", "{answer:?}");
}
