//! `SubagentStart`, `SubagentStop` and `TeammateIdle`: an agent that may not start, may not end
//! yet, and hooks that would never let it.

use std::path::Path;

use harness::runs::{LONG, one_hook};
use harness::script::{Do, Script};
use harness::{Answer, TestHome, Workplace, wait_until, write};
use serde_json::{Value, json};

use crate::{CCB, FAKE_AGENT};

fn home() -> TestHome {
    let home = TestHome::in_memory(CCB);
    home.with_fake_runtime(FAKE_AGENT, "");
    home
}

/// A hook that refuses until it was asked `times` times.
fn until(count: &Path, times: u32) -> String {
    let file = count.display();
    format!(
        "echo x >> {file}; [ $(wc -l < {file}) -gt {times} ] && exit 0; echo 'tests are red' >&2; exit 2"
    )
}

fn lines(path: &Path) -> usize {
    std::fs::read_to_string(path).map_or(0, |text| text.lines().count())
}

/// An agent that answers every message and lives until the end of its input.
fn patient() -> Script {
    Script::new().done("first").serve()
}

#[test]
fn a_start_hook_adds_to_the_first_prompt() {
    let home = home();
    let seen = home.path().join("seen");
    let say = json!({"hookSpecificOutput":
        {"hookEventName": "SubagentStart", "additionalContext": "mind the gap"}});
    let command = format!("cat > {}; echo '{say}'", seen.display());
    home.hook("SubagentStart", &command);
    let told = home.path().join("told");
    let id = home.spawn_fake(&Script::new().describe(&told).done("ok"), &[]);
    home.await_settled(&id);
    let described: Value = serde_json::from_slice(&std::fs::read(&told).unwrap()).unwrap();
    let prompt = described["prompt"].as_str().unwrap();
    assert!(prompt.ends_with("mind the gap"), "{prompt}");
    let input: Value = serde_json::from_slice(&std::fs::read(&seen).unwrap()).unwrap();
    assert_eq!(input["agent_id"], id.as_str());
    assert_eq!(input["agent_type"], "general-purpose");
    assert_eq!(home.run_exit(&id).unwrap()["status"], "completed");
}

#[test]
fn a_start_hook_that_says_no_or_nothing_prevents_the_start() {
    let home = home();
    let task = home.create("x").to_string();
    let up = home.path().join("up");
    for (command, why) in [
        ("echo 'no more today' >&2; exit 2", "no more today"),
        (
            r#"echo '{"continue":false,"stopReason":"freeze"}'"#,
            "freeze",
        ),
        ("sleep 600", "longer than"),
        ("kill -9 $$", "signal 9"),
    ] {
        home.hooks(&one_hook("SubagentStart", command, 0.5));
        let script = Script::new().touch(&up).done("ok");
        let id = home.spawn_fake(&script, &["--task", &task]);
        home.await_settled(&id);
        let exit = home.run_exit(&id).unwrap();
        assert_eq!(exit["status"], "failed", "{exit}");
        assert!(exit["error"].as_str().unwrap().contains(why), "{exit}");
        assert!(!up.exists(), "it was started");
        assert_eq!(home.tasks_on_disk()[0]["status"], "pending", "given back");
    }
    assert_eq!(home.notifications().len(), 4, "one each");
}

#[test]
fn matchers_choose_by_type_and_an_agent_can_be_stopped_while_hooks_think() {
    let home = home();
    let seen = home.path().join("seen");
    let other = json!({"SubagentStart": [
        {"matcher": "Plan|Explore", "hooks": [{"command": "exit 2"}]},
        {"matcher": "general-.*", "hooks": [{"command": format!("touch {}; sleep 600", seen.display())}]},
    ]});
    home.hooks(&other);
    let id = home.spawn_fake(&Script::new().done("ok"), &[]);
    wait_until(LONG, "the hook", || seen.exists());
    home.ok(&["agent", "stop", &id]);
    home.await_settled(&id);
    assert_eq!(home.run_exit(&id).unwrap()["status"], "killed");
}

#[test]
fn a_stop_hook_sends_the_agent_back_with_its_reason() {
    let home = home();
    let count = home.path().join("count");
    home.hook("SubagentStop", &until(&count, 2));
    let id = home.spawn_fake(&patient(), &[]);
    home.await_settled(&id);
    assert_eq!(lines(&count), 3);
    let messages = home.entries(&id, "message");
    assert_eq!(messages.len(), 2, "{messages:?}");
    assert!(
        messages[0]["text"]
            .as_str()
            .unwrap()
            .contains("tests are red")
    );
    let exit = home.run_exit(&id).unwrap();
    assert_eq!(exit["status"], "completed");
    assert!(
        exit["result"].as_str().unwrap().contains("tests are red"),
        "its last turn: {exit}"
    );
}

#[test]
fn three_times_no_in_a_row_ends_the_loop_with_a_report() {
    let home = home();
    let count = home.path().join("count");
    home.hook("SubagentStop", &until(&count, 1000));
    let id = home.spawn_fake(&patient(), &[]);
    home.await_settled(&id);
    assert_eq!(lines(&count), 3);
    assert_eq!(home.entries(&id, "message").len(), 2);
    assert_eq!(home.run_exit(&id).unwrap()["status"], "completed");
    let told = home.told_lead();
    assert!(
        told.iter().any(|text| text.contains("3 times in a row")),
        "{told:?}"
    );
}

#[test]
fn a_stop_hook_that_says_nothing_lets_it_end() {
    let home = home();
    for command in [
        "sleep 600",
        "kill -9 $$",
        "exit 1",
        "head -c 70000 /dev/urandom",
    ] {
        home.hooks(&one_hook("SubagentStop", command, 0.5));
        let id = home.spawn_fake(&patient(), &[]);
        home.await_settled(&id);
        assert_eq!(
            home.run_exit(&id).unwrap()["status"],
            "completed",
            "{command}"
        );
        assert!(home.entries(&id, "message").is_empty(), "{command}");
    }
    // "continue": false is no block.
    home.hook(
        "SubagentStop",
        r#"echo '{"continue":false,"stopReason":"enough"}'"#,
    );
    let id = home.spawn_fake(&patient(), &[]);
    home.await_settled(&id);
    assert!(home.entries(&id, "message").is_empty());
    assert!(home.told_lead().iter().any(|text| text.contains("enough")));
}

#[test]
fn what_cannot_go_on_has_failed_if_a_hook_says_no() {
    let home = home();
    let task = home.create("x").to_string();
    home.hook("SubagentStop", "echo 'not checked' >&2; exit 2");
    let args = [
        "--json",
        "agent",
        "spawn",
        "--runtime",
        "shell",
        "--task",
        &task,
        "true",
    ];
    let answer = home.run(&args);
    assert_eq!(answer.code, Some(1), "{answer:?}");
    assert!(answer.stdout.contains("not checked"), "{answer:?}");
    assert_eq!(home.tasks_on_disk()[0]["status"], "pending");
    // The same for a program that ends by itself.
    let id = home.spawn_fake(&Script::new().done("ok"), &[]);
    home.await_settled(&id);
    assert_eq!(home.run_exit(&id).unwrap()["status"], "failed");
    home.hook("SubagentStop", "true");
    let answer = home.run(&args);
    assert_eq!(answer.code, Some(0), "{answer:?}");
    assert_eq!(home.tasks_on_disk()[0]["status"], "completed");
}

#[test]
fn mail_that_comes_while_hooks_think_is_not_lost() {
    let home = home();
    let (count, go) = (home.path().join("count"), home.path().join("go"));
    let command = format!(
        "echo x >> {0}; [ $(wc -l < {0}) -gt 1 ] && exit 0; while [ ! -e {1} ]; do sleep 0.05; done; exit 0",
        count.display(),
        go.display()
    );
    home.hook("SubagentStop", &command);
    let id = home.spawn_fake(&patient(), &[]);
    wait_until(LONG, "the hook", || lines(&count) == 1);
    let sent = home.ok(&["agent", "send", &id, "one more thing"]);
    assert_eq!(sent["message"]["resumed"], false);
    wait_until(LONG, "the message", || {
        home.entries(&id, "message").len() == 1
    });
    std::fs::write(&go, "").unwrap();
    home.await_settled(&id);
    let exit = home.run_exit(&id).unwrap();
    assert!(
        exit["result"].as_str().unwrap().contains("one more thing"),
        "{exit}"
    );
}

#[test]
fn an_agents_own_hooks_live_with_it_and_stop_means_its_own_end() {
    let home = home();
    let count = home.path().join("count");
    let types = json!({"tester": {"description": "tests", "prompt": "You test.",
        "hooks": {"Stop": [{"hooks": [{"type": "command", "command": until(&count, 1)}]}]}}});
    let prompt = patient().to_prompt();
    let spawn = |kind: &str| {
        let types = types.to_string();
        let args = [
            "agent",
            "--agents",
            &types,
            "spawn",
            "--runtime",
            "fake",
            "--background",
            "--type",
            kind,
            &prompt,
        ];
        let answer = home.ok(&args);
        let id = answer["agent"]["agentId"].as_str().unwrap().to_owned();
        home.await_settled(&id);
        id
    };
    let id = spawn("tester");
    assert_eq!(lines(&count), 2);
    assert_eq!(home.entries(&id, "message").len(), 1);
    spawn("general-purpose");
    assert_eq!(lines(&count), 2, "another type's agent has none");
}

#[test]
fn a_teammate_that_may_not_be_idle_gets_one_more_turn() {
    let home = home();
    home.ok(&["team", "create", "board"]);
    let count = home.path().join("count");
    home.hook("TeammateIdle", &until(&count, 1));
    let id = home.spawn_fake(&patient(), &["--name", "alice"]);
    home.await_run(&id, "idle");
    assert_eq!(lines(&count), 2);
    assert_eq!(home.entries(&id, "message").len(), 1);
    let inbox = home.ok(&["mail", "inbox", "--all", "--as", "team-lead"]);
    let idle = inbox["messages"].as_array().unwrap().iter();
    let idle = idle.filter(|message| message["kind"] == "idle_notification");
    assert_eq!(idle.count(), 1, "only when it is: {inbox}");
    // For ever is too long, also here.
    home.hook("TeammateIdle", "echo again >&2; exit 2");
    home.ok(&["agent", "send", "alice", "hello"]);
    wait_until(LONG, "the report", || {
        home.told_lead()
            .iter()
            .any(|text| text.contains("3 times in a row"))
    });
    home.await_run(&id, "idle");
    // A hook can also end it.
    home.hook(
        "TeammateIdle",
        r#"echo '{"continue":false,"stopReason":"go home"}'"#,
    );
    home.ok(&["agent", "send", "alice", "hello"]);
    home.await_settled(&id);
    assert!(home.told_lead().iter().any(|text| text.contains("go home")));
}

#[test]
fn a_hook_in_the_background_wakes_the_agent() {
    let home = home();
    home.ok(&["team", "create", "board"]);
    let go = home.path().join("go");
    let command = format!(
        "while [ ! -e {} ]; do sleep 0.05; done; echo 'the build is red' >&2; exit 2",
        go.display()
    );
    let hook = json!({"SubagentStart": [{"command": command, "asyncRewake": true}]});
    home.hooks(&hook);
    let id = home.spawn_fake(&patient(), &["--name", "alice"]);
    home.await_run(&id, "idle");
    assert_eq!(
        home.run_process(&id, "pid") > 0,
        home.entries(&id, "message").is_empty()
    );
    std::fs::write(&go, "").unwrap();
    wait_until(LONG, "the wake", || {
        let messages = home.entries(&id, "message");
        messages
            .iter()
            .any(|message| message["text"].as_str().unwrap().contains("build is red"))
    });
    home.ok(&["agent", "stop", "alice"]);
    home.await_settled(&id);
}

#[test]
fn the_end_waits_for_hooks_in_the_background() {
    let home = home();
    let (count, go) = (home.path().join("count"), home.path().join("go"));
    let command = format!(
        r#"echo x >> {0}; echo '{{"async":true}}'; while [ ! -e {1} ]; do sleep 0.05; done; echo '{{"systemMessage":"slow news"}}'"#,
        count.display(),
        go.display()
    );
    home.hook("SubagentStop", &command);
    let id = home.spawn_fake(&patient(), &[]);
    wait_until(LONG, "the hook", || lines(&count) == 1);
    assert!(home.run_exit(&id).is_none());
    std::fs::write(&go, "").unwrap();
    home.await_settled(&id);
    assert_eq!(home.run_exit(&id).unwrap()["status"], "completed");
    assert!(
        home.told_lead()
            .iter()
            .any(|text| text.contains("slow news"))
    );
}

#[test]
fn hooks_end_with_their_run() {
    let home = home();
    let pid_file = home.path().join("pid");
    let command = format!("sleep 600 & echo $! > {}; wait", pid_file.display());
    home.hook("SubagentStop", &command);
    let id = home.spawn_fake(&patient(), &[]);
    let pid = || -> Option<i32> { std::fs::read_to_string(&pid_file).ok()?.trim().parse().ok() };
    wait_until(LONG, "the hook", || pid().is_some());
    let host = home.run_process(&id, "host");
    harness::runs::kill(host, rustix::process::Signal::KILL);
    home.await_settled(&id);
    assert!(!Path::new(&format!("/proc/{}", pid().unwrap())).exists());
}

#[test]
fn a_repositorys_hooks_need_trust_as_they_are_in_the_agents_tree() {
    let place = Workplace::new(CCB);
    place.home.with_fake_runtime(FAKE_AGENT, "");
    let script = "echo 'from the repository' >&2; exit 2\n";
    place.repo.write("check.sh", script);
    let hooks = json!({ "hooks": one_hook("SubagentStart", "sh ./check.sh", 60.0) });
    place
        .repo
        .write(".claude/settings.json", &hooks.to_string());
    let spawn = |dir: &Path| {
        let prompt = Script::new().done("ok").to_prompt();
        let dir = dir.to_str().unwrap();
        let args = [
            "--json",
            "agent",
            "spawn",
            "--runtime",
            "fake",
            "--cwd",
            dir,
            &prompt,
        ];
        Answer::of(place.command(&args).output().unwrap())
    };
    let answer = spawn(place.repo.main());
    assert_eq!(answer.code, Some(0), "{answer:?}");
    place.ok(&["trust"]);
    let answer = spawn(place.repo.main());
    assert_eq!(answer.code, Some(1), "{answer:?}");
    assert!(answer.stdout.contains("from the repository"), "{answer:?}");
    // A file that an agent wrote into its worktree is not the trusted one.
    place.ok(&["worktree", "create", "a"]);
    let tree = place.repo.tree("a");
    write(&tree.join("check.sh"), "touch evil; exit 2\n");
    let answer = spawn(&tree);
    assert_eq!(answer.code, Some(0), "{answer:?}");
    assert!(!tree.join("evil").exists());
}

#[test]
fn an_agent_that_a_hook_starts_fires_none() {
    let home = home();
    let count = home.path().join("count");
    let command = format!(
        "echo x >> {}; {CCB} --team board agent spawn --runtime shell true >&2",
        count.display()
    );
    home.hook("SubagentStart", &command);
    let id = home.spawn_fake(
        &Script::new().then(Do::Say { text: "hi".into() }).done("ok"),
        &[],
    );
    home.await_settled(&id);
    assert_eq!(home.run_exit(&id).unwrap()["status"], "completed");
    assert_eq!(lines(&count), 1);
}
