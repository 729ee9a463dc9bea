//! A team whose agents are real programs on a scripted model, driven through the command line.

use std::path::PathBuf;

use serde_json::{Value, json};
use swarm::runtime::Launch;

use crate::real::{RealWorld, real_program};
use crate::runs::{LONG, left_of};
use crate::{TestHome, TestRepo, wait_until};

/// A home, a repository, and a runtime, usually `claude`, that is kept on loopback. Agents of the type `free`
/// may do everything without asking.
#[derive(Debug)]
pub struct RealTeam {
    pub world: RealWorld,
    pub home: TestHome,
    pub repo: TestRepo,
}

impl RealTeam {
    /// With the Claude Code that `CCB_TEST_CLAUDE` names.
    pub fn claude(ccb: &str, more: &Value) -> Self {
        let command = [real_program("CCB_TEST_CLAUDE")];
        Self::with(ccb, "claude", &command, RealWorld::claude, more)
    }

    /// With the Codex that `CCB_TEST_CODEX` names.
    pub fn codex(ccb: &str, more: &Value) -> Self {
        let command = [real_program("CCB_TEST_CODEX")];
        Self::with(ccb, "codex", &command, RealWorld::codex, more)
    }

    /// With a program that is a runtime of this name and kind.
    fn with(
        ccb: &str,
        kind: &str,
        command: &[String],
        launch: fn(&RealWorld, &str) -> Launch,
        more: &Value,
    ) -> Self {
        let world = RealWorld::new();
        let env: serde_json::Map<String, Value> = launch(&world, "")
            .env
            .into_iter()
            .filter(|(name, _)| name != "PATH" && name != "TMPDIR")
            .map(|(name, value)| {
                let text = |os: std::ffi::OsString| os.to_string_lossy().into_owned();
                (text(name), text(value).into())
            })
            .collect();
        let home = TestHome::new(ccb);
        let mut settings = json!({
            "runtimes": { kind: { "kind": kind, "command": command, "env": env } },
        });
        if let Some(more) = more.as_object() {
            for (key, value) in more {
                settings[key] = value.clone();
            }
        }
        home.settings(&settings.to_string());
        let free = "---\nname: free\ndescription: may do everything\n\
                    permissionMode: bypassPermissions\n---\nYou follow orders.\n";
        crate::write(&home.path().join("agents/free.md"), free);
        Self {
            world,
            home,
            repo: TestRepo::new(),
        }
    }

    /// The arguments that start an agent in the repository.
    fn spawning<'a>(&'a self, how: &[&'a str]) -> Vec<&'a str> {
        let main = self.repo.main().to_str().expect("a path");
        let mut args = vec!["-C", main, "agent", "spawn"];
        args.extend_from_slice(how);
        args
    }

    /// Starts an agent in the background, in a worktree of its own; returns its id.
    pub fn spawn(&self, prompt: &str) -> String {
        let how = ["--runtime", "claude", "--type", "free", "--background"];
        let how = [&how[..], &["--isolation", "worktree", prompt]].concat();
        let answer = self.home.ok(&self.spawning(&how));
        let id = answer["agent"]["agentId"].as_str();
        id.unwrap_or_else(|| panic!("no id in {answer}")).to_owned()
    }

    /// Starts an agent and waits for its result.
    pub fn ask(&self, how: &[&str]) -> Value {
        let how = [&["--wait"], how].concat();
        self.home.ok(&self.spawning(&how))["agent"].clone()
    }

    /// The worktree of an agent.
    pub fn tree(&self, id: &str) -> PathBuf {
        let meta = self.home.run_meta(id);
        PathBuf::from(meta["worktree"]["path"].as_str().expect("a tree"))
    }

    /// The last notification to the lead about an agent.
    pub fn told(&self, id: &str) -> Value {
        let inbox = ["mail", "inbox", "--all", "--as", "team-lead"];
        let answer = self.home.ok(&inbox);
        let all = answer["messages"].as_array().cloned().unwrap_or_default();
        let mut of = all.into_iter().filter(|m| m["body"]["taskId"] == id);
        of.next_back().expect("a notification")["body"].clone()
    }

    /// Waits until an agent is settled, and cleans up where no other process does.
    pub fn settle(&self, id: &str) {
        let active = self.home.team_dir().join("runs/.active").join(id);
        wait_until(LONG, &format!("{id} to be settled"), || {
            self.home.ok(&["agent", "list"]);
            !active.exists()
        });
    }

    /// Every process that carries the agent's mark.
    pub fn left_of(&self, id: &str) -> Vec<String> {
        left_of(id)
    }
}
