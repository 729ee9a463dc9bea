//! Runs a check on a commit, where only ccb supervises it.

use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use store::atomic::open_private;

use crate::check::log::CheckLog;
use crate::check::{AfterCheck, CheckTree};
use crate::create::SetUp;
use crate::error::TreeError;
use crate::process;
use crate::slug::Slug;
use crate::trees::Trees;

/// A command that has to succeed on a commit.
#[derive(Debug)]
pub struct Check<'a> {
    /// For the shell.
    pub command: String,
    /// Time limit; after it, ccb kills the command and everything it started.
    pub timeout: Duration,
    /// The files and directories that the worktree gets besides the commit's.
    pub set_up: SetUp,
    /// The fate of the worktree afterwards.
    pub after: AfterCheck,
    /// Ends the command when set.
    pub stop: &'a AtomicBool,
}

impl Trees {
    /// Runs the check on exactly `commit`, which is to land for `tree`; returns the path of its
    /// output.
    pub(crate) fn check_commit(
        &self,
        tree: &Slug,
        commit: &str,
        check: &Check<'_>,
    ) -> Result<PathBuf, TreeError> {
        let place = self.check_tree(commit, &check.set_up)?;
        let result = self.run_check(tree, &place, check);
        place.release(check.after);
        result
    }

    fn run_check(
        &self,
        of: &Slug,
        tree: &CheckTree,
        check: &Check<'_>,
    ) -> Result<PathBuf, TreeError> {
        let stem = format!("merge-{}-{}", of.flat(), self.now_ms());
        if let Some(command) = &check.set_up.command {
            let log = self.layout.logs().join(format!("{stem}-setup.log"));
            let done = check
                .set_up
                .run_command(command, &self.layout, tree.path(), &log);
            done.map_err(|failure| failure.of(of))?;
        }
        let log = self.layout.logs().join(format!("{stem}.log"));
        match self.run_shell(tree, &log, check)? {
            None => Ok(log),
            Some((how, killed)) => Err(TreeError::CheckFailed {
                command: check.command.clone(),
                how,
                killed,
                log,
            }),
        }
    }

    /// The failure, if any; true if the command was killed by others.
    fn run_shell(
        &self,
        tree: &CheckTree,
        log: &Path,
        check: &Check<'_>,
    ) -> Result<Option<(String, bool)>, TreeError> {
        let output = open_private(log)?;
        let not_run = |source| TreeError::NotRun {
            program: check.command.clone(),
            source,
        };
        let (stdout, stderr, log) =
            CheckLog::open(output, &self.options.secret_filter).map_err(not_run)?;
        let mut shell = process::shell(&check.command, tree.path(), &self.layout.main);
        shell
            // It reads nothing. If ccb is killed, the worktree is not used again before the check
            // has ended.
            .stdin(tree.lock()?)
            .stdout(stdout)
            .stderr(stderr);
        let ran = process::run_until(shell, check.timeout, check.stop).map_err(not_run)?;
        log.finish();
        Ok(match (ran.timed_out, ran.status.success()) {
            (true, _) => {
                let seconds = check.timeout.as_secs();
                Some((format!("it was stopped after {seconds} s"), false))
            }
            (false, true) => None,
            (false, false) => {
                // The shell says with its code that what it had started was killed.
                let killed = ran.status.signal() == Some(9) || ran.status.code() == Some(137);
                Some((ran.status.to_string(), killed))
            }
        })
    }
}
