//! Whole runs with agents that speak the Agent Client Protocol: forks, their habits, bad luck.

use harness::runs::LONG;
use harness::script::Script;
use harness::{TestHome, TestRepo, wait_until};
use serde_json::{Value, json};

use crate::{CCB, FAKE_ACP, FAKE_AGENT};

/// A home in which every kind of agent has a runtime of its name.
fn home() -> TestHome {
    let home = TestHome::in_memory(CCB);
    let mut runtimes = json!({ "fake": { "kind": "lines", "command": [FAKE_AGENT] } });
    for name in ["plain", "opencode", "gemini", "qwen", "codex-acp"] {
        runtimes[format!("a-{name}")] = json!({ "kind": "acp", "command": [FAKE_ACP, name] });
    }
    let settings = json!({ "runtimes": runtimes, "agents": { "stopGraceMs": 300 } });
    home.settings(&settings.to_string());
    home
}

/// Runs a script to its end with a runtime.
fn waited(home: &TestHome, runtime: &str, script: &Script, more: &[&str]) -> (Value, Option<i32>) {
    let prompt = script.to_prompt();
    let mut args = vec!["--json", "agent", "spawn", "--runtime", runtime, "--wait"];
    args.extend_from_slice(more);
    args.push(&prompt);
    let answer = home.run(&args);
    (answer.json()["agent"].clone(), answer.code)
}

fn id_of(agent: &Value) -> String {
    agent["agentId"].as_str().unwrap().to_owned()
}

#[test]
fn a_copy_goes_on_with_its_parents_conversation_in_a_tree_of_its_own() {
    let home = home();
    let repo = TestRepo::new();
    let main = repo.main().to_str().unwrap();
    let (parent, code) = waited(&home, "a-opencode", &Script::new().done("read it all"), &[]);
    assert_eq!(code, Some(0), "{parent}");
    let parent = id_of(&parent);
    let session = home.run_meta(&parent)["session"]
        .as_str()
        .unwrap()
        .to_owned();
    let seen = home.path().join("seen.json");
    let script = Script::new()
        .describe(&seen)
        .write("new.txt", "x")
        .usage(7, 3, 0.0)
        .done("done");
    let prompt = script.to_prompt();
    let answer = home.ok(&[
        "-C",
        main,
        "agent",
        "spawn",
        "--wait",
        "--fork",
        &parent,
        "--isolation",
        "worktree",
        &prompt,
    ]);
    let copy = &answer["agent"];
    assert_eq!(copy["content"], "done", "{answer}");
    assert_eq!(
        copy["totalTokens"], 10,
        "its own, not its parent's: {answer}"
    );
    let tree = copy["worktree"]["worktreePath"].as_str().unwrap();
    assert!(std::path::Path::new(tree).join("new.txt").exists());
    let meta = home.run_meta(&id_of(copy));
    assert_eq!(meta["fork"], true, "{meta}");
    let own = meta["session"].as_str().unwrap();
    assert!(
        own.starts_with(&session) && own != session,
        "a copy of it: {own}"
    );
    // Its prompt: that it is a copy, its directory, and last its order.
    let seen: Value = serde_json::from_slice(&std::fs::read(&seen).unwrap()).unwrap();
    let told = seen["prompt"].as_str().unwrap();
    assert!(told.contains("<fork-boilerplate>"), "{told}");
    assert!(told.contains(tree), "{told}");
    // A copy of a copy is refused, with the alternative.
    let id = id_of(copy);
    let error = home.fails(2, &["agent", "spawn", "--fork", &id, "again"]);
    assert_eq!(error["error"]["kind"], "cannot_fork", "{error}");
    assert!(error["error"]["hint"].is_string(), "{error}");
}

#[test]
fn what_cannot_be_copied_says_so() {
    let home = home();
    for runtime in ["a-plain", "a-qwen", "fake"] {
        let (parent, code) = waited(&home, runtime, &Script::new().done("fine"), &[]);
        assert_eq!(code, Some(0), "{runtime}: {parent}");
        let error = home.fails(2, &["agent", "spawn", "--fork", &id_of(&parent), "again"]);
        assert_eq!(error["error"]["kind"], "cannot_fork", "{runtime}: {error}");
        let message = error["error"]["message"].as_str().unwrap();
        assert!(message.contains(runtime), "{message}");
    }
    home.fails(3, &["agent", "spawn", "--fork", "ghost", "again"]);
}

#[test]
fn one_that_does_not_end_with_its_input_is_ended_and_has_done_its_work() {
    let home = home();
    let script = Script::new().tool("Bash", "ok").done("all of it").serve();
    let key = ["--env", "GEMINI_API_KEY=fake"];
    let (agent, code) = waited(&home, "a-gemini", &script, &key);
    assert_eq!(code, Some(0), "{agent}");
    assert_eq!(agent["content"], "all of it");
    // Without a key no agent can log in.
    let (agent, code) = waited(&home, "a-gemini", &script, &[]);
    assert_eq!(code, Some(1), "{agent}");
    let error = agent["error"].as_str().unwrap();
    assert!(error.contains("GEMINI_API_KEY"), "{error}");
}

#[test]
fn a_session_goes_on_by_whatever_way_the_agent_has() {
    let home = home();
    // One resumes; one claims to, and only loads, which repeats the past.
    for runtime in ["a-plain", "a-qwen", "a-opencode"] {
        let (agent, _) = waited(&home, runtime, &Script::new().done("one"), &[]);
        let id = id_of(&agent);
        let session = home.run_meta(&id)["session"].clone();
        home.ok(&["agent", "send", &id, &Script::new().done("two").to_prompt()]);
        home.await_settled(&id);
        let exit = home.run_exit(&id).unwrap();
        assert_eq!(exit["result"], "two", "{runtime}: {exit}");
        assert_eq!(home.run_meta(&id)["session"], session, "{runtime}");
        let log = home.run(&["agent", "logs", &id]).stdout;
        assert!(!log.contains("words of the past"), "{runtime}: {log}");
    }
}

#[test]
fn a_session_that_is_live_is_not_resumed_a_second_time() {
    let home = home();
    let (up, go) = (home.path().join("up"), home.path().join("go"));
    let script = Script::new().touch(&up).wait_file(&go).done("one");
    let prompt = script.to_prompt();
    let spawn = [
        "agent",
        "spawn",
        "--runtime",
        "a-opencode",
        "--background",
        &prompt,
    ];
    let id = id_of(&home.ok(&spawn)["agent"]);
    wait_until(LONG, "it to be up", || up.exists());
    let answer = home.run(&["--json", "agent", "resume", &id, "--background"]);
    assert_eq!(answer.code, Some(4), "{answer:?}");
    std::fs::write(&go, "").unwrap();
    home.await_settled(&id);
    let exit = home.run_exit(&id).unwrap();
    assert_eq!(
        (&exit["status"], &exit["life"]),
        (&"completed".into(), &1.into())
    );
    wait_until(LONG, "its processes to be gone", || {
        home.ok(&["agent", "show", &id])["agent"]["alive"] == false
    });
    // Four at once: one of them resumes it, the others learn that.
    let next = Script::new().done("two").to_prompt();
    let resume = ["--json", "agent", "resume", &id, "--background", &next];
    let running: Vec<_> = (0..4)
        .map(|_| home.command(&resume).spawn().unwrap())
        .collect();
    let codes: Vec<Option<i32>> = running
        .into_iter()
        .map(|mut child| child.wait().unwrap().code())
        .collect();
    home.await_settled(&id);
    let resumed = codes.iter().filter(|code| **code == Some(0)).count();
    assert!(resumed > 0, "{codes:?}");
    assert_eq!(home.run_meta(&id)["life"], 1 + resumed, "one life for each");
    assert!(
        codes.iter().all(|code| matches!(code, Some(0 | 4))),
        "{codes:?}"
    );
}

#[test]
fn bad_luck_has_a_stated_outcome() {
    let home = home();
    // Each: the event, the exit code, and the message.
    for (script, code, says) in [
        // The key is refused.
        (Script::new().failed("401 Unauthorized"), 1, "not logged in"),
        // The stream is cut in the middle of a turn.
        (Script::new().say("half").die(9), 1, "without a result"),
        // It ends well and has no result: a SIGINT that exits with 0 looks like this.
        (Script::new().say("half").exit(0), 1, "without a result"),
        // An unknown message arrives.
        (
            Script::new()
                .print("{\"jsonrpc\":\"2.0\",\"method\":\"future/event\",\"params\":{\"x\":[]}}\n")
                .print("{\"type\":\"future_event\",\"data\":1}\n")
                .done("fine"),
            0,
            "",
        ),
        // It asks, and no person is there to answer.
        (
            Script::new().ask("rm", |yes| yes.done("did it"), |no| no.done("let it be")),
            0,
            "",
        ),
    ] {
        let (agent, ended) = waited(&home, "a-opencode", &script, &[]);
        assert_eq!(ended, Some(code), "{script:?}: {agent}");
        let error = agent["error"].as_str().unwrap_or_default();
        assert!(error.contains(says), "{script:?}: {agent}");
        assert_ne!(agent["content"], "did it", "it was not allowed");
    }
}
