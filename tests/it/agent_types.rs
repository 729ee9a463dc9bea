//! `ccb agent types`: the types that are found, that count, that are left out.

use harness::{Answer, TestHome, Workplace, write};
use serde_json::{Value, json};

use crate::CCB;

fn agent(name: &str, more: &str) -> String {
    format!("---\nname: {name}\ndescription: does {name}. At length.\n{more}---\nYou are {name}.\n")
}

/// The type of this name in a list of them.
fn one<'a>(list: &'a Value, name: &str) -> &'a Value {
    let all = list.as_array().unwrap();
    let found = all.iter().find(|one| one["name"] == name);
    found.unwrap_or_else(|| panic!("no {name} in {list}"))
}

#[test]
fn the_built_in_types_are_there_everywhere() {
    let place = Workplace::new(CCB);
    let all = place.ok(&["agent", "types"]);
    let names: Vec<&str> = all["types"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["name"].as_str().unwrap())
        .collect();
    let expected = [
        "Explore",
        "general-purpose",
        "Plan",
        "verification",
        "worker",
    ];
    assert_eq!(names, expected);
    assert_eq!(all["problems"], json!([]));
    assert_eq!(all["overridden"], json!([]));
    let explore = one(&all["types"], "Explore");
    assert_eq!(explore["source"], "built-in");
    assert_eq!(explore["model"], "haiku");
    assert_eq!(explore.get("prompt"), None, "only when asked for one");
    let shown = place.ok(&["agent", "types", "explore"]);
    assert!(
        shown["type"]["prompt"]
            .as_str()
            .unwrap()
            .contains("only read")
    );
}

#[test]
fn what_counts_and_what_it_hides() {
    let place = Workplace::new(CCB);
    let repo = &place.repo;
    let home = place.home.path();
    repo.write(
        "sub/.claude/agents/deep/explore.md",
        &agent("Explore", "model: opus\n"),
    );
    repo.write(".claude/agents/explore.md", &agent("Explore", ""));
    write(&home.join("agents/explore.md"), &agent("explore", ""));
    write(
        &home.join("agents/mine.md"),
        &agent("mine", "tools: Read, Bash(git *)\n"),
    );
    let sub = repo.main().join("sub");
    let sub = sub.to_str().unwrap();
    let flag = r#"{"typed": {"description": "d", "prompt": "p", "model": "inherit"}}"#;
    let all = place.ok(&["-C", sub, "agent", "--agents", flag, "types"]);
    let explore = one(&all["types"], "Explore");
    assert_eq!(
        (&explore["source"], &explore["model"]),
        (&json!("project"), &json!("opus"))
    );
    assert!(
        explore["file"]
            .as_str()
            .unwrap()
            .ends_with("deep/explore.md")
    );
    let hidden: Vec<&str> = explore["overrides"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["source"].as_str().unwrap())
        .collect();
    assert_eq!(hidden, ["project", "user", "built-in"]);
    assert_eq!(all["overridden"].as_array().unwrap().len(), 3);
    assert_eq!(one(&all["types"], "typed")["source"], "flag");
    assert_eq!(
        one(&all["types"], "mine")["tools"],
        json!(["Read", "Bash(git *)"])
    );
    // From the repository's root the other one is the nearest.
    let all = place.ok(&["agent", "types"]);
    assert_eq!(one(&all["types"], "Explore").get("model"), None);
    // The flag may stand behind the command, too, and beats the repository.
    let flag = r#"{"Explore": {"description": "d", "prompt": "p"}}"#;
    let all = place.ok(&["agent", "types", "--agents", flag]);
    assert_eq!(one(&all["types"], "Explore")["source"], "flag");
}

#[test]
fn bad_definitions_are_told_and_the_rest_is_there() {
    let place = Workplace::new(CCB);
    let repo = &place.repo;
    repo.write(".claude/agents/README.md", "# How we use agents\n");
    repo.write(".claude/agents/good.md", &agent("good", ""));
    repo.write(
        ".claude/agents/bad.md",
        &agent("bad", "isolation: remote\n"),
    );
    repo.write(".claude/agents/worse.md", "---\nname: [\n---\n");
    let all = place.ok(&["agent", "types"]);
    one(&all["types"], "good");
    let problems = all["problems"].as_array().unwrap();
    assert_eq!(problems.len(), 2, "{problems:?}");
    assert_eq!(problems[0]["line"], 4);
    assert_eq!(problems[0]["name"], "bad");
    assert!(problems[0]["why"].as_str().unwrap().contains("remote"));
    assert_eq!(problems[1]["source"], "project");
    let text = Answer::of(place.command(&["agent", "types"]).output().unwrap());
    assert_eq!(text.code, Some(0));
    assert!(text.stdout.contains("good") && !text.stdout.contains("At length"));
    assert!(text.stderr.contains("bad.md:4: "), "{}", text.stderr);
    let strict = place.run(&["agent", "types", "--strict"]);
    assert_eq!(strict.code, Some(2));
    // A request for the broken one names the reason.
    let error = place.fails(3, "unknown_type", &["agent", "types", "bad"]);
    let message = error["message"].as_str().unwrap();
    assert!(message.contains("bad.md:4"), "{message}");
}

#[test]
fn unknown_keys_are_warnings() {
    let place = Workplace::new(CCB);
    let file = agent("mine", "version: 2\n");
    place.repo.write(".claude/agents/mine.md", &file);
    let all = place.ok(&["agent", "types"]);
    one(&all["types"], "mine");
    let problems = all["problems"].as_array().unwrap();
    assert_eq!(problems.len(), 1, "{problems:?}");
    assert_eq!(problems[0]["ignoredKey"], true);
    assert_eq!(problems[0]["line"], 4);
    let text = Answer::of(place.command(&["agent", "types"]).output().unwrap());
    assert!(text.stderr.contains("(ignored)"), "{}", text.stderr);
    assert_eq!(place.run(&["agent", "types", "--strict"]).code, Some(2));
    let flag = r#"{"own": {"description": "d", "prompt": "p", "version": 2}}"#;
    let all = place.ok(&["agent", "types", "--agents", flag]);
    one(&all["types"], "own");
    // A definition that was meant to restrict its agent is not ignored.
    let file = agent("mine", "disalowedTools: Bash\n");
    place.repo.write(".claude/agents/mine.md", &file);
    place.fails(3, "unknown_type", &["agent", "types", "mine"]);
}

#[test]
fn what_is_typed_wrong_is_an_error() {
    let place = Workplace::new(CCB);
    for flag in [
        "{",
        "[]",
        r#"{"a": {"description": "d"}}"#,
        r#"{"a b": {}}"#,
    ] {
        let error = place.fails(2, "bad_definition", &["agent", "types", "--agents", flag]);
        assert!(error["hint"].as_str().unwrap().contains("reviewer"));
    }
    let error = place.fails(3, "unknown_type", &["agent", "types", "explorer"]);
    assert_eq!(error["hint"], "did you mean Explore?");
}

#[test]
fn denied_types_are_marked_and_refused() {
    let place = Workplace::new(CCB);
    let settings = r#"{"agents": {"deny": ["plan"]}}"#;
    write(&place.home.path().join("ccb.json"), settings);
    place
        .repo
        .write(".claude/ccb.json", r#"{"agents": {"deny": []}}"#);
    let all = place.ok(&["agent", "types"]);
    assert_eq!(
        one(&all["types"], "Plan")["denied"],
        true,
        "a repository cannot allow it"
    );
    assert_eq!(one(&all["types"], "worker")["denied"], false);
    place.fails(4, "denied_type", &["agent", "types", "Plan"]);
}

#[test]
fn what_a_repository_would_run_is_marked() {
    let place = Workplace::new(CCB);
    let hooks = "hooks: {Stop: [{hooks: [{type: command, command: x}]}]}\n";
    place.repo.write(".claude/agents/a.md", &agent("a", hooks));
    place
        .repo
        .write(".claude/agents/b.md", &agent("b", "mcpServers: [slack]\n"));
    write(&place.home.path().join("agents/c.md"), &agent("c", hooks));
    let all = place.ok(&["agent", "types"]);
    for (name, needs) in [("a", true), ("b", false), ("c", false)] {
        assert_eq!(one(&all["types"], name)["needsTrust"], needs, "{name}");
    }
}

#[test]
fn a_linked_tree_has_its_own_or_the_main_one_s() {
    let place = Workplace::new(CCB);
    let repo = &place.repo;
    repo.write(".claude/agents/a.md", &agent("a", ""));
    let tree = repo.beside("linked");
    let tree = tree.to_str().unwrap();
    repo.git(&["worktree", "add", "-q", tree]);
    let all = place.ok(&["-C", tree, "agent", "types"]);
    assert_eq!(one(&all["types"], "a")["source"], "project");
    write(
        &repo.beside("linked").join(".claude/agents/b.md"),
        &agent("b", ""),
    );
    let all = place.ok(&["-C", tree, "agent", "types"]);
    one(&all["types"], "b");
    let types = all["types"].as_array().unwrap();
    assert!(!types.iter().any(|one| one["name"] == "a"));
}

/// A name that only Claude Code knows is left out elsewhere, or is what the settings say.
#[test]
fn a_models_alias_is_mapped_or_left_out() {
    let home = TestHome::in_memory(crate::CCB);
    let acp = serde_json::json!(crate::FAKE_AGENT).to_string();
    let settings = |more: &str| {
        home.settings(&format!(
            r#"{{"runtimes":{{"other":{{"kind":"acp","command":[{acp}]}}}}{more}}}"#
        ));
    };
    let spawn = || {
        let args = [
            "agent",
            "spawn",
            "--runtime",
            "other",
            "--background",
            "--model",
            "haiku",
            "x",
        ];
        let answer = home.run(&[&["--json"], &args[..]].concat());
        let id = answer.json()["agent"]["agentId"]
            .as_str()
            .unwrap()
            .to_owned();
        home.await_settled(&id);
        (home.run_meta(&id)["model"].clone(), answer.stderr)
    };
    settings("");
    let (model, said) = spawn();
    assert_eq!(model, serde_json::Value::Null);
    assert!(said.contains("agents.models.other.haiku"), "{said}");
    settings(r#","agents":{"models":{"other":{"haiku":"small-1"}}}"#);
    let (model, said) = spawn();
    assert_eq!((model.as_str(), said.as_str()), (Some("small-1"), ""));
}

#[test]
fn workers_have_three_tools_in_simple_mode() {
    let home = TestHome::in_memory(crate::CCB);
    let types = || {
        let mut command = home.command(&["--json", "agent", "types"]);
        command.env("CLAUDE_CODE_SIMPLE", "1");
        let answer = harness::Answer::of(command.output().unwrap());
        answer.json()["types"].clone()
    };
    let three = serde_json::json!(["Bash", "Read", "Edit"]);
    assert_eq!(one(&types(), "worker")["tools"], three);
    assert_ne!(one(&types(), "general-purpose")["tools"], three);
    assert_ne!(
        one(&home.ok(&["agent", "types"])["types"], "worker")["tools"],
        three
    );
    // A type that a person has defined is not changed.
    write(&home.path().join("agents/worker.md"), &agent("worker", ""));
    assert_ne!(one(&types(), "worker")["tools"], three);
}
