//! Hooks that a process of their own runs, for a caller that does not wait for all of them.
//!
//! A command that changes the board lives for milliseconds, and a hook it started may go on for
//! minutes in the background. So commands do not run hooks themselves: a copy of this program
//! does. It answers as soon as all have spoken whom somebody waits for, and stays for the
//! others. If the caller is gone before that, nobody wants the answer, and the hooks are ended.

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

/// What is to be run, one line of JSON on standard input.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Job<T> {
    /// When.
    pub event: HookEvent,
    /// What.
    pub hooks: Vec<Hook>,
    /// What they are told.
    pub input: HookInput,
    /// Whom to tell what those say that nobody waited for.
    pub tell: T,
}

/// What those said that were waited for, one line of JSON on standard output.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Done {
    /// What they said together.
    pub outcome: Outcome,
    /// Others go on.
    pub more: bool,
}

/// Runs the hooks of the job on standard input; `late` is called with what those say that
/// nobody waited for.
pub fn work<T: for<'a> Deserialize<'a>>(mut late: impl FnMut(&T, &Late)) -> io::Result<()> {
    // Whoever ends the caller's group or closes its terminal does not mean the hooks.
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

/// Waits until nobody is at the other end.
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
