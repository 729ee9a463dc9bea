//! The tools for agents, with agents that run commands.

use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

use harness::{McpClient, TestHome, texts, wait_until};
use serde_json::{Value, json};

use crate::CCB;

const LIMIT: Duration = Duration::from_secs(60);

/// A team, and a gate behind which agents wait.
struct Place {
    home: TestHome,
    gate: PathBuf,
}

impl Place {
    fn new() -> Self {
        let home = TestHome::in_memory(CCB);
        home.ok(&["team", "create", "board"]);
        let gate = home.path().join("gate");
        let made = std::process::Command::new("mkfifo").arg(&gate).status();
        assert!(made.unwrap().success());
        Self { home, gate }
    }

    fn lead(&self) -> McpClient {
        McpClient::connect(self.home.command(&["mcp", "--role", "lead"]))
    }

    /// An agent that says something and waits at the gate; returns its id.
    fn start(&self) -> String {
        let command = format!("echo working; cat '{}'", self.gate.display());
        let args = [
            "agent",
            "spawn",
            &command,
            "--runtime",
            "shell",
            "--background",
        ];
        let answer = self
            .home
            .ok(&[&args[..], &["--description", "wait at the gate"]].concat());
        answer["agent"]["agentId"].as_str().unwrap().to_owned()
    }

    fn open_gate(&self, words: &str) {
        let mut gate = std::fs::OpenOptions::new()
            .write(true)
            .open(&self.gate)
            .unwrap();
        gate.write_all(words.as_bytes()).unwrap();
    }

    fn stop_all(&self) {
        let all = self.home.ok(&["agent", "list"]);
        for agent in all["agents"].as_array().unwrap() {
            if agent["alive"] == json!(true) {
                self.home
                    .run(&["agent", "stop", agent["agentId"].as_str().unwrap()]);
            }
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // Nothing a test started outlives it.
        if !std::thread::panicking() {
            self.stop_all();
        }
    }
}

#[test]
fn output_is_what_there_is_and_then_the_result() {
    let place = Place::new();
    let id = place.start();
    let mut lead = place.lead();
    let look = json!({"task_id": id, "block": false});
    wait_until(LIMIT, "the first words", || {
        let seen = lead.ok("TaskOutput", look.clone());
        assert_eq!(seen["retrieval_status"], "not_ready");
        assert_eq!(seen["task"]["description"], "wait at the gate");
        seen["task"]["output"].as_str().unwrap().contains("working")
    });
    let late = lead.ok("TaskOutput", json!({"task_id": id, "timeout": 50}));
    assert_eq!(late["retrieval_status"], "timeout");
    let wait = json!({"name": "TaskOutput", "arguments": {"task_id": id, "timeout": 60_000}});
    let waiting = lead.begin("tools/call", wait);
    // Others are answered meanwhile.
    lead.ok("TaskList", json!({}));
    place.open_gate("all done\n");
    let answer = lead.answer(&waiting);
    let json = &answer["result"]["structuredContent"];
    assert_eq!(json["retrieval_status"], "success", "{answer}");
    assert_eq!(json["task"]["status"], "completed");
    assert!(
        json["task"]["output"]
            .as_str()
            .unwrap()
            .contains("all done"),
        "{answer}"
    );
    let by_hand = place.home.ok(&["agent", "output", &id]);
    assert_eq!(by_hand["agent"]["content"], json["task"]["output"]);
    // It was told by that, and is not told again.
    assert_eq!(texts(&lead.call("TaskList", json!({}))).len(), 1);
}

#[test]
fn the_end_of_an_agent_comes_with_the_next_result() {
    let place = Place::new();
    let id = place.start();
    let mut lead = place.lead();
    lead.ok("TaskList", json!({}));
    place.open_gate("found it\n");
    let mut came = String::new();
    wait_until(LIMIT, "the notification", || {
        let all = texts(&lead.call("TaskList", json!({})));
        came = all.get(1).cloned().unwrap_or_default();
        !came.is_empty()
    });
    assert!(came.starts_with("<task-notification>"), "{came}");
    assert!(came.contains(&id) && came.contains("found it"), "{came}");
}

#[test]
fn one_that_runs_is_stopped_and_one_that_does_not_is_an_error() {
    let place = Place::new();
    let id = place.start();
    let mut lead = place.lead();
    let (_, text) = lead.fails("TaskStop", json!({"task_id": "7"}));
    assert!(text.contains(&id), "{text}");
    let stopped = lead.ok("TaskStop", json!({"task_id": id}));
    assert_eq!(stopped["agent"]["status"], "killed");
    assert_eq!(stopped["task_id"], json!(id));
    let (error, text) = lead.fails("TaskStop", json!({"task_id": id}));
    assert_eq!(error, place.home.fails(4, &["agent", "stop", &id]));
    assert!(text.contains("SendMessage lets it go on"), "{text}");
    let (error, _) = lead.fails("TaskStop", json!({"task_id": "affffffffffffffff"}));
    assert_eq!(
        error,
        place.home.fails(3, &["agent", "stop", "affffffffffffffff"])
    );
    // Not a teammate's business.
    let mut alice = McpClient::connect(
        place
            .home
            .command(&["mcp", "--role", "teammate", "--as", "alice"]),
    );
    let (error, _) = alice.fails("TaskOutput", json!({"task_id": id}));
    assert_eq!(error["error"]["kind"], "not_yours");
}

#[test]
fn a_message_lets_one_that_has_ended_go_on() {
    let place = Place::new();
    let id = place.start();
    let mut lead = place.lead();
    let message = json!({"to": id, "message": "More, please", "summary": "more"});
    let sent = lead.ok("SendMessage", message.clone());
    assert_eq!(
        (&sent["message"]["resumed"], &sent["message"]["to"]),
        (&json!(false), &json!(id))
    );
    place.open_gate("once\n");
    lead.ok("TaskOutput", json!({"task_id": id, "timeout": 60_000}));
    wait_until(LIMIT, "its end", || {
        let shown = place.home.ok(&["agent", "show", &id]);
        shown["agent"]["alive"] == json!(false)
    });
    let sent = lead.ok("SendMessage", message);
    assert_eq!(sent["message"]["resumed"], true, "{sent}");
    place.open_gate("twice\n");
    let result = lead.ok("TaskOutput", json!({"task_id": id, "timeout": 60_000}));
    assert!(
        result["task"]["output"].as_str().unwrap().contains("twice"),
        "{result}"
    );
}

/// Without anything that could run an agent the tool says what the command says, and more.
#[test]
fn a_spawn_fails_as_the_command_does() {
    let place = Place::new();
    let mut lead = place.lead();
    let call = json!({"description": "say hello", "prompt": "Say hello."});
    let (error, text): (Value, String) = lead.fails("Agent", call);
    assert_eq!(
        error,
        place.home.fails(2, &["agent", "spawn", "Say hello."])
    );
    assert!(text.contains("TaskCreate"), "{text}");
}
