//! A database, a git remote and machines around them, each with a home, a clone and a way to the
//! database of its own.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use database::throw_away::Server;
use database::{COMMON, Database, migrate};
use harness::scene_processes::of_home;
use harness::{git, wait_until};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::CCB;

/// Time limit, longer than any step takes unless it hangs.
pub(crate) const LIMIT: Duration = Duration::from_secs(600);
/// The same for steps of some seconds.
pub(crate) const SOON: Duration = Duration::from_secs(120);
/// Short, so that others soon get the tasks of a dead machine.
pub(crate) const LEASE_MS: u64 = 3000;

pub(crate) fn ccb() -> &'static str {
    CCB.strip_prefix(harness::postgres::MARK).unwrap_or(CCB)
}

/// One of the two directions of a link.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Way {
    Asked,
    Answered,
}

/// A link to the server that can be cut.
pub(crate) struct Link {
    pub(crate) port: u16,
    pub(crate) open: Arc<AtomicBool>,
    /// True for a direction in which data is lost silently: to the server, and from it.
    lost: [Arc<AtomicBool>; 2],
    pub(crate) streams: Arc<Mutex<Vec<TcpStream>>>,
}

impl Link {
    pub(crate) fn to(server: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let (open, streams) = (Arc::new(AtomicBool::new(true)), Arc::default());
        let lost: [Arc<AtomicBool>; 2] = Default::default();
        let link = Self {
            port,
            open: Arc::clone(&open),
            lost: lost.clone(),
            streams: Arc::clone(&streams),
        };
        std::thread::spawn(move || {
            for near in listener.incoming().flatten() {
                let far = TcpStream::connect(("127.0.0.1", server));
                let (Ok(far), true) = (far, open.load(Ordering::SeqCst)) else {
                    continue;
                };
                let mut all = streams.lock().unwrap();
                for ((from, to), lost) in [(&near, &far), (&far, &near)].into_iter().zip(&lost) {
                    let (mut from, mut to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
                    let lost = Arc::clone(lost);
                    std::thread::spawn(move || {
                        let mut bytes = [0; 8192];
                        while let Ok(read @ 1..) = from.read(&mut bytes) {
                            if lost.load(Ordering::SeqCst) {
                                continue;
                            }
                            if to.write_all(&bytes[..read]).is_err() {
                                break;
                            }
                        }
                        to.shutdown(Shutdown::Both).ok();
                    });
                }
                all.extend([near, far]);
            }
        });
        link
    }

    pub(crate) fn cut(&self) {
        self.open.store(false, Ordering::SeqCst);
        for stream in self.streams.lock().unwrap().drain(..) {
            stream.shutdown(Shutdown::Both).ok();
        }
    }

    /// Loses the requests of machines, or the answers of the server, on connections that stay open.
    pub(crate) fn lose(&self, way: Way) {
        let lost = match way {
            Way::Asked => &self.lost[0],
            Way::Answered => &self.lost[1],
        };
        lost.store(true, Ordering::SeqCst);
    }

    pub(crate) fn mend(&self) {
        self.open.store(true, Ordering::SeqCst);
        for lost in &self.lost {
            lost.store(false, Ordering::SeqCst);
        }
    }
}

/// A database, a git remote, and a user who puts tasks on the board.
pub(crate) struct Site {
    pub(crate) server: Server,
    pub(crate) dir: TempDir,
}

impl Site {
    pub(crate) fn new() -> Option<Self> {
        let server = Server::start_with(&["max_connections=600"])?;
        let database = Database::new(server.settings("ccb"));
        let all = [
            &COMMON,
            &taskboard::MIGRATIONS,
            &mailbox::MIGRATIONS,
            &team::MIGRATIONS,
        ];
        migrate(&database, &all, false).unwrap();
        let memory = Path::new("/dev/shm");
        let root = match tempfile::tempfile_in(memory) {
            Ok(_) => memory.to_owned(),
            Err(_) => std::env::temp_dir(),
        };
        let dir = tempfile::Builder::new()
            .prefix("ccb-site-")
            .tempdir_in(root);
        let site = Self {
            server,
            dir: dir.unwrap(),
        };
        let seed = site.dir.path().join("seed");
        std::fs::create_dir(&seed).unwrap();
        git(&seed, &["init", "-q", "-b", "main"]);
        std::fs::write(seed.join("readme"), "one\n").unwrap();
        git(&seed, &["add", "."]);
        git(&seed, &["commit", "-qm", "first"]);
        let remote = site.remote();
        git(
            &seed,
            &["clone", "-q", "--bare", ".", remote.to_str().unwrap()],
        );
        Some(site)
    }

    pub(crate) fn remote(&self) -> PathBuf {
        self.dir.path().join("remote.git")
    }

    /// A machine whose link to the database is this port.
    pub(crate) fn machine(&self, name: &str, port: u16) -> Machine {
        let home = self.dir.path().join(name);
        std::fs::create_dir(&home).unwrap();
        let settings = json!({"taskboard": {"leaseMs": LEASE_MS}, "worktree": {"durable": false}});
        std::fs::write(home.join("ccb.json"), settings.to_string()).unwrap();
        Machine {
            name: name.to_owned(),
            home,
            url: format!("{}&patience=8", self.server.url_at(port, "ccb")),
            remote: self.remote(),
            worker: None,
        }
    }

    /// The files of the branch.
    pub(crate) fn branch(&self) -> Vec<(String, String)> {
        let files = git(&self.remote(), &["ls-tree", "-r", "--name-only", "main"]);
        let content = |name: &str| git(&self.remote(), &["show", &format!("main:{name}")]);
        files
            .lines()
            .map(|name| (name.to_owned(), content(name)))
            .collect()
    }
}

/// A machine with a home of its own, and perhaps a worker.
pub(crate) struct Machine {
    pub(crate) name: String,
    pub(crate) home: PathBuf,
    pub(crate) url: String,
    pub(crate) remote: PathBuf,
    pub(crate) worker: Option<Child>,
}

impl Machine {
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(ccb());
        command
            .env_clear()
            .envs(std::env::var_os("PATH").map(|path| ("PATH", path)))
            .env("HOME", &self.home)
            .env("CCB_HOME", &self.home)
            .env("CCB_BOARD", &self.url)
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .current_dir(&self.home)
            .args(["--team", "board"])
            .args(args)
            .stdin(Stdio::null());
        command
    }

    /// A clone of the remote on this machine.
    pub(crate) fn clone(&self) -> PathBuf {
        let dir = self.home.join("clone");
        git(
            &self.home,
            &["clone", "-q", self.remote.to_str().unwrap(), "clone"],
        );
        dir
    }

    pub(crate) fn json(&self, args: &[&str]) -> Value {
        let output = self
            .command(&[&["--json"], args].concat())
            .output()
            .unwrap();
        let stdout = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{args:?}: {output:?}");
        serde_json::from_str(&stdout).unwrap_or_else(|error| panic!("{stdout}: {error}"))
    }

    /// Starts a worker that lands its results, unless `more` says otherwise.
    pub(crate) fn start(&mut self, more: &[&str]) {
        self.start_with_fault(None, more);
    }

    /// The same; it and all it starts die at this write point.
    pub(crate) fn start_with_fault(&mut self, fault: Option<&str>, more: &[&str]) {
        let log = std::fs::File::options()
            .create(true)
            .append(true)
            .open(self.home.join("worker.log"))
            .unwrap();
        let (remote, name) = (self.remote.to_str().unwrap(), &*self.name);
        let usual = ["--json", "worker", "--repo", remote, "--name", name];
        let lands = ["--runtime", "shell", "--into", "main"];
        let args = [&usual[..], &lands, more].concat();
        let mut command = self.command(&args);
        command.stdout(log.try_clone().unwrap()).stderr(log);
        command.envs(fault.map(|fault| ("CCB_FAULT", fault)));
        self.worker = Some(command.spawn().unwrap());
    }

    /// Its exit code, once it has ended by itself.
    pub(crate) fn ended(&mut self) -> Option<i32> {
        let mut worker = self.worker.take().unwrap();
        let mut code = None;
        wait_until(LIMIT, "the worker's end", || {
            code = worker.try_wait().unwrap();
            code.is_some()
        });
        code.unwrap().code()
    }

    pub(crate) fn signal(&self, signal: Signal) {
        let id = i32::try_from(self.worker.as_ref().unwrap().id()).unwrap();
        kill_process(Pid::from_raw(id).unwrap(), signal).unwrap();
    }

    /// Kills the worker alone; its agents continue.
    pub(crate) fn kill_worker(&mut self) {
        if let Some(mut worker) = self.worker.take() {
            worker.kill().ok();
            worker.wait().unwrap();
        }
    }

    /// Kills every process of the machine, as if it had lost its power.
    pub(crate) fn lose_power(&mut self) {
        loop {
            let all = of_home(&self.home);
            for (_, pid) in &all {
                kill_process(Pid::from_raw(*pid).unwrap(), Signal::KILL).ok();
            }
            self.kill_worker();
            if all.is_empty() {
                return;
            }
        }
    }

    /// The worktrees of agents in its clone.
    pub(crate) fn trees(&self) -> Vec<String> {
        let clones = std::fs::read_dir(self.home.join("ccb/clones")).unwrap();
        let mut found = Vec::new();
        for clone in clones.flatten() {
            let trees = std::fs::read_dir(clone.path().join(".claude/worktrees"));
            let names = trees.into_iter().flatten().flatten();
            let names = names.map(|entry| entry.file_name().to_string_lossy().into_owned());
            found.extend(names.filter(|name| name.starts_with("agent-")));
        }
        found
    }

    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(self.home.join("worker.log")).unwrap_or_default()
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        self.lose_power();
        if std::thread::panicking() {
            let log = self.log();
            let lines: Vec<&str> = log.lines().collect();
            let end = lines.len().saturating_sub(40);
            eprintln!("--- {}\n{}", self.name, lines[end..].join("\n"));
            if self.name == "lead" {
                let open = |task: &&Value| !is_landed(task);
                let output = self.command(&["--json", "task", "list"]).output();
                let text = output.map(|output| output.stdout).unwrap_or_default();
                let listed: Value = serde_json::from_slice(&text).unwrap_or_default();
                let listed = listed["tasks"].as_array().cloned().unwrap_or_default();
                let open: Vec<String> = listed.iter().filter(open).map(Value::to_string).collect();
                eprintln!("--- not landed\n{}", open.join("\n"));
            }
        }
    }
}

/// A task that adds a line to a file of its own, and whose check wants that line to be the only one.
pub(crate) fn row(number: usize, after: Option<usize>) -> Value {
    let built_on = after.map_or(String::new(), |n| format!("test -f done/{n} && "));
    json!({
        "key": format!("t{number}"),
        "subject": format!("task {number}"),
        "blockedBy": after.map(|n| format!("t{n}")).into_iter().collect::<Vec<_>>(),
        "run": format!("{built_on}mkdir -p done && echo $CCB_TASK_ID >> done/{number}"),
        "verify": format!("{built_on}test \"$(wc -l < done/{number})\" = 1"),
    })
}

pub(crate) fn create(machine: &Machine, rows: &[Value]) {
    let lines: Vec<String> = rows.iter().map(Value::to_string).collect();
    let path = machine.home.join("tasks.jsonl");
    std::fs::write(&path, lines.join("\n")).unwrap();
    machine.json(&["task", "create", "--from", path.to_str().unwrap()]);
}

pub(crate) fn tasks(machine: &Machine) -> Vec<Value> {
    let listed = machine.json(&["task", "list"]);
    listed["tasks"].as_array().unwrap().clone()
}

/// Checks that every task's line is on the branch, once.
pub(crate) fn check_branch(site: &Site, number: usize) {
    let files = site.branch();
    let done = files.iter().filter(|(name, _)| name.starts_with("done/"));
    let mut seen = 0;
    for (name, text) in done {
        assert_eq!(text.lines().count(), 1, "{name}: {text:?}");
        seen += 1;
    }
    assert_eq!(seen, number);
}

pub(crate) fn all_done(machine: &Machine) -> bool {
    tasks(machine).iter().all(is_landed)
}

fn is_landed(task: &Value) -> bool {
    let landed = &task["metadata"]["ccb"]["result"]["landed"];
    task["status"] == "completed" && landed.is_object() && landed["pending"].is_null()
}
