//! `create --from`: many tasks at once, all or none.

use harness::TestHome;
use serde_json::{Value, json};

use crate::CCB;

fn from_stdin(home: &TestHome, rows: &str) -> harness::Answer {
    home.run_with_input(
        &["--json", "task", "create", "--from", "-"],
        rows.as_bytes(),
    )
}

#[test]
fn rows_refer_to_each_other_by_key_and_to_the_board_by_id() {
    let home = TestHome::new(CCB);
    home.create("existing");
    let rows = [
        json!({"key": "tests", "subject": "tests", "blockedBy": ["code", "1"], "blocks": ["ship"]}),
        json!({"key": "code", "subject": "code", "description": "long", "activeForm": "Coding",
               "priority": 3, "run": "make", "verify": "make test", "agent": "coder",
               "paths": ["src"], "metadata": {"area": "core"}}),
        json!({"key": "ship", "subject": "ship"}),
    ];
    let text: Vec<String> = rows.iter().map(ToString::to_string).collect();
    // Blank lines are nothing, and a last line need not end.
    std::fs::write(home.path().join("rows.jsonl"), text.join("\n\n")).unwrap();
    let answer = home.ok(&["task", "create", "--from", "rows.jsonl"]);
    let keys: Vec<&String> = answer.as_object().unwrap().keys().collect();
    assert_eq!(keys, ["tasks"]);
    let tasks = home.tasks_on_disk();
    assert_eq!(
        answer["tasks"],
        Value::Array(tasks[1..].to_vec()),
        "in the order of the rows"
    );
    assert_eq!(tasks[0]["blocks"], json!(["2"]));
    assert_eq!(tasks[1]["blockedBy"], json!(["1", "3"]));
    assert_eq!(tasks[1]["blocks"], json!(["4"]));
    assert_eq!(
        tasks[2],
        json!({
            "id": "3", "subject": "code", "description": "long", "activeForm": "Coding",
            "status": "pending", "blocks": ["2"], "blockedBy": [],
            "metadata": {"area": "core", "ccb": {"priority": 3, "run": "make", "verify": "make test",
                         "agent": "coder", "paths": ["src"]}},
        })
    );
    assert_eq!(tasks[3]["blockedBy"], json!(["2"]));
}

#[test]
fn standard_input_and_no_rows_at_all() {
    let home = TestHome::new(CCB);
    let answer = from_stdin(&home, "{\"subject\":\"one\"}\r\n{\"subject\":\"two\"}\r\n");
    assert_eq!(answer.code, Some(0), "{answer:?}");
    assert_eq!(answer.json()["tasks"].as_array().unwrap().len(), 2);
    let nothing = from_stdin(&home, "\n\n");
    assert_eq!(
        (nothing.code, nothing.json()),
        (Some(0), json!({"tasks": []}))
    );
}

/// A key may look like an id; inside the batch it wins.
#[test]
fn a_key_wins_over_an_id_of_the_same_look() {
    let home = TestHome::new(CCB);
    home.create("one");
    let rows = "{\"key\":\"1\",\"subject\":\"a\"}\n{\"subject\":\"b\",\"blockedBy\":[\"1\"]}\n";
    let answer = from_stdin(&home, rows).json();
    assert_eq!(answer["tasks"][1]["blockedBy"], json!(["2"]));
}

#[test]
fn one_bad_row_and_nothing_is_created() {
    let good = "{\"key\":\"good\",\"subject\":\"good\",\"blocks\":[\"1\"]}\n\n";
    for (bad, code, kind, says) in [
        ("{\"subject\":\"cut off", 2, "invalid", "line 3"),
        ("[\"a list\"]", 2, "invalid", "line 3"),
        ("{}", 2, "invalid", "line 3: missing field `subject`"),
        (
            "{\"subject\":\"x\",\"subjct\":\"y\"}",
            2,
            "invalid",
            "line 3: unknown field `subjct`",
        ),
        ("{\"subject\":7}", 2, "invalid", "line 3"),
        (
            "{\"subject\":\"x\",\"blockedBy\":\"1\"}",
            2,
            "invalid",
            "line 3",
        ),
        (
            "{\"subject\":\"x\",\"priority\":\"high\"}",
            2,
            "invalid",
            "line 3",
        ),
        ("{\"subject\":\" \"}", 2, "invalid", "line 3: subject"),
        (
            "{\"subject\":\"two\\nlines\"}",
            2,
            "invalid",
            "line 3: subject",
        ),
        (
            "{\"subject\":\"x\",\"description\":\"a\\u0000b\"}",
            2,
            "invalid",
            "line 3: description",
        ),
        (
            "{\"subject\":\"x\",\"metadata\":{\"ccb\":{\"lease\":{}}}}",
            2,
            "invalid",
            "line 3: metadata.ccb.lease",
        ),
        (
            "{\"subject\":\"x\",\"run\":\"a\\u0000b\"}",
            2,
            "invalid",
            "line 3: metadata.ccb.run",
        ),
        (
            "{\"subject\":\"x\",\"blockedBy\":[\"god\"]}",
            2,
            "invalid",
            "did you mean \"good\"",
        ),
        (
            "{\"subject\":\"x\",\"blockedBy\":[\"../1\"]}",
            2,
            "invalid",
            "../1",
        ),
        (
            "{\"subject\":\"x\",\"key\":\"good\"}",
            2,
            "invalid",
            "used twice",
        ),
        (
            "{\"subject\":\"x\",\"blockedBy\":[\"77\"]}",
            3,
            "task_not_found",
            "77",
        ),
        (
            "{\"subject\":\"x\",\"key\":\"me\",\"blockedBy\":[\"me\"]}",
            4,
            "cycle",
            "cycle",
        ),
        (
            "{\"subject\":\"x\",\"blocks\":[\"good\"],\"blockedBy\":[\"1\"]}",
            4,
            "cycle",
            "1 → ",
        ),
    ] {
        let home = TestHome::new(CCB);
        home.create("existing");
        let before = home.board_bytes();
        let answer = from_stdin(&home, &format!("{good}{bad}\n"));
        assert_eq!(answer.code, Some(code), "{bad}: {answer:?}");
        let error = answer.json()["error"].clone();
        assert_eq!(error["kind"], kind, "{bad}: {error}");
        assert!(
            error["message"].as_str().unwrap().contains(says),
            "{bad}: {error}"
        );
        assert_eq!(home.board_bytes(), before, "{bad}");
        assert_eq!(home.temporaries(), Vec::<String>::new(), "{bad}");
        let whole = from_stdin(&home, good);
        assert_eq!(whole.code, Some(0), "{whole:?}");
    }
}

#[test]
fn a_file_that_cannot_be_read_is_wrong_usage() {
    let home = TestHome::new(CCB);
    let missing = home.fails(2, &["task", "create", "--from", "missing.jsonl"]);
    assert!(
        missing["error"]["message"]
            .as_str()
            .unwrap()
            .contains("missing.jsonl")
    );
    home.fails(2, &["task", "create", "--from", "."]);
    let both = home.fails(2, &["task", "create", "subject", "--from", "-"]);
    assert_eq!(both["error"]["kind"], "usage");
    let binary = home.run_with_input(&["--json", "task", "create", "--from", "-"], b"\xff\xfe");
    assert_eq!(binary.code, Some(2), "{binary:?}");
    assert!(!home.list_dir().exists());
}
