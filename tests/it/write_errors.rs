//! A disk that is full, broken or read-only, at every single write of every operation.
//!
//! Each operation runs once with a trace to learn which write points it passes, then once per pass
//! and error. The command's answer must be true in each case: after an error the board is as it
//! was, or, where the error can only come after the change, as the change made it; after a success
//! it is changed. And the error must leave nothing that stops the next command.

use std::collections::BTreeMap;

use harness::sample::Sample;
use harness::{Answer, TestHome};
use serde_json::{Value, json};

use crate::CCB;

const ERRORS: [&str; 3] = ["enospc", "eio", "erofs"];

/// Points after an irreversible step, where an error means nothing, and the change log, which the
/// next command completes.
const HARMLESS: [&str; 14] = [
    "serve.logged",
    "publish.replaced",
    "publish.created",
    "remove.done",
    "log.half",
    "log.appended",
    "lockdir.taken",
    "lockdir.released",
    "intent.written",
    "intent.step",
    "intent.applied",
    "ids.reserved",
    "section.committed",
    "log.cut",
];

/// 1 → 2 → 3; 4 is in progress, 5 and 6 are free.
fn board() -> TestHome {
    let home = TestHome::in_memory(CCB);
    for subject in ["one", "two", "three", "four", "five", "six"] {
        home.create(subject);
    }
    home.ok(&["task", "block", "1", "2"]);
    home.ok(&["task", "block", "2", "3"]);
    home.ok(&["task", "claim", "4", "--as", "user"]);
    let rows = [
        json!({"key": "a", "subject": "new a", "blockedBy": ["1", "b"]}),
        json!({"key": "b", "subject": "new b", "blocks": ["5", "6"]}),
    ];
    let rows: Vec<String> = rows.iter().map(ToString::to_string).collect();
    std::fs::write(home.path().join("rows.jsonl"), rows.join("\n")).unwrap();
    home
}

/// The tasks by subject, with subjects for ids: ids may be lost to a failed creation.
fn state(home: &TestHome) -> BTreeMap<String, Value> {
    let mut tasks = home.tasks_on_disk();
    let subjects: BTreeMap<String, String> = tasks
        .iter()
        .map(|task| (text(&task["id"]), text(&task["subject"])))
        .collect();
    for task in &mut tasks {
        task["id"] = Value::Null;
        for key in ["blocks", "blockedBy"] {
            let others = task[key].as_array().unwrap().iter();
            let named = |id: &Value| {
                subjects
                    .get(&text(id))
                    .cloned()
                    .unwrap_or(format!("no task {id}"))
            };
            task[key] = others.map(named).collect::<Vec<_>>().into();
        }
    }
    tasks
        .into_iter()
        .map(|task| (text(&task["subject"]), task))
        .collect()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}

fn high_water(home: &TestHome) -> u64 {
    let text = std::fs::read_to_string(home.list_dir().join(".highwatermark")).unwrap();
    text.parse().unwrap()
}

/// One write error of this many is made (`tests/torture.sh errors`: each).
const FAILED_PASSES: u64 = 3;

fn survives_every_write_error(args: &[&str]) {
    let template = board();
    let before = state(&template);
    let whole = template.copy();
    let passes = whole.passes(args);
    let after = state(&whole);
    assert!(passes.len() > 3, "{passes:?}");
    let sample = Sample::one_in(FAILED_PASSES);
    for pass in passes {
        for error in ERRORS
            .iter()
            .filter(|error| sample.takes((args, error, &pass)))
        {
            let home = template.copy();
            let all = [&["--json"], args].concat();
            let answer = home.run_with_error(&all, error, &pass);
            let at = format!("{args:?} with {error} at {pass:?}: {answer:?}");
            let done = check(&home, &at, &pass.0, &answer, [&before, &after]);
            assert!(high_water(&home) >= high_water(&template), "{at}");
            assert_eq!(home.lock_dirs(), Vec::<String>::new(), "{at}");
            assert_eq!(home.temporaries(), Vec::<String>::new(), "{at}");
            if !done {
                home.ok(args);
                assert_eq!(state(&home), after, "{at}: the second try");
            }
            assert_eq!(home.ok(&["doctor"])["findings"], json!([]), "{at}");
        }
    }
}

/// Compares the board with the answer; true if the change was made.
fn check(
    home: &TestHome,
    at: &str,
    point: &str,
    answer: &Answer,
    [before, after]: [&BTreeMap<String, Value>; 2],
) -> bool {
    if answer.code == Some(0) {
        assert!(HARMLESS.contains(&point), "{at}: the error was swallowed");
        assert_eq!(state(home), *after, "{at}");
        return true;
    }
    assert_eq!(answer.code, Some(1), "{at}");
    let error = &answer.json()["error"];
    assert!(
        error["message"]
            .as_str()
            .is_some_and(|text| text.contains("os error")),
        "{at}"
    );
    if error["kind"] == "unfinished" {
        // Begun and recorded: the next command, whatever it is, finishes it.
        let next = home.run(&["task", "watch", "--no-follow"]);
        assert_eq!(next.code, Some(0), "{at}: {next:?}");
        assert_eq!(state(home), *after, "{at}: not carried through");
        return true;
    }
    // The answer says if the change was made, and the board agrees, now and after the next command
    // has repaired things.
    let made = error["kind"] == "not_durable";
    let expected = if made { after } else { before };
    assert!(made || error["kind"] == "io", "{at}");
    assert_eq!(state(home), *expected, "{at}");
    let next = home.run(&["task", "watch", "--no-follow"]);
    assert_eq!(next.code, Some(0), "{at}: {next:?}");
    assert_eq!(state(home), *expected, "{at}: it changed its mind");
    made
}

#[test]
fn create() {
    survives_every_write_error(&["task", "create", "new"]);
}

#[test]
fn create_with_edges() {
    survives_every_write_error(&[
        "task",
        "create",
        "new",
        "--blocked-by",
        "1",
        "--blocks",
        "5",
    ]);
}

#[test]
fn create_many() {
    survives_every_write_error(&["task", "create", "--from", "rows.jsonl"]);
}

#[test]
fn claim() {
    survives_every_write_error(&["task", "claim", "1", "--as", "a"]);
}

#[test]
fn claim_with_busy_check() {
    survives_every_write_error(&["task", "claim", "1", "--as", "a", "--check-busy"]);
}

#[test]
fn next() {
    survives_every_write_error(&["task", "next", "--as", "a"]);
}

#[test]
fn done() {
    survives_every_write_error(&["task", "done", "4"]);
}

#[test]
fn release() {
    survives_every_write_error(&["task", "release", "4"]);
}

#[test]
fn update() {
    survives_every_write_error(&[
        "task",
        "update",
        "5",
        "--subject",
        "new five",
        "--meta",
        "k=1",
    ]);
}

#[test]
fn block() {
    survives_every_write_error(&["task", "block", "5", "6"]);
}

#[test]
fn unblock() {
    survives_every_write_error(&["task", "unblock", "1", "2"]);
}

#[test]
fn rm() {
    survives_every_write_error(&["task", "rm", "2"]);
}

#[test]
fn reset() {
    survives_every_write_error(&["task", "reset", "--force"]);
}
