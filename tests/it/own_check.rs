//! An agent that works on a task does not decide when it is done.

use harness::team_session::SessionScene;
use harness::{Answer, Inside, TestHome};
use serde_json::{Value, json};

use crate::CCB;

const ALICE: [&str; 2] = ["--name", "alice"];

/// Changes a task's file as an editor does: another file takes its place.
fn edit(home: &TestHome, id: u64, change: impl FnOnce(&mut Value)) {
    let (path, new) = (home.task_file(id), home.path().join("edited"));
    let mut task: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    change(&mut task);
    std::fs::write(&new, serde_json::to_vec_pretty(&task).unwrap()).unwrap();
    std::fs::rename(&new, &path).unwrap();
}

/// Changes a task's check in place, which leaves no trace but in the file.
fn set_in_place(home: &TestHome, id: u64, check: &Value) {
    let mut task = task(home, id);
    task["metadata"]["ccb"]["verify"] = check.clone();
    std::fs::write(home.task_file(id), task.to_string()).unwrap();
}

fn set_check(home: &TestHome, id: u64, check: Value) {
    edit(home, id, |task| task["metadata"]["ccb"]["verify"] = check);
}

fn task(home: &TestHome, id: u64) -> Value {
    serde_json::from_slice(&std::fs::read(home.task_file(id)).unwrap()).unwrap()
}

fn check(home: &TestHome, id: u64) -> Value {
    task(home, id)["metadata"]["ccb"]["verify"].clone()
}

fn parked(home: &TestHome, id: u64) -> String {
    let task = task(home, id);
    let why = task["metadata"]["ccb"]["parked"]["reason"].as_str();
    why.unwrap_or_default().to_owned()
}

fn record(home: &TestHome, id: u64) -> std::path::PathBuf {
    home.list_dir().join(format!(".ccb/checks/{id}.json"))
}

/// The words of the command after `after` in a message.
fn given(message: &str, after: &str) -> Vec<String> {
    let command = message.split_once(after).expect(message).1;
    let command = command.split(". To ").next().unwrap();
    let script = format!("for word in {command}; do printf '%s\\0' \"$word\"; done");
    let split = std::process::Command::new("sh")
        .args(["-c", &script])
        .output();
    let words = String::from_utf8(split.unwrap().stdout).unwrap();
    let words = words.strip_suffix('\0').expect("words");
    words.split('\0').map(str::to_owned).collect()
}

fn run(home: &TestHome, words: &[String]) {
    let mut command = home.command_without_list(&["--json"]);
    let answer = Answer::of(command.args(words).output().unwrap());
    assert_eq!(answer.code, Some(0), "{words:?}: {answer:?}");
}

#[test]
fn an_agent_cannot_change_a_check_through_commands_or_tools() {
    let scene = Inside::new(CCB);
    let home = &scene.home;
    home.ok(&[
        "task", "create", "one", "--verify", "false", "--run", "make",
    ]);
    let call = |arguments: Value| {
        let lines = [
            json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params":
                {"protocolVersion": "2025-11-25",
                 "capabilities": {"experimental": {"ccb/json": {}}},
                 "clientInfo": {"name": "t", "version": "1"}}}),
            json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
            json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
                "params": {"name": "TaskUpdate", "arguments": arguments}}),
        ];
        let lines: String = lines.iter().map(|line| format!("{line}\n")).collect();
        format!("ccb mcp --role teammate <<'EOF'\n{lines}EOF")
    };
    let tools = [
        call(json!({"taskId": "1", "metadata": {"ccb": {"verify": "true"}}})),
        call(json!({"taskId": "1", "metadata": {"ccb": {"verify": null}}})),
        call(json!({"taskId": "1", "metadata": {"ccb": {"paths": ["x"]}}})),
        call(json!({"taskId": "1", "status": "deleted"})),
    ];
    let commands = [
        "ccb --json task update 1 --verify true",
        "ccb --json task update 1 --verify ''",
        r#"ccb --json task update 1 --meta 'ccb={"verify":"true"}'"#,
        r#"ccb --json task update 1 --meta 'ccb={"verify":null}'"#,
        "ccb --json task update 1 --run true",
        "ccb --json task rm 1",
        "CCB_AGENT=team-lead env -u CCB_RUN_ID $CCB --json task update 1 --verify true",
    ];
    let mut lines = vec!["ccb --json task claim 1"];
    lines.extend(commands);
    lines.extend(tools.iter().map(String::as_str));
    let answers: Vec<Answer> = scene.agent(&ALICE, &lines);
    assert_eq!(answers[0].code, Some(0), "{answers:?}");
    let (said, told) = answers[1..].split_at(commands.len());
    for (answer, line) in said.iter().zip(commands) {
        assert_eq!(answer.code, Some(4), "{line}: {answer:?}");
        assert!(
            answer.stdout.contains(r#""kind":"not_yours""#),
            "{answer:?}"
        );
    }
    for answer in told {
        assert!(answer.stdout.contains("not_yours"), "{answer:?}");
        assert!(answer.stdout.contains(r#""isError":true"#), "{answer:?}");
    }
    assert_eq!(check(home, 1), "false");
    assert_eq!(task(home, 1)["metadata"]["ccb"]["run"], "make");
    // It may change its own tasks, and other fields of this one.
    let lines = [
        "ccb --json task create mine --verify true",
        r#"ccb --json task update 1 --description more --meta note=1"#,
    ];
    for answer in scene.agent(&["--name", "dora"], &lines) {
        assert_eq!(answer.code, Some(0), "{answer:?}");
    }
    // The person may.
    home.ok(&["task", "update", "1", "--verify", "true"]);
    assert_eq!(check(home, 1), "true");
}

#[test]
fn a_check_that_was_changed_in_the_file_parks_the_task_until_a_person_decides() {
    for (found, say) in [
        (json!("true"), "`true`"),
        (json!("it's"), "`it's`"),
        (Value::Null, "nothing"),
    ] {
        let home = TestHome::in_memory(CCB);
        home.ok(&["task", "create", "one", "--verify", "test -e 'a b'"]);
        set_in_place(&home, 1, &found);
        let refused = home.fails(4, &["task", "claim", "1"]);
        assert_eq!(refused["reason"], "parked", "{refused}");
        let why = parked(&home, 1);
        let words = format!("from `test -e 'a b'` to {say}");
        assert!(why.contains(&words), "{why}");
        // Reopening it is not enough.
        home.ok(&["task", "update", "1", "--status", "pending"]);
        home.fails(4, &["task", "claim", "1"]);
        let back = home.copy();
        run(&home, &given(&why, "To accept the new check: ccb"));
        assert_eq!(parked(&home, 1), "");
        assert_eq!(check(&home, 1), found);
        home.ok(&["task", "claim", "1"]);
        run(&back, &given(&why, "To keep the old one: ccb"));
        assert_eq!(check(&back, 1), "test -e 'a b'");
        back.ok(&["task", "claim", "1"]);
    }
}

#[test]
fn a_file_that_is_put_right_again_is_no_longer_held_against_its_task() {
    let home = TestHome::in_memory(CCB);
    home.ok(&["task", "create", "one", "--verify", "false"]);
    set_check(&home, 1, "true".into());
    home.ok(&["task", "create", "another"]);
    assert!(parked(&home, 1).contains("`true`"));
    set_check(&home, 1, "false".into());
    home.ok(&["task", "claim", "1"]);
    assert_eq!(parked(&home, 1), "");
    // Nor can the mark be removed by hand.
    set_check(&home, 1, "true".into());
    home.ok(&["task", "create", "yet another"]);
    edit(&home, 1, |task| {
        task["metadata"]["ccb"]
            .as_object_mut()
            .unwrap()
            .remove("parked");
    });
    home.fails(4, &["task", "done", "1"]);
    home.fails(4, &["task", "done", "1", "--force"]);
    home.fails(4, &["task", "done", "1", "--verify"]);
    assert!(parked(&home, 1).contains("`true`"));
    assert_eq!(task(&home, 1)["status"], "in_progress");
    home.ok(&["task", "release", "1"]);
    assert!(parked(&home, 1).contains("`true`"));
}

#[test]
fn a_result_that_nobody_saw_is_not_believed() {
    let home = TestHome::in_memory(CCB);
    home.ok(&["task", "create", "one", "--verify", "false"]);
    edit(&home, 1, |task| {
        task["status"] = "completed".into();
        task["metadata"]["ccb"]["result"] =
            json!({"check": {"passed": true}, "commit": "abc", "changed": true});
    });
    home.ok(&["task", "create", "another"]);
    assert_eq!(task(&home, 1)["status"], "pending");
    assert!(
        parked(&home, 1).contains("nobody saw"),
        "{}",
        parked(&home, 1)
    );
    // A task that another tool completes without a check is left to ccb's check.
    home.ok(&["task", "create", "three", "--verify", "false"]);
    edit(&home, 3, |task| task["status"] = "completed".into());
    home.ok(&["task", "create", "four"]);
    assert_eq!(task(&home, 3)["status"], "completed");
}

#[test]
fn tasks_of_other_tools_and_of_older_versions_count_as_they_are_first_seen() {
    let home = TestHome::in_memory(CCB);
    home.ok(&["task", "create", "one"]);
    let foreign = json!({
        "id": "2", "subject": "two", "description": "", "status": "pending",
        "blocks": [], "blockedBy": [], "metadata": {"ccb": {"verify": "false"}},
    });
    std::fs::write(home.task_file(2), foreign.to_string()).unwrap();
    home.ok(&["task", "create", "three"]);
    set_check(&home, 2, "true".into());
    home.fails(4, &["task", "claim", "2"]);
    // A list from before checks were recorded.
    home.ok(&["task", "update", "2", "--verify", "false"]);
    std::fs::remove_dir_all(home.list_dir().join(".ccb/checks")).unwrap();
    home.ok(&["task", "create", "four"]);
    set_check(&home, 2, "true".into());
    home.fails(4, &["task", "claim", "2"]);
    // A task that vanishes does not return with another check.
    home.ok(&["task", "update", "2", "--verify", "false"]);
    let text = std::fs::read_to_string(home.task_file(2)).unwrap();
    std::fs::remove_file(home.task_file(2)).unwrap();
    home.ok(&["task", "create", "five"]);
    std::fs::write(home.task_file(2), text.replace("false", "true")).unwrap();
    home.fails(4, &["task", "claim", "2"]);
    // A task that a person deletes is gone.
    home.ok(&["task", "rm", "2"]);
    assert!(!record(&home, 2).exists());
}

#[test]
fn losing_the_records_costs_only_the_protection() {
    let home = TestHome::in_memory(CCB);
    for n in 1..=3 {
        home.ok(&["task", "create", &format!("t{n}"), "--verify", "false"]);
    }
    std::fs::remove_file(record(&home, 1)).unwrap();
    std::fs::write(record(&home, 2), "").unwrap();
    std::fs::write(record(&home, 3), "{\"v\": 1, \"ver").unwrap();
    let found = home.fails(1, &["doctor"]);
    let kinds: Vec<&Value> = found["findings"]
        .as_array()
        .unwrap()
        .iter()
        .map(|finding| &finding["kind"])
        .collect();
    assert_eq!(kinds, ["check_unrecorded"; 3], "{found}");
    home.ok(&["doctor", "--fix"]);
    home.ok(&["doctor"]);
    set_check(&home, 2, "true".into());
    let found = home.fails(1, &["doctor", "--fix"]);
    assert!(found.to_string().contains("check_changed"), "{found}");
    std::fs::remove_dir_all(home.list_dir().join(".ccb")).unwrap();
    home.ok(&["task", "update", "2", "--status", "pending"]);
    set_check(&home, 1, "true".into());
    home.fails(4, &["task", "claim", "1"]);
    home.ok(&["task", "claim", "3"]);
}

/// A cheat that an agent may write into its task.
fn cheat(file: &std::path::Path, how: &str) -> String {
    format!("sed -i {how} {}", file.display())
}

#[test]
fn a_session_neither_passes_nor_lands_work_by_a_check_its_agent_made() {
    let scene = SessionScene::new(CCB);
    let cheats = [
        r#"'s/"verify": *"test -e never"/"verify":"true"/'"#,
        r#"'/"verify"/d'"#,
    ];
    for (n, how) in cheats.iter().enumerate() {
        let id = n + 1;
        let file = scene.home.task_file(id as u64);
        let run = format!("echo x > made-{id}; {}", cheat(&file, how));
        scene.task("cheats", &["--run", &run, "--verify", "test -e never"]);
    }
    let before = scene.repo.git(&["rev-parse", "HEAD"]);
    let answer = scene.session(&["--mates", "1"]);
    assert_ne!(answer.code, Some(0), "{answer:?}");
    assert_eq!(scene.repo.git(&["rev-parse", "HEAD"]), before);
    for id in 1..=2 {
        let task = scene.file(id);
        assert_eq!(task["status"], "pending", "{task}");
        let why = task["metadata"]["ccb"]["parked"]["reason"].as_str();
        assert!(
            why.unwrap_or_default().contains("its check was changed"),
            "{task}"
        );
        let attempts = task["metadata"]["ccb"]["attempts"].as_array().map(Vec::len);
        assert_eq!(attempts, Some(1), "{task}");
    }
    scene.await_nobody();
}
