//! Agents on ccb's own loop that share one process: they work like those with processes of their
//! own, continue when the process is killed, and one that misbehaves is ended alone.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

use harness::model::{Step, prompt};
use harness::runs::{LONG, kill, left_of};
use harness::{NativeTeam, wait_until};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::CCB;

/// A team whose agents share a process, with further settings.
pub(crate) fn team(more: &Value) -> NativeTeam {
    let team = NativeTeam::new(CCB);
    let mut settings =
        json!({ "agents": { "matesIn": "process", "stopGraceMs": 500, "sandbox": "off" } });
    for (key, value) in more.as_object().into_iter().flatten() {
        settings["agents"][key] = value.clone();
    }
    team.home.settings(&settings.to_string());
    team
}

/// Writes a file, then says that it is done.
fn writes(file: &str) -> String {
    let input = json!({ "file_path": file, "content": "x\n" });
    prompt("Write.", &[Step::tool("Write", input), Step::text("done")])
}

fn tasks(team: &NativeTeam, rows: &[Value]) {
    let text: Vec<String> = rows.iter().map(ToString::to_string).collect();
    let file = team.home.path().join("rows.jsonl");
    std::fs::write(&file, text.join("\n")).unwrap();
    team.ok(&["task", "create", "--from", file.to_str().unwrap()]);
}

/// A session without a lead that works through the board.
fn session(team: &NativeTeam, more: &[&str]) -> std::process::Command {
    let how = ["--json", "--runtime", "native", "--lead", "me"];
    let mut command = team.command(&[&how[..], more].concat());
    command.stdin(Stdio::null());
    command
}

fn spawn(team: &NativeTeam, order: &str) -> String {
    let how = [
        "agent",
        "spawn",
        "--runtime",
        "native",
        "--background",
        order,
    ];
    let started = team.ok(&how);
    started["agent"]["agentId"].as_str().unwrap().to_owned()
}

/// All runs of the team.
fn runs(team: &NativeTeam) -> BTreeMap<String, Value> {
    let dir = team.home.team_dir().join("runs");
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    let metas = entries.filter_map(|entry| {
        let text = std::fs::read(entry.path().join("meta.json")).ok()?;
        let id = entry.file_name().to_string_lossy().into_owned();
        Some((id, serde_json::from_slice(&text).ok()?))
    });
    metas.collect()
}

/// The end of each run.
fn exits(team: &NativeTeam) -> BTreeMap<String, Value> {
    let ids = runs(team).into_keys();
    ids.filter_map(|id| Some((id.clone(), team.home.run_exit(&id)?)))
        .collect()
}

/// The processes of the team's teammates: their guard, the process itself, keepers.
fn of_mates(team: &NativeTeam) -> Vec<(i32, String)> {
    let home = team.home.path().to_string_lossy().into_owned();
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let Ok(pid) = entry.file_name().to_string_lossy().parse() else {
            continue;
        };
        let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        let line = String::from_utf8_lossy(&line).replace('\0', " ");
        let ours = ["__mates ", "__mates_host ", "__keeper "];
        if line.contains(&home) && ours.iter().any(|role| line.contains(role)) {
            found.push((pid, line));
        }
    }
    found
}

pub(crate) fn process(team: &NativeTeam) -> Option<i32> {
    let mut all = of_mates(team).into_iter();
    all.find(|(_, line)| line.contains("__mates_host "))
        .map(|(pid, _)| pid)
}

pub(crate) fn guard(team: &NativeTeam) -> Option<i32> {
    let mut all = of_mates(team).into_iter();
    all.find(|(_, line)| line.contains("__mates "))
        .map(|(pid, _)| pid)
}

pub(crate) fn await_nothing_left(team: &NativeTeam) {
    wait_until(LONG, "the mates' processes to be gone", || {
        of_mates(team).is_empty()
    });
    for id in runs(team).keys() {
        assert_eq!(left_of(id), [""; 0], "of {id}");
    }
}

fn await_settled(team: &NativeTeam) {
    let active = team.home.team_dir().join("runs/.active");
    wait_until(LONG, "all runs to be settled", || {
        std::fs::read_dir(&active).map_or(0, Iterator::count) == 0
    });
}

fn await_end(mut session: Child) -> Option<i32> {
    let mut code = None;
    wait_until(LONG * 4, "the session to end", || {
        code = session.try_wait().unwrap();
        code.is_some()
    });
    code.and_then(|status| status.code())
}

#[test]
fn mates_share_one_process_and_work_checks_and_landings_are_as_always() {
    let team = NativeTeam::new(CCB);
    let rows: Vec<Value> = (1..=6)
        .map(|n| {
            let file = format!("f{n}.txt");
            json!({ "subject": format!("write {n}"), "description": writes(&file), "verify": format!("test -f {file}") })
        })
        .collect();
    tasks(&team, &rows);
    let output = session(
        &team,
        &["--mates", "3", "--mates-in", "process", "--merge", "auto"],
    );
    let answer = harness::Answer::of({ output }.output().unwrap());
    assert_eq!(answer.code, Some(0), "{answer:?}");
    for n in 1..=6 {
        let on_main = team.repo.git(&["show", &format!("main:f{n}.txt")]);
        assert_eq!(on_main, "x\n");
    }
    let runs = runs(&team);
    assert_eq!(runs.len(), 6);
    let mut hosts: Vec<i64> = runs
        .values()
        .map(|meta| meta["host"]["pid"].as_i64().unwrap())
        .collect();
    hosts.dedup();
    assert_eq!(hosts.len(), 1, "one process: {hosts:?}");
    for meta in runs.values() {
        assert_eq!(meta["state"], "completed", "{meta}");
        assert_eq!(meta["pid"], Value::Null, "no program of its own");
    }
    await_nothing_left(&team);
    assert_eq!(
        team.files_with(harness::NATIVE_KEY),
        [""; 0].map(PathBuf::from)
    );
    // The session is resumed as it was.
    tasks(
        &team,
        &[json!({ "subject": "more", "description": writes("more.txt") })],
    );
    let answer = harness::Answer::of(session(&team, &[]).output().unwrap());
    assert_eq!(answer.code, Some(0), "{answer:?}");
    let last = exits(&team).len();
    assert_eq!(last, 7);
    assert!(runs.len() < last);
    await_nothing_left(&team);
}

#[test]
fn an_agent_knows_who_it_is_in_its_commands_and_its_tools() {
    let team = team(&json!({}));
    let out = team.home.path().join("who");
    let command = format!(
        "{CCB} --json mail send team-lead hello; echo $? $CCB_AGENT > {}",
        out.display()
    );
    let steps = [
        Step::tool("Bash", json!({ "command": command })),
        Step::tool(
            "mcp__ccb__SendMessage",
            json!({ "to": "team-lead", "summary": "by tool", "message": "by tool" }),
        ),
        Step::text("done"),
    ];
    let mode = ["--permission-mode", "bypassPermissions"];
    team.ok(&["team", "create", "board"]);
    let order = prompt("Who.", &steps);
    let first = [
        "agent",
        "spawn",
        "--runtime",
        "native",
        "--wait",
        "--name",
        "ann",
    ];
    let started = team.ok(&[&first[..], &mode, &[order.as_str()]].concat());
    let id = started["agent"]["agentId"].as_str().unwrap().to_owned();
    assert_eq!(std::fs::read_to_string(out).unwrap(), "0 ann\n");
    let inbox = team.ok(&["mail", "inbox", "--all", "--as", "team-lead"]);
    let messages = inbox["messages"].as_array().unwrap();
    let from: Vec<&Value> = messages.iter().map(|message| &message["from"]).collect();
    assert!(
        from.iter().filter(|from| **from == "ann").count() >= 2,
        "{inbox}"
    );
    // A teammate that waits has no keeper: none of its commands runs.
    wait_until(LONG, "its keeper to go", || {
        !of_mates(&team)
            .iter()
            .any(|(_, line)| line.contains("__keeper "))
    });
    // One that waits when its process is killed continues to wait, without asking its model.
    let asked = team.requests().len();
    let first = process(&team).expect("a process");
    kill(first, Signal::KILL);
    wait_until(LONG, "another process", || {
        process(&team).is_some_and(|now| now != first)
    });
    team.home.await_run(&id, "idle");
    assert_eq!(team.requests().len(), asked);
    let again = prompt("AGAIN", &[Step::text("I know it.")]);
    team.ok(&["agent", "send", "ann", &again]);
    wait_until(LONG, "the message", || {
        let last = team
            .requests()
            .pop()
            .map(|request| request.body.to_string());
        last.is_some_and(|last| last.contains("AGAIN") && last.contains("Who."))
    });
    team.ok(&["agent", "stop", "ann"]);
    await_nothing_left(&team);
}

#[test]
fn a_killed_process_goes_on_with_every_agent_from_where_it_was() {
    let team = team(&json!({}));
    let gate = team.home.path().join("gate");
    let ids: Vec<String> = (0..3)
        .map(|n| {
            let file = format!("before-{n}.txt");
            let steps = [
                Step::tool("Write", json!({ "file_path": file, "content": "x\n" })),
                Step::text("done").wait_for(&gate),
            ];
            spawn(&team, &prompt(&format!("ORDER {n}"), &steps))
        })
        .collect();
    wait_until(LONG, "all first steps", || {
        (0..3).all(|n| team.repo.main().join(format!("before-{n}.txt")).exists())
    });
    wait_until(LONG, "all second requests", || team.requests().len() >= 6);
    let first = process(&team).expect("a process");
    kill(first, Signal::KILL);
    wait_until(LONG, "all to ask again", || team.requests().len() >= 9);
    assert_ne!(process(&team), Some(first));
    std::fs::write(&gate, "").unwrap();
    await_settled(&team);
    for id in &ids {
        let (meta, exit) = (team.home.run_meta(id), team.home.run_exit(id).unwrap());
        assert_eq!(exit["status"], "completed", "{exit}");
        assert_eq!(exit["life"], 1, "a waiting one notices nothing");
        assert_eq!(meta["restarts"], 1, "{meta}");
        let kept = team.home.run_dir(id).join("conversation.jsonl");
        let kept = std::fs::read_to_string(kept).unwrap();
        assert_eq!(
            kept.matches("\"tool_result\"").count(),
            1,
            "not done twice: {kept}"
        );
    }
    await_nothing_left(&team);
}

#[test]
fn what_an_agent_starts_has_processes_of_its_own() {
    let team = team(&json!({}));
    let agent = json!({
        "description": "wait", "subagent_type": "general-purpose", "prompt": writes("by-child.txt"),
    });
    let steps = [Step::tool("mcp__ccb__Agent", agent), Step::text("done")];
    let parent = spawn(&team, &prompt("Start.", &steps));
    await_settled(&team);
    assert!(team.repo.main().join("by-child.txt").exists());
    let runs = runs(&team);
    assert_eq!(runs.len(), 2, "{runs:?}");
    let hosts: Vec<&Value> = runs.values().map(|meta| &meta["host"]["pid"]).collect();
    assert_ne!(hosts[0], hosts[1], "{runs:?}");
    assert!(runs.contains_key(&parent));
    await_nothing_left(&team);
}

/// It waits for an agent that it has started, and both agents lose their processes.
#[test]
fn one_that_waits_for_what_it_started_ends_although_its_process_died() {
    let team = team(&json!({}));
    let gate = team.home.path().join("gate");
    let child = prompt("Wait.", &[Step::text("never").wait_for(&gate)]);
    let agent = json!({
        "description": "wait", "subagent_type": "general-purpose", "prompt": child,
        "run_in_background": true,
    });
    let steps = [Step::tool("mcp__ccb__Agent", agent), Step::text("done")];
    let parent = spawn(&team, &prompt("Start.", &steps));
    team.home.await_run(&parent, "idle");
    kill(process(&team).expect("a process"), Signal::KILL);
    await_settled(&team);
    std::fs::write(&gate, "").unwrap();
    let exit = team.home.run_exit(&parent).unwrap();
    assert_eq!(exit["status"], "completed", "{exit}");
    // It has heard of the end of the agent that it started, and answered that.
    let result = exit["result"].as_str().unwrap();
    assert!(result.contains("was lost"), "{exit}");
    assert_eq!(team.home.run_meta(&parent)["restarts"], 1);
    await_nothing_left(&team);
}

#[test]
fn a_killed_guard_takes_nothing_with_it_that_is_not_settled() {
    let team = team(&json!({}));
    let gate = team.home.path().join("gate");
    let id = spawn(
        &team,
        &prompt("Wait.", &[Step::text("done").wait_for(&gate)]),
    );
    wait_until(LONG, "the request", || !team.requests().is_empty());
    let guard = team.home.run_process(&id, "guard");
    kill(guard, Signal::KILL);
    await_settled(&team);
    let exit = team.home.run_exit(&id).unwrap();
    assert_eq!(exit["status"], "lost", "{exit}");
    await_nothing_left(&team);
}

#[test]
fn one_that_is_stopped_ends_with_all_its_commands_and_alone() {
    let team = team(&json!({}));
    let (gate, up) = (team.home.path().join("gate"), team.home.path().join("up"));
    let steps = [
        Step::tool("Bash", json!({ "command": long_command(&up) })),
        Step::text("never"),
    ];
    let mode = ["--permission-mode", "bypassPermissions", "--background"];
    let order = prompt("Run.", &steps);
    let how = ["agent", "spawn", "--runtime", "native"];
    let started = team.ok(&[&how[..], &mode, &[order.as_str()]].concat());
    let stopped = started["agent"]["agentId"].as_str().unwrap();
    let other = spawn(
        &team,
        &prompt("Wait.", &[Step::text("done").wait_for(&gate)]),
    );
    wait_until(LONG, "the command", || up.exists());
    // Root sees the owner of the keeper, too.
    assert!(left_of(stopped).len() >= 2, "{:?}", left_of(stopped));
    team.ok(&["agent", "stop", stopped]);
    assert_eq!(team.home.run_exit(stopped).unwrap()["status"], "killed");
    wait_until(LONG, "its commands to be gone", || {
        left_of(stopped).is_empty()
    });
    std::fs::write(&gate, "").unwrap();
    await_settled(&team);
    let exit = team.home.run_exit(&other).unwrap();
    assert_eq!(exit["status"], "completed", "{exit}");
    await_nothing_left(&team);
}

#[test]
fn what_a_killed_keeper_leaves_is_ended() {
    let team = team(&json!({}));
    let up = team.home.path().join("up");
    let command = long_command(&up);
    let steps = [
        Step::tool("Bash", json!({ "command": command })),
        Step::text("done"),
    ];
    let order = prompt("Run.", &steps);
    let how = ["agent", "spawn", "--runtime", "native", "--background"];
    let mode = ["--permission-mode", "bypassPermissions", order.as_str()];
    let started = team.ok(&[&how[..], &mode].concat());
    let id = started["agent"]["agentId"].as_str().unwrap();
    wait_until(LONG, "the command", || up.exists());
    let keeper = of_mates(&team)
        .into_iter()
        .find(|(_, line)| line.contains("__keeper "));
    kill(keeper.expect("a keeper").0, Signal::KILL);
    wait_until(LONG, "its commands to be gone", || left_of(id).is_empty());
    await_settled(&team);
    assert_eq!(team.home.run_exit(id).unwrap()["status"], "completed");
    await_nothing_left(&team);
}

/// Leaves a process behind in a session of its own, makes a file, and takes long.
fn long_command(up: &Path) -> String {
    let up = up.display();
    format!("(/usr/bin/setsid /bin/sleep 600 &) ; : > {up}; /bin/sleep 600")
}

/// Three tasks, one of whose agents comes to harm; the end of each run.
fn with_fault(fault: &str, more: &Value) -> (NativeTeam, BTreeMap<String, Value>) {
    let team = team(more);
    let rows: Vec<Value> = (1..=3)
        .map(|n| json!({ "subject": format!("write {n}"), "description": writes(&format!("f{n}.txt")) }))
        .collect();
    tasks(&team, &rows);
    let mut command = session(&team, &["--mates", "3", "--merge", "auto"]);
    let answer = harness::Answer::of(command.env("CCB_FAULT", fault).output().unwrap());
    assert_eq!(answer.code, Some(0), "{answer:?}");
    for n in 1..=3 {
        team.repo.git(&["show", &format!("main:f{n}.txt")]);
    }
    let exits = exits(&team);
    assert_eq!(exits.len(), 4, "one was tried again: {exits:?}");
    for meta in runs(&team).values() {
        assert_eq!(
            meta["restarts"],
            Value::Null,
            "others were not harmed: {meta}"
        );
    }
    await_nothing_left(&team);
    (team, exits)
}

fn failed(exits: &BTreeMap<String, Value>) -> Vec<String> {
    let failed = exits.values().filter(|exit| exit["status"] != "completed");
    failed
        .map(|exit| exit["error"].as_str().unwrap_or_default().to_owned())
        .collect()
}

#[test]
fn one_that_panics_is_ended_alone() {
    let (_team, exits) = with_fault("panic:mate.step:2", &json!({}));
    let failed = failed(&exits);
    assert_eq!(failed.len(), 1, "{exits:?}");
    assert!(failed[0].contains("a bug in ccb"), "{failed:?}");
}

#[test]
fn one_that_blocks_its_thread_is_ended_alone() {
    let (_team, exits) = with_fault("hang:mate.step:4", &json!({ "mateBlockedMs": 1500 }));
    let failed = failed(&exits);
    assert_eq!(failed.len(), 1, "{exits:?}");
    assert!(failed[0].contains("blocked its thread"), "{failed:?}");
}

#[test]
fn one_that_keeps_too_much_or_goes_in_circles_is_ended_alone() {
    let team = team(&json!({ "mateMaxBytes": 1024 * 1024 }));
    let mut settings: Value =
        serde_json::from_slice(&std::fs::read(team.home.path().join("ccb.json")).unwrap()).unwrap();
    // Larger than the limit on memory, so that nothing is cut before.
    settings["providers"] = json!({ "anthropic": {
        "kind": "anthropic", "baseUrl": team.model.url(), "keyEnv": "ANTHROPIC_API_KEY",
        "model": "claude-sonnet-5", "contextWindow": 10_000_000,
    } });
    team.home.settings(&settings.to_string());
    let lines: Vec<String> = (0..40_000).map(|n| format!("{n:0>99}")).collect();
    std::fs::write(team.repo.main().join("long.txt"), lines.join("\n")).unwrap();
    team.repo.git(&["add", "long.txt"]);
    team.repo.git(&["commit", "-qm", "long"]);
    let page = |n: u32| json!({ "file_path": "long.txt", "offset": n * 1000 + 1, "limit": 1000 });
    let much: Vec<Step> = (0..35).map(|n| Step::tool("Read", page(n))).collect();
    let same = || Step::tool("Glob", json!({ "pattern": "*.nothing" }));
    let circles: Vec<Step> = (0..60).map(|_| same()).collect();
    let rows = [
        json!({ "subject": "much", "description": prompt("Much.", &much) }),
        json!({ "subject": "circles", "description": prompt("Circles.", &circles) }),
        json!({ "subject": "fine", "description": writes("fine.txt") }),
    ];
    tasks(&team, &rows);
    let how = ["--mates", "3", "--merge", "auto", "--attempts", "1"];
    let answer = harness::Answer::of(session(&team, &how).output().unwrap());
    assert_eq!(answer.code, Some(1), "{answer:?}");
    assert_eq!(failed(&exits(&team)).len(), 2, "{answer:?}");
    assert_eq!(team.repo.git(&["show", "main:fine.txt"]), "x\n");
    let failed = failed(&exits(&team));
    assert_eq!(failed.len(), 2, "{failed:?}");
    let some = |words: &str| failed.iter().any(|error| error.contains(words));
    assert!(some("agents.mateMaxBytes"), "{failed:?}");
    assert!(some("same"), "{failed:?}");
    await_nothing_left(&team);
}

#[test]
fn twenty_mates_do_two_hundred_tasks_in_a_process_that_is_killed_three_times() {
    const TASKS: usize = 200;
    let team = team(&json!({}));
    let log = team.home.path().join("log");
    std::fs::write(&log, "").unwrap();
    let rows: Vec<Value> = (1..=TASKS)
        .map(|n| {
            let file = format!("f{n}.txt");
            let command = format!("echo {n} >> {}", log.display());
            let steps = [
                Step::tool("Write", json!({ "file_path": file, "content": "x\n" })),
                Step::tool("Bash", json!({ "command": command })),
                Step::text("done"),
            ];
            json!({ "subject": format!("write {n}"), "description": prompt("Write.", &steps) })
        })
        .collect();
    tasks(&team, &rows);
    let how = [
        "--mates",
        "20",
        "--no-worktrees",
        "--permission-mode",
        "bypassPermissions",
    ];
    let session = session(&team, &how)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let done = || std::fs::read_to_string(&log).unwrap().lines().count();
    for killed in 1..=3 {
        wait_until(LONG * 4, "some of the tasks", || {
            done() >= killed * TASKS / 5
        });
        let pid = process(&team).expect("a process");
        kill(pid, Signal::KILL);
        wait_until(LONG, "another process", || {
            process(&team).is_some_and(|now| now != pid)
        });
    }
    assert_eq!(await_end(session), Some(0));
    let listed = team.ok(&["task", "list", "--all"]);
    let listed = listed["tasks"].as_array().unwrap();
    assert_eq!(listed.len(), TASKS);
    assert!(
        listed.iter().all(|task| task["status"] == "completed"),
        "{listed:?}"
    );
    let exits = exits(&team);
    assert_eq!(failed(&exits), [""; 0]);
    assert_eq!(exits.len(), TASKS, "none had to begin anew");
    let mut lines: BTreeMap<String, usize> = BTreeMap::new();
    for line in std::fs::read_to_string(&log).unwrap().lines() {
        *lines.entry(line.to_owned()).or_default() += 1;
    }
    let twice: Vec<_> = lines.iter().filter(|(_, times)| **times > 1).collect();
    assert!(twice.is_empty(), "done twice: {twice:?}");
    let runs = runs(&team);
    let again = |meta: &&Value| meta["restarts"].as_u64().unwrap_or(0) > 0;
    assert!(
        runs.values().filter(again).count() > 0,
        "the kills hit an agent"
    );
    await_nothing_left(&team);
}

#[test]
fn only_native_mates_can_share_a_process() {
    let team = NativeTeam::new(CCB);
    let run = |args: &[&str]| team.run(args);
    let answer = run(&["--runtime", "shell", "--mates-in", "process"]);
    assert_eq!(answer.code, Some(2), "{answer:?}");
    assert!(
        answer
            .stderr
            .contains("only mates on native can share a process"),
        "{answer:?}"
    );
    assert!(answer.stderr.contains("--runtime native"), "{answer:?}");
    let answer = run(&["--runtime", "native", "--mates-in", "threads"]);
    assert_eq!(answer.code, Some(2), "{answer:?}");
    assert!(answer.stderr.contains("own, process"), "{answer:?}");
    team.home.settings(r#"{"agents":{"matesIn":"threads"}}"#);
    let answer = run(&["--runtime", "native"]);
    assert_eq!(answer.code, Some(2), "{answer:?}");
    assert!(answer.stderr.contains("agents.matesIn"), "{answer:?}");
}
