//! No check is dropped, however its key is spelled, and unchecked work says so everywhere.

use harness::team_session::SessionScene;
use harness::terminal::Terminal;
use harness::{McpClient, TestHome};
use serde_json::{Value, json};

use crate::{CCB, ON_TERMINAL};

/// Puts a task on the board as another program does: by its file alone.
fn foreign(home: &TestHome, id: u64, metadata: &Value) {
    let task = json!({
        "id": id.to_string(), "subject": "foreign", "description": "", "status": "pending",
        "blocks": [], "blockedBy": [], "metadata": metadata,
    });
    let new = home.path().join("new-task");
    std::fs::write(&new, task.to_string()).unwrap();
    std::fs::rename(&new, home.task_file(id)).unwrap();
}

fn check_of(home: &TestHome, id: u64) -> Value {
    let shown = home.ok(&["task", "show", &id.to_string()]);
    shown["task"]["metadata"]["ccb"]["verify"].clone()
}

#[test]
fn a_check_is_kept_whoever_writes_it_and_however_its_key_is_spelled() {
    let home = TestHome::in_memory(CCB);
    for (n, spelled) in [
        json!({"ccb.verify": "test -e proof"}),
        json!({"ccb": {"verify": "test -e proof"}}),
    ]
    .iter()
    .enumerate()
    {
        let first = 4 * n as u64 + 1;
        let mut lead = McpClient::connect(home.command(&["mcp", "--role", "lead"]));
        lead.ok(
            "TaskCreate",
            json!({"subject": "by the lead", "description": "", "metadata": spelled}),
        );
        lead.finish();
        let (key, value) = spelled.as_object().unwrap().iter().next().unwrap();
        let meta = format!("{key}={value}");
        home.ok(&["task", "create", "by a person", "--meta", &meta]);
        let rows = home.path().join("rows");
        std::fs::write(
            &rows,
            json!({"subject": "by a file", "metadata": spelled}).to_string(),
        )
        .unwrap();
        home.ok(&["task", "create", "--from", rows.to_str().unwrap()]);
        foreign(&home, first + 3, spelled);
        for id in first..first + 4 {
            assert_eq!(check_of(&home, id), "test -e proof", "{spelled} {id}");
            let id = id.to_string();
            let failed = home.fails(1, &["task", "done", &id, "--verify"]);
            assert_eq!(failed["error"]["kind"], "verify_failed", "{failed}");
        }
    }
}

#[test]
fn what_cannot_be_read_is_refused_with_the_nearest_name() {
    let home = TestHome::in_memory(CCB);
    home.ok(&["task", "create", "one", "--verify", "make"]);
    let before = home.board_bytes();
    for (meta, said) in [
        (r#"ccb.verfy="make""#, "did you mean ccb.verify?"),
        (r#"ccb={"verfy":"make"}"#, "did you mean ccb.verify?"),
        (r#"ccb_verify="make""#, "did you mean ccb.verify?"),
        ("ccb.verify=3", "must be text"),
        (r#"ccb={"verify":3}"#, "must be text"),
        (
            r#"ccb.result={"check":{"passed":true}}"#,
            "ccb itself keeps it",
        ),
    ] {
        for command in [vec!["task", "create", "two"], vec!["task", "update", "1"]] {
            let refused = home.fails(2, &[&command[..], &["--meta", meta]].concat());
            let message = refused["error"]["message"].as_str().unwrap();
            assert!(message.contains(said), "{meta}: {message}");
        }
    }
    let both = ["--meta", r#"ccb.verify="a""#, "--verify", "b"];
    let refused = home.fails(2, &[&["task", "update", "1"][..], &both].concat());
    let message = refused["error"]["message"].as_str().unwrap();
    assert!(message.contains("another value"), "{message}");
    assert_eq!(home.board_bytes(), before);
    // The trap: readable keys are accepted.
    home.ok(&["task", "update", "1", "--meta", r#"ccb.verify="a""#]);
    assert_eq!(check_of(&home, 1), "a");
}

#[test]
fn an_unclear_check_of_another_program_never_counts_as_none() {
    for metadata in [
        json!({"ccb.verify": "false", "ccb": {"verify": "true"}}),
        json!({"ccb": {"verify": 3}}),
        json!({"ccb": "verify"}),
    ] {
        let home = TestHome::in_memory(CCB);
        home.ok(&["task", "create", "one"]);
        foreign(&home, 2, &metadata);
        let refused = home.fails(4, &["task", "claim", "2"]);
        assert_eq!(refused["reason"], "parked", "{metadata}: {refused}");
        for command in [
            vec!["task", "done", "2"],
            vec!["task", "done", "2", "--force"],
        ] {
            home.fails(4, &command);
        }
        let shown = home.ok(&["task", "show", "2"]);
        assert!(shown["task"]["warning"].is_string(), "{shown}");
        let findings = home.run(&["doctor"]);
        assert!(findings.stdout.contains("task update 2"), "{findings:?}");
        // The lead decides, and the task continues with that check.
        let mut update = vec!["task", "update", "2", "--verify", "true"];
        if metadata["ccb"].is_string() {
            update.extend(["--meta", "ccb.stray=null"]);
        }
        home.ok(&update);
        home.ok(&["task", "claim", "2"]);
        home.ok(&["task", "done", "2", "--verify"]);
        let shown = home.ok(&["task", "show", "2"]);
        assert_eq!(shown["task"]["checked"], true, "{metadata}: {shown}");
    }
}

/// Three finished tasks, none landed: one checked, one without a check, and a checked one that
/// builds on that.
fn left() -> SessionScene {
    let scene = SessionScene::new(CCB);
    scene.task(
        "write one",
        &["--run", "echo 1 > one", "--verify", "test -s one"],
    );
    scene.task("write two", &["--run", "echo 2 > two"]);
    let after = ["--verify", "test -s three", "--blocked-by", "2"];
    scene.task(
        "write three",
        &[&["--run", "echo 3 > three"][..], &after].concat(),
    );
    let answer = scene.session(&["--merge", "never"]);
    assert_eq!(answer.code, Some(0), "{answer:?}");
    scene
}

fn on_main(scene: &SessionScene) -> String {
    let names = scene
        .repo
        .git(&["ls-tree", "--name-only", "main", "one", "two", "three"]);
    names.replace('\n', " ").trim().to_owned()
}

#[test]
fn work_that_nothing_proved_is_marked_in_every_view() {
    let scene = left();
    let tasks = scene.ok(&["task", "list"]);
    let checked: Vec<&Value> = tasks["tasks"]
        .as_array()
        .unwrap()
        .iter()
        .map(|task| &task["checked"])
        .collect();
    assert_eq!(checked, [true, false, true], "{tasks}");
    assert_eq!(tasks["tasks"][1]["unchecked"], "it has no check");
    for command in [
        vec!["task", "list"],
        vec!["task", "show", "2"],
        vec!["status"],
    ] {
        let answer = scene.run(&command);
        assert!(
            answer.stdout.contains("⚠ unchecked"),
            "{command:?}: {answer:?}"
        );
    }
    let one = scene.run(&["task", "show", "1"]);
    assert!(!one.stdout.contains("unchecked"), "{one:?}");
    let status = scene.ok(&["status"]);
    assert_eq!(status["tasks"]["unchecked"], 1, "{status}");
    let report = scene.ok(&["report"]);
    assert_eq!(
        report["tasks"][1]["unchecked"], "it has no check",
        "{report}"
    );
    assert_eq!(report["tasks"][0].get("unchecked"), None, "{report}");
}

#[test]
fn land_all_leaves_unchecked_work_and_what_builds_on_it_until_somebody_says_so() {
    let scene = left();
    let answer = scene.run(&["land", "--all"]);
    assert_eq!(answer.code, Some(0), "{answer:?}");
    assert_eq!(on_main(&scene), "one");
    for said in [
        "⚠ unchecked",
        "#2 (it has no check)",
        "#3 is left, too",
        "land --all --unchecked",
    ] {
        assert!(answer.stdout.contains(said), "{said}: {answer:?}");
    }
    let json = scene.ok(&["land", "--all"]);
    assert_eq!(json["unchecked"][0]["task"], "2", "{json}");
    scene.ok(&["land", "--all", "--unchecked"]);
    assert_eq!(on_main(&scene), "one three two");
}

#[test]
fn at_a_terminal_land_all_asks_about_unchecked_work() {
    for (answer, expected) in [("n\r", "one"), ("y\r", "one three two")] {
        let scene = left();
        let mut command = scene.command(&["land", "--all"]);
        for name in ["PATH", "HOME"] {
            command.env(name, std::env::var_os(name).unwrap_or_default());
        }
        let mut terminal = Terminal::start(ON_TERMINAL, &command, 100, 24);
        terminal.wait_for_text("Land the unchecked work, too?");
        terminal.type_keys(answer);
        let (code, screen) = terminal.end();
        assert_eq!(code, Some(0), "{screen:?}");
        assert_eq!(on_main(&scene), expected, "{screen:?}");
    }
}
