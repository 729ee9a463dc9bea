//! Kills a process at every write point of a run's whole life: its starter, its guard, its host,
//! and the process that finishes it after them.
//!
//! Each scenario is run once with a trace to learn which points its processes pass, then once per
//! pass with a crash there. The crash hits every process that comes to that pass: if the host dies
//! while it finishes the run, the guard does it and dies at the same place, and the next command
//! has to. After that: every run has one end, its parent is notified once, no task is left in
//! progress, no worktree is broken, no process is left.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use harness::runs::LONG;
use harness::script::Script;
use harness::{TestHome, TestRepo, wait_until};

use crate::{CCB, FAKE_AGENT};

struct Scenario {
    name: &'static str,
    setup: fn(&Place) -> Vec<String>,
}

/// A home and a repository for one try.
struct Place {
    home: TestHome,
    repo: TestRepo,
}

impl Place {
    fn new() -> Self {
        let home = TestHome::in_memory(CCB);
        home.with_fake_runtime(
            FAKE_AGENT,
            r#""agents":{"stopGraceMs":100},"limits":{"quota":{"firstPauseMs":50}}"#,
        );
        let repo = TestRepo::new();
        Self { home, repo }
    }

    fn in_repo(&self, args: &[&str]) -> Vec<String> {
        let main = self.repo.main().to_str().unwrap();
        let all = [&["-C", main][..], args].concat();
        all.into_iter().map(str::to_owned).collect()
    }
}

const SCENARIOS: &[Scenario] = &[
    Scenario {
        name: "a command with a task in a tree",
        setup: |place| {
            place.home.create("job");
            place.in_repo(&[
                "agent",
                "spawn",
                "--runtime",
                "shell",
                "--background",
                "--task",
                "1",
                "--isolation",
                "worktree",
                "echo x > new",
            ])
        },
    },
    Scenario {
        name: "an agent that fails in a tree it leaves as it was",
        setup: |place| {
            let script = Script::new().daemon().say("hm").failed("no");
            place.in_repo(&[
                "agent",
                "spawn",
                "--runtime",
                "fake",
                "--background",
                "--isolation",
                "worktree",
                &script.to_prompt(),
            ])
        },
    },
    Scenario {
        name: "an agent that is waited for",
        setup: |place| {
            let script = Script::new().tool("Bash", "ok").done("fine");
            place.in_repo(&["agent", "spawn", "--runtime", "fake", &script.to_prompt()])
        },
    },
    Scenario {
        name: "an agent that is refused and goes on",
        setup: |place| {
            let script = Script::new()
                .result("quota", "")
                .wait_message()
                .usage(3, 4, 0.1)
                .done("fine");
            place.in_repo(&["agent", "spawn", "--runtime", "fake", &script.to_prompt()])
        },
    },
    Scenario {
        name: "a message that lets an ended agent go on in its tree",
        setup: |place| {
            let first = Script::new().done("first").to_prompt();
            let spawn = place.in_repo(&[
                "agent",
                "spawn",
                "--runtime",
                "fake",
                "--isolation",
                "worktree",
                &first,
            ]);
            let spawn: Vec<&str> = spawn.iter().map(String::as_str).collect();
            let answer = place.home.ok(&spawn);
            let id = answer["agent"]["agentId"].as_str().unwrap().to_owned();
            let again = Script::new().write("later", "x").done("again").to_prompt();
            place.in_repo(&["agent", "send", &id, &again])
        },
    },
];

/// Runs the command with these variables, with any result. Then waits until every run is settled.
fn run(place: &Place, command: &[String], env: &[(&str, &str)]) {
    let args: Vec<&str> = command.iter().map(String::as_str).collect();
    let mut process = place.home.command(&args);
    process.envs(env.iter().copied());
    process.output().unwrap();
    let active = place.home.team_dir().join("runs/.active");
    let all_settled = || {
        // The next command cleans up.
        place.home.ok(&["agent", "list"]);
        std::fs::read_dir(&active).map_or(0, Iterator::count) == 0
    };
    wait_until(LONG, "all runs to be settled", all_settled);
}

/// The rules that hold whatever process died.
fn check(place: &Place, what: &str) {
    let home = &place.home;
    let listed = home.ok(&["agent", "list"]);
    let agents = listed["agents"].as_array().unwrap();
    let told = home.notifications();
    for agent in agents {
        let id = agent["agentId"].as_str().unwrap();
        let state = agent["state"].as_str().unwrap();
        let terminal = ["completed", "failed", "killed", "lost"];
        assert!(terminal.contains(&state), "{what}: {agent}");
        let meta = home.run_meta(id);
        let lives = usize::try_from(meta["life"].as_u64().unwrap()).unwrap();
        let count = told.iter().filter(|told| told.0 == id).count();
        // The command may have waited for one life instead.
        assert!(
            count <= lives && count + 1 >= lives,
            "{what}: told {count} of {lives}: {meta}"
        );
        if meta["told"] == "posted" {
            assert!(count >= 1, "{what}: {meta}");
        } else {
            assert_eq!(meta["told"], "delivered", "{what}: {meta}");
        }
        let tmp = meta["tmp"].as_str().unwrap();
        assert!(!Path::new(tmp).exists(), "{what}: {tmp} is left");
    }
    let known: BTreeSet<&str> = agents
        .iter()
        .map(|a| a["agentId"].as_str().unwrap())
        .collect();
    assert!(
        told.iter().all(|told| known.contains(told.0.as_str())),
        "{what}: {told:?}"
    );
    for task in home.tasks_on_disk() {
        assert_ne!(task["status"], "in_progress", "{what}: {task}");
        let done = agents.iter().any(|agent| agent["state"] == "completed");
        assert!(task["status"] == "pending" || done, "{what}: {task}");
    }
    place.repo.check_sound();
    let main = place.repo.main().to_str().unwrap();
    let trees = home.ok(&["-C", main, "worktree", "list"]);
    for tree in trees["worktrees"].as_array().unwrap() {
        let path = tree["path"].as_str().unwrap();
        let live = tree["status"] != "removed";
        assert_eq!(live, Path::new(path).exists(), "{what}: {tree}");
    }
    wait_until(LONG, "no process to be left", || left_of(home).is_empty());
}

/// Processes that belong to agents of this home.
fn left_of(home: &TestHome) -> Vec<String> {
    let wanted = format!("CCB_HOME={}", home.path().display());
    let mut left = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let environ = std::fs::read(entry.path().join("environ")).unwrap_or_default();
        let mut variables = environ.split(|byte| *byte == 0);
        if variables.any(|variable| variable == wanted.as_bytes()) {
            left.push(entry.file_name().to_string_lossy().into_owned());
        }
    }
    left
}

/// The points the scenario passes, with the highest number of passes in any of its processes.
fn passes(scenario: &Scenario) -> BTreeMap<String, usize> {
    let place = Place::new();
    let command = (scenario.setup)(&place);
    let trace = place.home.path().join("trace");
    run(
        &place,
        &command,
        &[("CCB_FAULT_TRACE", trace.to_str().unwrap())],
    );
    check(&place, scenario.name);
    let mut counts = BTreeMap::new();
    for point in std::fs::read_to_string(&trace).unwrap_or_default().lines() {
        *counts.entry(point.to_owned()).or_insert(0) += 1;
    }
    counts
}

/// Maximum of passes tried per point: every process passes the points of single files all the time;
/// the first passes of each are enough to hit every kind of process.
const MOST: usize = 24;

fn visit(index: usize) {
    let scenario = &SCENARIOS[index];
    let mut tries = Vec::new();
    for (point, count) in passes(scenario) {
        tries.extend((1..=count.min(MOST)).map(|nth| (point.clone(), nth)));
    }
    let next = std::sync::atomic::AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                loop {
                    let n = next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                    let Some((point, nth)) = tries.get(n) else {
                        return;
                    };
                    let place = Place::new();
                    let command = (scenario.setup)(&place);
                    let fault = format!("crash:{point}:{nth}");
                    run(&place, &command, &[("CCB_FAULT", &fault)]);
                    check(&place, &format!("{}: {fault}", scenario.name));
                }
            });
        }
    });
    eprintln!("{}: {} crashes", scenario.name, tries.len());
}

#[test]
fn a_command_with_a_task_in_a_tree() {
    visit(0);
}

#[test]
fn an_agent_that_fails() {
    visit(1);
}

#[test]
fn an_agent_that_is_waited_for() {
    visit(2);
}

#[test]
fn an_agent_that_goes_on() {
    visit(3);
}

#[test]
fn every_point_of_a_run_is_visited_by_some_scenario() {
    let mut visited: BTreeSet<String> = BTreeSet::new();
    for scenario in SCENARIOS {
        visited.extend(passes(scenario).into_keys());
    }
    let declared = swarm::FAULT_POINTS
        .iter()
        .chain(native::FAULT_POINTS)
        .chain(runs::FAULT_POINTS)
        .chain(landing::FAULT_POINTS)
        .map(|point| point.name())
        // Points of ccb's own loop that write nothing: `mates.rs`. Points of landings are no part
        // of a run: `tests/postgres/workers.rs`.
        .filter(|name| {
            let others = ["mate.", "land."];
            !others.iter().any(|start| name.starts_with(start))
        });
    let missed: Vec<&str> = declared.filter(|name| !visited.contains(*name)).collect();
    assert!(missed.is_empty(), "no scenario comes to {missed:?}");
}
