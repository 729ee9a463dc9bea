//! Leftovers of killed processes in git's own files: abandoned locks, records and branches of
//! worktrees that are gone, empty directories. They hold no work, so they are removed.

use std::collections::BTreeSet;
use std::path::Path;

use crate::doctor::Findings;
use crate::error::TreeError;
use crate::git::{Head, admin, files, locks};
use crate::layout::name_of;
use crate::registry::Registry;
use crate::trees::Trees;

/// The prefix of the branches of agents' worktrees; others may be a person's.
const AGENT_BRANCH_PREFIX: &str = "refs/heads/worktree/agent-a";
/// Length of the rest of an agent's id.
const AGENT_ID_LENGTH: usize = 16;

impl Trees {
    /// Finds leftovers of killed processes; with `fix`, removes them.
    pub(crate) fn check_leftovers(
        &self,
        registry: &Registry,
        findings: &mut Findings,
    ) -> Result<(), TreeError> {
        self.check_locks(findings)?;
        // An operation under way makes and removes the same records and branches.
        if registry.worktrees.iter().all(|entry| entry.op.is_none()) {
            self.check_records(registry, findings)?;
            self.check_branches(registry, findings)?;
        }
        Ok(())
    }

    fn check_locks(&self, findings: &mut Findings) -> Result<(), TreeError> {
        for lock in locks::left(&self.layout) {
            let message = format!(
                "{} was left by a git that was killed, and keeps others from working",
                lock.display()
            );
            findings.repair("git_lock_left", &name_of(&lock), message, || {
                let cleared = locks::clear(&lock, true);
                Ok(cleared.then(|| "removed: no process has it".into()))
            })?;
        }
        Ok(())
    }

    /// git's records of ccb's worktrees whose directory is gone and that are not in the registry.
    fn check_records(&self, registry: &Registry, findings: &mut Findings) -> Result<(), TreeError> {
        let known = registry.paths();
        for record in admin::all(&self.layout) {
            let name = name_of(&record);
            let half_made = admin::unfinished(&self.layout, &name).contains(&record);
            let tree = files::tree_of(&record);
            let gone = tree.as_deref().is_some_and(|tree| {
                tree.starts_with(self.layout.trees())
                    && !known.contains(tree)
                    && std::fs::symlink_metadata(tree).is_err()
            });
            if !half_made && !gone {
                continue;
            }
            let (kind, message) = match half_made {
                true => (
                    "half_made_record",
                    format!("{} was left by an interrupted git", record.display()),
                ),
                false => (
                    "record_without_tree",
                    format!("git has a record of {name}, whose directory is gone"),
                ),
            };
            findings.repair(kind, &name, message, || {
                if !half_made && !self.is_kept_elsewhere(&record)? {
                    return Ok(None);
                }
                store::tree::delete(&record)?;
                Ok(Some(
                    "the record is deleted; it held nothing of its own".into(),
                ))
            })?;
        }
        Ok(())
    }

    /// True if the commit a record's HEAD is at is on a branch.
    fn is_kept_elsewhere(&self, record: &Path) -> Result<bool, TreeError> {
        match files::head(&self.layout, record) {
            Head::Branch(_, tip) => Ok(tip.is_some()),
            Head::Detached(oid) => Ok(!self.branches_with(&oid)?.is_empty()),
            Head::Elsewhere => Ok(false),
        }
    }

    /// The branches that have this commit.
    fn branches_with(&self, commit: &str) -> Result<Vec<String>, TreeError> {
        self.layout
            .git("for-each-ref")
            .args(["--format=%(refname)", &format!("--contains={commit}")])
            .args(["refs/heads", "refs/remotes", "refs/tags"])
            .lines()
    }

    /// Branches of agents' worktrees that are gone, if all their commits are on others.
    fn check_branches(
        &self,
        registry: &Registry,
        findings: &mut Findings,
    ) -> Result<(), TreeError> {
        let references = self
            .layout
            .git("for-each-ref")
            .args(["--format=%(refname)", "refs/heads/worktree/"])
            .lines()?;
        let used: BTreeSet<String> = registry
            .there()
            .filter_map(|entry| Some(format!("refs/heads/{}", entry.branch.as_ref()?)))
            .collect();
        for reference in &references {
            let branch = reference.trim_start_matches("refs/heads/");
            let agents = reference
                .strip_prefix(AGENT_BRANCH_PREFIX)
                .is_some_and(|id| {
                    id.len() == AGENT_ID_LENGTH && id.bytes().all(|byte| byte.is_ascii_hexdigit())
                });
            if !agents || used.contains(reference) {
                continue;
            }
            let Some(tip) = self.layout.history().tip(reference)? else {
                continue;
            };
            let elsewhere = self.branches_with(&tip)?;
            let only_here = elsewhere.iter().all(|other| other == reference);
            if only_here || admin::is_checked_out(&self.layout, branch)? {
                continue;
            }
            let message =
                format!("{branch} has no worktree, and all its commits are on other branches");
            findings.repair("branch_left", branch, message, || {
                admin::delete_ref(&self.layout, reference, &tip)?;
                Ok(Some(format!("deleted; it was at {tip}")))
            })?;
        }
        Ok(())
    }

    /// An empty directory among the worktrees.
    pub(crate) fn check_stray_directory(
        &self,
        dir: &Path,
        why: &str,
        findings: &mut Findings,
    ) -> Result<(), TreeError> {
        let empty = dir.is_dir() && files::is_bare(dir);
        let what = match empty {
            true => "it is empty".to_owned(),
            false => format!("{why}; move it away if it is not needed"),
        };
        let message = format!(
            "{} is no worktree of this repository: {what}",
            dir.display()
        );
        findings.repair("stray_directory", &name_of(dir), message, || {
            if !empty {
                return Ok(None);
            }
            store::tree::delete(dir)?;
            Ok(Some("deleted".into()))
        })
    }
}
