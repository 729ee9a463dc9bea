//! The list of trees: `index.json`.
//!
//! Read without a lock, because it is replaced whole; changed only through a [`Section`],
//! which holds the repository's lock. An entry with an `op` is in the middle of something:
//! whoever finds one whose maker is gone finishes it or takes it back (`recover`).

use std::collections::BTreeSet;
use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use store::StoreError;
use store::atomic::{self, Durability};
use store::lock::FileLock;

use crate::error::TreeError;
use crate::layout::Layout;
use crate::registry::op::{LandingRecord, Op, Pooled};
use crate::slug::Slug;

/// The version we write.
pub(crate) const VERSION: u64 = 1;

/// Whether a worktree is in use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TreeStatus {
    /// In use.
    Active,
    /// It is kept until somebody removes it.
    Kept,
    /// Removed; it may still be in the trash.
    Removed,
}

impl TreeStatus {
    /// The word in the file.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Kept => "kept",
            Self::Removed => "removed",
        }
    }
}

/// A tree in the trash.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Trashed {
    /// Its directory in the trash; its rescue refs are `refs/ccb/rescue/<id>/…`.
    pub id: String,
    /// When it was removed.
    pub at: String,
    /// The name of its directory among git's.
    pub admin: String,
    /// Where its branch stood, if it had one that was deleted with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch_tip: Option<String>,
    /// It had no changes.
    #[serde(default)]
    pub clean: bool,
    /// Ignored files are kept as well when the trash is emptied.
    #[serde(default)]
    pub rescue_ignored: bool,
    /// The directory has been deleted; only rescue refs are left.
    #[serde(default, skip_serializing_if = "is_false")]
    pub emptied: bool,
}

/// Something the set-up put into a tree. As long as it is the same it is no change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Placed {
    /// Relative to the tree.
    pub(crate) path: String,
    /// Where a link points.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) link: Option<String>,
    /// Of a file's content.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) fingerprint: Option<u64>,
}

/// One tree.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Entry {
    /// Its name as given.
    pub name: String,
    /// Where it is, absolute.
    pub path: String,
    /// Its branch without `refs/heads/`; none for a tree a hook made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// The commit it started from; never computed again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<String>,
    /// The task it is for.
    #[serde(default, rename = "task_id", skip_serializing_if = "Option::is_none")]
    pub task_id: Option<String>,
    /// The list that task is on.
    #[serde(default, rename = "task_list", skip_serializing_if = "Option::is_none")]
    pub task_list: Option<String>,
    /// The agent it is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// The task it was made for, as `list#id`. It says so from the first moment and for as long as
    /// nobody takes the tree for something else, also when the task is done in another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub made_for: Option<String>,
    /// Whether it is in use.
    pub status: TreeStatus,
    /// When it was made.
    pub created_at: String,
    /// When it was last asked for, as far as this file knows.
    pub last_used_at: String,
    /// Made by a hook: never judged, never removed without one.
    #[serde(default, skip_serializing_if = "is_false")]
    pub hook_based: bool,
    /// Only some paths are checked out.
    #[serde(default, skip_serializing_if = "is_false")]
    pub sparse: bool,
    /// Where it is in the trash, once removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trash: Option<Trashed>,
    /// Where its commits went, once merged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub merged: Option<LandingRecord>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) placed: Vec<Placed>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) op: Option<Op>,
    /// Keys we do not know, kept as they were.
    #[serde(flatten)]
    pub(crate) extra: Map<String, Value>,
}

pub(crate) fn is_false(value: &bool) -> bool {
    !value
}

impl Entry {
    /// A worktree with this name at this place, of which nothing else is known yet.
    pub(crate) fn new(slug: &Slug, path: &Path, now: String) -> Self {
        Self {
            name: slug.to_string(),
            path: path.to_string_lossy().into_owned(),
            branch: None,
            base: None,
            task_id: None,
            task_list: None,
            agent: None,
            made_for: None,
            status: TreeStatus::Active,
            created_at: now.clone(),
            last_used_at: now,
            hook_based: false,
            sparse: false,
            trash: None,
            merged: None,
            placed: Vec::new(),
            op: None,
            extra: Map::new(),
        }
    }

    /// Its name, checked: somebody may have edited the registry.
    pub(crate) fn slug(&self) -> Result<Slug, TreeError> {
        Slug::new(&self.name)
    }

    /// The list and the id of the task it was made for.
    pub fn made_for(&self) -> Option<(&str, &str)> {
        self.made_for.as_deref()?.rsplit_once('#')
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        Path::new(&self.path)
    }

    /// Whether it is there to be used: neither removed nor half made.
    pub fn is_live(&self) -> bool {
        let half_made = matches!(
            self.op,
            Some(Op::Creating | Op::Scratch | Op::Filling | Op::Taking { .. })
        );
        self.status != TreeStatus::Removed && !half_made
    }

    /// Whether it is there for our own purposes and none of the user's.
    pub(crate) fn is_internal(&self) -> bool {
        matches!(self.op, Some(Op::Scratch | Op::Filling))
    }

    /// The operation under way, in one word.
    pub fn under_way(&self) -> Option<&'static str> {
        self.op.as_ref().map(|op| match op {
            Op::Creating => "creating",
            Op::Removing { .. } => "removing",
            Op::Restoring => "restoring",
            Op::Scratch => "checking",
            Op::Filling | Op::Taking { .. } => "creating",
            Op::CheckingOut => "checking out",
        })
    }
}

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
    /// Trees nobody has yet.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) pool: Vec<Pooled>,
    #[serde(flatten)]
    extra: Map<String, Value>,
}

impl Registry {
    /// The list as it is; empty if there is none.
    pub(crate) fn load(layout: &Layout) -> Result<Self, TreeError> {
        let path = layout.registry();
        let Some(bytes) = atomic::read(&path)? else {
            return Ok(Self::default());
        };
        serde_json::from_slice(&bytes).map_err(|error| {
            // A newer version may have another shape; say that rather than "damaged".
            let newer = serde_json::from_slice::<Value>(&bytes)
                .ok()
                .and_then(|value| value.get("v")?.as_u64())
                .filter(|v| *v > VERSION);
            match newer {
                Some(found) => newer_version(&path, found),
                None => TreeError::Registry {
                    path: path.clone(),
                    why: error.to_string(),
                },
            }
        })
    }

    /// The tree of this name that is there or in the making.
    pub(crate) fn find(&self, slug: &Slug) -> Option<&Entry> {
        self.there().find(|entry| entry.name == slug.as_str())
    }

    pub(crate) fn find_mut(&mut self, slug: &Slug) -> Option<&mut Entry> {
        let mut all = self.worktrees.iter_mut();
        all.find(|entry| entry.status != TreeStatus::Removed && entry.name == slug.as_str())
    }

    /// All trees that are there or in the making.
    pub(crate) fn there(&self) -> impl Iterator<Item = &Entry> {
        let all = self.worktrees.iter();
        all.filter(|entry| entry.status != TreeStatus::Removed)
    }

    /// Where they and the trees of the pool are.
    pub(crate) fn paths(&self) -> BTreeSet<&Path> {
        let pooled = self.pool.iter().map(|pooled| pooled.tree.path());
        self.there().map(Entry::path).chain(pooled).collect()
    }

    /// Forgets the tree of this name; removed ones stay listed.
    pub(crate) fn forget(&mut self, slug: &Slug) {
        self.worktrees
            .retain(|entry| entry.status == TreeStatus::Removed || entry.name != slug.as_str());
    }

    /// Whether the name is, or would be taken for, that of a tree that is there.
    pub(crate) fn knows(&self, slug: &Slug) -> bool {
        let mut pooled = self.pool.iter();
        pooled.any(|pooled| slug.clashes_with(&pooled.tree.name))
            || self.there().any(|entry| slug.clashes_with(&entry.name))
    }

    /// The last tree of this name that was removed.
    pub(crate) fn last_removed(&self, slug: &Slug) -> Option<&Entry> {
        let mut all = self.worktrees.iter().rev();
        all.find(|entry| entry.status == TreeStatus::Removed && entry.name == slug.as_str())
    }

    /// The entry of the tree that is in this directory of the trash.
    pub(crate) fn trashed_mut(&mut self, id: &str) -> Option<&mut Entry> {
        self.worktrees
            .iter_mut()
            .find(|entry| entry.trash.as_ref().is_some_and(|trash| trash.id == id))
    }

    /// Refuses a name that differs only in case from that of a tree that is there.
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

fn newer_version(path: &Path, found: u64) -> TreeError {
    StoreError::NewerVersion {
        path: path.to_owned(),
        found,
        known: VERSION,
    }
    .into()
}

/// The registry while nobody else changes it.
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
        if registry.v > VERSION {
            return Err(newer_version(&layout.registry(), registry.v));
        }
        Ok(Self {
            lock,
            layout,
            durability,
            registry,
        })
    }

    /// How safely it is written.
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

    /// The entry of a tree that is there.
    pub(crate) fn entry(&mut self, slug: &Slug) -> Result<&mut Entry, TreeError> {
        self.registry.find_mut(slug).ok_or_else(|| not_found(slug))
    }

    /// Changes the entry of a tree that is there, saves, and returns it.
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
