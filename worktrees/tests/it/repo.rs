//! A repository to test with. The harness of the other tests includes this file as well.

use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;
use worktrees::{CreateRequest, Created, Slug, TreeOptions, Trees};

/// A small git repository of its own, with nothing of the user's configuration.
#[derive(Debug)]
pub struct TestRepo {
    dir: TempDir,
    main: PathBuf,
}

impl TestRepo {
    /// A repository with one commit of two files and a `.gitignore`.
    pub fn new() -> Self {
        Self::with_format(&[])
    }

    /// The same with more arguments for `git init`.
    pub fn with_format(args: &[&str]) -> Self {
        let repo = Self::empty(args);
        repo.write("readme", "one\n");
        repo.write("src/lib", "code\n");
        repo.write(".gitignore", "*.ignored\n/node_modules/\n/build/\n");
        repo.git(&["add", "."]);
        repo.git(&["commit", "-qm", "first"]);
        repo
    }

    /// A clone of the repository at this address, made with these arguments.
    pub fn cloned(from: &str, args: &[&str]) -> Self {
        let repo = Self::empty(&[]);
        std::fs::remove_dir_all(repo.main()).expect("the empty one goes");
        let main = repo.main().to_str().expect("text").to_owned();
        let top = repo.beside("");
        git(&top, &[&["clone", "-q"], args, &[from, &main]].concat());
        repo
    }

    /// A repository without a commit.
    pub fn empty(args: &[&str]) -> Self {
        let memory = Path::new("/dev/shm");
        let root = if tempfile::tempfile_in(memory).is_ok() {
            memory.to_owned()
        } else {
            std::env::temp_dir()
        };
        let dir = tempfile::Builder::new()
            .prefix("ccb-repo-")
            .tempdir_in(root)
            .expect("a scratch directory");
        let main = dir.path().canonicalize().expect("a path").join("main");
        std::fs::create_dir_all(&main).expect("a directory");
        let repo = Self { dir, main };
        repo.git(&[&["init", "-q", "-b", "main"], args].concat());
        repo
    }

    /// The main worktree.
    pub fn main(&self) -> &Path {
        &self.main
    }

    /// A directory beside the repository.
    pub fn beside(&self, name: &str) -> PathBuf {
        self.dir.path().canonicalize().expect("a path").join(name)
    }

    /// The present or future path of the worktree `name` in this directory.
    pub fn tree(&self, name: &str) -> PathBuf {
        self.main.join(".claude/worktrees").join(name)
    }

    /// ccb's files in the shared git directory.
    pub fn ours(&self) -> PathBuf {
        self.main.join(".git/ccb")
    }

    pub fn write(&self, path: &str, text: &str) {
        write(&self.main.join(path), text);
    }

    /// Runs git in the main worktree and returns its output.
    pub fn git(&self, args: &[&str]) -> String {
        git(&self.main, args)
    }

    /// Runs git in the worktree `name`.
    pub fn git_in(&self, name: &str, args: &[&str]) -> String {
        git(&self.tree(name), args)
    }

    pub fn trees(&self) -> Trees {
        Trees::discover(&self.main, TreeOptions::default()).expect("a repository")
    }

    /// Finds or makes the worktree `name`.
    pub fn create(&self, name: &str) -> Created {
        let request = CreateRequest::new(Some(slug(name)), &self.main);
        self.trees().create(&request).expect("a tree")
    }

    /// The parts of the main worktree that must not change: status, configuration, hooks, branches
    /// that are not ccb's.
    pub fn surroundings(&self) -> String {
        let config = std::fs::read_to_string(self.main.join(".git/config")).expect("a config");
        let mut hooks: Vec<_> = std::fs::read_dir(self.main.join(".git/hooks"))
            .map(|dir| dir.map(|entry| entry.expect("an entry").path()).collect())
            .unwrap_or_default();
        hooks.sort();
        let status = self.git(&[
            "status",
            "--porcelain=v2",
            "--branch",
            "--untracked-files=all",
        ]);
        let head = self.git(&["rev-parse", "HEAD"]);
        format!("{status}{head}{config}{hooks:?}")
    }

    /// Fails unless git finds nothing wrong with the repository or its list of worktrees.
    pub fn check_sound(&self) {
        self.git(&["fsck", "--strict", "--no-dangling", "--no-progress"]);
        let list = self.git(&["worktree", "list", "--porcelain"]);
        assert!(!list.contains("prunable"), "{list}");
        for path in list
            .lines()
            .filter_map(|line| line.strip_prefix("worktree "))
        {
            assert!(Path::new(path).is_dir(), "{path} is not there: {list}");
        }
    }

    /// The branches of worktrees, with their commits.
    pub fn tree_branches(&self) -> Vec<String> {
        let text = self.git(&[
            "for-each-ref",
            "--format=%(refname:short)",
            "refs/heads/worktree/",
        ]);
        text.lines().map(str::to_owned).collect()
    }
}

impl Default for TestRepo {
    fn default() -> Self {
        Self::new()
    }
}

/// A name that is valid.
pub fn slug(name: &str) -> Slug {
    Slug::new(name).expect("a valid name")
}

/// Writes a file, making its directories.
pub fn write(path: &Path, text: &str) {
    std::fs::create_dir_all(path.parent().expect("a parent")).expect("a directory");
    std::fs::write(path, text).expect("a file");
}

/// git as a person would run it, but with nothing of this machine's configuration.
pub fn git_command(dir: &Path, args: &[&str]) -> Command {
    let mut command = Command::new("git");
    command
        .args(["-c", "user.name=t", "-c", "user.email=t@example.org"])
        .args(args)
        .current_dir(dir)
        .env("HOME", "/nonexistent")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1");
    command
}

/// Runs it, expects success, and returns its output.
pub fn git(dir: &Path, args: &[&str]) -> String {
    let output = git_command(dir, args).output().expect("git starts");
    assert!(output.status.success(), "git {args:?}: {output:?}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}
