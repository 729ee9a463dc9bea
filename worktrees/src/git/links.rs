//! Refs and their logs are never written through a symbolic link.
//!
//! git follows links below its directory: if a branch's log is a link, git appends the message of a
//! commit to whatever file the link names. An agent that is not confined can put one there.

use std::path::{Path, PathBuf};

use crate::error::TreeError;
use crate::layout::Layout;

/// An error if the file of the ref `name`, or a log that a change of it appends to, is reached
/// through a link. `admin` is git's directory for the worktree in which git changes it.
pub(crate) fn refuse(layout: &Layout, admin: Option<&Path>, name: &str) -> Result<(), TreeError> {
    let common = &layout.common;
    let mut files = vec![(common, name.to_owned()), (common, format!("logs/{name}"))];
    let admin = admin.map(Path::to_owned);
    if let Some(admin) = &admin {
        files.extend(["HEAD", "logs/HEAD"].map(|file| (admin, file.to_owned())));
    }
    match files.iter().find_map(|(top, file)| link_on_way(top, file)) {
        None => Ok(()),
        Some(path) => Err(TreeError::NotOurs {
            why: "it is a symbolic link, and ccb changes no ref through one. Delete it, and run \
                  the command again"
                .into(),
            path,
        }),
    }
}

/// The first part of `file` below `top` that is a link.
fn link_on_way(top: &Path, file: &str) -> Option<PathBuf> {
    let mut path = top.to_owned();
    for part in Path::new(file) {
        path.push(part);
        match std::fs::symlink_metadata(&path) {
            Ok(meta) if meta.is_symlink() => return Some(path),
            Ok(_) => {}
            Err(_) => return None,
        }
    }
    None
}
