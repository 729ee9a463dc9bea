//! Agents that share a process and are idle sleep: they keep no thread, and nothing differs when
//! they continue.

use std::io::Write;
use std::time::{Duration, Instant};

use harness::model::{Step, prompt};
use harness::runs::{LONG, kill};
use harness::{Answer, NativeTeam, wait_until};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::mates::{await_nothing_left, guard, process, team};

/// Tests that wait until an agent has no host divide by this the time until the agent falls asleep and
/// the time until its host lets go of it.
const HASTE: u32 = 10;
/// Tests of an agent that sleeps and still has its host keep both times.
const USUAL: u32 = 1;

/// Starts the teammate `ann` with this script; her id.
fn start(team: &NativeTeam, haste: u32, steps: &[Step]) -> String {
    start_with(team, haste, &[], steps)
}

fn start_with(team: &NativeTeam, haste: u32, more: &[&str], steps: &[Step]) -> String {
    team.ok(&["team", "create", "board"]);
    let mut how = vec!["--json", "agent", "spawn", "--runtime", "native"];
    how.extend(["--background", "--name", "ann"]);
    how.extend(["--permission-mode", "bypassPermissions"]);
    how.extend(more);
    let order = prompt("Begin.", steps);
    how.push(&order);
    let mut spawn = team.command(&how);
    spawn.env("CCB_FAULT_HASTE", haste.to_string());
    let answer = Answer::of(spawn.output().unwrap());
    assert_eq!(answer.code, Some(0), "{answer:?}");
    let started = answer.json();
    let id = started["agent"]["agentId"].as_str().unwrap().to_owned();
    team.home.await_run(&id, "idle");
    id
}

/// True if an agent of the process has a thread.
fn is_awake(team: &NativeTeam) -> bool {
    has_thread(team, &["mate"])
}

fn has_thread(team: &NativeTeam, called: &[&str]) -> bool {
    let Some(process) = process(team) else {
        return false;
    };
    let threads = std::fs::read_dir(format!("/proc/{process}/task")).unwrap();
    let names = threads.flatten().map(|thread| {
        let name = std::fs::read_to_string(thread.path().join("comm"));
        name.unwrap_or_default()
    });
    names.into_iter().any(|name| called.contains(&name.trim()))
}

fn await_sleep(team: &NativeTeam) {
    wait_until(LONG, "the agent to fall asleep", || !is_awake(team));
}

/// Waits until the host has released an agent, some seconds after it fell asleep.
fn await_no_host(team: &NativeTeam) {
    wait_until(LONG, "the agent to do without a host", || {
        process(team).is_some() && !has_thread(team, &["mate", "host"])
    });
}

/// Waits until the agent has a host in another process: before that, a process without a thread of a
/// host does not say that the host has let go of the agent.
fn await_other_host(team: &NativeTeam, id: &str, before: i32) {
    wait_until(LONG, "a host in another process", || {
        let host = &team.home.run_meta(id)["host"]["pid"];
        host.as_i64().is_some_and(|host| host != i64::from(before))
    });
}

/// The beginning of requests.
fn fixed(body: &Value) -> (Value, Value, Value) {
    let first = body["messages"][0]["content"][0]["text"].clone();
    (body["system"].clone(), body["tools"].clone(), first)
}

#[test]
fn one_that_sleeps_goes_on_with_all_it_knew() {
    goes_on_with_all_it_knew(USUAL, await_sleep);
}

#[test]
fn one_without_a_host_goes_on_with_all_it_knew() {
    goes_on_with_all_it_knew(HASTE, await_no_host);
}

fn goes_on_with_all_it_knew(haste: u32, await_rest: fn(&NativeTeam)) {
    let team = team(&json!({}));
    let file = team.repo.main().join("note.txt");
    std::fs::write(&file, "one\n").unwrap();
    let long = "many words ".repeat(4000);
    let reads = Step::tool("Read", json!({ "file_path": file }));
    let id = start(&team, haste, &[reads, Step::text(&long)]);
    await_rest(&team);
    // Instructions that have changed meanwhile would make the service's cache useless.
    std::fs::write(team.repo.main().join("CLAUDE.md"), "Other words.\n").unwrap();
    let before = team.requests();
    let change = json!({ "file_path": file, "old_string": "one", "new_string": "two" });
    let again = prompt(
        "AGAIN",
        &[Step::tool("Edit", change), Step::text("changed")],
    );
    team.ok(&["agent", "send", "ann", &again]);
    wait_until(LONG, "the file to be changed", || {
        std::fs::read_to_string(&file).unwrap() == "two\n"
    });
    wait_until(LONG, "both answers", || {
        team.requests().len() == before.len() + 2
    });
    let after = &team.requests()[before.len()];
    let last = &before.last().unwrap().body;
    assert_eq!(fixed(&after.body), fixed(last));
    let said = after.body["messages"].as_array().unwrap();
    assert!(said.len() > last["messages"].as_array().unwrap().len());
    team.home.await_run(&id, "idle");
    await_rest(&team);
    team.ok(&["agent", "stop", "ann"]);
    await_nothing_left(&team);
    let exit = team.home.run_exit(&id).unwrap();
    assert_eq!(exit["status"], "killed", "{exit}");
}

#[test]
fn one_that_is_stopped_in_its_sleep_keeps_its_last_words() {
    keeps_its_last_words(USUAL, await_sleep);
}

#[test]
fn one_that_is_stopped_without_a_host_keeps_its_last_words() {
    keeps_its_last_words(HASTE, await_no_host);
}

fn keeps_its_last_words(haste: u32, await_rest: fn(&NativeTeam)) {
    let team = team(&json!({}));
    let long = "many words ".repeat(4000);
    let id = start(&team, haste, &[Step::text(&long)]);
    await_rest(&team);
    let asked = team.requests().len();
    team.ok(&["agent", "stop", "ann"]);
    await_nothing_left(&team);
    let exit = team.home.run_exit(&id).unwrap();
    assert_eq!(exit["result"].as_str().unwrap().trim(), long.trim());
    assert_eq!(team.requests().len(), asked);
}

#[test]
fn one_with_a_command_in_the_background_stays_awake() {
    let team = team(&json!({}));
    let command = json!({ "command": "echo still here", "run_in_background": true });
    let id = start(
        &team,
        USUAL,
        &[Step::tool("Bash", command), Step::text("done")],
    );
    let idle = Instant::now();
    // Nothing may happen for longer than it takes to fall asleep.
    wait_until(LONG, "some seconds to pass", || {
        idle.elapsed() > Duration::from_secs(8)
    });
    assert!(is_awake(&team));
    let look = Step::tool("BashOutput", json!({ "bash_id": "bash_1" }));
    let order = prompt("LOOK", &[look, Step::text("seen")]);
    team.ok(&["agent", "send", "ann", &order]);
    wait_until(LONG, "the output", || {
        let last = team.requests().pop().map(|last| last.body.to_string());
        last.is_some_and(|last| last.contains("LOOK") && last.contains("still here\\n"))
    });
    team.home.await_run(&id, "idle");
    team.ok(&["agent", "stop", "ann"]);
    await_nothing_left(&team);
}

/// Without a host the process itself, and the guard, still supervise it.
#[test]
fn one_without_a_host_survives_its_process_and_ends_with_its_guard() {
    let team = team(&json!({}));
    let id = start(&team, HASTE, &[Step::text("first")]);
    await_no_host(&team);
    let before = process(&team).expect("a process");
    kill(before, Signal::KILL);
    await_other_host(&team, &id, before);
    await_no_host(&team);
    let order = prompt("AGAIN", &[Step::text("second")]);
    team.ok(&["agent", "send", "ann", &order]);
    wait_until(LONG, "its answer", || {
        let last = team.requests().pop().map(|last| last.body.to_string());
        last.is_some_and(|last| last.contains("AGAIN") && last.contains("first"))
    });
    team.home.await_run(&id, "idle");
    await_no_host(&team);
    let asked = team.requests().len();
    kill(guard(&team).expect("a guard"), Signal::KILL);
    await_nothing_left(&team);
    let exit = team.home.run_exit(&id).unwrap();
    assert_eq!(exit["status"], "lost", "{exit}");
    assert_eq!(team.requests().len(), asked);
}

/// The host that stops it has not seen its last turn: the host before it has.
#[test]
fn one_whose_process_dies_while_it_waits_keeps_its_last_words() {
    let team = team(&json!({}));
    let long = "many words ".repeat(4000);
    let id = start(&team, USUAL, &[Step::text(&long)]);
    let before = process(&team).expect("a process");
    kill(before, Signal::KILL);
    await_other_host(&team, &id, before);
    team.home.await_run(&id, "idle");
    let asked = team.requests().len();
    team.ok(&["agent", "stop", "ann"]);
    await_nothing_left(&team);
    let exit = team.home.run_exit(&id).unwrap();
    assert_eq!(exit["status"], "killed", "{exit}");
    assert_eq!(exit["result"].as_str().unwrap().trim(), long.trim());
    assert_eq!(team.requests().len(), asked);
}

/// A limit on its time holds, although no process rings at its end.
#[test]
fn one_without_a_host_ends_when_its_time_is_over() {
    let team = team(&json!({}));
    let id = start_with(&team, HASTE, &["--deadline", "30s"], &[Step::text("first")]);
    await_no_host(&team);
    let asked = team.requests().len();
    wait_until(LONG, "its end", || team.home.run_exit(&id).is_some());
    let exit = team.home.run_exit(&id).unwrap();
    assert_eq!(exit["status"], "failed", "{exit}");
    assert!(exit["error"].as_str().unwrap().contains("limit"), "{exit}");
    assert_eq!(team.requests().len(), asked);
    await_nothing_left(&team);
}

/// A ring for all (at the end of the team's pause, say) gives it a host, and that hears it once.
#[test]
fn one_without_a_host_that_is_rung_for_nothing_sleeps_on() {
    let team = team(&json!({}));
    let id = start(&team, HASTE, &[Step::text("first")]);
    await_no_host(&team);
    let asked = team.requests().len();
    let path = team.home.team_dir().join("runs").join(&id).join("control");
    let mut bell = std::fs::File::options()
        .read(true)
        .write(true)
        .open(path)
        .unwrap();
    bell.write_all(b"!").unwrap();
    wait_until(LONG, "the ring to be heard", || {
        rustix::io::ioctl_fionread(&bell).unwrap() == 0
    });
    await_no_host(&team);
    assert_eq!(team.requests().len(), asked);
    team.ok(&["agent", "stop", "ann"]);
    await_nothing_left(&team);
}
