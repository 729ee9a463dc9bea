//! Another tool, which locks with directories and writes in place, on the same list.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use harness::{ForeignTool, TestHome, make_stale, set_mtime, wait_until};
use serde_json::{Value, json};
use store::clock::{Clock, SystemClock};

use crate::{CCB, FOREIGN_TOOL};

/// Starts the other tool; its stdin and stdout are the test's.
pub(crate) fn foreign(home: &TestHome, args: &[&str]) -> Child {
    Command::new(FOREIGN_TOOL)
        .arg(home.list_dir())
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Starts the other tool and waits until it prints `word`.
pub(crate) fn foreign_at(home: &TestHome, args: &[&str], word: &str) -> Child {
    let mut child = foreign(home, args);
    let mut line = String::new();
    let stdout = child.stdout.take().unwrap();
    BufReader::new(stdout).read_line(&mut line).unwrap();
    assert_eq!(line.trim(), word);
    child
}

const SHARED: [u64; 3] = [1, 2, 3];
const FOREIGN_ROUNDS: u64 = 30;
const CCB_ROUNDS: u64 = 12;

#[test]
fn nothing_is_lost_when_both_tools_hammer_one_list() {
    let home = TestHome::new(CCB);
    for id in SHARED {
        assert_eq!(home.create(&format!("shared {id}")), id);
    }
    let names = ["f0", "f1", "f2"];
    let (foreign_ids, ccb_ids) = std::thread::scope(|scope| {
        let home = &home;
        let foreign: Vec<_> = names
            .map(|name| scope.spawn(move || foreign_worker(home, name)))
            .into_iter()
            .collect();
        let ours: Vec<_> = (0..3)
            .map(|n| scope.spawn(move || ccb_worker(home, n)))
            .collect();
        let foreign: Vec<(Vec<u64>, Vec<u64>)> = foreign
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .collect();
        let ours: Vec<Vec<u64>> = ours
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .collect();
        (foreign, ours)
    });

    let created = foreign_ids.iter().flat_map(|(created, _)| created);
    let created: Vec<u64> = created.chain(ccb_ids.iter().flatten()).copied().collect();
    let distinct: BTreeSet<u64> = created.iter().copied().collect();
    assert_eq!(
        distinct.len(),
        created.len(),
        "an id was given out twice: {created:?}"
    );
    let mut left = distinct;
    for id in foreign_ids.iter().flat_map(|(_, deleted)| deleted) {
        left.remove(id);
    }
    left.extend(SHARED);
    let tasks = home.tasks_on_disk();
    let on_disk: BTreeSet<u64> = tasks.iter().map(number).collect();
    assert_eq!(on_disk, left, "a task was lost or came back");
    home.check_task_files("after both tools");

    for task in &tasks {
        for other in task["blockedBy"].as_array().unwrap() {
            let blocker = tasks.iter().find(|task| task["id"] == *other).unwrap();
            assert!(
                blocker["blocks"].as_array().unwrap().contains(&task["id"]),
                "half an edge: {task} {blocker}"
            );
        }
        if let Some(creator) = task.get("foreignCreator") {
            assert!(
                task["metadata"]["foreignRound"].is_u64(),
                "{creator}: {task}"
            );
        }
    }
    for shared in &tasks[..SHARED.len()] {
        check_shared(shared, &names, &ccb_ids);
    }
    assert_eq!(home.lock_dirs(), Vec::<String>::new());
    assert_eq!(home.temporaries(), Vec::<String>::new());
    assert_eq!(home.ok(&["doctor"])["findings"], json!([]));
}

/// No write to a shared task was overwritten.
fn check_shared(task: &Value, names: &[&str], ccb_ids: &[Vec<u64>]) {
    let meta = &task["metadata"];
    assert_eq!(meta["total"], FOREIGN_ROUNDS * names.len() as u64, "{task}");
    let mut trail: Vec<&str> = meta["trail"]
        .as_array()
        .unwrap()
        .iter()
        .map(|step| step.as_str().unwrap())
        .collect();
    trail.sort_unstable();
    let mut expected = Vec::new();
    for name in names {
        assert_eq!(meta[format!("count-{name}")], FOREIGN_ROUNDS, "{task}");
        let last = json!({"round": FOREIGN_ROUNDS - 1, "half": 0.5});
        assert_eq!(task[format!("foreign-{name}")], last, "{task}");
        expected.extend((0..FOREIGN_ROUNDS).map(|round| format!("{name}:{round}")));
    }
    expected.sort_unstable();
    assert_eq!(trail, expected);
    for (n, created) in ccb_ids.iter().enumerate() {
        assert_eq!(meta[format!("ccb{n}")], CCB_ROUNDS - 1, "{task}");
        let blocks = task["blocks"].as_array().unwrap();
        let (last, earlier) = created.split_last().unwrap();
        assert!(blocks.contains(&json!(last.to_string())), "{task}");
        for id in earlier {
            assert!(
                !blocks.contains(&json!(id.to_string())),
                "{id} was unblocked: {task}"
            );
        }
    }
    assert_eq!(task["status"], "pending");
    assert_eq!(task.get("owner"), None);
}

/// Returns the ids it created and the ids it deleted.
fn foreign_worker(home: &TestHome, name: &str) -> (Vec<u64>, Vec<u64>) {
    let rounds = FOREIGN_ROUNDS.to_string();
    let mut args = vec!["hammer", name, &rounds];
    let ids = SHARED.map(|id| id.to_string());
    args.extend(ids.iter().map(String::as_str));
    let output = foreign(home, &args).wait_with_output().unwrap();
    assert!(output.status.success(), "{name} failed: {output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    let ids = |verb: &str| {
        text.lines()
            .filter_map(|line| line.strip_prefix(verb)?.trim().parse().ok())
            .collect()
    };
    (ids("created"), ids("deleted"))
}

/// Claims, annotates and releases the shared tasks, and makes tasks that wait for them.
fn ccb_worker(home: &TestHome, n: u64) -> Vec<u64> {
    let me = format!("c{n}");
    let mut created = Vec::new();
    for round in 0..CCB_ROUNDS {
        let new = home.create(&format!("{me} {round}"));
        for id in SHARED.map(|id| id.to_string()) {
            let note = format!("ccb{n}={round}");
            home.ok(&["task", "update", &id, "--meta", &note]);
            home.ok(&["task", "block", &id, &new.to_string()]);
            if round + 1 < CCB_ROUNDS {
                home.ok(&["task", "unblock", &id, &new.to_string()]);
            }
        }
        let id = SHARED[((n + round) % 3) as usize].to_string();
        let answer = home.run(&["--json", "task", "claim", &id, "--as", &me]);
        if answer.code == Some(0) {
            assert_eq!(home.ok(&["task", "show", &id])["task"]["owner"], *me);
            home.ok(&["task", "release", &id, "--as", &me]);
        } else {
            assert_eq!(answer.json()["reason"], "already_claimed", "{answer:?}");
        }
        created.push(new);
    }
    created
}

fn number(task: &Value) -> u64 {
    task["id"].as_str().unwrap().parse().unwrap()
}

/// A killed holder of one task's lock stops work on that task for ten seconds, on no other.
#[test]
fn a_killed_holder_delays_only_its_own_task() {
    let home = TestHome::new(CCB);
    home.create("locked");
    home.create("free");
    let mut holder = foreign_at(&home, &["hold", "1"], "held");
    holder.kill().unwrap();
    holder.wait().unwrap();
    let lock = home.list_dir().join("1.json.lock");
    assert!(lock.is_dir(), "a killed process cannot clean up");

    let mut waiting = home
        .command(&["--json", "task", "claim", "1", "--as", "a"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let started = Instant::now();
    home.ok(&["task", "claim", "2", "--as", "b"]);
    home.ok(&["task", "update", "2", "--meta", "tries=1"]);
    home.ok(&["task", "done", "2", "--as", "b"]);
    home.create("another");
    assert!(
        started.elapsed() < Duration::from_secs(5),
        "{:?}",
        started.elapsed()
    );
    assert!(
        waiting.try_wait().unwrap().is_none(),
        "it must not take a fresh lock"
    );
    assert_eq!(home.ok(&["task", "show", "1"])["task"]["status"], "pending");

    // As if ten seconds had passed.
    make_stale(&lock);
    wait_until(Duration::from_secs(5), "the takeover", || {
        waiting.try_wait().unwrap().is_some()
    });
    let output = waiting.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert_eq!(home.ok(&["task", "show", "1"])["task"]["owner"], "a");
    assert_eq!(home.lock_dirs(), Vec::<String>::new());
}

/// The other tool's first lock has a time in the future, which is as fresh as it gets.
#[test]
fn a_lock_from_the_future_is_not_stale() {
    let home = TestHome::new(CCB);
    home.create("locked");
    let lock = home.list_dir().join("1.json.lock");
    std::fs::create_dir(&lock).unwrap();
    set_mtime(&lock, SystemClock.now_ms() + 1005).unwrap();
    let mut waiting = home.command(&["task", "claim", "1"]).spawn().unwrap();
    home.create("another");
    home.create("and another");
    assert!(waiting.try_wait().unwrap().is_none());
    assert!(lock.is_dir());
    std::fs::remove_dir(&lock).unwrap();
    assert!(waiting.wait().unwrap().success());
}

/// Lock directories of a `ccb` that crashed are removed by the next one; others' are not.
#[test]
fn a_crashed_ccb_leaves_no_lock_directories_behind() {
    for (command, nth) in [
        (["task", "claim", "1"].as_slice(), 1),
        (&["task", "create", "new"], 1),
        (&["task", "block", "1", "2"], 1),
        (&["task", "block", "1", "2"], 2),
    ] {
        let home = TestHome::new(CCB);
        for subject in ["one", "two", "three"] {
            home.create(subject);
        }
        let crash = format!("crash:lockdir.taken:{nth}");
        let crashed = home
            .command(command)
            .env("CCB_FAULT", crash)
            .output()
            .unwrap();
        assert_eq!(crashed.status.code(), None, "{command:?}: {crashed:?}");
        assert_eq!(
            home.lock_dirs().len(),
            nth,
            "{command:?}: {:?}",
            home.lock_dirs()
        );
        let strangers = home.list_dir().join("3.json.lock");
        std::fs::create_dir(&strangers).unwrap();

        let started = Instant::now();
        home.ok(&["task", "update", "2", "--meta", "after=1"]);
        assert!(
            started.elapsed() < Duration::from_secs(5),
            "it must not wait"
        );
        assert_eq!(home.lock_dirs(), ["3.json.lock"], "{command:?}");
        let tool = ForeignTool::new(home.list_dir());
        assert!(
            tool.update(1, |task| drop(task.insert("mine".into(), 1.into())))
                .unwrap()
        );
    }
}

/// Changes by the other tool get numbers, and are marked as another tool's.
#[test]
fn foreign_changes_are_numbered() {
    let home = TestHome::new(CCB);
    let tool = ForeignTool::new(home.list_dir());
    let id = tool
        .create("made elsewhere", &serde_json::Map::new())
        .unwrap();
    home.create("made here");
    tool.update(id, |task| {
        drop(task.insert("status".into(), "completed".into()))
    })
    .unwrap();
    let first = watched(&home, 0);
    tool.delete(id).unwrap();
    let all = watched(&home, 0);

    assert_eq!(
        first,
        [
            (1, "create", "1", true),
            (2, "create", "2", false),
            (3, "update", "1", true)
        ]
        .map(|(seq, op, id, foreign)| (seq, op.to_owned(), id.to_owned(), foreign))
    );
    assert_eq!(all[..3], first[..], "numbers do not change");
    assert_eq!(all[3..], [(4, "delete".to_owned(), "1".to_owned(), true)]);
    assert_eq!(watched(&home, 3), all[3..]);
}

fn watched(home: &TestHome, since: u64) -> Vec<(u64, String, String, bool)> {
    let since = since.to_string();
    let answer = home.run(&["--json", "task", "watch", "--since", &since, "--no-follow"]);
    assert_eq!(answer.code, Some(0), "{answer:?}");
    let lines = answer.json_lines();
    let (end, changes) = lines.split_last().unwrap();
    assert_eq!(end["event"], "end");
    changes
        .iter()
        .map(|line| {
            let text = |key: &str| line[key].as_str().unwrap().to_owned();
            let foreign = line.get("foreign").is_some_and(|flag| *flag == json!(true));
            (
                line["seq"].as_u64().unwrap(),
                text("op"),
                text("id"),
                foreign,
            )
        })
        .collect()
}

/// With `taskboard.lock: "flock"` lock directories are neither made nor respected.
#[test]
fn lock_directories_can_be_turned_off() {
    let home = TestHome::new(CCB);
    home.settings(r#"{"taskboard":{"lock":"flock"}}"#);
    home.create("one");
    home.create("two");
    let locks = [".lock.lock", "1.json.lock", "2.json.lock"];
    let mut times = Vec::new();
    for name in locks {
        std::fs::create_dir(home.list_dir().join(name)).unwrap();
        times.push(
            std::fs::metadata(home.list_dir().join(name))
                .unwrap()
                .modified()
                .unwrap(),
        );
    }
    let started = Instant::now();
    home.ok(&["task", "claim", "1", "--check-busy"]);
    home.ok(&["task", "block", "1", "2"]);
    home.ok(&["task", "create", "three", "--blocked-by", "2"]);
    home.ok(&["task", "rm", "2"]);
    assert!(
        started.elapsed() < Duration::from_secs(5),
        "it waited for a lock directory"
    );
    assert_eq!(home.lock_dirs(), locks);
    for (name, time) in locks.iter().zip(times) {
        let meta = std::fs::metadata(home.list_dir().join(name)).unwrap();
        assert_eq!(meta.modified().unwrap(), time, "{name} was touched");
    }
}
