//! Plans of `ccb fanout` that run in a repository of their own.

use std::path::PathBuf;
use std::process::{Child, Stdio};

use serde_json::Value;

use crate::{Answer, Workplace};

/// A repository, a home, and plans that run in it.
#[derive(Debug)]
pub struct Fan(pub Workplace);

impl Fan {
    pub fn new(ccb: &str) -> Self {
        Self(Workplace::new(ccb))
    }

    /// Writes a file of the repository.
    pub fn write(&self, path: &str, text: &str) {
        self.0.repo.write(path, text);
    }

    /// Commits everything.
    pub fn commit(&self) {
        self.git(&["add", "."]);
        self.git(&["commit", "-qm", "more"]);
    }

    /// Runs git in the repository; returns its output.
    pub fn git(&self, args: &[&str]) -> String {
        self.0.repo.git(args).trim().to_owned()
    }

    /// Writes the plan.
    pub fn plan(&self, plan: &Value) {
        self.write("plan.json", &plan.to_string());
    }

    /// The directory of the results.
    pub fn out(&self) -> PathBuf {
        self.0.repo.main().join("ccb-out")
    }

    /// Runs the plan to its end.
    pub fn run(&self, more: &[&str]) -> (Option<i32>, Value) {
        let answer = self.answer(more);
        let lines = answer.json_lines();
        let end = lines.last().cloned().unwrap_or_default();
        assert!(end["report"].is_object(), "{answer:?}");
        (answer.code, end["report"].clone())
    }

    /// The same, with its whole output.
    pub fn answer(&self, more: &[&str]) -> Answer {
        let args = [&["fanout", "plan.json", "-j", "4", "--ci"], more].concat();
        self.0.run(&args)
    }

    /// Starts the plan.
    pub fn start(&self, more: &[&str]) -> Child {
        let args = [&["--json", "fanout", "plan.json", "-j", "4"], more].concat();
        let mut command = self.0.command(&args);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        command.spawn().expect("it starts")
    }

    /// The files of a branch, as git lists them.
    pub fn files(&self, branch: &str) -> String {
        self.git(&["ls-tree", "-r", branch])
    }

    /// A file of the results.
    pub fn read(&self, name: &str) -> String {
        let path = self.out().join(name);
        std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path:?}: {error}"))
    }
}

/// The outcome of each task of a report: its id, and the kind.
pub fn kinds(report: &Value) -> Vec<(String, String)> {
    let tasks = report["tasks"].as_array().expect("tasks");
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    tasks
        .iter()
        .map(|task| (text(&task["id"]), text(&task["outcome"]["kind"])))
        .collect()
}
