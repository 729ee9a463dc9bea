//! Kills the process at every write point of every mail operation and checks the result.
//!
//! As on the board: each scenario is run once with a trace to learn which points it passes, then
//! once per pass with a crash there. After the next command everything must be as it was before, or
//! as it is after, in all inboxes and requests together: that is also what makes a broadcast all or
//! nothing. Where the next command has more to do than usual, it is crashed at each of its points
//! as well.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::process::ExitStatusExt;
use std::sync::Mutex;

use harness::sample::Sample;
use harness::{MailScenario, TestHome, mail_command, mail_state, message_numbers};

use crate::{CCB, MAIL_WORKER};

pub(crate) const SCENARIOS: &[MailScenario] = &[
    MailScenario {
        name: "first message",
        setup: members,
        command: &["mail", "send", "bob", "one"],
        once: false,
    },
    MailScenario {
        name: "next message",
        setup: some_mail,
        command: &["mail", "send", "bob", "three"],
        once: false,
    },
    MailScenario {
        name: "message after a torn one",
        setup: |home| {
            some_mail(home);
            append(home, b"{\"v\":1,\"seq\":3,\"id\":");
        },
        command: &["mail", "send", "bob", "three"],
        once: false,
    },
    MailScenario {
        name: "first broadcast",
        setup: members,
        command: &["mail", "send", "*", "to all"],
        once: false,
    },
    MailScenario {
        name: "broadcast",
        setup: |home| {
            some_mail(home);
            home.ok(&["mail", "send", "*", "first to all"]);
        },
        command: &["mail", "send", "*", "to all", "--as", "carol"],
        once: false,
    },
    MailScenario {
        name: "message after a broadcast that is not copied yet",
        setup: |home| {
            some_mail(home);
            let broadcast = ["mail", "send", "*", "to all"];
            crash(home, &broadcast, &("mail.broadcast-committed".into(), 1));
        },
        command: &["mail", "send", "bob", "three"],
        once: false,
    },
    MailScenario {
        name: "read",
        setup: some_mail,
        command: &["mail", "read", "--as", "bob"],
        once: true,
    },
    MailScenario {
        name: "acknowledge",
        setup: some_mail,
        command: &["mail", "ack", "2", "--as", "bob"],
        once: true,
    },
    MailScenario {
        name: "acknowledge and archive",
        setup: |home| {
            some_mail(home);
            worker(home, &["worker", "rotate"]);
            worker(home, &["worker", "send", "a", "bob", "3"]);
            worker(home, &["worker", "rotate"]);
            worker(home, &["worker", "send", "a", "bob", "3"]);
        },
        command: &["worker", "rotate"],
        once: false,
    },
    MailScenario {
        name: "read beside a damaged line",
        setup: |home| {
            some_mail(home);
            append(home, b"not a message\n");
        },
        command: &["mail", "read", "--as", "bob"],
        once: true,
    },
    MailScenario {
        name: "notification",
        setup: members,
        command: &["worker", "notify", "run-1"],
        once: true,
    },
    MailScenario {
        name: "notification after it was archived",
        setup: |home| {
            members(home);
            worker(home, &["worker", "notify", "run-1"]);
            home.ok(&["mail", "ack", "1", "--as", "team-lead"]);
            worker(home, &["worker", "notify", "run-2"]);
        },
        command: &["worker", "notify", "run-3"],
        once: true,
    },
    MailScenario {
        name: "notification that makes old ones forgotten",
        setup: |home| {
            members(home);
            for run in ["run-1", "run-2", "run-3", "run-4", "run-5", "run-6"] {
                worker(home, &["worker", "notify", run]);
            }
        },
        command: &["worker", "notify-short", "run-7"],
        once: true,
    },
    MailScenario {
        name: "broadcast that drops old ones",
        setup: |home| {
            some_mail(home);
            home.ok(&["mail", "send", "*", "first to all"]);
            home.ok(&["mail", "send", "*", "second to all", "--as", "bob"]);
        },
        command: &["worker", "broadcast-short", "third to all"],
        once: false,
    },
    MailScenario {
        name: "request",
        setup: some_mail,
        command: &["worker", "ask", "bob", "team-lead", "a plan"],
        once: false,
    },
    MailScenario {
        name: "request that expires",
        setup: |home| {
            asked(home);
            for path in request_files(home) {
                let text = std::fs::read_to_string(&path).unwrap();
                let mut request: serde_json::Value = serde_json::from_str(&text).unwrap();
                request["expiresAt"] = "2020-01-01T00:00:00.000Z".into();
                std::fs::write(&path, request.to_string()).unwrap();
            }
        },
        command: &["mail", "requests"],
        once: true,
    },
    MailScenario {
        name: "idle",
        setup: some_mail,
        command: &["worker", "idle", "bob"],
        once: true,
    },
    MailScenario {
        name: "busy",
        setup: |home| {
            some_mail(home);
            worker(home, &["worker", "idle", "bob"]);
        },
        command: &["worker", "busy", "bob"],
        once: true,
    },
];

const RECOVERY: &[&str] = &["worker", "recover"];

fn members(home: &TestHome) {
    home.team(&["bob", "carol", "team-lead"]);
}

fn some_mail(home: &TestHome) {
    members(home);
    home.ok(&["mail", "send", "bob", "one"]);
    home.ok(&["mail", "send", "bob", "two", "--priority", "now"]);
}

fn asked(home: &TestHome) {
    some_mail(home);
    worker(home, &["worker", "ask", "bob", "team-lead", "a plan"]);
}

fn request_files(home: &TestHome) -> Vec<std::path::PathBuf> {
    let entries = std::fs::read_dir(home.team_dir().join("requests")).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    paths
        .filter(|path| path.extension().is_some_and(|e| e == "json"))
        .collect()
}

/// Runs the command to its end.
fn worker(home: &TestHome, args: &[&str]) {
    let output = mail_command(home, MAIL_WORKER, args).output().unwrap();
    assert!(output.status.success(), "{args:?}: {output:?}");
}

/// Damages bob's log as a program outside would.
fn append(home: &TestHome, bytes: &[u8]) {
    let path = home.inbox_dir("bob").join("log.jsonl");
    let mut log = std::fs::read(&path).unwrap();
    log.extend_from_slice(bytes);
    std::fs::write(&path, log).unwrap();
}

#[test]
fn every_crash_point_recovers() {
    let visited: Mutex<BTreeSet<String>> = Mutex::default();
    let crashes = Mutex::new(0);
    let queue: Mutex<Vec<&MailScenario>> = Mutex::new(SCENARIOS.iter().collect());
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                while let Some(scenario) = { queue.lock().unwrap().pop() } {
                    let (points, count) = sweep(scenario, &|_| scenario.command.to_vec());
                    visited.lock().unwrap().extend(points);
                    *crashes.lock().unwrap() += count;
                }
            });
        }
    });
    // The answer to a request needs its id.
    let answer = MailScenario {
        name: "answer",
        setup: asked,
        command: &[],
        once: false,
    };
    let (points, count) = sweep(&answer, &|home| {
        let path = request_files(home).remove(0);
        let id = path.file_stem().unwrap().to_str().unwrap().to_owned();
        vec!["mail", "approve", id.leak(), "--as", "team-lead"]
    });
    let mut visited = visited.into_inner().unwrap();
    visited.extend(points);
    println!("{} crashes", crashes.into_inner().unwrap() + count);
    let missed: Vec<_> = mailbox::FAULT_POINTS
        .iter()
        .map(|point| point.name())
        .filter(|name| !visited.contains(*name))
        .collect();
    assert!(missed.is_empty(), "no scenario passes {missed:?}");
}

/// One recovery of this many is crashed in its turn (`tests/torture.sh crashes`: each).
const TWICE_CRASHED: u64 = 4;

/// Crashes one scenario everywhere; returns the points it passed and how often it crashed.
fn sweep(
    scenario: &MailScenario,
    command: &dyn Fn(&TestHome) -> Vec<&'static str>,
) -> (BTreeSet<String>, usize) {
    let template = TestHome::in_memory(CCB);
    (scenario.setup)(&template);
    let command = command(&template);
    let untouched = template.copy();
    let usual = traced(&untouched, RECOVERY).len();
    let before = mail_state(&untouched);
    let whole = template.copy();
    let passes = traced(&whole, &command);
    worker(&whole, RECOVERY);
    let after = mail_state(&whole);

    let mut visited: BTreeSet<String> = passes.iter().map(|(point, _)| point.clone()).collect();
    let mut crashes = 0;
    let sample = Sample::one_in(TWICE_CRASHED);
    let check = |home: &TestHome, at: &str| {
        let found = mail_state(home);
        assert!(
            found == before || found == after,
            "{at}: neither before nor after:\n{found:#}\nbefore {before:#}\nafter {after:#}"
        );
        for (agent, numbers) in message_numbers(home) {
            let gapless = numbers.windows(2).all(|pair| pair[0] + 1 == pair[1]);
            assert!(gapless, "{at}: {agent} has {numbers:?}");
        }
        if scenario.once {
            worker(home, &command);
            assert_eq!(mail_state(home), after, "{at}: done again");
        }
    };
    for pass in &passes {
        let at = format!("{}, crash at {}:{}", scenario.name, pass.0, pass.1);
        let home = template.copy();
        crash(&home, &command, pass);
        crashes += 1;
        let recovery = traced(&home, RECOVERY);
        visited.extend(recovery.iter().map(|(point, _)| point.clone()));
        check(&home, &at);
        if recovery.len() <= usual {
            continue;
        }
        let chosen = |again: &&(String, usize)| sample.takes((scenario.name, pass, again));
        for again in recovery.iter().filter(chosen) {
            let home = template.copy();
            crash(&home, &command, pass);
            crash(&home, RECOVERY, again);
            crashes += 2;
            worker(&home, RECOVERY);
            check(&home, &format!("{at}, then at {}:{}", again.0, again.1));
        }
    }
    (visited, crashes)
}

/// Runs a command to its end and returns each point it passed with the number of the pass.
fn traced(home: &TestHome, command: &[&str]) -> Vec<(String, usize)> {
    let file = home.path().join("trace");
    let output = mail_command(home, MAIL_WORKER, command)
        .env("CCB_FAULT_TRACE", &file)
        .output()
        .unwrap();
    assert!(output.status.success(), "{command:?}: {output:?}");
    let text = std::fs::read_to_string(&file).unwrap_or_default();
    std::fs::remove_file(&file).ok();
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    text.lines()
        .map(|point| {
            let count = counts.entry(point).or_default();
            *count += 1;
            (point.to_owned(), *count)
        })
        .collect()
}

fn crash(home: &TestHome, command: &[&str], (point, nth): &(String, usize)) {
    let fault = format!("crash:{point}:{nth}");
    let output = mail_command(home, MAIL_WORKER, command)
        .env("CCB_FAULT", &fault)
        .output()
        .unwrap();
    let aborted = output.status.signal() == Some(rustix::process::Signal::ABORT.as_raw());
    assert!(aborted, "{command:?} did not come to {fault}: {output:?}");
}
