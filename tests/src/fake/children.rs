//! Processes a fake agent starts, and the record of them.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::{Duration, Instant};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use super::LONGEST;
use crate::script::{Grandchild, Started};

/// A directory in which every process of a script leaves a file.
#[derive(Debug, Clone)]
pub struct Pids(PathBuf);

impl Pids {
    pub fn new(dir: &Path) -> Self {
        Self(dir.to_owned())
    }

    /// Records this process.
    pub fn record_self(&self, role: &str) -> io::Result<()> {
        self.record(std::process::id(), role)
    }

    /// Records another one.
    pub fn record(&self, pid: u32, role: &str) -> io::Result<()> {
        let pid = i32::try_from(pid).map_err(io::Error::other)?;
        let (start, _) = start_and_state(pid).ok_or(io::ErrorKind::NotFound)?;
        let role = role.to_owned();
        let started = Started { pid, start, role };
        let text = serde_json::to_string(&started)?;
        // Complete under its name, or not there at all.
        let aside = self.0.join(format!(".{pid}-{start}"));
        std::fs::write(&aside, text)?;
        std::fs::rename(aside, self.0.join(format!("{pid}-{start}")))
    }

    /// All that were ever started.
    pub fn all(&self) -> Vec<Started> {
        let entries = std::fs::read_dir(&self.0).into_iter().flatten().flatten();
        let names = entries.filter(|entry| !entry.file_name().as_encoded_bytes().starts_with(b"."));
        let texts = names.filter_map(|entry| std::fs::read(entry.path()).ok());
        texts
            .filter_map(|text| serde_json::from_slice(&text).ok())
            .collect()
    }

    /// Those of them that still exist, also as zombies.
    pub fn left(&self) -> Vec<Started> {
        let mut all = self.all();
        all.retain(|started| {
            start_and_state(started.pid).is_some_and(|(start, _)| start == started.start)
        });
        all
    }

    /// Those of them that still run.
    pub fn alive(&self) -> Vec<Started> {
        let mut left = self.left();
        left.retain(|started| {
            start_and_state(started.pid).is_some_and(|(_, state)| !matches!(state, 'Z' | 'X'))
        });
        left
    }

    /// The ids of those with this role.
    pub fn of_role(&self, role: &str) -> Vec<i32> {
        let all = self
            .all()
            .into_iter()
            .filter(|started| started.role == role);
        all.map(|started| started.pid).collect()
    }

    /// Kills the remaining ones, by id: for the end of a test that failed.
    pub fn kill_rest(&self) {
        for started in self.alive() {
            if let Some(pid) = rustix::process::Pid::from_raw(started.pid) {
                rustix::process::kill_process(pid, rustix::process::Signal::KILL).ok();
            }
        }
    }
}

/// The start time of a process, and its state.
fn start_and_state(pid: i32) -> Option<(u64, char)> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name in parentheses can contain anything.
    let rest = stat.rsplit_once(") ")?.1;
    let mut fields = rest.split(' ');
    let state = fields.next()?.chars().next()?;
    let start = fields.nth(18)?.parse().ok()?;
    Some((start, state))
}

/// Ignores these signals from here on.
pub(super) fn ignore(signals: &[i32]) -> io::Result<()> {
    for &signal in signals {
        signal_hook::flag::register(signal, Arc::new(AtomicBool::new(false)))?;
    }
    Ok(())
}

/// Starts `child` and waits until it and all its own are up, as far as they record themselves.
pub(super) fn spawn(child: &Grandchild) -> io::Result<()> {
    let pids = child.pids.as_deref().map(Pids::new);
    let before = pids.as_ref().map_or(0, |pids| pids.all().len());
    start(child)?;
    let Some(pids) = pids else {
        return Ok(());
    };
    let deadline = Instant::now() + Duration::from_secs(60);
    while ((pids.all().len() - before) as u64) < child.count() {
        if Instant::now() > deadline {
            return Err(io::Error::other("a grandchild did not come up"));
        }
        thread::park_timeout(Duration::from_millis(5));
    }
    Ok(())
}

/// Runs this program again as `child`.
fn start(child: &Grandchild) -> io::Result<()> {
    let mut command = Command::new(std::env::current_exe()?);
    command
        .arg("--grandchild")
        .arg(serde_json::to_string(child)?);
    command.stdin(Stdio::null());
    if child.detached {
        command.stdout(Stdio::null()).stderr(Stdio::null());
    }
    if child.scrubbed {
        command.env_clear();
    }
    let mut started = command.spawn()?;
    if child.orphaned {
        // The process in between has nothing more to do.
        started.wait()?;
    } else {
        // No test waits for the first to end; but its own parent must not leave zombies.
        thread::spawn(move || started.wait());
    }
    Ok(())
}

/// Runs as the hidden argument `--grandchild` says.
pub fn child(json: &str) -> io::Result<()> {
    let mut me: Grandchild = serde_json::from_str(json)?;
    if me.ignores_signals {
        ignore(&[SIGTERM, SIGINT, SIGHUP])?;
    }
    if std::mem::take(&mut me.new_session) {
        rustix::process::setsid()?;
    }
    if std::mem::take(&mut me.orphaned) {
        return start(&me);
    }
    if me.width > 0 && me.depth > 0 {
        let own = Grandchild {
            depth: me.depth - 1,
            ..me.clone()
        };
        for _ in 0..me.width {
            start(&own)?;
        }
    }
    if let Some(dir) = &me.pids {
        Pids::new(dir).record_self(&me.role)?;
    }
    if me.noisy {
        // Whole lines, so few that they do not mix with the output of others.
        let noise = "noise of a grandchild\n".repeat(150);
        let end = Instant::now() + LONGEST;
        // Also when there is no reader any more.
        while Instant::now() < end && io::stdout().write_all(noise.as_bytes()).is_ok() {}
    }
    thread::sleep(LONGEST);
    Ok(())
}
