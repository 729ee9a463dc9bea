//! Repositories that libgit2 has opened. Opening one reads a dozen files; a process that looks after
//! worktrees would do it for every question.

use std::cell::RefCell;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Once;

use git2::{ConfigLevel, Repository};
use store::atomic::{self, Durability};

use crate::layout::Layout;

/// Makes libgit2 sync refs. Only a file can say so.
const SYNCED: &str = "[core]\n\tfsyncObjectFiles = true\n";

/// An open repository, and what it is known by: another one may come to the same place.
struct Kept {
    common: PathBuf,
    inode: u64,
    repository: Rc<Repository>,
}

thread_local! {
    static MAIN: RefCell<Option<Kept>> = const { RefCell::new(None) };
    static SYNCED_MAIN: RefCell<Option<Kept>> = const { RefCell::new(None) };
}

/// The repository that `dir` is in, newly opened.
pub(super) fn open(dir: &Path) -> Option<Repository> {
    // It would look for every file of a tree that is written. git has just written those that are
    // new, and the check of the commit needs all of them.
    static SPARE: Once = Once::new();
    SPARE.call_once(|| git2::opts::strict_object_creation(false));
    Repository::discover(dir)
        .map_err(|error| tracing::debug!(%error, "libgit2 cannot open it; git will do"))
        .ok()
}

/// The same, for changing refs: what they say is on the disk before they have their names.
pub(super) fn open_synced(layout: &Layout, dir: &Path) -> Option<Repository> {
    let settings = layout.libgit2_settings();
    if !settings.exists() {
        let bytes = SYNCED.as_bytes();
        atomic::replace(&layout.tmp(), &settings, bytes, Durability::Relaxed).ok()?;
    }
    let repo = open(dir)?;
    // The one the repository itself uses, read when the first ref is.
    let mut config = repo.config().ok()?;
    config.add_file(&settings, ConfigLevel::App, false).ok()?;
    Some(repo)
}

/// The repository of the main working tree, opened once per thread.
pub(super) fn main(layout: &Layout) -> Option<Rc<Repository>> {
    MAIN.with_borrow_mut(|kept| kept_open(kept, layout, || open(&layout.main)))
}

/// The same, for changing refs.
pub(super) fn synced_main(layout: &Layout) -> Option<Rc<Repository>> {
    SYNCED_MAIN
        .with_borrow_mut(|kept| kept_open(kept, layout, || open_synced(layout, &layout.main)))
}

fn kept_open(
    kept: &mut Option<Kept>,
    layout: &Layout,
    open: impl FnOnce() -> Option<Repository>,
) -> Option<Rc<Repository>> {
    let inode = std::fs::metadata(&layout.common).ok()?.ino();
    if let Some(kept) = kept
        && (&kept.common, kept.inode) == (&layout.common, inode)
    {
        return Some(Rc::clone(&kept.repository));
    }
    let repository = Rc::new(open()?);
    *kept = Some(Kept {
        common: layout.common.clone(),
        inode,
        repository: Rc::clone(&repository),
    });
    Some(repository)
}
