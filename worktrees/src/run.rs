//! Runs a command in a worktree.

use std::ffi::OsString;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use crate::error::TreeError;
use crate::process;
use crate::slug::Slug;
use crate::trees::Trees;

/// A command to run in a worktree.
#[derive(Debug)]
pub struct RunRequest<'a> {
    /// The program and its arguments.
    pub command: &'a [OsString],
    /// Time limit; after it, ccb kills the command and everything it started.
    pub timeout: Duration,
    /// True to return its output instead of passing it through.
    pub capture: bool,
    /// True to give it no standard input.
    pub no_input: bool,
    /// True to give it a `.git` of its own, as an agent has.
    pub private_git: bool,
    /// Ends it when set.
    pub stop: &'a AtomicBool,
}

/// The end of a command.
#[derive(Debug)]
pub struct Ran {
    /// Its status.
    pub status: ExitStatus,
    /// True if it was killed because it took too long, or because it did not stop when asked.
    pub timed_out: bool,
    /// Its standard output, if captured.
    pub stdout: Vec<u8>,
    /// Its standard error, if captured.
    pub stderr: Vec<u8>,
    /// The reason why its commits in a `.git` of its own were not taken over; its files are there.
    pub history_refused: Option<String>,
}

impl Trees {
    /// Runs a command in the worktree, which cannot be removed meanwhile.
    pub fn run(&self, slug: &Slug, request: &RunRequest<'_>) -> Result<Ran, TreeError> {
        let mut held = self.hold(slug)?;
        let entry = self.get(slug)?;
        if request.private_git
            && let Some(why) = self.enter(slug, &mut held)?
        {
            let what = "--private-git".into();
            return Err(TreeError::Invalid { what, why });
        }
        let Some((program, args)) = request.command.split_first() else {
            return Err(TreeError::Invalid {
                what: "command".into(),
                why: "it is empty".into(),
            });
        };
        let mut command = Command::new(program);
        command
            .args(args)
            .current_dir(entry.path())
            .env("CCB_WORKTREE", &entry.path);
        if request.no_input {
            command.stdin(Stdio::null());
        }
        if request.capture {
            command
                .stdin(Stdio::null())
                .stdout(Stdio::piped())
                .stderr(Stdio::piped());
        }
        let ran = process::run_until(command, request.timeout, request.stop);
        let ran = ran.map_err(|source| TreeError::NotRun {
            program: program.to_string_lossy().into_owned(),
            source,
        })?;
        let history_refused = match request.private_git {
            true => self.leave(slug, Some(&mut held))?,
            false => None,
        };
        Ok(Ran {
            status: ran.status,
            timed_out: ran.timed_out,
            stdout: ran.stdout,
            stderr: ran.stderr,
            history_refused,
        })
    }
}
