//! A team whose agents are ccb's own loop on a scripted model: nothing else is installed.

use std::ffi::OsString;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::model::{ModelServer, Recorded, Step, prompt};
use crate::{Answer, TestHome, TestRepo};

/// The key of these tests; it must not appear anywhere.
pub const KEY: &str = "sk-ant-test-0123456789abcdef";

/// A home, a repository, a model on loopback, and a `PATH` that has git and a shell alone. Agents of
/// the type `free` may do everything without asking.
#[derive(Debug)]
pub struct NativeTeam {
    pub model: ModelServer,
    pub home: TestHome,
    pub repo: TestRepo,
    path: OsString,
}

impl NativeTeam {
    pub fn new(ccb: &str) -> Self {
        let home = TestHome::new(ccb);
        let bin = home.path().join("only-git-and-sh");
        std::fs::create_dir(&bin).expect("a directory");
        for program in ["git", "sh"] {
            symlink(installed(program), bin.join(program)).expect("a link");
        }
        // A type that may do everything without asking.
        let free = "---\nname: free\ndescription: may do everything\n\
                    permissionMode: bypassPermissions\n---\nYou follow orders.\n";
        crate::write(&home.path().join("agents/free.md"), free);
        Self {
            model: ModelServer::start(),
            home,
            repo: TestRepo::new(),
            path: bin.into_os_string(),
        }
    }

    /// A command in the repository, with a key and nothing else of the environment.
    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = self.keyless(args);
        command
            .env("ANTHROPIC_API_KEY", KEY)
            .env("ANTHROPIC_BASE_URL", self.model.url());
        command
    }

    /// The same without a key.
    pub fn keyless(&self, args: &[&str]) -> Command {
        let mut command = self.home.command(args);
        command
            .env("PATH", &self.path)
            .current_dir(self.repo.main());
        command
    }

    /// Runs a command to its end.
    pub fn run(&self, args: &[&str]) -> Answer {
        Answer::of(self.command(args).output().expect("ccb starts"))
    }

    /// Runs a command that must succeed; returns its JSON.
    pub fn ok(&self, args: &[&str]) -> Value {
        let answer = self.run(&[&["--json"], args].concat());
        assert_eq!(answer.code, Some(0), "{args:?}: {answer:?}");
        answer.json()
    }

    /// Starts an agent and waits for its end.
    pub fn ask(&self, how: &[&str], steps: &[Step]) -> Value {
        let order = prompt("Do it.", steps);
        let first = ["agent", "spawn", "--runtime", "native", "--wait"];
        self.ok(&[&first, how, &[order.as_str()]].concat())["agent"].clone()
    }

    /// The requests of agents, in their order.
    pub fn requests(&self) -> Vec<Recorded> {
        self.model.scripted()
    }

    /// Every file of the home, of the repository and beside it that holds `text`.
    pub fn files_with(&self, text: &str) -> Vec<PathBuf> {
        let mut found = Vec::new();
        look(self.home.path(), text.as_bytes(), &mut found);
        look(self.repo.main(), text.as_bytes(), &mut found);
        found
    }
}

/// The names of the tools in a request.
pub fn tools_of(request: &Recorded) -> Vec<String> {
    let tools = request.body["tools"].as_array().cloned();
    let tools = tools.unwrap_or_default().into_iter();
    let name = |tool: Value| tool["name"].as_str().unwrap_or_default().to_owned();
    tools.map(name).collect()
}

fn installed(program: &str) -> PathBuf {
    let path = std::env::var_os("PATH").expect("a path");
    let mut dirs = std::env::split_paths(&path).map(|dir| dir.join(program));
    dirs.find(|file| file.is_file()).expect(program)
}

fn look(dir: &Path, text: &[u8], found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
        let Ok(kind) = entry.file_type() else {
            continue;
        };
        if kind.is_dir() {
            look(&entry.path(), text, found);
        } else if kind.is_file() {
            let bytes = std::fs::read(entry.path()).unwrap_or_default();
            if bytes.windows(text.len()).any(|window| window == text) {
                found.push(entry.path());
            }
        }
    }
}
