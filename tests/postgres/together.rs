//! Sessions and plans on a board that other machines work on too.

use std::process::{Command, Stdio};

use harness::{git, wait_until};
use serde_json::{Value, json};

use crate::site::{LIMIT, Machine, Site, ccb, create, row, tasks};

/// A session of the lead that lands finished work.
fn session(lead: &Machine, merge: &str) -> Command {
    let session = ["--json", "--runtime", "shell", "--merge", merge];
    let mut command = lead.command(&[&session[..], &["--mates", "2"]].concat());
    command.current_dir(lead.home.join("clone"));
    command
}

/// A task for machines with the label `far`.
fn create_far(lead: &Machine, number: usize, seconds: usize) {
    let run = format!("sleep {seconds} && mkdir -p done && echo far > done/far-{number}");
    let subject = format!("far away {number}");
    lead.json(&["task", "create", &subject, "--run", &run, "--needs", "far"]);
}

/// Starts a worker that lands nothing, and waits until others know of it.
fn start_far(worker: &mut Machine, lead: &Machine) {
    let (remote, name) = (worker.remote.clone(), worker.name.clone());
    let usual = ["--json", "worker", "--repo", remote.to_str().unwrap()];
    let more = ["--name", &name, "--runtime", "shell", "--label", "far"];
    let mut command = worker.command(&[&usual[..], &more, &["--slots", "1"]].concat());
    worker.worker = Some(command.stdout(Stdio::null()).spawn().unwrap());
    wait_until(LIMIT, "the worker", || {
        let board = lead.json(&["board", "show"]);
        board["board"]["workers"][0]["name"] == name.as_str()
    });
}

fn on_main(lead: &Machine, file: &str) -> String {
    let shown = format!("main:{file}");
    git(&lead.home.join("clone"), &["show", &shown])
        .trim()
        .to_owned()
}

#[test]
fn a_session_lands_what_workers_on_other_machines_did() {
    let Some(site) = Site::new() else { return };
    let lead = site.machine("lead", site.server.port());
    lead.clone();
    // They take longer than everything the session does itself, and come one after the other.
    create_far(&lead, 1, 2);
    create_far(&lead, 2, 1);
    create(&lead, &[row(3, None)]);
    let mut worker = site.machine("one", site.server.port());
    start_far(&mut worker, &lead);
    let output = session(&lead, "auto").output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    for (file, text) in [
        ("done/far-1", "far"),
        ("done/far-2", "far"),
        ("done/3", "3"),
    ] {
        assert_eq!(on_main(&lead, file), text);
    }
    // A second session of the team, from another machine, would land the same again.
    let owner = |task: &Value| task["owner"].as_str().unwrap_or_default().to_owned();
    let owners: Vec<String> = tasks(&lead).iter().map(owner).collect();
    assert_eq!(owners[..2], ["one-1", "one-1"], "{owners:?}");
}

#[test]
fn what_another_machine_did_is_shown_and_landed_by_hand() {
    let Some(site) = Site::new() else { return };
    let lead = site.machine("lead", site.server.port());
    let clone = lead.clone();
    create_far(&lead, 1, 0);
    // No agent here can do it, and there is no other machine.
    let output = session(&lead, "never").output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(1), "{said}");
    let mut worker = site.machine("one", site.server.port());
    start_far(&mut worker, &lead);
    wait_until(LIMIT, "the worker's work", || {
        tasks(&lead)[0]["status"] == "completed"
    });
    // The machine that lands it fetches it; here it is not needed any more.
    wait_until(LIMIT, "the worktree to go", || worker.trees().is_empty());
    worker.lose_power();
    let here = |args: &[&str]| {
        let output = lead.command(args).current_dir(&clone).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{args:?}: {output:?}");
        text
    };
    assert!(here(&["diff", "1"]).contains("+far"), "the work is shown");
    let planned = here(&["--json", "land", "--all", "--dry-run"]);
    assert!(planned.contains("far away 1"), "{planned}");
    here(&["land", "1"]);
    assert_eq!(on_main(&lead, "done/far-1"), "far");
    let output = lead.command(&["land", "1"]).current_dir(&clone).output();
    let refused = String::from_utf8_lossy(&output.unwrap().stderr).into_owned();
    assert!(refused.contains("is on main already"), "{refused}");
}

#[test]
fn a_plan_is_shared_by_everybody_who_runs_it_and_one_writes_the_report() {
    let Some(site) = Site::new() else { return };
    let machines: Vec<Machine> = (0..3)
        .map(|n| site.machine(&format!("job{n}"), site.server.port()))
        .collect();
    let plan = json!({"v": 1, "name": "shared", "tasks": (0..12).map(|n| json!({
        "id": format!("t{n}"), "subject": format!("task {n}"),
        "run": format!("mkdir -p done && echo {n} >> done/{n}"),
        "verify": format!("test \"$(wc -l < done/{n})\" = 1"),
    })).collect::<Vec<_>>()});
    let mut jobs = Vec::new();
    for machine in &machines {
        let clone = machine.clone();
        std::fs::write(clone.join("plan.json"), plan.to_string()).unwrap();
        let mut command = Command::new(ccb());
        let args = [
            "--json",
            "fanout",
            "plan.json",
            "--jobs",
            "2",
            "--out",
            "../out",
        ];
        let own = machine.command(&[]);
        for (name, value) in own.get_envs() {
            command.env(name, value.unwrap_or_default());
        }
        command.args(args).current_dir(&clone).stdin(Stdio::null());
        let job = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        jobs.push(job);
    }
    let mut reports = 0;
    let mut agents = 0;
    for (job, machine) in jobs.into_iter().zip(&machines) {
        let output = job.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        let lines = String::from_utf8_lossy(&output.stdout).into_owned();
        let end: Value = serde_json::from_str(lines.lines().next_back().unwrap()).unwrap();
        let tasks = end["report"]["tasks"].as_array().unwrap().clone();
        assert_eq!(tasks.len(), 12);
        agents += lines
            .lines()
            .filter(|line| line.contains("\"started\""))
            .count();
        let written = machine.home.join("out/report.json").exists();
        reports += usize::from(written);
        if written {
            let files = std::fs::read_dir(machine.home.join("out"))
                .unwrap()
                .flatten();
            let patch = |name: &std::ffi::OsStr| name.to_string_lossy().ends_with(".patch");
            let patches = files.filter(|entry| patch(&entry.file_name()));
            assert_eq!(patches.count(), 12);
        }
    }
    assert_eq!(reports, 1, "one of them writes the report");
    assert_eq!(agents, 12, "each task is done once");
}
