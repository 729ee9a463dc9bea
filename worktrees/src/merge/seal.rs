//! Commits all work in a worktree, so that it can be checked and landed.

use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

use crate::change_report::Changes;
use crate::changes;
use crate::error::TreeError;
use crate::git::{ConflictPlace, Git, Head, files, in_process, line, links, path_from};
use crate::merge::modules_file;
use crate::merge::patch::NAMES_ONLY;
use crate::merge::{Builder, Built, MergeStrategy, Target};
use crate::private;
use crate::registry::Entry;
use crate::slug::Slug;
use crate::trees::Trees;

/// A worktree whose changes are all committed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sealed {
    /// The commit with all work.
    pub commit: String,
    /// The commit the worktree started from.
    pub base: Option<String>,
    /// True if anything differs from the base.
    pub changed: bool,
    /// The present changes of the worktree.
    pub seen: Changes,
    /// The reason why the agent's own commits are not part of it, only its files.
    pub history_refused: Option<String>,
}

impl Trees {
    /// Commits all uncommitted work in the worktree, which must not be in use. Ignored files stay
    /// ignored. The commit and its branch are on the disk afterwards.
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
        self.end_stay(&entry)?;
        let found = changes::of(&self.layout, &entry);
        if let Some(what) = &found.in_progress {
            return Err(refused(format!("a {what} is under way in it")));
        }
        if found.unmerged > 0 {
            return Err(refused("it has unresolved conflicts".into()));
        }
        if let Some(name) = &found.moved_module {
            let why = format!(
                "the submodule {name} has commits of its own, which ccb does not take over"
            );
            return Err(refused(why));
        }
        if found.nested > found.private_modules {
            return Err(refused("it has another repository inside".into()));
        }
        let Some(head) = found.head.clone() else {
            let why = found.reason.unwrap_or_else(|| "it has no commit".into());
            return Err(refused(why));
        };
        let (commit, seen) = if found.paths.is_empty() {
            (head, found)
        } else {
            let commit = self.commit(&entry, &head, &found.paths, message)?;
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

    /// Commits the content of these paths, and nothing else. The porcelain would look at every file
    /// of the worktree for each of its steps; this function only looks at the paths.
    fn commit(
        &self,
        entry: &Entry,
        head: &str,
        paths: &[Vec<u8>],
        message: &str,
    ) -> Result<String, TreeError> {
        let dir = entry.path();
        if paths
            .iter()
            .any(|path| path == modules_file::NAME.as_bytes())
            && let Some(why) = modules_file::refused(&self.layout, dir)?
        {
            let name = entry.name.clone();
            return Err(TreeError::NotMergeable { name, why });
        }
        self.take_in(entry, paths)?;
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
        self.move_branch(entry, &admin, &commit, &format!("commit: {subject}"))?;
        Ok(commit)
    }

    /// Puts the present content of these paths into the index.
    fn take_in(&self, entry: &Entry, paths: &[Vec<u8>]) -> Result<(), TreeError> {
        let dir = entry.path();
        let found = sort_out(dir, paths).map_err(|why| TreeError::NotMergeable {
            name: entry.name.clone(),
            why,
        })?;
        let update = |how: &[&str], paths: &[&[u8]]| match paths {
            [] => Ok(()),
            paths => Git::at(dir, "update-index")
                .args(how)
                .args(["-z", "--stdin"])
                .input(paths.join(&0))
                .timeout(self.options.checkout_timeout)
                .run()
                .map(drop),
        };
        // First, because something else may be in their place.
        update(&["--force-remove"], &found.behind_links)?;
        update(&["--add", "--remove", "--replace"], &found.others)
    }

    /// Moves the worktree's registered branch, by its full name, and puts HEAD on it. Another
    /// branch that HEAD claims to be on is not moved: it may be the user's.
    pub(crate) fn move_branch(
        &self,
        entry: &Entry,
        admin: &Path,
        to: &str,
        why: &str,
    ) -> Result<(), TreeError> {
        let Some(branch) = &entry.branch else {
            return Err(TreeError::NotOurs {
                path: entry.path().to_owned(),
                why: "no branch is registered for it".into(),
            });
        };
        let reference = format!("refs/heads/{branch}");
        links::refuse(&self.layout, Some(admin), &reference)?;
        let from = self.layout.tip_of(branch)?;
        if from.as_deref() != Some(to) {
            self.move_ref(entry.path(), &reference, from.as_deref(), to, why)?;
        }
        match files::head(&self.layout, admin) {
            Head::Branch(on, _) if on == reference => Ok(()),
            _ => Git::at(entry.path(), "symbolic-ref")
                .args(["-m", why, "HEAD", &reference])
                .run()
                .map(drop),
        }
    }

    fn move_ref(
        &self,
        dir: &Path,
        reference: &str,
        from: Option<&str>,
        to: &str,
        why: &str,
    ) -> Result<(), TreeError> {
        if let Some(from) = from
            && in_process::move_ref(&self.layout, dir, reference, from, to, why).is_some()
        {
            return Ok(());
        }
        let from = from.map_or_else(|| "0".repeat(to.len()), str::to_owned);
        let moved = Git::at(dir, "update-ref")
            .args(["--no-deref", "-m", why, "--end-of-options"])
            .args([reference, to, &from])
            .run();
        match moved {
            // A git killed right after the move is restarted and does not know of it.
            Err(_) if self.layout.history().tip(reference)?.as_deref() == Some(to) => Ok(()),
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
            history_refused: private::what_is_left(&self.layout, entry.path())?.refused,
        })
    }

    /// The reason why the worktree is no longer exactly at `commit`, if so.
    pub fn unsealed(&self, slug: &Slug, commit: &str) -> Result<Option<String>, TreeError> {
        Ok(self.changes(slug)?.beyond(commit))
    }

    /// The commit that `spec` means in the main worktree.
    pub fn resolve(&self, spec: &str) -> Result<String, TreeError> {
        self.layout.history().resolve(spec)
    }

    /// A commit that has everything of `start` and of all `commits`: one of them if it has that
    /// already, else a merge that no branch names. Conflicts name the files.
    pub fn compose(&self, start: &str, commits: &[String]) -> Result<String, TreeError> {
        self.compose_as(start, commits, "Bring together finished work")
    }

    /// The same, with this message for the merge.
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

    /// The conflicts of merging `theirs` into `ours`. Empty if they cannot be found without
    /// starting git.
    pub fn conflict_places(&self, ours: &str, theirs: &str) -> Vec<ConflictPlace> {
        in_process::conflicts(&self.layout, ours, theirs).unwrap_or_default()
    }

    /// True if everything in `commit` is also in `of`.
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

/// The paths of a worktree whose state goes into the index.
struct SortedOut<'p> {
    /// Paths whose parent is a link or a file now, so there is no such file any more. git refuses
    /// to look behind links.
    behind_links: Vec<&'p [u8]>,
    others: Vec<&'p [u8]>,
}

/// Sorts the paths by kind; an error names a file that git cannot keep.
fn sort_out<'p>(dir: &Path, paths: &'p [Vec<u8>]) -> Result<SortedOut<'p>, String> {
    let mut sorted = SortedOut {
        behind_links: Vec::new(),
        others: Vec::new(),
    };
    let mut directories = BTreeMap::new();
    for path in paths {
        let below = path_from(path);
        let above = below.ancestors().skip(1).collect::<Vec<_>>();
        let is_real = above.iter().rev().skip(1).all(|above| {
            *directories.entry((*above).to_owned()).or_insert_with(|| {
                let meta = std::fs::symlink_metadata(dir.join(above));
                meta.map_or(true, |meta| meta.is_dir())
            })
        });
        if !is_real {
            sorted.behind_links.push(path);
            continue;
        }
        let found = std::fs::symlink_metadata(dir.join(&below));
        if let Some(what) = found.ok().and_then(|meta| special(meta.file_type())) {
            return Err(format!(
                "{} is {what}, which git cannot keep: delete it or put a file there",
                store::text::clean_line(&below.to_string_lossy())
            ));
        }
        sorted.others.push(path);
    }
    Ok(sorted)
}

/// The name of a kind of file that no commit can hold.
fn special(kind: std::fs::FileType) -> Option<&'static str> {
    if kind.is_fifo() {
        Some("a FIFO")
    } else if kind.is_socket() {
        Some("a socket")
    } else if kind.is_block_device() || kind.is_char_device() {
        Some("a device")
    } else {
        None
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
        // git has no committer; that is no reason to lose work.
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
