//! What has landed, oldest first: `landings.json`.
//!
//! A tree's entry says where its commits went for as long as there is an entry. This file says
//! it for good, so that a landing can be undone when its tree is gone. It is written after the
//! branch has moved; a landing that is missing because somebody was killed in between is taken
//! over from the registry when the list is read next.

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
/// How many are remembered.
const REMEMBERED: usize = 500;

store::words! {
    /// How a landing was undone.
    pub enum UndoneBy {
        /// The branch stands where it stood before.
        MovingBack = "moved_back",
        /// A commit on top takes the changes back.
        Reverting = "reverted",
    }
}

/// That a landing was undone, or is about to be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Undone {
    /// When.
    pub at: String,
    /// How.
    pub by: UndoneBy,
    /// Where the branch stood after it.
    pub to: String,
    /// Something of it is not done; whether the branch has moved, it says itself.
    #[serde(default, skip_serializing_if = "is_false")]
    pub pending: bool,
}

/// A landing: a worktree's commits went onto a branch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Landing {
    /// Counts up, in each repository.
    pub id: u64,
    /// The worktree.
    pub worktree: String,
    /// The task it was done for, as `list#id`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
    /// The branch, without `refs/heads/`.
    pub into: String,
    /// Where the branch stood before.
    pub from: String,
    /// The commit it was moved to.
    pub commit: String,
    /// The commit of the worktree that is part of it.
    pub head: String,
    /// When.
    pub at: String,
    /// Whether it was undone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undone: Option<Undone>,
    #[serde(flatten)]
    pub(crate) extra: Map<String, Value>,
}

impl Landing {
    /// True if it counts: nobody has undone it, or began to and it is not known how that ended.
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
    /// The last number given out.
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
    /// The list as it is. One that nobody can read is empty: what the registry knows of landings
    /// is added to it, and no landing has to wait for a repair.
    pub(crate) fn load(layout: &Layout) -> Result<Self, TreeError> {
        Ok(Self::read(layout)?.unwrap_or_default())
    }

    /// The same for whoever holds the section's lock and is about to write it: one that nobody can
    /// read is put aside, so that nothing of it is lost.
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

    /// The list, or nothing if nobody can read it.
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

    /// Writes it. The section's lock is what keeps others from doing so.
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
    /// Everything that has landed as far as is remembered, oldest first.
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

    /// The same as it is written down, for whoever only looks: one that was cut short just now is
    /// not completed by it.
    pub fn recorded_landings(&self) -> Result<Vec<Landing>, TreeError> {
        Ok(LandingList::load(&self.layout)?.landings)
    }

    /// The files in which worktrees and landings are written down; nothing about them changes
    /// without a change of one of them.
    pub fn record_files(&self) -> [PathBuf; 2] {
        [self.layout.registry(), path(&self.layout)]
    }

    /// True if the branch was really moved: one whose mover was killed says so itself.
    fn has_landed(&self, landed: &LandingRecord) -> bool {
        let on_branch = || {
            let tip = self.layout.tip_of(&landed.into).ok().flatten()?;
            self.layout.history().is_ancestor(&landed.commit, &tip).ok()
        };
        !landed.pending || on_branch() == Some(true)
    }

    /// Writes a landing down, once.
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

    /// Notes with a landing whether it is undone, and with its tree, if there is one.
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
