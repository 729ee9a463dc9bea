//! The boundaries of a definition hold: for ccb's own tools, for those an agent starts, and for the
//! files of a read-only agent. Work that an agent hides from its result is found.

use std::path::PathBuf;
use std::time::Duration;

use harness::script::Script;
use harness::{Answer, McpClient, Workplace, git_command, wait_until, write};
use serde_json::{Value, json};

use crate::{CCB, FAKE_AGENT};

const LONG: Duration = Duration::from_secs(60);

/// A repository, a home, and agents that follow scripts.
fn place() -> Workplace {
    let place = Workplace::new(CCB);
    place.home.with_fake_runtime(FAKE_AGENT, "");
    place
}

/// Writes a definition with these keys besides the required ones.
fn define(place: &Workplace, name: &str, keys: &str) {
    let file = place.home.path().join(format!("agents/{name}.md"));
    let text = format!("---\nname: {name}\ndescription: d\n{keys}---\nYou work.\n");
    write(&file, &text);
}

fn args<'a>(kind: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let mut args = vec!["agent", "spawn", "--runtime", "fake", "--type", kind];
    args.extend_from_slice(more);
    args
}

/// Starts an agent and waits for its end.
fn ask(place: &Workplace, kind: &str, more: &[&str], script: &Script) -> Answer {
    let prompt = script.to_prompt();
    place.run(&[&args(kind, more)[..], &["--wait", &prompt]].concat())
}

/// Starts an agent that waits for mail; returns its id.
fn start(place: &Workplace, kind: &str, more: &[&str]) -> String {
    let prompt = Script::new().serve().to_prompt();
    let answer = place.ok(&[&args(kind, more)[..], &["--background", &prompt]].concat());
    answer["agent"]["agentId"].as_str().unwrap().to_owned()
}

/// The records of all runs.
fn metas(place: &Workplace) -> Vec<Value> {
    let below = |dir: PathBuf| -> Vec<PathBuf> {
        let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
        entries.map(|entry| entry.path()).collect()
    };
    let teams = below(place.home.path().join("teams"));
    let runs = teams.into_iter().flat_map(|team| below(team.join("runs")));
    let files = runs.filter_map(|run| std::fs::read(run.join("meta.json")).ok());
    files
        .map(|bytes| serde_json::from_slice(&bytes).unwrap())
        .collect()
}

/// The record of a run.
fn meta(place: &Workplace, id: &str) -> Value {
    let mut all = metas(place).into_iter();
    all.find(|meta| meta["agentId"] == id).unwrap()
}

/// The records of the agents of a type.
fn of_type(place: &Workplace, kind: &str) -> Vec<Value> {
    let all = metas(place).into_iter();
    all.filter(|meta| meta["agentType"] == kind).collect()
}

/// The text and the messages of the agent.
fn transcript(place: &Workplace, answer: &Answer) -> String {
    let id = id_of(answer);
    let shown = place.ok(&["agent", "show", &id]);
    let file = shown["agent"]["transcript"].as_str().unwrap().to_owned();
    std::fs::read_to_string(file).unwrap()
}

fn id_of(answer: &Answer) -> String {
    let json = answer.json();
    json["agent"]["agentId"].as_str().unwrap().to_owned()
}

/// The server an agent of this type gets, as seen by its program.
fn server(place: &Workplace, id: &str) -> McpClient {
    let mut command = place.command(&["mcp", "--role", "teammate"]);
    command.env("CCB_RUN_ID", id).env("CCB_AGENT", id);
    McpClient::connect(command)
}

const TEAMMATE: [&str; 10] = [
    "TaskCreate",
    "TaskGet",
    "TaskList",
    "TaskUpdate",
    "Agent",
    "SendMessage",
    "TaskStop",
    "TaskOutput",
    "EnterWorktree",
    "ExitWorktree",
];

#[test]
fn filters_cover_our_tools_and_the_server_keeps_to_them() {
    let place = place();
    let without = |names: &[&str]| -> Vec<String> {
        let left = TEAMMATE.iter().filter(|tool| !names.contains(tool));
        left.map(ToString::to_string).collect()
    };
    for (name, keys, left) in [
        ("all", "", without(&[])),
        ("star", "tools: \"*\"\n", without(&[])),
        ("nothing", "tools: []\n", Vec::new()),
        ("reader", "tools: Read, Grep\n", Vec::new()),
        (
            "lister",
            "tools: Read, mcp__ccb__TaskList, TaskGet\n",
            vec!["TaskGet".into(), "TaskList".into()],
        ),
        ("server", "tools: Read, mcp__ccb\n", without(&[])),
        ("alone", "disallowedTools: Agent\n", without(&["Agent"])),
        (
            "silent",
            "disallowedTools: mcp__ccb__SendMessage, Task\n",
            without(&["SendMessage", "Agent"]),
        ),
        ("cut", "disallowedTools: mcp__ccb\n", Vec::new()),
    ] {
        define(&place, name, keys);
        let id = start(&place, name, &[]);
        let servers = meta(&place, &id)["launch"]["mcpServers"].clone();
        let given = servers
            .as_array()
            .is_some_and(|list| list.iter().any(|one| one["name"] == "ccb"));
        assert_eq!(given, !left.is_empty(), "{name}: {servers}");
        // A server started by hand has no more tools.
        let mut client = server(&place, &id);
        let mut listed = client.tools();
        let mut expected = left.clone();
        listed.sort();
        expected.sort();
        assert_eq!(listed, expected, "{name}");
        for tool in TEAMMATE
            .iter()
            .filter(|tool| !left.contains(&(**tool).to_owned()))
        {
            let params = json!({"name": tool, "arguments": {}});
            let answer = client.request("tools/call", params);
            let words = answer["error"]["message"].as_str().unwrap_or_default();
            assert!(
                words.contains("your definition leaves you without it"),
                "{name} {tool}: {answer}"
            );
        }
        client.finish();
        place.ok(&["agent", "stop", &id]);
    }
}

#[test]
fn one_without_agent_starts_nobody_by_our_command_either() {
    let place = place();
    define(&place, "alone", "disallowedTools: Agent\n");
    let child = Script::new().done("hello").to_prompt();
    let script = Script::new()
        .run(&[CCB, "agent", "spawn", "--runtime", "fake", "--wait", &child])
        .done("tried");
    let answer = ask(&place, "alone", &[], &script);
    assert!(of_type(&place, "general-purpose").is_empty(), "{answer:?}");
    let said = transcript(&place, &answer);
    assert!(said.contains("may not start agents"), "{said}");
}

#[test]
fn a_child_has_no_more_tools_and_no_wider_mode_than_its_parent() {
    let place = place();
    define(&place, "free", "permissionMode: bypassPermissions\n");
    define(&place, "reader", "tools: Read, Agent\n");
    define(&place, "asker", "permissionMode: default\n");
    let grandchild = Script::new().done("third").to_prompt();
    let child = Script::new()
        .call(
            "Agent",
            json!({"description": "d", "prompt": grandchild, "subagent_type": "free"}),
        )
        .done("second")
        .to_prompt();
    let call = json!({"description": "d", "prompt": child, "subagent_type": "free"});
    let answer = ask(
        &place,
        "reader",
        &[],
        &Script::new().call("Agent", call).done("first"),
    );
    assert_eq!(answer.code, Some(0), "{answer:?}");
    let given = of_type(&place, "free");
    assert_eq!(given.len(), 2, "{given:?}");
    for one in &given {
        assert_eq!(one["permissionMode"], "default", "{one}");
        assert_eq!(one["launch"]["tools"], json!(["Read", "Agent"]), "{one}");
        assert_eq!(one["launch"]["reach"], "reads", "{one}");
    }
    // The same by the command.
    let last = Script::new().done("last").to_prompt();
    let spawn = [
        CCB,
        "agent",
        "spawn",
        "--runtime",
        "fake",
        "--type",
        "free",
        "--wait",
        &last,
    ];
    let answer = ask(&place, "asker", &[], &Script::new().run(&spawn).done("ok"));
    assert_eq!(answer.code, Some(0), "{answer:?}");
    let given = of_type(&place, "free");
    assert_eq!(given.len(), 3, "{given:?}");
    let modes: Vec<&str> = given
        .iter()
        .filter_map(|one| one["permissionMode"].as_str())
        .collect();
    assert_eq!(modes, ["default"; 3]);
    // A person gets what the definition allows.
    let answer = ask(&place, "free", &[], &Script::new().done("ok"));
    let id = id_of(&answer);
    assert_eq!(meta(&place, &id)["permissionMode"], "bypassPermissions");
}

#[test]
fn one_that_may_not_run_commands_starts_no_shell() {
    let place = place();
    define(&place, "reader", "tools: Read, Agent\n");
    let file = place.home.path().join("written");
    let command = format!("touch {}", file.display());
    let spawn = [
        CCB,
        "agent",
        "spawn",
        "--runtime",
        "shell",
        "--wait",
        &command,
    ];
    let answer = ask(
        &place,
        "reader",
        &[],
        &Script::new().run(&spawn).done("tried"),
    );
    assert!(!file.exists(), "{answer:?}");
    let said = transcript(&place, &answer);
    assert!(said.contains("may not run commands itself"), "{said}");
}

#[test]
fn one_that_only_reads_and_changed_something_has_failed() {
    let place = place();
    define(
        &place,
        "reviewer",
        "tools: Read, Grep, Glob, Bash(git diff *)\n",
    );
    let write = Script::new().write("left.txt", "x").done("all fine");
    let commit = Script::new()
        .write("done.txt", "x")
        .commit("by it")
        .done("all fine");
    for (kind, more, script) in [
        ("Explore", &["--isolation", "worktree"][..], &write),
        ("Plan", &["--isolation", "worktree"][..], &commit),
        ("verification", &["--isolation", "worktree"][..], &write),
        ("reviewer", &[][..], &write),
    ] {
        let mut answer = ask(&place, kind, more, script);
        if answer.json()["agent"]["status"] == "async_launched" {
            answer = place.run(&["agent", "output", &id_of(&answer)]);
        }
        assert_eq!(answer.code, Some(1), "{kind}: {answer:?}");
        let said = answer.stdout.clone();
        assert!(
            said.contains("only reads, and it changed 1 file"),
            "{kind}: {answer:?}"
        );
    }
    std::fs::remove_file(place.repo.main().join("left.txt")).unwrap();
    // A shell command cannot be restricted, but its traces are seen.
    let shell = [
        "agent",
        "spawn",
        "--runtime",
        "shell",
        "--type",
        "Explore",
        "--wait",
    ];
    let answer = place.run(&[&shell[..], &["echo x > left.txt"]].concat());
    assert_eq!(answer.code, Some(1), "{answer:?}");
    assert!(answer.stdout.contains("only reads"), "{answer:?}");
    // An agent that kept to the rules is fine, and so is one that may write.
    let answer = place.run(&[&shell[..], &["cat left.txt"]].concat());
    assert_eq!(answer.code, Some(0), "{answer:?}");
    let answer = ask(
        &place,
        "general-purpose",
        &["--isolation", "worktree"],
        &write,
    );
    assert_eq!(answer.code, Some(0), "{answer:?}");
}

/// Makes a worktree beside the repository and commits there.
fn astray(place: &Workplace) -> String {
    let tree = place.repo.beside("astray");
    format!(
        "git worktree add -q -b astray {tree} && cd {tree} && echo 1 > f && git add f && git -c user.name=a -c user.email=a@b commit -qm work",
        tree = tree.display()
    )
}

#[test]
fn trees_and_branches_of_its_own_making_are_told() {
    let place = place();
    place.repo.git(&["branch", "before"]);
    let script = Script::new()
        .run(&["sh", "-c", &astray(&place)])
        .run(&["sh", "-c", "git checkout -q -b side && echo 2 > g && git add g && git -c user.name=a -c user.email=a@b commit -qm g && git checkout -q -"])
        .run(&["git", "branch", "empty"])
        .done("done");
    let answer = ask(
        &place,
        "general-purpose",
        &["--isolation", "worktree"],
        &script,
    );
    assert_eq!(answer.code, Some(0), "{answer:?}");
    let said = answer.stdout.clone();
    let tree = place.repo.beside("astray");
    let words = format!(
        "it made worktree {} (branch astray) with 1 commit that is not in its result",
        tree.display()
    );
    assert!(said.contains(&words), "{answer:?}");
    assert!(
        said.contains("it made branch side with 1 commit"),
        "{answer:?}"
    );
    assert!(said.contains("log HEAD..astray"), "{answer:?}");
    assert!(
        !said.contains("branch empty") && !said.contains("branch before"),
        "{answer:?}"
    );
    let id = id_of(&answer);
    let shown = place.run(&["agent", "show", &id]).stdout;
    assert!(shown.contains("it made worktree"), "{shown}");
    // The next agent has made none of these.
    let answer = ask(
        &place,
        "general-purpose",
        &["--isolation", "worktree"],
        &Script::new().done("x"),
    );
    assert!(!answer.stdout.contains("it made"), "{answer:?}");
}

#[test]
fn work_on_a_branch_of_its_own_making_is_not_done() {
    let place = place();
    let script = Script::new()
        .run(&["sh", "-c", &astray(&place)])
        .done("done");
    let plan = json!({"tasks": [
        {"id": "a", "prompt": script.to_prompt(), "runtime": "fake", "verify": "true", "retries": 0},
    ]});
    place.repo.write("plan.json", &plan.to_string());
    let answer = place.run(&["fanout", "plan.json", "--ci"]);
    assert_eq!(answer.code, Some(1), "{answer:?}");
    let said = answer.stdout.clone();
    assert!(
        said.contains("its work is on a branch of its own making"),
        "{answer:?}"
    );
    assert!(said.contains("branch astray"), "{answer:?}");
}

#[test]
fn what_an_agent_has_committed_is_on_its_branch_as_soon_as_it_waits() {
    let place = place();
    let commit = "echo 1 > f && git add f && git -c user.name=a -c user.email=a@b commit -qm mine";
    let script = Script::new()
        .run(&["sh", "-c", commit])
        .done("committed")
        .serve();
    let prompt = script.to_prompt();
    place.ok(&["team", "create", "board"]);
    let named = ["--name", "ann", "--isolation", "worktree", "--background"];
    let more = [&named[..], &[&prompt]].concat();
    let in_team = [&["--team", "board"], &args("general-purpose", &more)[..]].concat();
    let started = place.ok(&in_team);
    let id = started["agent"]["agentId"].as_str().unwrap().to_owned();
    let branch = format!("worktree/agent-{id}");
    wait_until(LONG, "its commit", || {
        let mut log = git_command(place.repo.main(), &["log", "-1", "--format=%s", &branch]);
        log.output().unwrap().stdout == b"mine\n"
    });
    // It still has a `.git` of its own, and reading it changes nothing there.
    let tree = place.repo.tree(&format!("agent-{id}"));
    assert!(tree.join(".git").is_dir());
    place.ok(&["worktree", "status", &format!("agent-{id}")]);
    let shown = place.ok(&["--team", "board", "diff", &id]);
    assert_eq!(shown["files"][0]["path"], "f", "{shown}");
    place.ok(&["--team", "board", "agent", "stop", &id]);
    wait_until(LONG, "the ordinary .git", || tree.join(".git").is_file());
}

#[test]
fn the_reviewer_of_the_documentation_only_reads() {
    let docs = include_str!("../../docs/agents.md");
    let from = docs.find("```markdown\n").unwrap() + "```markdown\n".len();
    let text = &docs[from..from + docs[from..].find("```").unwrap()];
    let place = place();
    write(&place.home.path().join("agents/reviewer.md"), text);
    let shown = place.ok(&["agent", "types", "reviewer"]);
    let said = shown.to_string();
    assert!(said.contains("\"readOnly\":true"), "{said}");
    assert!(
        said.contains("without TaskUpdate and SendMessage"),
        "{said}"
    );
}
