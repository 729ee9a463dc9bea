//! Many real processes on one board.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;

use harness::TestHome;
use serde_json::Value;

use crate::CCB;

fn create_many(home: &TestHome, count: usize) {
    let rows: String = (1..=count)
        .map(|n| format!("{{\"subject\":\"task {n}\"}}\n"))
        .collect();
    std::fs::write(home.path().join("rows.jsonl"), rows).unwrap();
    home.ok(&["task", "create", "--from", "rows.jsonl"]);
}

/// 32 workers, each a chain of `ccb task next` processes, over 1,000 tasks.
#[test]
fn every_task_is_claimed_exactly_once() {
    let home = TestHome::new(CCB);
    create_many(&home, 1000);
    let claims: Mutex<BTreeMap<String, Vec<String>>> = Mutex::default();
    std::thread::scope(|scope| {
        for n in 0..32 {
            let (home, claims) = (&home, &claims);
            scope.spawn(move || {
                let worker = format!("w{n}");
                loop {
                    let answer = home.run(&["--json", "task", "next", "--as", &worker]);
                    let json = answer.json();
                    if answer.code == Some(3) {
                        assert_eq!(json["reason"], "nothing_ready");
                        return;
                    }
                    assert_eq!(answer.code, Some(0), "{answer:?}");
                    let id = json["task"]["id"].as_str().unwrap().to_owned();
                    claims
                        .lock()
                        .unwrap()
                        .entry(id)
                        .or_default()
                        .push(worker.clone());
                }
            });
        }
    });
    let claims = claims.into_inner().unwrap();
    assert_eq!(claims.len(), 1000);
    for task in home.tasks_on_disk() {
        let id = task["id"].as_str().unwrap();
        assert_eq!(claims[id], [task["owner"].as_str().unwrap()], "task {id}");
        assert_eq!(task["status"], "in_progress");
    }
}

/// 32 processes create, and some delete, at once: no id is used twice.
#[test]
fn ids_are_never_shared_or_reused() {
    let home = TestHome::new(CCB);
    let given: Mutex<Vec<u64>> = Mutex::default();
    std::thread::scope(|scope| {
        for n in 0..32 {
            let (home, given) = (&home, &given);
            scope.spawn(move || {
                for round in 0..4 {
                    let id = home.create(&format!("task {n}.{round}"));
                    given.lock().unwrap().push(id);
                    if (n + round) % 3 == 0 {
                        home.ok(&["task", "rm", &id.to_string()]);
                    }
                }
            });
        }
    });
    let mut given = given.into_inner().unwrap();
    assert_eq!(
        given.iter().collect::<BTreeSet<_>>().len(),
        128,
        "an id was shared"
    );

    home.ok(&["task", "reset"]);
    assert!(home.tasks_on_disk().is_empty());
    given.push(home.create("after the reset"));
    assert_eq!(
        given.last(),
        given.iter().max(),
        "an id was reused after a reset"
    );

    // Even when all files of ccb are lost, and only the mark is left.
    home.ok(&["task", "reset"]);
    std::fs::remove_dir_all(home.list_dir().join(".ccb")).unwrap();
    given.push(home.create("after the loss"));
    assert_eq!(
        given.last(),
        given.iter().max(),
        "an id was reused after a loss"
    );
}

/// Claims of one task by many processes: one wins, the others learn which one.
#[test]
fn one_of_many_claims_wins() {
    let home = TestHome::new(CCB);
    for round in 1..=8 {
        let id = home.create("contended").to_string();
        let answers: Vec<(Option<i32>, Value)> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..16)
                .map(|n| {
                    let (home, id) = (&home, &id);
                    scope.spawn(move || {
                        let name = format!("a{n}");
                        let args = ["--json", "task", "claim", id, "--as", &name];
                        let answer = home.run(&args);
                        (answer.code, answer.json())
                    })
                })
                .collect();
            threads
                .into_iter()
                .map(|thread| thread.join().unwrap())
                .collect()
        });
        let won: Vec<_> = answers
            .iter()
            .filter(|(code, _)| *code == Some(0))
            .collect();
        assert_eq!(won.len(), 1, "round {round}: {answers:?}");
        for (code, json) in answers.iter().filter(|(code, _)| *code != Some(0)) {
            assert_eq!(*code, Some(4));
            assert_eq!(json["reason"], "already_claimed");
            assert_eq!(json["task"]["owner"], won[0].1["task"]["owner"]);
            assert!(json.get("error").is_none());
        }
    }
}
