//! Edges and ids as another tool writes them: half edges, cycles, its own numbering.

use harness::{ForeignTool, TestHome};
use serde_json::{Map, Value, json};

use crate::CCB;

pub(crate) fn ids(tasks: &Value) -> Vec<&str> {
    tasks
        .as_array()
        .unwrap()
        .iter()
        .map(|task| task["id"].as_str().unwrap())
        .collect()
}

/// A board of `count` tasks as the other tool makes them.
fn foreign_board(count: u64) -> (TestHome, ForeignTool) {
    let home = TestHome::new(CCB);
    let tool = ForeignTool::new(home.list_dir());
    for n in 1..=count {
        assert_eq!(tool.create(&format!("task {n}"), &Map::new()).unwrap(), n);
    }
    (home, tool)
}

pub(crate) fn set(tool: &ForeignTool, id: u64, key: &str, value: Value) {
    assert!(
        tool.update(id, |task| drop(task.insert(key.into(), value)))
            .unwrap()
    );
}

#[test]
fn half_edges_count_and_are_completed() {
    let (home, tool) = foreign_board(4);
    set(&tool, 1, "blocks", json!(["2"]));
    set(&tool, 3, "blockedBy", json!(["1"]));
    let before = home.board_bytes();
    let graph = home.ok(&["task", "graph"]);
    let edges = json!([{"from": "1", "to": "2"}, {"from": "1", "to": "3"}]);
    assert_eq!((&graph["edges"], &graph["halfEdges"]), (&edges, &edges));
    assert_eq!(graph["ready"], json!(["1", "4"]));
    assert_eq!(
        ids(&home.ok(&["task", "list", "--ready"])["tasks"]),
        ["1", "4"]
    );
    let kinds: Vec<Value> = findings(&home);
    assert_eq!(kinds, ["half_edge", "half_edge"]);
    assert_eq!(home.board_bytes(), before, "looking changes nothing");

    home.ok(&["task", "claim", "4"]);
    let tasks = home.tasks_on_disk();
    assert_eq!(tasks[0]["blocks"], json!(["2", "3"]));
    assert_eq!(tasks[1]["blockedBy"], json!(["1"]));
    assert_eq!(tasks[2]["blockedBy"], json!(["1"]));
    for id in ["2", "3"] {
        assert_eq!(
            home.fails(4, &["task", "claim", id])["blockedBy"],
            json!(["1"])
        );
    }
    assert_eq!(findings(&home), Vec::<Value>::new());
}

fn findings(home: &TestHome) -> Vec<Value> {
    let doctor = home.run(&["--json", "doctor"]);
    let json = doctor.json();
    let kinds = json["findings"].as_array().unwrap().iter();
    let kinds: Vec<Value> = kinds.map(|finding| finding["kind"].clone()).collect();
    assert_eq!(
        doctor.code,
        Some(i32::from(!kinds.is_empty())),
        "{doctor:?}"
    );
    kinds
}

#[test]
fn a_half_edge_that_would_close_a_cycle_stays_half() {
    let (home, tool) = foreign_board(2);
    set(&tool, 1, "blocks", json!(["2"]));
    set(&tool, 2, "blockedBy", json!(["1"]));
    set(&tool, 1, "blockedBy", json!(["2"]));
    // A change that repairs what can be repaired.
    home.ok(&["task", "update", "1", "--meta", "touched=true"]);
    let tasks = home.tasks_on_disk();
    assert_eq!(tasks[0]["blockedBy"], json!(["2"]), "it is not taken away");
    assert_eq!(tasks[1]["blocks"], json!([]), "nor made whole");

    let cycle = json!([["1", "2"]]);
    assert_eq!(home.ok(&["task", "list"])["cycles"], cycle);
    let graph = home.ok(&["task", "graph"]);
    assert_eq!(graph["cycles"], cycle);
    assert_eq!(graph["halfEdges"], json!([{"from": "2", "to": "1"}]));
    assert_eq!(findings(&home), ["half_edge", "cycle"]);
    let fixed = home.fails(1, &["doctor", "--fix"]);
    assert_eq!(
        fixed["left"], 2,
        "only a person can say which edge is wrong: {fixed}"
    );
    assert_eq!(home.fails(3, &["task", "next"])["reason"], "cycle");

    home.ok(&["task", "unblock", "2", "1"]);
    assert_eq!(findings(&home), Vec::<Value>::new());
    assert_eq!(home.ok(&["task", "next"])["task"]["id"], "1");
}

#[test]
fn a_whole_cycle_of_the_other_tool_is_reported() {
    let (home, tool) = foreign_board(3);
    for (id, other) in [(1, "2"), (2, "1")] {
        set(&tool, id, "blocks", json!([other]));
        set(&tool, id, "blockedBy", json!([other]));
    }
    set(&tool, 3, "blockedBy", json!(["3"]));
    set(&tool, 3, "blocks", json!(["3"]));
    assert_eq!(
        home.ok(&["task", "list"])["cycles"],
        json!([["1", "2"], ["3"]])
    );
    assert_eq!(findings(&home), ["cycle", "cycle"]);
    assert_eq!(home.fails(3, &["task", "next"])["reason"], "cycle");
    let tree = home.run(&["task", "graph"]);
    assert!(tree.stdout.contains("wait for each other"), "{tree:?}");
    // Work outside the cycle continues, and the cycle can be broken.
    home.create("free");
    assert_eq!(home.ok(&["task", "next"])["task"]["id"], "4");
    home.ok(&["task", "unblock", "1", "2"]);
    home.ok(&["task", "unblock", "3", "3"]);
    assert_eq!(home.ok(&["task", "next"])["task"]["id"], "2");
}

/// Creating a task the way the other tool does leaves the board sound.
#[test]
fn tasks_of_the_other_tool_are_no_damage() {
    let home = TestHome::new(CCB);
    home.create("ours");
    let tool = ForeignTool::new(home.list_dir());
    assert_eq!(tool.create("theirs", &Map::new()).unwrap(), 2);
    assert_eq!(findings(&home), Vec::<Value>::new());
    assert_eq!(home.create("ours again"), 3);
}

/// A task that the other tool deletes is deleted, and its id is not used again.
#[test]
fn ids_the_other_tool_deleted_are_not_reused() {
    let (home, tool) = foreign_board(3);
    tool.delete(3).unwrap();
    assert_eq!(home.create("four"), 4);
    home.ok(&["task", "rm", "4"]);
    assert_eq!(tool.create("five", &Map::new()).unwrap(), 5);
}
