//! The limits of agents, each alone and all together; a provider that refuses; the same failure
//! over and over. Every limit is reached once.

use harness::runs::{LONG, kill};
use harness::script::{Do, Script};
use harness::{TestHome, TestRepo, wait_until};
use rustix::process::Signal;
use serde_json::Value;

use crate::{CCB, FAKE_AGENT};

fn home(limits: &str) -> TestHome {
    let home = TestHome::in_memory(CCB);
    let limits = format!(r#""agents":{{"stopGraceMs":200}},"limits":{{{limits}}}"#);
    home.with_fake_runtime(FAKE_AGENT, &limits);
    home
}

/// Starts a script and waits for its end; the answer and the exit code.
fn waited(home: &TestHome, script: &Script, more: &[&str]) -> (Value, Option<i32>) {
    let prompt = script.to_prompt();
    let mut args = vec!["--json", "agent", "spawn", "--runtime", "fake", "--wait"];
    args.extend_from_slice(more);
    args.push(&prompt);
    let answer = home.run(&args);
    (answer.json(), answer.code)
}

fn account(home: &TestHome) -> Value {
    home.ok(&["team", "limits"])["limits"].clone()
}

/// The lead's notification about an agent.
fn told(home: &TestHome, id: &str) -> String {
    let answer = home.ok(&["mail", "inbox", "--all", "--as", "team-lead"]);
    let all = answer["messages"].as_array().cloned().unwrap_or_default();
    let of = all.iter().filter(|m| m["body"]["taskId"] == id);
    let results: Vec<&str> = of.filter_map(|m| m["body"]["result"].as_str()).collect();
    assert_eq!(results.len(), 1, "{answer}");
    results[0].to_owned()
}

/// Works for ever: tools, usage.
fn endless() -> Script {
    let round = vec![
        Do::Usage {
            input: 40,
            output: 10,
            cost: 0.25,
        },
        Do::ToolBegin {
            id: "t".into(),
            name: "Bash".into(),
            input: Value::Null,
        },
        Do::ToolEnd {
            id: "t".into(),
            output: "ok".into(),
            error: false,
        },
        Do::Pause { ms: 5 },
    ];
    Script::new().then(Do::Repeat {
        times: None,
        steps: round,
    })
}

#[test]
fn each_limit_of_an_agent_ends_it_with_its_own_words_and_code() {
    let home = home("");
    for (flags, says) in [
        (["--max-turns", "3"], "limit of 3 turns"),
        (["--max-tokens", "100"], "limit of 100 tokens"),
        (["--max-cost", "0.5"], "limit of $0.50"),
        (["--deadline", "300ms"], "limit of 300 ms"),
    ] {
        let (answer, code) = waited(&home, &endless(), &flags);
        assert_eq!(code, Some(6), "{flags:?}: {answer}");
        let agent = &answer["agent"];
        assert_eq!(agent["status"], "failed", "{flags:?}: {answer}");
        assert_eq!(agent["reason"], "limit", "{flags:?}: {answer}");
        let error = agent["error"].as_str().unwrap();
        assert!(error.contains(says), "{flags:?}: {error}");
    }
    // Usage just below a limit is fine.
    let script = Script::new()
        .tool("Bash", "ok")
        .usage(99, 0, 0.0)
        .done("fine");
    let (answer, code) = waited(&home, &script, &["--max-turns", "2", "--max-tokens", "100"]);
    assert_eq!(code, Some(0), "{answer}");
    for bad in [
        ["--max-turns", "0"],
        ["--max-cost", "-1"],
        ["--max-cost", "NaN"],
        ["--max-tokens", "0"],
        ["--deadline", "5"],
        ["--deadline", "0s"],
        ["--deadline", "99999999999999999999h"],
    ] {
        let args = [&["agent", "spawn", "--runtime", "fake"][..], &bad, &["x"]].concat();
        home.fails(2, &args);
    }
}

#[test]
fn the_settings_hold_for_those_who_say_nothing() {
    let home = home(r#""agent":{"turns":2,"tokens":1000000}"#);
    let (answer, code) = waited(&home, &endless(), &[]);
    assert_eq!(code, Some(6), "{answer}");
    let error = answer["agent"]["error"].as_str().unwrap();
    assert!(error.contains("2 turns"), "{error}");
    // The starter can set another limit, but not from inside an agent.
    let script = Script::new()
        .tool("a", "")
        .tool("b", "")
        .tool("c", "")
        .done("fine");
    assert_eq!(waited(&home, &script, &["--max-turns", "9"]).1, Some(0));
    let prompt = script.to_prompt();
    let inner = [
        CCB,
        "--json",
        "agent",
        "spawn",
        "--runtime",
        "fake",
        "--wait",
        "--max-turns",
        "9",
        &prompt,
    ];
    let outer = Script::new().run(&inner).done("started one");
    let (answer, _) = waited(&home, &outer, &["--max-turns", "9"]);
    assert_eq!(answer["agent"]["status"], "completed", "{answer}");
    let agents = home.ok(&["agent", "list"]);
    let agents = agents["agents"].as_array().unwrap();
    let id = agents.last().unwrap()["agentId"].as_str().unwrap();
    let exit = home.run_exit(id).unwrap();
    assert_eq!(exit["reason"], "limit", "{exit}");
}

#[test]
fn one_that_reaches_a_limit_leaves_its_task_its_tree_and_a_word_and_can_go_on() {
    let home = home("");
    let repo = TestRepo::new();
    let main = repo.main().to_str().unwrap();
    home.create("job");
    let mut script = Script::new().write("half.txt", "half of it");
    script.steps.extend(endless().steps);
    let prompt = script.to_prompt();
    let answer = home.ok(&[
        "-C",
        main,
        "agent",
        "spawn",
        "--runtime",
        "fake",
        "--background",
        "--task",
        "1",
        "--isolation",
        "worktree",
        "--max-turns",
        "2",
        &prompt,
    ]);
    let id = answer["agent"]["agentId"].as_str().unwrap();
    home.await_settled(id);
    let task = home.ok(&["task", "show", "1"])["task"].clone();
    assert_eq!(task["status"], "pending", "{task}");
    assert!(task["owner"].is_null(), "{task}");
    assert!(
        task["metadata"]["ccb"]["attempts"].is_null(),
        "a limit says nothing about the task: {task}"
    );
    let said = told(&home, id);
    assert!(said.contains("limit of 2 turns"), "{said}");
    assert!(said.contains("free again: task #1"), "{said}");
    let meta = home.run_meta(id);
    assert_eq!(meta["worktree"]["outcome"]["kept"], true, "{meta}");
    let kept = std::path::Path::new(meta["worktree"]["path"].as_str().unwrap());
    assert!(kept.join("half.txt").exists());
    // The next life has its own allowance.
    let rest = Script::new()
        .tool("Bash", "ok")
        .done("the rest")
        .to_prompt();
    home.ok(&["agent", "send", id, &rest]);
    home.await_settled(id);
    let exit = home.run_exit(id).unwrap();
    assert_eq!(
        (&exit["status"], &exit["life"]),
        (&"completed".into(), &2.into())
    );
}

#[test]
fn all_together_may_use_so_much() {
    for (limit, says) in [
        (r#""tokens":300"#, "300 tokens"),
        (r#""costUsd":1.5"#, "$1.50"),
    ] {
        let home = home(&format!(r#""team":{{{limit}}}"#));
        let half = Script::new().usage(150, 0, 0.75).done("half");
        assert_eq!(waited(&home, &half, &[]).1, Some(0));
        home.team(&["team-lead"]);
        // Its usage is the team's; with the next turn it would be too much.
        let lives_on = Script::new().usage(150, 0, 0.75).done("all of it").serve();
        let id = home.spawn_fake(&lives_on, &["--name", "mate"]);
        home.await_settled(&id);
        let exit = home.run_exit(&id).unwrap();
        assert_eq!(exit["reason"], "limit", "{exit}");
        assert!(exit["error"].as_str().unwrap().contains(says), "{exit}");
        let (answer, code) = waited(&home, &half, &[]);
        assert_eq!(code, Some(6), "{answer}");
        assert_eq!(answer["error"]["kind"], "budget");
        let message = answer["error"]["message"].as_str().unwrap();
        assert!(message.contains(says), "{message}");
        assert_eq!(account(&home)["usage"]["totalTokens"], 300);
        // A new account, which no agent opens for itself.
        let shell = format!("{CCB} team limits --reset");
        let spawn = ["agent", "spawn", "--runtime", "shell", "--wait", &shell];
        home.fails(6, &spawn);
        home.ok(&["team", "limits", "--reset"]);
        home.fails(1, &spawn);
        assert_eq!(waited(&home, &half, &[]).1, Some(0));
        assert_eq!(account(&home)["usage"]["totalTokens"], 150);
    }
}

#[test]
fn all_together_may_take_so_long() {
    let home = home(r#""team":{"wallClockMs":400}"#);
    let (answer, code) = waited(&home, &Script::new().hang(), &[]);
    assert_eq!(code, Some(6), "{answer}");
    assert_eq!(waited(&home, &Script::new().done("late"), &[]).1, Some(6));
    home.ok(&["team", "limits", "--reset"]);
    assert_eq!(waited(&home, &Script::new().done("quick"), &[]).1, Some(0));
}

#[test]
fn so_many_are_started_within_a_minute() {
    let home = home(r#""team":{"spawnsPerMinute":2}"#);
    let script = Script::new().done("fine");
    for _ in 0..2 {
        home.spawn_fake(&script, &[]);
    }
    let prompt = script.to_prompt();
    let spawn = [
        "agent",
        "spawn",
        "--runtime",
        "fake",
        "--background",
        &prompt,
    ];
    let answer = home.fails(4, &spawn);
    assert_eq!(answer["error"]["kind"], "too_fast", "{answer}");
    let runs = std::fs::read_dir(home.team_dir().join("runs")).unwrap();
    let runs = runs.filter(|run| {
        let name = run.as_ref().unwrap().file_name();
        !name.to_string_lossy().starts_with('.')
    });
    assert_eq!(
        runs.count(),
        2,
        "nothing is left of one that was not started"
    );
    home.ok(&["team", "limits", "--reset"]);
    home.ok(&spawn);
}

#[test]
fn one_refusal_holds_six_agents_back_until_one_has_tried() {
    let home = home(r#""quota":{"firstPauseMs":300,"longestPauseMs":300}"#);
    let (log, open) = (home.path().join("asked"), home.path().join("open"));
    let all = home.path().join("all");
    let script = Script::new()
        .wait_file(&all)
        .result("quota", "")
        .then(Do::WaitMessage { echo: false })
        .append(&log, "asked")
        .wait_file(&open)
        .say("here I am")
        .done("fine");
    let ids: Vec<String> = (0..6).map(|_| home.spawn_fake(&script, &[])).collect();
    for id in &ids {
        home.await_run(id, "running");
    }
    std::fs::write(&all, "").unwrap();
    let asked = || {
        std::fs::read_to_string(&log)
            .unwrap_or_default()
            .lines()
            .count()
    };
    let held = || {
        let stalled = |id: &&String| home.run_meta(id)["stalled"].is_string();
        ids.iter().filter(stalled).count()
    };
    // The pause is over, one agent tries, and all others wait for it.
    wait_until(LONG, "one to try", || asked() == 1 && held() == 5);
    let paused = account(&home)["paused"].clone();
    assert!(paused["until"].is_string(), "{paused}");
    // No agent that could not wait is started meanwhile; a command needs no model.
    let prompt = Script::new().done("late").to_prompt();
    let spawn = [
        "agent",
        "spawn",
        "--runtime",
        "fake",
        "--background",
        &prompt,
    ];
    let answer = home.fails(7, &spawn);
    assert_eq!(answer["error"]["kind"], "quota", "{answer}");
    home.ok(&["agent", "spawn", "--runtime", "shell", "--wait", "true"]);
    let args = ["agent", "spawn", "--runtime", "fake", "--wait", &prompt];
    let mut waiting = home.command(&args).spawn().unwrap();
    assert_eq!((asked(), held()), (1, 5), "they still wait");
    std::fs::write(&open, "").unwrap();
    for id in &ids {
        home.await_settled(id);
        let exit = home.run_exit(id).unwrap();
        assert_eq!(exit["status"], "completed", "{exit}");
    }
    assert_eq!(asked(), 6);
    assert_eq!(waiting.wait().unwrap().code(), Some(0));
    assert!(account(&home)["paused"].is_null());
}

#[test]
fn a_refusal_that_lasts_ends_with_its_own_code_and_can_go_on() {
    let home = home(r#""quota":{"firstPauseMs":50,"longestPauseMs":50,"giveUpMs":300}"#);
    let refused = Script::new().then(Do::Repeat {
        times: None,
        steps: vec![
            Do::Result {
                status: "quota".into(),
                text: String::new(),
                error: Some("429: slow down".into()),
            },
            Do::WaitMessage { echo: false },
        ],
    });
    let (answer, code) = waited(&home, &refused, &[]);
    assert_eq!(code, Some(7), "{answer}");
    assert_eq!(answer["agent"]["reason"], "quota", "{answer}");
    let error = answer["agent"]["error"].as_str().unwrap();
    assert!(error.contains("slow down"), "{error}");
    let id = answer["agent"]["agentId"].as_str().unwrap();
    let rest = Script::new().done("now it worked").to_prompt();
    home.ok(&["agent", "send", id, &rest]);
    home.await_settled(id);
    assert_eq!(home.run_exit(id).unwrap()["status"], "completed");
    assert!(
        account(&home)["paused"].is_null(),
        "its answer ended the pause"
    );
    // One whose program does not wait ends at once.
    let (answer, code) = waited(&home, &Script::new().result("quota", "").exit(0), &[]);
    assert_eq!(code, Some(7), "{answer}");
}

#[test]
fn one_that_is_held_back_before_it_starts_can_be_stopped_and_has_a_deadline() {
    let home = home(r#""quota":{"firstPauseMs":600000}"#);
    home.team(&["team-lead"]);
    let start = home.path().join("start");
    let go = home.path().join("go");
    let first = Script::new()
        .touch(&start)
        .wait_file(&go)
        .result("quota", "")
        .hang();
    // Two that are past the gate, so that the pause begins after they were started.
    let second = home.spawn_fake(&first, &["--deadline", "100h"]);
    wait_until(LONG, "it to be up", || start.exists());
    let third = home.spawn_fake(&Script::new().done("one").serve(), &["--name", "mate"]);
    home.await_run(&third, "idle");
    std::fs::write(&go, "").unwrap();
    wait_until(LONG, "the pause", || !account(&home)["paused"].is_null());
    // A message to an idle one waits with it.
    home.ok(&["agent", "send", "mate", "more"]);
    wait_until(LONG, "it to be held", || {
        home.run_meta(&third)["stalled"].is_string()
    });
    assert_eq!(
        home.ok(&["agent", "stop", &third])["agent"]["status"],
        "killed"
    );
    assert_eq!(
        home.ok(&["agent", "stop", &second])["agent"]["status"],
        "killed"
    );
    // Resumed by the message, it waits before its program is started.
    home.ok(&["agent", "resume", &third, "--background"]);
    wait_until(LONG, "it to be held", || {
        home.run_meta(&third)["stalled"].is_string()
    });
    let stopped = home.ok(&["agent", "stop", &third]);
    assert_eq!(stopped["agent"]["status"], "killed", "{stopped}");
}

#[test]
fn the_same_failure_twice_with_nothing_changed_ends_it() {
    let home = home("");
    home.team(&["team-lead"]);
    let script = Script::new().failed("cannot find it").serve();
    let id = home.spawn_fake(&script, &["--name", "mate"]);
    home.await_run(&id, "idle");
    let again = Script::new().failed("cannot find it").to_prompt();
    home.ok(&["agent", "send", "mate", &again]);
    home.await_settled(&id);
    let exit = home.run_exit(&id).unwrap();
    assert_eq!(exit["reason"], "no_progress", "{exit}");
    assert!(
        exit["error"].as_str().unwrap().contains("cannot find it"),
        "{exit}"
    );
}

#[test]
fn attempts_are_kept_with_the_task_and_say_when_there_is_no_progress() {
    let home = home("");
    let repo = TestRepo::new();
    let main = repo.main().to_str().unwrap();
    home.create("job");
    let attempt = |script: &Script| {
        let prompt = script.to_prompt();
        let answer = home.ok(&[
            "-C",
            main,
            "agent",
            "spawn",
            "--runtime",
            "fake",
            "--background",
            "--task",
            "1",
            "--isolation",
            "worktree",
            &prompt,
        ]);
        let id = answer["agent"]["agentId"].as_str().unwrap().to_owned();
        home.await_settled(&id);
        told(&home, &id)
    };
    let stuck = |said: &str| said.contains("no progress");
    assert!(!stuck(&attempt(&Script::new().failed("no (12 s)"))));
    assert!(
        !stuck(&attempt(&Script::new().write("x", "1").failed("no (9 s)"))),
        "it changed"
    );
    assert!(!stuck(&attempt(&Script::new().failed("other"))));
    let said = attempt(&Script::new().failed("other"));
    assert!(stuck(&said), "{said}");
    let task = home.ok(&["task", "show", "1"])["task"].clone();
    let attempts = task["metadata"]["ccb"]["attempts"]
        .as_array()
        .unwrap()
        .clone();
    assert_eq!(attempts.len(), 4, "{task}");
    assert_eq!(attempts[3]["why"], "other", "{task}");
    assert_eq!(attempts[2]["tree"], attempts[3]["tree"], "{task}");
    assert_ne!(attempts[0]["tree"], attempts[1]["tree"], "{task}");
}

#[test]
fn what_a_life_used_is_not_counted_with_the_next_one() {
    let home = home("");
    let id = home.spawn_fake(&Script::new().usage(100, 0, 1.0).done("one"), &[]);
    home.await_settled(&id);
    let up = home.path().join("up");
    let second = Script::new()
        .usage(7, 0, 0.5)
        .tool("Bash", "")
        .touch(&up)
        .hang();
    home.ok(&["agent", "send", &id, &second.to_prompt()]);
    wait_until(LONG, "its second life", || up.exists());
    kill(home.run_process(&id, "host"), Signal::KILL);
    home.await_settled(&id);
    let exit = home.run_exit(&id).unwrap();
    assert_eq!(exit["status"], "lost", "{exit}");
    let used = exit["usage"]["inputTokens"].as_u64().unwrap();
    assert!(used <= 7, "{exit}");
    let total = account(&home)["usage"]["totalTokens"].as_u64().unwrap();
    assert!((100..=107).contains(&total), "{total}");
}
