//! Tasks that fail: what is kept of them, and what people read about them.

use harness::Fan;
use serde_json::{Value, json};

use crate::CCB;

#[test]
fn of_many_failed_tasks_few_keep_their_worktrees_and_all_keep_their_work() {
    let fan = Fan::new(CCB);
    let task = |n: usize| {
        let run = match n {
            // Its work is not even committed.
            5 => "echo 5 > out-5; exit 3".to_owned(),
            n => format!("echo {n} > out-{n}"),
        };
        json!({"id": format!("t{n}"), "run": run, "verify": "false"})
    };
    let plan = |keep: usize| {
        let tasks: Vec<Value> = (0..6).map(task).collect();
        fan.plan(
            &json!({"name": "red", "keepFailed": keep, "defaults": {"retries": 0}, "tasks": tasks}),
        );
    };
    plan(2);
    let (code, report) = fan.run(&[]);
    assert_eq!(code, Some(1), "{report}");
    let trees = || fan.git(&["worktree", "list"]).lines().count() - 1;
    assert_eq!(trees(), 2, "{}", fan.git(&["worktree", "list"]));
    let notes = report["notes"].to_string();
    assert!(notes.contains("4 failed tasks"), "{notes}");
    assert!(notes.contains("keepFailed"), "{notes}");
    let refs = || {
        let format = "--format=%(refname)";
        fan.git(&["for-each-ref", format, "refs/ccb/fanout/failed"])
    };
    assert_eq!(refs().lines().count(), 4, "{}", refs());
    for n in 0..6 {
        let patch = fan.read(&format!("t{n}.patch"));
        assert!(patch.contains(&format!("+++ b/out-{n}")), "{patch}");
    }
    let name = refs()
        .lines()
        .find(|name| name.ends_with("/t5"))
        .unwrap()
        .to_owned();
    assert_eq!(fan.git(&["show", &format!("{name}:out-5")]), "5");
    // They run again, and this time all of them may stay.
    plan(100);
    let (_, report) = fan.run(&[]);
    assert!(
        !report["notes"].to_string().contains("failed tasks"),
        "{report}"
    );
    assert_eq!(refs(), "");
    assert_eq!(trees(), 8, "{}", fan.git(&["worktree", "list"]));
}
