//! The surroundings of a check: a directory, a tokio runtime, and everything killed at the end.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rustix::process::{Pid, Signal};
use swarm::process::Processes;
use swarm::runtime::{Launch, LaunchError, Runtime, Start};
use tempfile::TempDir;
use tokio::runtime::Handle;
use tokio::sync::oneshot;

use super::{Session, Subject};
use crate::fake::Pids;

/// Time limit that only a hang reaches.
pub const LIMIT: Duration = Duration::from_secs(240);

/// The surroundings of one check.
pub struct Bench<'a> {
    subject: &'a dyn Subject,
    dir: TempDir,
    processes: Processes,
    handle: Handle,
    over: Option<oneshot::Sender<()>>,
    driver: Option<JoinHandle<()>>,
}

impl std::fmt::Debug for Bench<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Bench")
            .field("dir", &self.dir)
            .finish_non_exhaustive()
    }
}

impl<'a> Bench<'a> {
    pub fn new(subject: &'a dyn Subject) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .expect("a runtime");
        let handle = runtime.handle().clone();
        let processes = {
            let _within = handle.enter();
            Processes::own().expect("signals")
        };
        // Background tasks continue while the check waits for something else.
        let (over, until) = oneshot::channel::<()>();
        let driver = thread::spawn(move || {
            runtime.block_on(until).ok();
        });
        let dir = tempfile::tempdir().expect("a directory");
        for name in ["cwd", "scratch", "pids"] {
            std::fs::create_dir(dir.path().join(name)).expect("a directory");
        }
        Self {
            subject,
            dir,
            processes,
            handle,
            over: Some(over),
            driver: Some(driver),
        }
    }

    pub fn subject(&self) -> &'a dyn Subject {
        self.subject
    }

    pub fn runtime(&self) -> &'a dyn Runtime {
        self.subject.runtime()
    }

    /// A file in the directory in which agents work.
    pub fn path(&self, name: &str) -> PathBuf {
        self.cwd().join(name)
    }

    /// The directory in which agents work.
    pub fn cwd(&self) -> PathBuf {
        self.beside("cwd")
    }

    fn beside(&self, name: &str) -> PathBuf {
        self.dir.path().canonicalize().expect("a path").join(name)
    }

    /// The directory for the ids of processes that are left behind.
    pub fn pid_dir(&self) -> PathBuf {
        self.beside("pids")
    }

    /// Those processes.
    pub fn pids(&self) -> Pids {
        Pids::new(&self.pid_dir())
    }

    pub(super) fn handle(&self) -> &Handle {
        &self.handle
    }

    /// Fails unless this many programs run, if the agent is one.
    pub fn assert_running(&self, count: usize) {
        if self.subject().has_program() {
            assert_eq!(self.running().len(), count);
        }
    }

    /// The programs that run.
    pub fn running(&self) -> Vec<Pid> {
        self.processes.running()
    }

    /// The launch of an agent.
    pub fn launch_of(&self, prompt: &str) -> Launch {
        let mut launch = Launch {
            prompt: prompt.to_owned(),
            cwd: self.cwd(),
            env: self.environment(),
            scratch: self.beside("scratch"),
            ..Launch::default()
        };
        self.subject.prepare(&mut launch);
        launch
    }

    /// The whole environment of an agent.
    pub fn environment(&self) -> Vec<(OsString, OsString)> {
        let mut all = self.subject.environment();
        all.push(("CCB_CONTRACT".into(), "a b=c\n'\"$".into()));
        all
    }

    pub fn launch(&self, prompt: &str) -> Session<'_> {
        self.start(self.launch_of(prompt)).expect("it starts")
    }

    pub fn resume(&self, session: &str, prompt: &str) -> Session<'_> {
        let mut launch = self.launch_of(prompt);
        let session = session.to_owned();
        launch.start = Start::Resume { session };
        self.start(launch).expect("it goes on")
    }

    pub fn start(&self, launch: Launch) -> Result<Session<'_>, LaunchError> {
        self.start_with(self.runtime(), launch)
    }

    pub fn start_with(
        &self,
        runtime: &dyn Runtime,
        launch: Launch,
    ) -> Result<Session<'_>, LaunchError> {
        let _within = self.handle.enter();
        let agent = runtime.launch(launch, &self.processes)?;
        Ok(Session::new(self, agent))
    }
}

impl Drop for Bench<'_> {
    fn drop(&mut self) {
        for pid in self.processes.running() {
            rustix::process::kill_process_group(pid, Signal::KILL).ok();
        }
        self.pids().kill_rest();
        drop(self.over.take());
        if let Some(driver) = self.driver.take() {
            driver.join().ok();
        }
    }
}

/// Makes an empty file.
pub fn touch(path: &Path) {
    std::fs::write(path, "").expect("a file");
}
