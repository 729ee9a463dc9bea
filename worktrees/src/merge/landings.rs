//! Every landing, oldest first: `landings.json`.
//!
//! A worktree's entry names the target of its commits for as long as there is an entry. This file
//! keeps it for good, so that a landing can be undone when its worktree is gone. It is written
//! after the branch has moved; if a kill in between leaves a landing out, the next reader of the
//! list takes it over from the registry.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use store::StoreError;
use store::atomic;

use crate::error::TreeError;
use crate::layout::Layout;
use crate::registry::{Entry, LandingRecord, Registry, Section, is_false};
use crate::trees::Trees;

const VERSION: u64 = 1;
/// Maximum of landings that are kept.
const REMEMBERED: usize = 500;

store::words! {
    /// The way a landing was undone.
    pub enum UndoneBy {
        /// The branch is back at its earlier commit.
        MovingBack = "moved_back",
        /// A commit on top reverts the changes.
        Reverting = "reverted",
    }
}

/// The undoing of a landing, finished or about to happen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Undone {
    /// The time.
    pub at: String,
    /// The way it was undone.
    pub by: UndoneBy,
    /// The commit of the branch after it.
    pub to: String,
    /// True if some of it is not done; the branch itself says if it has moved.
    #[serde(default, skip_serializing_if = "is_false")]
    pub pending: bool,
}

/// A landing: a worktree's commits went onto a branch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Landing {
    /// The number of the landing, counted in each repository.
    pub id: u64,
    /// The worktree.
    pub worktree: String,
    /// The task it was done for, as `list#id`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
    /// The branch, without `refs/heads/`.
    pub into: String,
    /// The commit of the branch before.
    pub from: String,
    /// The commit the branch was moved to.
    pub commit: String,
    /// The commit of the worktree that is part of it.
    pub head: String,
    /// The time.
    pub at: String,
    /// The undoing; `None` if it was not undone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undone: Option<Undone>,
    #[serde(flatten)]
    pub(crate) extra: Map<String, Value>,
}

impl Landing {
    /// True if the landing counts: it was not undone, and no undoing of it has an unknown end.
    pub fn stands(&self) -> bool {
        self.undone.as_ref().is_none_or(|undone| undone.pending)
    }

    fn is_of(&self, entry: &Entry, landed: &LandingRecord) -> bool {
        // The same commit can land again after it was undone.
        self.worktree == entry.name
            && (&self.commit, &self.into, &self.at) == (&landed.commit, &landed.into, &landed.at)
    }
}

/// Everything in the file.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct LandingList {
    #[serde(default)]
    v: u64,
    /// The last number in use.
    #[serde(default)]
    last: u64,
    #[serde(default)]
    pub(crate) landings: Vec<Landing>,
    #[serde(flatten)]
    extra: Map<String, Value>,
}

fn path(layout: &Layout) -> PathBuf {
    layout.registry().with_file_name("landings.json")
}

impl LandingList {
    /// The current list. An unreadable one counts as empty: the landings in the registry are added
    /// to it, and no landing has to wait for a repair.
    pub(crate) fn load(layout: &Layout) -> Result<Self, TreeError> {
        Ok(Self::read(layout)?.unwrap_or_default())
    }

    /// The same for a caller that holds the section's lock and is about to write: an unreadable
    /// list is moved aside, so that it is not lost.
    fn load_to_change(layout: &Layout) -> Result<Self, TreeError> {
        match Self::read(layout)? {
            Some(list) => Ok(list),
            None => {
                let aside = atomic::set_unreadable_aside(&path(layout))?;
                tracing::warn!(file = %aside.display(), "the list of landings was unreadable");
                Ok(Self::default())
            }
        }
    }

    /// The list; `None` if it is unreadable.
    fn read(layout: &Layout) -> Result<Option<Self>, TreeError> {
        let path = path(layout);
        let Some(bytes) = atomic::read(&path)? else {
            return Ok(Some(Self::default()));
        };
        if let Ok(list) = serde_json::from_slice(&bytes) {
            return Ok(Some(list));
        }
        // A newer version may have another shape.
        let value: Value = serde_json::from_slice(&bytes).unwrap_or_default();
        let found = value.get("v").and_then(Value::as_u64).unwrap_or(VERSION);
        StoreError::check_version(&path, found, VERSION)?;
        Ok(None)
    }

    /// Writes it. The section's lock keeps others from doing so.
    fn save(&mut self, layout: &Layout, section: &Section<'_>) -> Result<(), TreeError> {
        let path = path(layout);
        StoreError::check_version(&path, self.v, VERSION)?;
        self.v = VERSION;
        let surplus = self.landings.len().saturating_sub(REMEMBERED);
        self.landings.drain(..surplus);
        let mut bytes = serde_json::to_vec_pretty(self).map_err(|error| TreeError::Registry {
            path: path.clone(),
            why: error.to_string(),
        })?;
        bytes.push(b'\n');
        atomic::replace(&layout.tmp(), &path, &bytes, section.durability())?;
        Ok(())
    }

    pub(crate) fn get(&self, id: u64) -> Option<&Landing> {
        self.landings.iter().find(|landing| landing.id == id)
    }

    fn has(&self, entry: &Entry, landed: &LandingRecord) -> bool {
        self.landings.iter().any(|one| one.is_of(entry, landed))
    }

    fn add(
        &mut self,
        layout: &Layout,
        entry: &Entry,
        landed: &LandingRecord,
        task: Option<String>,
    ) {
        let before = || layout.history().resolve(&format!("{}^1", landed.commit));
        let Some(from) = landed.from.clone().or_else(|| before().ok()) else {
            return;
        };
        let bound = entry.task_list.as_ref().zip(entry.task_id.as_ref());
        let bound = bound.map(|(list, id)| format!("{list}#{id}"));
        self.last += 1;
        self.landings.push(Landing {
            id: self.last,
            worktree: entry.name.clone(),
            task: task.or_else(|| entry.made_for.clone()).or(bound),
            into: landed.into.clone(),
            from,
            commit: landed.commit.clone(),
            head: landed.head.clone(),
            at: landed.at.clone(),
            undone: None,
            extra: Map::new(),
        });
    }
}

impl Trees {
    /// All landings that are kept, oldest first.
    pub fn landings(&self) -> Result<Vec<Landing>, TreeError> {
        let registry = Registry::load(&self.layout)?;
        let list = LandingList::load(&self.layout)?;
        let missing = |entry: &Entry| {
            let landed = entry.merged.as_ref()?;
            let new = !list.has(entry, landed) && self.has_landed(landed);
            new.then(|| (entry.clone(), landed.clone()))
        };
        let missing: Vec<_> = registry.worktrees.iter().filter_map(missing).collect();
        for (entry, landed) in &missing {
            self.record_landing(entry, landed, None)?;
        }
        match missing.is_empty() {
            true => Ok(list.landings),
            false => Ok(LandingList::load(&self.layout)?.landings),
        }
    }

    /// The same as recorded, for readers only: a landing that was interrupted just now is not
    /// completed.
    pub fn recorded_landings(&self) -> Result<Vec<Landing>, TreeError> {
        Ok(LandingList::load(&self.layout)?.landings)
    }

    /// The files with the records of worktrees and landings; every change of a record changes one
    /// of them.
    pub fn record_files(&self) -> [PathBuf; 2] {
        [self.layout.registry(), path(&self.layout)]
    }

    /// True if the branch has moved: after a kill, the branch itself says so.
    fn has_landed(&self, landed: &LandingRecord) -> bool {
        let on_branch = || {
            let tip = self.layout.tip_of(&landed.into).ok().flatten()?;
            self.layout.history().is_ancestor(&landed.commit, &tip).ok()
        };
        !landed.pending || on_branch() == Some(true)
    }

    /// Records a landing, once.
    pub(crate) fn record_landing(
        &self,
        entry: &Entry,
        landed: &LandingRecord,
        task: Option<String>,
    ) -> Result<(), TreeError> {
        let section = self.section()?;
        let mut list = LandingList::load_to_change(&self.layout)?;
        if !list.has(entry, landed) {
            list.add(&self.layout, entry, landed, task);
            list.save(&self.layout, &section)?;
        }
        Ok(())
    }

    /// Records the undoing in the landing, and in its worktree's entry, if there is one.
    pub(crate) fn note_undone(&self, id: u64, undone: Option<Undone>) -> Result<(), TreeError> {
        let mut section = self.section()?;
        let mut list = LandingList::load_to_change(&self.layout)?;
        let Some(landing) = list.landings.iter_mut().find(|one| one.id == id) else {
            return Ok(());
        };
        landing.undone = undone;
        let (landing, stands) = (landing.clone(), landing.undone.is_none());
        list.save(&self.layout, &section)?;
        let mut changed = false;
        for entry in &mut section.registry.worktrees {
            let of_it = entry.merged.as_ref();
            if !of_it.is_some_and(|landed| landing.is_of(entry, landed)) {
                continue;
            }
            if let Some(landed) = entry.merged.as_mut().filter(|one| one.undone == stands) {
                landed.undone = !stands;
                changed = true;
            }
        }
        match changed {
            true => section.save(),
            false => Ok(()),
        }
    }
}
