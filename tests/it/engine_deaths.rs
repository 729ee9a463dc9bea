//! Deaths of the engine cost a task nothing: neither an attempt, nor a wait for a person. But an
//! agent that kills its supervisors every time is given up.

use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

use harness::runs::LONG;
use harness::team_session::SessionScene;
use harness::wait_until;
use serde_json::{Value, json};

use crate::CCB;

/// A director that does not outlive the test.
struct Director(Child);

impl Drop for Director {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

fn attempts(scene: &SessionScene, id: u64) -> Value {
    scene.file(id)["metadata"]["ccb"]["attempts"].clone()
}

#[test]
fn supervisors_that_die_before_the_agent_runs_cost_the_task_nothing() {
    // The worktree is made by the host.
    let points = [
        "run.guarded",
        "create.recorded",
        "create.checked-out",
        "spawn.tree",
        "run.hosted",
    ];
    for point in points {
        let scene = SessionScene::new(CCB);
        let id = scene.task("a", &["--run", "echo a > a", "--verify", "test -f a"]);
        let mut command = scene.command(&["--json", "--runtime", "shell", "--mates", "1"]);
        command
            .env("CCB_FAULT", format!("crash:{point}:1"))
            .stdout(std::fs::File::create(scene.log()).unwrap())
            .stderr(Stdio::null());
        let director = Director(command.spawn().unwrap());
        wait_until(LONG, "four agents to be lost before they ran", || {
            let log = std::fs::read_to_string(scene.log()).unwrap_or_default();
            log.matches("is begun again").count() >= 4
        });
        drop(director);
        let answer = scene.session(&["--mates", "1"]);
        assert_eq!(answer.code, Some(0), "{point}: {answer:?}");
        assert_eq!(scene.status(id), "completed");
        assert_eq!(attempts(&scene, id), Value::Null, "{point}");
        let named = &scene.file(id)["metadata"]["ccb"]["worktree"];
        assert_eq!(*named, Value::Null, "{point}");
        assert_eq!(scene.trees(), Vec::<String>::new(), "{point}");
        assert_eq!(scene.repo.tree_branches(), Vec::<String>::new(), "{point}");
    }
}

/// A `git` that comes first in the path and is killed the first two times at each command: before
/// its work, after it, or in the middle.
fn deadly_git(dir: &Path, how: &str) -> PathBuf {
    let bin = dir.join("bin");
    std::fs::create_dir_all(dir.join("met")).unwrap();
    std::fs::create_dir_all(&bin).unwrap();
    let path = std::env::var_os("PATH").unwrap();
    let real = std::env::split_paths(&path).map(|dir| dir.join("git"));
    let real = real.into_iter().find(|git| git.is_file()).unwrap();
    let script = format!(
        r#"#!/bin/sh
verb= skip= last=
for word in "$@"; do
    last=$word
    if [ -n "$skip" ]; then skip=; continue; fi
    case "$word" in
        -c) [ -n "$verb" ] || skip=1;;
        -*) ;;
        *) [ -n "$verb" ] || verb=$word;;
    esac
done
real={real}
met={met}/$verb
if mkdir "$met.1" 2>/dev/null || mkdir "$met.2" 2>/dev/null; then
    case {how} in
    after) "$real" "$@" > /dev/null 2>&1;;
    half)
        lock=
        case $verb in
        merge)
            "$real" diff --name-only HEAD "$last" | while read -r file; do
                mkdir -p "$(dirname "$file")"
                "$real" show "$last:$file" | head -c 1 > "$file"
            done
            lock=index.lock;;
        reset|update-index) lock=index.lock;;
        esac
        [ -z "$lock" ] || : > "$("$real" rev-parse --path-format=absolute --git-path "$lock")"
        ;;
    esac
    kill -9 $$
fi
exec "$real" "$@"
"#,
        real = real.display(),
        met = dir.join("met").display(),
    );
    let file = bin.join("git");
    std::fs::write(&file, script).unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&file, mode).unwrap();
    bin
}

#[test]
fn a_git_that_is_killed_is_no_failure_no_conflict_and_nothing_is_left() {
    for how in ["before", "after", "half"] {
        let scene = SessionScene::new(CCB);
        scene.repo.write("shared", "1\n2\n3\n4\n5\n6\n7\n");
        scene.repo.git(&["add", "."]);
        scene.repo.git(&["commit", "-qm", "shared"]);
        // Two tasks side by side, merged for the third, which builds on both.
        let edit = |line: u8| format!("sed -i 's/^{line}$/{line}x/' shared; echo {line} > f{line}");
        let verify = |line: u8| format!("grep -qx {line}x shared");
        for line in [1, 7] {
            scene.task("edit", &["--run", &edit(line), "--verify", &verify(line)]);
        }
        let both = "cat f1 f7 > both && grep -qx 1x shared && grep -qx 7x shared";
        let more = ["--run", both, "--verify", "test -s both"];
        let on = ["--blocked-by", "1", "--blocked-by", "2"];
        scene.task("both", &[&more[..], &on].concat());

        let bin = deadly_git(scene.home.path(), how);
        let path = std::env::var("PATH").unwrap();
        let mut command = scene.command(&["--json", "--runtime", "shell", "--mates", "2"]);
        command.env("PATH", format!("{}:{path}", bin.display()));
        let answer = harness::Answer::of(command.output().unwrap());
        assert_eq!(answer.code, Some(0), "{how}: {answer:?}");
        for id in 1..=3 {
            assert_eq!(scene.status(id), "completed", "{how}");
            assert_eq!(attempts(&scene, id), Value::Null, "{how}: {answer:?}");
        }
        for (file, text) in [("f1", "1\n"), ("f7", "7\n"), ("both", "1\n7\n")] {
            let landed = scene.repo.git(&["show", &format!("main:{file}")]);
            assert_eq!(landed, text, "{how}");
        }
        assert_eq!(scene.repo.git(&["status", "--porcelain"]), "", "{how}");
        let met = std::fs::read_dir(scene.home.path().join("met")).unwrap();
        let met: Vec<String> = met
            .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
            .collect();
        for verb in ["merge-tree", "worktree", "merge", "commit-tree"] {
            assert!(met.contains(&format!("{verb}.1")), "{how}: {met:?}");
        }
        assert_eq!(scene.trees(), Vec::<String>::new(), "{how}");
        assert_eq!(scene.repo.tree_branches(), Vec::<String>::new(), "{how}");
        assert_eq!(scene.repo.git_locks(), Vec::<PathBuf>::new(), "{how}");
        scene.repo.check_sound();
    }
}

/// Kills the host and the guard of the agent's own run.
const KILLER: &str = "h=$PPID; g=$(sed -n 's/^PPid:\\s*//p' /proc/$h/status); kill -9 $g $h";

/// Records in a task's file that its agents were lost this many times, long ago.
fn lost_before(scene: &SessionScene, id: u64, times: usize) {
    let mut task = scene.file(id);
    let one = |n: usize| {
        json!({
            "run": format!("a{n:016x}"), "status": "lost", "why": "its guard and its host died",
            "counts": false, "at": format!("2026-01-01T00:00:{n:02}.000Z"),
        })
    };
    task["metadata"]["ccb"]["attempts"] = (0..times).map(one).collect();
    std::fs::write(scene.home.task_file(id), task.to_string()).unwrap();
}

#[test]
fn an_agent_that_alone_kills_its_supervisors_every_time_is_given_up() {
    let scene = SessionScene::new(CCB);
    let blockers: Vec<String> = (0..10)
        .map(|n| scene.task("other", &["--run", &format!("echo {n} > f{n}")]))
        .map(|id| id.to_string())
        .collect();
    let mut more = vec!["--run", KILLER];
    for id in &blockers {
        more.extend(["--blocked-by", id]);
    }
    let killer = scene.task("killer", &more);
    lost_before(&scene, killer, 9);
    let answer = scene.session(&["--mates", "3"]);
    assert_eq!(answer.code, Some(1), "{answer:?}");
    let parked = scene.file(killer)["metadata"]["ccb"]["parked"]["reason"].clone();
    let words = "its agent was lost 10 times in a row, and no other was";
    assert!(
        parked.as_str().unwrap_or_default().starts_with(words),
        "{parked}"
    );
}

#[test]
fn an_agent_that_is_lost_while_it_runs_is_no_attempt_and_is_tried_again() {
    let scene = SessionScene::new(CCB);
    let once = scene.home.path().join("once");
    let run = format!(
        "if mkdir {}; then {KILLER}; sleep 600; fi; echo a > a",
        once.display()
    );
    let id = scene.task("a", &["--run", &run, "--verify", "test -f a"]);
    lost_before(&scene, id, 2);
    let answer = scene.session(&["--attempts", "1"]);
    assert_eq!(answer.code, Some(0), "{answer:?}");
    assert_eq!(scene.status(id), "completed");
    let lost = attempts(&scene, id);
    let all = lost.as_array().cloned().unwrap_or_default();
    assert_eq!(all.len(), 3, "{lost}");
    assert!(all.iter().all(|it| it["counts"] == false), "{lost}");
    assert_eq!(scene.trees(), Vec::<String>::new());
}
