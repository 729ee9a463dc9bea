//! The tools for agents, with agents that run commands.

use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

use harness::script::Script;
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
    // That answer brought it the news, and they do not come again.
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
    assert!(text.contains("SendMessage resumes it"), "{text}");
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

/// A place whose agents are commands.
fn shell() -> Place {
    let place = Place::new();
    place
        .home
        .settings(r#"{"agents": {"defaultRuntime": "shell"}}"#);
    place
}

#[test]
fn an_agent_is_started_and_waited_for() {
    let place = shell();
    let mut lead = place.lead();
    let done = lead.ok(
        "Agent",
        json!({"description": "say hello", "prompt": "echo hello there"}),
    );
    assert_eq!(done["status"], "completed", "{done}");
    assert!(
        done["content"][0]["text"]
            .as_str()
            .unwrap()
            .contains("hello there"),
        "{done}"
    );
    let id = done["agentId"].as_str().unwrap();
    let shown = place.home.ok(&["agent", "show", id]);
    assert_eq!(shown["agent"]["description"], "say hello");
    assert_eq!(shown["agent"]["parent"], "team-lead");
    // Its result was the notification.
    assert_eq!(texts(&lead.call("TaskList", json!({}))).len(), 1);
    let result = lead.call(
        "Agent",
        json!({"description": "fail", "prompt": "echo no; exit 3"}),
    );
    assert_eq!(result["structuredContent"]["status"], "failed", "{result}");
    assert!(
        texts(&result)[0].starts_with("The agent did not do it"),
        "{result}"
    );
}

/// A client that hangs up while an agent works leaves it working, and the lead is notified of its
/// end.
#[test]
fn an_agent_outlives_the_client_that_waits_for_it() {
    let place = shell();
    let mut lead = place.lead();
    let prompt = format!("cat '{}'", place.gate.display());
    let call = json!({"description": "wait", "prompt": prompt});
    lead.begin("tools/call", json!({"name": "Agent", "arguments": call}));
    wait_until(LIMIT, "the agent", || {
        let all = place.home.ok(&["agent", "list"]);
        all["agents"]
            .as_array()
            .unwrap()
            .iter()
            .any(|agent| agent["state"] == "running")
    });
    let end = lead.finish();
    assert_eq!(end.code, Some(0), "{end:?}");
    place.open_gate("late but done\n");
    let mut lead = place.lead();
    wait_until(LIMIT, "the notification", || {
        let all = texts(&lead.call("TaskList", json!({})));
        all.iter()
            .any(|text| text.contains("<task-notification>") && text.contains("late but done"))
    });
}

#[test]
fn an_agent_in_the_background_and_a_teammate() {
    let place = shell();
    let mut lead = place.lead();
    let prompt = format!("cat '{}'", place.gate.display());
    let call = json!({"description": "wait", "prompt": prompt, "run_in_background": true});
    let launched = lead.ok("Agent", call);
    assert_eq!(launched["status"], "async_launched");
    let id = launched["agentId"].clone();
    place.open_gate("found it\n");
    let result = lead.ok("TaskOutput", json!({"task_id": id, "timeout": 60_000}));
    assert_eq!(result["task"]["status"], "completed");
    let mate =
        json!({"description": "help", "prompt": "true", "name": "bob", "team_name": "board"});
    let spawned = lead.ok("Agent", mate);
    let expected = json!({
        "status": "teammate_spawned", "teammate_id": "bob@board", "name": "bob",
        "team_name": "board", "note": "Its type is general-purpose.",
    });
    assert_eq!(spawned, expected);
    let team = place.home.ok(&["team", "show", "board"]);
    assert_eq!(team["team"]["members"][1]["name"], "bob");
    wait_until(LIMIT, "its end", || {
        let shown = place.home.ok(&["agent", "show", "bob"]);
        shown["agent"]["alive"] == json!(false)
    });
}

/// A spawn that is impossible is refused as the command refuses it.
#[test]
fn a_spawn_fails_as_the_command_does() {
    let place = Place::new();
    let mut lead = place.lead();
    let call = |more: Value| {
        let mut call = json!({"description": "say hello", "prompt": "Say hello."});
        for (key, value) in more.as_object().unwrap() {
            call[key] = value.clone();
        }
        call
    };
    let (error, text) = lead.fails("Agent", call(json!({})));
    assert_eq!(
        error,
        place.home.fails(2, &["agent", "spawn", "Say hello."])
    );
    assert!(text.contains("TaskCreate"), "{text}");
    place
        .home
        .settings(r#"{"agents": {"defaultRuntime": "shell"}}"#);
    let mut lead = place.lead();
    let (error, _) = lead.fails("Agent", call(json!({"subagent_type": "general-purposes"})));
    let args = ["agent", "spawn", "Say hello.", "--type", "general-purposes"];
    assert_eq!(error, place.home.fails(3, &args));
    let (error, _) = lead.fails("Agent", call(json!({"cwd": "/no/such/place"})));
    let args = ["agent", "spawn", "Say hello.", "--cwd", "/no/such/place"];
    assert_eq!(error, place.home.fails(2, &args));
}

/// A lead answers the questions of agents that are no teammates, by their ids.
#[test]
fn a_lead_answers_the_question_of_an_agent_without_a_name() {
    let place = Place::new();
    place.home.with_fake_runtime(crate::FAKE_AGENT, "");
    let mut lead = place.lead();
    lead.ok("TaskList", json!({}));
    let script = Script::new().ask("Bash", |yes| yes.done("allowed"), |no| no.done("denied"));
    let id = place.home.spawn_fake(&script, &[]);
    let mut asked = String::new();
    wait_until(LIMIT, "the question", || {
        asked = texts(&lead.call("TaskList", json!({})))
            .split_off(1)
            .join("\n");
        asked.contains("permission_request")
    });
    let body = asked.lines().find(|line| line.starts_with('{')).unwrap();
    let body: Value = serde_json::from_str(body).unwrap();
    let answer = |to: &str| {
        json!({"to": to, "message": {
            "type": "permission_response", "request_id": body["requestId"], "approve": true,
        }})
    };
    let (_, wrong) = lead.fails("SendMessage", answer("bob"));
    assert!(wrong.contains("was asked by"), "{wrong}");
    lead.ok("SendMessage", answer(&id));
    place.home.await_settled(&id);
    assert_eq!(place.home.run_exit(&id).unwrap()["result"], "allowed");
    let (error, _) = lead.fails("SendMessage", answer(&id));
    assert_eq!(error["error"]["kind"], "already_answered", "{error}");
}

/// A teammate that agrees to end does so when its turn is over; then the team can be deleted.
#[test]
fn an_approved_shutdown_ends_a_teammate() {
    let place = Place::new();
    place.home.with_fake_runtime(crate::FAKE_AGENT, "");
    let go = place.home.path().join("go");
    let script = Script::new().wait_file(&go).done("my step is done").serve();
    let id = place
        .home
        .spawn_fake(&script, &["--name", "alice", "--team", "board"]);
    let mut lead = place.lead();
    let question = json!({"type": "shutdown_request", "reason": "that is all"});
    let asked = lead.ok("SendMessage", json!({"to": "alice", "message": question}));
    let request = asked["request"]["id"].as_str().unwrap();
    let (error, _) = lead.fails("TeamDelete", json!({}));
    assert_eq!(error["error"]["kind"], "members_alive", "{error}");
    place
        .home
        .ok(&["mail", "approve", request, "--as", "alice"]);
    std::fs::write(&go, "").unwrap();
    place.home.await_settled(&id);
    let exit = place.home.run_exit(&id).unwrap();
    assert_eq!(exit["status"], "completed", "{exit}");
    let mut mail = String::new();
    wait_until(LIMIT, "the word that it is gone", || {
        mail.push_str(
            &texts(&lead.call("TaskList", json!({})))
                .split_off(1)
                .join("\n"),
        );
        mail.contains("teammate_terminated")
    });
    assert!(mail.contains("shutdown_approved"), "{mail}");
    lead.ok("TeamDelete", json!({}));
}

#[test]
fn a_teammate_works_on_one_task_at_a_time() {
    let place = Place::new();
    let bob = || {
        McpClient::connect(
            place
                .home
                .command(&["mcp", "--role", "teammate", "--as", "bob"]),
        )
    };
    let mut mcp = bob();
    for subject in ["one", "two"] {
        mcp.ok("TaskCreate", json!({"subject": subject, "description": ""}));
    }
    let begin = |id: &str| json!({"taskId": id, "status": "in_progress"});
    mcp.ok("TaskUpdate", begin("1"));
    let (error, words) = mcp.fails("TaskUpdate", begin("2"));
    assert_eq!(error["error"]["kind"], "agent_busy", "{error}");
    assert!(
        words.contains("bob is busy with 1") || words.contains("#1"),
        "{words}"
    );
    // The same again is no second claim.
    mcp.ok("TaskUpdate", begin("1"));
    let mut lead = place.lead();
    lead.ok("TaskCreate", json!({"subject": "three", "description": ""}));
    lead.ok("TaskUpdate", begin("2"));
    lead.ok("TaskUpdate", begin("3"));
    place
        .home
        .settings(r#"{"taskboard":{"manyTasksPerAgent":true}}"#);
    let mut mcp = bob();
    lead.ok("TaskUpdate", json!({"taskId": "2", "status": "pending"}));
    mcp.ok("TaskUpdate", begin("2"));
}

/// A client that asks for it hears the progress of the agent it waits for.
#[test]
fn a_foreground_agent_tells_how_far_it_is() {
    let place = Place::new();
    place
        .home
        .with_fake_runtime(crate::FAKE_AGENT, r#""agents":{"defaultRuntime":"fake"}"#);
    let (first, second) = (place.home.path().join("1"), place.home.path().join("2"));
    let script = Script::new()
        .tool("Read", "text")
        .wait_file(&first)
        .tool("Grep", "line")
        .wait_file(&second)
        .done("found");
    let mut lead = place.lead();
    let call = json!({"description": "look", "prompt": script.to_prompt()});
    let params = json!({
        "name": "Agent", "arguments": call, "_meta": {"progressToken": "p1"},
    });
    let id = lead.begin("tools/call", params);
    let mut said = Vec::new();
    for (tool, go) in [("Read", &first), ("Grep", &second)] {
        let note = lead.notification("notifications/progress");
        assert_eq!(note["params"]["progressToken"], "p1");
        let words = note["params"]["message"].as_str().unwrap();
        assert!(words.contains("look") && words.contains(tool), "{words}");
        said.push(note["params"]["progress"].as_f64().unwrap());
        std::fs::write(go, "").unwrap();
    }
    assert!(said[0] < said[1], "{said:?}");
    let answer = lead.answer(&id);
    assert!(texts(&answer["result"])[0].contains("found"), "{answer}");
    // Without a token no progress is sent.
    let quick = json!({"description": "look", "prompt": Script::new().done("x").to_prompt()});
    lead.ok("Agent", quick);
    assert!(
        lead.notifications
            .iter()
            .all(|n| n["method"] != "notifications/progress")
    );
}

/// Only one of ccb's agents can be copied, by its own call, and a copy makes no copies.
#[test]
fn what_cannot_be_copied_is_refused() {
    let place = Place::new();
    let mut lead = place.lead();
    let call = json!({"description": "d", "prompt": "p", "subagent_type": "fork"});
    let (error, words) = lead.fails("Agent", call);
    assert_eq!(error["error"]["kind"], "cannot_fork", "{words}");
}

#[test]
fn a_variable_keeps_agents_out_of_the_background_and_shells_are_agents() {
    let place = shell();
    let mut command = place.home.command(&["mcp", "--role", "lead"]);
    command.env("CLAUDE_CODE_DISABLE_BACKGROUND_TASKS", "true");
    let mut lead = McpClient::connect(command);
    let call = json!({"description": "say", "prompt": "echo said", "run_in_background": true});
    let answer = lead.ok("Agent", call);
    assert_eq!(answer["status"], "completed", "{answer}");
    let id = place.start();
    lead.ok("TaskStop", json!({"shell_id": id}));
    let (_, why) = lead.fails("TaskStop", json!({}));
    assert!(why.contains("task_id"), "{why}");
    place.stop_all();
}
