use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;

use crate::home::{Answer, TestHome};
use crate::repo::TestRepo;

impl TestRepo {
    /// git's lock files in the repository.
    pub fn git_locks(&self) -> Vec<PathBuf> {
        let mut found = Vec::new();
        let mut dirs = vec![self.main().join(".git")];
        while let Some(dir) = dirs.pop() {
            for entry in std::fs::read_dir(&dir).into_iter().flatten().flatten() {
                let path = entry.path();
                // ccb's own files have other rules.
                if path == self.ours() || path.ends_with("objects") {
                    continue;
                }
                if path.is_dir() {
                    dirs.push(path);
                } else if path.extension().is_some_and(|end| end == "lock") {
                    found.push(path);
                }
            }
        }
        found
    }
}

/// A repository and a home for the `ccb` that works in it.
#[derive(Debug)]
pub struct Workplace {
    pub repo: TestRepo,
    pub home: TestHome,
}

impl Workplace {
    pub fn new(binary: &str) -> Self {
        Self {
            repo: TestRepo::new(),
            home: TestHome::in_memory(binary),
        }
    }

    /// A `ccb` process in the main worktree.
    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = self.home.command_without_team(args);
        command.current_dir(self.repo.main());
        command
    }

    /// Runs `ccb --json` with `args` to its end.
    pub fn run(&self, args: &[&str]) -> Answer {
        let mut all = vec!["--json"];
        all.extend_from_slice(args);
        Answer::of(self.command(&all).output().expect("ccb starts"))
    }

    /// The same, and expects success.
    pub fn ok(&self, args: &[&str]) -> Value {
        let answer = self.run(args);
        assert_eq!(answer.code, Some(0), "{args:?}: {answer:?}");
        answer.json()
    }

    /// The same, and expects this exit code and kind of error.
    pub fn fails(&self, code: i32, kind: &str, args: &[&str]) -> Value {
        let answer = self.run(args);
        assert_eq!(answer.code, Some(code), "{args:?}: {answer:?}");
        let error = answer.json()["error"].clone();
        assert_eq!(error["kind"], kind, "{args:?}: {answer:?}");
        error
    }
}

/// A directory for a `PATH` in which this binary is found as `ccb`.
pub fn path_with_ccb(binary: &str) -> tempfile::TempDir {
    let dir = tempfile::tempdir().expect("a directory");
    std::os::unix::fs::symlink(binary, dir.path().join("ccb")).expect("a link");
    dir
}
