//! Boards and teams of earlier formats must load for ever; a later format is not written to.

use std::path::{Path, PathBuf};

use harness::TestHome;
use serde_json::Value;

use crate::CCB;

/// A home whose board is a copy of `tests/fixtures/<name>`.
fn home_from(name: &str) -> TestHome {
    let home = TestHome::in_memory(CCB);
    copy(&fixture(name), &home.list_dir());
    home
}

fn fixture(name: &str) -> PathBuf {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures");
    fixtures.join(name)
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let dest = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &dest);
        } else {
            std::fs::copy(entry.path(), &dest).unwrap();
        }
    }
}

#[test]
fn a_board_of_format_1_loads() {
    let home = home_from("board-v1");
    let listed = home.ok(&["task", "list"]);
    let subjects: Vec<&str> = listed["tasks"]
        .as_array()
        .unwrap()
        .iter()
        .map(|t| t["subject"].as_str().unwrap())
        .collect();
    assert_eq!(subjects, ["Write the parser", "Fuzz the parser", "Publish"]);
    // A half-done creation is finished: 2 waits for 1, 3 for 2.
    let watch = home.run(&["--json", "task", "watch", "--since", "0", "--no-follow"]);
    assert_eq!(
        watch.json_lines()[0]["seq"],
        1,
        "the history goes back to the start"
    );
    let tasks = home.tasks_on_disk();
    assert_eq!(tasks[2]["blockedBy"], serde_json::json!(["2"]));
    assert_eq!(tasks[1]["blocks"], serde_json::json!(["3"]));
    assert_eq!(tasks[0]["metadata"]["other"], Value::from(1.5));
    assert_eq!(home.create("next"), 8, "the high-water mark counts");
}

#[test]
fn an_intent_of_a_later_format_is_left_alone() {
    let home = home_from("board-v1");
    let intent = home.list_dir().join(".ccb/intent.json");
    let text = std::fs::read_to_string(&intent)
        .unwrap()
        .replace("\"v\": 1", "\"v\": 2");
    std::fs::write(&intent, &text).unwrap();
    let error = home.fails(2, &["task", "claim", "1", "--as", "a"]);
    assert_eq!(error["error"]["kind"], "newer_version");
    assert_eq!(std::fs::read_to_string(&intent).unwrap(), text);
    home.ok(&["task", "list"]);
}

#[test]
fn a_log_of_a_later_format_is_read_but_not_written() {
    let home = home_from("board-v1");
    let log = home.list_dir().join(".ccb/log.jsonl");
    std::fs::remove_file(home.list_dir().join(".ccb/intent.json")).unwrap();
    let mut text = std::fs::read_to_string(&log).unwrap();
    text.push_str("{\"v\":2,\"seq\":6,\"ts\":\"\",\"op\":\"dream\",\"id\":\"1\"}\n");
    std::fs::write(&log, &text).unwrap();
    let error = home.fails(2, &["task", "claim", "3", "--as", "a"]);
    assert_eq!(error["error"]["kind"], "newer_version");
    assert_eq!(std::fs::read_to_string(&log).unwrap(), text);
    home.ok(&["task", "list"]);
}

#[test]
fn a_team_of_format_1_loads() {
    let home = TestHome::in_memory(CCB);
    copy(&fixture("team-v1"), &home.dir_of_team("fixers"));
    let before = home.roster("fixers");
    let shown = home.ok(&["team", "show", "fixers"])["team"].clone();
    assert_eq!(shown["description"], "make the test suite pass");
    assert_eq!(shown["members"][1]["state"], "joined");
    // Alice's run exists and has ended, so it is no longer taken for a visitor.
    let run = home.dir_of_team("fixers").join("runs/a0123456789abcdef");
    std::fs::create_dir_all(&run).unwrap();
    let shown = home.ok(&["team", "show", "fixers"])["team"].clone();
    assert_eq!(shown["members"][1]["state"], "away");
    let joined = home.ok(&["team", "join", "fixers", "--as", "carol"]);
    assert_eq!(joined["member"]["color"], "purple", "the fifth");
    home.ok(&["team", "leave", "fixers", "--as", "carol"]);
    let mut now = home.roster("fixers");
    assert_eq!(now["ccb"]["colorsGiven"], 5);
    now["ccb"]["colorsGiven"] = 4.into();
    assert_eq!(now, before);
    home.ok(&["team", "delete", "fixers"]);
}

#[test]
fn a_list_of_worktrees_of_format_1_loads() {
    let repo = harness::TestRepo::new();
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/registry-v1");
    copy(&fixture, &repo.ours());
    let list = repo.trees().list().unwrap();
    let seen: Vec<_> = list
        .iter()
        .map(|e| (e.name.as_str(), e.status.as_str(), e.under_way()))
        .collect();
    let expected = [
        ("fix/auth", "active", None),
        ("half", "active", Some("creating")),
        ("going", "kept", Some("removing")),
        ("gone", "removed", Some("restoring")),
        ("hooked", "active", None),
    ];
    assert_eq!(seen, expected);
    assert_eq!(list[0].task_id.as_deref(), Some("7"));
    assert_eq!(list[3].trash.as_ref().unwrap().id, "gone-3");
    assert!(list[4].hook_based);
    // Nothing is lost when it is written again.
    repo.trees().keep(&harness::slug("fix/auth")).unwrap();
    let text = std::fs::read(repo.ours().join("index.json")).unwrap();
    let mut now: Value = serde_json::from_slice(&text).unwrap();
    now["worktrees"][0]["status"] = "active".into();
    let before = std::fs::read(fixture.join("index.json")).unwrap();
    let mut before: Value = serde_json::from_slice(&before).unwrap();
    // In no particular order.
    now.sort_all_objects();
    before.sort_all_objects();
    assert_eq!(now, before);
}
