use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;

/// A home directory of its own, and a way to run `ccb` in it.
#[derive(Debug)]
pub struct TestHome {
    dir: TempDir,
    binary: PathBuf,
    list: String,
}

/// What a `ccb` process answered.
#[derive(Debug)]
pub struct Answer {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl TestHome {
    /// An empty home; `binary` is the `ccb` to run.
    pub fn new(binary: &str) -> Self {
        let dir = tempfile::Builder::new()
            .prefix("ccb-test-")
            .tempdir()
            .expect("a scratch directory");
        Self {
            dir,
            binary: binary.into(),
            list: "board".into(),
        }
    }

    pub fn path(&self) -> &Path {
        self.dir.path()
    }

    /// The directory of the task list the commands use.
    pub fn list_dir(&self) -> PathBuf {
        self.path().join("tasks").join(&self.list)
    }

    /// Where the task's file is.
    pub fn task_file(&self, id: u64) -> PathBuf {
        self.list_dir().join(format!("{id}.json"))
    }

    /// A `ccb` process with nothing of the caller's environment but PATH.
    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(&self.binary);
        command
            .env_clear()
            .envs(std::env::var_os("PATH").map(|path| ("PATH", path)))
            .env("HOME", self.path())
            .env("CCB_HOME", self.path())
            .current_dir(self.path())
            .args(["--list", &self.list])
            .args(args)
            .stdin(Stdio::null());
        command
    }

    /// Runs `ccb` with `args` to its end.
    pub fn run(&self, args: &[&str]) -> Answer {
        Answer::of(self.command(args).output().expect("ccb starts"))
    }

    /// Runs `ccb --json` and expects success.
    pub fn ok(&self, args: &[&str]) -> Value {
        let mut all = vec!["--json"];
        all.extend_from_slice(args);
        let answer = self.run(&all);
        assert_eq!(answer.code, Some(0), "{args:?}: {answer:?}");
        answer.json()
    }

    /// Runs `ccb --json` and expects this exit code.
    pub fn fails(&self, code: i32, args: &[&str]) -> Value {
        let mut all = vec!["--json"];
        all.extend_from_slice(args);
        let answer = self.run(&all);
        assert_eq!(answer.code, Some(code), "{args:?}: {answer:?}");
        answer.json()
    }

    /// Creates a task and returns its id.
    pub fn create(&self, subject: &str) -> u64 {
        let answer = self.ok(&["task", "create", subject]);
        answer["task"]["id"]
            .as_str()
            .and_then(|id| id.parse().ok())
            .expect("an id")
    }

    /// Writes `<home>/ccb.json`.
    pub fn settings(&self, json: &str) {
        std::fs::write(self.path().join("ccb.json"), json).expect("settings");
    }

    /// All task files, parsed straight from disk, in numeric order.
    pub fn tasks_on_disk(&self) -> Vec<Value> {
        let Ok(entries) = std::fs::read_dir(self.list_dir()) else {
            return Vec::new();
        };
        let mut tasks: Vec<(u64, Value)> = entries
            .filter_map(|entry| {
                let path = entry.expect("an entry").path();
                let id = path
                    .file_name()?
                    .to_str()?
                    .strip_suffix(".json")?
                    .parse()
                    .ok()?;
                let text = std::fs::read_to_string(&path).expect("readable");
                let value = serde_json::from_str(&text)
                    .unwrap_or_else(|error| panic!("{}: {error}: {text:?}", path.display()));
                Some((id, value))
            })
            .collect();
        tasks.sort_by_key(|(id, _)| *id);
        tasks.into_iter().map(|(_, task)| task).collect()
    }
}

impl Answer {
    pub fn of(output: Output) -> Self {
        Self {
            code: output.status.code(),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    /// The one JSON document on stdout.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// One JSON document per line.
    pub fn json_lines(&self) -> Vec<Value> {
        let parse = |line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line:?}"));
        self.stdout.lines().map(parse).collect()
    }
}
