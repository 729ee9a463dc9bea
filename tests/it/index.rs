//! The index is a convenience: whatever happens to it, the files decide.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use harness::TestHome;
use harness::sample::Sample;
use serde_json::{Value, json};

use crate::CCB;

const TASKS: u64 = 80;

/// A board large enough for its index to be on disk: a chain of three, and many free tasks.
fn board() -> TestHome {
    let home = TestHome::in_memory(CCB);
    let text = "x".repeat(4000);
    let rows: Vec<String> = (1..=TASKS)
        .map(|n| {
            let after: Vec<String> = [2, 3]
                .contains(&n)
                .then(|| format!("k{}", n - 1))
                .into_iter()
                .collect();
            json!({"key": format!("k{n}"), "subject": format!("task {n}"), "description": text,
                "blockedBy": after})
            .to_string()
        })
        .collect();
    std::fs::write(home.path().join("rows.jsonl"), rows.join("\n")).unwrap();
    home.ok(&["task", "create", "--from", "rows.jsonl"]);
    assert!(
        ours(&home, "index").exists(),
        "the board is too small for this test"
    );
    home
}

fn ours(home: &TestHome, name: &str) -> PathBuf {
    home.list_dir().join(".ccb").join(name)
}

/// Claims and completes everything, and checks that every task was assigned once and no dependent
/// before its blocker.
fn work_off(home: &TestHome, at: &str) {
    let left: Vec<Value> = home
        .tasks_on_disk()
        .into_iter()
        .filter(|task| task["status"] == "pending")
        .collect();
    let mut given: BTreeMap<String, usize> = BTreeMap::new();
    loop {
        let answer = home.run(&["--json", "task", "next", "--as", "w"]);
        let json = answer.json();
        if answer.code == Some(3) {
            assert_eq!(json["reason"], "all_done", "{at}");
            break;
        }
        assert_eq!(answer.code, Some(0), "{at}: {answer:?}");
        let id = json["task"]["id"].as_str().unwrap().to_owned();
        home.ok(&["task", "done", &id, "--as", "w"]);
        *given.entry(id).or_default() += 1;
    }
    assert_eq!(given.len(), left.len(), "{at}");
    assert!(given.values().all(|count| *count == 1), "{at}: {given:?}");
}

/// The numbers of all changes, which must have no gaps.
fn last_change(home: &TestHome, at: &str) -> u64 {
    let answer = home.run(&["--json", "task", "watch", "--since", "0", "--no-follow"]);
    let lines = answer.json_lines();
    let numbers: Vec<u64> = lines
        .iter()
        .filter_map(|line| line["seq"].as_u64())
        .collect();
    let changes = &numbers[..numbers.len() - 1];
    assert!(
        changes.windows(2).all(|pair| pair[0] + 1 == pair[1]),
        "{at}: {changes:?}"
    );
    changes.last().copied().unwrap_or(0)
}

fn cut(path: &Path, len: usize) {
    let bytes = std::fs::read(path).unwrap();
    std::fs::write(path, &bytes[..len.min(bytes.len())]).unwrap();
}

#[test]
fn a_lost_or_damaged_index_costs_nothing_but_time() {
    let template = board();
    type Damage = fn(&TestHome);
    let damages: &[(&str, Damage)] = &[
        ("deleted", |home| {
            std::fs::remove_file(ours(home, "index")).unwrap()
        }),
        ("cut off", |home| cut(&ours(home, "index"), 1000)),
        ("empty", |home| cut(&ours(home, "index"), 0)),
        ("another version", |home| {
            let mut bytes = std::fs::read(ours(home, "index")).unwrap();
            bytes[8] += 1;
            std::fs::write(ours(home, "index"), bytes).unwrap();
        }),
        ("one wrong byte", |home| {
            let mut bytes = std::fs::read(ours(home, "index")).unwrap();
            let middle = bytes.len() / 2;
            bytes[middle] ^= 1;
            std::fs::write(ours(home, "index"), bytes).unwrap();
        }),
        ("slots deleted", |home| {
            std::fs::remove_file(ours(home, "slots")).unwrap()
        }),
        ("slots of garbage", |home| {
            std::fs::write(ours(home, "slots"), "7\n".repeat(3000)).unwrap();
        }),
    ];
    let sample = Sample::one_in(3);
    for (name, damage) in damages.iter().filter(|(name, _)| sample.takes(name)) {
        let home = template.copy();
        let before = last_change(&home, name);
        damage(&home);
        // Nothing changed, so nothing is news.
        assert_eq!(last_change(&home, name), before, "{name}: invented changes");
        work_off(&home, name);
        assert_eq!(last_change(&home, name), before + 2 * TASKS, "{name}");
    }
}

#[test]
fn an_index_older_than_the_files_is_brought_up_to_date() {
    let home = board();
    let old = std::fs::read(ours(&home, "index")).unwrap();
    for n in 10..40_u64 {
        home.ok(&["task", "done", &n.to_string()]);
    }
    home.ok(&["task", "rm", "50"]);
    let before = last_change(&home, "old index");
    std::fs::write(ours(&home, "index"), old).unwrap();
    assert_eq!(last_change(&home, "old index"), before);
    work_off(&home, "old index");
}

#[test]
fn a_lost_history_is_begun_anew_and_no_task_is_lost() {
    let template = board();
    type Damage = fn(&TestHome);
    let damages: &[(&str, Damage)] = &[
        ("log deleted", |home| {
            std::fs::remove_file(ours(home, "log.jsonl")).unwrap()
        }),
        ("log cut in a line", |home| {
            cut(&ours(home, "log.jsonl"), 100_001)
        }),
        ("log of garbage", |home| {
            std::fs::write(ours(home, "log.jsonl"), "garbage\n{}\n\0\0\n").unwrap();
        }),
        ("log and index deleted", |home| {
            std::fs::remove_file(ours(home, "log.jsonl")).unwrap();
            std::fs::remove_file(ours(home, "index")).unwrap();
        }),
        ("all of ours deleted", |home| {
            std::fs::remove_dir_all(ours(home, "")).unwrap()
        }),
    ];
    for (name, damage) in damages {
        let home = template.copy();
        damage(&home);
        assert_eq!(
            home.create("one more"),
            TASKS + 1,
            "{name}: an id was reused"
        );
        work_off(&home, name);
        let listed = home.ok(&["task", "list"]);
        assert_eq!(
            listed["tasks"].as_array().unwrap().len() as u64,
            TASKS + 1,
            "{name}"
        );
    }
}

/// Changes a task's file in place, as an editor without locks does.
fn edit(home: &TestHome, id: u64, change: impl Fn(&mut Value)) {
    let path = home.task_file(id);
    let mut task: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    change(&mut task);
    std::fs::write(&path, format!("{task:#}")).unwrap();
}

#[test]
fn hand_edits_between_two_claims_are_respected() {
    let home = board();
    let next = |at: &str| {
        let answer = home.ok(&["task", "next", "--as", "w"]);
        answer["task"]["id"]
            .as_str()
            .unwrap_or_else(|| panic!("{at}: {answer}"))
            .to_owned()
    };
    assert_eq!(next("the longest chain first"), "1");
    // A person takes 4 and completes 5 with an editor; 6 is deleted, 7 is damaged.
    edit(&home, 4, |task| {
        task["owner"] = "hand".into();
        task["status"] = "in_progress".into();
    });
    edit(&home, 5, |task| task["status"] = "completed".into());
    std::fs::remove_file(home.task_file(6)).unwrap();
    std::fs::write(home.task_file(7), "{").unwrap();
    assert_eq!(next("what is left"), "8");
    let refused = home.fails(4, &["task", "claim", "4", "--as", "w"]);
    assert_eq!(refused["reason"], "already_claimed");

    // 2 waits for 1; completing 1 by hand is enough.
    edit(&home, 1, |task| task["status"] = "completed".into());
    let claimed = home.ok(&["task", "claim", "2", "--as", "w"]);
    assert_eq!(claimed["claimed"], true);
    // And 3 for 2; reopening 1 by hand blocks nothing that has started.
    edit(&home, 2, |task| task["status"] = "completed".into());
    for id in (9..=TASKS).filter(|id| ![6, 7].contains(id)) {
        edit(&home, id, |task| task["status"] = "completed".into());
    }
    assert_eq!(next("found before saying that nothing is ready"), "3");
}

#[test]
fn a_process_that_died_at_a_claim_holds_nobody_up() {
    let home = board();
    for point in ["stage.opened:1", "stage.synced:1"] {
        let fault = format!("crash:{point}");
        let died = home
            .command(&["task", "next", "--as", "gone"])
            .env("CCB_FAULT", &fault)
            .output();
        assert_eq!(died.unwrap().status.code(), None, "{point}: it did not die");
        // It had announced the best task; as it is dead, that means nothing.
        let answer = home.ok(&["task", "next", "--as", "w"]);
        assert_eq!(answer["task"]["id"], "1", "{point}");
        home.ok(&["task", "release", "1", "--as", "w"]);
    }
}
