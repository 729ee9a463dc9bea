//! A home and a repository with every kind of file ccb keeps: finished work, work whose every
//! process was killed, mail, requests, worktrees, a fan-out. It can be restored to its first state.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use harness::runs::{LONG, kill};
use harness::script::Script;
use harness::team_session::SessionScene;
use harness::{Answer, wait_until};
use mailbox::{MailOptions, Mailbox, Question, Shutdown};
use rustix::process::Signal;
use serde_json::{Value, json};
use store::home::Home;
use store::name::Name;
use tempfile::TempDir;

use crate::{CCB, FAKE_AGENT};

/// Time limit that only a hang reaches.
const HANG: Duration = Duration::from_secs(60);

/// The list and team of the fan-out.
pub(crate) const FAN: &str = "fan";

/// The result of a command; `None` if it did not end.
pub(crate) type Ended = Option<Answer>;

pub(crate) struct Scene {
    pub(crate) scene: SessionScene,
    saved: TempDir,
    /// Every task, with its status.
    pub(crate) tasks: BTreeMap<u64, String>,
    /// The highest id ever used.
    pub(crate) highest: u64,
    /// Commits that are on the branch.
    pub(crate) landed: Vec<String>,
    /// A commit in a worktree of a person's.
    pub(crate) kept: String,
}

impl Scene {
    pub(crate) fn new() -> Self {
        let scene = SessionScene::new(CCB);
        let saved = tempfile::Builder::new()
            .prefix("ccb-saved-")
            .tempdir_in(scene.home.path().parent().unwrap())
            .unwrap();
        let mut made = Self {
            scene,
            saved,
            tasks: BTreeMap::new(),
            highest: 0,
            landed: Vec::new(),
            kept: String::new(),
        };
        made.finish_some_work();
        made.send_mail();
        made.make_trees();
        made.fan_out();
        made.begin_some_work();
        made.read_state();
        made.save();
        std::fs::write(made.gate(), "").unwrap();
        made
    }

    /// Agents continue when this file exists. Outside of the restored directories.
    fn gate(&self) -> PathBuf {
        self.saved.path().join("gate")
    }

    fn finish_some_work(&mut self) {
        let scene = &self.scene;
        scene.task(
            "first",
            &["--run", "echo one > one", "--verify", "test -s one"],
        );
        scene.task("second", &["--run", "echo two > two", "--blocked-by", "1"]);
        let answer = scene.session(&[]);
        assert_eq!(answer.code, Some(0), "{answer:?}");
        scene.await_nobody();
        for name in ["ann", "bob"] {
            scene.ok(&["--as", name, "team", "join", "board"]);
        }
    }

    fn send_mail(&self) {
        let scene = &self.scene;
        for (to, text) in [
            ("ann", "one"),
            ("ann", "two"),
            ("bob", "three"),
            ("*", "all"),
        ] {
            scene.ok(&["mail", "send", to, text]);
        }
        scene.ok(&["--as", "ann", "mail", "read"]);
        scene.ok(&["--as", "ann", "mail", "ack", "1"]);
        let home = Home::new(scene.home.path().to_owned()).unwrap();
        let mailbox = Mailbox::new(&home, &name("board"), MailOptions::default());
        let question = || {
            Question::Shutdown(Shutdown {
                reason: Some("done".into()),
            })
        };
        let hour = Duration::from_secs(3600);
        mailbox
            .ask(&name("bob"), &name("ann"), question(), hour)
            .unwrap();
        let answered = mailbox
            .ask(&name("bob"), &name("ann"), question(), hour)
            .unwrap();
        scene.ok(&["--as", "ann", "mail", "approve", &answered.id]);
    }

    fn make_trees(&mut self) {
        let scene = &self.scene;
        for tree in ["keep", "gone"] {
            scene.ok(&["worktree", "create", tree]);
            harness::write(&scene.repo.tree(tree).join("work"), tree);
            scene.repo.git_in(tree, &["add", "."]);
            scene.repo.git_in(tree, &["commit", "-qm", tree]);
        }
        scene.ok(&["worktree", "remove", "gone", "--discard"]);
        self.kept = scene
            .repo
            .git_in("keep", &["rev-parse", "HEAD"])
            .trim()
            .to_owned();
    }

    fn fan_out(&self) {
        let task = |id: &str| json!({"id": id, "run": format!("echo {id} > fan-{id}")});
        let plan = json!({"name": "fan", "tasks": [task("a"), task("b")]});
        std::fs::write(self.plan(), plan.to_string()).unwrap();
        let answer = self.fan(HANG).expect("it ends");
        assert_eq!(answer.code, Some(0), "{answer:?}");
    }

    fn plan(&self) -> PathBuf {
        self.saved.path().join("plan.json")
    }

    /// The fan-out, again.
    pub(crate) fn fan(&self, limit: Duration) -> Ended {
        let mut command = self
            .scene
            .home
            .command_without_list(&["--json", "--team", FAN]);
        let out = self.saved.path().join("out");
        command.current_dir(self.scene.repo.main());
        command.arg("fanout").arg(self.plan());
        command.arg("--out").arg(out).arg("--ci");
        within(command, limit)
    }

    pub(crate) fn doctor_of_fan(&self) -> Ended {
        let args = ["--json", "--team", FAN, "--list", FAN, "doctor", "--fix"];
        let mut command = self.scene.home.command_without_list(&args);
        command.current_dir(self.scene.repo.main());
        within(command, HANG)
    }

    /// A session whose every process is killed in the middle of its work, and an id that was used
    /// and deleted.
    fn begin_some_work(&self) {
        let scene = &self.scene;
        let pids = scene.home.path().join("pids");
        std::fs::create_dir(&pids).unwrap();
        let wait = Script::new().pids(&pids).wait_file(self.gate());
        let run = format!(
            "echo half > half; ( {} ); echo three > three",
            wait.to_command(FAKE_AGENT)
        );
        let third = scene.task("third", &["--run", &run]);
        scene.task(
            "fourth",
            &[
                "--run",
                "echo four > four",
                "--blocked-by",
                &third.to_string(),
            ],
        );
        let unwanted = scene.task("unwanted", &[]);
        scene.ok(&["task", "rm", &unwanted.to_string()]);
        let mut session = scene.start(&[]);
        wait_until(LONG, "the agent to be at work", || {
            std::fs::read_dir(&pids).unwrap().count() > 0
        });
        session.kill().unwrap();
        session.wait().unwrap();
        let runs = scene.home.team_dir().join("runs/.active");
        for run in std::fs::read_dir(runs).unwrap() {
            let id = run.unwrap().file_name().into_string().unwrap();
            // The agent may work before that is recorded.
            wait_until(LONG, "the agent's process to be known", || {
                scene.home.run_meta(&id)["pid"].is_i64()
            });
            // A host whose guard is gone finishes the run, and then its agent has no process.
            let processes = ["guard", "host", "pid"];
            let processes = processes.map(|process| scene.home.run_process(&id, process));
            for process in processes {
                kill(process, Signal::KILL);
            }
            let lock = scene.home.run_dir(&id).join("alive.lock");
            wait_until(LONG, "all of it to be dead", || {
                store::lock::is_held(&lock).is_ok_and(|held| !held)
            });
        }
        harness::fake::Pids::new(&pids).kill_rest();
        store::tree::delete(&pids).unwrap();
        store::atomic::remove(&scene.log()).unwrap();
    }

    fn read_state(&mut self) {
        for task in self.scene.home.tasks_on_disk() {
            let id: u64 = task["id"].as_str().unwrap().parse().unwrap();
            self.tasks
                .insert(id, task["status"].as_str().unwrap().to_owned());
            let commit = task["metadata"]["ccb"]["result"]["commit"].as_str();
            self.landed.extend(commit.map(str::to_owned));
        }
        let mark = std::fs::read_to_string(self.scene.home.list_dir().join(".highwatermark"));
        self.highest = mark.unwrap().trim().parse().unwrap();
        assert_eq!(self.tasks.len(), 4, "{:?}", self.tasks);
        assert_eq!(self.highest, 5);
        assert_eq!(self.landed.len(), 2);
    }

    fn home(&self) -> &Path {
        self.scene.home.path()
    }

    fn repository(&self) -> &Path {
        self.scene.repo.main()
    }

    fn save(&self) {
        for (from, to) in [(self.home(), "home"), (self.repository(), "repository")] {
            copy(from, &self.saved.path().join(to));
        }
    }

    /// Restores the first state.
    pub(crate) fn restore(&self) {
        for (from, to) in [("home", self.home()), ("repository", self.repository())] {
            for entry in std::fs::read_dir(to).unwrap() {
                let path = entry.unwrap().path();
                match path.symlink_metadata().unwrap().is_dir() {
                    true => std::fs::remove_dir_all(path).unwrap(),
                    false => std::fs::remove_file(path).unwrap(),
                }
            }
            copy(&self.saved.path().join(from), to);
        }
    }

    /// Every file below the home and ccb's directory in the repository, by its sort: one of each,
    /// or all.
    pub(crate) fn files(&self, all: bool) -> Vec<PathBuf> {
        let mut found = Vec::new();
        list(self.home(), &mut found);
        list(&self.scene.repo.ours(), &mut found);
        let mut sorts = BTreeSet::new();
        found.retain(|path| {
            // The user's own settings, which ccb must not guess.
            let settings = *path == self.home().join("ccb.json");
            // Files in the trash are the user's, too.
            let trash = path.starts_with(self.scene.repo.ours().join("trash"));
            !settings && !trash && (sorts.insert(self.sort(path)) || all)
        });
        found
    }

    /// The name of its sort: without the parts that differ.
    fn sort(&self, path: &Path) -> String {
        let text = path.to_string_lossy();
        let mut sort = String::new();
        let mut hex = String::new();
        for c in text.chars().chain(['/']) {
            if c.is_ascii_hexdigit() {
                hex.push(c);
                continue;
            }
            let number =
                hex.len() > 7 || (!hex.is_empty() && hex.chars().all(|c| c.is_ascii_digit()));
            sort.push_str(if number { "#" } else { &hex });
            hex.clear();
            sort.push(c);
        }
        let state = |value: &Value| {
            value["status"]
                .as_str()
                .or(value["state"].as_str())
                .map(str::to_owned)
        };
        let own = std::fs::read(path).ok();
        let own = own.and_then(|bytes| state(&serde_json::from_slice(&bytes).ok()?));
        // A run's files, by the progress of the run.
        let run = path.parent().map(|dir| dir.join("meta.json"));
        let run =
            run.and_then(|meta| state(&serde_json::from_slice(&std::fs::read(meta).ok()?).ok()?));
        format!("{sort}{own:?}{run:?}")
    }

    /// Runs `ccb --json` in the repository; `None` if it hangs.
    pub(crate) fn run(&self, args: &[&str]) -> Ended {
        within(self.scene.command(&[&["--json"], args].concat()), HANG)
    }

    pub(crate) fn session(&self) -> Ended {
        self.run(&["--runtime", "shell"])
    }
}

fn name(text: &str) -> Name {
    Name::new("agent", text).unwrap()
}

/// Copies a directory with everything in it, times included.
fn copy(from: &Path, to: &Path) {
    let mut source = from.as_os_str().to_owned();
    source.push("/.");
    std::fs::create_dir_all(to).unwrap();
    let copied = Command::new("cp").arg("-a").arg(source).arg(to).status();
    assert!(copied.unwrap().success());
}

fn list(dir: &Path, found: &mut Vec<PathBuf>) {
    let mut entries: Vec<_> = std::fs::read_dir(dir)
        .unwrap()
        .map(Result::unwrap)
        .collect();
    entries.sort_by_key(std::fs::DirEntry::file_name);
    for entry in entries {
        let kind = entry.file_type().unwrap();
        if kind.is_dir() {
            list(&entry.path(), found);
        } else if kind.is_file() {
            found.push(entry.path());
        }
    }
}

/// The output and the end of a command, if it ends within `limit`.
fn within(mut command: Command, limit: Duration) -> Ended {
    let file = || tempfile::NamedTempFile::new().unwrap();
    let (out, err) = (file(), file());
    command
        .stdout(out.reopen().unwrap())
        .stderr(err.reopen().unwrap());
    let mut child = command.spawn().unwrap();
    let deadline = Instant::now() + limit;
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            let read = |file: &tempfile::NamedTempFile| std::fs::read(file.path()).unwrap();
            return Some(Answer::of(std::process::Output {
                status,
                stdout: read(&out),
                stderr: read(&err),
            }));
        }
        if Instant::now() > deadline {
            child.kill().unwrap();
            child.wait().unwrap();
            return None;
        }
        std::thread::park_timeout(Duration::from_millis(2));
    }
}
