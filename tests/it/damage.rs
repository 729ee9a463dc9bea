//! Damage to any of ccb's files by a power cut or a bad disk (emptied, cut short, filled with
//! garbage): work continues, or a clear error names the file and `ccb doctor --fix` repairs it. No
//! task is lost, no id is used twice, nothing hangs.
//!
//! The files are found by looking, so that new ones are covered. Of each sort one is damaged, of
//! some, each in one of the ways. `CCB_FULL=1` damages every single one in every way.

use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use harness::Answer;
use harness::sample::{Sample, is_full};
use serde_json::Value;

use crate::damage_scene::{FAN, Scene};

/// Number of cases at once, each with a scene of its own.
const WORKERS: usize = 4;

/// One case of this many is tried.
const FEW: u64 = 3;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Damage {
    Empty,
    Short,
    Garbage,
}

impl Damage {
    const ALL: [Self; 3] = [Self::Empty, Self::Short, Self::Garbage];

    /// Inflicts the damage; true if it changed anything.
    fn inflict(self, path: &Path) -> bool {
        let before = std::fs::read(path).unwrap();
        let after = match self {
            Self::Empty => Vec::new(),
            Self::Short => before[..before.len() / 2].to_vec(),
            Self::Garbage => {
                let bytes = (0..before.len().max(64)).map(|at| (at * 167 + 13) as u8);
                bytes.collect()
            }
        };
        std::fs::write(path, &after).unwrap();
        after != before
    }
}

#[test]
fn any_damaged_file_is_rebuilt_or_named_and_repaired() {
    let all = is_full();
    let sample = Sample::one_in(FEW);
    let only = std::env::var("CCB_DAMAGE_ONLY").unwrap_or_default();
    let (next, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let problems = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..WORKERS {
            scope.spawn(|| {
                let scene = Scene::new();
                let files = scene.files(all);
                loop {
                    let at = next.fetch_add(1, Ordering::SeqCst);
                    let Some(path) = files.get(at / Damage::ALL.len()) else {
                        return;
                    };
                    let damage = Damage::ALL[at % Damage::ALL.len()];
                    let named = path.to_string_lossy();
                    let sort = path.file_name();
                    if !named.contains(&only) || !sample.takes((sort, damage as u8)) {
                        continue;
                    }
                    scene.restore();
                    if !damage.inflict(path) {
                        continue;
                    }
                    done.fetch_add(1, Ordering::SeqCst);
                    let case = Case {
                        scene: &scene,
                        path,
                    };
                    let found = case.examine();
                    let named = path.display();
                    let found = found
                        .into_iter()
                        .map(|what| format!("{named} {damage:?}: {what}"));
                    problems.lock().unwrap().extend(found);
                }
            });
        }
    });
    let (problems, done) = (problems.into_inner().unwrap(), done.into_inner());
    println!("{done} cases");
    assert!(
        done > 60 || !only.is_empty(),
        "only {done} files were found"
    );
    assert!(
        problems.is_empty(),
        "{}:\n{}",
        problems.len(),
        problems.join("\n")
    );
}

/// One damaged file.
struct Case<'a> {
    scene: &'a Scene,
    path: &'a Path,
}

impl Case<'_> {
    fn examine(&self) -> Vec<String> {
        let mut problems = Vec::new();
        let failed = self.use_everything("one", &mut problems);
        if failed.iter().any(|why| !self.is_named(why)) {
            problems.push(format!("an error does not name the file: {failed:?}"));
        }
        if !failed.is_empty() {
            let fixed = self.scene.run(&["doctor", "--fix"]);
            let other = match self.is_fan() {
                true => self.scene.doctor_of_fan(),
                false => fixed.clone(),
            };
            if fixed.is_none() || other.is_none() {
                problems.push("the doctor hangs".into());
            }
            let again = self.use_everything("two", &mut problems);
            if !again.is_empty() {
                let said = fixed.map(|answer| answer.stdout);
                problems.push(format!("still after {said:?}: {again:?}; first {failed:?}"));
            }
        }
        self.look_for_losses(&mut problems);
        problems
    }

    /// Acts as people and agents do, in this order; returns the errors.
    fn use_everything(&self, time: &str, problems: &mut Vec<String>) -> Vec<String> {
        let scene = self.scene;
        let (mut failed, mut wrong) = (Vec::new(), Vec::new());
        let mut run = |args: &[&str]| -> Option<Value> {
            match scene.run(args) {
                None => problems.push(format!("{args:?} hangs")),
                Some(answer) if answer.code == Some(0) => {
                    let last = answer.stdout.lines().last().unwrap_or_default();
                    return serde_json::from_str(last).ok().or(Some(answer.json()));
                }
                Some(answer) => failed.push(said(args, &answer)),
            }
            None
        };
        run(&["status"]);
        run(&["task", "list"]);
        let created = run(&["task", "create", time]);
        let id = created
            .as_ref()
            .and_then(|answer| answer["task"]["id"].as_str());
        if let Some(id) = id {
            let number: u64 = id.parse().unwrap();
            let used = number <= scene.highest;
            run(&["--as", "ann", "task", "claim", id]);
            run(&["--as", "ann", "task", "done", id]);
            if used {
                wrong.push(format!("id {number} was given out twice"));
            }
        }
        run(&["mail", "send", "ann", time]);
        if let Some(read) = run(&["--as", "ann", "mail", "read"])
            && !read.to_string().contains(&format!("{time:?}"))
        {
            wrong.push(format!("what was just sent is not there: {read}"));
        }
        run(&["mail", "requests"]);
        run(&["agent", "list"]);
        run(&["worktree", "list"]);
        run(&["worktree", "create", time]);
        run(&["worktree", "remove", time]);
        problems.extend(wrong);
        match scene.session() {
            None => problems.push("the session hangs".into()),
            Some(answer) if answer.code == Some(0) => {}
            // A lost task is parked in its own place, and a person has to decide.
            Some(answer) if answer.code == Some(1) && self.is_task() => {}
            Some(answer) => failed.push(said(&["session"], &answer)),
        }
        if self.is_fan() || self.path.to_string_lossy().contains("/.git/") {
            match scene.fan(std::time::Duration::from_secs(60)) {
                None => problems.push("the fan-out hangs".into()),
                Some(answer) if answer.code == Some(0) => {}
                Some(answer) => failed.push(said(&["fanout"], &answer)),
            }
        }
        failed
    }

    fn file_name(&self) -> &str {
        self.path.file_name().unwrap().to_str().unwrap()
    }

    fn is_task(&self) -> bool {
        let id = self.file_name().strip_suffix(".json");
        id.is_some_and(|id| id.bytes().all(|byte| byte.is_ascii_digit()))
    }

    fn is_fan(&self) -> bool {
        self.path.to_string_lossy().contains(&format!("/{FAN}/"))
    }

    /// True if an error names the file.
    fn is_named(&self, why: &str) -> bool {
        let name = self.file_name();
        let task = name.strip_suffix(".json").map(|id| format!("task {id}"));
        why.contains(name) || task.is_some_and(|task| why.contains(&task))
    }

    fn look_for_losses(&self, problems: &mut Vec<String>) {
        let scene = self.scene;
        if self.is_task() {
            // Named before, in its place after.
            let (id, _) = self.file_name().split_once('.').unwrap();
            let list = scene.run(&["task", "list"]).map(|answer| answer.stderr);
            let named = list.is_some_and(|said| said.contains(&format!("task {id} is unreadable")));
            if !named
                && scene
                    .run(&["task", "show", id])
                    .is_none_or(|answer| answer.code != Some(0))
            {
                problems.push(format!("task {id} is neither named nor there"));
            }
            scene.run(&["doctor", "--fix"]);
        }
        let listed = match scene.run(&["task", "list"]) {
            Some(answer) if answer.code == Some(0) => answer.json(),
            other => {
                problems.push(format!("no list: {other:?}"));
                return;
            }
        };
        for id in scene.tasks.keys() {
            let id = id.to_string();
            let same = |task: &&Value| task["id"] == id.as_str();
            let task = listed["tasks"].as_array().unwrap().iter().find(same);
            let parked = |task: &Value| task["metadata"]["ccb"]["parked"].is_object();
            match task {
                None => problems.push(format!("task {id} is gone")),
                Some(task) if task["status"] == "completed" || parked(task) => {}
                // It waits for the one whose file was damaged.
                Some(task)
                    if task["blockedBy"]
                        .as_array()
                        .is_some_and(|by| !by.is_empty()) => {}
                Some(task) => problems.push(format!("task {id} was not done: {task}")),
            }
        }
        let repo = &scene.scene.repo;
        for commit in &scene.landed {
            let args = ["merge-base", "--is-ancestor", commit, "main"];
            let on_main = harness::git_command(repo.main(), &args).status();
            if !on_main.unwrap().success() {
                problems.push(format!("{commit} is not on main any more"));
            }
        }
        let kept = repo.git(&["rev-parse", "worktree/keep"]);
        if kept.trim() != scene.kept || !repo.tree("keep").join("work").exists() {
            problems.push("a tree with work in it is gone".into());
        }
        if !repo.main().join("one").exists() {
            problems.push("the main tree lost a file".into());
        }
    }
}

fn said(args: &[&str], answer: &Answer) -> String {
    let error = answer
        .stdout
        .lines()
        .rev()
        .find(|line| line.contains("error"));
    let text = error.unwrap_or(&answer.stdout);
    format!("{args:?}: exit {:?}: {text} {}", answer.code, answer.stderr)
}
