use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;

use crate::postgres::{InDatabase, MARK};
use crate::wait::wait_until;

/// A home directory of its own, and a way to run `ccb` in it.
#[derive(Debug)]
pub struct TestHome {
    dir: TempDir,
    binary: PathBuf,
    list: String,
    /// The database of the board, if it is not in files.
    pub(crate) database: Option<Arc<InDatabase>>,
}

/// The output of a `ccb` process.
#[derive(Debug, Clone)]
pub struct Answer {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl TestHome {
    /// An empty home on the disk; `binary` is the `ccb` to run.
    pub fn new(binary: &str) -> Self {
        Self::within(&std::env::temp_dir(), binary)
    }

    /// An empty home in memory, if the machine has such a file system: for tests that start
    /// thousands of processes and need no disk.
    pub fn in_memory(binary: &str) -> Self {
        let memory = Path::new("/dev/shm");
        let usable = tempfile::tempfile_in(memory).is_ok();
        let root = if usable {
            memory.to_owned()
        } else {
            std::env::temp_dir()
        };
        Self::within(&root, binary)
    }

    fn within(root: &Path, binary: &str) -> Self {
        let dir = tempfile::Builder::new()
            .prefix("ccb-test-")
            .tempdir_in(root);
        Self {
            dir: dir.expect("a scratch directory"),
            binary: binary.strip_prefix(MARK).unwrap_or(binary).into(),
            list: "board".into(),
            database: binary
                .starts_with(MARK)
                .then(|| Arc::new(InDatabase::new())),
        }
    }

    /// A home of its own whose board is in the same database: another machine.
    pub fn neighbour(&self) -> Self {
        let root = self.path().parent().expect("a parent");
        Self {
            list: self.list.clone(),
            database: self.database.clone(),
            ..Self::within(root, &self.binary.to_string_lossy())
        }
    }

    /// The same home, whose commands use this task list.
    pub fn with_list(mut self, list: &str) -> Self {
        self.list = list.to_owned();
        self
    }

    /// The same address for a process whose connections have this name.
    pub fn board_url_for(&self, name: &str) -> Option<String> {
        let url = self.board_url()?;
        let separator = if url.contains('?') { '&' } else { '?' };
        Some(format!("{url}{separator}application_name={name}"))
    }

    /// Waits until the server has no work left for a process that is gone. It finishes statements
    /// of connections of this name, although no client waits for the answer.
    pub fn wait_for_the_last_of(&self, name: &str, limit: Duration) {
        if let Some(database) = &self.database {
            wait_until(limit, "the server to be done with it", || {
                database.connections(name) == 0
            });
        }
    }

    /// The address of the board's database, if it is in one.
    pub fn board_url(&self) -> Option<&str> {
        self.database.as_ref().map(|database| database.url.as_str())
    }

    pub fn path(&self) -> &Path {
        self.dir.path()
    }

    /// The directory of the commands' task list.
    pub fn list_dir(&self) -> PathBuf {
        self.path().join("tasks").join(&self.list)
    }

    /// The path of the task's file.
    pub fn task_file(&self, id: u64) -> PathBuf {
        self.list_dir().join(format!("{id}.json"))
    }

    /// Ends the lease of a task, as if its time had passed.
    pub fn expire_lease(&self, id: u64) {
        if let Some(database) = &self.database {
            return database.expire_lease(id);
        }
        let path = self.task_file(id);
        let bytes = std::fs::read(&path).expect("a task");
        let mut task: Value = serde_json::from_slice(&bytes).expect("a task");
        task["metadata"]["ccb"]["lease"]["expiresAt"] = "2020-01-01T00:00:00.000Z".into();
        std::fs::write(&path, task.to_string()).expect("a task");
    }

    /// A `ccb` process with nothing of the caller's environment but PATH.
    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = self.command_without_team(&["--team", &self.list]);
        command.args(args);
        command
    }

    /// The same without naming a team.
    pub fn command_without_team(&self, args: &[&str]) -> Command {
        let mut command = self.command_without_list(&["--list", &self.list]);
        command.args(args);
        command
    }

    /// The same without naming a task list.
    pub fn command_without_list(&self, args: &[&str]) -> Command {
        let mut command = Command::new(&self.binary);
        command
            .env_clear()
            .envs(std::env::var_os("PATH").map(|path| ("PATH", path)))
            .env("HOME", self.path())
            .env("CCB_HOME", self.path())
            .envs(self.database.iter().map(|it| ("CCB_BOARD", &it.url)))
            .current_dir(self.path())
            .args(args)
            .stdin(Stdio::null());
        command
    }

    /// Makes a team, named after the list, with these members.
    pub fn team(&self, members: &[&str]) {
        let members: Vec<Value> = members
            .iter()
            .map(|name| serde_json::json!({"name": name, "agentId": format!("a-{name}")}))
            .collect();
        let roster = serde_json::json!({"name": self.list, "members": members});
        self.write_roster(&self.list, &roster);
    }

    /// The directory of that team.
    pub fn team_dir(&self) -> PathBuf {
        self.path().join("teams").join(&self.list)
    }

    /// The directory of a member's inbox.
    pub fn inbox_dir(&self, agent: &str) -> PathBuf {
        self.team_dir().join("inboxes").join(agent)
    }

    /// Runs `ccb` with `args` to its end.
    pub fn run(&self, args: &[&str]) -> Answer {
        Answer::of(self.command(args).output().expect("ccb starts"))
    }

    /// Runs `ccb` with `args` and this standard input.
    pub fn run_with_input(&self, args: &[&str], input: &[u8]) -> Answer {
        let mut child = self
            .command(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("ccb starts");
        let mut stdin = child.stdin.take().expect("a pipe");
        std::thread::scope(|scope| {
            // It may refuse before it has read everything.
            scope.spawn(move || stdin.write_all(input).ok());
            Answer::of(child.wait_with_output().expect("ccb ends"))
        })
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

    /// A home with the same content.
    pub fn copy(&self) -> Self {
        let root = self.path().parent().expect("a parent");
        let binary = self.binary.to_string_lossy();
        let copy = Self {
            list: self.list.clone(),
            ..Self::within(root, &binary)
        };
        copy_dir(self.path(), copy.path());
        copy
    }

    /// All task files, parsed straight from disk, in numeric order.
    pub fn tasks_on_disk(&self) -> Vec<Value> {
        self.tasks_on_disk_but(None)
    }

    /// The same, except for one that need not parse.
    pub fn tasks_on_disk_but(&self, tolerated: Option<u64>) -> Vec<Value> {
        if let Some(database) = &self.database {
            return database.tasks(self.path(), &self.list);
        }
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
                match serde_json::from_str(&text) {
                    Ok(value) => Some((id, value)),
                    Err(_) if tolerated == Some(id) => None,
                    Err(error) => panic!("{}: {error}: {text:?}", path.display()),
                }
            })
            .collect();
        tasks.sort_by_key(|(id, _)| *id);
        tasks.into_iter().map(|(_, task)| task).collect()
    }
}

fn copy_dir(from: &Path, to: &Path) {
    for entry in std::fs::read_dir(from).expect("a directory") {
        let entry = entry.expect("an entry");
        let dest = to.join(entry.file_name());
        let kind = entry.file_type().expect("a type");
        if kind.is_dir() {
            std::fs::create_dir(&dest).expect("a new directory");
            copy_dir(&entry.path(), &dest);
        } else if kind.is_file() {
            // A FIFO is made anew by its next user.
            std::fs::copy(entry.path(), &dest).expect("a copy");
        }
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
