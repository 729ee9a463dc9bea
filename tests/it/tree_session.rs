//! A session enters a worktree and leaves it again.

use std::path::Path;
use std::process::Command;

use harness::{Answer, TestRepo, Workplace, git, write};
use serde_json::{Value, json};

use crate::CCB;

/// Runs a command as a session with this id would, in `dir`.
fn run_as(at: &Workplace, session: &str, dir: &Path, args: &[&str]) -> Answer {
    let mut command = at.command(&[&["--json"], args].concat());
    command.current_dir(dir);
    if !session.is_empty() {
        command.env("CLAUDE_CODE_SESSION_ID", session);
    }
    Answer::of(command.output().unwrap())
}

fn ok_as(at: &Workplace, session: &str, args: &[&str]) -> Value {
    let answer = run_as(at, session, at.repo.main(), args);
    assert_eq!(answer.code, Some(0), "{args:?}: {answer:?}");
    answer.json()
}

fn fails_as(at: &Workplace, session: &str, code: i32, kind: &str, args: &[&str]) -> Value {
    let answer = run_as(at, session, at.repo.main(), args);
    assert_eq!(answer.code, Some(code), "{args:?}: {answer:?}");
    let error = answer.json()["error"].clone();
    assert_eq!(error["kind"], kind, "{args:?}: {answer:?}");
    error
}

/// The output for a shell.
fn printed(mut command: Command) -> String {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn a_shell_goes_there_and_back() {
    let at = Workplace::new(CCB);
    let src = at.repo.main().join("src");
    let mut enter = at.command(&["worktree", "enter", "x"]);
    enter.current_dir(&src);
    let path = printed(enter);
    assert_eq!(
        path,
        format!("{}\n", at.repo.tree("x").display()),
        "nothing but the path"
    );
    // From inside, as a shell would.
    let mut exit = at.command(&["worktree", "exit", "--keep"]);
    exit.current_dir(path.trim());
    assert_eq!(printed(exit), format!("{}\n", src.display()));
    assert!(at.repo.tree("x").exists());
    let listed = at.ok(&["worktree", "list", "--quick"]);
    assert_eq!(listed["worktrees"][0]["status"], "kept");
    at.fails(3, "not_in_worktree", &["worktree", "exit", "--keep"]);
    at.repo.check_sound();
}

#[test]
fn the_record_has_what_it_takes_to_go_back() {
    let at = Workplace::new(CCB);
    let id = "0123456789abcdef";
    let answer = ok_as(&at, id, &["worktree", "enter", "x", "--sparse", "src"]);
    let file = at.home.path().join("teams/session-01234567/session.json");
    let text = std::fs::read_to_string(&file).unwrap();
    let mut stored: Value = serde_json::from_str(&text).unwrap();
    let took = stored["worktree"]["creationDurationMs"].take();
    assert!(took.is_u64(), "{text}");
    let expected = json!({
        "originalCwd": at.repo.main(),
        "worktreePath": at.repo.tree("x"),
        "worktreeName": "x",
        "worktreeBranch": "worktree/x",
        "originalBranch": "main",
        "originalHeadCommit": at.repo.git(&["rev-parse", "HEAD"]).trim(),
        "sessionId": id,
        "creationDurationMs": null,
        "usedSparsePaths": true,
    });
    assert_eq!(stored["worktree"], expected);
    assert_eq!(answer["session"]["worktreeName"], "x");
    assert_eq!(answer["worktree"]["created"], true);

    // Unknown keys in the file are kept.
    stored["lead"] = "another".into();
    stored["worktree"]["creationDurationMs"] = took;
    write(&file, &stored.to_string());
    ok_as(&at, id, &["worktree", "exit", "--remove"]);
    let stored: Value = serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
    assert_eq!(stored["lead"], "another");
    assert_eq!(stored.get("worktree"), None);
    assert!(!at.repo.tree("x").exists());
}

#[test]
fn one_tree_at_a_time_and_ones_own() {
    let at = Workplace::new(CCB);
    let (one, two) = ("aaaaaaaa-1", "aaaaaaaa-2");
    ok_as(&at, one, &["worktree", "enter", "x"]);
    let error = fails_as(&at, one, 4, "in_worktree", &["worktree", "enter", "y"]);
    assert!(
        error["message"].as_str().unwrap().contains("\"x\""),
        "{error}"
    );
    fails_as(&at, one, 4, "in_worktree", &["worktree", "enter"]);
    assert!(!at.repo.tree("y").exists(), "nothing was made");
    let again = ok_as(&at, one, &["worktree", "enter", "x"]);
    assert_eq!(again["worktree"]["created"], false);
    assert_eq!(again["session"]["originalCwd"], json!(at.repo.main()));

    // Another session whose team has the same name by chance.
    fails_as(&at, two, 4, "not_yours", &["worktree", "exit", "--remove"]);
    assert!(at.repo.tree("x").exists());
    // A different session has a worktree of its own, but may not remove this one.
    ok_as(&at, "bbbbbbbb", &["worktree", "enter", "z"]);
    ok_as(&at, "bbbbbbbb", &["worktree", "exit", "--remove"]);
    assert!(at.repo.tree("x").exists() && !at.repo.tree("z").exists());
    ok_as(&at, one, &["worktree", "exit", "--remove"]);
    assert!(!at.repo.tree("x").exists());
    ok_as(&at, one, &["worktree", "enter", "y"]);
}

#[test]
fn leaving_counts_again_and_refuses_to_lose_anything() {
    let at = Workplace::new(CCB);
    at.ok(&["worktree", "enter", "x"]);
    let tree = at.repo.tree("x");
    write(&tree.join("new"), "x");
    write(&tree.join("readme"), "changed");
    let error = at.fails(4, "has_changes", &["worktree", "exit", "--remove"]);
    assert_eq!(error["changes"]["files"], 1);
    assert_eq!(error["changes"]["untracked"], 1);
    assert!(tree.exists());
    git(&tree, &["add", "."]);
    git(&tree, &["commit", "-qm", "work"]);
    let error = at.fails(4, "has_changes", &["worktree", "exit", "--remove"]);
    assert_eq!(error["changes"]["commits"], 1);
    // Still in it.
    at.fails(4, "in_worktree", &["worktree", "enter", "y"]);
    let left = at.ok(&["worktree", "exit", "--remove", "--discard"]);
    assert_eq!(left["removed"], true);
    assert_eq!(left["session"]["originalCwd"], json!(at.repo.main()));
    at.ok(&["worktree", "undo", "x"]);
    assert!(tree.join("new").exists());

    for args in [
        &["exit"][..],
        &["exit", "--keep", "--remove"],
        &["exit", "--keep", "--discard"],
    ] {
        let args = [&["worktree"], args].concat();
        assert_eq!(at.run(&args).code, Some(2), "{args:?}");
    }
}

#[test]
fn a_tree_that_is_gone_keeps_nobody() {
    let at = Workplace::new(CCB);
    at.ok(&["worktree", "enter", "x"]);
    at.ok(&["worktree", "remove", "x"]);
    let left = at.ok(&["worktree", "exit", "--remove"]);
    assert_eq!(left["worktree"], Value::Null);
    assert_eq!(left["session"]["originalCwd"], json!(at.repo.main()));
    at.ok(&["worktree", "enter", "y"]);
    at.ok(&["worktree", "remove", "y"]);
    at.ok(&["worktree", "enter", "z"]);
    assert!(at.repo.tree("z").exists());
}

#[test]
fn a_team_is_of_one_repository_and_its_file_is_not_guessed_at() {
    let at = Workplace::new(CCB);
    at.ok(&["--team", "fixers", "worktree", "enter", "x"]);
    let other = TestRepo::new();
    for args in [
        &["worktree", "enter", "x"][..],
        &["worktree", "exit", "--remove"],
    ] {
        let answer = run_as(
            &at,
            "",
            other.main(),
            &[&["--team", "fixers"], args].concat(),
        );
        assert_eq!(answer.code, Some(4), "{answer:?}");
        assert_eq!(answer.json()["error"]["kind"], "other_repository");
    }
    let file = at.home.path().join("teams/fixers/session.json");
    for (text, code, kind) in [
        ("{", 1, "session_unreadable"),
        (r#"{"worktree":7}"#, 1, "session_unreadable"),
        (r#"{"v":9}"#, 2, "newer_version"),
    ] {
        write(&file, text);
        let args = ["--team", "fixers", "worktree", "enter", "y"];
        at.fails(code, kind, &args);
        assert_eq!(
            std::fs::read_to_string(&file).unwrap(),
            text,
            "left as it is"
        );
    }
    assert!(!at.repo.tree("y").exists());
}
