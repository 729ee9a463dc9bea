//! Messages to agents: running, ended, unknown; results once; questions.

use std::process::Stdio;

use harness::runs::{LONG, kill};
use harness::script::{Do, Script};
use harness::{TestHome, wait_until};
use mailbox::{MailOptions, Mailbox};
use rustix::process::Signal;
use serde_json::Value;
use store::home::Home;
use store::name::Name;

use crate::{CCB, FAKE_AGENT};

fn home() -> TestHome {
    let home = TestHome::in_memory(CCB);
    home.with_fake_runtime(FAKE_AGENT, "");
    home
}

/// The entries of a transcript of this type.
fn entries(home: &TestHome, id: &str, kind: &str) -> Vec<Value> {
    let text = std::fs::read_to_string(home.run_dir(id).join("transcript.jsonl")).unwrap();
    let all = text
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap());
    all.filter(|entry| entry["type"] == kind).collect()
}

#[test]
fn a_busy_agent_gets_a_message_at_its_next_tool_boundary() {
    let home = home();
    let (up, go) = (home.path().join("up"), home.path().join("go"));
    let script = Script::new()
        .tool_around("Bash", "done", |tool| tool.touch(&up).wait_file(&go))
        .then(Do::WaitMessage { echo: true })
        .done("ended");
    let id = home.spawn_fake(&script, &[]);
    wait_until(LONG, "the tool to run", || up.exists());
    let sent = home.ok(&["agent", "send", &id, "look at the readme"]);
    assert_eq!(sent["message"]["resumed"], false);
    assert!(
        entries(&home, &id, "message").is_empty(),
        "not in the middle of a tool"
    );
    std::fs::write(&go, "").unwrap();
    home.await_settled(&id);
    let messages = entries(&home, &id, "message");
    assert_eq!(messages.len(), 1, "{messages:?}");
    assert!(
        messages[0]["text"]
            .as_str()
            .unwrap()
            .contains("look at the readme")
    );
    let inbox = home.ok(&["mail", "inbox", "--as", &id]);
    assert_eq!(
        inbox["messages"].as_array().unwrap().len(),
        0,
        "acknowledged: {inbox}"
    );
    assert_eq!(home.run_exit(&id).unwrap()["status"], "completed");
}

#[test]
fn an_urgent_message_breaks_off_the_turn() {
    let home = home();
    home.ok(&["team", "create", "board"]);
    let up = home.path().join("up");
    let id = home.spawn_fake(
        &Script::new().touch(&up).done("up").serve(),
        &["--name", "alice"],
    );
    wait_until(LONG, "the agent to be up", || up.exists());
    home.await_run(&id, "idle");
    let slow = Script::new().touch(home.path().join("busy")).hang();
    home.ok(&["agent", "send", "alice", &slow.to_prompt()]);
    wait_until(LONG, "the turn", || home.path().join("busy").exists());
    let quick = Script::new().done("instead");
    home.ok(&[
        "agent",
        "send",
        "alice",
        &quick.to_prompt(),
        "--priority",
        "now",
    ]);
    wait_until(LONG, "the other turn", || {
        entries(&home, &id, "turn_ended")
            .iter()
            .any(|turn| turn["text"] == "instead")
    });
    home.ok(&["agent", "stop", "alice"]);
    home.await_settled(&id);
}

#[test]
fn a_teammate_lives_on_and_an_ended_agent_goes_on_where_it_was() {
    let home = home();
    home.ok(&["team", "create", "board"]);
    let id = home.spawn_fake(&Script::new().done("up").serve(), &["--name", "alice"]);
    home.await_run(&id, "idle");
    home.ok(&[
        "agent",
        "send",
        "alice",
        &Script::new().done("one").to_prompt(),
    ]);
    wait_until(LONG, "the turn", || {
        entries(&home, &id, "turn_ended")
            .iter()
            .any(|turn| turn["text"] == "one")
    });
    home.await_run(&id, "idle");
    home.ok(&["agent", "stop", "alice"]);
    home.await_settled(&id);
    let session = home.run_meta(&id)["session"].clone();
    assert!(session.is_string());
    let told = home.path().join("told");
    let again = Script::new().describe(&told).done("again").serve();
    let sent = home.ok(&["agent", "send", &id, &again.to_prompt()]);
    assert_eq!(sent["message"]["resumed"], true);
    home.await_run(&id, "idle");
    let told: Value =
        serde_json::from_slice(&std::fs::read(home.path().join("told")).unwrap()).unwrap();
    assert_eq!(told["session"], session, "{told}");
    let meta = home.run_meta(&id);
    assert_eq!((&meta["life"], &meta["session"]), (&2.into(), &session));
    home.ok(&["agent", "stop", "alice"]);
    home.await_settled(&id);
    let statuses: Vec<String> = home
        .notifications()
        .into_iter()
        .map(|told| told.1)
        .collect();
    assert_eq!(statuses, ["killed", "killed"], "once per life");
}

#[test]
fn many_messages_to_an_ended_agent_resume_it_once() {
    let home = home();
    let id = home.spawn_fake(&Script::new().done("first"), &[]);
    home.await_settled(&id);
    let text = Script::new().done("again").serve().to_prompt();
    let senders: Vec<_> = (0..8)
        .map(|_| {
            let mut command = home.command(&["--json", "agent", "send", &id, &text]);
            command
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .unwrap()
        })
        .collect();
    let mut resumed = 0;
    for sender in senders {
        let output = sender.wait_with_output().unwrap();
        assert!(output.status.success(), "{output:?}");
        let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
        resumed += usize::from(answer["message"]["resumed"] == true);
    }
    assert!(resumed >= 1);
    wait_until(LONG, "all messages to be taken in", || {
        let inbox = home.ok(&["mail", "inbox", "--as", &id]);
        inbox["messages"].as_array().unwrap().is_empty()
    });
    home.await_settled(&id);
    assert_eq!(
        home.run_meta(&id)["life"].as_u64().unwrap() as usize,
        1 + resumed
    );
    assert_eq!(home.notifications().len(), 1 + resumed, "one per life");
    let mut ids: Vec<String> = entries(&home, &id, "message")
        .iter()
        .map(|message| message["id"].to_string())
        .collect();
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), 8, "each message is part of the conversation");
}

#[test]
fn nobody_and_the_wrong_ones_get_clear_errors() {
    let home = home();
    let error = home.fails(3, &["agent", "send", "ghost", "hello"]);
    assert_eq!(error["error"]["kind"], "agent_not_found");
    let id = home.spawn_fake(&Script::new().done("x"), &[]);
    home.await_settled(&id);
    let error = home.fails(4, &["agent", "stop", &id]);
    assert_eq!(error["error"]["kind"], "not_running");
    let other = if id.ends_with('0') { '1' } else { '0' };
    let near = format!("{}{other}", &id[..16]);
    let error = home.fails(3, &["agent", "show", &near]);
    assert!(
        error["error"]["hint"].as_str().unwrap().contains(&id),
        "{error}"
    );
    // The beginning of an id is enough.
    assert_eq!(
        home.ok(&["agent", "show", &id[..8]])["agent"]["agentId"],
        *id
    );
}

#[test]
fn a_result_that_somebody_waited_for_is_not_told_again() {
    let home = home();
    let answer = home.ok(&[
        "agent",
        "spawn",
        "--runtime",
        "fake",
        &Script::new().done("it").to_prompt(),
    ]);
    assert_eq!(answer["agent"]["status"], "completed");
    assert_eq!(answer["agent"]["content"], "it");
    assert!(
        home.notifications().is_empty(),
        "the waiting command has it"
    );
    let go = home.path().join("go");
    let id = home.spawn_fake(&Script::new().say("so far").wait_file(&go).done("all"), &[]);
    home.await_run(&id, "running");
    let so_far = home.run(&["--json", "agent", "output", &id, "--timeout", "50"]);
    assert_eq!(so_far.code, Some(5), "{so_far:?}");
    assert_eq!(so_far.json()["agent"]["status"], "running");
    let waiting = home
        .command(&[
            "--json",
            "--as",
            "team-lead",
            "agent",
            "output",
            &id,
            "--timeout",
            "100000",
        ])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    wait_until(LONG, "a command to wait", || {
        let path = home.run_dir(&id).join("waiters.lock");
        path.exists()
            && store::lock::FileLock::try_exclusive(&path)
                .unwrap()
                .is_none()
    });
    std::fs::write(&go, "").unwrap();
    let output = waiting.wait_with_output().unwrap();
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(answer["agent"]["content"], "all");
    home.await_settled(&id);
    assert!(home.notifications().is_empty());
}

#[test]
fn one_who_waits_and_dies_leaves_the_result_to_a_notification() {
    let home = home();
    let go = home.path().join("go");
    let script = Script::new().wait_file(&go).done("it");
    let mut starter = home
        .command(&["agent", "spawn", "--runtime", "fake", &script.to_prompt()])
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let id = || {
        let listed = home.ok(&["agent", "list", "--alive"]);
        listed["agents"][0]["agentId"].as_str().map(str::to_owned)
    };
    wait_until(LONG, "the agent", || id().is_some());
    let id = id().unwrap();
    home.await_run(&id, "running");
    kill(i32::try_from(starter.id()).unwrap(), Signal::STOP);
    std::fs::write(&go, "").unwrap();
    wait_until(LONG, "the result to wait", || {
        home.run_meta(&id)["told"] == "waiting"
    });
    home.ok(&["agent", "list"]);
    assert!(home.notifications().is_empty(), "a command still waits");
    starter.kill().unwrap();
    starter.wait().unwrap();
    wait_until(LONG, "the guard to be gone", || {
        home.ok(&["agent", "list"]);
        !home.notifications().is_empty()
    });
    home.await_settled(&id);
    assert_eq!(home.notifications(), [(id, "completed".to_owned())]);
}

#[test]
fn what_takes_long_goes_on_in_the_background_without_a_restart() {
    let home = TestHome::in_memory(CCB);
    home.with_fake_runtime(FAKE_AGENT, r#""agents":{"autoBackgroundMs":200}"#);
    let (go, starts) = (home.path().join("go"), home.path().join("starts"));
    let script = Script::new()
        .append(&starts, "started")
        .wait_file(&go)
        .done("late");
    let answer = home.ok(&["agent", "spawn", "--runtime", "fake", &script.to_prompt()]);
    assert_eq!(answer["agent"]["status"], "async_launched");
    let id = answer["agent"]["agentId"].as_str().unwrap().to_owned();
    std::fs::write(&go, "").unwrap();
    home.await_settled(&id);
    assert_eq!(std::fs::read_to_string(&starts).unwrap().lines().count(), 1);
    assert_eq!(home.notifications(), [(id, "completed".to_owned())]);
}

#[test]
fn a_question_nobody_can_answer_is_denied_and_one_for_the_lead_waits() {
    let home = home();
    let ask = || Script::new().ask("Bash", |yes| yes.done("allowed"), |no| no.done("denied"));
    let id = home.spawn_fake(&ask(), &[]);
    home.await_settled(&id);
    assert_eq!(home.run_exit(&id).unwrap()["result"], "denied");
    // The lead's mail has a reader from here on.
    let team = Name::new("team", "board").unwrap();
    let mailbox = Mailbox::new(
        &Home::new(home.path().to_owned()).unwrap(),
        &team,
        MailOptions::default(),
    );
    let lead = Name::new("agent", "team-lead").unwrap();
    let reader = mailbox.inbox(&lead).unwrap().consumer().unwrap();
    let id = home.spawn_fake(&ask(), &[]);
    let pending = || {
        let requests = home.ok(&["mail", "requests"]);
        let first = requests["requests"].as_array().unwrap().first().cloned();
        first.and_then(|request| request["id"].as_str().map(str::to_owned))
    };
    wait_until(LONG, "the question", || pending().is_some());
    home.ok(&["mail", "approve", &pending().unwrap(), "--as", "team-lead"]);
    home.await_settled(&id);
    assert_eq!(home.run_exit(&id).unwrap()["result"], "allowed");
    drop(reader);
}
