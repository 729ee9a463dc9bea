//! Lands the commits of a worktree on another branch.
//!
//! The result is built as commits that nothing names, so that a conflict, a failing check or a
//! crash leaves no trace. Only then does the target move, in one step of git's, and only from the
//! commit the result was built on; if it has moved meanwhile, everything is done again. One landing
//! at a time: two results that each pass their check need not pass it together.

use std::cell::OnceCell;
use std::path::PathBuf;
use std::time::Duration;

use store::fault::reached;
use store::lock::FileLock;
pub use store::settings::MergeStrategy;

use crate::change_report::Changes;
use crate::changes;
use crate::check::Check;
use crate::error::TreeError;
use crate::fault;
use crate::merge::{Builder, Built, Target, TargetMove};
use crate::registry::{Entry, Event, LandingRecord};
use crate::slug::Slug;
use crate::trees::Trees;

/// Maximum of attempts to land if others move the target.
const MAX_ATTEMPTS: usize = 5;

/// The request for a landing.
#[derive(Debug, Default)]
pub struct MergeRequest<'a> {
    /// The branch; `None` for the main worktree's.
    pub into: Option<String>,
    /// The way the commits get onto the target.
    pub strategy: MergeStrategy,
    /// The message of the merge or squash commit.
    pub message: Option<String>,
    /// True to fast-forward the target if possible, in spite of the message: the commits say it
    /// already.
    pub follow: bool,
    /// The task the work was done for, as `list#id`.
    pub for_task: Option<String>,
    /// The check that must pass on the result before the target moves.
    pub check: Option<Check<'a>>,
    /// A commit on which the check passed: a result with the same files needs no other.
    pub proven: Option<String>,
    /// Asked at the last moment: a check takes long, and the work may have been withdrawn.
    pub wanted: Option<Wanted<'a>>,
    /// True to only report what would happen.
    pub dry_run: bool,
}

/// Returns true if the work is still to land, given the commit that the branch would get.
pub struct Wanted<'a>(pub &'a dyn Fn(&str) -> bool);

impl std::fmt::Debug for Wanted<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Wanted")
    }
}

/// The result of a landing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MergeOutcome {
    /// The target has moved.
    Landed,
    /// It would move, without a conflict.
    WouldLand,
    /// The target has everything already.
    NothingToDo,
}

/// A worktree that landed, or could.
#[derive(Debug)]
pub struct Merged {
    /// Its entry in the registry.
    pub entry: Entry,
    /// The result of a landing.
    pub outcome: MergeOutcome,
    /// The target branch.
    pub into: String,
    /// The commit of the branch before.
    pub before: String,
    /// The commit of the branch after; for a dry run, the one it would have.
    pub after: String,
    /// Commits of the worktree that the target did not have.
    pub commits: usize,
    /// The worktree that has the branch checked out and moved along.
    pub checkout: Option<PathBuf>,
    /// The path of the check's output.
    pub log: Option<PathBuf>,
}

impl Trees {
    /// Lands the commits of the worktree on another branch, or leaves that branch unchanged. The
    /// worktree is kept.
    pub fn merge(&self, slug: &Slug, request: &MergeRequest<'_>) -> Result<Merged, TreeError> {
        self.layout.create_dirs()?;
        if request.dry_run {
            let entry = self.get(slug)?;
            let landing = self.prepare(&entry, request)?;
            return Ok(landing.merged(entry, MergeOutcome::WouldLand, None));
        }
        let busy = request.check.as_ref().map_or(Duration::ZERO, |c| c.timeout);
        let patience = self.options.checkout_timeout + busy;
        let turn = FileLock::exclusive(
            &self.layout.landing_lock(),
            "landing a worktree's commits",
            patience,
        )?;
        self.recover_others(slug);
        self.settle_landings()?;
        self.settle(slug)?;
        let entry = self.get(slug)?;
        let land = || self.land(slug, &entry, request, &turn);
        self.with_events("worktree.merge", &entry, land, |merged| {
            let mut event = Event::of("worktree.merge.after", &merged.entry);
            event.worktree["into"] = merged.into.clone().into();
            event.worktree["commit"] = merged.after.clone().into();
            event
        })
    }

    fn land(
        &self,
        slug: &Slug,
        entry: &Entry,
        request: &MergeRequest<'_>,
        turn: &FileLock,
    ) -> Result<Merged, TreeError> {
        let mut branch = String::new();
        for _ in 0..MAX_ATTEMPTS {
            let landing = self.prepare(entry, request)?;
            let Some(commit) = landing.commit() else {
                // The process that landed it may have died before it was on the disk.
                self.make_durable()?;
                let mut entry = entry.clone();
                if let Some(landed) = entry.merged.as_mut().filter(|landed| landed.pending) {
                    landed.pending = false;
                    let landed = landed.clone();
                    self.record_landing(&entry, &landed, request.for_task.clone())?;
                    self.note(slug, Some(landed))?;
                }
                return Ok(landing.merged(entry, MergeOutcome::NothingToDo, None));
            };
            reached(fault::MERGE_BUILT);
            let mut log = None;
            let check = request.check.as_ref();
            if let Some(check) = check.filter(|_| !self.is_proven(&commit, request)) {
                log = Some(self.check_commit(slug, &commit, check)?);
                reached(fault::MERGE_CHECKED);
            }
            if let Some(entry) = self.move_target(slug, entry, &landing, request, turn)? {
                return Ok(landing.merged(entry, MergeOutcome::Landed, log));
            }
            branch = landing.target.branch;
            tracing::info!(branch, "another process moved the target; starting over");
        }
        Err(TreeError::TargetMoved { branch })
    }

    /// True if exactly these files have passed the check.
    fn is_proven(&self, commit: &str, request: &MergeRequest<'_>) -> bool {
        let history = self.layout.history();
        let files = |commit: &str| history.tree_of(commit).ok();
        let proven = request.proven.as_deref();
        proven.is_some_and(|proven| proven == commit || files(proven) == files(commit))
    }

    /// All steps up to the commit that is to land. Changes nothing.
    fn prepare(
        &self,
        entry: &Entry,
        request: &MergeRequest<'_>,
    ) -> Result<PreparedMerge, TreeError> {
        let head = self.committed_head(entry)?;
        let target = Target::find(&self.layout, request.into.as_deref())?;
        if entry.branch.as_ref() == Some(&target.branch) {
            return Err(TreeError::Invalid {
                what: format!("branch {:?}", target.branch),
                why: "it is the worktree's own; name another with --into".into(),
            });
        }
        let builder = Builder {
            layout: &self.layout,
            name: &entry.name,
            branch: entry.branch.as_deref().unwrap_or(&entry.name),
            target: &target,
            head: &head,
            message: request.message.as_deref(),
            follow: request.follow,
            again: self.landed_before(&entry.name, &head, &target)?,
            now_ms: self.now_ms(),
            committer: OnceCell::new(),
        };
        let built = builder.build(request.strategy)?;
        Ok(PreparedMerge {
            target,
            head,
            built,
        })
    }

    /// The commit that is to land, if everything in the worktree is committed.
    fn committed_head(&self, entry: &Entry) -> Result<String, TreeError> {
        if entry.hook_based {
            return Err(TreeError::HookBased {
                name: entry.name.clone(),
                why: "only its own version control can merge it",
            });
        }
        self.end_stay(entry)?;
        let changes = changes::of(&self.layout, entry);
        let unfinished = changes.files + changes.untracked + changes.unmerged > 0;
        if unfinished || changes.in_progress.is_some() {
            return Err(TreeError::Uncommitted {
                name: entry.name.clone(),
                changes: Box::new(changes),
            });
        }
        // Without it the rest could not be read either.
        let Some(head) = changes.head else {
            return Err(TreeError::NotOurs {
                path: entry.path().to_owned(),
                why: changes.reason.unwrap_or_else(|| "it has no commit".into()),
            });
        };
        if let Some(branch) = &entry.branch {
            let tip = self.layout.tip_of(branch)?;
            if let Some(tip) = tip.filter(|tip| *tip != head)
                && !self.layout.history().is_ancestor(&tip, &head)?
            {
                return Err(TreeError::NotMergeable {
                    name: entry.name.clone(),
                    why: format!("its branch {branch} has commits that its HEAD has not"),
                });
            }
        }
        Ok(head)
    }

    /// Moves the target and records it; `None` if others moved it first.
    fn move_target(
        &self,
        slug: &Slug,
        entry: &Entry,
        landing: &PreparedMerge,
        request: &MergeRequest<'_>,
        turn: &FileLock,
    ) -> Result<Option<Entry>, TreeError> {
        let Some(commit) = landing.commit() else {
            return Ok(None);
        };
        let mut landed = LandingRecord {
            into: landing.target.branch.clone(),
            commit: commit.clone(),
            from: Some(landing.target.tip.clone()),
            head: landing.head.clone(),
            at: self.now(),
            pending: true,
            undone: false,
        };
        // The objects first: a branch must not name a commit that is not on the disk.
        self.make_durable()?;
        // Before it moves: after a crash the target itself says if it did.
        self.note(slug, Some(landed.clone()))?;
        reached(fault::MERGE_NOTED);
        // After the note: a later decision against it sees that it is about to land.
        let wanted = request.wanted.as_ref();
        if wanted.is_some_and(|wanted| !wanted.0(&commit)) {
            self.note(slug, entry.merged.clone())?;
            return Err(TreeError::NotWanted {
                name: entry.name.clone(),
            });
        }
        let timeout = self.options.checkout_timeout;
        let step = landing.target.advance(&self.layout, &commit, turn, timeout);
        if !matches!(step, Ok(TargetMove::Moved)) {
            self.note(slug, entry.merged.clone())?;
            return step.map(|_| None);
        }
        reached(fault::MERGE_MOVED);
        // If this fails, the note is unchanged: a landing that the target itself must confirm.
        self.make_durable()?;
        reached(fault::MERGE_DURABLE);
        // Reading the list adds a missing landing.
        let task = request.for_task.clone();
        if let Err(error) = self.record_landing(entry, &landed, task) {
            tracing::warn!(%error, "the landing is not in the list of landings");
        }
        reached(fault::MERGE_LISTED);
        landed.pending = false;
        let mut after = entry.clone();
        after.merged = Some(landed.clone());
        // It has landed, even if the note cannot be written.
        if let Err(error) = self.note(slug, Some(landed)) {
            tracing::warn!(%error, "the registry does not say that it has landed");
        }
        Ok(Some(after))
    }

    /// Records the landing in the worktree's entry; does nothing if the worktree was removed
    /// meanwhile.
    fn note(&self, slug: &Slug, landed: Option<LandingRecord>) -> Result<(), TreeError> {
        let mut section = self.section()?;
        match section.registry.find_mut(slug) {
            Some(entry) => {
                entry.merged = landed;
                section.save()
            }
            None => Ok(()),
        }
    }

    /// The ref that has the worktree's commits, if all of them landed and are still there and the
    /// worktree has no other work.
    pub(crate) fn landed_in(&self, entry: &Entry, changes: &Changes) -> Option<String> {
        let landed = entry.merged.as_ref().filter(|landed| !landed.undone)?;
        if !changes.are_only_commits() || changes.head.as_ref() != Some(&landed.head) {
            return None;
        }
        let history = self.layout.history();
        let tip = self.layout.tip_of(&landed.into);
        let contains = |of: &str, commit: &str| history.is_ancestor(commit, of).unwrap_or(false);
        let own = entry.branch.as_ref();
        let own = own.and_then(|branch| self.layout.tip_of(branch).ok().flatten());
        let here = own.is_none_or(|own| contains(&landed.head, &own));
        let there = tip.ok()?.is_some_and(|tip| contains(&tip, &landed.commit));
        (here && there).then(|| landed.into.clone())
    }
}

/// A result and its target.
struct PreparedMerge {
    target: Target,
    head: String,
    built: Built,
}

impl PreparedMerge {
    fn commit(&self) -> Option<String> {
        match &self.built {
            Built::Nothing => None,
            Built::Commit { oid, .. } => Some(oid.clone()),
        }
    }

    fn merged(self, entry: Entry, outcome: MergeOutcome, log: Option<PathBuf>) -> Merged {
        let before = self.target.tip.clone();
        let (outcome, after, commits) = match self.built {
            Built::Nothing => (MergeOutcome::NothingToDo, before.clone(), 0),
            Built::Commit { oid, commits } => (outcome, oid, commits),
        };
        Merged {
            entry,
            outcome,
            into: self.target.branch,
            before,
            after,
            commits,
            checkout: self.target.checkout,
            log,
        }
    }
}
