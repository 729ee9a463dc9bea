//! Processes that hide from their environment, their session and their parent are still found, and
//! no others.

use std::process::{Child, Command, Stdio};

use harness::fake::Pids;
use harness::runs::{LONG, await_none_left, kill};
use harness::script::Script;
use harness::{TestHome, wait_until};
use rustix::process::{Pid, Resource, Rlimit, Signal};

use crate::{CCB, FAKE_AGENT};

/// A process of another program, ended with the test.
struct Bystander(Child);

impl Bystander {
    fn new() -> Self {
        let mut sleep = Command::new("sleep");
        sleep.arg("600").stdin(Stdio::null());
        Self(sleep.spawn().unwrap())
    }

    fn is_there(&mut self) -> bool {
        self.0.try_wait().unwrap().is_none()
    }

    /// Waits until a process that starts now counts as younger: start times come in ticks.
    fn await_younger(&self) {
        let started = |child: &Child| {
            let stat = std::fs::read_to_string(format!("/proc/{}/stat", child.id())).unwrap();
            let (_, fields) = stat.rsplit_once(')').unwrap();
            let started = fields.split_ascii_whitespace().nth(19).unwrap();
            started.parse::<u64>().unwrap()
        };
        wait_until(LONG, "the kernel's clock to tick", || {
            let mut now = Command::new("true").spawn().unwrap();
            let younger = started(&now) > started(&self.0);
            now.wait().unwrap();
            younger
        });
    }

    fn set_limit(&self, soft: u64) {
        let pid = Pid::from_child(&self.0);
        let limit = Rlimit {
            current: Some(soft),
            maximum: None,
        };
        rustix::process::prlimit(Some(pid), Resource::Rttime, limit).unwrap();
    }
}

impl Drop for Bystander {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

fn mark_of(pid: i32) -> u64 {
    let limits = std::fs::read_to_string(format!("/proc/{pid}/limits")).unwrap();
    let line = limits
        .lines()
        .find(|line| line.starts_with("Max realtime timeout"));
    let soft = line.and_then(|line| line.split_ascii_whitespace().nth(3));
    soft.and_then(|soft| soft.parse().ok())
        .unwrap_or_else(|| panic!("process {pid} bears no mark: {limits}"))
}

fn kill_both(home: &TestHome, id: &str) {
    // At once for all they know: a stopped process does nothing about the other.
    let both = ["host", "guard"].map(|which| home.run_process(id, which));
    for signal in [Signal::STOP, Signal::KILL] {
        for pid in both {
            kill(pid, signal);
        }
    }
    let alive = home.run_dir(id).join("alive.lock");
    wait_until(LONG, "both to be gone", || {
        !store::lock::is_held(&alive).unwrap()
    });
}

#[test]
fn a_daemon_that_hides_does_not_outlive_host_and_guard() {
    let home = TestHome::in_memory(CCB);
    home.with_fake_runtime(FAKE_AGENT, "");
    let pids_dir = home.path().join("pids");
    std::fs::create_dir(&pids_dir).unwrap();
    let up = home.path().join("up");
    // One has the marker by accident; the run did not start it, for it is older.
    let mut older = Bystander::new();
    older.await_younger();
    let daemon = Script::new().pids(&pids_dir).hidden_daemon().touch(&up);
    let id = home.spawn_fake(&daemon.hang(), &[]);
    wait_until(LONG, "the daemon to be up", || up.exists());
    home.await_run(&id, "running");
    older.set_limit(mark_of(home.run_process(&id, "pid")));
    let mut unmarked = Bystander::new();
    kill_both(&home, &id);
    home.ok(&["task", "list"]);
    home.await_settled(&id);
    await_none_left(&Pids::new(&pids_dir));
    assert!(older.is_there() && unmarked.is_there());
    assert_eq!(home.run_exit(&id).unwrap()["by"], "sweep");
}

#[test]
fn a_daemon_of_a_shell_does_not_outlive_host_and_guard() {
    let home = TestHome::in_memory(CCB);
    let pid_file = home.path().join("daemon");
    let command = format!(
        "env -i setsid sh -c 'env -i setsid sh -c \"echo \\$\\$ >{0}.new; mv {0}.new {0}; exec sleep 600\" &' & exec sleep 600",
        pid_file.display()
    );
    let answer = home.ok(&[
        "agent",
        "spawn",
        "--runtime",
        "shell",
        "--background",
        &command,
    ]);
    let id = answer["agent"]["agentId"].as_str().unwrap().to_owned();
    wait_until(LONG, "the daemon to be up", || pid_file.exists());
    home.await_run(&id, "running");
    let daemon = std::fs::read_to_string(&pid_file).unwrap();
    let daemon: i32 = daemon.trim().parse().unwrap();
    assert_eq!(mark_of(daemon), mark_of(home.run_process(&id, "pid")));
    kill_both(&home, &id);
    home.ok(&["agent", "list"]);
    home.await_settled(&id);
    let stat = format!("/proc/{daemon}/cmdline");
    wait_until(LONG, "the daemon to be gone", || {
        // A zombie has no command line.
        std::fs::read(&stat).map_or(true, |line| line.is_empty())
    });
}

#[test]
fn a_run_within_a_run_bears_its_own_mark() {
    let home = TestHome::in_memory(CCB);
    home.with_fake_runtime(FAKE_AGENT, "");
    let (up, inner_up) = (home.path().join("up"), home.path().join("inner-up"));
    let inner = Script::new().touch(&inner_up).hang().to_prompt();
    let outer = Script::new()
        .run(&[
            CCB,
            "agent",
            "spawn",
            "--runtime",
            "fake",
            "--background",
            &inner,
        ])
        .touch(&up)
        .hang();
    let outer = home.spawn_fake(&outer, &[]);
    wait_until(LONG, "both to be up", || up.exists() && inner_up.exists());
    home.await_run(&outer, "running");
    let listed = home.ok(&["agent", "list", "--alive"]);
    let agents = listed["agents"].as_array().unwrap();
    let ids: Vec<&str> = agents
        .iter()
        .map(|agent| agent["agentId"].as_str().unwrap())
        .collect();
    assert_eq!(ids.len(), 2, "{listed}");
    let inner = ids.iter().find(|id| **id != outer).unwrap();
    home.await_run(inner, "running");
    let marks = [outer.as_str(), inner].map(|id| mark_of(home.run_process(id, "pid")));
    assert_ne!(marks[0], marks[1]);
    for id in ids {
        home.run(&["agent", "stop", id, "--grace", "1"]);
        home.await_settled(id);
    }
}
