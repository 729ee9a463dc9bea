//! Kills of any part: agents continue, or nothing of them is left, and the lead is notified once.

use std::process::{Child, Stdio};

use harness::fake::Pids;
use harness::runs::{LONG, await_none_left, kill};
use harness::script::{Grandchild, Script};
use harness::{TestHome, wait_until};
use rustix::process::Signal;

use crate::{CCB, FAKE_AGENT};

fn home() -> TestHome {
    let home = TestHome::in_memory(CCB);
    home.with_fake_runtime(FAKE_AGENT, "");
    home
}

#[test]
fn agents_outlive_whoever_started_them_and_tell_once() {
    let home = home();
    let (go, up) = (home.path().join("go"), home.path().join("up"));
    std::fs::create_dir(&up).unwrap();
    let mut starters: Vec<Child> = (0..10)
        .map(|n| {
            let ready = up.join(n.to_string());
            let script = Script::new().touch(ready).wait_file(&go).done("worked");
            let args = ["agent", "spawn", "--runtime", "fake", &script.to_prompt()];
            let mut command = home.command(&args);
            command.stdout(Stdio::null()).stderr(Stdio::null());
            command.spawn().unwrap()
        })
        .collect();
    let all_up = || std::fs::read_dir(&up).unwrap().count() == 10;
    wait_until(LONG, "ten agents to be up", all_up);
    for starter in &mut starters {
        starter.kill().unwrap();
        starter.wait().unwrap();
    }
    let listed = home.ok(&["agent", "list", "--alive"]);
    let agents = listed["agents"].as_array().unwrap();
    assert_eq!(agents.len(), 10, "a new process sees them all");
    assert!(home.notifications().is_empty());
    std::fs::write(&go, "").unwrap();
    let ids: Vec<&str> = agents
        .iter()
        .map(|a| a["agentId"].as_str().unwrap())
        .collect();
    for id in &ids {
        home.await_settled(id);
    }
    let mut told = home.notifications();
    told.sort();
    let mut expected: Vec<(String, String)> = ids
        .iter()
        .map(|id| ((*id).to_owned(), "completed".to_owned()))
        .collect();
    expected.sort();
    assert_eq!(told, expected, "each once");
}

/// Grandchildren in other sessions, a daemon, one that ignores signals.
fn family(pids: &std::path::Path) -> Script {
    Script::new()
        .pids(pids)
        .spawn_in_new_session()
        .daemon()
        .spawn(Grandchild {
            new_session: true,
            ignores_signals: true,
            width: 2,
            depth: 2,
            role: "stubborn".into(),
            ..Grandchild::default()
        })
        .ignore_signals()
}

/// Kills some of a run's processes while it works on a task; returns its home and id.
fn kill_while_busy(which: &[&str]) -> (TestHome, String) {
    let home = home();
    let task = home.create("job").to_string();
    let pids_dir = home.path().join("pids");
    std::fs::create_dir(&pids_dir).unwrap();
    let pids = Pids::new(&pids_dir);
    let up = home.path().join("up");
    let script = family(&pids_dir).touch(&up).hang();
    let id = home.spawn_fake(&script, &["--task", &task]);
    wait_until(LONG, "the family to be there", || up.exists());
    home.await_run(&id, "running");
    assert!(pids.left().len() >= 9, "{:?}", pids.left());
    assert_eq!(
        home.ok(&["task", "show", &task])["task"]["status"],
        "in_progress"
    );
    // At once for all they know: a stopped process does nothing about the other.
    for process in which {
        kill(home.run_process(&id, process), Signal::STOP);
    }
    for process in which {
        kill(home.run_process(&id, process), Signal::KILL);
    }
    if which.len() == 2 {
        // A kill takes a moment; then only the next command is left to clean up.
        let alive = home.run_dir(&id).join("alive.lock");
        wait_until(LONG, "both to be gone", || {
            !store::lock::is_held(&alive).unwrap()
        });
        home.ok(&["task", "list"]);
    }
    home.await_settled(&id);
    await_none_left(&pids);
    (home, id)
}

fn check_lost(home: &TestHome, id: &str) {
    let meta = home.run_meta(id);
    assert_eq!(meta["state"], "lost", "{meta}");
    let task = &home.ok(&["task", "show", "1"])["task"];
    assert_eq!(task["status"], "pending", "{task}");
    assert!(task.get("owner").is_none(), "{task}");
    assert_eq!(home.notifications(), [(id.to_owned(), "lost".to_owned())]);
    // Another look changes nothing.
    home.ok(&["agent", "list"]);
    assert_eq!(home.notifications().len(), 1);
}

#[test]
fn the_host_is_killed() {
    let (home, id) = kill_while_busy(&["host"]);
    check_lost(&home, &id);
    assert_eq!(home.run_exit(&id).unwrap()["by"], "guard");
}

#[test]
fn the_guard_is_killed() {
    let (home, id) = kill_while_busy(&["guard"]);
    check_lost(&home, &id);
    assert_eq!(home.run_exit(&id).unwrap()["by"], "host");
}

#[test]
fn host_and_guard_are_killed() {
    let (home, id) = kill_while_busy(&["host", "guard"]);
    check_lost(&home, &id);
    assert_eq!(home.run_exit(&id).unwrap()["by"], "sweep");
}

#[test]
fn the_agent_itself_is_killed() {
    let home = home();
    let pids_dir = home.path().join("pids");
    std::fs::create_dir(&pids_dir).unwrap();
    let up = home.path().join("up");
    let script = family(&pids_dir).say("half of it").touch(&up).hang();
    let id = home.spawn_fake(&script, &[]);
    wait_until(LONG, "the agent to be up", || up.exists());
    home.await_run(&id, "running");
    kill(home.run_process(&id, "pid"), Signal::KILL);
    home.await_settled(&id);
    await_none_left(&Pids::new(&pids_dir));
    let exit = home.run_exit(&id).unwrap();
    assert_eq!(exit["status"], "failed");
    assert_eq!(exit["result"], "half of it", "what there was is passed on");
    assert_eq!(home.notifications(), [(id, "failed".to_owned())]);
}

#[test]
fn a_daemon_that_hides_goes_with_its_supervisor() {
    for which in ["host", "guard"] {
        let home = home();
        let pids_dir = home.path().join("pids");
        std::fs::create_dir(&pids_dir).unwrap();
        let up = home.path().join("up");
        let script = Script::new()
            .pids(&pids_dir)
            .hidden_daemon()
            .touch(&up)
            .hang();
        let id = home.spawn_fake(&script, &[]);
        wait_until(LONG, "the daemon to be up", || up.exists());
        home.await_run(&id, "running");
        kill(home.run_process(&id, which), Signal::KILL);
        home.await_settled(&id);
        await_none_left(&Pids::new(&pids_dir));
    }
}

#[test]
fn what_an_agent_leaves_behind_is_ended_when_it_has_done_its_work() {
    let home = home();
    let pids_dir = home.path().join("pids");
    std::fs::create_dir(&pids_dir).unwrap();
    let id = home.spawn_fake(&family(&pids_dir).hidden_daemon().done("fine"), &[]);
    home.await_settled(&id);
    assert_eq!(home.run_exit(&id).unwrap()["status"], "completed");
    let pids = Pids::new(&pids_dir);
    assert!(pids.all().len() >= 9);
    assert!(pids.left().is_empty(), "before the notification");
}

#[test]
fn a_stopped_host_does_not_keep_anybody_from_stopping_the_agent() {
    let home = home();
    let pids_dir = home.path().join("pids");
    std::fs::create_dir(&pids_dir).unwrap();
    let id = home.spawn_fake(&Script::new().pids(&pids_dir).hang(), &[]);
    home.await_run(&id, "running");
    kill(home.run_process(&id, "host"), Signal::STOP);
    let answer = home.ok(&["agent", "stop", &id, "--grace", "10"]);
    assert_eq!(answer["agent"]["status"], "killed");
    home.await_settled(&id);
    await_none_left(&Pids::new(&pids_dir));
    assert_eq!(home.notifications(), [(id, "killed".to_owned())]);
}
