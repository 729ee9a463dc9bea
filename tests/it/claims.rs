//! The winners and losers of a task: `claim`, `next`, leases and their tokens.

use harness::TestHome;
use serde_json::{Value, json};

use crate::CCB;
use crate::commands::board;

/// A refused claim: exactly these keys, no `error`.
pub(crate) fn refused(home: &TestHome, code: i32, args: &[&str], reason: &str) -> Value {
    let before = home.board_bytes();
    let answer = home.fails(code, args);
    let keys: Vec<&String> = answer.as_object().unwrap().keys().collect();
    assert_eq!(
        keys,
        ["claimed", "reason", "task", "blockedBy", "busyWith"],
        "{answer}"
    );
    assert_eq!(answer["claimed"], false);
    assert_eq!(answer["reason"], reason, "{args:?}: {answer}");
    assert_eq!(home.board_bytes(), before, "{args:?} changed the board");
    answer
}

#[test]
fn a_claim_that_is_won() {
    let home = board(&["one"]);
    let won = home.ok(&["task", "claim", "1", "--as", "ann"]);
    let task = json!({
        "id": "1", "subject": "one", "description": "", "owner": "ann", "status": "in_progress",
        "blocks": [], "blockedBy": [],
    });
    assert_eq!(won, json!({"claimed": true, "task": task, "token": null}));
    assert_eq!(home.tasks_on_disk(), [task]);
    let again = home.ok(&["task", "claim", "1", "--as", "ann"]);
    assert_eq!(again, won, "claiming again by the owner succeeds");
}

#[test]
fn every_reason_to_refuse_a_claim() {
    let home = board(&["free", "taken", "done", "waits", "both"]);
    home.ok(&["task", "claim", "2", "--as", "ann"]);
    home.ok(&["task", "done", "3"]);
    home.ok(&["task", "block", "1", "4"]);
    home.ok(&["task", "block", "2", "4"]);
    home.ok(&["task", "block", "3", "4"]);

    let answer = refused(&home, 3, &["task", "claim", "9"], "task_not_found");
    assert_eq!(answer["task"], Value::Null);
    let answer = refused(
        &home,
        4,
        &["task", "claim", "2", "--as", "bob"],
        "already_claimed",
    );
    assert_eq!(answer["task"]["owner"], "ann");
    let answer = refused(
        &home,
        4,
        &["task", "claim", "3", "--as", "bob"],
        "already_resolved",
    );
    assert_eq!(answer["task"]["status"], "completed");
    let answer = refused(&home, 4, &["task", "claim", "4", "--as", "bob"], "blocked");
    assert_eq!(
        answer["blockedBy"],
        json!(["1", "2"]),
        "the completed one is not open"
    );
    let busy = ["task", "claim", "1", "--as", "ann", "--check-busy"];
    let answer = refused(&home, 4, &busy, "agent_busy");
    assert_eq!(answer["busyWith"], json!(["2"]));
    // The check for a busy owner comes last, and only if asked for.
    let busy = ["task", "claim", "4", "--as", "ann", "--check-busy"];
    refused(&home, 4, &busy, "blocked");
    home.ok(&["task", "claim", "1", "--as", "ann"]);
    for args in [
        ["task", "claim", "2", "--as", "bob"],
        ["task", "claim", "9", "--as", "bob"],
    ] {
        let people = home.run(&args);
        assert!(
            people.stdout.is_empty() && people.stderr.contains("error:"),
            "{people:?}"
        );
    }
}

#[test]
fn an_assigned_task_is_for_its_owner() {
    let home = board(&["assigned", "free"]);
    home.ok(&["task", "update", "1", "--owner", "ann"]);
    refused(
        &home,
        4,
        &["task", "claim", "1", "--as", "bob"],
        "already_claimed",
    );
    let other = ["task", "claim", "2", "--as", "ann", "--check-busy"];
    assert_eq!(
        refused(&home, 4, &other, "agent_busy")["busyWith"],
        json!(["1"])
    );
    let won = home.ok(&["task", "claim", "1", "--as", "ann", "--check-busy"]);
    assert_eq!(won["task"]["status"], "in_progress");
}

#[test]
fn next_takes_the_best_task() {
    let home = board(&[
        "low",
        "start of a chain",
        "middle",
        "end",
        "urgent but blocked",
    ]);
    home.ok(&["task", "create", "urgent", "--priority", "5"]);
    home.ok(&["task", "create", "mine already"]);
    for (blocker, dependent) in [("2", "3"), ("3", "4"), ("4", "5")] {
        home.ok(&["task", "block", blocker, dependent]);
    }
    home.ok(&["task", "update", "5", "--priority", "9"]);
    home.ok(&["task", "update", "7", "--owner", "ann"]);
    let order: Vec<Value> = (0..4)
        .map(|_| home.ok(&["task", "next", "--as", "ann"])["task"]["id"].clone())
        .collect();
    assert_eq!(order, ["7", "6", "2", "1"]);
    refused(&home, 3, &["task", "next", "--as", "ann"], "nothing_ready");
    let busy = refused(
        &home,
        4,
        &["task", "next", "--as", "ann", "--check-busy"],
        "agent_busy",
    );
    assert_eq!(busy["busyWith"], json!(["1", "2", "6", "7"]));
}

#[test]
fn next_tells_all_done_from_nothing_ready() {
    let home = TestHome::new(CCB);
    refused(&home, 3, &["task", "next"], "all_done");
    home.create("one");
    home.create("two");
    home.ok(&["task", "block", "1", "2"]);
    let won = home.ok(&["task", "next", "--as", "ann"]);
    assert_eq!(
        (&won["claimed"], &won["token"]),
        (&json!(true), &Value::Null)
    );
    refused(&home, 3, &["task", "next", "--as", "bob"], "nothing_ready");
    home.ok(&["task", "done", "1", "--as", "ann"]);
    home.ok(&["task", "done", "2"]);
    refused(&home, 3, &["task", "next"], "all_done");
    home.ok(&["task", "create", "hidden", "--meta", "_internal=true"]);
    refused(&home, 3, &["task", "next"], "all_done");
}

#[test]
fn a_lease_runs_out_and_its_token_with_it() {
    let home = board(&["one"]);
    let first = home.ok(&["task", "claim", "1", "--as", "ann", "--lease", "600"]);
    let token = first["token"].as_u64().unwrap();
    assert_eq!(first["task"]["metadata"]["ccb"]["lease"]["agent"], "ann");
    refused(
        &home,
        4,
        &["task", "claim", "1", "--as", "bob"],
        "already_claimed",
    );
    home.expire_lease(1);
    let second = home.ok(&["task", "claim", "1", "--as", "bob", "--lease", "600"]);
    let newer = second["token"].as_u64().unwrap();
    assert!(newer > token, "tokens only grow");

    let old = token.to_string();
    let before = home.board_bytes();
    for late in [
        ["task", "done", "1", "--as", "ann", "--token", &old].as_slice(),
        &["task", "release", "1", "--as", "ann", "--token", &old],
        &[
            "task",
            "update",
            "1",
            "--as",
            "ann",
            "--subject",
            "x",
            "--token",
            &old,
        ],
        &["task", "done", "1", "--as", "bob", "--token", &old],
    ] {
        assert_eq!(
            home.fails(4, late)["error"]["kind"],
            "lease_lost",
            "{late:?}"
        );
    }
    assert_eq!(home.board_bytes(), before);
    home.ok(&[
        "task",
        "done",
        "1",
        "--as",
        "bob",
        "--token",
        &newer.to_string(),
    ]);
    let after = home.fails(4, &["task", "done", "1", "--token", &newer.to_string()]);
    assert_eq!(after["error"]["kind"], "lease_lost");
}

#[test]
fn claiming_again_renews_a_lease_and_next_can_have_one() {
    let home = board(&["one"]);
    let first = home.ok(&["task", "next", "--as", "ann", "--lease", "5"]);
    let second = home.ok(&["task", "claim", "1", "--as", "ann", "--lease", "600"]);
    assert!(second["token"].as_u64() > first["token"].as_u64());
    let end = |answer: &Value| {
        let lease = &answer["task"]["metadata"]["ccb"]["lease"];
        lease["expiresAt"].as_str().unwrap().to_owned()
    };
    assert!(end(&second) > end(&first));
    // A task that goes back keeps its last token, so that the next one is larger.
    home.ok(&["task", "release", "1", "--as", "ann"]);
    let third = home.ok(&["task", "claim", "1", "--as", "bob", "--lease", "5"]);
    assert!(third["token"].as_u64() > second["token"].as_u64());
}

#[test]
fn a_lease_must_last_at_least_a_second() {
    let home = board(&["one"]);
    for seconds in ["0", "-1", "soon", "99999999999"] {
        let lease = format!("--lease={seconds}");
        let answer = home.fails(2, &["task", "claim", "1", &lease]);
        assert_eq!(answer["error"]["kind"], "usage", "{seconds}");
    }
    assert_eq!(home.ok(&["task", "show", "1"])["task"]["status"], "pending");
}
