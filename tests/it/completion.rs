//! `done`: its answer, its rights, and the check that proves it.

use serde_json::json;

use crate::commands::{board, keys};

#[test]
fn done_lists_what_it_unblocked_and_nudges_once() {
    let home = board(&["one", "two", "three"]);
    home.ok(&["task", "block", "1", "2"]);
    home.ok(&["task", "block", "1", "3"]);
    home.ok(&["task", "block", "2", "3"]);
    assert_eq!(
        home.fails(4, &["task", "done", "2"])["error"]["kind"],
        "blocked"
    );
    let first = home.ok(&["task", "done", "1"]);
    assert_eq!(keys(&first), ["task", "unblocked"]);
    assert_eq!(first["task"]["status"], "completed");
    assert_eq!(first["unblocked"], json!(["2"]), "3 still waits for 2");
    let again = home.fails(4, &["task", "done", "1"]);
    assert_eq!(again["error"]["kind"], "already_resolved");
    assert_eq!(home.ok(&["task", "done", "2"])["unblocked"], json!(["3"]));
    let last = home.ok(&["task", "done", "3"]);
    assert_eq!(keys(&last), ["task", "unblocked", "nudge"]);

    // Two tasks are too few to nag about, and one that verifies is enough.
    let short = board(&["one", "two"]);
    short.ok(&["task", "done", "1"]);
    assert_eq!(short.ok(&["task", "done", "2"]).get("nudge"), None);
    let checked = board(&["one", "two", "Verify the rest"]);
    checked.ok(&["task", "done", "1"]);
    checked.ok(&["task", "done", "2"]);
    assert_eq!(checked.ok(&["task", "done", "3"]).get("nudge"), None);
}

#[test]
fn done_by_a_stranger_is_refused() {
    let home = board(&["one"]);
    home.ok(&["task", "claim", "1", "--as", "ann"]);
    let refused = home.fails(4, &["task", "done", "1", "--as", "bob"]);
    assert_eq!(refused["error"]["kind"], "already_claimed");
    assert_eq!(refused["error"]["task"]["owner"], "ann");
    assert_eq!(
        home.ok(&["task", "done", "1", "--as", "bob", "--force"])["task"]["owner"],
        "ann"
    );
}

#[test]
fn done_verify_runs_the_check_first() {
    let home = board(&["unchecked"]);
    home.ok(&[
        "task",
        "create",
        "good",
        "--verify",
        "echo checked; test -d .",
    ]);
    home.ok(&["task", "create", "bad", "--verify", "touch ran; exit 3"]);
    let good = home.run(&["--json", "task", "done", "2", "--verify"]);
    assert_eq!(good.code, Some(0), "{good:?}");
    assert_eq!(
        good.json()["task"]["metadata"]["ccb"]["result"]["verified"],
        true
    );
    assert!(
        good.stderr.contains("checked"),
        "the check's output is kept off stdout"
    );

    let before = home.board_bytes();
    let bad = home.fails(1, &["task", "done", "3", "--verify"]);
    assert_eq!(bad["error"]["kind"], "verify_failed");
    assert!(
        bad["error"]["message"]
            .as_str()
            .unwrap()
            .contains("exit status: 3"),
        "{bad}"
    );
    assert_eq!(home.board_bytes(), before);
    home.fails(1, &["task", "done", "1", "--verify"]);
    assert_eq!(
        home.board_bytes(),
        before,
        "no check, so nothing proves it is done"
    );

    std::fs::remove_file(home.path().join("ran")).unwrap();
    home.ok(&["task", "done", "3"]);
    assert!(
        !home.path().join("ran").exists(),
        "without --verify the check is not run"
    );
}
