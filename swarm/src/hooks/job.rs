//! Hooks that a process of their own runs, for a caller that does not wait for all of them.
//!
//! A command that changes the board lives for milliseconds, and a hook it started may run for
//! minutes in the background. So commands do not run hooks themselves: a copy of this program does.
//! It answers as soon as all hooks have answered that the caller waits for, and stays for the
//! others. If the caller ends before that, the answer has no reader, and the hooks are ended.

use std::io::{self, BufRead, Write};
use std::os::fd::AsFd;

use rustix::process::Signal;
use serde::{Deserialize, Serialize};
use tokio::net::unix::pipe;
use tokio::sync::mpsc;

use super::answer::Outcome;
use super::config::Hook;
use super::event::{HookEvent, HookInput};
use super::run::{Late, Runner};
use crate::process::{Processes, signal_group};

/// The hooks to run, one line of JSON on standard input.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Job<T> {
    /// When.
    pub event: HookEvent,
    /// The hooks.
    pub hooks: Vec<Hook>,
    /// Their input.
    pub input: HookInput,
    /// The receiver of the reports of hooks that ran without a waiting caller.
    pub tell: T,
}

/// The answers of the hooks that the caller waits for, one line of JSON on standard output.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Done {
    /// Their common outcome.
    pub outcome: Outcome,
    /// True if other hooks still run.
    pub more: bool,
}

/// Runs the hooks of the job on standard input; `late` is called with the answers of hooks that no
/// caller waits for.
pub fn work<T: for<'a> Deserialize<'a>>(mut late: impl FnMut(&T, &Late)) -> io::Result<()> {
    // A signal to the caller's group or the end of its terminal is not meant for the hooks.
    rustix::process::setsid().ok();
    let mut line = String::new();
    io::stdin().lock().read_line(&mut line)?;
    let job: Job<T> = serde_json::from_str(&line)?;
    let tokio = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    tokio.block_on(async {
        let processes = Processes::own()?;
        let (sender, mut receiver) = mpsc::unbounded_channel();
        let environment = std::env::vars_os().collect();
        let runner = Runner::new(processes.clone(), environment, sender);
        let hooks: Vec<&Hook> = job.hooks.iter().collect();
        let caller = pipe::Receiver::from_owned_fd(io::stdin().as_fd().try_clone_to_owned()?)?;
        let outcome = tokio::select! {
            outcome = runner.run(job.event, &hooks, &job.input) => outcome,
            () = gone(&caller) => {
                for pid in processes.running() {
                    signal_group(pid, Signal::KILL);
                }
                return Ok(());
            }
        };
        drop(runner);
        let more = !processes.running().is_empty() || !receiver.is_empty();
        let mut line = serde_json::to_vec(&Done { outcome, more })?;
        line.push(b'\n');
        io::stdout().lock().write_all(&line)?;
        while let Some(said) = receiver.recv().await {
            late(&job.tell, &said);
        }
        Ok(())
    })
}

/// Waits until the caller has closed the other end.
async fn gone(caller: &pipe::Receiver) {
    let mut byte = [0; 64];
    loop {
        if caller.readable().await.is_err() {
            return;
        }
        match caller.try_read(&mut byte) {
            Ok(0) => return,
            Err(error) if error.kind() != io::ErrorKind::WouldBlock => return,
            _ => {}
        }
    }
}
