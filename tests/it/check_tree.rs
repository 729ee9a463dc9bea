//! The checks of merges and sessions in check worktrees: the leftovers of a kill, the words of a
//! failure, and that no check worktree is kept. The worktrees themselves are tested in
//! `worktrees/tests/it/check_tree.rs`.

use std::process::Stdio;

use harness::runs::{LONG, kill};
use harness::team_session::SessionScene;
use harness::{Fan, Workplace, git, wait_until, write};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::CCB;

#[test]
fn a_killed_merge_leaves_nothing_that_the_next_one_minds() {
    let at = Workplace::new(CCB);
    at.ok(&["worktree", "create", "x"]);
    write(&at.repo.tree("x").join("ours"), "ours");
    git(&at.repo.tree("x"), &["add", "."]);
    git(&at.repo.tree("x"), &["commit", "-qm", "ours"]);
    let pid = at.repo.beside("pid");
    // `tail` ends when it has no reader any more; this check outlives the merge.
    let hangs = format!(
        "echo $$ > {0}.new; mv {0}.new {0}; exec tail -f /dev/null > /dev/null 2>&1",
        pid.display()
    );
    let mut merge = at
        .command(&["worktree", "merge", "x", "--check", &hangs])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    wait_until(LONG, "the check to run", || pid.exists());
    merge.kill().unwrap();
    merge.wait().unwrap();
    let first = at.repo.tree("ccb-check-1");
    assert!(first.exists());
    let check = format!("test -e ours && test \"$PWD\" != {}", first.display());
    at.ok(&["worktree", "merge", "x", "--check", &check]);
    let shell: i32 = std::fs::read_to_string(&pid)
        .unwrap()
        .trim()
        .parse()
        .unwrap();
    kill(shell, Signal::KILL);
    wait_until(LONG, "the tree to be gone", || {
        at.repo.trees().drop_check_trees(false).unwrap();
        at.repo.trees().check_trees().is_empty()
    });
    at.repo.check_sound();
}

/// A session of one mate with these settings; its tasks one after the other.
fn session(settings: &Value, tasks: &[(&str, &str)], more: &[&str]) -> (SessionScene, Vec<Value>) {
    let scene = SessionScene::new(CCB);
    scene.home.settings(&settings.to_string());
    let ids: Vec<u64> = tasks
        .iter()
        .map(|(run, verify)| scene.task("do it", &["--run", run, "--verify", verify]))
        .collect();
    let answer = scene.session(&[&["--mates", "1", "--attempts", "1"], more].concat());
    assert!(matches!(answer.code, Some(0 | 1)), "{answer:?}");
    let files = ids.iter().map(|id| scene.file(*id)).collect();
    (scene, files)
}

#[test]
fn the_checks_of_a_session_share_a_tree_that_is_gone_at_the_end() {
    let verify = "test -e ready.ignored && test \"$PWD\" = \"$CCB_WORKTREE\" &&
        test -e \"$CCB_MAIN_TREE/.git\" && test -d \"$TMPDIR\" && echo $PWD >> seen.ignored &&
        wc -l < seen.ignored >> \"$CCB_SCRATCHPAD/seen\"; echo litter > readme";
    let settings = json!({"worktree": {"setup": "echo 1 > ready.ignored"}});
    let tasks = [("echo 1 > one", verify), ("echo 2 > two", verify)];
    let (scene, files) = session(&settings, &tasks, &[]);
    for task in &files {
        assert_eq!(task["status"], "completed", "{task}");
        let check = &task["metadata"]["ccb"]["result"]["check"];
        assert_eq!(
            (&check["passed"], &check["place"]),
            (&true.into(), &"commit".into())
        );
    }
    let seen = std::fs::read_to_string(scene.home.team_dir().join("scratchpad/seen")).unwrap();
    let seen: Vec<&str> = seen.split_whitespace().collect();
    assert_eq!(seen.first(), Some(&"1"));
    assert_eq!(
        seen.get(1),
        Some(&"2"),
        "the second check finds what the first built"
    );
    assert_eq!(scene.repo.trees().check_trees(), Vec::<String>::new());
    // Changes by a check are neither blamed on the task nor part of it.
    assert_eq!(scene.repo.git(&["show", "HEAD:readme"]), "one\n");
}

#[test]
fn a_host_that_is_killed_during_its_check_costs_nothing() {
    let scene = SessionScene::new(CCB);
    let verify = "test -e \"$CCB_SCRATCHPAD/host\" && test -e one && exit 0
        echo half > half.ignored; echo $PPID > \"$CCB_SCRATCHPAD/new\"
        mv \"$CCB_SCRATCHPAD/new\" \"$CCB_SCRATCHPAD/host\"; exec tail -f /dev/null";
    let id = scene.task("do it", &["--run", "echo 1 > one", "--verify", verify]);
    let mut director = scene.start(&["--mates", "1", "--attempts", "1"]);
    let host = scene.home.team_dir().join("scratchpad/host");
    wait_until(LONG, "the check to run", || host.exists());
    let pid = std::fs::read_to_string(&host).unwrap();
    kill(pid.trim().parse().unwrap(), Signal::KILL);
    assert_eq!(scene.await_end(&mut director), Some(0));
    let check = &scene.file(id)["metadata"]["ccb"]["result"]["check"];
    assert_eq!(check["place"], "commit", "{check}");
    assert_eq!(scene.repo.git(&["show", "HEAD:one"]), "1\n");
    assert_eq!(scene.repo.trees().check_trees(), Vec::<String>::new());
    scene.await_nobody();
}

#[test]
fn a_failed_check_says_what_the_agent_hid_from_git() {
    let hides = "git update-index --assume-unchanged readme; echo fixed > readme
        echo 1 > key.ignored; mkdir -p build; echo 1 > build/out; echo x > changed";
    let verify = "mkdir -p build; grep -q fixed readme && test -e key.ignored";
    let (_, files) = session(
        &json!({"worktree": {"privateGit": false}}),
        &[(hides, verify)],
        &[],
    );
    let why = files[0]["metadata"]["ccb"]["parked"]["reason"].as_str();
    let why = why.unwrap_or_else(|| panic!("{}", files[0]));
    let words = "2 files of the worktree are hidden from git, so the commit that was checked \
        does not have them: readme (assume-unchanged), key.ignored (ignored)";
    assert!(why.contains(words), "{why}");
}

#[test]
fn a_set_up_that_fails_before_the_check_is_said_to_be_that() {
    let set_up = "case $CCB_WORKTREE in *ccb-check*) echo no network; exit 3;; esac";
    let settings = json!({"worktree": {"setup": set_up}});
    let (scene, files) = session(&settings, &[("echo 1 > one", "true")], &[]);
    let why = files[0]["metadata"]["ccb"]["parked"]["reason"].to_string();
    assert!(
        why.contains("the set-up") && why.contains("no network"),
        "{why}"
    );
    assert_eq!(scene.repo.trees().check_trees(), Vec::<String>::new());
}

#[test]
fn a_check_without_isolation_runs_in_place_and_says_so() {
    let scene = SessionScene::new(CCB);
    let id = scene.task(
        "here",
        &["--run", "echo 1 > one", "--verify", "test -e one"],
    );
    let answer = scene.run(&["--runtime", "shell", "--no-worktrees", "--mates", "1"]);
    assert_eq!(answer.code, Some(0), "{answer:?}");
    assert!(
        answer.stderr.contains("done, checked in place"),
        "{answer:?}"
    );
    let task = scene.file(id);
    assert_eq!(
        task["metadata"]["ccb"]["result"]["check"]["place"], "in place",
        "{task}"
    );

    let fan = Fan::new(CCB);
    fan.plan(&json!({"tasks": [
        {"id": "here", "run": "echo 1 > here", "verify": "test -f here", "isolation": "none"},
        {"id": "apart", "run": "echo 1 > apart", "verify": "test -f apart"},
    ]}));
    let (code, report) = fan.run(&[]);
    assert_eq!(code, Some(0), "{report}");
    let place = |at: usize| report["tasks"][at]["check"]["place"].clone();
    assert_eq!(
        (place(0), place(1)),
        ("in place".into(), "commit".into()),
        "{report}"
    );
    let summary = fan.read("report.md");
    assert!(summary.contains("checked in place"), "{summary}");
}
