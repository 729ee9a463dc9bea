//! A crash, and a write error, at every write point of every change of a team.
//!
//! As in `crash` and `write_errors`: each operation runs once with a trace to learn which
//! points it passes, then once per pass with a crash, and once per pass and error. Points are
//! discovered; the last check fails if a declared one is passed by no operation.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use harness::sample::Sample;
use harness::{Answer, Pass, TestHome};
use serde_json::Value;

use crate::CCB;

const ERRORS: [&str; 3] = ["enospc", "eio", "erofs"];

struct Scenario {
    command: &'static [&'static str],
    setup: fn(&TestHome),
}

const SCENARIOS: [Scenario; 5] = [
    Scenario {
        command: &["team", "create", "fixers", "--description", "d"],
        setup: |_| {},
    },
    Scenario {
        command: &["team", "join", "fixers", "--as", "bob"],
        setup: team,
    },
    Scenario {
        command: &["team", "leave", "fixers", "--as", "alice"],
        setup: team,
    },
    DELETE,
    Scenario {
        command: &["team", "delete", "fixers", "--force"],
        setup: |home| {
            full(home);
            home.ok(&["task", "claim", "1", "--as", "alice"]);
        },
    },
];

const DELETE: Scenario = Scenario {
    command: &["team", "delete", "fixers"],
    setup: |home| {
        full(home);
        home.ok(&["team", "leave", "fixers", "--as", "alice"]);
    },
};

fn team(home: &TestHome) {
    home.ok(&["team", "create", "fixers"]);
    home.ok(&["team", "join", "fixers", "--as", "alice"]);
}

/// A team with something of everything.
fn full(home: &TestHome) {
    team(home);
    for subject in ["one", "two", "three"] {
        home.ok(&["task", "create", subject]);
    }
    home.ok(&["task", "block", "1", "2"]);
    let dir = home.dir_of_team("fixers");
    for part in [
        "inboxes/alice",
        "inboxes/bob",
        "runs/alice@fixers",
        "requests",
    ] {
        std::fs::create_dir_all(dir.join(part)).unwrap();
        std::fs::write(dir.join(part).join("file"), "x").unwrap();
    }
    std::fs::write(dir.join("broadcast.jsonl"), "x\n").unwrap();
}

/// All data of the home: rosters without their times, tasks, and the other files.
fn state(home: &TestHome) -> BTreeMap<PathBuf, Value> {
    let mut state = BTreeMap::new();
    for (path, bytes) in home.everything() {
        let inside = path.strip_prefix(home.path()).unwrap().to_owned();
        let aside = ["tmp", "trash", "tasks/fixers/.ccb", "trace"];
        let counts = path.is_file() && !aside.iter().any(|part| contains(&inside, part));
        if !counts {
            continue;
        }
        let text = String::from_utf8(bytes).unwrap();
        let mut value: Value = match inside.extension() {
            Some(end) if end == "json" => serde_json::from_str(&text).unwrap(),
            _ => text.into(),
        };
        if inside.ends_with("config.json") {
            value["createdAt"] = "varies".into();
            for member in value["members"].as_array_mut().unwrap() {
                member["joinedAt"] = "varies".into();
                member["cwd"] = "varies".into();
            }
        }
        state.insert(inside, value);
    }
    state
}

fn contains(path: &std::path::Path, part: &str) -> bool {
    path.to_str().unwrap().contains(part)
}

fn temporaries(home: &TestHome) -> Vec<PathBuf> {
    let ours = home.dir_of_team("fixers").join(".ccb");
    let mut left: Vec<_> = home.everything().into_keys().collect();
    let inside =
        |path: &PathBuf, part| path.starts_with(ours.join(part)) && *path != ours.join(part);
    left.retain(|path| inside(path, "tmp") || inside(path, "trash"));
    left
}

#[test]
fn every_crash_point_of_every_change_recovers() {
    let mut visited: BTreeSet<String> = BTreeSet::new();
    for scenario in &SCENARIOS {
        let template = TestHome::in_memory(CCB).with_list("fixers");
        (scenario.setup)(&template);
        let before = state(&template);
        let whole = template.copy();
        let passes = whole.passes(scenario.command);
        let after = state(&whole);
        assert_ne!(before, after);
        assert!(passes.len() > 3, "{passes:?}");
        visited.extend(passes.iter().map(|(point, _)| point.clone()));
        for pass in &passes {
            let home = template.copy();
            home.crash(scenario.command, pass);
            let at = format!("{:?}, crash at {pass:?}", scenario.command);
            recovers(scenario, &home, &at, [&before, &after]);
        }
        println!("{:?}: {} crashes", scenario.command, passes.len());
    }
    let declared = team::FAULT_POINTS.iter().map(|point| point.name());
    let missed: Vec<_> = declared.filter(|name| !visited.contains(*name)).collect();
    assert!(missed.is_empty(), "no change passes {missed:?}");
}

/// The roster is whole; the same command, or having come far enough, leads to the same end.
fn recovers(
    scenario: &Scenario,
    home: &TestHome,
    at: &str,
    [before, after]: [&BTreeMap<PathBuf, Value>; 2],
) {
    let found = state(home);
    let deletes = scenario.command[1] == "delete";
    assert!(
        deletes || found == *before || found == *after,
        "{at}: {found:#?}"
    );
    home.ok(&["team", "list"]);
    let again = home.run(&[&["--json"], scenario.command].concat());
    // A finished change is final: it cannot be made, joined, left or deleted again.
    let done = found == *after;
    let expected = match (done, scenario.command[1]) {
        (false, _) => Some(0),
        (true, "leave" | "delete") => Some(3),
        (true, _) => Some(4),
    };
    assert_eq!(again.code, expected, "{at}: {again:?}");
    assert_eq!(state(home), *after, "{at}: the second try");
    if !deletes {
        assert_eq!(temporaries(home), Vec::<PathBuf>::new(), "{at}");
    }
    // Ids are not used again, and the team continues.
    if deletes {
        home.ok(&["team", "create", "fixers"]);
        assert_eq!(temporaries(home), Vec::<PathBuf>::new(), "{at}");
        let task = home.ok(&["task", "create", "next"]);
        assert_eq!(task["task"]["id"], "4", "{at}");
    }
}

/// One case of this many is tried (`tests/torture.sh crashes`: each).
const FEW: u64 = 3;

/// The deletion's crash, and then a crash of the command that was to finish it.
#[test]
fn a_deletion_that_crashes_twice_is_finished_by_the_third() {
    let template = TestHome::in_memory(CCB).with_list("fixers");
    (DELETE.setup)(&template);
    let whole = template.copy();
    let passes = whole.passes(DELETE.command);
    let after = state(&whole);
    let sample = Sample::one_in(FEW);
    let mut crashes = 0;
    for first in passes
        .iter()
        .filter(|(point, _)| point.starts_with("team."))
    {
        let crashed = template.copy();
        crashed.crash(DELETE.command, first);
        let resumed = crashed.copy();
        for second in resumed.passes(DELETE.command) {
            if !sample.takes((first, &second)) {
                continue;
            }
            let home = crashed.copy();
            home.crash(DELETE.command, &second);
            crashes += 1;
            let third = home.run(DELETE.command);
            assert!(
                [Some(0), Some(3)].contains(&third.code),
                "{first:?} {second:?}: {third:?}"
            );
            assert_eq!(state(&home), after, "{first:?} {second:?}");
        }
    }
    assert!(crashes > 10, "{crashes}");
}

#[test]
fn every_write_error_is_told_and_changes_nothing() {
    let sample = Sample::one_in(FEW);
    for scenario in &SCENARIOS {
        let template = TestHome::in_memory(CCB).with_list("fixers");
        (scenario.setup)(&template);
        let before = state(&template);
        let whole = template.copy();
        let passes = whole.passes(scenario.command);
        let after = state(&whole);
        for pass in &passes {
            let chosen = |error: &&&str| sample.takes((scenario.command, pass, error));
            for error in ERRORS.iter().filter(chosen) {
                let home = template.copy();
                let args = [&["--json"], scenario.command].concat();
                let answer = home.run_with_error(&args, error, pass);
                let at = format!("{args:?} with {error} at {pass:?}: {answer:?}");
                told_truly(scenario, &home, &at, (pass, &answer), [&before, &after]);
            }
        }
    }
}

fn told_truly(
    scenario: &Scenario,
    home: &TestHome,
    at: &str,
    (pass, answer): (&Pass, &Answer),
    [before, after]: [&BTreeMap<PathBuf, Value>; 2],
) {
    let found = state(home);
    if answer.code == Some(0) {
        // The change log, and points after irreversible steps.
        let can_fail = ["stage.", "dir.sync", "team.set-aside"];
        let log = pass.0.starts_with("stage.") && scenario.command[1] == "delete";
        assert!(
            log || !can_fail.iter().any(|point| pass.0.starts_with(point)),
            "{at}"
        );
        assert_eq!(found, *after, "{at}");
        return;
    }
    assert_eq!(answer.code, Some(1), "{at}");
    let error = &answer.json()["error"];
    assert!(
        error["message"].as_str().unwrap().contains("os error"),
        "{at}"
    );
    match error["kind"].as_str().unwrap() {
        "io" => assert_eq!(found, *before, "{at}"),
        "not_durable" => assert_eq!(found, *after, "{at}"),
        "unfinished" => assert_eq!(scenario.command[1], "delete", "{at}"),
        other => panic!("{other}: {at}"),
    }
    if found != *after {
        home.ok(scenario.command);
        assert_eq!(state(home), *after, "{at}: the second try");
    }
}
