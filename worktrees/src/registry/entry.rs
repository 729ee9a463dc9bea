//! One worktree as the registry knows it.

use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::error::TreeError;
use crate::registry::{LandingRecord, Op};
use crate::slug::Slug;

store::words! {
    /// The use of a worktree.
    pub enum TreeStatus {
        /// In use.
        Active = "active",
        /// Kept until the user removes it.
        Kept = "kept",
        /// Removed; it may still be in the trash.
        Removed = "removed",
    }
}

/// A worktree in the trash.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Trashed {
    /// Its directory in the trash; its rescue refs are `refs/ccb/rescue/<id>/…`.
    pub id: String,
    /// When it was removed.
    pub at: String,
    /// The name of its directory among git's.
    pub admin: String,
    /// The commit of its branch, if the branch was deleted with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch_tip: Option<String>,
    /// True if it had no changes.
    #[serde(default)]
    pub clean: bool,
    /// True to keep ignored files, too, when the trash is emptied.
    #[serde(default)]
    pub rescue_ignored: bool,
    /// True if the directory was deleted; only rescue refs are left.
    #[serde(default, skip_serializing_if = "is_false")]
    pub emptied: bool,
}

/// A file or link that the set-up placed in a worktree. While it is unchanged it is no change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Placed {
    /// Relative to the worktree.
    pub(crate) path: String,
    /// The target of a link.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) link: Option<String>,
    /// The fingerprint of a file's content.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) fingerprint: Option<u64>,
}

/// One worktree.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Entry {
    /// Its name as given.
    pub name: String,
    /// Its path, absolute.
    pub path: String,
    /// Its branch without `refs/heads/`; `None` for a worktree a hook made.
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
    /// The task it was made for, as `list#id`. Set from the first moment until the worktree is
    /// taken for another purpose, also if the task is done in another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub made_for: Option<String>,
    /// Its use.
    pub status: TreeStatus,
    /// When it was made.
    pub created_at: String,
    /// The time of the last request for it, as far as this file knows.
    pub last_used_at: String,
    /// True if a hook made it: never judged, never removed without one.
    #[serde(default, skip_serializing_if = "is_false")]
    pub hook_based: bool,
    /// True if only some paths are checked out.
    #[serde(default, skip_serializing_if = "is_false")]
    pub sparse: bool,
    /// Its place in the trash, once removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trash: Option<Trashed>,
    /// The landing of its commits, once merged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub merged: Option<LandingRecord>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) placed: Vec<Placed>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) op: Option<Op>,
    /// Unknown keys, kept unchanged.
    #[serde(flatten)]
    pub(crate) extra: Map<String, Value>,
}

pub(crate) fn is_false(value: &bool) -> bool {
    !value
}

impl Entry {
    /// Marks it as removed into the trash.
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

    /// Its name, checked: the registry may have been edited.
    pub(crate) fn slug(&self) -> Result<Slug, TreeError> {
        Slug::new(&self.name)
    }

    /// The list and the id of the task it was made for.
    pub fn made_for(&self) -> Option<(&str, &str)> {
        self.made_for.as_deref()?.rsplit_once('#')
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        Path::new(&self.path)
    }

    /// True if it can be used: neither removed nor half made.
    pub fn is_live(&self) -> bool {
        let half_made = matches!(
            self.op,
            Some(Op::Creating | Op::Scratch | Op::Filling | Op::Taking { .. })
        );
        self.status != TreeStatus::Removed && !half_made
    }

    /// True if it serves only ccb's own purposes.
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
