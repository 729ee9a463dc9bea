//! A session under fire: some process of it is killed several times a second, the director as often
//! as the others, and it is started again each time. Nothing is lost, nothing is done twice, no
//! kill costs a task an attempt, and nothing is left behind.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Child;
use std::time::{Duration, Instant};

use harness::fake::Pids;
use harness::runs::{LONG, await_none_left, kill};
use harness::scene_processes::{Part, of_home};
use harness::script::Script;
use harness::team_session::SessionScene;
use harness::{Random, wait_until};
use rustix::process::Signal;

use crate::{CCB, FAKE_AGENT};

/// The size of a run: `CCB_FULL=1` is what the product promises, the default what a test
/// run has time for.
struct Size {
    mates: usize,
    tasks: u64,
    /// Number of kills; then it may end in peace.
    kills: usize,
    /// Time from one kill to the next, in milliseconds.
    pace: (u64, u64),
}

fn size() -> Size {
    let number = |name: &str, usual| {
        let given = std::env::var(name).ok();
        given.map_or(usual, |text| text.parse().expect("a number"))
    };
    if harness::sample::is_full() {
        return Size {
            mates: 8,
            tasks: number("CCB_CHAOS_TASKS", 100),
            kills: usize::MAX,
            pace: (100, 500),
        };
    }
    Size {
        mates: 3,
        tasks: 8,
        kills: 25,
        pace: (60, 250),
    }
}

#[test]
fn every_task_is_done_once_whoever_is_killed_and_nothing_stays_behind() {
    let seed = harness::sample::seed();
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
    // An agent that is killed did not do its task, so that counts; no other death does.
    let start = || scene.start(&["--mates", &mates, "--attempts", "100"]);
    let mut director = Director(start());
    let mut hit: BTreeMap<Part, usize> = BTreeMap::new();
    let began = Instant::now();
    let limit = began + Duration::from_secs(1500);
    let mut next = began;
    let mut code = None;
    while code.is_none() {
        if Instant::now() >= limit {
            keep(&scene, seed);
            panic!("seed {seed}: not done, hit {hit:?}");
        }
        if hit.values().sum::<usize>() < size.kills && Instant::now() >= next {
            if let Some(part) = disturb(&scene, &director.0, &mut random) {
                *hit.entry(part).or_default() += 1;
            }
            let (least, most) = size.pace;
            next = Instant::now() + Duration::from_millis(least + random.below(most - least));
        }
        match director.0.try_wait().unwrap() {
            None => std::thread::park_timeout(Duration::from_millis(5)),
            Some(status) => match status.code() {
                Some(ended) => code = Some(ended),
                // Killed by the test.
                None => director = Director(start()),
            },
        }
    }
    println!("hit in {:?}: {hit:?}", began.elapsed());
    let checked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        check(&scene, &size, code);
        check_nothing_left(&scene);
        await_none_left(&Pids::new(&pids));
    }));
    if let Err(failed) = checked {
        eprintln!("seed {seed}");
        keep(&scene, seed);
        std::panic::resume_unwind(failed);
    }
}

/// Keeps all files for an analysis.
fn keep(scene: &SessionScene, seed: u64) {
    let Some(dir) = std::env::var_os("CCB_CHAOS_KEEP") else {
        return;
    };
    let dir = Path::new(&dir).join(seed.to_string());
    std::fs::create_dir_all(&dir).unwrap();
    for (from, to) in [(scene.home.path(), "home"), (scene.repo.main(), "main")] {
        let copied = std::process::Command::new("cp")
            .arg("-a")
            .arg(from)
            .arg(dir.join(to))
            .status();
        assert!(copied.unwrap().success());
    }
    eprintln!("kept in {}", dir.display());
}

/// A session that does not outlive the test.
struct Director(Child);

impl Drop for Director {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

/// Tasks in chains and fans; each writes one file of its own, and needs that of what it depends
/// on.
fn create(scene: &SessionScene, size: &Size, pids: &Path, random: &mut Random) {
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

/// Kills a random process: first its part is drawn, then the process. Returns the part.
fn disturb(scene: &SessionScene, director: &Child, random: &mut Random) -> Option<Part> {
    let parts = [
        Part::Director,
        Part::Guard,
        Part::Host,
        Part::Git,
        Part::Work,
    ];
    let wanted = *random.pick(&parts);
    // A git lives for milliseconds; the other parts may have no process just now.
    let until = Instant::now() + Duration::from_millis(60);
    loop {
        let of_kind: Vec<i32> = of_home(scene.home.path())
            .into_iter()
            .filter(|(part, _)| *part == wanted)
            .map(|(_, pid)| pid)
            .filter(|pid| wanted != Part::Director || *pid == director.id().cast_signed())
            .collect();
        if !of_kind.is_empty() {
            kill(*random.pick(&of_kind), Signal::KILL);
            return Some(wanted);
        }
        if Instant::now() >= until {
            return None;
        }
    }
}

/// Everything is done, and has landed once.
fn check(scene: &SessionScene, size: &Size, code: Option<i32>) {
    let log = || std::fs::read_to_string(scene.log()).unwrap_or_default();
    let tasks = scene.home.tasks_on_disk();
    assert_eq!(tasks.len() as u64, size.tasks, "no task was made besides");
    for task in &tasks {
        let ours = &task["metadata"]["ccb"];
        assert_eq!(task["status"], "completed", "{task}: {}", log());
        assert!(ours["result"]["commit"].is_string(), "{task}");
        assert!(ours["parked"].is_null(), "{task}");
        let id = task["id"].as_str().unwrap();
        let file = scene.repo.git(&["show", &format!("main:files/{id}")]);
        assert_eq!(file, format!("{id}\n"), "task {id} was done once");
        let path = format!("files/{id}");
        let landed = scene
            .repo
            .git(&["log", "--no-merges", "--format=%H", "main", "--", &path]);
        assert_eq!(landed.lines().count(), 1, "task {id} landed once: {landed}");
    }
    assert_eq!(code, Some(0), "{}", log());
    assert_eq!(scene.repo.git(&["status", "--porcelain"]), "");
    // Each result of an agent was reported once at most, and all reports are read.
    let mut told = scene.home.notifications();
    let all = told.len();
    told.sort();
    told.dedup_by(|a, b| a.0 == b.0);
    assert_eq!(told.len(), all, "told twice");
}

/// No process, no worktree, no branch, no lock, nothing half done.
fn check_nothing_left(scene: &SessionScene) {
    scene.await_nobody();
    wait_until(LONG, "every process to be gone", || {
        of_home(scene.home.path()).is_empty()
    });
    assert_eq!(scene.trees(), Vec::<String>::new());
    let trees = std::fs::read_dir(scene.repo.main().join(".claude/worktrees"));
    let trees: Vec<_> = trees.into_iter().flatten().flatten().collect();
    assert!(trees.is_empty(), "{trees:?}");
    assert_eq!(scene.repo.tree_branches(), Vec::<String>::new());
    scene.repo.check_sound();
    let locks = scene.repo.git_locks();
    assert!(locks.is_empty(), "{locks:?}");
    let doctor = scene.run(&["--json", "doctor"]);
    assert_eq!(doctor.code, Some(0), "{doctor:?}");
    assert_eq!(doctor.json()["findings"], serde_json::json!([]));
}
