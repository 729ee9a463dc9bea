//! A session whose every part is killed at random, over and over: nothing is lost, nothing is
//! done twice.

use std::collections::BTreeMap;
use std::process::Child;
use std::time::{Duration, Instant};

use harness::fake::Pids;
use harness::runs::{LONG, await_none_left, kill};
use harness::script::Script;
use harness::team_session::SessionScene;
use harness::{Random, wait_until};
use rustix::process::Signal;

use crate::{CCB, FAKE_AGENT};

/// The size of a run: `CCB_CHAOS=full` is what the product promises, the default what a test
/// run has time for.
struct Size {
    mates: usize,
    tasks: u64,
    kills: usize,
}

fn size() -> Size {
    if std::env::var("CCB_CHAOS").is_ok_and(|size| size == "full") {
        return Size {
            mates: 50,
            tasks: 500,
            kills: 400,
        };
    }
    Size {
        mates: 8,
        tasks: 40,
        kills: 30,
    }
}

#[test]
fn every_task_is_done_once_whoever_is_killed() {
    let given = std::env::var("CCB_SEED").ok().and_then(|s| s.parse().ok());
    let seed: u64 = given.unwrap_or_else(|| u64::from(std::process::id()) ^ 0xc4a05);
    println!("seed: CCB_SEED={seed}");
    let mut random = Random::new(seed);
    let size = size();
    let scene = SessionScene::new(CCB);
    let pids = scene.home.path().join("pids");
    std::fs::create_dir(&pids).unwrap();
    scene.repo.write("files/.keep", "");
    scene.repo.git(&["add", "."]);
    scene.repo.git(&["commit", "-qm", "files"]);
    create(&scene, &size, &pids, &mut random);

    let mates = size.mates.to_string();
    let start = || scene.start(&["--mates", &mates, "--attempts", "5"]);
    let mut director = Director(start());
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    let limit = Instant::now() + Duration::from_secs(1500);
    let mut code = None;
    let mut killed = 0;
    while code.is_none() {
        assert!(Instant::now() < limit, "seed {seed}: {counts:?}");
        if killed < size.kills && disturb(&scene, &mut director.0, &mut random, &mut counts) {
            killed += 1;
        }
        if let Some(status) = director.0.try_wait().unwrap() {
            match status.code() {
                Some(ended) => code = Some(ended),
                // Killed by us.
                None => director = Director(start()),
            }
        }
        // Until a few more things have happened: so that what is killed next can be anywhere.
        let enough = length(&scene) + random.below(4) * 100;
        wait_until(LONG, "something to happen", || {
            length(&scene) > enough || !matches!(director.0.try_wait(), Ok(None))
        });
    }
    println!("killed: {counts:?}");
    check(&scene, &size, code, seed);
    scene.await_nobody();
    await_none_left(&Pids::new(&pids));
}

/// How much the sessions have said so far.
fn length(scene: &SessionScene) -> u64 {
    std::fs::metadata(scene.log()).map_or(0, |meta| meta.len())
}

/// A session that does not outlive the test.
struct Director(Child);

impl Drop for Director {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

/// Tasks in chains and fans; each writes one file of its own, and appends to what it depends on
/// whether that was there.
fn create(scene: &SessionScene, size: &Size, pids: &std::path::Path, random: &mut Random) {
    let mut batch = Vec::new();
    for id in 1..=size.tasks {
        let blocker = (id > 4 && random.below(2) == 0).then(|| 1 + random.below(id - 1));
        let pause = Script::new().pids(pids).then(harness::script::Do::Pause {
            ms: random.below(120),
        });
        let needs = blocker.map_or(String::new(), |on| format!("cat files/{on} && "));
        let run = format!(
            "( {} ) && {needs}echo {id} >> files/{id}",
            pause.to_command(FAKE_AGENT)
        );
        let verify = format!("test \"$(cat files/{id})\" = {id}");
        let mut task = serde_json::json!({
            "subject": format!("task {id}"),
            "metadata": {"ccb": {"run": run, "verify": verify}},
        });
        if let Some(on) = blocker {
            task["blockedBy"] = serde_json::json!([format!("t{on}")]);
        }
        task["key"] = format!("t{id}").into();
        batch.push(task);
    }
    let file = scene.home.path().join("batch.jsonl");
    let lines: Vec<String> = batch.iter().map(ToString::to_string).collect();
    std::fs::write(&file, lines.join("\n")).unwrap();
    scene.ok(&["task", "create", "--from", file.to_str().unwrap()]);
}

/// Kills something; false if there was nothing to kill.
fn disturb(
    scene: &SessionScene,
    director: &mut Child,
    random: &mut Random,
    counts: &mut BTreeMap<&'static str, usize>,
) -> bool {
    let what = *random.pick(&["director", "host", "guard", "both", "pid"]);
    let active = scene.home.team_dir().join("runs/.active");
    let Ok(entries) = std::fs::read_dir(&active) else {
        return false;
    };
    let ids: Vec<String> = entries
        .flatten()
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    if ids.is_empty() {
        return false;
    }
    let id = random.pick(&ids).clone();
    let path = scene.home.run_dir(&id).join("meta.json");
    let meta = std::fs::read(path).ok();
    let meta: Option<serde_json::Value> = meta.and_then(|text| serde_json::from_slice(&text).ok());
    let Some(meta) = meta else {
        return false;
    };
    if what == "director" {
        // Only if somebody is at work: a director that never gets anybody up proves nothing.
        if meta["pid"].is_null() {
            return false;
        }
        director.kill().ok();
        *counts.entry(what).or_default() += 1;
        return true;
    }
    let process = |which: &str| {
        let pid = match which {
            "pid" => meta["pid"].as_i64(),
            other => meta[other]["pid"].as_i64(),
        };
        pid.and_then(|pid| i32::try_from(pid).ok())
    };
    let targets: Vec<i32> = match what {
        "both" => ["guard", "host"].into_iter().filter_map(process).collect(),
        one => process(one).into_iter().collect(),
    };
    for pid in &targets {
        kill(*pid, Signal::KILL);
    }
    *counts.entry(what).or_default() += usize::from(!targets.is_empty());
    !targets.is_empty()
}

fn check(scene: &SessionScene, size: &Size, code: Option<i32>, seed: u64) {
    let log = || std::fs::read_to_string(scene.log()).unwrap_or_default();
    let tasks = scene.home.tasks_on_disk();
    let mut parked = 0;
    for task in tasks.iter().take(usize::try_from(size.tasks).unwrap()) {
        let ours = &task["metadata"]["ccb"];
        if task["status"] == "completed" {
            assert!(ours["result"]["commit"].is_string(), "seed {seed}: {task}");
            continue;
        }
        // Parked, or behind one that is.
        assert_eq!(task["status"], "pending", "seed {seed}: {task}");
        parked += usize::from(ours["parked"]["reason"].is_string());
    }
    let expected = if parked == 0 { 0 } else { 1 };
    assert_eq!(code, Some(expected), "seed {seed}: {}", log());
    for task in tasks.iter().filter(|task| task["status"] == "completed") {
        let id = task["id"].as_str().unwrap();
        let file = scene.repo.git(&["show", &format!("main:files/{id}")]);
        assert_eq!(
            file,
            format!("{id}\n"),
            "seed {seed}: task {id} was done once"
        );
    }
    // Each result of an agent was told once at most, and all that was told is read.
    let mut told = scene.home.notifications();
    let all = told.len();
    told.sort();
    told.dedup_by(|a, b| a.0 == b.0);
    assert_eq!(told.len(), all, "seed {seed}: told twice");
    // What has landed has no tree; what has not has one.
    wait_until(LONG, "trees to be put away", || {
        let trees = scene.trees();
        let lost = trees.iter().filter(|name| !is_rest(scene, name));
        lost.count() == 0
    });
    assert_eq!(
        scene.repo.git(&["status", "--porcelain"]),
        "",
        "seed {seed}"
    );
}

/// A tree that an attempt left which came to nothing: kept, because something is in it.
fn is_rest(scene: &SessionScene, name: &str) -> bool {
    let done = scene
        .home
        .tasks_on_disk()
        .into_iter()
        .any(|task| task["metadata"]["ccb"]["result"]["worktree"] == name);
    !done
}
