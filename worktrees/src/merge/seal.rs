//! Commits everything that was done in a worktree, so that it can be checked and landed.

use std::cell::OnceCell;
use std::path::Path;

use crate::change_report::Changes;
use crate::changes;
use crate::error::TreeError;
use crate::git::{ConflictPlace, Git, Head, History, files, in_process, line};
use crate::merge::patch::NAMES_ONLY;
use crate::merge::{Builder, Built, MergeStrategy, Target};
use crate::registry::Entry;
use crate::slug::Slug;
use crate::trees::Trees;

/// A tree whose every change is committed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sealed {
    /// Everything that was done.
    pub commit: String,
    /// Where the tree started.
    pub base: Option<String>,
    /// Something differs from the base.
    pub changed: bool,
    /// What is in the tree now.
    pub seen: Changes,
}

impl Trees {
    /// Commits whatever is not committed in the tree, in which nobody may be at work. Ignored
    /// files stay what they are. The commit and its branch are on the disk afterwards.
    pub fn seal(&self, slug: &Slug, message: &str) -> Result<Sealed, TreeError> {
        let entry = self.get(slug)?;
        if entry.hook_based {
            return Err(TreeError::HookBased {
                name: entry.name,
                why: "only its own version control can commit in it",
            });
        }
        let refused = |why: String| TreeError::NotMergeable {
            name: entry.name.clone(),
            why,
        };
        let found = changes::of(&self.layout, &entry);
        if let Some(what) = &found.in_progress {
            return Err(refused(format!("a {what} is under way in it")));
        }
        if found.unmerged > 0 {
            return Err(refused("it has conflicts nobody has resolved".into()));
        }
        if found.nested > 0 {
            return Err(refused("it has another repository inside".into()));
        }
        let Some(head) = found.head.clone() else {
            let why = found.reason.unwrap_or_else(|| "it has no commit".into());
            return Err(refused(why));
        };
        let (commit, seen) = if found.paths.is_empty() {
            (head, found)
        } else {
            let commit = self.commit(entry.path(), &head, &found.paths, message)?;
            let seen = match commit == head {
                true => found.without_files(),
                false => found.committed_as(&commit),
            };
            (commit, seen)
        };
        let sealed = self.sealed(&entry, commit, seen)?;
        if sealed.changed {
            self.make_durable()?;
        }
        Ok(sealed)
    }

    /// Commits what is at these paths, and nothing else. The porcelain would look at every file
    /// of the tree for each of its steps; here, only the paths are looked at.
    fn commit(
        &self,
        dir: &Path,
        head: &str,
        paths: &[Vec<u8>],
        message: &str,
    ) -> Result<String, TreeError> {
        Git::at(dir, "update-index")
            .args(["--add", "--remove", "--replace", "-z", "--stdin"])
            .input(paths.join(&0))
            .timeout(self.options.checkout_timeout)
            .run()?;
        let admin = self.layout.admin_of(dir)?;
        let tree = match in_process::write_tree(&self.layout, &admin) {
            Some(tree) => tree,
            None => line(&Git::at(dir, "write-tree").run()?),
        };
        if tree == self.layout.history().tree_of(head)? {
            return Ok(head.to_owned());
        }
        let text = format!("{}\n", message.trim_end());
        let commit = match in_process::commit(&self.layout, &tree, head, &text) {
            Some(commit) => commit,
            None => commit_by_git(dir, &tree, head, &text)?,
        };
        let subject = message.lines().next().unwrap_or_default();
        self.move_head(dir, head, &commit, &format!("commit: {subject}"))?;
        Ok(commit)
    }

    /// Moves the branch that HEAD is on, or HEAD itself.
    fn move_head(&self, dir: &Path, from: &str, to: &str, why: &str) -> Result<(), TreeError> {
        let admin = self.layout.admin_of(dir)?;
        if let Head::Branch(branch, _) = files::head(&self.layout, &admin)
            && in_process::move_ref(&self.layout, dir, &branch, from, to, why).is_some()
        {
            return Ok(());
        }
        let moved = Git::at(dir, "update-ref")
            .args(["-m", why, "--end-of-options", "HEAD", to, from])
            .run();
        match moved {
            // Killed when it had just done it, it was started again and did not know.
            Err(_) if History::open(dir).resolve("HEAD")? == to => Ok(()),
            moved => moved.map(drop),
        }
    }

    fn sealed(&self, entry: &Entry, commit: String, seen: Changes) -> Result<Sealed, TreeError> {
        let changed = match &entry.base {
            Some(base) if *base == commit => false,
            Some(base) => {
                let history = self.layout.history();
                history.tree_of(base)? != history.tree_of(&commit)?
            }
            None => true,
        };
        Ok(Sealed {
            commit,
            base: entry.base.clone(),
            changed,
            seen,
        })
    }

    /// Why the tree is not exactly at `commit` any more, if it is not.
    pub fn unsealed(&self, slug: &Slug, commit: &str) -> Result<Option<String>, TreeError> {
        Ok(self.changes(slug)?.beyond(commit))
    }

    /// The commit `spec` means in the main tree.
    pub fn resolve(&self, spec: &str) -> Result<String, TreeError> {
        self.layout.history().resolve(spec)
    }

    /// A commit that has everything of `start` and of all `commits`: one of them if it is that
    /// already, else a merge that no branch names. Conflicts name the files.
    pub fn compose(&self, start: &str, commits: &[String]) -> Result<String, TreeError> {
        self.compose_as(start, commits, "Bring together finished work")
    }

    /// The same, with these words for the merge.
    pub fn compose_as(
        &self,
        start: &str,
        commits: &[String],
        message: &str,
    ) -> Result<String, TreeError> {
        let mut at = start.to_owned();
        if commits.is_empty() {
            return Ok(at);
        }
        let history = self.layout.history();
        for commit in commits {
            if history.is_ancestor(&at, commit)? {
                commit.clone_into(&mut at);
                continue;
            }
            let target = Target {
                branch: "the work it builds on".into(),
                tip: at.clone(),
                checkout: None,
                remote: None,
            };
            let builder = Builder {
                layout: &self.layout,
                name: commit,
                branch: commit,
                target: &target,
                head: commit,
                message: Some(message),
                now_ms: self.now_ms(),
                follow: false,
                again: None,
                committer: OnceCell::new(),
            };
            if let Built::Commit { oid, .. } = builder.build(MergeStrategy::Merge)? {
                at = oid;
            }
        }
        Ok(at)
    }

    /// The message of `commit`, if it is the only one on top of `base`.
    pub fn only_commit(&self, base: &str, commit: &str) -> Option<String> {
        if !self.layout.history().is_next(base, commit) {
            return None;
        }
        if let Some(words) = in_process::message(&self.layout, commit) {
            return Some(words.trim().to_owned());
        }
        let log = self.layout.git("log");
        log.args(["-1", "--format=%B", "--end-of-options", commit])
            .line()
            .ok()
    }

    /// Where merging `theirs` into `ours` needs somebody to decide. Empty if that cannot be told without
    /// starting git.
    pub fn conflict_places(&self, ours: &str, theirs: &str) -> Vec<ConflictPlace> {
        in_process::conflicts(&self.layout, ours, theirs).unwrap_or_default()
    }

    /// Whether everything in `commit` is also in `of`.
    pub fn contains(&self, of: &str, commit: &str) -> Result<bool, TreeError> {
        self.layout.history().is_ancestor(commit, of)
    }

    /// The files that differ between two commits.
    pub fn changed_paths(&self, from: &str, to: &str) -> Result<Vec<String>, TreeError> {
        if let Some(found) = self.layout.history().stat_paths(from, to) {
            return Ok(found);
        }
        let bytes = self
            .layout
            .git("diff-tree")
            .args(NAMES_ONLY)
            .args([from, to])
            .run()?;
        let names = crate::git::zero_split(&bytes);
        Ok(names
            .map(|name| String::from_utf8_lossy(name).into_owned())
            .collect())
    }
}

/// A commit object by git itself.
fn commit_by_git(dir: &Path, tree: &str, parent: &str, message: &str) -> Result<String, TreeError> {
    let commit = || {
        Git::at(dir, "commit-tree")
            .args(["-p", parent, "-F", "-", tree])
            .input(message.as_bytes().to_vec())
    };
    let made = commit().run().or_else(|error| {
        let known = Git::at(dir, "var").arg("GIT_COMMITTER_IDENT").run();
        if known.is_ok() {
            return Err(error);
        }
        // Nobody told git who commits here; that is no reason to lose work.
        let mut commit = commit();
        for role in ["AUTHOR", "COMMITTER"] {
            commit = commit
                .env(&format!("GIT_{role}_NAME"), "ccb")
                .env(&format!("GIT_{role}_EMAIL"), "ccb@localhost");
        }
        commit.run()
    });
    Ok(line(&made?))
}
