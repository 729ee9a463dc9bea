//! Repositories that libgit2 has opened. Opening one reads a dozen files; a process that manages
//! worktrees would do it for every question.

use std::cell::RefCell;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::{Mutex, Once, PoisonError};

use git2::{ConfigLevel, Repository, RepositoryOpenFlags};
use store::atomic::{self, Durability};

use crate::git::pin::{self, Pin};
use crate::layout::Layout;

/// The setting that makes libgit2 sync refs. Only a file can have it.
const SYNCED: &str = "[core]\n\tfsyncObjectFiles = true\n";

/// The identity of an open repository: another one may come to the same place.
#[derive(Clone, PartialEq, Eq)]
struct Identity {
    common: PathBuf,
    inode: u64,
    synced: bool,
}

/// An open repository of this thread.
struct CachedRepo {
    identity: Identity,
    repository: Rc<Repository>,
}

thread_local! {
    static MAIN: RefCell<Handed> = const { RefCell::new(Handed(None)) };
    static SYNCED_MAIN: RefCell<Handed> = const { RefCell::new(Handed(None)) };
}

/// Maximum of open repositories kept of ended threads.
const MOST_SPARE: usize = 8;

/// Open repositories of ended threads, for new ones: a director has a thread for each task.
static SPARE: Mutex<Vec<(Identity, Repository)>> = Mutex::new(Vec::new());

/// The open repository of a thread, passed on when the thread ends.
struct Handed(Option<CachedRepo>);

impl Drop for Handed {
    fn drop(&mut self) {
        let Some(CachedRepo {
            identity,
            repository,
        }) = self.0.take()
        else {
            return;
        };
        if let Some(repository) = Rc::into_inner(repository) {
            let mut spare = SPARE.lock().unwrap_or_else(PoisonError::into_inner);
            if spare.len() >= MOST_SPARE {
                spare.remove(0);
            }
            spare.push((identity, repository));
        }
    }
}

/// A repository that an ended thread had open.
fn spare(wanted: &Identity) -> Option<Repository> {
    let mut spare = SPARE.lock().unwrap_or_else(PoisonError::into_inner);
    let at = spare.iter().position(|(identity, _)| identity == wanted)?;
    Some(spare.swap_remove(at).1)
}

/// The repository that `dir` is in, newly opened.
pub(super) fn open(dir: &Path) -> Option<Repository> {
    // libgit2 would look for every file of a tree object that it writes. git has just written the
    // new ones, and the check of the commit needs all of them.
    static LENIENT: Once = Once::new();
    LENIENT.call_once(|| git2::opts::strict_object_creation(false));
    let opened = match pin::of(dir) {
        Pin::Free => Repository::discover(dir),
        // By git's own records of it: the worktree's own files may lead anywhere.
        Pin::To { admin, .. } => {
            let nowhere_else = RepositoryOpenFlags::NO_SEARCH;
            Repository::open_ext(&admin, nowhere_else, std::iter::empty::<&Path>())
        }
        Pin::Wrong { .. } => return None,
    };
    opened
        .map_err(|error| tracing::debug!(%error, "libgit2 cannot open it; git will do"))
        .ok()
}

/// The same, for changing refs: their values are on the disk before they have their names.
pub(super) fn open_synced(layout: &Layout, dir: &Path) -> Option<Repository> {
    let settings = layout.libgit2_settings();
    if !settings.exists() {
        let bytes = SYNCED.as_bytes();
        atomic::replace(&layout.tmp(), &settings, bytes, Durability::Relaxed).ok()?;
    }
    let repo = open(dir)?;
    // The setting that the repository itself uses, read with the first ref.
    let mut config = repo.config().ok()?;
    config.add_file(&settings, ConfigLevel::App, false).ok()?;
    Some(repo)
}

/// The repository of the main working tree, opened once per thread.
pub(super) fn main(layout: &Layout) -> Option<Rc<Repository>> {
    MAIN.with_borrow_mut(|kept| kept_open(kept, layout, false, || open(&layout.main)))
}

/// The same, for changing refs.
pub(super) fn synced_main(layout: &Layout) -> Option<Rc<Repository>> {
    SYNCED_MAIN
        .with_borrow_mut(|kept| kept_open(kept, layout, true, || open_synced(layout, &layout.main)))
}

fn kept_open(
    kept: &mut Handed,
    layout: &Layout,
    synced: bool,
    open: impl FnOnce() -> Option<Repository>,
) -> Option<Rc<Repository>> {
    let identity = Identity {
        common: layout.common.clone(),
        inode: std::fs::metadata(&layout.common).ok()?.ino(),
        synced,
    };
    if let Some(kept) = &kept.0
        && kept.identity == identity
    {
        return Some(Rc::clone(&kept.repository));
    }
    let repository = Rc::new(spare(&identity).or_else(open)?);
    kept.0 = Some(CachedRepo {
        identity,
        repository: Rc::clone(&repository),
    });
    Some(repository)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_goes_on_with_what_another_one_had_open() {
        let dir = tempfile::tempdir().unwrap();
        let main_tree = dir.path().canonicalize().unwrap();
        Repository::init(&main_tree).unwrap();
        let layout = Layout::new(&main_tree.join(".git"), &main_tree);
        let opened = || {
            main(&layout)
                .map(|repository| Rc::as_ptr(&repository))
                .is_some()
        };
        let identity = || Identity {
            common: layout.common.clone(),
            inode: std::fs::metadata(&layout.common).unwrap().ino(),
            synced: false,
        };
        std::thread::scope(|scope| {
            assert!(scope.spawn(opened).join().unwrap());
        });
        let left = spare(&identity()).expect("the open repository of the thread is left");
        assert!(spare(&identity()).is_none(), "no other thread has it now");
        assert_eq!(left.path().canonicalize().unwrap(), layout.common);
    }
}
