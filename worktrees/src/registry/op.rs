//! The further records of a worktree: the operation under way, its place in the pool, its landing.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::registry::Entry;
use crate::registry::is_false;

/// An operation with several steps on a worktree.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", tag = "kind")]
pub(crate) enum Op {
    /// It is being made.
    Creating,
    /// It is being moved to the trash.
    #[serde(rename_all = "camelCase")]
    Removing {
        /// Its directory in the trash, also the name of its rescue refs.
        id: String,
        /// Its directory among git's.
        admin: PathBuf,
        /// The fingerprint of HEAD, index and reflogs when they were rescued.
        seen: u64,
        /// The commit of its branch.
        branch_tip: Option<String>,
        /// True if it had no changes.
        clean: bool,
        /// True if ignored files are worth keeping.
        rescue_ignored: bool,
        /// True if all of it is kept elsewhere, so that its files need not wait in the trash.
        #[serde(default, skip_serializing_if = "is_false")]
        kept_elsewhere: bool,
        /// True if it was in the pool: then the removal is not given up after a crash.
        #[serde(default, skip_serializing_if = "is_false")]
        retiring: bool,
    },
    /// An unusable pooled worktree that will be moved to the trash.
    Retiring,
    /// It is being restored.
    Restoring,
    /// Its directory was gone and is being filled again.
    CheckingOut,
    /// Only a running check uses it, and it holds no work.
    Scratch,
    /// It is being made for the pool.
    Filling,
    /// It is being moved here from the pool.
    #[serde(rename_all = "camelCase")]
    Taking {
        /// Its record in the pool.
        from: Box<Pooled>,
        /// Its directory among git's.
        admin: PathBuf,
    },
    /// It is being moved from here to the pool.
    #[serde(rename_all = "camelCase")]
    GivingBack {
        /// Its record in the pool afterwards.
        to: Box<Pooled>,
        /// Its directory among git's.
        admin: PathBuf,
    },
}

/// A worktree that is ready to be handed out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Pooled {
    /// The entry it would be registered with.
    pub(crate) tree: Entry,
    /// Its sparse patterns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) sparse: Option<String>,
    /// Directories that were linked or copied into it and are kept.
    #[serde(default)]
    pub(crate) directories: Vec<String>,
    /// True if it was used, and the work in it is kept elsewhere.
    #[serde(default, skip_serializing_if = "is_false")]
    pub(crate) used: bool,
}

/// The landing of a worktree's commits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LandingRecord {
    /// The branch, without `refs/heads/`.
    pub into: String,
    /// The commit it was moved to.
    pub commit: String,
    /// The commit of the branch before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// The commit of the worktree that is part of it.
    pub head: String,
    /// The time.
    pub at: String,
    /// True if the branch was about to be moved; the branch itself says if it was.
    #[serde(default, skip_serializing_if = "is_false")]
    pub pending: bool,
    /// True if it was undone: the branch does not have the work any more.
    #[serde(default, skip_serializing_if = "is_false")]
    pub undone: bool,
}
