//! `TaskCreated` and `TaskCompleted`: before the change is visible, with a reason, and not for
//! ever.

use harness::runs::{LONG, one_hook};
use harness::{Answer, TestHome, Workplace, wait_until};
use serde_json::{Value, json};

use crate::CCB;

fn home() -> TestHome {
    TestHome::in_memory(CCB)
}

/// Refuses, with the reason on stderr.
const NO: &str = "echo 'not today' >&2; exit 2";

#[test]
fn hooks_are_asked_before_a_task_is_seen() {
    let home = home();
    let seen = home.path().join("seen");
    let command = format!(
        "cat > {0}; ls {1}/*.json >> {0} 2>/dev/null; exit 0",
        seen.display(),
        home.list_dir().display()
    );
    home.hook("TaskCreated", &command);
    let id = home.create("paint it");
    let text = std::fs::read_to_string(&seen).unwrap();
    let mut lines = text.lines();
    let told: Value = serde_json::from_str(lines.next().unwrap()).unwrap();
    assert_eq!(told["hook_event_name"], "TaskCreated");
    assert_eq!(told["task_id"], id.to_string());
    assert_eq!(told["task_subject"], "paint it");
    assert_eq!(told["team_name"], "board");
    assert_eq!(lines.next(), None, "the file was there already: {text}");
}

#[test]
fn a_no_keeps_a_task_off_the_board_and_its_id_is_lost() {
    let home = home();
    home.hook("TaskCreated", NO);
    let error = home.fails(4, &["task", "create", "x"])["error"].clone();
    assert_eq!(error["kind"], "vetoed");
    assert!(error["message"].as_str().unwrap().contains("not today"));
    assert!(home.tasks_on_disk().is_empty());
    let from = home.path().join("rows.json");
    std::fs::write(&from, "{\"subject\":\"a\"}\n{\"subject\":\"b\"}\n").unwrap();
    home.fails(4, &["task", "create", "--from", from.to_str().unwrap()]);
    assert!(home.tasks_on_disk().is_empty());
    home.hooks(&json!({}));
    assert!(home.create("y") > 1, "an id is never used twice");
}

#[test]
fn a_no_keeps_a_task_open() {
    let home = home();
    let id = home.create("x").to_string();
    home.hook(
        "TaskCompleted",
        r#"echo '{"decision":"block","reason":"no tests"}'"#,
    );
    for args in [
        &["task", "done", &id][..],
        &["task", "update", &id, "--status", "completed"],
    ] {
        let error = home.fails(4, args)["error"].clone();
        assert_eq!(error["kind"], "vetoed", "{args:?}");
        assert!(error["message"].as_str().unwrap().contains("no tests"));
    }
    assert_eq!(home.tasks_on_disk()[0]["status"], "pending");
    home.hook("TaskCompleted", "exit 0");
    home.ok(&["task", "done", &id]);
    assert_eq!(home.tasks_on_disk()[0]["status"], "completed");
}

#[test]
fn whoever_does_not_answer_has_said_no() {
    let home = home();
    let id = home.create("x").to_string();
    for (command, why) in [
        ("sleep 600", "longer than"),
        ("kill -9 $$", "signal 9"),
        ("exec /no/such/program", ""),
    ] {
        home.hooks(&one_hook("TaskCompleted", command, 0.5));
        let answer = home.run(&["--json", "task", "done", &id]);
        // A missing program is a mistake in the hook, and no answer of it.
        let expected = if why.is_empty() { 0 } else { 4 };
        assert_eq!(answer.code, Some(expected), "{command}: {answer:?}");
        assert!(answer.stdout.contains(why), "{command}: {answer:?}");
    }
}

#[test]
fn garbage_and_daemons_do_no_harm() {
    let home = home();
    // It holds the pipe until the home has gone with the test, and ccb does not wait for it.
    let daemon = format!(
        "head -c 100000 /dev/urandom; (while [ -d {} ]; do sleep 0.05; done) & exit 0",
        home.path().display()
    );
    home.hook("TaskCreated", &daemon);
    home.create("x");
    home.hook("TaskCreated", "echo '{\"decision\":'; exit 1");
    let answer = home.run(&["task", "create", "y"]);
    assert_eq!(answer.code, Some(0), "{answer:?}");
    assert!(answer.stderr.contains("failed"), "told: {answer:?}");
    assert_eq!(home.tasks_on_disk().len(), 2);
}

#[test]
fn ccb_in_a_hook_asks_no_hooks() {
    let home = home();
    // Without that rule this would never end.
    let again = format!("{CCB} --home \"$CCB_HOME\" --list other task create again");
    home.hook("TaskCreated", &again);
    home.create("x");
    let other = home.path().join("tasks/other");
    assert!(other.join("1.json").exists());
    assert!(!other.join("2.json").exists());
}

#[test]
fn a_task_that_changes_meanwhile_is_asked_about_again_and_once() {
    let home = home();
    let id = home.create("x").to_string();
    // The hook changes the task it is about, each time.
    let change = format!(
        "echo x >> {}; {CCB} --list board task update {id} --description \"$RANDOM$$\" >&2",
        home.path().join("asked").display()
    );
    let hook = json!({"TaskCompleted": [{"command": change, "shell": "bash"}]});
    home.hooks(&hook);
    let error = home.fails(4, &["task", "done", &id])["error"].clone();
    assert_eq!(error["kind"], "changed_meanwhile", "{error}");
    let asked = std::fs::read_to_string(home.path().join("asked")).unwrap();
    assert_eq!(asked.lines().count(), 2);
    assert_eq!(home.tasks_on_disk()[0]["status"], "pending");
}

#[test]
fn a_file_nobody_can_read_is_told_as_such() {
    let home = home();
    home.ok(&["task", "create", "first"]);
    std::fs::write(home.path().join("settings.json"), "{").unwrap();
    for args in [["task", "create", "x"], ["task", "done", "1"]] {
        let error = home.fails(2, &args)["error"].clone();
        assert_eq!(error["kind"], "bad_settings");
        let message = error["message"].as_str().unwrap();
        assert!(message.contains("settings.json"), "{message}");
        assert!(!message.contains("refused by a hook"), "{message}");
        assert!(error["hint"].as_str().unwrap().contains("correct the file"));
    }
}

#[test]
fn the_repository_asks_only_where_it_is_trusted() {
    let place = Workplace::new(CCB);
    let hooks = json!({ "hooks": one_hook("TaskCreated", NO, 60.0) });
    place
        .repo
        .write(".claude/settings.json", &hooks.to_string());
    let untrusted = place.run(&["task", "create", "x"]);
    assert_eq!(untrusted.code, Some(0), "{untrusted:?}");
    assert!(untrusted.stderr.contains("ccb trust"), "{untrusted:?}");
    place.ok(&["trust"]);
    place.fails(4, "vetoed", &["task", "create", "y"]);
    // The user's own need no trust.
    place.ok(&["trust", "--revoke"]);
    place.home.hook("TaskCreated", NO);
    place.fails(4, "vetoed", &["task", "create", "z"]);
}

#[test]
fn a_hook_in_the_background_holds_nobody_up_and_is_heard_of() {
    let home = home();
    let go = home.path().join("go");
    let wait = format!(
        r#"echo '{{"async":true}}'; while [ ! -e {} ]; do sleep 0.05; done; echo '{{"systemMessage":"the build is red"}}'"#,
        go.display()
    );
    home.hook("TaskCreated", &wait);
    home.create("x");
    assert!(home.told_lead().is_empty());
    std::fs::write(&go, "").unwrap();
    wait_until(LONG, "the hook's words", || {
        home.told_lead()
            .iter()
            .any(|text| text.contains("the build is red"))
    });
}

#[test]
fn a_caller_that_is_killed_takes_its_hooks_along() {
    let home = home();
    let pid_file = home.path().join("pid");
    let command = format!("echo $$ > {}; exec sleep 600", pid_file.display());
    home.hook("TaskCreated", &command);
    let mut child = home.command(&["task", "create", "x"]).spawn().unwrap();
    let pid = || -> Option<i32> {
        let text = std::fs::read_to_string(&pid_file).ok()?;
        text.trim().parse().ok()
    };
    wait_until(LONG, "the hook", || pid().is_some());
    let proc = format!("/proc/{}", pid().unwrap());
    assert!(std::path::Path::new(&proc).exists());
    child.kill().unwrap();
    child.wait().unwrap();
    wait_until(LONG, "the hook to be gone", || {
        let stat = std::fs::read_to_string(format!("{proc}/stat"));
        stat.is_ok_and(|stat| stat.contains(") Z")) || !std::path::Path::new(&proc).exists()
    });
    assert!(home.tasks_on_disk().is_empty());
}

#[test]
fn the_end_of_a_run_asks_before_its_task_is_completed() {
    let home = home();
    home.hook("TaskCompleted", NO);
    let id = home.create("x").to_string();
    let args = ["--json", "agent", "spawn", "--runtime", "shell", "--task"];
    let mut all = args.to_vec();
    all.extend([id.as_str(), "true"]);
    let answer = home.run(&all);
    assert_eq!(answer.code, Some(0), "{answer:?}");
    assert!(answer.stdout.contains("not today"), "{answer:?}");
    let task = &home.tasks_on_disk()[0];
    assert_eq!(
        (&task["status"], task.get("owner")),
        (&json!("pending"), None)
    );
    // In the background its parent is notified.
    all.insert(1, "--quiet");
    all.insert(all.len() - 1, "--background");
    let launched = Answer::of(home.command(&all).output().unwrap());
    let agent = launched.json()["agent"]["agentId"].clone();
    home.await_settled(agent.as_str().unwrap());
    let inbox = home.ok(&["mail", "inbox", "--as", "team-lead"]);
    assert!(inbox.to_string().contains("not today"), "{inbox}");
}
