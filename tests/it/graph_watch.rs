//! `graph` in all its forms, and `watch`.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use harness::TestHome;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::CCB;

/// 1 → 2 → 4, 1 → 3, and 5 by itself; 1 is completed.
fn board() -> TestHome {
    let home = TestHome::new(CCB);
    for subject in ["one", "two \"quoted\"", "three", "four", "five"] {
        home.create(subject);
    }
    for (blocker, dependent) in [("1", "2"), ("1", "3"), ("2", "4")] {
        home.ok(&["task", "block", blocker, dependent]);
    }
    home.ok(&["task", "done", "1"]);
    home.ok(&["task", "claim", "3", "--as", "ann"]);
    home
}

#[test]
fn the_graph_as_json() {
    let home = board();
    let graph = home.ok(&["task", "graph"]);
    let keys: Vec<&String> = graph.as_object().unwrap().keys().collect();
    assert_eq!(keys[..4], ["nodes", "edges", "levels", "criticalPath"]);
    let edge = |from: &str, to: &str| json!({"from": from, "to": to});
    assert_eq!(
        graph["edges"],
        json!([edge("1", "2"), edge("1", "3"), edge("2", "4")])
    );
    assert_eq!(graph["levels"], json!([["1", "5"], ["2", "3"], ["4"]]));
    assert_eq!(
        graph["criticalPath"],
        json!(["2", "4"]),
        "what is done is not on it"
    );
    assert_eq!(graph["ready"], json!(["2", "5"]));
    let node = &graph["nodes"][3];
    assert_eq!(
        (&node["id"], &node["blockedBy"]),
        (&json!("4"), &json!(["2"]))
    );
    let explicit = home.run(&["task", "graph", "--format", "json"]);
    assert_eq!(explicit.json(), graph);
}

#[test]
fn the_graph_as_a_tree() {
    let text = board().run(&["task", "graph"]).stdout;
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], "⚠ 1 one", "no check proved it");
    assert_eq!(lines[1], "├─ ○ 2 two \"quoted\"");
    assert_eq!(lines[2], "│  └─ ◌ 4 four");
    assert_eq!(lines[3], "└─ ● 3 three @ann");
    assert_eq!(lines[4], "○ 5 five");
    assert!(text.contains("longest chain left: 2 → 4"), "{text}");
    let empty = TestHome::new(CCB).run(&["task", "graph", "--format", "tree"]);
    assert_eq!((empty.code, empty.stdout.as_str()), (Some(0), "no tasks\n"));
}

#[test]
fn the_graph_for_other_programs() {
    let home = board();
    let dot = home.run(&["task", "graph", "--format", "dot"]).stdout;
    assert!(
        dot.starts_with("digraph tasks {") && dot.trim_end().ends_with('}'),
        "{dot}"
    );
    assert!(
        dot.contains("t1 -> t2;") && dot.contains("two \\\"quoted\\\""),
        "{dot}"
    );
    let mermaid = home.run(&["task", "graph", "--format", "mermaid"]).stdout;
    assert!(mermaid.starts_with("graph LR\n"), "{mermaid}");
    assert!(
        mermaid.contains("t2 --> t4") && mermaid.contains("two #34;quoted#34;"),
        "{mermaid}"
    );
    let wrong = home.fails(2, &["task", "graph", "--format", "svg"]);
    assert!(
        wrong["error"]["message"]
            .as_str()
            .unwrap()
            .contains("mermaid"),
        "{wrong}"
    );
}

fn watch(home: &TestHome, args: &[&str]) -> Vec<Value> {
    let answer = home.run(&[&["--json", "task", "watch"], args].concat());
    assert_eq!(answer.code, Some(0), "{args:?}: {answer:?}");
    answer.json_lines()
}

#[test]
fn watch_numbers_every_change() {
    let home = board();
    let lines = watch(&home, &["--since", "0", "--no-follow"]);
    let (end, changes) = lines.split_last().unwrap();
    assert_eq!(end, &json!({"event": "end", "seq": changes.len()}));
    for (line, seq) in changes.iter().zip(1..) {
        let keys: Vec<&String> = line.as_object().unwrap().keys().collect();
        assert_eq!(keys, ["seq", "ts", "op", "id", "task"]);
        assert_eq!(line["seq"], seq, "no gaps");
        assert_eq!(line["task"]["id"], line["id"]);
    }
    let last = changes.last().unwrap();
    assert_eq!((&last["op"], &last["id"]), (&json!("claim"), &json!("3")));
    assert_eq!(last["task"], home.tasks_on_disk()[2]);
    home.ok(&["task", "rm", "5"]);
    let seq = changes.len().to_string();
    let more = watch(&home, &["--since", &seq, "--no-follow"]);
    assert_eq!(
        (&more[0]["op"], &more[0]["task"]),
        (&json!("delete"), &Value::Null)
    );
    assert_eq!(more.len(), 2, "only what came after");
    assert_eq!(watch(&home, &["--since", "0", "--count", "2"]).len(), 3);
    assert_eq!(
        watch(&home, &["--no-follow"]).len(),
        1,
        "from now on, and now is over"
    );
    let ahead = home.run(&["--json", "task", "watch", "--since", "999", "--no-follow"]);
    assert_eq!(ahead.code, Some(2), "{ahead:?}");
}

/// It shows changes as they come, and ends properly when it is stopped.
#[test]
fn watch_follows_until_it_is_stopped() {
    for (signal, code) in [(Signal::TERM, 143), (Signal::INT, 130)] {
        let home = TestHome::new(CCB);
        let first = home.create("before");
        let mut child = home
            .command(&["--json", "task", "watch", "--since", "0"])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut next =
            || -> Value { serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap() };
        assert_eq!(next()["id"], first.to_string());
        let second = home.create("while it watches");
        let line = next();
        assert_eq!(
            (&line["seq"], &line["id"]),
            (&json!(2), &json!(second.to_string()))
        );
        kill_process(Pid::from_child(&child), signal).unwrap();
        assert_eq!(next(), json!({"event": "end", "seq": 2}));
        assert_eq!(child.wait().unwrap().code(), Some(code));
    }
}
