//! Teams whose agents are ccb itself, with a key and no other program.

use std::process::Stdio;

use harness::model::{ModelServer, Step, prompt};
use harness::runs::{LONG, left_of};
use harness::{Answer, NATIVE_KEY, NativeTeam, tools_of, wait_until};
use serde_json::{Value, json};

use crate::CCB;

/// One task's work: writes a file.
fn work(words: &str, file: &str, text: &str) -> String {
    let steps = [
        Step::tool("Write", json!({ "file_path": file, "content": text })),
        Step::text("done"),
    ];
    prompt(words, &steps)
}

/// A check without any program: the file's first line.
fn says(file: &str, text: &str) -> String {
    format!("read -r line < {file} && test \"$line\" = {text}")
}

fn heard(steps: &mut Vec<Step>) {
    steps.extend((0..8).map(|_| Step::text("I have heard.")));
}

/// With processes of their own, and in one process.
fn each_way(check: fn(&NativeTeam)) {
    for mates_in in ["own", "process"] {
        let team = NativeTeam::new(CCB);
        let settings = json!({ "agents": { "matesIn": mates_in } });
        team.home.settings(&settings.to_string());
        check(&team);
    }
}

fn nothing_of_the_key(team: &NativeTeam) {
    assert_eq!(
        team.files_with(NATIVE_KEY),
        [""; 0].map(std::path::PathBuf::from)
    );
}

#[test]
fn a_key_alone_plans_works_in_parallel_checks_and_lands() {
    each_way(plan_work_check_land);
}

fn plan_work_check_land(team: &NativeTeam) {
    let create = |subject: &str, file: &str, text: &str, verify: &str| {
        json!({
            "subject": subject, "description": work(subject, file, text),
            "metadata": { "ccb": { "verify": verify } },
        })
    };
    let (one, two) = (says("one.txt", "1"), says("two.txt", "2"));
    let both = format!("{one} && {two}");
    let tool = "mcp__ccb__TaskCreate";
    let mut steps = vec![
        Step::tool(tool, create("first", "one.txt", "1\n", &one))
            .and_tool(tool, create("second", "two.txt", "2\n", &two))
            .and_tool(tool, create("third", "three.txt", "3\n", &both)),
        Step::tool(
            "mcp__ccb__TaskUpdate",
            json!({ "taskId": "3", "addBlockedBy": ["1", "2"] }),
        ),
        Step::text("handed out"),
    ];
    heard(&mut steps);
    let order = prompt("Lead.", &steps);
    // No definition names a runtime.
    let answer = team.run(&["--json", "--mates", "2", &order]);
    assert_eq!(answer.code, Some(0), "{answer:?}");
    for (file, text) in [("one.txt", "1\n"), ("two.txt", "2\n"), ("three.txt", "3\n")] {
        assert_eq!(team.repo.git(&["show", &format!("main:{file}")]), text);
    }
    let end = answer.json_lines().pop().unwrap();
    assert_eq!(end["tasks"], json!({ "total": 3, "completed": 3 }), "{end}");
    assert_eq!(team.repo.git(&["status", "--porcelain"]), "");
    let agents = team.ok(&["agent", "list"]);
    let agents = agents["agents"].as_array().unwrap();
    assert_eq!(agents.len(), 4, "{agents:?}");
    assert!(
        agents.iter().all(|agent| agent["runtime"] == "native"),
        "{agents:?}"
    );
    nothing_of_the_key(team);
}

#[test]
fn a_coordinator_hands_out_hears_follows_up_and_the_result_is_on_the_branch() {
    let team = NativeTeam::new(CCB);
    let check = says("one.txt", "1");
    let order = format!(
        "Paths: one.txt, two.txt\nVerify: {check}\n{}",
        work("FIRST ORDER", "one.txt", "1\n")
    );
    let agent = json!({
        "description": "write the file", "subagent_type": "worker", "name": "first", "prompt": order,
    });
    let more = json!({
        "to": "first", "summary": "one more", "message": work("SECOND ORDER", "two.txt", "2\n"),
    });
    let mut steps = vec![
        Step::tool("mcp__ccb__Agent", agent),
        Step::text("It is started."),
        // The notification is the next thing it hears. It asks for more when the first has landed.
        Step::tool("mcp__ccb__SendMessage", more).wait_for(&team.repo.main().join("one.txt")),
        Step::text("It goes on."),
    ];
    heard(&mut steps);
    let lead = prompt("Coordinate.", &steps);
    let how = ["--json", "--coordinator", "--mates", "2", "--merge", "auto"];
    let verify = ["--verify", "test -e one.txt", lead.as_str()];
    let answer = team.run(&[&how[..], &verify].concat());
    assert_eq!(answer.code, Some(0), "{answer:?}");
    for (file, text) in [("one.txt", "1\n"), ("two.txt", "2\n")] {
        let on_main = team.repo.git(&["show", &format!("main:{file}")]);
        assert_eq!(on_main, text, "{answer:?}");
    }
    let requests = team.requests();
    let bodies: Vec<String> = requests.iter().map(|r| r.body.to_string()).collect();
    let coordinates = |body: &&String| body.contains("Coordinate.");
    let told = |body: &String| body.contains("task-notification");
    assert!(
        bodies.iter().filter(coordinates).any(told),
        "it was told in a message"
    );
    let mut workers = bodies.iter().filter(|body| !coordinates(body));
    let knows = |body: &String| body.contains("SECOND ORDER") && body.contains("FIRST ORDER");
    assert!(workers.any(knows), "the worker knew what it had done");
    let of_lead = requests
        .iter()
        .find(|r| r.body.to_string().contains("Coordinate."));
    let column = [
        "Agent",
        "SendMessage",
        "TaskCreate",
        "TaskGet",
        "TaskList",
        "TaskOutput",
        "TaskStop",
        "TaskUpdate",
        "Worktrees",
    ];
    let column: Vec<String> = column
        .iter()
        .map(|tool| format!("mcp__ccb__{tool}"))
        .collect();
    assert_eq!(tools_of(of_lead.unwrap()), column);
    nothing_of_the_key(&team);
}

#[test]
fn a_plan_fans_out_over_native_agents() {
    each_way(fan_out);
}

fn fan_out(team: &NativeTeam) {
    let tasks: Vec<Value> = (1..=4)
        .map(|n| {
            let (file, text) = (format!("f{n}.txt"), format!("{n}"));
            json!({
                "id": format!("t{n}"), "subject": format!("write {n}"), "paths": [file],
                "prompt": work("Write.", &file, &format!("{text}\n")),
                "verify": says(&file, &text),
            })
        })
        .collect();
    let plan = json!({ "name": "four", "defaults": { "runtime": "native" }, "tasks": tasks });
    let file = team.home.path().join("plan.json");
    std::fs::write(&file, plan.to_string()).unwrap();
    let args = [
        "--json",
        "fanout",
        file.to_str().unwrap(),
        "--land",
        "merge",
    ];
    let answer = team.run(&args);
    assert_eq!(answer.code, Some(0), "{answer:?}");
    for n in 1..=4 {
        let on_branch = team.repo.git(&["show", &format!("ccb/four:f{n}.txt")]);
        assert_eq!(on_branch, format!("{n}\n"));
    }
    nothing_of_the_key(team);
}

#[test]
fn an_agent_killed_in_any_part_is_resumed_with_what_it_knew() {
    let team = NativeTeam::new(CCB);
    for victim in ["guard", "host", "program"] {
        let gate = team.home.path().join(format!("gate-{victim}"));
        let steps = [
            Step::tool(
                "Write",
                json!({ "file_path": format!("{victim}.txt"), "content": "x\n" }),
            ),
            Step::text("never said").wait_for(&gate),
        ];
        let order = prompt(&format!("BEFORE {victim}"), &steps);
        let how = [
            "agent",
            "spawn",
            "--runtime",
            "native",
            "--background",
            order.as_str(),
        ];
        let started = team.ok(&how);
        let id = started["agent"]["agentId"].as_str().unwrap().to_owned();
        let file = team.repo.main().join(format!("{victim}.txt"));
        wait_until(LONG, "the first step", || file.exists());
        // The model is asked for the second one.
        wait_until(LONG, "the second request", || {
            let asked =
                |r: &&harness::model::Recorded| r.body.to_string().contains(&order_mark(victim));
            team.requests().iter().filter(asked).count() >= 2
        });
        kill(&team, &id, victim);
        let active = team.home.team_dir().join("runs/.active").join(&id);
        wait_until(LONG, "the run to be settled", || {
            team.ok(&["agent", "list"]);
            !active.exists()
        });
        wait_until(LONG, "its processes to be gone", || left_of(&id).is_empty());
        let again = prompt("AFTER", &[Step::text("I know it.")]);
        let resumed = team.ok(&["agent", "resume", &id, &again]);
        let text = resumed.to_string();
        assert!(text.contains("I know it."), "{victim}: {text}");
        let last = team.requests().pop().unwrap().body.to_string();
        assert!(
            last.contains(&order_mark(victim)) && last.contains("AFTER"),
            "{victim}"
        );
        assert!(
            last.contains("tool_result"),
            "{victim}: the file was written once"
        );
    }
    nothing_of_the_key(&team);
}

fn order_mark(victim: &str) -> String {
    format!("BEFORE {victim}")
}

fn kill(team: &NativeTeam, id: &str, victim: &str) {
    let meta = team.home.run_meta(id);
    let pid = match victim {
        "program" => meta["pid"].as_i64(),
        part => meta[part]["pid"].as_i64(),
    };
    let pid = pid.unwrap_or_else(|| panic!("no {victim} in {meta}"));
    let pid = rustix::process::Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
}

#[test]
fn without_a_key_it_is_said_what_to_set() {
    let team = NativeTeam::new(CCB);
    let ended =
        |args: &[&str]| Answer::of(team.keyless(args).stdin(Stdio::null()).output().unwrap());
    let answer = ended(&["make the tests pass"]);
    assert_eq!(answer.code, Some(2), "{answer:?}");
    assert!(
        answer.stderr.contains("export ANTHROPIC_API_KEY="),
        "{answer:?}"
    );
    let answer = ended(&["agent", "spawn", "--runtime", "native", "hello"]);
    assert_eq!(answer.code, Some(2), "{answer:?}");
    assert!(answer.stderr.contains("no key is set"), "{answer:?}");
    let answer = ended(&[
        "agent",
        "spawn",
        "--runtime",
        "native",
        "--model",
        "gpt-5",
        "hello",
    ]);
    assert!(answer.stderr.contains("OPENAI_API_KEY"), "{answer:?}");
    let answer = ended(&["doctor"]);
    assert_eq!(answer.code, Some(0), "{answer:?}");
    assert!(
        answer.stdout.contains("no agent can have a model"),
        "{answer:?}"
    );
    let answer = ended(&["--json", "doctor", "--probe"]);
    assert_eq!(answer.code, Some(1), "{answer:?}");
    assert_eq!(
        answer.json()["probes"][0]["error"]["kind"],
        "no_key",
        "{answer:?}"
    );
}

#[test]
fn the_doctor_asks_each_provider_once() {
    let team = NativeTeam::new(CCB);
    let other = ModelServer::start();
    team.home.settings(
        &json!({ "providers": {
            "local": { "kind": "openai-chat", "baseUrl": format!("{}/v1", other.url()), "model": "m" },
            "away": { "kind": "openai-chat", "baseUrl": "http://127.0.0.1:9/v1", "model": "m" },
            "keyless": { "kind": "openai-chat", "baseUrl": "http://127.0.0.1:9/v1", "keyEnv": "NOT_SET", "model": "m" },
        } })
        .to_string(),
    );
    let answer = team.run(&["--json", "doctor", "--probe"]);
    assert_eq!(answer.code, Some(1), "{answer:?}");
    let probes = answer.json()["probes"].clone();
    let of = |name: &str| {
        let all = probes.as_array().unwrap();
        let found = all.iter().find(|probe| probe["provider"] == name);
        found.unwrap_or_else(|| panic!("{name}: {probes}")).clone()
    };
    assert_eq!(of("anthropic")["ok"], true, "{probes}");
    assert_eq!(of("local")["ok"], true, "{probes}");
    let away = of("away")["error"]["message"].to_string();
    assert!(
        away.contains("cannot be reached at http://127.0.0.1:9"),
        "{away}"
    );
    let keyless = of("keyless")["error"].to_string();
    assert!(keyless.contains("NOT_SET is not set"), "{keyless}");
    assert_eq!(
        (team.model.requests().len(), other.requests().len()),
        (1, 1)
    );
    assert!(answer.stderr.contains("asking local for m"), "{answer:?}");
    let answer = team.run(&["doctor"]);
    assert!(
        answer.stdout.contains("agents can run on: native"),
        "{answer:?}"
    );
    assert!(answer.stdout.contains("claude: "), "{answer:?}");
}

#[test]
fn a_repositorys_provider_needs_trust() {
    let team = NativeTeam::new(CCB);
    let settings = json!({ "providers": {
        "anthropic": { "kind": "anthropic", "baseUrl": "http://127.0.0.1:9", "keyEnv": "ANTHROPIC_API_KEY" },
    } });
    let dir = team.repo.main().join(".claude");
    std::fs::create_dir_all(&dir).unwrap();
    std::fs::write(dir.join("ccb.json"), settings.to_string()).unwrap();
    let answer = team.run(&[
        "--json",
        "agent",
        "spawn",
        "--runtime",
        "native",
        "--wait",
        "hello",
    ]);
    assert_eq!(answer.code, Some(4), "{answer:?}");
    assert_eq!(answer.json()["error"]["kind"], "not_trusted", "{answer:?}");
    assert_eq!(team.model.requests().len(), 0);
    let shown = team.ok(&["trust", "--show"]).to_string();
    assert!(
        shown.contains("\"provider\"") && shown.contains("127.0.0.1:9"),
        "{shown}"
    );
}
