//! The changes found in a worktree.

use serde_json::{Value, json};

store::words! {
    /// The worktree's own work, as far as it is known.
    #[derive(Default)]
    pub enum ChangeState {
        /// It has nothing but the base.
        Clean = "clean",
        /// It has work of its own.
        Changed = "changed",
        /// Not everything could be read, so it counts as changed.
        #[default]
        Unknown = "unknown",
    }
}

/// The differences between a worktree and the commit it started from.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Changes {
    /// Tracked files that are modified or staged.
    pub files: usize,
    /// The tracked files whose change is staged.
    pub staged: usize,
    /// Files that git neither tracks nor ignores.
    pub untracked: usize,
    /// Commits since the stored base.
    pub commits: usize,
    /// Commits made here that only the reflogs still name.
    pub unreferenced: usize,
    /// Stashes made on the worktree's branch.
    pub stashes: usize,
    /// Repositories inside: submodules that were initialised, or clones.
    pub nested: usize,
    /// True if HEAD is on no branch.
    pub detached: bool,
    /// Files with conflicts.
    pub unmerged: usize,
    /// An unfinished merge, rebase, cherry-pick, revert or bisect.
    pub in_progress: Option<&'static str>,
    /// The summary.
    pub state: ChangeState,
    /// The reason why the state is unknown.
    pub reason: Option<String>,
    /// The commit HEAD is at.
    pub head: Option<String>,
    /// The branch HEAD is on, without `refs/heads/`.
    pub branch: Option<String>,
    /// The number of `nested` that are only in an agent's own `.git`.
    pub(crate) private_modules: usize,
    /// A submodule that has other commits than the worktree names.
    pub(crate) moved_module: Option<String>,
    /// The uncommitted paths, those of `files` and `untracked`, as git names them.
    pub(crate) paths: Vec<Vec<u8>>,
}

impl Changes {
    /// The difference between the worktree and `commit`; `None` if it is exactly there.
    pub fn beyond(&self, commit: &str) -> Option<String> {
        if self.head.as_deref() != Some(commit) {
            return Some("commits were added meanwhile".into());
        }
        if self.files + self.untracked + self.unmerged == 0 {
            return None;
        }
        let uncommitted = Self {
            commits: 0,
            ..self.clone()
        };
        let what = uncommitted.describe();
        Some(format!("files changed meanwhile ({what})"))
    }

    /// The fields of section "changes" of the command line's answers.
    pub fn to_json(&self) -> Value {
        let mut json = json!({
            "files": self.files,
            "staged": self.staged,
            "untracked": self.untracked,
            "commits": self.commits,
            "detached": self.detached,
            "unmerged": self.unmerged,
            "unreferenced": self.unreferenced,
            "stashes": self.stashes,
            "nested": self.nested,
            "state": self.state.as_str(),
            "head": self.head,
            "branch": self.branch,
        });
        if let Some(what) = self.in_progress {
            json["inProgress"] = what.into();
        }
        if let Some(reason) = &self.reason {
            json["reason"] = reason.clone().into();
        }
        json
    }

    /// True if the worktree has no work beyond `commit`.
    pub(crate) fn only_commits_until(&self, commit: &str) -> bool {
        let rest = Self {
            commits: 0,
            ..self.clone()
        };
        self.state != ChangeState::Unknown
            && self.head.as_deref() == Some(commit)
            && rest.judged().state == ChangeState::Clean
    }

    /// The same after all its files were found to be those of HEAD.
    pub(crate) fn without_files(self) -> Self {
        Self {
            files: 0,
            staged: 0,
            untracked: 0,
            paths: Vec::new(),
            ..self
        }
        .judged()
    }

    /// The same after everything was committed on top of HEAD.
    pub(crate) fn committed_as(self, commit: &str) -> Self {
        Self {
            head: Some(commit.to_owned()),
            commits: self.commits + 1,
            ..self.without_files()
        }
        .judged()
    }

    /// True if there are commits and nothing else that could be lost.
    pub(crate) fn are_only_commits(&self) -> bool {
        let mut rest = self.clone();
        rest.commits = 0;
        self.state == ChangeState::Changed && rest.describe() == "none"
    }

    /// A short description for people.
    pub fn describe(&self) -> String {
        let counts = [
            (self.files, "changed file", "changed files"),
            (self.untracked, "untracked file", "untracked files"),
            (self.commits, "commit", "commits"),
            (
                self.unreferenced,
                "commit in the reflog",
                "commits in the reflog",
            ),
            (self.stashes, "stash", "stashes"),
            (self.nested, "repository inside", "repositories inside"),
            (self.unmerged, "conflict", "conflicts"),
        ];
        let mut parts: Vec<String> = counts
            .iter()
            .filter(|(count, ..)| *count > 0)
            .map(|(count, one, many)| format!("{count} {}", if *count == 1 { one } else { many }))
            .collect();
        parts.extend(self.in_progress.map(|what| format!("an unfinished {what}")));
        match (&self.reason, parts.is_empty()) {
            (Some(reason), _) => parts.push(format!("cannot tell: {reason}")),
            (None, true) => parts.push("none".into()),
            (None, false) => {}
        }
        parts.join(", ")
    }

    pub(crate) fn unknown(mut self, reason: impl Into<String>) -> Self {
        self.state = ChangeState::Unknown;
        self.reason = Some(reason.into());
        self
    }

    pub(crate) fn judged(mut self) -> Self {
        let anything = self.files + self.untracked + self.commits + self.unreferenced > 0
            || self.stashes + self.nested + self.unmerged > 0
            || self.in_progress.is_some();
        self.state = if anything {
            ChangeState::Changed
        } else {
            ChangeState::Clean
        };
        self
    }
}
