//! Handing a run to the guard of the team's teammates.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use rustix::net::{AddressFamily, SocketFlags, SocketType};
use store::lock::FileLock;
use swarm::environment::for_supervisors;
use swarm::process::receive;
use swarm::run::{HandedRun, RunDir};
use swarm::starter;

use super::super::agents::Agents;
use super::super::guards::reap_later;
use super::{MATES_GUARD, STARTING, TAKEN, address};
use crate::env::OWN_PROGRAM;

/// Maximum time another process may take to start a guard.
const START_TIMEOUT: Duration = Duration::from_secs(30);

/// Connections to guards. A guard lives as long as a process is connected to it that may start more
/// agents. These connections close when this process ends, however it ends.
static CONNECTIONS: Mutex<Vec<(PathBuf, OwnedFd)>> = Mutex::new(Vec::new());

impl Agents {
    /// Starts the run in the process of the team's teammates, which is started if there is none.
    pub(in crate::run) fn start_together(
        &self,
        run: &RunDir,
        alive: &File,
        environment: &[(OsString, OsString)],
    ) -> io::Result<()> {
        let dir = self.director_lock();
        let dir = dir.parent().unwrap_or(&dir).to_owned();
        store::home::create_private_dir(&dir).map_err(io::Error::other)?;
        let handed = HandedRun {
            dir: run.path().to_owned(),
            alive: alive.try_clone()?.into(),
            environment: starter::hand_over(environment)?.into(),
        };
        let mut connections = CONNECTIONS.lock().unwrap_or_else(PoisonError::into_inner);
        let known = connections.iter().position(|(known, _)| *known == dir);
        if let Some(known) = known {
            if ask(&connections[known].1, &handed)? {
                return Ok(());
            }
            // The guard is gone, or takes no more runs.
            connections.remove(known);
        }
        let guard = match connect(&dir) {
            Ok(guard) => guard,
            Err(_) => start(&dir, environment)?,
        };
        let mut taken = ask(&guard, &handed)?;
        let mut guard = guard;
        if !taken {
            guard = start(&dir, environment)?;
            taken = ask(&guard, &handed)?;
        }
        if !taken {
            return Err(io::Error::other("nobody takes it in"));
        }
        connections.push((dir, guard));
        Ok(())
    }
}

/// True if the guard has taken the run.
fn ask(guard: &OwnedFd, handed: &HandedRun) -> io::Result<bool> {
    if handed.send(guard).is_err() {
        return Ok(false);
    }
    Ok(receive(guard)?.is_some_and(|said| said.bytes == TAKEN))
}

fn connect(dir: &Path) -> io::Result<OwnedFd> {
    let (_open, address) = address(dir)?;
    let (family, kind) = (AddressFamily::UNIX, SocketType::SEQPACKET);
    let socket = rustix::net::socket_with(family, kind, SocketFlags::CLOEXEC, None)?;
    rustix::net::connect(&socket, &address)?;
    Ok(socket)
}

/// Starts a guard, unless another process has just done so.
fn start(dir: &Path, environment: &[(OsString, OsString)]) -> io::Result<OwnedFd> {
    let what = "the start of the team's mates";
    let starting = FileLock::exclusive(&dir.join(STARTING), what, START_TIMEOUT);
    let _starting = starting.map_err(io::Error::other)?;
    if let Ok(guard) = connect(dir) {
        return Ok(guard);
    }
    let mut guard = Command::new(OWN_PROGRAM)
        .arg(MATES_GUARD)
        .arg(dir)
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .env_clear()
        .envs(for_supervisors(environment.iter().cloned()))
        .spawn()?;
    let mut said = [0];
    let stdout = guard.stdout.take();
    let up = stdout.is_some_and(|mut stdout| stdout.read_exact(&mut said).is_ok());
    reap_later(guard);
    match up {
        true => connect(dir),
        false => Err(io::Error::other("its guard did not come up")),
    }
}
