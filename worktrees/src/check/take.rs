//! The choice of the worktree a check runs in.
//!
//! As many worktrees as can be busy at once are kept between checks. If all of them are taken, a
//! check waits for one about as long as it would take to make another: checks are often shorter
//! than a checkout, and each worktree is a whole checkout on the disk. It waits no longer, because
//! a check may well wait for another one.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::time::{Duration, Instant};

use store::fault::reached;
use store::lock::{FileLock, wait_until_free};

use crate::check::record::{CheckState, touched};
use crate::check::tree::{CheckTree, kept_between_checks};
use crate::create::setup;
use crate::error::TreeError;
use crate::fault;
use crate::layout::CHECK_PREFIX;
use crate::registry::Registry;
use crate::slug::Slug;
use crate::trees::Trees;

/// A limit that only a bug reaches.
const MAX_CHECK_TREES: usize = 10_000;
/// Estimated time to check out the files that one MiB of the index names, about ten thousand.
const CHECKOUT_PER_MIB: Duration = Duration::from_millis(600);
/// Maximum wait for a worktree.
const MAX_WAIT: Duration = Duration::from_secs(10);
/// Time to wait for one of the worktrees before ccb tries all of them again.
const ONE_WAIT: Duration = Duration::from_millis(20);

impl Trees {
    /// A free worktree, or a new one.
    pub(super) fn take_check_tree(&self, commit: &str) -> Result<CheckTree, TreeError> {
        let few = kept_between_checks();
        let deadline = Instant::now() + self.checkout_time();
        let mut number = 0;
        let mut cut_short = BTreeSet::new();
        loop {
            if let Some(tree) = self.take_one_of(1..=few, commit, &mut cut_short)? {
                return Ok(tree);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            number = number % few + 1;
            let lock = self.layout.tree_lock(&name_of(number)?);
            wait_until_free(&lock, left.min(ONE_WAIT))?;
        }
        self.take_one_of(few + 1..=MAX_CHECK_TREES, commit, &mut cut_short)?
            .ok_or_else(|| TreeError::Invalid {
                what: "check trees".into(),
                why: format!("{MAX_CHECK_TREES} are in use"),
            })
    }

    /// Estimated time to make another worktree.
    fn checkout_time(&self) -> Duration {
        let index = std::fs::metadata(self.layout.common.join("index"));
        let kib = index.map_or(0, |index| index.len() / 1024);
        let kib = u32::try_from(kib).unwrap_or(u32::MAX);
        (CHECKOUT_PER_MIB.saturating_mul(kib) / 1024).min(MAX_WAIT)
    }

    /// The first free worktree with one of these numbers. Where a check was cut short, one of its
    /// processes may still run: such a directory is noted, and not used here.
    fn take_one_of(
        &self,
        numbers: RangeInclusive<usize>,
        commit: &str,
        cut_short: &mut BTreeSet<usize>,
    ) -> Result<Option<CheckTree>, TreeError> {
        for number in numbers {
            if cut_short.contains(&number) {
                continue;
            }
            let slug = name_of(number)?;
            let name = slug.to_string();
            let Some(lock) = FileLock::try_exclusive(&self.layout.tree_lock(&slug))? else {
                continue;
            };
            let path = self.layout.tree(&slug);
            let there = std::fs::symlink_metadata(&path).is_ok();
            let ours = CheckState::is_ours(&self.layout, &name);
            if !ours && (there || Registry::load(&self.layout)?.knows(&slug)) {
                // A directory of the user's, in spite of its name.
                continue;
            }
            let state = CheckState::load(&self.layout, &name);
            let mut tree = CheckTree {
                last: touched(&CheckState::path(&self.layout, &name)),
                layout: self.layout.clone(),
                name,
                path,
                new: false,
                state: state.clone().unwrap_or_default(),
                lock,
            };
            if state.as_ref().is_some_and(|state| state.busy) {
                tree.delete();
                cut_short.insert(number);
                continue;
            }
            if state.is_none() || !there {
                setup::exclude(&self.layout, &["/.claude/worktrees/".into()])?;
                tree.make_anew(commit)?;
            } else {
                tree.state.busy = true;
                tree.state.save(&tree.layout, &tree.name)?;
                reached(fault::CHECK_CLAIMED);
            }
            return Ok(Some(tree));
        }
        Ok(None)
    }
}

fn name_of(number: usize) -> Result<Slug, TreeError> {
    Slug::new(&format!("{CHECK_PREFIX}{number}"))
}
