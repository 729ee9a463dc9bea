//! Worktrees that are not needed any more: at the end of an agent, and after a long time.

use store::clock::parse_rfc3339;
use store::lock::FileLock;
use store::{Category, Explain};

use crate::change_report::{ChangeState, Changes};
use crate::changes;
use crate::error::TreeError;
use crate::git::line;
use crate::lease::Lease;
use crate::registry::{Entry, Registry, TreeStatus, removed};
use crate::remove::{RemoveRequest, Removed};
use crate::slug::Slug;
use crate::trees::{Trees, modified_ms};

/// The result of cleaning up after an agent.
#[derive(Debug)]
pub enum AgentEnd {
    /// It had no work and was removed with its branch.
    Removed(Box<Removed>),
    /// It has work, or that is unknown.
    Kept {
        /// Its entry in the registry.
        entry: Box<Entry>,
        /// The changes found.
        changes: Box<Changes>,
        /// The reason why it could not be removed, if it should have been.
        why: Option<String>,
    },
}

/// The decision of `gc` about a worktree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GcVerdict {
    /// It can be removed: it has no work of its own.
    Unchanged,
    /// It can be removed: all its work is part of this ref.
    Merged {
        /// A ref.
        into: String,
    },
    /// It is kept, for this reason.
    Stays(String),
}

/// A worktree as `gc` sees it.
#[derive(Debug)]
pub struct GcCandidate {
    /// The worktree.
    pub entry: Entry,
    /// The decision.
    pub verdict: GcVerdict,
}

impl Trees {
    /// Handles the end of the agent that worked in the worktree and no longer holds it: without
    /// changes the worktree is removed with its branch; otherwise it is kept.
    pub fn agent_ended(&self, slug: &Slug) -> Result<AgentEnd, TreeError> {
        let found = self.changes(slug)?;
        self.agent_left(slug, found)
    }

    /// The same with changes that the caller has just found.
    pub fn agent_left(&self, slug: &Slug, changes: Changes) -> Result<AgentEnd, TreeError> {
        let entry = self.get(slug)?;
        if entry.hook_based || changes.state != ChangeState::Clean {
            return self.kept(slug, changes, None);
        }
        match self.remove(slug, &RemoveRequest::default()) {
            Ok(removed) => Ok(AgentEnd::Removed(Box::new(removed))),
            Err(error) if error.category() == Category::Refused => {
                let changes = changes::of(&self.layout, &entry);
                self.kept(slug, changes, Some(error.to_string()))
            }
            Err(error) => Err(error),
        }
    }

    fn kept(
        &self,
        slug: &Slug,
        changes: Changes,
        why: Option<String>,
    ) -> Result<AgentEnd, TreeError> {
        Ok(AgentEnd::Kept {
            entry: Box::new(self.keep_as(slug, |_| ())?),
            changes: Box::new(changes),
            why,
        })
    }

    /// Every worktree that was not used for as long as the options say, with the decision. Changes
    /// nothing.
    pub fn gc_candidates(&self) -> Result<Vec<GcCandidate>, TreeError> {
        let limit = self.days_ago(self.options.gc_days);
        let registry = Registry::load(&self.layout)?;
        let mut candidates = Vec::new();
        for entry in registry.worktrees.into_iter().filter(Entry::is_live) {
            if entry.op.is_some() || self.last_used_ms(&entry).is_none_or(|used| used > limit) {
                continue;
            }
            let verdict = self.verdict(&entry);
            candidates.push(GcCandidate { entry, verdict });
        }
        Ok(candidates)
    }

    /// Removes a worktree that [`Self::gc_candidates`] found, if the decision is still the same;
    /// `None` if not.
    pub fn collect(&self, slug: &Slug) -> Result<Option<Removed>, TreeError> {
        let _lock = self.tree_lock(slug)?;
        self.recover(slug)?;
        let entry = self.get(slug)?;
        let limit = self.days_ago(self.options.gc_days);
        let recent = self.last_used_ms(&entry).is_none_or(|used| used > limit);
        let Ok(_nobody_inside) = Lease::exclude_holders(&self.layout, slug) else {
            return Ok(None);
        };
        if recent || matches!(self.judge(&entry), GcVerdict::Stays(_)) {
            return Ok(None);
        }
        self.remove_as_found(slug, &entry, &RemoveRequest::default())
            .map(Some)
    }

    fn verdict(&self, entry: &Entry) -> GcVerdict {
        let held = entry.slug().and_then(|slug| self.is_held(&slug));
        match held {
            Ok(false) => self.judge(entry),
            Ok(true) => GcVerdict::Stays("it is in use".into()),
            Err(error) => GcVerdict::Stays(error.to_string()),
        }
    }

    /// The decision by the content of the worktree, not by its holder.
    pub(crate) fn judge(&self, entry: &Entry) -> GcVerdict {
        if entry.hook_based {
            return GcVerdict::Stays("it was made by a hook".into());
        }
        if let Some(task) = &entry.task_id {
            return GcVerdict::Stays(format!("it belongs to task {task}"));
        }
        let changes = changes::of(&self.layout, entry);
        if changes.state == ChangeState::Clean {
            return GcVerdict::Unchanged;
        }
        if entry.merged.as_ref().is_some_and(|landed| landed.undone) {
            return GcVerdict::Stays("its landing was undone".into());
        }
        if let Some(into) = self.landed_in(entry, &changes) {
            return GcVerdict::Merged { into };
        }
        // Only commits can be merged; all other work is in no other place.
        let tips: Vec<String> = self.tips(entry, &changes);
        if changes.are_only_commits() && !tips.is_empty() {
            for target in ["HEAD", "refs/remotes/origin/HEAD"] {
                match self.contains_all(target, &tips) {
                    Ok(true) => {
                        return GcVerdict::Merged {
                            into: target.to_owned(),
                        };
                    }
                    Ok(false) => {}
                    Err(error) => tracing::debug!(%error, target, "cannot compare"),
                }
            }
        }
        GcVerdict::Stays(changes.describe())
    }

    fn tips(&self, entry: &Entry, changes: &Changes) -> Vec<String> {
        let branch = entry.branch.as_ref();
        let branch = branch.and_then(|branch| self.layout.tip_of(branch).ok().flatten());
        let mut tips: Vec<String> = changes.head.iter().cloned().chain(branch).collect();
        tips.dedup();
        tips
    }

    /// True if merging any of `tips` into `target` would change nothing: it is part of the history,
    /// or was merged as one commit.
    fn contains_all(&self, target: &str, tips: &[String]) -> Result<bool, TreeError> {
        let history = self.layout.history();
        let Ok(target) = history.resolve(target) else {
            return Ok(false);
        };
        for tip in tips {
            if history.is_ancestor(tip, &target)? {
                continue;
            }
            let (clean, merged) = self
                .layout
                .git("merge-tree")
                .args(["--write-tree", "--end-of-options", &target, tip])
                .ask()?;
            if !clean || line(&merged) != history.tree_of(&target)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Deletes old set-up logs and abandoned files in transit, and forgets removed worktrees that
    /// are fully deleted.
    pub fn tidy(&self) -> Result<(), TreeError> {
        let limit = self.days_ago(self.options.gc_days);
        for dir in [self.layout.logs(), self.layout.tmp()] {
            for entry in std::fs::read_dir(&dir).into_iter().flatten().flatten() {
                if modified_ms(&entry.path()).is_some_and(|ms| ms <= limit) {
                    store::tree::delete(&entry.path())?;
                }
            }
        }
        let mut section = self.section()?;
        let recent =
            |entry: &Entry| parse_rfc3339(&entry.last_used_at).is_some_and(|used| used > limit);
        removed::retain(&self.layout, &section, recent)?;
        let before = section.registry.worktrees.len();
        section.registry.worktrees.retain(|entry| {
            let gone = entry
                .trash
                .as_ref()
                .is_none_or(|trash| trash.emptied && !self.layout.trash().join(&trash.id).exists());
            !(entry.status == TreeStatus::Removed && entry.op.is_none() && gone && !recent(entry))
        });
        if section.registry.worktrees.len() == before {
            return Ok(());
        }
        section.save()
    }

    /// Finishes or undoes the half-done operations of crashed processes.
    pub fn sweep(&self) -> Result<(), TreeError> {
        self.drop_check_trees(false)?;
        for entry in Registry::load(&self.layout)?.worktrees {
            if entry.op.is_none() {
                continue;
            }
            let slug = entry.slug()?;
            if let Some(_lock) = FileLock::try_exclusive(&self.layout.tree_lock(&slug))? {
                self.recover(&slug)?;
            }
        }
        Ok(())
    }
}
