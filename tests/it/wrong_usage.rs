//! Typing mistakes of people, and the errors.

use std::os::unix::fs::symlink;
use std::process::Command;

use harness::script::Script;
use harness::{Workplace, write};
use serde_json::{Value, json};

use crate::{CCB, FAKE_AGENT, ON_TERMINAL};

/// The output for a person: exit code, standard output, standard error.
fn said(command: &mut Command) -> (Option<i32>, String, String) {
    let output = command.output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (
        output.status.code(),
        text(output.stdout),
        text(output.stderr),
    )
}

fn plain(place: &Workplace, args: &[&str]) -> Command {
    let mut command = place.home.command_without_list(args);
    command.current_dir(place.repo.main());
    command
}

#[test]
fn an_unknown_runtime_is_told_with_the_ones_there_are() {
    let place = Workplace::new(CCB);
    place.home.with_fake_runtime(FAKE_AGENT, "");
    for args in [
        &["agent", "spawn", "--runtime", "nosuch", "x"][..],
        &["--team", "t", "--runtime", "nosuch"],
    ] {
        let error = place.fails(2, "unknown_runtime", args);
        let hint = error["hint"].as_str().unwrap();
        for name in [
            "claude", "codex", "fake", "gemini", "opencode", "qwen", "shell",
        ] {
            assert!(hint.contains(name), "{name}: {hint}");
        }
    }
    let error = place.fails(
        2,
        "unknown_runtime",
        &["agent", "spawn", "--runtime", "claud", "x"],
    );
    let hint = error["hint"].as_str().unwrap();
    assert!(hint.starts_with("did you mean \"claude\"?"), "{hint}");
    assert!(hint.contains("shell"), "{hint}");
}

#[test]
fn a_model_for_a_command_is_refused() {
    let place = Workplace::new(CCB);
    let spawn = [
        "agent",
        "spawn",
        "--runtime",
        "shell",
        "--model",
        "opus",
        "true",
    ];
    let error = place.fails(2, "no_model", &spawn);
    assert!(
        error["message"].as_str().unwrap().contains("opus"),
        "{error}"
    );
    assert_eq!(place.ok(&["agent", "list"])["agents"], json!([]));
    let session = ["--team", "t", "--runtime", "shell", "--model", "opus"];
    place.fails(2, "no_model", &session);
}

#[test]
fn paths_of_a_task_can_be_given_and_changed() {
    let place = Workplace::new(CCB);
    let create = [
        "task",
        "create",
        "x",
        "--paths",
        "src/**",
        "--paths",
        "docs/*.md",
    ];
    let made = place.ok(&create);
    assert_eq!(
        made["task"]["metadata"]["ccb"]["paths"],
        json!(["src/**", "docs/*.md"])
    );
    let changed = place.ok(&["task", "update", "1", "--paths", "tests/**"]);
    assert_eq!(
        changed["task"]["metadata"]["ccb"]["paths"],
        json!(["tests/**"])
    );
}

#[test]
fn flags_of_a_session_before_a_command_are_refused() {
    let place = Workplace::new(CCB);
    for flag in [
        &["--attempts", "2"][..],
        &["--model", "opus"],
        &["--into", "main"],
        &["--verify", "true"],
        &["--verify-timeout", "1m"],
        &["--max-failures", "1"],
        &["--no-worktrees"],
        &["--strategy", "squash"],
    ] {
        let args: Vec<&str> = flag.iter().copied().chain(["task", "list"]).collect();
        let error = place.fails(2, "usage", &args);
        let message = error["message"].as_str().unwrap();
        assert!(
            message.contains(flag[0]) && message.contains("`task list`"),
            "{message}"
        );
    }
    let error = place.fails(
        2,
        "usage",
        &["--runtime", "shell", "agent", "spawn", "true"],
    );
    let hint = error["hint"].as_str().unwrap();
    assert!(hint.contains("agent spawn --runtime"), "{hint}");
}

#[test]
fn hints_have_the_flags_that_were_typed() {
    let place = Workplace::new(CCB);
    place.ok(&["team", "create", "fixers"]);
    let flags = ["--team", "fixers", "--as", "bob"];
    let run = |args: &[&str]| {
        let args: Vec<&str> = flags.iter().chain(args).copied().collect();
        said(&mut plain(&place, &args))
    };
    let (code, _, stderr) = run(&["task", "show", "9"]);
    assert_eq!(code, Some(3));
    assert!(
        stderr.contains("`ccb --team fixers --as bob task list`"),
        "{stderr}"
    );
    let (_, stdout, _) = run(&["task", "list"]);
    assert!(
        stdout.contains("ccb --team fixers --as bob task create SUBJECT"),
        "{stdout}"
    );
    run(&["task", "create", "one"]);
    let (_, stdout, _) = run(&["task", "done", "1"]);
    assert!(
        stdout.contains("ccb --team fixers --as bob task next"),
        "{stdout}"
    );
    run(&["team", "join", "fixers"]);
    said(&mut plain(
        &place,
        &["--team", "fixers", "mail", "send", "bob", "hello"],
    ));
    let (_, stdout, _) = run(&["mail", "read"]);
    assert!(
        stdout.contains("ccb --team fixers --as bob mail ack 1"),
        "{stdout}"
    );
    // Where nothing was given, nothing is added.
    let (_, _, stderr) = said(&mut plain(&place, &["task", "show", "9"]));
    assert!(stderr.contains("`ccb task list`"), "{stderr}");
}

#[test]
fn a_notification_is_read_as_words() {
    let place = Workplace::new(CCB);
    let spawn = [
        "agent",
        "spawn",
        "--runtime",
        "shell",
        "--background",
        "echo all done",
    ];
    let id = place.ok(&spawn)["agent"]["agentId"]
        .as_str()
        .unwrap()
        .to_owned();
    // An agent with a waiting command sends no notification, so the test does not wait.
    harness::wait_until(
        std::time::Duration::from_secs(30),
        "the notification",
        || {
            let inbox = place.ok(&["mail", "inbox", "--as", "team-lead"]);
            !inbox["messages"].as_array().unwrap().is_empty()
        },
    );
    let mut command = place.command(&["mail", "read", "--as", "team-lead"]);
    let (_, stdout, _) = said(&mut command);
    assert!(
        stdout.contains(&format!("agent {id} completed: echo all done")),
        "{stdout}"
    );
    assert!(stdout.contains("│ all done"), "{stdout}");
    assert!(
        !stdout.contains('{') && !stdout.contains("taskId"),
        "{stdout}"
    );
    let (_, inbox, _) = said(&mut place.command(&["mail", "inbox", "--as", "team-lead"]));
    assert!(
        inbox.contains("completed") && !inbox.contains('{'),
        "{inbox}"
    );
}

#[test]
fn wait_waits_for_a_teammate_too() {
    let place = Workplace::new(CCB);
    place.home.with_fake_runtime(FAKE_AGENT, "");
    place.ok(&["team", "create", "fixers"]);
    let run = |args: &[&str]| {
        let mut all = vec!["--json", "--team", "fixers", "agent", "spawn", "--wait"];
        all.extend_from_slice(args);
        let (code, stdout, stderr) = said(&mut plain(&place, &all));
        assert_eq!(code, Some(0), "{stdout}{stderr}");
        serde_json::from_str::<Value>(&stdout).unwrap()["agent"].clone()
    };
    // A command ends with its result.
    let shell = run(&[
        "--name",
        "sh",
        "--runtime",
        "shell",
        "sleep 0.3; echo result",
    ]);
    assert_eq!(shell["status"], "completed", "{shell}");
    assert!(
        shell["content"].as_str().unwrap().contains("result"),
        "{shell}"
    );
    // A teammate lives on; its turn is over.
    let prompt = Script::new()
        .say("first turn")
        .done("ready")
        .serve()
        .to_prompt();
    let mate = run(&["--name", "ann", "--runtime", "fake", &prompt]);
    assert_eq!(mate["status"], "idle", "{mate}");
    plain(&place, &["--team", "fixers", "agent", "stop", "ann"])
        .output()
        .unwrap();
}

#[test]
fn git_that_is_missing_is_named() {
    let place = Workplace::new(CCB);
    let bin = tempfile::tempdir().unwrap();
    for name in ["sh", "cat", "env", "true"] {
        symlink(format!("/bin/{name}"), bin.path().join(name)).unwrap();
    }
    write(
        &place.repo.main().join("plan.yaml"),
        "name: x\ntasks:\n  - {id: a, run: 'true'}\n",
    );
    place.ok(&["team", "create", "t"]);
    for args in [
        &["worktree", "create", "x"][..],
        &[
            "agent",
            "spawn",
            "--runtime",
            "shell",
            "--isolation",
            "worktree",
            "true",
        ],
        &["--team", "t", "--runtime", "shell"],
        &["fanout", "plan.yaml"],
        &["fanout", "plan.yaml", "--dry-run"],
        &["demo"],
        &["doctor"],
    ] {
        let (code, stdout, stderr) = said(plain(&place, args).env("PATH", bin.path()));
        assert_eq!(code, Some(1), "{args:?}: {stdout}{stderr}");
        let told = stderr.contains("ccb needs git, which is not in your PATH");
        assert!(told, "{args:?}: {stderr}");
        assert!(stderr.contains("install git"), "{args:?}: {stderr}");
    }
}

#[test]
fn one_of_something_is_no_plural() {
    let place = Workplace::new(CCB);
    place.ok(&["task", "create", "one"]);
    let (_, stdout, _) = said(&mut place.command(&["task", "reset", "--yes"]));
    let (_, older, _) = said(&mut place.command(&["task", "reset"]));
    let text = stdout + &older;
    assert!(text.contains("deleted 1 task of"), "{text}");
}

#[test]
fn tables_fit_a_terminal_of_80_columns() {
    let place = Workplace::new(CCB);
    let long = "A subject that is much longer than any terminal of eighty columns could ever show";
    place.ok(&["task", "create", long]);
    place.ok(&["task", "create", "two", "--blocked-by", "1"]);
    place.ok(&[
        "worktree",
        "create",
        "a-name-for-a-worktree/that-is-rather-long",
        "--task",
        "1",
    ]);
    let isolated = [
        "agent",
        "spawn",
        "--runtime",
        "shell",
        "--isolation",
        "worktree",
    ];
    let spawn: Vec<&str> = isolated
        .iter()
        .copied()
        .chain(["touch new; echo a long description of it"])
        .collect();
    place.ok(&spawn);
    for args in [
        &["task", "list"][..],
        &["worktree", "list"],
        &["worktree", "list", "--all"],
        &["agent", "list"],
        &["agent", "types"],
        &["mail", "inbox", "--as", "team-lead"],
    ] {
        let mut terminal =
            harness::terminal::Terminal::start(ON_TERMINAL, &place.command(args), 80, 60);
        let (code, screen) = terminal.end();
        assert_eq!(code, Some(0), "{screen:?}");
        assert_eq!(screen.wrapped(), [""; 0], "{args:?}\n{screen:?}");
    }
}
