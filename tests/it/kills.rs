//! Workers are killed over and over while they claim; every acknowledged claim holds.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::sync::Mutex;

use harness::{Random, TestHome};

use crate::{CCB, CLAIMER};

const WORKERS: u64 = 8;
const KILLS: u64 = 2000;
const TASKS: usize = 6000;

/// At least 2,000 SIGKILLs over 8 workers: no acknowledged claim is lost, no task is
/// acknowledged twice, every file can be read.
#[test]
fn no_acknowledged_claim_is_lost_by_thousands_of_kills() {
    let home = TestHome::in_memory(CCB);
    let rows: String = (1..=TASKS)
        .map(|n| format!("{{\"subject\":\"task {n}\"}}\n"))
        .collect();
    std::fs::write(home.path().join("rows.jsonl"), rows).unwrap();
    home.ok(&["task", "create", "--from", "rows.jsonl"]);

    let acknowledged: Mutex<BTreeMap<u64, Vec<String>>> = Mutex::default();
    std::thread::scope(|scope| {
        for worker in 0..WORKERS {
            let (home, acknowledged) = (&home, &acknowledged);
            scope.spawn(move || {
                let mut random = Random::new(worker);
                for life in 0..KILLS / WORKERS {
                    let agent = format!("w{worker}-{life}");
                    let claims = live(home, &agent, random.below(4));
                    let mut all = acknowledged.lock().unwrap();
                    for id in claims {
                        all.entry(id).or_default().push(agent.clone());
                    }
                }
            });
        }
    });

    let acknowledged = acknowledged.into_inner().unwrap();
    let mut claimed = 0;
    for task in home.tasks_on_disk() {
        let id: u64 = task["id"].as_str().unwrap().parse().unwrap();
        let told = acknowledged.get(&id).cloned().unwrap_or_default();
        assert!(told.len() <= 1, "task {id} was given to {told:?}");
        if let Some(agent) = told.first() {
            assert_eq!(
                task["owner"], **agent,
                "task {id}: an acknowledged claim is lost"
            );
        }
        claimed += usize::from(task["status"] == "in_progress");
    }
    // A worker that was killed between the claim and the answer owns a task it does not know of.
    let untold = claimed - acknowledged.len();
    assert!(untold as u64 <= KILLS, "{untold} claims without a claimer");
    assert_eq!(home.ok(&["doctor"])["findings"], serde_json::json!([]));
    println!(
        "{KILLS} kills, {} acknowledged claims, {untold} more on disk",
        acknowledged.len()
    );
}

/// One life of a worker: killed once it has `enough` tasks. Returns its tasks, including those it
/// printed before it died.
fn live(home: &TestHome, agent: &str, enough: u64) -> Vec<u64> {
    let mut process = Command::new(CLAIMER)
        .arg(home.path())
        .args(["board", agent])
        .stdout(Stdio::piped())
        .spawn()
        .expect("the worker starts");
    let mut lines = BufReader::new(process.stdout.take().expect("piped")).lines();
    let mut claims = Vec::new();
    assert_eq!(lines.next().expect("a line").expect("text"), "ready");
    while (claims.len() as u64) < enough {
        match lines.next().expect("a line").expect("text").parse() {
            Ok(id) => claims.push(id),
            Err(_) => panic!("{TASKS} tasks were not enough for {KILLS} kills"),
        }
    }
    process.kill().expect("it can be killed");
    process.wait().expect("it ends");
    claims.extend(
        lines
            .map_while(Result::ok)
            .filter_map(|line| line.parse::<u64>().ok()),
    );
    claims
}
