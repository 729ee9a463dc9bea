//! git's own record of linked worktrees, and refs: finding and changing them by exact value.

use std::path::{Path, PathBuf};

use store::atomic;

use crate::error::TreeError;
use crate::git::{Git, Head, files, in_process, line, links};
use crate::layout::{Layout, entries};

/// git's directory for the worktree at `path`, even if the worktree is gone.
pub(crate) fn find(layout: &Layout, path: &Path) -> Option<PathBuf> {
    let of_path = |admin: &PathBuf| files::tree_of(admin).as_deref() == Some(path);
    all(layout).into_iter().find(of_path)
}

/// git's directories of all linked worktrees.
pub(crate) fn all(layout: &Layout) -> Vec<PathBuf> {
    entries(&layout.admin_dirs())
}

/// Records that an interrupted `git worktree add` for this name left, and that name no worktree.
pub(crate) fn unfinished(layout: &Layout, flat: &str) -> Vec<PathBuf> {
    // git appends a number where the plain name is taken.
    let ours = |dir: &PathBuf| {
        let name = dir.file_name().and_then(|name| name.to_str());
        let rest = name.and_then(|name| name.strip_prefix(flat));
        rest.is_some_and(|rest| rest.bytes().all(|byte| byte.is_ascii_digit()))
    };
    let half = |dir: &PathBuf| {
        let empty =
            |file: &str| std::fs::metadata(dir.join(file)).map_or(0, |meta| meta.len()) == 0;
        empty("gitdir") && empty("HEAD") && empty("index")
    };
    all(layout).into_iter().filter(ours).filter(half).collect()
}

/// True if a worktree has this branch checked out.
pub(crate) fn is_checked_out(layout: &Layout, branch: &str) -> Result<bool, TreeError> {
    let reference = format!("refs/heads/{branch}");
    if layout.common.join("reftable").exists() {
        let bytes = layout
            .git("for-each-ref")
            .args(["--format=%(worktreepath)", &reference])
            .run()?;
        return Ok(!line(&bytes).is_empty());
    }
    let mut heads = all(layout);
    heads.push(layout.common.clone());
    Ok(heads
        .iter()
        .any(|dir| matches!(files::head(layout, dir), Head::Branch(name, _) if name == reference)))
}

/// Makes new refs, all or none; one that exists with another value is an error.
pub(crate) fn create_refs(layout: &Layout, refs: &[(String, String)]) -> Result<(), TreeError> {
    for (name, _) in refs {
        links::refuse(layout, None, name)?;
    }
    let made = |refs: &[&(String, String)]| {
        let create = |(name, oid): &&(String, String)| format!("create {name} {oid}\n");
        update_refs(layout, refs.iter().map(create).collect())
    };
    if let [(name, oid)] = refs
        && in_process::create_ref(layout, name, oid).is_some()
    {
        return Ok(());
    }
    made(&refs.iter().collect::<Vec<_>>()).or_else(|error| {
        // A killed process may have left a git that was just about to do the same; and a killed git
        // has made some of them.
        let history = layout.history();
        let missing = |(name, oid): &&(String, String)| {
            !matches!(history.tip(name), Ok(Some(tip)) if tip == *oid)
        };
        let missing: Vec<_> = refs.iter().filter(missing).collect();
        match missing.len() == refs.len() {
            true => Err(error),
            false => made(&missing),
        }
    })
}

/// Deletes a ref if it is at `expected`; a missing one is fine.
pub(crate) fn delete_ref(layout: &Layout, name: &str, expected: &str) -> Result<(), TreeError> {
    links::refuse(layout, None, name)?;
    if in_process::delete_ref(layout, name, expected).is_some() {
        return Ok(());
    }
    update_refs(layout, format!("delete {name} {expected}\n")).or_else(|error| {
        match layout.history().tip(name) {
            Ok(None) => Ok(()),
            _ => Err(error),
        }
    })
}

/// Writes a commit object as given; returns its name.
pub(crate) fn write_commit(layout: &Layout, bytes: Vec<u8>) -> Result<String, TreeError> {
    if let Some(written) = in_process::write_commit(layout, &bytes) {
        return Ok(written);
    }
    layout
        .git("hash-object")
        .args(["-t", "commit", "-w", "--stdin"])
        .input(bytes)
        .line()
}

fn update_refs(layout: &Layout, lines: String) -> Result<(), TreeError> {
    if lines.is_empty() {
        return Ok(());
    }
    Git::with_config(&layout.main, "update-ref", &["core.logAllRefUpdates=true"])
        .args(["-m", "ccb", "--stdin"])
        .input(lines.into_bytes())
        .run()?;
    Ok(())
}

/// Removes the lock on git's directory for a worktree if ccb, or git for ccb, put it there.
pub(crate) fn unlock(admin: &Path, ours: &str) -> Result<(), TreeError> {
    if files::locked(admin).as_deref() == Some(ours) {
        atomic::remove(&admin.join("locked"))?;
    }
    Ok(())
}
