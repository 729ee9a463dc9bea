//! The JSON answers and exit codes of the commands, one promise per test.

use harness::TestHome;
use serde_json::{Value, json};

use crate::CCB;

/// A board with these tasks.
pub(crate) fn board(subjects: &[&str]) -> TestHome {
    let home = TestHome::new(CCB);
    for subject in subjects {
        home.create(subject);
    }
    home
}

/// The keys of an object, in order.
pub(crate) fn keys(value: &Value) -> Vec<&str> {
    value
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect()
}

#[test]
fn create_answers_with_the_task() {
    let home = board(&["first"]);
    let answer = home.ok(&[
        "task",
        "create",
        "second",
        "-d",
        "details",
        "--active-form",
        "Doing it",
        "--blocked-by",
        "1",
        "--priority",
        "7",
        "--run",
        "make",
        "--verify",
        "make test",
        "--meta",
        "area=\"ui\"",
    ]);
    let expected = json!({"task": {
        "id": "2", "subject": "second", "description": "details", "activeForm": "Doing it",
        "status": "pending", "blocks": [], "blockedBy": ["1"],
        "metadata": {"area": "ui", "ccb": {"priority": 7, "run": "make", "verify": "make test"}},
    }});
    assert_eq!(answer, expected);
    assert_eq!(
        home.tasks_on_disk()[1],
        expected["task"],
        "the file says the same"
    );
    let third = home.ok(&["task", "create", "third", "--blocks", "1", "--blocks", "2"]);
    assert_eq!(third["task"]["blocks"], json!(["1", "2"]));
    assert_eq!(
        home.ok(&["task", "show", "2"])["task"]["blockedBy"],
        json!(["1", "3"])
    );
    let stdin = home.run_with_input(&["--json", "task", "create", "x", "-d", "-"], b"a\nb");
    assert_eq!(stdin.json()["task"]["description"], "a\nb");
}

#[test]
fn a_null_in_new_metadata_means_absent() {
    let home = board(&[]);
    let answer = home.ok(&[
        "task",
        "create",
        "x",
        "--meta",
        "k=null",
        "--meta",
        "ccb={\"run\":null}",
    ]);
    assert_eq!(answer["task"].get("metadata"), None, "{answer}");
}

#[test]
fn list_is_in_numeric_order_and_filters() {
    let home = TestHome::new(CCB);
    assert_eq!(home.ok(&["task", "list"]), json!({"tasks": []}));
    assert!(!home.list_dir().exists(), "looking creates nothing");
    let subjects: Vec<String> = (1..=12).map(|n| format!("task {n}")).collect();
    for subject in &subjects {
        home.create(subject);
    }
    home.ok(&["task", "claim", "10", "--as", "ann"]);
    home.ok(&["task", "done", "2"]);
    home.ok(&["task", "block", "3", "4"]);
    home.ok(&["task", "update", "5", "--meta", "_internal=true"]);
    let ids = |args: &[&str]| -> Vec<u64> {
        let answer = home.ok(args);
        let tasks = answer["tasks"].as_array().unwrap();
        tasks
            .iter()
            .map(|task| task["id"].as_str().unwrap().parse().unwrap())
            .collect()
    };
    assert_eq!(ids(&["task", "list"]), [1, 2, 3, 4, 6, 7, 8, 9, 10, 11, 12]);
    assert_eq!(
        ids(&["task", "list", "--all"]),
        (1..=12).collect::<Vec<_>>()
    );
    assert_eq!(ids(&["task", "list", "--status", "completed"]), [2]);
    assert_eq!(ids(&["task", "list", "--owner", "ann"]), [10]);
    assert_eq!(
        ids(&["task", "list", "--ready"]),
        [1, 3, 6, 7, 8, 9, 11, 12]
    );
    let text = home.run(&["task", "list"]).stdout;
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[0].starts_with("ID"), "{text}");
    assert!(
        lines[9].starts_with("10") && lines[9].contains("ann"),
        "{text}"
    );
    assert!(!text.contains('\x1b'), "no colours in a pipe");
}

#[test]
fn show_answers_with_the_task_or_not_found() {
    let home = board(&["one"]);
    let answer = home.ok(&["task", "show", "1"]);
    assert_eq!(keys(&answer), ["task"]);
    assert_eq!(answer["task"], home.tasks_on_disk()[0]);
    let missing = home.fails(3, &["task", "show", "9"]);
    assert_eq!(missing["error"]["kind"], "task_not_found");
    assert!(missing["error"]["hint"].is_string());
}

#[test]
fn release_gives_a_task_back() {
    let home = board(&["one"]);
    home.ok(&["task", "claim", "1", "--as", "ann"]);
    let refused = home.fails(4, &["task", "release", "1", "--as", "bob"]);
    assert_eq!(refused["error"]["kind"], "already_claimed");
    let answer = home.ok(&["task", "release", "1", "--as", "ann"]);
    assert_eq!(keys(&answer), ["task"]);
    assert_eq!(answer["task"]["status"], "pending");
    assert_eq!(answer["task"].get("owner"), None);
    home.ok(&["task", "done", "1"]);
    assert_eq!(
        home.fails(4, &["task", "release", "1"])["error"]["kind"],
        "already_resolved"
    );
    assert_eq!(
        home.fails(3, &["task", "release", "2"])["error"]["kind"],
        "task_not_found"
    );
}

#[test]
fn rm_takes_the_task_out_of_every_other() {
    let home = board(&["one", "two", "three"]);
    home.ok(&["task", "block", "1", "2"]);
    home.ok(&["task", "block", "2", "3"]);
    let answer = home.ok(&["task", "rm", "2"]);
    assert_eq!(
        (keys(&answer), &answer["task"]["id"]),
        (vec!["task"], &json!("2"))
    );
    for task in home.tasks_on_disk() {
        assert_eq!(
            (&task["blocks"], &task["blockedBy"]),
            (&json!([]), &json!([]))
        );
    }
    assert_eq!(
        home.fails(3, &["task", "rm", "2"])["error"]["kind"],
        "task_not_found"
    );
    home.ok(&["task", "claim", "1", "--as", "ann"]);
    assert_eq!(
        home.fails(4, &["task", "rm", "1"])["error"]["kind"],
        "already_claimed"
    );
    home.ok(&["task", "rm", "1", "--force"]);
    assert_eq!(home.create("four"), 4);
}

#[test]
fn block_and_unblock_write_both_sides() {
    let home = board(&["one", "two"]);
    let answer = home.ok(&["task", "block", "1", "2"]);
    assert_eq!(
        (keys(&answer), &answer["task"]["id"]),
        (vec!["task"], &json!("2"))
    );
    assert_eq!(answer["task"]["blockedBy"], json!(["1"]));
    assert_eq!(home.tasks_on_disk()[0]["blocks"], json!(["2"]));
    home.ok(&["task", "block", "1", "2"]);
    assert_eq!(
        home.tasks_on_disk()[0]["blocks"],
        json!(["2"]),
        "twice is once"
    );
    let answer = home.ok(&["task", "unblock", "1", "2"]);
    assert_eq!(answer["task"]["blockedBy"], json!([]));
    assert_eq!(home.tasks_on_disk()[0]["blocks"], json!([]));
    home.ok(&["task", "unblock", "1", "2"]);
}

#[test]
fn update_changes_what_is_named_and_nothing_else() {
    let home = board(&["one"]);
    home.ok(&[
        "task",
        "update",
        "1",
        "--meta",
        "a=1",
        "--meta",
        "b={\"c\":[]}",
        "--priority",
        "2",
    ]);
    let answer = home.ok(&[
        "task",
        "update",
        "1",
        "--subject",
        "new",
        "-d",
        "text",
        "--active-form",
        "Doing",
        "--meta",
        "a=null",
    ]);
    assert_eq!(
        answer,
        json!({"task": {
            "id": "1", "subject": "new", "description": "text", "activeForm": "Doing",
            "status": "pending", "blocks": [], "blockedBy": [],
            "metadata": {"b": {"c": []}, "ccb": {"priority": 2}},
        }})
    );
    let emptied = [
        "task",
        "update",
        "1",
        "--meta",
        "b=null",
        "--meta",
        "ccb={\"priority\":null}",
    ];
    assert_eq!(home.ok(&emptied)["task"].get("metadata"), None);
    assert_eq!(
        home.ok(&["task", "update", "1", "--active-form", ""])["task"].get("activeForm"),
        None
    );
}

#[test]
fn update_of_owner_and_status_follows_the_rules_of_claims() {
    let home = board(&["one", "two"]);
    home.ok(&["task", "block", "1", "2"]);
    let assigned = home.ok(&["task", "update", "2", "--owner", "ann"]);
    assert_eq!(
        assigned["task"]["status"], "pending",
        "assigned, also while blocked"
    );
    let start = ["task", "update", "2", "--status", "in_progress", "--as"];
    assert_eq!(
        home.fails(4, &[&start[..], &["ann"]].concat())["error"]["kind"],
        "blocked"
    );
    assert_eq!(
        home.fails(4, &[&start[..], &["bob"]].concat())["error"]["kind"],
        "already_claimed"
    );
    let stolen = home.fails(4, &["task", "update", "2", "--owner", "bob", "--as", "bob"]);
    assert_eq!(stolen["error"]["kind"], "already_claimed");
    let done = home.ok(&["task", "update", "1", "--status", "completed"]);
    assert_eq!(
        (keys(&done), &done["unblocked"]),
        (vec!["task", "unblocked"], &json!(["2"]))
    );
    assert_eq!(
        home.ok(&[&start[..], &["ann"]].concat())["task"]["owner"],
        "ann"
    );
    let back = home.ok(&["task", "update", "2", "--status", "pending", "--as", "ann"]);
    assert_eq!(back["task"].get("owner"), None);
    // Opening a completed task again blocks what waits for it.
    home.ok(&["task", "update", "1", "--status", "pending"]);
    assert_eq!(
        home.fails(4, &["task", "claim", "2"])["blockedBy"],
        json!(["1"])
    );
    assert_eq!(
        home.fails(2, &["task", "update", "1", "--status", "open"])["error"]["kind"],
        "invalid"
    );
}

#[test]
fn reset_deletes_all_but_work_in_progress() {
    let home = board(&["one", "two"]);
    home.ok(&["task", "claim", "1"]);
    assert_eq!(
        home.fails(4, &["task", "reset"])["error"]["kind"],
        "already_claimed"
    );
    assert_eq!(
        home.ok(&["task", "reset", "--force"]),
        json!({"deleted": 2})
    );
    assert_eq!(home.ok(&["task", "reset"]), json!({"deleted": 0}));
    assert_eq!(home.create("three"), 3);
}

#[test]
fn completions_work() {
    let home = TestHome::new(CCB);
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let answer = home.run(&["completions", shell]);
        assert_eq!(answer.code, Some(0), "{shell}: {answer:?}");
        assert!(answer.stdout.contains("CCB_COMPLETE"), "{shell}");
    }
}
