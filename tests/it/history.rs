//! Random calls by many processes at once, checked against a board that does one at a time.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use harness::history::{
    Action, BoardAnswer, BoardCall, BoardSpec, Line, TaskState, calls_of, in_parts, monotonic_now,
};
use harness::linearize::{Call, Verdict, check};
use harness::{Random, TestHome, wait_until};

use crate::{BOARD_WORKER, CCB};

const WORKERS: u64 = 8;
const CALLS: u64 = 150;
const AGENTS_PER_WORKER: u64 = 3;
const PATIENCE: Duration = Duration::from_secs(120);

/// The dependencies: a chain, a task that waits for two, and some that are free. The tasks that
/// `next` prefers have the higher ids, so that taking the lowest id is not the right answer.
const BLOCKED_BY: &[(u64, &[u64])] = &[
    (1, &[]),
    (2, &[]),
    (3, &[7]),
    (4, &[3]),
    (5, &[6, 8]),
    (6, &[]),
    (7, &[]),
    (8, &[]),
];

type BoardHistory = Vec<Call<BoardCall, BoardAnswer>>;

fn spec() -> BoardSpec {
    let edges = BLOCKED_BY.iter().map(|(id, by)| (*id, by.to_vec()));
    BoardSpec {
        blocked_by: edges.collect(),
    }
}

fn create_tasks(home: &TestHome) {
    for (id, _) in BLOCKED_BY {
        assert_eq!(home.create(&format!("task {id}")), *id);
    }
    for (id, blockers) in BLOCKED_BY {
        for blocker in *blockers {
            home.ok(&["task", "block", &blocker.to_string(), &id.to_string()]);
        }
    }
}

/// A worker process that has opened the board and waits for its input to close.
struct Worker {
    process: Child,
    /// The name of its connections to a database.
    name: String,
    output: BufReader<std::process::ChildStdout>,
}

impl Worker {
    fn start(home: &TestHome, number: u64, seed: u64) -> Self {
        let names = (0..AGENTS_PER_WORKER).map(|agent| format!("w{number}-{agent}"));
        let name = format!("history-{number}-{seed:x}");
        let mut process = Command::new(BOARD_WORKER)
            .arg(home.path())
            .arg("board")
            .args([seed, CALLS, BLOCKED_BY.len() as u64].map(|n| n.to_string()))
            .args(names)
            .envs(home.board_url_for(&name).map(|url| ("CCB_BOARD", url)))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the worker starts");
        let mut output = BufReader::new(process.stdout.take().expect("piped"));
        let mut ready = String::new();
        output.read_line(&mut ready).expect("a line");
        assert!(
            matches!(serde_json::from_str(&ready), Ok(Line::Ready)),
            "{ready:?}"
        );
        Self {
            process,
            name,
            output,
        }
    }

    /// Starts it and collects its calls; kills it after `kill_after` lines, if given.
    fn collect(mut self, home: &TestHome, kill_after: Option<u64>) -> BoardHistory {
        drop(self.process.stdin.take());
        let mut lines = Vec::new();
        let mut text = String::new();
        while self.output.read_line(&mut text).expect("output") > 0 {
            if text.ends_with('\n') {
                lines.push(serde_json::from_str(&text).expect("a line of a history"));
            }
            if kill_after == Some(lines.len() as u64) {
                self.process.kill().expect("a signal");
            }
            text.clear();
        }
        let mut status = None;
        wait_until(PATIENCE, "the worker to end", || {
            status = self.process.try_wait().expect("a status");
            status.is_some()
        });
        let clean = status.is_some_and(|status| status.success());
        assert!(clean || kill_after.is_some(), "a worker failed: {status:?}");
        // A server may carry out the last call of a process that is gone.
        home.wait_for_the_last_of(&self.name, PATIENCE);
        calls_of(&lines, monotonic_now())
    }
}

/// The whole board, as calls that come after all others.
fn final_look(home: &TestHome) -> BoardHistory {
    let text = |value: &serde_json::Value| value.as_str().map(str::to_owned);
    let tasks = home.tasks_on_disk();
    let states = tasks.iter().map(|task| {
        let id = text(&task["id"])
            .and_then(|id| id.parse().ok())
            .expect("an id");
        let status = text(&task["status"]).expect("a status");
        let owner = text(&task["owner"]);
        (id, TaskState { status, owner })
    });
    let look = |(id, state)| Call {
        op: BoardCall {
            agent: "the test".into(),
            action: Action::Show(id),
        },
        invoked: monotonic_now(),
        returned: u64::MAX,
        answer: Some(BoardAnswer::Shown(state)),
    };
    states.map(look).collect()
}

fn verify(home: &TestHome, seed: u64, mut history: BoardHistory) {
    history.extend(final_look(home));
    let mut answers: BTreeMap<String, usize> = BTreeMap::new();
    for call in &history {
        let kind = match &call.answer {
            None => "unknown",
            Some(BoardAnswer::Took(_) | BoardAnswer::Chose(_)) => "took",
            Some(BoardAnswer::Done) => "done",
            Some(BoardAnswer::Shown(_)) => "shown",
            Some(BoardAnswer::Refused(kind, _)) => kind,
        };
        *answers.entry(kind.to_owned()).or_default() += 1;
    }
    let calls = history.len();
    // Claims in a database do not wait for each other.
    if home.board_url().is_some() {
        history = in_parts(history);
    }
    match check(&spec(), &history) {
        Verdict::Linearizable { configurations } => println!(
            "seed {seed}: {calls} calls checked ({configurations} configurations): {answers:?}",
        ),
        Verdict::Impossible { why } => panic!("seed {seed}: not linearizable: {why}"),
    }
    // A history without progress would prove nothing.
    for kind in ["took", "done", "already_claimed", "blocked"] {
        assert!(
            answers.contains_key(kind),
            "seed {seed}: no {kind} in {answers:?}"
        );
    }
}

/// `CCB_HISTORY_SEED` repeats the calls of a failed run, though not their timing.
fn seed() -> u64 {
    let given = std::env::var("CCB_HISTORY_SEED").ok();
    given.map_or_else(
        || monotonic_now() % 1_000_000,
        |seed| seed.parse().expect("a number"),
    )
}

#[test]
fn concurrent_calls_have_a_sequential_explanation() {
    let home = TestHome::in_memory(CCB);
    create_tasks(&home);
    let seed = seed();
    let mut random = Random::new(seed);
    let workers: Vec<Worker> = (0..WORKERS)
        .map(|n| Worker::start(&home, n, random.number()))
        .collect();
    let history = std::thread::scope(|scope| {
        let home = &home;
        let collect = |worker: Worker| scope.spawn(|| worker.collect(home, None));
        let threads: Vec<_> = workers.into_iter().map(collect).collect();
        let join = |thread: std::thread::ScopedJoinHandle<'_, BoardHistory>| {
            thread
                .join()
                .unwrap_or_else(|_| panic!("seed {seed}: a worker failed"))
        };
        threads.into_iter().flat_map(join).collect::<BoardHistory>()
    });
    assert_eq!(history.len() as u64, WORKERS * CALLS, "seed {seed}");
    verify(&home, seed, history);
}

#[test]
fn killed_workers_leave_no_half_done_calls() {
    let home = TestHome::in_memory(CCB);
    create_tasks(&home);
    let seed = seed();
    let mut random = Random::new(seed);
    // Three workers live, the others are killed at a random point and replaced by one with
    // the same agents, several times over.
    let plans: Vec<Vec<Option<u64>>> = (0..WORKERS)
        .map(|n| {
            let kills = if n < 3 { 0 } else { 3 };
            let mut plan: Vec<Option<u64>> =
                (0..kills).map(|_| Some(1 + random.below(CALLS))).collect();
            plan.push(None);
            plan
        })
        .collect();
    let workers: Vec<Worker> = (0..WORKERS)
        .map(|n| Worker::start(&home, n, random.number()))
        .collect();
    let history = std::thread::scope(|scope| {
        let home = &home;
        let threads: Vec<_> = (0..)
            .zip(workers)
            .zip(plans)
            .map(|((n, first), plan)| {
                let mut random = Random::new(random.number());
                scope.spawn(move || {
                    let mut history = BoardHistory::new();
                    let mut worker = Some(first);
                    for kill_after in plan {
                        let current = worker
                            .take()
                            .unwrap_or_else(|| Worker::start(home, n, random.number()));
                        history.extend(current.collect(home, kill_after));
                    }
                    history
                })
            })
            .collect();
        let join = |thread: std::thread::ScopedJoinHandle<'_, BoardHistory>| {
            thread
                .join()
                .unwrap_or_else(|_| panic!("seed {seed}: a worker failed"))
        };
        threads.into_iter().flat_map(join).collect::<BoardHistory>()
    });
    let unanswered = history.iter().filter(|call| call.answer.is_none()).count();
    assert!(
        unanswered > 0,
        "seed {seed}: no worker was killed in a call"
    );
    verify(&home, seed, history);
    let doctor = home.ok(&["doctor"]);
    assert_eq!(doctor["findings"], serde_json::json!([]), "seed {seed}");
}
