//! Undoes a landing.
//!
//! If nothing is on top of it and nothing else builds on it, the branch goes back to its earlier
//! commit, as if the landing had never been. Otherwise a commit on top reverts the changes; that
//! commit is checked and lands like any other.

use std::cell::OnceCell;
use std::path::PathBuf;

use store::fault::reached;
use store::lock::FileLock;

use crate::check::Check;
use crate::error::TreeError;
use crate::fault;
use crate::merge::interrupted;
use crate::merge::landings::{Landing, LandingList, Undone, UndoneBy};
use crate::merge::{Builder, Target, TargetMove};
use crate::registry::Event;
use crate::slug::Slug;
use crate::trees::Trees;

/// Maximum of attempts if others move the branch.
const MAX_ATTEMPTS: usize = 5;

/// The request to undo a landing.
#[derive(Debug, Default)]
pub struct TakeBackRequest<'a> {
    /// The message of the reverting commit, if one is needed.
    pub message: String,
    /// The check that must pass on that commit before the branch moves.
    pub check: Option<Check<'a>>,
    /// True to only report what would happen.
    pub dry_run: bool,
}

/// A landing that was undone, or could be.
#[derive(Debug)]
pub struct TakenBack {
    /// The present record of the landing.
    pub landing: Landing,
    /// The way it was undone.
    pub by: UndoneBy,
    /// The reason why the branch could not just go back.
    pub why: Option<String>,
    /// The commit of the branch before.
    pub before: String,
    /// The commit of the branch after; for a dry run, the one it would have.
    pub after: String,
    /// The worktree that has the branch checked out and moved along.
    pub checkout: Option<PathBuf>,
    /// The output of the check, if one ran.
    pub log: Option<PathBuf>,
}

impl Trees {
    /// Undoes a landing on its branch and changes nothing else. After the caller has updated the
    /// rest, it calls [`Self::confirm_undone`].
    pub fn take_back(
        &self,
        id: u64,
        request: &TakeBackRequest<'_>,
    ) -> Result<TakenBack, TreeError> {
        self.layout.create_dirs()?;
        let busy = request
            .check
            .as_ref()
            .map_or_else(Default::default, |c| c.timeout);
        let patience = self.options.checkout_timeout + busy;
        let lock = self.layout.landing_lock();
        let turn = FileLock::exclusive(&lock, "undoing a landing", patience)?;
        if !request.dry_run {
            self.settle_landings()?;
        }
        let mut branch = String::new();
        for _ in 0..MAX_ATTEMPTS {
            let plan = self.plan(id, request)?;
            if request.dry_run {
                return Ok(plan.done(None));
            }
            let mut log = None;
            if let (UndoneBy::Reverting, Some(check)) = (plan.by, &request.check) {
                let label = Slug::new(&plan.landing.worktree)?;
                log = Some(self.check_commit(&label, &plan.after, check)?);
            }
            if let Some(undone) = self.carry_out(&plan, &turn)? {
                let mut done = plan.done(log);
                done.landing.undone = Some(undone);
                self.emit(&event(&done));
                return Ok(done);
            }
            branch = plan.landing.into;
        }
        Err(TreeError::TargetMoved { branch })
    }

    /// Confirms that everything that depended on the landing knows that it is undone.
    pub fn confirm_undone(&self, id: u64) -> Result<(), TreeError> {
        let list = LandingList::load(&self.layout)?;
        let undone = list.get(id).and_then(|landing| landing.undone.clone());
        match undone.filter(|undone| undone.pending) {
            Some(undone) => self.note_undone(
                id,
                Some(Undone {
                    pending: false,
                    ..undone
                }),
            ),
            None => Ok(()),
        }
    }

    /// The landings that are undone on their branch without a confirmation: their process was
    /// killed. Those whose branch did not move count as landed again.
    pub fn half_undone(&self) -> Result<Vec<Landing>, TreeError> {
        if !LandingList::load(&self.layout)?
            .landings
            .iter()
            .any(is_half_undone)
        {
            return Ok(Vec::new());
        }
        let lock = self.layout.landing_lock();
        let timeout = self.options.checkout_timeout;
        let _turn = FileLock::exclusive(&lock, "undoing a landing", timeout)?;
        self.settle_landings()?;
        let list = LandingList::load(&self.layout)?;
        Ok(list.landings.into_iter().filter(is_half_undone).collect())
    }

    /// Settles each landing whose undoing was begun; the landing lock is held, so none is under
    /// way.
    pub(crate) fn settle_undos(&self) -> Result<(), TreeError> {
        for landing in LandingList::load(&self.layout)?.landings {
            let Some(undone) = landing.undone.as_ref().filter(|undone| undone.pending) else {
                continue;
            };
            let target = Target::find(&self.layout, Some(&landing.into))?;
            let history = self.layout.history();
            let moved = match undone.by {
                UndoneBy::MovingBack => !history.is_ancestor(&landing.commit, &target.tip)?,
                UndoneBy::Reverting => history.is_ancestor(&undone.to, &target.tip)?,
            };
            if let Some(dir) = target.checkout.as_deref().filter(|dir| dir.is_dir()) {
                self.drop_leftovers(dir, &landing.into)?;
                let other = match (moved, undone.by) {
                    (false, _) => undone.to.clone(),
                    (true, UndoneBy::MovingBack) => landing.commit.clone(),
                    (true, UndoneBy::Reverting) => history.resolve(&format!("{}^1", undone.to))?,
                };
                interrupted::put_back(&self.layout, dir, &target.tip, &other)?;
            }
            if !moved {
                self.note_undone(landing.id, None)?;
            }
        }
        Ok(())
    }

    /// The steps to take. Changes nothing.
    fn plan(&self, id: u64, request: &TakeBackRequest<'_>) -> Result<Plan, TreeError> {
        let list = LandingList::load(&self.layout)?;
        let landing = list.get(id).cloned().ok_or(TreeError::NoLanding { id })?;
        let target = Target::find(&self.layout, Some(&landing.into))?;
        let history = self.layout.history();
        if landing.undone.is_some() || !history.is_ancestor(&landing.commit, &target.tip)? {
            return Err(TreeError::NotOnBranch {
                into: landing.into,
                commit: landing.commit,
            });
        }
        let why = self.why_not_back(&landing, &target)?;
        let (by, after) = match why {
            None => (UndoneBy::MovingBack, landing.from.clone()),
            Some(_) => (
                UndoneBy::Reverting,
                self.revert(&landing, &target, &request.message)?,
            ),
        };
        Ok(Plan {
            landing,
            target,
            by,
            why,
            after,
        })
    }

    /// The reason why the branch cannot just go back, if so.
    fn why_not_back(
        &self,
        landing: &Landing,
        target: &Target,
    ) -> Result<Option<String>, TreeError> {
        if target.remote.is_some() {
            return Ok(Some("others may have it".into()));
        }
        if target.tip != landing.commit {
            return Ok(Some(format!("{} has later commits", landing.into)));
        }
        let refs = self
            .layout
            .git("for-each-ref")
            .args(["--format=%(refname)", "--contains", &landing.commit])
            .args(["refs/heads", "refs/remotes", "refs/tags"])
            .lines()?;
        let own = Slug::new(&landing.worktree).map(|slug| format!("refs/heads/{}", slug.branch()));
        let into = format!("refs/heads/{}", landing.into);
        let other = refs
            .iter()
            .find(|name| **name != into && !own.as_ref().is_ok_and(|own| own == *name));
        Ok(other.map(|name| {
            let short = name.strip_prefix("refs/").unwrap_or(name);
            let short = ["heads/", "remotes/", "tags/"]
                .iter()
                .find_map(|kind| short.strip_prefix(kind));
            format!("{} has it, too", short.unwrap_or(name))
        }))
    }

    /// A commit on top of the branch that reverts the landing.
    fn revert(
        &self,
        landing: &Landing,
        target: &Target,
        message: &str,
    ) -> Result<String, TreeError> {
        let builder = Builder {
            layout: &self.layout,
            name: &landing.worktree,
            branch: &landing.worktree,
            target,
            head: &landing.from,
            message: Some(message),
            follow: false,
            again: None,
            now_ms: self.now_ms(),
            committer: OnceCell::new(),
        };
        let found = builder
            .revert(&landing.commit)
            .map_err(|error| match error {
                TreeError::Conflicts { into, files, .. } => TreeError::BuiltUpon { into, files },
                error => error,
            })?;
        found.ok_or_else(|| TreeError::NotOnBranch {
            into: landing.into.clone(),
            commit: landing.commit.clone(),
        })
    }

    /// Moves the branch; `None` if others moved it first.
    fn carry_out(&self, plan: &Plan, turn: &FileLock) -> Result<Option<Undone>, TreeError> {
        let (landing, target) = (&plan.landing, &plan.target);
        let undone = Undone {
            at: self.now(),
            by: plan.by,
            to: plan.after.clone(),
            pending: true,
        };
        self.make_durable()?;
        // Before it moves: after a crash the branch itself says if it did.
        self.note_undone(landing.id, Some(undone.clone()))?;
        reached(fault::TAKE_BACK_NOTED);
        let timeout = self.options.checkout_timeout;
        let step = match plan.by {
            UndoneBy::MovingBack => target.go_back(&self.layout, &plan.after, turn, timeout),
            UndoneBy::Reverting => target.advance(&self.layout, &plan.after, turn, timeout),
        };
        if !matches!(step, Ok(TargetMove::Moved)) {
            self.note_undone(landing.id, None)?;
            return step.map(|_| None);
        }
        reached(fault::TAKE_BACK_MOVED);
        self.make_durable()?;
        reached(fault::TAKE_BACK_DURABLE);
        Ok(Some(undone))
    }

    /// The commit to compare a worktree's work with when it lands again after a commit reverted it:
    /// to git its commits are part of the branch.
    pub(crate) fn landed_before(
        &self,
        name: &str,
        head: &str,
        target: &Target,
    ) -> Result<Option<String>, TreeError> {
        let list = LandingList::load(&self.layout)?;
        let history = self.layout.history();
        let of_it = |one: &&Landing| one.worktree == name && one.into == target.branch;
        let Some(landing) = list.landings.iter().rev().find(of_it) else {
            return Ok(None);
        };
        let reverted = |undone: &&Undone| undone.by == UndoneBy::Reverting && !undone.pending;
        let Some(undone) = landing.undone.as_ref().filter(reverted) else {
            return Ok(None);
        };
        let here = history.is_ancestor(&undone.to, &target.tip)?
            && history.is_ancestor(&landing.head, head)?
            && !history.is_ancestor(&undone.to, head)?;
        if !here {
            return Ok(None);
        }
        let base = self
            .layout
            .git("merge-base")
            .args([&landing.from, &landing.head])
            .line()?;
        Ok(Some(base))
    }
}

fn is_half_undone(landing: &Landing) -> bool {
    landing.undone.as_ref().is_some_and(|undone| undone.pending)
}

fn event(done: &TakenBack) -> Event {
    let landing = &done.landing;
    let mut event = Event::named("worktree.undo-merge", &landing.worktree);
    event.worktree["into"] = landing.into.clone().into();
    event.worktree["commit"] = done.after.clone().into();
    event
}

/// A landing, and the way to undo it.
struct Plan {
    landing: Landing,
    target: Target,
    by: UndoneBy,
    why: Option<String>,
    after: String,
}

impl Plan {
    fn done(self, log: Option<PathBuf>) -> TakenBack {
        TakenBack {
            landing: self.landing,
            by: self.by,
            why: self.why,
            before: self.target.tip,
            after: self.after,
            checkout: self.target.checkout,
            log,
        }
    }
}
