//! One worktree as the registry knows it.

use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::error::TreeError;
use crate::registry::{LandingRecord, Op};
use crate::slug::Slug;

store::words! {
    /// Whether a worktree is in use.
    pub enum TreeStatus {
        /// In use.
        Active = "active",
        /// It is kept until somebody removes it.
        Kept = "kept",
        /// Removed; it may still be in the trash.
        Removed = "removed",
    }
}

/// A tree in the trash.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
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
    /// It is in the trash now.
    pub(crate) fn set_removed(&mut self, trash: Trashed) {
        self.op = None;
        self.status = TreeStatus::Removed;
        self.trash = Some(trash);
    }

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

    /// True if it is there to be used: neither removed nor half made.
    pub fn is_live(&self) -> bool {
        let half_made = matches!(
            self.op,
            Some(Op::Creating | Op::Scratch | Op::Filling | Op::Taking { .. })
        );
        self.status != TreeStatus::Removed && !half_made
    }

    /// True if it is there for our own purposes and none of the user's.
    pub(crate) fn is_internal(&self) -> bool {
        matches!(self.op, Some(Op::Scratch | Op::Filling))
    }

    /// The operation under way, in one word.
    pub fn under_way(&self) -> Option<&'static str> {
        self.op.as_ref().map(|op| match op {
            Op::Creating => "creating",
            Op::Removing { .. } | Op::Retiring => "removing",
            Op::Restoring => "restoring",
            Op::Scratch => "checking",
            Op::Filling | Op::Taking { .. } => "creating",
            Op::GivingBack { .. } => "removing",
            Op::CheckingOut => "checking out",
        })
    }
}
