//! What the registry says about a tree besides what it is: what is being done to it, what it
//! was in the pool, where its commits went.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::registry::Entry;
use crate::registry::is_false;

/// Something with several steps that is being done to a tree.
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
        /// Where its branch stood.
        branch_tip: Option<String>,
        /// True if it had no changes.
        clean: bool,
        /// True if ignored files are worth keeping.
        rescue_ignored: bool,
        /// True if somebody keeps all of it elsewhere, so that its files need not wait in the
        /// trash.
        #[serde(default, skip_serializing_if = "is_false")]
        kept_elsewhere: bool,
        /// True if it was in the pool: then the removal is not given up after a crash.
        #[serde(default, skip_serializing_if = "is_false")]
        retiring: bool,
    },
    /// It was in the pool, is of no use there, and is about to be moved to the trash.
    Retiring,
    /// It is being brought back.
    Restoring,
    /// Its directory was gone and is being filled again.
    CheckingOut,
    /// It is ours alone for as long as a check runs, and holds nothing of anybody's.
    Scratch,
    /// It is being made for the pool.
    Filling,
    /// It is being moved here from the pool.
    #[serde(rename_all = "camelCase")]
    Taking {
        /// As it was there.
        from: Box<Pooled>,
        /// Its directory among git's.
        admin: PathBuf,
    },
    /// It is being moved from here to the pool.
    #[serde(rename_all = "camelCase")]
    GivingBack {
        /// As it will be there.
        to: Box<Pooled>,
        /// Its directory among git's.
        admin: PathBuf,
    },
}

/// A tree that is ready to be handed out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Pooled {
    /// As it would be registered.
    pub(crate) tree: Entry,
    /// Its sparse patterns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) sparse: Option<String>,
    /// Directories that were linked or copied into it and stay.
    #[serde(default)]
    pub(crate) directories: Vec<String>,
    /// Somebody has worked in it, and what that came to is kept elsewhere.
    #[serde(default, skip_serializing_if = "is_false")]
    pub(crate) used: bool,
}

/// Where the commits of a tree went.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LandingRecord {
    /// The branch, without `refs/heads/`.
    pub into: String,
    /// The commit it was moved to.
    pub commit: String,
    /// Where the branch stood before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// The commit of the tree that is part of it.
    pub head: String,
    /// When.
    pub at: String,
    /// The branch was about to be moved; whether it was, it says itself.
    #[serde(default, skip_serializing_if = "is_false")]
    pub pending: bool,
    /// Somebody undid it: the branch does not have the work any more.
    #[serde(default, skip_serializing_if = "is_false")]
    pub undone: bool,
}
