//! Agents in tests: started with the fake agent, observed from outside.

use std::path::PathBuf;
use std::time::Duration;

use serde_json::Value;

use crate::fake::Pids;
use crate::script::Script;
use crate::{TestHome, wait_until};

/// Time limit that only failures reach, also on a busy machine.
pub const LONG: Duration = Duration::from_secs(120);

impl TestHome {
    /// A runtime `fake` whose agents follow scripts, besides `more` (the inside of a JSON object).
    pub fn with_fake_runtime(&self, program: &str, more: &str) {
        let command = serde_json::to_string(program).expect("text");
        let comma = if more.is_empty() { "" } else { "," };
        self.settings(&format!(
            r#"{{"runtimes":{{"fake":{{"kind":"lines","command":[{command}]}}}}{comma}{more}}}"#
        ));
    }

    /// Starts an agent in the background that follows `script`; returns its id.
    pub fn spawn_fake(&self, script: &Script, more: &[&str]) -> String {
        let prompt = script.to_prompt();
        let mut args = vec!["agent", "spawn", "--runtime", "fake", "--background"];
        args.extend_from_slice(more);
        args.push(&prompt);
        let answer = self.ok(&args);
        let id = answer["agent"]["agentId"].as_str();
        id.unwrap_or_else(|| panic!("no id in {answer}")).to_owned()
    }

    /// The directory of a run.
    pub fn run_dir(&self, id: &str) -> PathBuf {
        self.team_dir().join("runs").join(id)
    }

    /// The record of a run, read from its file.
    pub fn run_meta(&self, id: &str) -> Value {
        let path = self.run_dir(id).join("meta.json");
        let bytes = std::fs::read(&path).unwrap_or_else(|error| panic!("{path:?}: {error}"));
        serde_json::from_slice(&bytes).expect("a run's file is whole")
    }

    /// The end of a run, read from its file.
    pub fn run_exit(&self, id: &str) -> Option<Value> {
        let bytes = std::fs::read(self.run_dir(id).join("exit.json")).ok()?;
        Some(serde_json::from_slice(&bytes).expect("a run's end is whole"))
    }

    /// Waits until a run is in this state.
    pub fn await_run(&self, id: &str, state: &str) {
        wait_until(LONG, &format!("{id} to be {state}"), || {
            self.run_meta(id)["state"] == state
        });
    }

    /// Waits until a run is settled.
    pub fn await_settled(&self, id: &str) {
        let active = self.team_dir().join("runs/.active").join(id);
        wait_until(LONG, &format!("{id} to be settled"), || !active.exists());
    }

    /// The process of a run: `host`, `guard`, or its agent as `pid`.
    pub fn run_process(&self, id: &str, which: &str) -> i32 {
        // A run is known before its processes are.
        let mut pid = None;
        wait_until(LONG, &format!("{which} of {id}"), || {
            let meta = self.run_meta(id);
            pid = match which {
                "pid" => meta["pid"].as_i64(),
                other => meta[other]["pid"].as_i64(),
            };
            pid.is_some()
        });
        i32::try_from(pid.unwrap_or_default()).expect("a process id")
    }

    /// Every notification the lead has had, as agent id and status, oldest first.
    pub fn notifications(&self) -> Vec<(String, String)> {
        let answer = self.ok(&["mail", "inbox", "--all", "--as", "team-lead"]);
        let messages = answer["messages"].as_array().cloned().unwrap_or_default();
        let told = messages.iter().filter(|m| m["kind"] == "task_notification");
        let told = told.map(|message| {
            let text = |key: &str| message["body"][key].as_str().unwrap_or_default().to_owned();
            (text("taskId"), text("status"))
        });
        told.collect()
    }
}

/// Sends a signal to a process this test has started.
pub fn kill(pid: i32, signal: rustix::process::Signal) {
    let pid = rustix::process::Pid::from_raw(pid).expect("a process id");
    rustix::process::kill_process(pid, signal).ok();
}

/// Waits until none of the recorded processes exists any more.
pub fn await_none_left(pids: &Pids) {
    wait_until(LONG, "all descendants to be gone", || {
        pids.left().is_empty()
    });
}

impl TestHome {
    /// Writes the user's own hooks: the value of `hooks` in the settings.
    pub fn hooks(&self, hooks: &Value) {
        let text = serde_json::json!({ "hooks": hooks }).to_string();
        crate::write(&self.path().join("settings.json"), &text);
    }

    /// One hook of the user's.
    pub fn hook(&self, event: &str, command: &str) {
        self.hooks(&one_hook(event, command, 60.0));
    }

    /// The entries of a run's transcript of this type.
    pub fn entries(&self, id: &str, kind: &str) -> Vec<Value> {
        let path = self.run_dir(id).join("transcript.jsonl");
        let text = std::fs::read_to_string(path).unwrap_or_default();
        let all = text
            .lines()
            .filter_map(|line| serde_json::from_str(line).ok());
        all.filter(|entry: &Value| entry["type"] == kind).collect()
    }

    /// The texts of messages to the lead, oldest first.
    pub fn told_lead(&self) -> Vec<String> {
        let answer = self.ok(&["mail", "inbox", "--all", "--as", "team-lead"]);
        let messages = answer["messages"].as_array().cloned().unwrap_or_default();
        let texts = messages
            .iter()
            .filter(|message| message["kind"] == "message");
        let texts = texts.filter_map(|message| message["text"].as_str());
        texts.map(str::to_owned).collect()
    }
}

/// The value of `hooks` with one command for one event.
pub fn one_hook(event: &str, command: &str, timeout: f64) -> Value {
    let hook = serde_json::json!({"type": "command", "command": command, "timeout": timeout});
    serde_json::json!({ event: [{ "hooks": [hook] }] })
}

/// Every process that carries the mark of the run `id`, by its command line.
pub fn left_of(id: &str) -> Vec<String> {
    let mark = format!("CCB_RUN_ID={id}\0");
    let mut left = Vec::new();
    for entry in std::fs::read_dir("/proc").expect("a list of processes") {
        let dir = entry.expect("an entry").path();
        let environ = std::fs::read(dir.join("environ")).unwrap_or_default();
        let marked = environ
            .windows(mark.len())
            .any(|bytes| bytes == mark.as_bytes());
        if marked {
            let line = std::fs::read(dir.join("cmdline")).unwrap_or_default();
            left.push(String::from_utf8_lossy(&line).replace('\0', " "));
        }
    }
    left
}
