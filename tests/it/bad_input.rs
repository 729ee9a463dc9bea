//! Bad input: the right exit code, an error that helps, and an untouched board.

use harness::{Answer, TestHome};
use serde_json::{Value, json};

use crate::CCB;

/// 1 → 2 → 3; 4 is being worked on by ann, 5 is completed.
pub(crate) fn board() -> TestHome {
    let home = TestHome::new(CCB);
    for subject in ["one", "two", "three", "four", "five"] {
        home.create(subject);
    }
    home.ok(&["task", "block", "1", "2"]);
    home.ok(&["task", "block", "2", "3"]);
    home.ok(&["task", "claim", "4", "--as", "ann", "--lease", "600"]);
    home.ok(&["task", "done", "5"]);
    home
}

/// Runs the command, which must fail like this and change nothing.
pub(crate) fn refused(home: &TestHome, args: &[&str], code: i32, kind: &str, says: &str) -> Value {
    refused_with(home, args, b"", code, kind, says)
}

fn refused_with(
    home: &TestHome,
    args: &[&str],
    input: &[u8],
    code: i32,
    kind: &str,
    says: &str,
) -> Value {
    let before = home.board_bytes();
    let answer = home.run_with_input(&[&["--json"], args].concat(), input);
    check_refusal(args, &answer, code, kind, says);
    assert_eq!(home.board_bytes(), before, "{args:?} changed the board");
    assert_eq!(home.temporaries(), Vec::<String>::new(), "{args:?}");
    assert_eq!(home.lock_dirs(), Vec::<String>::new(), "{args:?}");
    answer.json()["error"].clone()
}

pub(crate) fn check_refusal(args: &[&str], answer: &Answer, code: i32, kind: &str, says: &str) {
    assert_eq!(answer.code, Some(code), "{args:?}: {answer:?}");
    let error = &answer.json()["error"];
    assert_eq!(error["kind"], kind, "{args:?}: {error}");
    let message = error["message"].as_str().unwrap();
    assert!(
        message.contains(says),
        "{args:?}: {message:?} does not say {says:?}"
    );
}

#[test]
fn bad_names() {
    let home = board();
    let long = "x".repeat(65);
    let names = [
        ("../x", "start with"),
        (".hidden", "start with"),
        ("-x", "start with"),
        ("a/b", "only letters"),
        ("two words", "only letters"),
        ("é", "start with"),
        ("a\nb", "only letters"),
        ("a..b", "'..'"),
        ("a.lock", "'.lock'"),
        ("a.", "'.'"),
        ("", "empty"),
        (&long, "64"),
    ];
    for (name, says) in names {
        for flag in ["--list", "--team"] {
            let flag = format!("{flag}={name}");
            let mut command = home.command_without_list(&["--json", &flag, "task", "create", "x"]);
            let answer = Answer::of(command.output().unwrap());
            check_refusal(&[&flag], &answer, 2, "bad_name", says);
        }
        let agent = format!("--as={name}");
        refused(&home, &["task", "claim", "1", &agent], 2, "bad_name", says);
        // An empty owner is the way to give a task back.
        if !name.is_empty() {
            let owner = format!("--owner={name}");
            refused(&home, &["task", "update", "1", &owner], 2, "bad_name", says);
        }
    }
    for variable in [
        "CLAUDE_CODE_TASK_LIST_ID",
        "CLAUDE_CODE_TEAM_NAME",
        "CLAUDE_CODE_SESSION_ID",
    ] {
        let mut command = home.command_without_list(&["--json", "task", "list"]);
        let answer = Answer::of(command.env(variable, "../x").output().unwrap());
        check_refusal(&[variable], &answer, 2, "bad_name", variable);
    }
    let mut command =
        home.command_without_list(&["--json", "--list", "BOARD", "task", "create", "x"]);
    let clash = Answer::of(command.output().unwrap());
    check_refusal(&["--list", "BOARD"], &clash, 2, "bad_name", "\"board\"");
    let lists = std::fs::read_dir(home.path().join("tasks"))
        .unwrap()
        .count();
    assert_eq!(lists, 1, "no bad name made a directory");
}

#[test]
fn bad_ids() {
    let home = board();
    let ids = [
        "../../x",
        "007",
        "-1",
        "",
        "0",
        "1e3",
        "1.0",
        "+1",
        " 1",
        "1 ",
        "٣",
        "0x1",
        "one",
        "9007199254740992",
        "1/../2",
    ];
    for id in ids {
        let (by, blocks) = (format!("--blocked-by={id}"), format!("--blocks={id}"));
        for args in [
            ["task", "show", id].as_slice(),
            &["task", "claim", id],
            &["task", "done", id],
            &["task", "release", id],
            &["task", "rm", id],
            &["task", "update", id, "--subject", "x"],
            &["task", "block", id, "1"],
            &["task", "block", "1", id],
            &["task", "unblock", "1", id],
            &["task", "create", "x", &by],
            &["task", "create", "x", &blocks],
        ] {
            refused(&home, args, 2, "bad_id", &format!("{id:?}"));
        }
    }
}

#[test]
fn unknown_ids() {
    let home = board();
    for args in [
        ["task", "show", "9"].as_slice(),
        &["task", "done", "9"],
        &["task", "release", "9"],
        &["task", "rm", "9"],
        &["task", "update", "9", "--subject", "x"],
        &["task", "block", "9", "1"],
        &["task", "block", "1", "9"],
        &["task", "unblock", "1", "9"],
        &[
            "task",
            "create",
            "x",
            "--blocked-by",
            "1",
            "--blocked-by",
            "9",
        ],
        &["task", "create", "x", "--blocks", "9"],
    ] {
        refused(&home, args, 3, "task_not_found", "task 9");
    }
}

#[test]
fn cycles_are_named() {
    let home = board();
    for (args, cycle, says) in [
        (
            ["task", "block", "1", "1"].as_slice(),
            json!(["1", "1"]),
            "1 → 1",
        ),
        (
            &["task", "block", "2", "1"],
            json!(["2", "1", "2"]),
            "2 → 1 → 2",
        ),
        (
            &["task", "block", "3", "1"],
            json!(["3", "1", "2", "3"]),
            "3 → 1 → 2 → 3",
        ),
    ] {
        let error = refused(&home, args, 4, "cycle", says);
        assert_eq!(error["cycle"], cycle, "{args:?}");
    }
    // The id the new task would have had is on the path.
    let new = ["task", "create", "x", "--blocked-by", "3", "--blocks", "1"];
    let error = refused(&home, &new, 4, "cycle", "6 → 1 → 2 → 3 → 6");
    assert_eq!(error["cycle"].as_array().unwrap().len(), 5, "{error}");
}

#[test]
fn text_that_is_too_long_or_no_text() {
    let home = board();
    let megabyte = "x".repeat(1024 * 1024);
    let create = ["task", "create", "x", "-d", "-"];
    refused_with(
        &home,
        &create,
        megabyte.as_bytes(),
        2,
        "invalid",
        "description: over 256 KiB",
    );
    let update = ["task", "update", "1", "-d", "-"];
    refused_with(
        &home,
        &update,
        megabyte.as_bytes(),
        2,
        "invalid",
        "description: over 256 KiB",
    );
    let rows = ["task", "create", "--from", "-"];
    for (row, says) in [
        (
            json!({"subject": "x", "description": megabyte}),
            "line 1: description: over 256 KiB",
        ),
        (
            json!({"subject": "x", "metadata": {"k": megabyte}}),
            "line 1: metadata: over 256 KiB",
        ),
        (
            json!({"subject": megabyte}),
            "line 1: subject: over 1000 characters",
        ),
        (json!({"subject": "nul\0"}), "line 1: subject: it contains"),
        (
            json!({"subject": "esc\u{1b}[31m"}),
            "line 1: subject: it contains",
        ),
        (
            json!({"subject": "x", "activeForm": "a\tb"}),
            "line 1: active form: it contains",
        ),
        (
            json!({"subject": "x", "description": "a\0b"}),
            "line 1: description: it contains a NUL",
        ),
        (
            json!({"subject": "x", "verify": "true\0"}),
            "metadata.ccb.verify: it must be text without NUL",
        ),
    ] {
        refused_with(&home, &rows, row.to_string().as_bytes(), 2, "invalid", says);
    }
    refused_with(&home, &create, b"\xff\xfe", 2, "invalid", "not valid UTF-8");
    refused_with(&home, &create, b"a\0b", 2, "invalid", "NUL");
    for (args, says) in [
        (["task", "create", ""].as_slice(), "subject: it is empty"),
        (&["task", "create", "  "], "subject: it is empty"),
        (
            &["task", "create", "two\nlines"],
            "subject: it contains a line break",
        ),
        (
            &["task", "update", "1", "--subject", ""],
            "subject: it is empty",
        ),
        (
            &["task", "update", "1", "--active-form", "a\nb"],
            "active form: it contains",
        ),
        (
            &["task", "update", "1", "--status", "doing"],
            "pending, in_progress or completed",
        ),
        (
            &["task", "list", "--status", "doing"],
            "pending, in_progress or completed",
        ),
    ] {
        refused(&home, args, 2, "invalid", says);
    }
    // Just below the limits everything works.
    let fits = "x".repeat(256 * 1024);
    let answer = home.run_with_input(&create, fits.as_bytes());
    assert_eq!(answer.code, Some(0), "{}", answer.stderr);
}

/// The engine's data in `metadata.ccb` cannot be forged from outside.
#[test]
fn bad_metadata() {
    let home = board();
    for (meta, says) in [
        ("novalue", "there is no ="),
        ("=1", "the key is empty"),
        ("k=", "not JSON"),
        ("k={", "not JSON"),
        ("k=bare", "not JSON"),
        ("ccb=1", "must be an object"),
        ("ccb=null", "must be an object"),
        (
            "ccb={\"lease\":{\"agent\":\"bob\",\"token\":1}}",
            "metadata.ccb.lease: ccb itself keeps it",
        ),
        (
            "ccb={\"lease\":null}",
            "metadata.ccb.lease: ccb itself keeps it",
        ),
        (
            "ccb={\"parked\":false}",
            "metadata.ccb.parked: ccb itself keeps it",
        ),
        (
            "ccb={\"result\":{\"verified\":true}}",
            "metadata.ccb.result: ccb itself keeps it",
        ),
        (
            "ccb={\"attempts\":0}",
            "metadata.ccb.attempts: ccb itself keeps it",
        ),
        (
            "ccb={\"priority\":\"high\"}",
            "metadata.ccb.priority: it must be a whole number",
        ),
        (
            "ccb={\"paths\":\"src\"}",
            "metadata.ccb.paths: it must be a list",
        ),
        ("ccb={\"run\":7}", "metadata.ccb.run: it must be text"),
    ] {
        refused(
            &home,
            &["task", "create", "x", "--meta", meta],
            2,
            "invalid",
            says,
        );
        refused(
            &home,
            &["task", "update", "4", "--meta", meta],
            2,
            "invalid",
            says,
        );
        refused(
            &home,
            &[
                "task",
                "update",
                "1",
                "--status",
                "completed",
                "--meta",
                meta,
            ],
            2,
            "invalid",
            says,
        );
    }
}
