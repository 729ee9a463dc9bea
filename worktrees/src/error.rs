use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::json;
use store::{Category, Explain, Facts, StoreError};

use crate::change_report::Changes;

/// The reason why an operation on a worktree failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum TreeError {
    /// An error of a file, a lock or a setting.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A name that a worktree cannot have.
    #[error("{given:?} is not a valid worktree name: {why}")]
    BadName { given: String, why: &'static str },
    /// A name that differs from an existing one only in case.
    #[error(
        "worktree {given:?} would clash with {existing:?}: names must differ in more than case"
    )]
    NameClash { given: String, existing: String },
    /// The directory is in no repository.
    #[error("{} is not in a git repository", dir.display())]
    NoRepository { dir: PathBuf },
    /// The repository has no main worktree to put others into.
    #[error("{} is a bare repository, or a submodule's: it has no working tree of its own", path.display())]
    Bare { path: PathBuf },
    /// There is no commit to base a worktree on.
    #[error("the repository has no commit yet")]
    NoCommit,
    /// The base is not a commit.
    #[error("{given:?} is not a commit here: {why}")]
    BadBase {
        given: String,
        /// The output of git.
        why: String,
    },
    /// A path that is not text.
    #[error("{}: the path is not valid UTF-8", path.display())]
    NotText { path: PathBuf },
    /// A setting or argument that breaks a rule.
    #[error("{what}: {why}")]
    Invalid { what: String, why: String },
    /// No such worktree.
    #[error("there is no worktree {name:?}")]
    NotFound { name: String },
    /// The work was withdrawn while it was about to land.
    #[error("the work in worktree {name:?} was sent back while it was landing")]
    NotWanted { name: String },
    /// The caller asked for a new worktree, and it exists.
    #[error("worktree {name:?} exists already")]
    Exists { name: String },
    /// The branch for the worktree exists; ccb never moves it.
    #[error("branch {branch:?} exists already and is left as it is")]
    BranchExists {
        /// Without `refs/heads/`.
        branch: String,
    },
    /// A foreign file or directory is in the place of the worktree.
    #[error("{} is in the way: {why}", path.display())]
    PathTaken { path: PathBuf, why: String },
    /// A registered worktree whose files do not look like one; ccb does not touch it.
    #[error("{} is not the worktree it should be: {why}", path.display())]
    NotOurs { path: PathBuf, why: String },
    /// Work would be lost.
    #[error("worktree {name:?} has changes: {}", changes.describe())]
    HasChanges { name: String, changes: Box<Changes> },
    /// Another process works in it.
    #[error("worktree {name:?} is in use by {holder}")]
    Held { name: String, holder: String },
    /// The user locked it with `git worktree lock`.
    #[error("worktree {name:?} is locked{}", if reason.is_empty() { String::new() } else { format!(": {reason}") })]
    Locked { name: String, reason: String },
    /// A rename cannot reach it.
    #[error("{} is on another file system than the repository: it cannot be moved aside safely", path.display())]
    OtherFileSystem { path: PathBuf },
    /// A hook made it, so only a hook can remove it.
    #[error("worktree {name:?} was made by a hook: {why}")]
    HookBased { name: String, why: &'static str },
    /// A hook did not do its part.
    #[error("the {hook} hook failed: {why}")]
    Hook { hook: &'static str, why: String },
    /// Preparing a new worktree failed; it was removed again.
    #[error("setting up worktree {name:?} failed: {why}")]
    SetUp {
        name: String,
        why: String,
        log: Option<PathBuf>,
    },
    /// No worktree of that name was removed lately.
    #[error("there is no removed worktree {name:?} to restore")]
    NothingToUndo { name: String },
    /// Uncommitted work would not land.
    #[error("worktree {name:?} has uncommitted changes: {}", changes.describe())]
    Uncommitted { name: String, changes: Box<Changes> },
    /// The work in the worktree cannot be put onto another branch as it is.
    #[error("worktree {name:?} cannot be merged: {why}")]
    NotMergeable { name: String, why: String },
    /// Both sides changed the same lines; nothing was touched.
    #[error("worktree {name:?} and {into} change the same: {}", some(files))]
    Conflicts {
        name: String,
        into: String,
        files: Vec<String>,
    },
    /// The check did not pass on the merged result; the target has not moved.
    #[error("the check `{command}` failed on the merged result: {how}")]
    CheckFailed {
        command: String,
        how: String,
        /// True if another process killed it: that says nothing about the result.
        killed: bool,
        log: PathBuf,
    },
    /// git does not move the branch where it is checked out.
    #[error("{branch} is checked out at {} and cannot move there: {why}", path.display())]
    TargetRefused {
        branch: String,
        path: PathBuf,
        /// The output of git.
        why: String,
    },
    /// A remote refuses a push.
    #[error("the remote {remote} refuses {what}: {why}")]
    RemoteRefused {
        remote: String,
        what: String,
        /// The output of the remote.
        why: String,
    },
    /// A remote cannot be reached.
    #[error("the remote {remote} cannot be reached: {why}")]
    RemoteUnreachable { remote: String, why: String },
    /// Others moved the branch at each attempt.
    #[error("{branch} keeps moving: another process changes it")]
    TargetMoved { branch: String },
    /// There is no such landing.
    #[error("there is no landing {id}")]
    NoLanding { id: u64 },
    /// A landing that is to be undone is no longer on the branch.
    #[error("{into} does not have the landing {} any more", commit.get(..12).unwrap_or(commit))]
    NotOnBranch { into: String, commit: String },
    /// A landing cannot be undone alone; nothing was touched.
    #[error("later commits on {into} change the same lines: {}", some(files))]
    BuiltUpon { into: String, files: Vec<String> },
    /// The registry of worktrees cannot be read.
    #[error("{} cannot be read: {why}", path.display())]
    Registry { path: PathBuf, why: String },
    /// git failed.
    #[error("git {verb} failed ({status}): {stderr}")]
    Git {
        verb: String,
        status: String,
        stderr: String,
    },
    /// The command was killed again and again. That says nothing about the request.
    #[error("interrupted: {what} was killed before it was done")]
    Interrupted { what: String },
    /// git took too long and was stopped.
    #[error("git {verb} did not end within {} s", after.as_secs())]
    GitTimedOut { verb: String, after: Duration },
    /// git printed more than the limit.
    #[error("git {verb} printed more than {most} bytes")]
    TooMuch { verb: String, most: usize },
    /// A program could not be started.
    #[error("cannot run {program}")]
    NotRun { program: String, source: io::Error },
    /// git could not be started.
    #[error("{}", no_git(program, error))]
    NoGit { program: PathBuf, error: io::Error },
}

/// The reason why git could not be started, with the remedy.
fn no_git(program: &Path, error: &io::Error) -> String {
    let name = program.display();
    match error.kind() {
        io::ErrorKind::NotFound => format!("ccb needs {name}, which is not in your PATH"),
        _ => format!("cannot run {name}: {error}"),
    }
}

/// The first few files.
pub(crate) fn some<T: AsRef<str>>(files: &[T]) -> String {
    const SHOWN: usize = 10;
    let more = files.len().saturating_sub(SHOWN);
    let shown = files[..files.len() - more].iter().map(AsRef::as_ref);
    let mut text = shown.collect::<Vec<&str>>().join(", ");
    if more > 0 {
        text.push_str(&format!(" and {more} more"));
    }
    text
}

impl TreeError {
    /// True if a later retry may succeed: git was killed, the disk was full, a lock was held.
    pub fn is_passing(&self) -> bool {
        matches!(
            self,
            Self::Interrupted { .. }
                | Self::Git { .. }
                | Self::GitTimedOut { .. }
                | Self::NoGit { .. }
                | Self::NotRun { .. }
                | Self::TargetMoved { .. }
                | Self::RemoteUnreachable { .. }
                | Self::Store(StoreError::Io { .. } | StoreError::LockTimeout { .. })
        )
    }
}

impl Explain for TreeError {
    fn facts(&self) -> Facts {
        let (category, kind) = self.group();
        let facts = Facts::new(category, kind);
        match self {
            Self::Store(error) => error.facts(),
            Self::HasChanges { name, changes } => facts.detail("changes", changes.to_json()).hint(format!(
                "look with `ccb worktree status {name}`; `--discard` removes it anyway, and \
                 `ccb worktree undo {name}` restores it"
            )),
            Self::Uncommitted { name, changes } => facts.detail("changes", changes.to_json()).hint(format!(
                "commit them in the worktree, or look with `ccb worktree status {name}`"
            )),
            Self::BuiltUpon { files, .. } => facts.detail("files", json!(files)).hint(
                "nothing was touched; undo the later landings first (`ccb undo --show` shows them), \
                 or revert it by hand with `git revert`",
            ),
            Self::Conflicts { into, files, .. } => facts.detail("files", json!(files)).hint(format!(
                "nothing was touched; merge {into} in the worktree, resolve the conflict there, and try again"
            )),
            Self::CheckFailed { log, .. } => facts
                .detail("log", log.to_string_lossy())
                .hint(format!("nothing was moved; its output is in {}", log.display())),
            Self::SetUp { log: Some(log), .. } => facts
                .detail("log", log.to_string_lossy())
                .hint(format!("its output is in {}", log.display())),
            Self::NameClash { existing, .. } => facts.hint(format!("did you mean {existing:?}?")),
            Self::BranchExists { branch } => facts.hint(format!(
                "choose another name, or delete the branch with `git branch -d {branch}`"
            )),
            other => facts.maybe_hint(other.plain_hint().map(str::to_owned)),
        }
    }
}

impl TreeError {
    /// The group it belongs to, and its word.
    fn group(&self) -> (Category, &'static str) {
        use Category::{Conflict, Failed, Invalid, NotFound, Refused, TimedOut};
        match self {
            Self::Store(error) => (error.category(), error.kind()),
            Self::BadName { .. } | Self::NameClash { .. } => (Invalid, "bad_name"),
            Self::NoRepository { .. } => (Invalid, "no_repository"),
            Self::Bare { .. } => (Invalid, "bare_repository"),
            Self::NoCommit => (Invalid, "no_commit"),
            Self::BadBase { .. } => (Invalid, "bad_base"),
            Self::NotText { .. } => (Invalid, "bad_path"),
            Self::Invalid { .. } => (Invalid, "invalid"),
            Self::NotFound { .. } => (NotFound, "worktree_not_found"),
            Self::NothingToUndo { .. } => (NotFound, "nothing_to_undo"),
            Self::Exists { .. } => (Refused, "exists"),
            Self::BranchExists { .. } => (Refused, "branch_exists"),
            Self::PathTaken { .. } => (Refused, "path_taken"),
            Self::NotOurs { .. } => (Refused, "not_ours"),
            Self::HasChanges { .. } | Self::Uncommitted { .. } => (Refused, "has_changes"),
            Self::NotMergeable { .. } => (Refused, "not_mergeable"),
            Self::NotWanted { .. } => (Refused, "not_wanted"),
            Self::Held { .. } => (Refused, "in_use"),
            Self::Locked { .. } => (Refused, "locked"),
            Self::OtherFileSystem { .. } => (Refused, "other_file_system"),
            Self::HookBased { .. } => (Refused, "hook_based"),
            Self::NoLanding { .. } => (NotFound, "no_landing"),
            Self::NotOnBranch { .. } => (Refused, "not_on_branch"),
            Self::Conflicts { .. } | Self::BuiltUpon { .. } => (Conflict, "conflicts"),
            Self::TargetRefused { .. } => (Conflict, "target_refused"),
            Self::RemoteRefused { .. } => (Refused, "remote_refused"),
            Self::RemoteUnreachable { .. } => (Failed, "remote_unreachable"),
            Self::TargetMoved { .. } => (TimedOut, "target_moved"),
            Self::GitTimedOut { .. } => (TimedOut, "git_timeout"),
            Self::TooMuch { .. } => (Invalid, "git_too_much"),
            Self::CheckFailed { .. } => (Failed, "check_failed"),
            Self::Hook { .. } => (Failed, "hook_failed"),
            Self::SetUp { .. } => (Failed, "setup_failed"),
            Self::Registry { .. } => (Failed, "registry_unreadable"),
            Self::Git { .. } | Self::NoGit { .. } => (Failed, "git_failed"),
            Self::Interrupted { .. } => (Failed, "interrupted"),
            Self::NotRun { .. } => (Failed, "not_run"),
        }
    }

    /// The remedy, whatever worktree it is about.
    fn plain_hint(&self) -> Option<&'static str> {
        Some(match self {
            Self::BadName { .. } => {
                "use up to 64 letters, digits, '.', '_' or '-', in parts separated by '/'"
            }
            Self::NoRepository { .. } => "go to a repository, or give -C DIR",
            Self::Bare { .. } => "go to a repository with a working tree",
            Self::NoCommit => "make a first commit",
            Self::BadBase { .. } => "give a branch, a tag or a commit",
            Self::NotFound { .. } => "`ccb worktree list` shows the worktrees there are",
            Self::Exists { .. } => "choose another name",
            Self::PathTaken { .. } => {
                "move it away, choose another name, or look with `ccb doctor`"
            }
            Self::NotOurs { .. } => "`ccb doctor` says more; nothing was touched",
            Self::TargetRefused { .. } => {
                "nothing was moved; commit or stash the changes there, and try again"
            }
            Self::TargetMoved { .. } => "nothing was moved; try again",
            Self::RemoteRefused { .. } => {
                "check the rights and rules of the remote: it must accept branches and refs/ccb/*"
            }
            Self::RemoteUnreachable { .. } => "try `git fetch` by hand in the same repository",
            Self::NoLanding { .. } | Self::NotOnBranch { .. } => {
                "`ccb undo --show` shows the landings there are"
            }
            Self::Held { .. } => "wait until it is done, or stop it",
            Self::Locked { .. } => "`git worktree unlock` releases it",
            Self::OtherFileSystem { .. } => {
                "look at what is in it; `git worktree remove` removes it by hand"
            }
            Self::NothingToUndo { .. } => "`ccb worktree list --all` shows what was removed",
            Self::Registry { .. } => {
                "`ccb doctor --fix` moves it aside and makes a new one from git's records"
            }
            Self::Interrupted { .. } => "nothing was changed for good; try again",
            Self::NoGit { .. } => "install git, or add its directory to PATH",
            _ => return None,
        })
    }
}
