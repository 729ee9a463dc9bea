//! Team sessions in tests: a home, a repository, and `ccb --team` processes on both.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use crate::home::{Answer, TestHome};
use crate::model::ModelServer;
use crate::repo::TestRepo;
use crate::runs::LONG;
use crate::script::Script;
use crate::wait_until;

/// A team's home and its repository.
#[derive(Debug)]
pub struct SessionScene {
    pub home: TestHome,
    pub repo: TestRepo,
    /// The model of native agents, if they are the ones who follow scripts.
    model: Option<ModelServer>,
}

/// Makes two tests of each of these functions, which take a scene: scripts are followed by fake
/// agents, and by native ones on a scripted model.
#[macro_export]
macro_rules! on_scripted_agents {
    ($($name:ident),+ $(,)?) => {
        mod with_fake_agents {
            $(#[test]
            fn $name() {
                super::$name(&super::scene());
            })+
        }

        mod with_native_agents {
            use $crate::team_session::SessionScene;

            $(#[test]
            fn $name() {
                super::$name(&SessionScene::with_native_agents(super::CCB));
            })+
        }
    };
}

impl SessionScene {
    /// An empty team `board` on a small repository.
    pub fn new(binary: &str) -> Self {
        let home = TestHome::in_memory(binary);
        home.settings(r#"{"agents":{"stopGraceMs":300}}"#);
        Self {
            home,
            repo: TestRepo::new(),
            model: None,
        }
    }

    /// The same, but native agents follow the scripts, on a model without a key.
    pub fn with_native_agents(binary: &str) -> Self {
        let mut scene = Self::new(binary);
        let model = ModelServer::start();
        let settings = json!({
            "agents": {
                "stopGraceMs": 300,
                "defaultProvider": "scripted",
                // The directory for marks of scripts.
                "sandboxWrite": [scene.home.path()],
            },
            "providers": {
                "scripted": { "kind": "anthropic", "baseUrl": model.url(), "model": "scripted-1" },
            },
        });
        scene.home.settings(&settings.to_string());
        scene.model = Some(model);
        scene
    }

    /// The runtime of the agents that follow scripts.
    pub fn runtime(&self) -> &'static str {
        match self.model {
            Some(_) => "native",
            None => "fake",
        }
    }

    /// True if native agents follow scripts.
    pub fn is_native(&self) -> bool {
        self.model.is_some()
    }

    /// A prompt for one of those.
    pub fn prompt(&self, script: &Script) -> String {
        match self.is_native() {
            true => script.to_model_prompt(),
            false => script.to_prompt(),
        }
    }

    /// A `ccb` process in the repository, acting in the team.
    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = self.home.command(args);
        command.current_dir(self.repo.main());
        // The committer, if the engine commits for an agent.
        for role in ["AUTHOR", "COMMITTER"] {
            command.env(format!("GIT_{role}_NAME"), "test");
            command.env(format!("GIT_{role}_EMAIL"), "test@example.com");
        }
        command
    }

    /// The same without naming a team or list.
    pub fn unnamed(&self, args: &[&str]) -> Command {
        let mut command = self.home.command_without_list(args);
        command.current_dir(self.repo.main());
        for role in ["AUTHOR", "COMMITTER"] {
            command.env(format!("GIT_{role}_NAME"), "test");
            command.env(format!("GIT_{role}_EMAIL"), "test@example.com");
        }
        command
    }

    /// Runs it to its end.
    pub fn run(&self, args: &[&str]) -> Answer {
        Answer::of(self.command(args).output().expect("ccb starts"))
    }

    /// Runs it with `--json` and expects success.
    pub fn ok(&self, args: &[&str]) -> Value {
        let answer = self.run(&[&["--json"], args].concat());
        assert_eq!(answer.code, Some(0), "{args:?}: {answer:?}");
        answer.json()
    }

    /// Puts a task on the board; returns its id.
    pub fn task(&self, subject: &str, more: &[&str]) -> u64 {
        let answer = self.ok(&[&["task", "create", subject], more].concat());
        let id = answer["task"]["id"].as_str().and_then(|id| id.parse().ok());
        id.expect("an id")
    }

    /// A whole session without a model, from its start to its end.
    pub fn session(&self, more: &[&str]) -> Answer {
        self.run(&[&["--json", "--runtime", "shell"], more].concat())
    }

    /// A session in the background; its output goes to `session.log` in the home.
    pub fn start(&self, more: &[&str]) -> Child {
        let log = std::fs::File::options()
            .create(true)
            .append(true)
            .open(self.log())
            .expect("a log");
        self.command(&[&["--json", "--runtime", "shell"], more].concat())
            .stdout(log.try_clone().expect("a log"))
            .stderr(log)
            .stdin(Stdio::null())
            .spawn()
            .expect("ccb starts")
    }

    pub fn log(&self) -> PathBuf {
        self.home.path().join("session.log")
    }

    /// The status of a task, straight from its file.
    pub fn status(&self, id: u64) -> String {
        let task = self.file(id);
        task["status"].as_str().unwrap_or_default().to_owned()
    }

    /// A task, straight from its file.
    pub fn file(&self, id: u64) -> Value {
        let text = std::fs::read_to_string(self.home.task_file(id)).expect("a task");
        serde_json::from_str(&text).expect("a task is whole")
    }

    pub fn await_status(&self, id: u64, status: &str) {
        wait_until(LONG, &format!("task {id} to be {status}"), || {
            self.status(id) == status
        });
    }

    /// Waits for a session in the background; returns its exit code.
    pub fn await_end(&self, child: &mut Child) -> Option<i32> {
        let mut code = None;
        wait_until(LONG, "the session to end", || match child.try_wait() {
            Ok(Some(status)) => {
                code = status.code();
                true
            }
            _ => false,
        });
        code
    }

    /// Names of the existing worktrees.
    pub fn trees(&self) -> Vec<String> {
        let answer = self.ok(&["worktree", "list"]);
        let trees = answer["worktrees"].as_array().cloned().unwrap_or_default();
        let live = trees.iter().filter(|tree| tree["status"] != "removed");
        live.map(|tree| tree["name"].as_str().unwrap_or_default().to_owned())
            .collect()
    }

    /// Waits until every run is settled and none is alive.
    pub fn await_nobody(&self) {
        let active = self.home.team_dir().join("runs/.active");
        wait_until(LONG, "all runs to be settled", || {
            self.ok(&["agent", "list"]);
            std::fs::read_dir(&active).map_or(0, Iterator::count) == 0
        });
    }
}
