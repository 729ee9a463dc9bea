//! Results that a person sends back while a session runs: they are done again, whatever the session
//! is about to do with them.

use std::process::Child;

use harness::runs::LONG;
use harness::team_session::SessionScene;
use harness::{let_go, wait_until, waiting};
use rustix::process::{Pid, Signal, kill_process};
use store::lock::FileLock;

use crate::CCB;

fn signal(session: &Child, signal: Signal) {
    let pid = i32::try_from(session.id()).unwrap();
    kill_process(Pid::from_raw(pid).unwrap(), signal).unwrap();
}

/// Stops the session's own process, not its agents, at a moment at which it has no lock that they
/// need.
fn freeze(scene: &SessionScene, session: &Child) {
    let list = scene.home.task_file(1).with_file_name(".lock");
    let account = scene.home.team_dir().join(".ccb/fleet.lock");
    wait_until(LONG, "the session to have no lock", || {
        signal(session, Signal::STOP);
        let is_free = |lock| matches!(FileLock::try_exclusive(lock), Ok(Some(_)));
        let free = is_free(&list) && is_free(&account);
        if !free {
            signal(session, Signal::CONT);
        }
        free
    });
}

/// The session hears of the end of the first attempt only when a person has reopened the task.
fn opened_before_the_session_knows(open: &[&str]) {
    let scene = SessionScene::new(CCB);
    let gate = waiting(scene.home.path(), "gate");
    // Only the first attempt waits.
    let mark = scene.home.path().join("mark");
    let mark = mark.display();
    let first = format!("touch {mark}; {gate}; echo 1 > one");
    let run = format!("if test -e {mark}; then echo 2 > two; else {first}; fi");
    scene.task("write one", &["--run", &run]);
    // Another task keeps the session busy.
    let other = waiting(scene.home.path(), "other");
    scene.task("wait", &["--run", &other]);
    let mut session = scene.start(&["--merge", "never", "--attempts", "1"]);
    harness::is_waiting(scene.home.path(), "gate");
    freeze(&scene, &session);
    let_go(scene.home.path(), "gate", "");
    scene.await_status(1, "completed");
    let opened = scene.run(open);
    assert_eq!(opened.code, Some(0), "{opened:?}");
    assert_eq!(scene.status(1), "pending");
    signal(&session, Signal::CONT);
    wait_until(LONG, "the second result", || {
        let task = scene.file(1);
        assert!(
            task["metadata"]["ccb"]["parked"].is_null(),
            "it is parked: {task}"
        );
        task["status"] == "completed"
    });
    let changed = scene.run(&["diff", "1", "--name-only"]);
    assert!(changed.stdout.contains("two\n"), "{changed:?}");
    let_go(scene.home.path(), "other", "");
    assert_eq!(scene.await_end(&mut session), Some(0));
}

#[test]
fn a_result_sent_back_before_its_session_knows_of_it_is_done_again() {
    opened_before_the_session_knows(&["reject", "1", "--feedback", "write two"]);
}

#[test]
fn a_task_opened_again_before_its_session_knows_that_it_is_done_is_done_again() {
    opened_before_the_session_knows(&["task", "update", "1", "--status", "pending"]);
}

/// The person decides while the check of the merged result runs: the rejected work is not on the
/// branch, and its replacement lands.
#[test]
fn a_result_sent_back_while_it_lands_does_not_land() {
    let scene = SessionScene::new(CCB);
    let run = "if test -e one; then echo 2 > two; else echo 1 > one; fi";
    scene.task("write one", &["--run", run]);
    let before = scene.repo.git(&["rev-parse", "main"]);
    let gate = waiting(scene.home.path(), "gate");
    let check = format!("if ! test -e two; then {gate}; fi");
    let mut session = scene.start(&["--merge", "auto", "--verify", &check]);
    harness::is_waiting(scene.home.path(), "gate");
    let answer = scene.run(&["reject", "1", "--feedback", "write two"]);
    assert_eq!(answer.code, Some(0), "{answer:?}");
    assert_eq!(scene.repo.git(&["rev-parse", "main"]), before);
    let_go(scene.home.path(), "gate", "");
    assert_eq!(scene.await_end(&mut session), Some(0));
    assert_eq!(scene.repo.git(&["show", "main:two"]), "2\n");
    let landed = scene.ok(&["undo", "--show"]);
    let all = landed["landings"].as_array().map_or(0, Vec::len);
    assert_eq!(all, 1, "{landed}");
}

/// A rejection is no failure: `--attempts` counts from there.
#[test]
fn the_attempts_after_a_rejection_are_counted_anew() {
    let scene = SessionScene::new(CCB);
    let run = "if test -e one; then echo 2 >> two; else echo 1 > one; fi";
    let check = "! test -e two || test $(wc -l < two) = 2";
    scene.task("write one", &["--run", run, "--verify", check]);
    let session = ["--merge", "never", "--attempts", "2"];
    assert_eq!(scene.session(&session).code, Some(0));
    scene.ok(&["reject", "1", "--feedback", "write two"]);
    let again = scene.session(&session);
    assert_eq!(again.code, Some(0), "{again:?}");
    assert_eq!(scene.status(1), "completed");
}
