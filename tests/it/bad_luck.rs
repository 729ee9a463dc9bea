//! Bad settings, a bad home, a lock that is never free: a clear error, an untouched board.

use std::os::unix::ffi::OsStrExt;
use std::time::Duration;

use harness::{Answer, TestHome};
use store::lock::FileLock;

use crate::CCB;
use crate::bad_input::{board, check_refusal, refused};

#[test]
fn bad_settings() {
    let home = board();
    for (text, says) in [
        ("{\"taskbord\":{}}", "did you mean \"taskboard\""),
        (
            "{\"taskboard\":{\"lokc\":\"flock\"}}",
            "did you mean \"taskboard.lock\"",
        ),
        (
            "{\"taskboard\":{\"lockTimeout\":5}}",
            "did you mean \"taskboard.lockTimeoutMs\"",
        ),
        (
            "{\"taskboard\":{\"xyzzy\":5}}",
            "known here: board, durable, leaseMs, lock, lockTimeoutMs, manyTasksPerAgent",
        ),
        (
            "{\"taskboard\":{\"lock\":\"both\"}}",
            "\"shared\" or \"flock\"",
        ),
        ("{\"taskboard\":{\"durable\":1}}", "true or false"),
        (
            "{\"taskboard\":{\"lockTimeoutMs\":0}}",
            "at least 1ms, at most 1h",
        ),
        ("{\"taskboard\":[]}", "must be an object"),
        ("{", "ccb.json"),
        ("", "ccb.json"),
    ] {
        home.settings(text);
        refused(&home, &["task", "create", "x"], 2, "bad_settings", says);
        refused(&home, &["task", "list"], 2, "bad_settings", "ccb.json");
    }
    home.settings("{}");
    home.create("works again");
}

#[test]
fn a_home_that_cannot_be() {
    let home = TestHome::new(CCB);
    let file = home.path().join("a-file");
    std::fs::write(&file, "precious").unwrap();
    for bad in [file.clone(), file.join("below")] {
        let bad = bad.to_str().unwrap();
        for args in [
            ["task", "create", "x"].as_slice(),
            &["task", "list"],
            &["task", "claim", "1"],
        ] {
            let answer = home.run(&[&["--json", "--home", bad], args].concat());
            check_refusal(args, &answer, 1, "io", "a-file");
        }
    }
    assert_eq!(std::fs::read(&file).unwrap(), b"precious");

    // Paths in JSON must be text, so a home must be, too.
    let not_text = home
        .path()
        .join(std::ffi::OsStr::from_bytes(b"not-\xff-text"));
    for by_flag in [true, false] {
        let mut command = home.command(&["--json", "task", "create", "x"]);
        if by_flag {
            command.arg("--home").arg(&not_text);
        } else {
            command.env("CCB_HOME", &not_text);
        }
        let answer = Answer::of(command.output().unwrap());
        check_refusal(&["home"], &answer, 2, "bad_path", "UTF-8");
    }
    assert_eq!(
        std::fs::read_dir(home.path()).unwrap().count(),
        1,
        "nothing was made"
    );
}

#[test]
fn a_missing_directory() {
    let home = board();
    refused(
        &home,
        &["-C", "nowhere", "task", "list"],
        2,
        "bad_directory",
        "nowhere",
    );
}

#[test]
fn a_lock_that_is_held_too_long() {
    let home = board();
    home.settings(r#"{"taskboard":{"lockTimeoutMs":300}}"#);
    let path = home.list_dir().join(".lock");
    let held = FileLock::exclusive(&path, "the list", Duration::from_secs(5)).unwrap();
    let holder = format!("process {}", std::process::id());
    for args in [
        ["task", "create", "x"].as_slice(),
        &["task", "done", "1"],
        &["task", "block", "1", "3"],
        &["task", "reset"],
        &["task", "watch", "--no-follow"],
    ] {
        let error = refused(&home, args, 5, "lock_timeout", &holder);
        let message = error["message"].as_str().unwrap();
        assert!(
            message.contains("\"board\"") && message.contains(".lock"),
            "{message}"
        );
        assert!(error["hint"].is_string());
    }
    for args in [["task", "claim", "1"].as_slice(), &["task", "next"]] {
        let before = home.board_bytes();
        let answer = home.fails(5, args);
        assert_eq!(answer["claimed"], false);
        assert_eq!(answer["reason"], "lock_timeout");
        assert!(
            answer["message"].as_str().unwrap().contains(&holder),
            "{answer}"
        );
        assert_eq!(answer.get("error"), None);
        assert_eq!(home.board_bytes(), before);
    }
    // Reading needs no lock.
    for args in [
        ["task", "list"].as_slice(),
        &["task", "show", "1"],
        &["task", "graph"],
        &["doctor"],
    ] {
        home.ok(args);
    }
    drop(held);
    home.create("works again");
}
