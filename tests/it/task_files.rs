//! The part of a board's behaviour that is about its files: changes by other tools and by hand.

use harness::TestHome;
use serde_json::{Value, json};

use crate::CCB;
use crate::claims::refused;
use crate::commands::{board, keys};

#[test]
fn a_parked_task_is_refused_until_someone_acts() {
    let home = board(&["tried too often"]);
    let path = home.task_file(1);
    let mut task: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    task["metadata"] = json!({"ccb": {"parked": {"reason": "failed three times"}}});
    std::fs::write(&path, task.to_string()).unwrap();
    refused(&home, 4, &["task", "claim", "1"], "parked");
    refused(&home, 3, &["task", "next"], "nothing_ready");
    home.ok(&["task", "update", "1", "--status", "pending"]);
    home.ok(&["task", "claim", "1"]);
}

/// The file's owner and status are the truth: a change of them by another tool voids the lease.
#[test]
fn another_tools_owner_voids_a_lease() {
    let home = board(&["one"]);
    let won = home.ok(&["task", "claim", "1", "--as", "ann", "--lease", "600"]);
    let tool = harness::ForeignTool::new(home.list_dir());
    tool.update(1, |task| drop(task.insert("owner".into(), "eve".into())))
        .unwrap();
    let token = won["token"].to_string();
    let late = home.fails(4, &["task", "done", "1", "--as", "ann", "--token", &token]);
    assert_eq!(late["error"]["kind"], "lease_lost");
    assert_eq!(home.ok(&["task", "show", "1"])["task"]["owner"], "eve");
}

#[test]
fn doctor_is_content_with_a_sound_board() {
    let home = TestHome::new(CCB);
    let sound = home.ok(&["doctor"]);
    assert_eq!(
        keys(&sound),
        ["list", "findings", "left", "runtimes", "providers"]
    );
    assert_eq!(
        (&sound["list"], &sound["findings"], &sound["left"]),
        (&json!("board"), &json!([]), &json!(0))
    );
    home.create("one");
    assert_eq!(home.ok(&["doctor", "--fix"])["findings"], json!([]));
    std::fs::write(home.list_dir().join(".highwatermark"), "many").unwrap();
    let found = home.fails(1, &["doctor"]);
    assert_eq!(keys(&found["findings"][0]), ["kind", "message", "fixed"]);
    assert_eq!(
        (&found["findings"][0]["kind"], &found["left"]),
        (&json!("high_water"), &json!(1))
    );
    assert_eq!(home.ok(&["doctor", "--fix"])["left"], 0);
    std::fs::write(home.list_dir().join(".highwatermark"), "many").unwrap();
    assert_eq!(home.create("two"), 2, "no reason to stop");
    assert_eq!(home.ok(&["doctor"])["left"], 0);
    std::fs::write(home.list_dir().join("notes.json"), "{}").unwrap();
    assert_eq!(
        home.fails(1, &["doctor", "--fix"])["findings"][0]["kind"],
        "stray_file"
    );
}
