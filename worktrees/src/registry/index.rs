//! The list of worktrees: `index.json`.
//!
//! Read without a lock, because it is replaced whole; changed only through a [`Section`], which
//! holds the repository's lock. An entry with an `op` is in the middle of an operation: a process
//! that finds one whose maker is dead finishes or undoes it (`recover`).

use std::collections::BTreeSet;
use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use store::StoreError;
use store::atomic::{self, Durability};
use store::lock::FileLock;

use crate::error::TreeError;
use crate::layout::Layout;
use crate::registry::{Entry, Op, Pooled, TreeStatus};
use crate::slug::Slug;

/// The version that ccb writes.
pub(crate) const VERSION: u64 = 1;

/// Everything in `index.json`.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Registry {
    #[serde(default)]
    pub(crate) v: u64,
    /// The highest number used in the name of a trash directory.
    #[serde(default)]
    pub(crate) last: u64,
    #[serde(default)]
    pub(crate) worktrees: Vec<Entry>,
    /// Worktrees that are not assigned yet.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) pool: Vec<Pooled>,
    #[serde(flatten)]
    extra: Map<String, Value>,
}

impl Registry {
    /// The current list; empty if there is none.
    pub(crate) fn load(layout: &Layout) -> Result<Self, TreeError> {
        let path = layout.registry();
        let Some(bytes) = atomic::read(&path)? else {
            return Ok(Self::default());
        };
        serde_json::from_slice(&bytes).or_else(|error| {
            // A newer version may have another shape; say that rather than "damaged".
            let value: Value = serde_json::from_slice(&bytes).unwrap_or_default();
            let found = value.get("v").and_then(Value::as_u64).unwrap_or(VERSION);
            StoreError::check_version(&path, found, VERSION)?;
            let why = error.to_string();
            Err(TreeError::Registry { path, why })
        })
    }

    /// The existing or unfinished worktree of this name.
    pub(crate) fn find(&self, slug: &Slug) -> Option<&Entry> {
        self.there().find(|entry| entry.name == slug.as_str())
    }

    pub(crate) fn find_mut(&mut self, slug: &Slug) -> Option<&mut Entry> {
        let mut all = self.worktrees.iter_mut();
        all.find(|entry| entry.status != TreeStatus::Removed && entry.name == slug.as_str())
    }

    /// All existing or unfinished worktrees.
    pub(crate) fn there(&self) -> impl Iterator<Item = &Entry> {
        let all = self.worktrees.iter();
        all.filter(|entry| entry.status != TreeStatus::Removed)
    }

    /// The paths of these and of the worktrees of the pool.
    pub(crate) fn paths(&self) -> BTreeSet<&Path> {
        let pooled = self.pool.iter().map(|pooled| pooled.tree.path());
        self.there().map(Entry::path).chain(pooled).collect()
    }

    /// Removes the entry of this name; removed worktrees stay listed.
    pub(crate) fn forget(&mut self, slug: &Slug) {
        self.worktrees
            .retain(|entry| entry.status == TreeStatus::Removed || entry.name != slug.as_str());
    }

    /// Removes this task from all existing worktrees.
    pub(crate) fn forget_task(&mut self, id: &Option<String>, list: &Option<String>) {
        for entry in &mut self.worktrees {
            if entry.is_live() && id.is_some() && (&entry.task_id, &entry.task_list) == (id, list) {
                (entry.task_id, entry.task_list) = (None, None);
            }
        }
    }

    /// True if an existing worktree has the name, or one that would be taken for it.
    pub(crate) fn knows(&self, slug: &Slug) -> bool {
        // One that is moving to or from the pool may come back to its place there.
        let moving = self.worktrees.iter().filter_map(|entry| match &entry.op {
            Some(Op::Taking { from: pooled, .. } | Op::GivingBack { to: pooled, .. }) => {
                Some(pooled.as_ref())
            }
            _ => None,
        });
        let mut pooled = self.pool.iter().chain(moving);
        pooled.any(|pooled| slug.clashes_with(&pooled.tree.name))
            || self.there().any(|entry| slug.clashes_with(&entry.name))
    }

    /// The last removed worktree of this name.
    pub(crate) fn last_removed(&self, slug: &Slug) -> Option<&Entry> {
        let mut all = self.worktrees.iter().rev();
        all.find(|entry| entry.status == TreeStatus::Removed && entry.name == slug.as_str())
    }

    /// The entry of the worktree that is in this directory of the trash.
    pub(crate) fn trashed_mut(&mut self, id: &str) -> Option<&mut Entry> {
        self.worktrees
            .iter_mut()
            .find(|entry| entry.trash.as_ref().is_some_and(|trash| trash.id == id))
    }

    /// Refuses a name that differs only in case from that of an existing worktree.
    pub(crate) fn check_clash(&self, slug: &Slug) -> Result<(), TreeError> {
        let clash = |entry: &&Entry| entry.name != slug.as_str() && slug.clashes_with(&entry.name);
        match self.there().find(clash) {
            Some(other) => Err(TreeError::NameClash {
                given: slug.to_string(),
                existing: other.name.clone(),
            }),
            None => Ok(()),
        }
    }
}

/// The registry while no other process changes it.
#[derive(Debug)]
pub(crate) struct Section<'a> {
    pub(crate) lock: FileLock,
    layout: &'a Layout,
    durability: Durability,
    pub(crate) registry: Registry,
}

impl<'a> Section<'a> {
    pub(crate) fn new(
        layout: &'a Layout,
        durability: Durability,
        timeout: std::time::Duration,
    ) -> Result<Self, TreeError> {
        layout.create_dirs()?;
        let lock =
            FileLock::exclusive(&layout.repository_lock(), "the list of worktrees", timeout)?;
        let registry = Registry::load(layout)?;
        StoreError::check_version(&layout.registry(), registry.v, VERSION)?;
        Ok(Self {
            lock,
            layout,
            durability,
            registry,
        })
    }

    /// The durability of its writes.
    pub(crate) fn durability(&self) -> Durability {
        self.durability
    }

    /// Writes the registry.
    pub(crate) fn save(&mut self) -> Result<(), TreeError> {
        self.registry.v = VERSION;
        let mut bytes =
            serde_json::to_vec_pretty(&self.registry).map_err(|error| TreeError::Registry {
                path: self.layout.registry(),
                why: error.to_string(),
            })?;
        bytes.push(b'\n');
        let path = self.layout.registry();
        atomic::replace(&self.layout.tmp(), &path, &bytes, self.durability)?;
        Ok(())
    }

    /// The entry of an existing worktree.
    pub(crate) fn entry(&mut self, slug: &Slug) -> Result<&mut Entry, TreeError> {
        self.registry.find_mut(slug).ok_or_else(|| not_found(slug))
    }

    /// Changes the entry of an existing worktree, saves, and returns it.
    pub(crate) fn edit(
        &mut self,
        slug: &Slug,
        change: impl FnOnce(&mut Entry),
    ) -> Result<Entry, TreeError> {
        let entry = self.entry(slug)?;
        change(entry);
        let entry = entry.clone();
        self.save()?;
        Ok(entry)
    }
}

pub(crate) fn not_found(slug: &Slug) -> TreeError {
    TreeError::NotFound {
        name: slug.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use store::Explain;

    use super::*;
    use std::time::Duration;

    fn layout(dir: &Path) -> Layout {
        Layout::new(&dir.join(".git"), dir)
    }

    #[test]
    fn unknown_keys_survive_and_newer_files_are_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let layout = layout(dir.path());
        layout.create_dirs().unwrap();
        let text = r#"{"v":1,"last":3,"later":true,"worktrees":[{"name":"a","path":"/x",
            "status":"kept","createdAt":"t","lastUsedAt":"t","colour":"red","hookBased":null}]}"#;
        // `null` means absent.
        let text = text.replace(r#","hookBased":null"#, "");
        let write = |text: &str| {
            atomic::replace(
                &layout.tmp(),
                &layout.registry(),
                text.as_bytes(),
                Durability::Relaxed,
            )
            .unwrap();
        };
        write(&text);
        let limit = Duration::from_secs(10);
        let mut section = Section::new(&layout, Durability::Relaxed, limit).unwrap();
        let slug = Slug::new("a").unwrap();
        section.entry(&slug).unwrap().status = TreeStatus::Active;
        section.save().unwrap();
        drop(section);
        let saved: Value =
            serde_json::from_slice(&atomic::read(&layout.registry()).unwrap().unwrap()).unwrap();
        assert_eq!(saved["later"], true);
        assert_eq!(saved["worktrees"][0]["colour"], "red");
        assert_eq!(saved["worktrees"][0]["status"], "active");

        write(r#"{"v":2,"worktrees":[]}"#);
        assert!(Registry::load(&layout).is_ok(), "a newer one is read");
        let refused = Section::new(&layout, Durability::Relaxed, limit).unwrap_err();
        assert_eq!(refused.kind(), "newer_version");
        write(r#"{"v":2,"worktrees":{"shape":"new"}}"#);
        assert_eq!(Registry::load(&layout).unwrap_err().kind(), "newer_version");
        write("{");
        assert_eq!(
            Registry::load(&layout).unwrap_err().kind(),
            "registry_unreadable"
        );
    }
}
