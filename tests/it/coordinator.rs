//! Sessions that a coordinator leads: it has its tools and no others, its workers work in worktrees
//! of their own, and their work lands.

use harness::Answer;
use harness::McpClient;
use harness::script::{Do, Script};
use harness::team_session::SessionScene;
use serde_json::{Value, json};

use crate::{CCB, FAKE_AGENT};

const COLUMN: [&str; 9] = [
    "TaskCreate",
    "TaskGet",
    "TaskList",
    "TaskUpdate",
    "Agent",
    "SendMessage",
    "TaskStop",
    "TaskOutput",
    "Worktrees",
];

pub(crate) fn scene() -> SessionScene {
    let scene = SessionScene::new(CCB);
    scene
        .home
        .with_fake_runtime(FAKE_AGENT, r#""agents":{"stopGraceMs":300}"#);
    scene
}

/// A whole session with this coordinator.
pub(crate) fn session(scene: &SessionScene, lead: &Script, more: &[&str]) -> Answer {
    let prompt = scene.prompt(lead);
    let args = [
        &["--json", "--coordinator", "--runtime", scene.runtime()],
        more,
    ];
    scene.run(&[&args.concat()[..], &[prompt.as_str()]].concat())
}

harness::on_scripted_agents! {
    workers_work_in_trees_of_their_own_and_what_they_did_lands,
    a_follow_up_resumes_a_worker_with_what_it_knows,
    dependent_steps_land_one_after_the_other_and_each_passes,
}

/// The input of `Agent` for a worker that follows `script`.
pub(crate) fn worker(name: &str, header: &str, script: Script) -> Value {
    let prompt = format!(
        "{header}\n{}",
        script.done(&format!("{name} did it")).to_prompt()
    );
    json!({"name": name, "description": format!("work of {name}"), "prompt": prompt})
}

/// The first steps of a worker that outlasts the coordinator's turn that started it: otherwise its
/// end could come within that turn, and not as a message of its own.
pub(crate) fn slower_than_the_lead(scene: &SessionScene) -> Script {
    let all = scene.home.team_dir().join("runs/*/transcript.jsonl");
    let over = format!(
        r#"n=0; until grep -qs '"turn_ended"' {}; do n=$((n+1)); [ $n -lt 6000 ] || exit 1; sleep 0.01; done"#,
        all.display()
    );
    Script::new().run(&["sh", "-c", &over])
}

/// The recorded tool calls of the lead, with their answers.
pub(crate) fn transcript(scene: &SessionScene) -> String {
    let mut all = String::new();
    let runs = scene.home.team_dir().join("runs");
    for entry in std::fs::read_dir(runs).unwrap().flatten() {
        let file = entry.path().join("transcript.jsonl");
        let meta = std::fs::read_to_string(entry.path().join("meta.json")).unwrap_or_default();
        if meta.contains(r#""name": "team-lead""#) || meta.contains(r#""name":"team-lead""#) {
            all.push_str(&std::fs::read_to_string(file).unwrap_or_default());
        }
    }
    all
}

/// The record of the run with this name.
pub(crate) fn run_of(scene: &SessionScene, name: &str) -> Value {
    let listed = scene.home.ok(&["agent", "list"]);
    let agents = listed["agents"].as_array().cloned().unwrap_or_default();
    let found = agents.into_iter().find(|agent| agent["name"] == name);
    let found = found.unwrap_or_else(|| panic!("no agent {name} in {listed}"));
    scene.home.run_meta(found["agentId"].as_str().unwrap())
}

#[test]
fn a_coordinator_has_the_tools_of_its_column_and_no_others() {
    let scene = scene();
    let mut mcp = McpClient::connect(scene.command(&["mcp", "--role", "coordinator"]));
    let mut tools = mcp.tools();
    tools.sort();
    let mut column = COLUMN.map(str::to_owned).to_vec();
    column.sort();
    assert_eq!(tools, column);
    for tool in ["TeamCreate", "EnterWorktree", "Bash"] {
        let call = json!({"name": tool, "arguments": {}});
        let answer = mcp.request("tools/call", call).to_string();
        let refused = answer.contains("is not for a coordinator") || answer.contains("no tool");
        assert!(refused, "{answer}");
    }
    mcp.finish();
    // A lead that asks for more gets errors, and neither files nor permissions.
    let lead = Script::new()
        .then(Do::Describe {
            path: scene.home.path().join("lead.json"),
        })
        .ask("Write", |s| s.say("ALLOWED"), |s| s.say("DENIED"))
        .done("tried")
        .serve();
    let answer = session(&scene, &lead, &[]);
    assert_eq!(answer.code, Some(0), "{answer:?}");
    let said = transcript(&scene);
    assert!(said.contains(r#""text":"DENIED""#), "{said}");
    // The tools that its program must withhold.
    let meta = run_of(&scene, "team-lead");
    assert_eq!(meta["launch"]["tools"], json!(["mcp__ccb"]), "{meta}");
    assert_eq!(meta["permissionMode"], "default", "{meta}");
    scene.await_nobody();
}

fn workers_work_in_trees_of_their_own_and_what_they_did_lands(scene: &SessionScene) {
    let described = scene.home.path().join("worker.json");
    let one = slower_than_the_lead(scene)
        .write("one", "1\n")
        .then(Do::Describe {
            path: described.clone(),
        })
        .run(&["sh", "-c", "echo known > $CCB_SCRATCHPAD/note"]);
    let two = Script::new().run(&["sh", "-c", "cat $CCB_SCRATCHPAD/note one > two"]);
    let lead = Script::new()
        .call(
            "Agent",
            worker("first", "Paths: one\nVerify: test -s one", one),
        )
        .done("one is started")
        // Its end comes as a message.
        .wait_message()
        .then(Do::WaitFile {
            path: landed(scene, "one"),
        })
        .call("Agent", worker("second", "Paths: two", two))
        .done("two is started")
        .serve();
    let answer = session(scene, &lead, &["--mates", "2", "--verify", "test -e one"]);
    assert_eq!(answer.code, Some(0), "{answer:?}");
    assert_eq!(scene.repo.git(&["show", "HEAD:two"]), "known\n1\n");
    assert_eq!(scene.trees(), Vec::<String>::new());
    let first = run_of(scene, "first");
    assert_eq!(first["agentType"], "worker", "{first}");
    assert_eq!(first["launch"]["worker"], true, "{first}");
    // A model has no way to write down what its program was told.
    if !scene.is_native() {
        let told: Value = serde_json::from_slice(&std::fs::read(described).unwrap()).unwrap();
        let cwd = told["cwd"].as_str().unwrap_or_default();
        assert!(cwd.contains(".claude/worktrees/agent-"), "{told}");
        assert!(!told.to_string().contains("mcp --role"), "{told}");
    }
    // It was told of both, in messages.
    let said = transcript(scene);
    assert!(said.contains("task-notification"), "{said}");
    let mut told = scene.home.notifications();
    told.retain(|(_, status)| status == "completed");
    assert_eq!(told.len(), 2, "{told:?}");
    // Their tasks are in no list.
    let end = answer.json_lines().pop().unwrap();
    assert_eq!(end["tasks"]["total"], 0, "{end}");
    assert_eq!(end["leftTrees"], json!([]), "{end}");
    scene.await_nobody();
}

/// A file that is there as soon as the main tree has it.
fn landed(scene: &SessionScene, file: &str) -> std::path::PathBuf {
    scene.repo.main().join(file)
}

fn a_follow_up_resumes_a_worker_with_what_it_knows(scene: &SessionScene) {
    let more = Script::new()
        .run(&["sh", "-c", "cat one > again && echo 2 >> again"])
        .done("did more");
    let lead = Script::new()
        .call(
            "Agent",
            worker("first", "", slower_than_the_lead(scene).write("one", "1\n")),
        )
        .done("started")
        .wait_message()
        .then(Do::WaitFile {
            path: landed(scene, "one"),
        })
        .call(
            "SendMessage",
            json!({"to": "first", "summary": "one more thing", "message": more.to_prompt()}),
        )
        .done("sent")
        .serve();
    let answer = session(scene, &lead, &[]);
    assert_eq!(answer.code, Some(0), "{answer:?}");
    assert_eq!(scene.repo.git(&["show", "HEAD:again"]), "1\n2\n");
    let first = run_of(scene, "first");
    assert_eq!(first["life"], 2, "{first}");
    assert_eq!(scene.trees(), Vec::<String>::new());
    scene.await_nobody();
}

fn dependent_steps_land_one_after_the_other_and_each_passes(scene: &SessionScene) {
    let append = |line: &str| {
        Script::new()
            .append("steps", line)
            .done("did it")
            .to_prompt()
    };
    let task = |number: usize, blocked: &[&str]| {
        json!({"subject": format!("step {number}"), "description": append(&number.to_string()),
               "addBlockedBy": blocked,
               "metadata": {"ccb": {"paths": ["steps"], "verify": format!("grep -qx {number} steps")}}})
    };
    let lead = Script::new()
        .call("TaskCreate", task(1, &[]))
        .call("TaskCreate", task(2, &["1"]))
        .call("TaskCreate", task(3, &["2"]))
        .done("set")
        .serve();
    let answer = session(scene, &lead, &["--mates", "3", "--verify", "test -s steps"]);
    assert_eq!(answer.code, Some(0), "{answer:?}");
    assert_eq!(scene.repo.git(&["show", "HEAD:steps"]), "1\n2\n3\n");
    let series = scene
        .repo
        .git(&["rev-list", "--first-parent", "--reverse", "HEAD"]);
    let steps: Vec<String> = series
        .lines()
        .skip(1)
        .map(|commit| scene.repo.git(&["show", &format!("{commit}:steps")]))
        .collect();
    assert_eq!(steps, ["1\n", "1\n2\n", "1\n2\n3\n"]);
    // Board workers are workers, too.
    let mate = run_of(scene, "mate-1");
    assert_eq!(
        (&mate["agentType"], &mate["launch"]["worker"]),
        (&json!("worker"), &json!(true))
    );
    scene.await_nobody();
}

#[test]
fn a_session_without_a_team_has_its_own_which_goes_when_nothing_is_left() {
    let scene = scene();
    let lead = Script::new().done("nothing to do").serve().to_prompt();
    for by_flag in [true, false] {
        let mut args = vec!["--json", "--runtime", "fake"];
        if by_flag {
            args.push("--coordinator");
        } else {
            args.extend(["look", "at it:"]);
        }
        args.push(&lead);
        let mut command = scene.home.command_without_list(&args);
        command.current_dir(scene.repo.main());
        if !by_flag {
            command.env("CLAUDE_CODE_COORDINATOR_MODE", "1");
        }
        let answer = Answer::of(command.output().unwrap());
        assert_eq!(answer.code, Some(0), "{answer:?}");
        let end = answer.json_lines().pop().unwrap();
        let team = end["team"].as_str().unwrap().to_owned();
        assert!(team.starts_with("session-") && team.len() == 16, "{team}");
        let config = scene
            .home
            .path()
            .join("teams")
            .join(&team)
            .join("config.json");
        assert!(!config.exists(), "{team} is still there");
    }
}

#[test]
fn a_session_keeps_its_mode() {
    let scene = scene();
    let lead = Script::new().done("nothing to do").serve();
    assert_eq!(session(&scene, &lead, &[]).code, Some(0));
    // Without the flag.
    let answer = scene.run(&["--json", "go on"]);
    assert_eq!(answer.code, Some(0), "{answer:?}");
    let file = std::fs::read_to_string(scene.home.team_dir().join("session.json")).unwrap();
    let file: Value = serde_json::from_str(&file).unwrap();
    assert_eq!(file["session"]["mode"], "coordinator", "{file}");
    // And a session without a coordinator gets none.
    let plain = crate::coordinator::scene();
    let answer = plain.run(&["--json", "--runtime", "fake", &lead.to_prompt()]);
    assert_eq!(answer.code, Some(0), "{answer:?}");
    let answer = plain.run(&["--json", "--coordinator"]);
    assert_eq!(answer.code, Some(2), "{answer:?}");
    assert_eq!(answer.json()["error"]["kind"], "other_mode");
}

#[test]
fn what_a_coordinator_is_told_can_be_replaced() {
    let scene = scene();
    let told = |more: &[&str]| {
        let lead = Script::new().done("read").serve();
        let answer = session(&scene, &lead, more);
        let runs = scene.home.ok(&["agent", "list"]);
        let last = runs["agents"]
            .as_array()
            .and_then(|all| all.last().cloned());
        let id = last.map(|one| one["agentId"].as_str().unwrap_or_default().to_owned());
        let prompt = id.map(|id| scene.home.run_meta(&id)["launch"]["systemPrompt"].clone());
        scene.run(&["team", "delete", "board", "--force"]);
        (
            answer,
            prompt
                .unwrap_or_default()
                .as_str()
                .unwrap_or_default()
                .to_owned(),
        )
    };
    let (_, usual) = told(&["--mates", "3"]);
    for word in [
        "At most 3 work at once",
        "scratchpad",
        "`Agent`",
        "<task-notification>",
        "Bash, Edit, Glob, Grep",
    ] {
        assert!(usual.contains(word), "{word} not in {usual}");
    }
    std::fs::write(
        scene.home.path().join("coordinator.md"),
        "Mine, with {mates}.",
    )
    .unwrap();
    assert_eq!(told(&["--mates", "3"]).1, "Mine, with 3.");
    // The repository's needs trust.
    let file = scene.repo.main().join(".claude/coordinator.md");
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(&file, "Theirs.").unwrap();
    let (refused, _) = told(&[]);
    assert_eq!(refused.code, Some(4), "{refused:?}");
    scene.ok(&["trust"]);
    assert_eq!(told(&[]).1, "Theirs.");
    let given = scene.home.path().join("given.md");
    std::fs::write(&given, "Given.").unwrap();
    assert_eq!(
        told(&["--coordinator-prompt", given.to_str().unwrap()]).1,
        "Given."
    );
}
