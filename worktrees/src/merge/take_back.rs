//! Undoing a landing.
//!
//! As long as nothing is on top of it and nobody else has it, the branch goes back to where it
//! stood, and it is as if nothing had landed. Otherwise a commit on top takes the changes back;
//! that one is checked and lands like any other.

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

/// How often it starts over because somebody else moved the branch.
const MAX_ATTEMPTS: usize = 5;

/// How a landing is to be undone.
#[derive(Debug, Default)]
pub struct TakeBackRequest<'a> {
    /// Of the commit that takes the changes back, where one is needed.
    pub message: String,
    /// What must pass on that commit before the branch moves.
    pub check: Option<Check<'a>>,
    /// Only say what would happen.
    pub dry_run: bool,
}

/// A landing that was undone, or could be.
#[derive(Debug)]
pub struct TakenBack {
    /// As it is written down now.
    pub landing: Landing,
    /// How it was undone.
    pub by: UndoneBy,
    /// Why the branch could not just go back.
    pub why: Option<String>,
    /// Where the branch stood.
    pub before: String,
    /// Where it stands, or would.
    pub after: String,
    /// The working tree that has the branch checked out and moved along.
    pub checkout: Option<PathBuf>,
    /// The output of the check, if one ran.
    pub log: Option<PathBuf>,
}

impl Trees {
    /// Undoes a landing on its branch. Nothing else is changed; when the caller has seen to the
    /// rest, [`Self::confirm_undone`] says so.
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

    /// Everything that depended on a landing knows that it is undone.
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

    /// The landings that are undone on their branch, and nobody has confirmed it: whoever began
    /// was killed. Those whose branch did not move stand again.
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

    /// Looks at each landing that somebody began to undo; the turn to land is held, so nobody
    /// is at it.
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

    /// What is to be done. Touches nothing.
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

    /// Why the branch cannot just go back to where it stood, if so.
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

    /// A commit on top of the branch without what the landing brought.
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

    /// Moves the branch; `None` if somebody else was faster.
    fn carry_out(&self, plan: &Plan, turn: &FileLock) -> Result<Option<Undone>, TreeError> {
        let (landing, target) = (&plan.landing, &plan.target);
        let undone = Undone {
            at: self.now(),
            by: plan.by,
            to: plan.after.clone(),
            pending: true,
        };
        self.make_durable()?;
        // Before it moves: after a crash the branch itself says whether this is so.
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

    /// What the work of a tree is compared with when it lands again after a commit took it back:
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

/// A landing, and how it can be undone.
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
