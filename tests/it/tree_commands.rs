//! The commands as a user meets them.

use harness::{Answer, TestRepo, Workplace, git, wait_until, write};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::time::Duration;

use crate::CCB;

fn events(at: &Workplace) -> Vec<String> {
    let answer = at.ok(&["worktree", "events", "--limit", "100"]);
    let names = answer["events"].as_array().unwrap().iter();
    names
        .map(|event| event["event"].as_str().unwrap().to_owned())
        .collect()
}

/// The steps of the walk-through: tasks, worktrees bound to them, work, keep one, remove the other
/// with its task, and everything again from disk.
#[test]
fn tasks_and_trees_from_beginning_to_end() {
    let at = Workplace::new(CCB);
    let before = at.repo.surroundings();
    at.ok(&["task", "create", "Implement auth refactor"]);
    at.ok(&["task", "create", "Build the login page"]);

    let made = at.ok(&["worktree", "create", "auth-refactor", "--task", "1"]);
    let tree = &made["worktree"];
    assert_eq!(tree["name"], "auth-refactor");
    assert_eq!(tree["branch"], "worktree/auth-refactor");
    assert_eq!(tree["created"], true);
    assert_eq!(tree["task_id"], "1");
    assert_eq!(
        tree["path"],
        at.repo.tree("auth-refactor").to_str().unwrap()
    );
    assert_eq!(made["task"]["status"], "in_progress");
    assert_eq!(made["task"]["metadata"]["ccb"]["worktree"], "auth-refactor");

    at.ok(&["worktree", "create", "ui-login"]);
    let bound = at.ok(&["worktree", "bind", "ui-login", "2", "--as", "agent-B"]);
    assert_eq!(bound["task"]["owner"], "agent-B");
    assert_eq!(bound["task"]["status"], "in_progress");

    let command = [
        "worktree",
        "run",
        "auth-refactor",
        "--",
        "git",
        "status",
        "--short",
    ];
    let ran = at.ok(&command);
    assert_eq!((&ran["exitCode"], &ran["stdout"]), (&0.into(), &"".into()));
    let status = at.ok(&["worktree", "status", "auth-refactor"]);
    assert_eq!(status["changes"]["state"], "clean");
    at.ok(&["task", "update", "1", "--owner", "agent-A"]);

    let kept = at.ok(&["worktree", "keep", "ui-login"]);
    assert_eq!(kept["worktree"]["status"], "kept");

    let args = [
        "worktree",
        "remove",
        "auth-refactor",
        "--complete-task",
        "--as",
        "agent-A",
    ];
    let removed = at.ok(&args);
    assert_eq!(removed["worktree"]["status"], "removed");
    assert_eq!(removed["task"]["status"], "completed");
    assert!(removed["task"]["metadata"]["ccb"]["worktree"].is_null());
    assert_eq!(
        events(&at),
        [
            "worktree.create.before",
            "worktree.create.after",
            "worktree.create.before",
            "worktree.create.after",
            "worktree.bind",
            "worktree.keep",
            "worktree.remove.before",
            "worktree.remove.after",
            "task.completed",
        ]
    );
    let last = at.ok(&["worktree", "events", "--limit", "1"])["events"][0].clone();
    assert_eq!(
        last["task"],
        serde_json::json!({"id": "1", "status": "completed"})
    );
    assert_eq!(last["worktree"]["status"], "removed");

    // Only the disk has state: each command is a process of its own.
    let list = at.ok(&["worktree", "list", "--all"]);
    let rows = list["worktrees"].as_array().unwrap();
    let row = |name: &str| rows.iter().find(|row| row["name"] == name).unwrap();
    assert_eq!(row("auth-refactor")["status"], "removed");
    assert_eq!(row("ui-login")["status"], "kept");
    assert_eq!(row("ui-login")["task_id"], "2");
    let tasks = at.ok(&["task", "list"]);
    assert_eq!(tasks["tasks"][0]["status"], "completed");
    assert_eq!(tasks["tasks"][1]["metadata"]["ccb"]["worktree"], "ui-login");
    assert_eq!(at.repo.surroundings(), before);
}

#[test]
fn bad_input_gets_a_clear_error_and_changes_nothing() {
    let at = Workplace::new(CCB);
    let long = "x".repeat(65);
    let bad = [
        "../x",
        "a/../b",
        ".git",
        "-f",
        "a.lock",
        "a..b",
        "",
        &long,
        "\u{0430}uth",
        "a b",
        "/a",
    ];
    for name in bad {
        at.fails(2, "bad_name", &["worktree", "create", name]);
        at.fails(
            2,
            "bad_name",
            &["worktree", "remove", "--discard", "--", name],
        );
    }
    for base in [
        "nothing",
        "--detach",
        "-b",
        "HEAD:readme",
        "",
        "refs/heads/nope",
    ] {
        let arg = format!("--base={base}");
        at.fails(2, "bad_base", &["worktree", "create", "x", &arg]);
    }
    at.fails(
        3,
        "task_not_found",
        &["worktree", "create", "x", "--task", "7"],
    );
    at.fails(2, "bad_id", &["worktree", "create", "x", "--task", "seven"]);
    at.fails(
        2,
        "invalid",
        &["worktree", "create", "x", "--sparse", "../y"],
    );
    for verb in ["status", "keep", "unbind", "remove"] {
        at.fails(3, "worktree_not_found", &["worktree", verb, "x"]);
    }
    at.fails(3, "nothing_to_undo", &["worktree", "undo", "x"]);
    at.fails(
        3,
        "worktree_not_found",
        &["worktree", "run", "x", "--", "true"],
    );
    at.fails(2, "usage", &["worktree", "run", "x"]);
    assert!(!at.repo.tree("x").exists());
    assert!(at.repo.tree_branches().is_empty());
    assert_eq!(
        at.ok(&["worktree", "list", "--all"])["worktrees"],
        serde_json::json!([])
    );

    let bare = TestRepo::empty(&["--bare"]);
    let empty = TestRepo::empty(&[]);
    for (dir, kind) in [
        (bare.main(), "bare_repository"),
        (empty.main(), "no_commit"),
        (at.home.path(), "no_repository"),
    ] {
        let dir = dir.to_str().unwrap();
        let error = at.fails(2, kind, &["-C", dir, "worktree", "create", "x"]);
        assert!(error["hint"].is_string(), "{error}");
    }
}

#[test]
fn refusals_carry_the_counts() {
    let at = Workplace::new(CCB);
    at.ok(&["worktree", "create", "x"]);
    write(&at.repo.tree("x").join("new"), "x");
    write(&at.repo.tree("x").join("cache.ignored"), "x");
    git(
        &at.repo.tree("x"),
        &["commit", "-q", "--allow-empty", "-m", "work"],
    );
    let error = at.fails(4, "has_changes", &["worktree", "remove", "x"]);
    assert_eq!(error["changes"]["untracked"], 1);
    assert_eq!(error["changes"]["commits"], 1);
    assert_eq!(error["changes"]["state"], "changed");
    let status = at.ok(&["worktree", "status", "x", "--ignored"]);
    assert_eq!(status["ignored"], serde_json::json!(["cache.ignored"]));
    let dry = at.ok(&["worktree", "remove", "x", "--discard", "--dry-run"]);
    assert_eq!(dry["ignored"], serde_json::json!(["cache.ignored"]));
    assert!(at.repo.tree("x").exists());
    let removed = at.ok(&["worktree", "remove", "x", "--discard"]);
    assert_eq!(removed["ignored"], serde_json::json!(["cache.ignored"]));
    let refs = removed["worktree"]["removed"]["rescueRefs"]
        .as_str()
        .unwrap();
    assert!(at.repo.git(&["for-each-ref", refs]).contains("/head"));
    at.ok(&["worktree", "undo", "x"]);
    assert!(at.repo.tree("x").join("new").exists());
}

#[test]
fn run_passes_codes_on_and_ends_in_time() {
    let at = Workplace::new(CCB);
    at.ok(&["worktree", "create", "x"]);
    let run = |timeout: &str, script: &str| {
        let args = [
            "worktree",
            "run",
            "x",
            "--timeout",
            timeout,
            "--",
            "sh",
            "-c",
            script,
        ];
        Answer::of(at.command(&args).output().unwrap())
    };
    let ran = run("60", "pwd; exit 7");
    assert_eq!(ran.code, Some(7));
    assert_eq!(ran.stdout.trim(), at.repo.tree("x").to_str().unwrap());
    assert_eq!(run("60", "kill -9 $$").code, Some(137));
    assert_eq!(run("1", "sleep 1000 & sleep 1000").code, Some(5));
    let answer = at.run(&["worktree", "run", "x", "--", "no-such-program"]);
    assert_eq!(answer.json()["error"]["kind"], "not_run");
    // A worktree in which a command runs is not removed; a signal ends the command.
    let flag = at.repo.beside("started");
    let script = format!("touch {}; sleep 1000", flag.display());
    let args = ["worktree", "run", "x", "--", "sh", "-c", &script];
    let mut child = at.command(&args).spawn().unwrap();
    wait_until(Duration::from_secs(60), "the command to start", || {
        flag.exists()
    });
    at.fails(4, "in_use", &["worktree", "remove", "x", "--discard"]);
    let pid = Pid::from_child(&child);
    kill_process(pid, Signal::TERM).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(143));
    at.ok(&["worktree", "remove", "x"]);
}

#[test]
fn a_binding_is_kept_on_both_sides() {
    let at = Workplace::new(CCB);
    for subject in ["one", "two", "three"] {
        at.ok(&["task", "create", subject]);
    }
    at.ok(&["task", "block", "1", "2"]);
    at.ok(&["worktree", "create", "a"]);
    at.ok(&["worktree", "create", "b"]);
    let tree_of = |task: usize| {
        let list = at.ok(&["task", "list"]);
        list["tasks"][task - 1]["metadata"]["ccb"]["worktree"].clone()
    };
    let task_of = |tree: &str| {
        let list = at.ok(&["worktree", "list", "--quick"]);
        let rows = list["worktrees"].as_array().unwrap().clone();
        rows.iter().find(|row| row["name"] == tree).unwrap()["task_id"].clone()
    };
    // A blocked task is bound but not started.
    let bound = at.ok(&["worktree", "bind", "a", "2"]);
    assert_eq!(bound["task"]["status"], "pending");
    assert_eq!((tree_of(2), task_of("a")), ("a".into(), "2".into()));
    // Another task takes the worktree over.
    let bound = at.ok(&["worktree", "bind", "a", "1"]);
    assert_eq!(bound["task"]["status"], "in_progress");
    assert!(bound["task"]["owner"].is_null());
    assert_eq!((tree_of(1), tree_of(2)), ("a".into(), Value::Null));
    // A task moves to another worktree.
    at.ok(&["worktree", "bind", "b", "1"]);
    assert_eq!((task_of("a"), task_of("b")), (Value::Null, "1".into()));
    at.fails(3, "no_task", &["worktree", "unbind", "a"]);
    at.ok(&["worktree", "unbind", "b"]);
    assert_eq!((tree_of(1), task_of("b")), (Value::Null, Value::Null));
    // The task of another agent is refused, and nothing is bound.
    at.ok(&["task", "update", "3", "--owner", "ann"]);
    at.fails(
        4,
        "already_claimed",
        &["worktree", "bind", "a", "3", "--as", "bob"],
    );
    assert_eq!((tree_of(3), task_of("a")), (Value::Null, Value::Null));
    at.fails(
        4,
        "already_claimed",
        &["worktree", "create", "c", "--task", "3", "--as", "bob"],
    );
    assert!(!at.repo.tree("c").exists(), "what was made for it is gone");
    // A crash between the two sides: the board is right.
    at.ok(&["worktree", "bind", "a", "3", "--as", "ann"]);
    let index = at.repo.ours().join("index.json");
    let text = std::fs::read_to_string(&index).unwrap();
    std::fs::write(&index, text.replace("\"task_id\": \"3\",\n", "")).unwrap();
    assert_eq!(task_of("a"), "3");
}

#[test]
fn completing_with_the_removal_is_all_or_nothing() {
    let at = Workplace::new(CCB);
    at.ok(&["task", "create", "checked", "--verify", "test -e proof"]);
    at.ok(&["task", "create", "mine"]);
    at.ok(&["worktree", "create", "x", "--task", "1", "--as", "ann"]);
    let remove = ["worktree", "remove", "x", "--complete-task", "--as", "ann"];
    let discard = [&remove[..], &["--discard"]].concat();
    let still = || {
        assert!(at.repo.tree("x").exists());
        assert_eq!(
            at.ok(&["task", "show", "1"])["task"]["status"],
            "in_progress"
        );
    };
    at.fails(4, "vetoed", &remove);
    still();
    write(&at.repo.tree("x").join("proof"), "x");
    at.fails(4, "has_changes", &remove);
    still();
    at.fails(
        4,
        "already_claimed",
        &[
            "worktree",
            "remove",
            "x",
            "--complete-task",
            "--as",
            "bob",
            "--discard",
        ],
    );
    still();
    let done = at.ok(&discard);
    assert_eq!(done["task"]["status"], "completed");
    assert_eq!(done["task"]["metadata"]["ccb"]["result"]["verified"], true);
    at.ok(&["worktree", "create", "y"]);
    at.fails(
        3,
        "no_task",
        &["worktree", "remove", "y", "--complete-task"],
    );
    assert!(at.repo.tree("y").exists());
}

#[test]
fn a_repositorys_own_set_up_is_not_run_unasked() {
    let at = Workplace::new(CCB);
    at.repo.write(
        ".claude/ccb.json",
        "{\"worktree\":{\"setup\":\"touch ran.ignored\"}}",
    );
    let error = at.fails(4, "not_trusted", &["worktree", "create", "x"]);
    assert!(
        error["message"].as_str().unwrap().contains("touch ran"),
        "{error}"
    );
    assert!(!at.repo.tree("x").exists());
    at.ok(&["worktree", "create", "x", "--no-setup"]);
    at.ok(&["worktree", "create", "y", "--setup", "touch asked.ignored"]);
    assert!(at.repo.tree("y").join("asked.ignored").exists());
    std::fs::remove_file(at.repo.main().join(".claude/ccb.json")).unwrap();
    at.home
        .settings("{\"worktree\":{\"setup\":\"touch own.ignored; exit 1\"}}");
    let error = at.fails(1, "setup_failed", &["worktree", "create", "z"]);
    assert!(error["log"].is_string());
    assert!(!at.repo.tree("z").exists());
    at.home
        .settings("{\"worktree\":{\"setup\":\"touch own.ignored\"}}");
    at.ok(&["worktree", "create", "z"]);
    assert!(at.repo.tree("z").join("own.ignored").exists());
}

#[test]
fn from_inside_a_tree_everything_is_the_main_repositorys() {
    let at = Workplace::new(CCB);
    let one = at.ok(&["worktree", "create"]);
    let name = one["worktree"]["name"].as_str().unwrap();
    let dir = at.repo.tree(name).join("src");
    let dir = dir.to_str().unwrap();
    let two = at.ok(&["-C", dir, "worktree", "create", "two"]);
    assert_eq!(
        two["worktree"]["path"],
        at.repo.tree("two").to_str().unwrap()
    );
    let list = at.ok(&["-C", dir, "worktree", "list"]);
    assert_eq!(list["worktrees"].as_array().unwrap().len(), 2);
    assert_eq!(list["worktrees"][0]["changes"]["state"], "clean");
    let text = Answer::of(at.command(&["worktree", "list"]).output().unwrap());
    assert!(
        text.stdout.contains("NAME") && text.stdout.contains("two"),
        "{text:?}"
    );
    at.ok(&["-C", dir, "worktree", "remove", "two"]);
}
