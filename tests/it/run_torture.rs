//! Hundreds of agents started, messaged, stopped, resumed and killed at random.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use harness::fake::Pids;
use harness::runs::{LONG, await_none_left, kill};
use harness::script::{Grandchild, Script};
use harness::{Random, TestHome, wait_until};
use rustix::process::Signal;

use crate::{CCB, FAKE_AGENT};

const RUNS: usize = 200;
const WORKERS: usize = 4;

fn script(random: &mut Random, pids: &std::path::Path) -> Script {
    let script = Script::new().pids(pids);
    let script = match random.below(4) {
        0 => script.daemon(),
        1 => script.spawn(Grandchild {
            new_session: true,
            ignores_signals: true,
            role: "stubborn".into(),
            ..Grandchild::default()
        }),
        _ => script,
    };
    match random.below(6) {
        0 => script.done("done"),
        1 => script.failed("no"),
        2 => script.say("half").exit(0),
        3 => script.tool("Bash", "x").serve().done("served"),
        4 => script.ignore_signals().stubborn().hang(),
        _ => script.hang(),
    }
}

#[test]
fn two_hundred_runs() {
    let seed = harness::sample::seed();
    println!("seed: CCB_SEED={seed}");
    let home = TestHome::in_memory(CCB);
    home.with_fake_runtime(
        FAKE_AGENT,
        r#""agents":{"stopGraceMs":50,"maxAgents":null}"#,
    );
    let pids_dir = home.path().join("pids");
    std::fs::create_dir(&pids_dir).unwrap();
    let started = AtomicUsize::new(0);
    let ids: Mutex<Vec<String>> = Mutex::default();
    let counts: Mutex<BTreeMap<&'static str, usize>> = Mutex::default();
    std::thread::scope(|scope| {
        for worker in 0..WORKERS {
            let (home, started, ids, counts) = (&home, &started, &ids, &counts);
            let pids_dir = &pids_dir;
            scope.spawn(move || {
                let mut random = Random::new(seed + worker as u64);
                while started.fetch_add(1, Ordering::Relaxed) < RUNS {
                    let id = home.spawn_fake(&script(&mut random, pids_dir), &[]);
                    ids.lock().unwrap().push(id);
                    for _ in 0..2 {
                        let ids = ids.lock().unwrap().clone();
                        let id = &ids[random.below(ids.len() as u64) as usize];
                        let what = disturb(home, id, &mut random);
                        *counts.lock().unwrap().entry(what).or_default() += 1;
                    }
                }
            });
        }
    });
    let ids = ids.into_inner().unwrap();
    for id in &ids {
        // Ended ones say so, which is fine here.
        home.run(&["agent", "stop", id, "--grace", "10"]);
    }
    let active = home.team_dir().join("runs/.active");
    wait_until(LONG, "all runs to be settled", || {
        home.ok(&["agent", "list"]);
        std::fs::read_dir(&active).map_or(0, Iterator::count) == 0
    });
    await_none_left(&Pids::new(&pids_dir));
    let told = home.notifications();
    let mut lives = 0;
    for id in &ids {
        let meta = home.run_meta(id);
        let state = meta["state"].as_str().unwrap();
        assert!(
            ["completed", "failed", "killed", "lost"].contains(&state),
            "{meta}"
        );
        let count = usize::try_from(meta["life"].as_u64().unwrap()).unwrap();
        let told = told.iter().filter(|told| told.0 == *id).count();
        assert_eq!(told, count, "one notification per life: {meta}");
        lives += count;
    }
    eprintln!(
        "{} runs, {lives} lives, {:?}",
        ids.len(),
        counts.into_inner().unwrap()
    );
}

/// Disturbs an agent, which may or may not be alive.
fn disturb(home: &TestHome, id: &str, random: &mut Random) -> &'static str {
    let kill_process = |which: &str| {
        let meta = home.run_meta(id);
        let start = |pid: i32| {
            let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
            let fields = stat.rsplit_once(')')?.1.split_ascii_whitespace().nth(19)?;
            fields.parse::<u64>().ok()
        };
        let pid = meta[which]["pid"]
            .as_i64()
            .and_then(|pid| i32::try_from(pid).ok());
        if let Some(pid) = pid
            && start(pid) == meta[which]["startTime"].as_u64()
        {
            kill(pid, Signal::KILL);
        }
    };
    match random.below(7) {
        0 | 1 => {
            let text = Script::new().done("answered").to_prompt();
            home.run(&["agent", "send", id, &text]);
            "messages"
        }
        2 => {
            home.run(&["agent", "stop", id, "--grace", "20"]);
            "stops"
        }
        3 => {
            home.run(&["agent", "resume", id, "--background"]);
            "resumes"
        }
        4 => {
            kill_process("host");
            "hosts killed"
        }
        5 => {
            kill_process("guard");
            "guards killed"
        }
        _ => {
            kill_process("host");
            kill_process("guard");
            "both killed"
        }
    }
}
