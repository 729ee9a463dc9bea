//! The one place that starts git.
//!
//! Every call is hermetic: the caller's environment does not affect it, no hook, editor, prompt,
//! file-system monitor or background maintenance runs for ccb, it cannot wait for input, and its
//! time is limited. In one of ccb's worktrees it works on ccb's repository, even if the worktree's
//! own files lead elsewhere. Arguments of a user stand behind `--end-of-options` or `--`, or come
//! in on standard input.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use store::lock::FileLock;

use crate::error::TreeError;
use crate::git::locks;
use crate::git::pin::{self, Pin};
use crate::process::{self, Captured, Finished, Input};

/// Time limit of git for everything but checking files out.
pub(crate) const DEFAULT_TIMEOUT: Duration = Duration::from_secs(120);

/// Maximum of attempts if git was killed, or met the lock of a killed one.
const MAX_TRIES: usize = 5;

const CONFIG: &[&str] = &[
    // Code of the repository that would run for ccb.
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    // Background work that would outlive the call and its locks.
    "gc.auto=0",
    "maintenance.auto=false",
    // Questions that no person is there to answer.
    "commit.gpgSign=false",
    "core.editor=true",
    "core.askPass=true",
    // After a power cut a ref has its old value or its new one: git itself can do nothing with an
    // empty ref, not even delete it.
    "core.fsync=reference",
    // Warnings and colours are for people.
    "color.ui=false",
    "advice.detachedHead=false",
];

/// For `status` and `diff-index`: git starts nothing in repositories inside the worktree. Neither
/// configuration nor `.gitmodules` can override the flag.
pub(crate) const SKIP_NESTED: &str = "--ignore-submodules=dirty";

/// A git command under construction.
#[derive(Debug)]
pub(crate) struct Git {
    command: Command,
    /// For error messages.
    verb: String,
    input: Input,
    timeout: Duration,
    /// Maximum of its output, in bytes.
    most: usize,
    /// True if it is not restarted after it was killed: its half-done work would be in the way.
    once: bool,
    /// True if a git of ccb was killed just before, where this one is to work.
    after_kill: bool,
    /// The reason why it must not be started there.
    refused: Option<(PathBuf, String)>,
}

impl Git {
    /// `git <verb>` in the directory `dir`.
    pub(crate) fn at(dir: &Path, verb: &str) -> Self {
        Self::with_config(dir, verb, &[])
    }

    /// `git status`, which only this function starts. Of a repository inside, only its HEAD is
    /// compared: git would look at its files by a `git status` there, under a configuration that an
    /// agent may have written.
    pub(crate) fn status(dir: &Path) -> Self {
        Self::at(dir, "status").arg(SKIP_NESTED)
    }

    /// The same with more settings for this one call.
    pub(crate) fn with_config(dir: &Path, verb: &str, config: &[&str]) -> Self {
        Self::behind(&[], dir, verb, config)
    }

    /// The same, started by a program with these words, if there are any.
    pub(crate) fn behind(starter: &[OsString], dir: &Path, verb: &str, config: &[&str]) -> Self {
        let mut command = match starter {
            [] => Command::new("git"),
            [program, words @ ..] => {
                let mut command = Command::new(program);
                command.args(words).arg("git");
                command
            }
        };
        process::forget_git(&mut command);
        let refused = match pin::of(dir) {
            Pin::Free => None,
            Pin::Wrong { tree, why } => Some((tree, why)),
            Pin::To {
                tree,
                admin,
                common,
            } => {
                command
                    .env("GIT_DIR", admin)
                    .env("GIT_COMMON_DIR", common)
                    .env("GIT_WORK_TREE", tree);
                None
            }
        };
        command
            .current_dir(dir)
            .env("LC_ALL", "C")
            .env("GIT_TERMINAL_PROMPT", "0")
            .env("GIT_EDITOR", "true")
            .env("GIT_SEQUENCE_EDITOR", "true")
            .env("GIT_PAGER", "cat")
            .arg("--no-optional-locks");
        for setting in CONFIG.iter().chain(config) {
            command.args(["-c", setting]);
        }
        command.arg(verb);
        Self {
            command,
            verb: verb.to_owned(),
            input: Input::Nothing,
            timeout: DEFAULT_TIMEOUT,
            most: usize::MAX,
            once: false,
            after_kill: false,
            refused,
        }
    }

    pub(crate) fn arg(mut self, arg: impl AsRef<OsStr>) -> Self {
        self.command.arg(arg);
        self
    }

    pub(crate) fn args<S: AsRef<OsStr>>(mut self, args: impl IntoIterator<Item = S>) -> Self {
        self.command.args(args);
        self
    }

    pub(crate) fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.command.env(name, value);
        self
    }

    /// Gives it these bytes on standard input.
    pub(crate) fn input(mut self, bytes: Vec<u8>) -> Self {
        self.input = Input::Bytes(bytes);
        self
    }

    /// Keeps the lock taken until git has ended, even if this process is killed.
    pub(crate) fn holding(mut self, lock: &FileLock) -> Result<Self, TreeError> {
        self.input = Input::Lock(lock.handle()?);
        Ok(self)
    }

    /// Does not restart it if it is killed; the caller must handle that.
    pub(crate) fn once(mut self) -> Self {
        self.once = true;
        self
    }

    /// If `killed`, a git of ccb was killed here, and locks in the way are its locks.
    pub(crate) fn after_kill(mut self, killed: bool) -> Self {
        self.after_kill = killed;
        self
    }

    pub(crate) fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Ends it when it has printed more than this.
    pub(crate) fn most_output(mut self, most: usize) -> Self {
        self.most = most;
        self
    }

    /// Runs it and returns its output; anything but success is an error.
    pub(crate) fn run(self) -> Result<Vec<u8>, TreeError> {
        let verb = self.verb.clone();
        let finished = self.finish()?;
        if finished.status.success() {
            Ok(finished.stdout)
        } else {
            Err(failure(verb, &finished))
        }
    }

    /// Runs it and returns its output as text, without white space around it.
    pub(crate) fn line(self) -> Result<String, TreeError> {
        Ok(line(&self.run()?))
    }

    /// Runs it and returns the lines of its output.
    pub(crate) fn lines(self) -> Result<Vec<String>, TreeError> {
        let bytes = self.run()?;
        let text = String::from_utf8_lossy(&bytes);
        Ok(text.lines().map(str::to_owned).collect())
    }

    /// Runs it with exit code 1 as an answer ("no") and others as errors.
    pub(crate) fn ask(self) -> Result<(bool, Vec<u8>), TreeError> {
        let verb = self.verb.clone();
        let finished = self.finish()?;
        match finished.status.code() {
            Some(0) => Ok((true, finished.stdout)),
            Some(1) => Ok((false, finished.stdout)),
            _ => Err(failure(verb, &finished)),
        }
    }

    /// Runs it to its end; again if it was killed, which says nothing about the request, or if the
    /// lock of a killed git is in its way.
    fn finish(self) -> Result<Finished, TreeError> {
        if let Some((path, why)) = self.refused {
            return Err(TreeError::NotOurs { path, why });
        }
        tracing::debug!(command = ?self.command, "git");
        let program = self.command.get_program().to_owned();
        let dir = self.command.get_current_dir().map(Path::to_owned);
        let mut killed = self.after_kill;
        let mut git = Captured::new(self.command, self.input).most(self.most);
        let mut tries = 0;
        loop {
            tries += 1;
            let finished = git.run(self.timeout).map_err(|error| {
                // The same error says that the directory is gone.
                let gone = dir.as_ref().filter(|dir| !dir.is_dir());
                let error = match gone {
                    Some(dir) => io::Error::other(format!("{} is gone", dir.display())),
                    None => error,
                };
                let program = PathBuf::from(&program);
                TreeError::NoGit { program, error }
            })?;
            if finished.stdout.len() > self.most {
                return Err(TreeError::TooMuch {
                    verb: self.verb,
                    most: self.most,
                });
            }
            if finished.timed_out {
                return Err(TreeError::GitTimedOut {
                    verb: self.verb,
                    after: self.timeout,
                });
            }
            if was_killed(&finished) {
                killed = true;
                if self.once || tries == MAX_TRIES {
                    return Err(TreeError::Interrupted {
                        what: format!("git {}", self.verb),
                    });
                }
                continue;
            }
            let lock = locks::in_the_way(&finished).filter(|_| tries < MAX_TRIES);
            match lock {
                Some(lock) if locks::clear(&lock, killed) => {}
                _ => return Ok(finished),
            }
        }
    }
}

/// True if a signal ended it, or a git it had started, before it was done. A crash is another
/// matter: it would crash again.
fn was_killed(finished: &Finished) -> bool {
    use rustix::process::Signal;
    let by = |signal: i32| {
        [Signal::KILL, Signal::TERM, Signal::INT, Signal::HUP]
            .iter()
            .any(|one| one.as_raw() == signal)
    };
    match finished.status.signal() {
        Some(signal) => by(signal),
        None => {
            let said = String::from_utf8_lossy(&finished.stderr);
            !finished.status.success() && said.contains("died of signal 9")
        }
    }
}

fn failure(verb: String, finished: &Finished) -> TreeError {
    let stderr = String::from_utf8_lossy(&finished.stderr);
    TreeError::Git {
        verb,
        status: finished.status.to_string(),
        stderr: stderr.trim().to_owned(),
    }
}

/// The output of git as one line of text.
pub(crate) fn line(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).trim().to_owned()
}

/// The pieces of output that each end with a zero byte.
pub(crate) fn zero_split(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    bytes
        .split(|byte| *byte == 0)
        .filter(|piece| !piece.is_empty())
}

/// A path as git printed it.
pub(crate) fn path_from(bytes: &[u8]) -> PathBuf {
    use std::os::unix::ffi::OsStringExt;
    PathBuf::from(OsString::from_vec(bytes.to_vec()))
}
