//! Takes over the commits that an agent made in its private repository.
//!
//! `git status` compares the files with the branch anyway; this module takes over the history. It
//! is taken over whole or not at all: if any of it is wrong, the reason is recorded, and the files
//! are committed without it.

use std::collections::BTreeSet;
use std::path::Path;

use git2::{ObjectType, Oid, Repository, Tree};
use store::fault::reached;

use crate::error::TreeError;
use crate::fault;
use crate::git::stay::Stay;
use crate::git::{Git, in_process, line};
use crate::private::Claims;
use crate::registry::Entry;
use crate::trees::Trees;

/// Maximum of commits that one stay adds.
const MOST_COMMITS: usize = 1_000;

impl Trees {
    /// Takes over the commits at HEAD of the private repository at `git_dir`, if there are new
    /// ones. Each step can be repeated. A changed `stay` is saved.
    pub(super) fn take_over(
        &self,
        entry: &Entry,
        admin: &Path,
        git_dir: &Path,
        stay: &mut Stay,
    ) -> Result<(), TreeError> {
        let Some(head) = Claims::head_of(git_dir) else {
            return Ok(());
        };
        if head == stay.tip || stay.refused_tip.as_ref() == Some(&head) {
            return Ok(());
        }
        match self.take_over_head(entry, admin, git_dir, &head, &stay.tip)? {
            Ok(()) => {
                stay.tip = head;
                (stay.refused, stay.refused_tip) = (None, None);
            }
            Err(why) => {
                let name = &entry.name;
                tracing::warn!(worktree = name, why, "its commits are not taken over");
                (stay.refused, stay.refused_tip) = (Some(why), Some(head));
            }
        }
        stay.write(&self.layout, entry.path())
    }

    fn take_over_head(
        &self,
        entry: &Entry,
        admin: &Path,
        git_dir: &Path,
        head: &str,
        last: &str,
    ) -> Result<Result<(), String>, TreeError> {
        let branch = entry.branch.as_deref().unwrap_or_default();
        let tip = self.layout.tip_of(branch)?;
        let tip = tip.as_deref().unwrap_or(last);
        if let Err(why) = self.take_in_objects(git_dir, &[head], &[last])? {
            return Ok(Err(why));
        }
        reached(fault::IMPORT_OBJECTS);
        let base = entry.base.as_deref().unwrap_or(last);
        if let Err(why) = self.examine(head, last, base)? {
            return Ok(Err(why));
        }
        // Another process may have moved the branch meanwhile; that is not reverted.
        if tip != last && tip != head && !self.layout.history().is_ancestor(tip, head)? {
            return Ok(Err(format!("another process moved {branch} meanwhile")));
        }
        let tree = entry.path();
        Git::at(tree, "read-tree")
            .args(["--reset", "-i", head])
            .timeout(self.options.checkout_timeout)
            .run()?;
        self.leave_out(tree, &Claims::read(git_dir).skipped)?;
        reached(fault::IMPORT_INDEX);
        self.move_branch(entry, admin, head, "ccb: commits of the agent")?;
        reached(fault::IMPORT_MOVED);
        Ok(Ok(()))
    }

    /// Marks the files in git's index that are missing because the agent's git was told to leave
    /// them out.
    fn leave_out(&self, tree: &Path, skipped: &[Vec<u8>]) -> Result<(), TreeError> {
        let gone = |path: &&Vec<u8>| {
            std::fs::symlink_metadata(tree.join(crate::git::path_from(path))).is_err()
        };
        let paths: Vec<&[u8]> = skipped.iter().filter(gone).map(Vec::as_slice).collect();
        if paths.is_empty() {
            return Ok(());
        }
        // Files that the commit does not have need no mark.
        let known = Git::at(tree, "ls-files").args(["-z", "--cached"]).run()?;
        let known: BTreeSet<&[u8]> = crate::git::zero_split(&known).collect();
        let paths: Vec<&[u8]> = paths.into_iter().filter(|it| known.contains(it)).collect();
        if paths.is_empty() {
            return Ok(());
        }
        Git::at(tree, "update-index")
            .args(["--skip-worktree", "-z", "--stdin"])
            .input(paths.join(&0))
            .run()
            .map(drop)
    }

    /// Checks that the imported history is complete, builds on the worktree's base, and has nothing
    /// that ccb does not take over. Reads only the repository's own objects.
    fn examine(&self, head: &str, last: &str, base: &str) -> Result<Result<(), String>, TreeError> {
        if let Some(found) = in_process::with_main(&self.layout, |repo| {
            examine_in_process(repo, head, last, base)
        }) {
            return Ok(found);
        }
        self.examine_by_git(head, last, base)
    }

    /// The same where libgit2 cannot read the repository.
    fn examine_by_git(
        &self,
        head: &str,
        last: &str,
        base: &str,
    ) -> Result<Result<(), String>, TreeError> {
        let whole = self
            .layout
            .git("rev-list")
            .args(["--objects", "--quiet", head, "--not", last])
            .run();
        match whole {
            Err(TreeError::Git { .. }) => return Ok(Err(INCOMPLETE.into())),
            whole => whole?,
        };
        let count = self
            .layout
            .git("rev-list")
            .args(["--count", head, "--not", last])
            .run()?;
        if line(&count).parse::<usize>().unwrap_or(usize::MAX) > MOST_COMMITS {
            return Ok(Err(too_many()));
        }
        if !self.layout.history().is_ancestor(base, head)? {
            return Ok(Err(UNRELATED.into()));
        }
        let changed = self
            .layout
            .git("log")
            .args(["--raw", "-m", "--no-renames", "--no-abbrev", "--format="])
            .args([head, "--not", last])
            .run()?;
        let text = String::from_utf8_lossy(&changed);
        let is_new = |line: &&str| {
            let mut fields = line.trim_start_matches(':').split(' ');
            fields.next() != Some("160000") && fields.next() == Some("160000")
        };
        Ok(match text.lines().find(is_new) {
            Some(line) => Err(repository_inside(
                line.split('\t').nth(1).unwrap_or_default(),
            )),
            None => Ok(()),
        })
    }
}

const INCOMPLETE: &str = "some of its objects are missing";
const UNRELATED: &str = "it does not build on the commit the worktree started from";

fn too_many() -> String {
    format!("it has more than {MOST_COMMITS} commits")
}

fn repository_inside(path: &str) -> String {
    let path = store::text::clean_line(path);
    format!("it adds {path}, which is a repository of its own")
}

/// `None` if libgit2 cannot tell.
fn examine_in_process(
    repo: &Repository,
    head: &str,
    last: &str,
    base: &str,
) -> Option<Result<(), String>> {
    let (head, last, base) = (
        Oid::from_str(head).ok()?,
        Oid::from_str(last).ok()?,
        Oid::from_str(base).ok()?,
    );
    let mut walk = repo.revwalk().ok()?;
    walk.push(head).ok()?;
    walk.hide(last).ok()?;
    let mut count = 0;
    for oid in walk {
        let Ok(commit) = oid.and_then(|oid| repo.find_commit(oid)) else {
            return Some(Err(INCOMPLETE.into()));
        };
        count += 1;
        if count > MOST_COMMITS {
            return Some(Err(too_many()));
        }
        let Ok(tree) = commit.tree() else {
            return Some(Err(INCOMPLETE.into()));
        };
        let parent = commit.parent(0).and_then(|parent| parent.tree());
        if let Err(why) = examine_files(repo, &tree, parent.ok().as_ref(), &[]) {
            return Some(Err(why));
        }
    }
    let related = head == base || repo.graph_descendant_of(head, base).ok()?;
    Some(match related {
        true => Ok(()),
        false => Err(UNRELATED.into()),
    })
}

/// Checks that the entries of `tree` that `before` does not have exist and are no repositories.
fn examine_files(
    repo: &Repository,
    tree: &Tree<'_>,
    before: Option<&Tree<'_>>,
    dir: &[u8],
) -> Result<(), String> {
    let incomplete = |_| INCOMPLETE.to_owned();
    let odb = repo.odb().map_err(incomplete)?;
    for entry in tree {
        let old = before.and_then(|before| {
            let name = entry.name_bytes();
            before.iter().find(|old| old.name_bytes() == name)
        });
        let same = |old: &git2::TreeEntry<'_>| {
            old.id() == entry.id() && old.filemode_raw() == entry.filemode_raw()
        };
        if old.as_ref().is_some_and(same) {
            continue;
        }
        let path = [dir, entry.name_bytes()].concat();
        match entry.kind() {
            Some(ObjectType::Commit) => {
                let was_one = |old: &git2::TreeEntry<'_>| old.kind() == Some(ObjectType::Commit);
                if !old.as_ref().is_some_and(was_one) {
                    return Err(repository_inside(&String::from_utf8_lossy(&path)));
                }
            }
            Some(ObjectType::Tree) => {
                let inner = repo.find_tree(entry.id()).map_err(incomplete)?;
                let old = old.and_then(|old| repo.find_tree(old.id()).ok());
                let dir = [path.as_slice(), b"/"].concat();
                examine_files(repo, &inner, old.as_ref(), &dir)?;
            }
            _ if odb.exists(entry.id()) => {}
            _ => return Err(INCOMPLETE.to_owned()),
        }
    }
    Ok(())
}
