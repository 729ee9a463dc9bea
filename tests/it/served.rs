//! Processes take tasks for each other. A process that serves others may die at any moment; the
//! others get the tasks it took for them, and none they do not know of.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use harness::{Random, TestHome, wait_until};
use store::lock::{DEFAULT_TIMEOUT, FileLock};

use crate::{CCB, CLAIMER};

/// Points that are passed only on behalf of another process.
pub const POINTS: &[&str] = &["serve.taking"];

const DEADLINE: Duration = Duration::from_secs(60);
const TASKS: usize = 250;
const HEALTHY: usize = 3;
const DYING: usize = 3;

#[test]
fn whoever_serves_others_may_die_at_it() {
    let mut random = Random::new(7);
    for sync in ["relaxed", "durable"] {
        for point in ["serve.logged", "publish.replaced", "section.committed"] {
            let seed = random.below(u64::MAX);
            let crashes = crowd(sync, point, seed);
            println!("{sync}, {point}: {crashes} crashes");
        }
    }
}

/// The same one step at a time: a worker asks while the list is locked, and the next one to get the
/// lock dies while it gives it a task.
#[test]
fn a_task_from_a_process_that_died_is_known_to_its_owner_or_free() {
    // The second task that is put in its place is the other one's.
    let deaths = [
        ("serve.taking", 1),
        ("publish.replaced", 2),
        ("section.committed", 1),
        ("serve.logged", 1),
    ];
    for (point, nth) in deaths {
        let home = TestHome::in_memory(CCB);
        (1..=6).for_each(|n| _ = home.create(&format!("task {n}")));
        let mut worker = Command::new(CLAIMER)
            .arg(home.path())
            .args(["board", "worker", "relaxed", "stepwise"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the worker starts");
        let mut steps = worker.stdin.take().expect("piped");
        let mut lines = BufReader::new(worker.stdout.take().expect("piped")).lines();
        let mut line = || lines.next().expect("a line").expect("text");
        assert_eq!(line(), "ready");
        writeln!(steps).expect("it listens");
        let mut told = vec![line()];

        let lock = home.list_dir().join(".lock");
        let held = FileLock::exclusive(&lock, "the list", DEFAULT_TIMEOUT).unwrap();
        let mut dying = Command::new(CLAIMER)
            .arg(home.path())
            .args(["board", "dying", "relaxed"])
            .env("CCB_FAULT", format!("crash:{point}:{nth}"))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("it starts");
        let pid = format!(" {} ", dying.id());
        let waits = |line: &str| line.contains("-> FLOCK") && line.contains(&pid);
        wait_until(DEADLINE, "the next one to wait for the lock", || {
            let locks = std::fs::read_to_string("/proc/locks").unwrap();
            locks.lines().any(waits)
        });
        writeln!(steps).expect("it listens");
        let slots = home.list_dir().join(".ccb/slots");
        wait_until(DEADLINE, "the worker to ask", || {
            std::fs::read_to_string(&slots).is_ok_and(|text| text.contains("\na0"))
        });
        drop(held);
        let died = dying.wait().expect("it ends").signal().is_some();
        assert!(died, "it was to die at {point}");
        told.push(line());
        drop(steps);
        told.extend(
            lines
                .map_while(Result::ok)
                .filter(|line| line != "nothing left"),
        );
        worker.wait().expect("it ends");

        let tasks = home.tasks_on_disk();
        let its = tasks.iter().filter(|task| task["owner"] == "worker");
        let its: BTreeSet<&str> = its.map(|task| task["id"].as_str().unwrap()).collect();
        assert_eq!(told.len(), its.len(), "{point}: {told:?}, {its:?}");
        assert_eq!(
            told.iter().map(String::as_str).collect::<BTreeSet<_>>(),
            its,
            "{point}"
        );
        let dead = tasks.iter().filter(|task| task["owner"] == "dying").count();
        assert_eq!(dead, 1, "{point}");
    }
}

/// Runs a crowd on one board; returns how many processes died at their point.
fn crowd(sync: &str, point: &str, seed: u64) -> usize {
    let home = TestHome::in_memory(CCB);
    let rows: String = (1..=TASKS)
        .map(|n| format!("{{\"subject\":\"task {n}\"}}\n"))
        .collect();
    std::fs::write(home.path().join("rows.jsonl"), rows).unwrap();
    home.ok(&["task", "create", "--from", "rows.jsonl"]);

    let crashes = AtomicUsize::new(0);
    let told: Vec<(String, Vec<u64>)> = std::thread::scope(|scope| {
        let (home, crashes) = (&home, &crashes);
        let healthy: Vec<_> = (0..HEALTHY)
            .map(|n| {
                scope.spawn(move || {
                    let agent = format!("healthy-{n}");
                    let (claims, died) = live(home, &agent, sync, None);
                    assert!(!died, "{agent} died");
                    (agent, claims)
                })
            })
            .collect();
        let dying: Vec<_> = (0..DYING as u64)
            .map(|n| {
                scope.spawn(move || {
                    let mut random = Random::new(seed ^ n);
                    let mut told = Vec::new();
                    for life in 0.. {
                        let agent = format!("dying-{n}-{life}");
                        let fault = format!("crash:{point}:{}", 1 + random.below(6));
                        let (claims, died) = live(home, &agent, sync, Some(&fault));
                        told.push((agent, claims));
                        if !died {
                            break;
                        }
                        crashes.fetch_add(1, Ordering::Relaxed);
                    }
                    told
                })
            })
            .collect();
        let healthy = healthy.into_iter().map(|thread| thread.join().unwrap());
        let mut all: Vec<_> = healthy.collect();
        all.extend(dying.into_iter().flat_map(|thread| thread.join().unwrap()));
        all
    });

    let mut owned: BTreeMap<String, BTreeSet<u64>> = BTreeMap::new();
    for task in home.tasks_on_disk() {
        let id = task["id"].as_str().unwrap().parse().unwrap();
        let owner = task["owner"].as_str().unwrap_or_default().to_owned();
        owned.entry(owner).or_default().insert(id);
    }
    assert!(!owned.contains_key(""), "{sync}, {point}: tasks are left");
    for (agent, claims) in told {
        let at = format!("{sync}, {point}, seed {seed}: {agent}");
        let told: BTreeSet<u64> = claims.iter().copied().collect();
        assert_eq!(told.len(), claims.len(), "{at} was given a task twice");
        let owns = owned.remove(&agent).unwrap_or_default();
        if agent.starts_with("healthy") {
            assert_eq!(told, owns, "{at}: what it was told, what it owns");
        } else {
            assert!(told.is_subset(&owns), "{at}: an acknowledged claim is lost");
            assert!(
                owns.len() <= told.len() + 1,
                "{at}: tasks it never asked for"
            );
        }
    }
    assert_eq!(home.ok(&["doctor"])["findings"], serde_json::json!([]));
    crashes.into_inner()
}

/// One process that claims until nothing is left, or until it dies; returns its tasks, and true if
/// it died.
fn live(home: &TestHome, agent: &str, sync: &str, fault: Option<&str>) -> (Vec<u64>, bool) {
    let mut command = Command::new(CLAIMER);
    command.arg(home.path()).args(["board", agent, sync]);
    if let Some(fault) = fault {
        command.env("CCB_FAULT", fault);
    }
    let mut process = command
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("the worker starts");
    let lines = BufReader::new(process.stdout.take().expect("piped")).lines();
    let claims = lines
        .map_while(Result::ok)
        .filter_map(|line| line.parse().ok())
        .collect();
    let status = process.wait().expect("it ends");
    (claims, status.signal().is_some())
}
