//! Submodules that an agent initialised: their repositories are in its own `.git`, and are moved
//! away with it.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use store::atomic;
use store::beneath::Root;

use crate::error::TreeError;
use crate::git::stay::Left;
use crate::git::{Git, zero_split};
use crate::private::Claims;

/// Removes the `.git` files of the submodules in `tree` that lead into the private repository,
/// which is at `git_dir` by now: git could do nothing in the worktree as long as they lead nowhere.
/// Their files are kept. A submodule at another commit than the worktree names is kept as it is.
pub(super) fn let_go(tree: &Path, git_dir: &Path, left: &mut Left) -> Result<(), TreeError> {
    let listed = Git::at(tree, "ls-files").args(["--stage", "-z"]).run()?;
    for record in zero_split(&listed) {
        let Some((wanted, path)) = gitlink(record) else {
            continue;
        };
        let inside = tree.join(path);
        let dot_git = inside.join(".git");
        let real = (path.ancestors()).all(|above| is_dir(&tree.join(above)));
        let Some(module) = module_of(&inside, &dot_git, tree).filter(|_| real) else {
            continue;
        };
        if Claims::head_of(&git_dir.join(&module)).as_deref() == Some(wanted) {
            atomic::remove(&dot_git)?;
            if let (Some(path), Some(module)) = (path.to_str(), module.to_str()) {
                left.modules.push((path.to_owned(), module.to_owned()));
            }
        } else {
            let name = path.to_string_lossy().into_owned();
            left.moved_module.get_or_insert(name);
        }
    }
    Ok(())
}

/// Restores the `.git` files that [`let_go`] removed, for the next agent. A file in their place is
/// the user's or the agent's, and the submodule has to be initialised again.
pub(super) fn take_up(tree: &Path, left: &Left) {
    let Ok(root) = Root::open(tree) else {
        return;
    };
    for (path, module) in &left.modules {
        let up = "../".repeat(Path::new(path).components().count());
        let text = format!("gitdir: {up}.git/{module}\n");
        let put = root
            .target(&Path::new(path).join(".git"), false)
            .and_then(|target| match target.current()? {
                None => target.replace(text.as_bytes()).map(drop),
                Some(_) => Ok(()),
            });
        if let Err(error) = put {
            tracing::info!(%error, path, "the submodule has to be initialised again");
        }
    }
}

/// The commit and the path of an index entry for another repository.
fn gitlink(record: &[u8]) -> Option<(&str, &Path)> {
    let rest = record.strip_prefix(b"160000 ")?;
    let tab = rest.iter().position(|byte| *byte == b'\t')?;
    let commit = std::str::from_utf8(&rest[..tab]).ok()?.split(' ').next()?;
    let path = Path::new(OsStr::from_bytes(&rest[tab + 1..]));
    Some((commit, path))
}

fn is_dir(path: &Path) -> bool {
    std::fs::symlink_metadata(path).is_ok_and(|meta| meta.is_dir())
}

/// The path of a submodule's repository below the worktree's `.git`, by its own `.git` file.
fn module_of(inside: &Path, dot_git: &Path, tree: &Path) -> Option<PathBuf> {
    let text = String::from_utf8(atomic::read(dot_git).ok()??).ok()?;
    let named = inside.join(text.strip_prefix("gitdir:")?.trim());
    let mut plain = PathBuf::new();
    for part in named.components() {
        match part {
            Component::ParentDir => drop(plain.pop()),
            Component::CurDir => {}
            part => plain.push(part),
        }
    }
    let below = plain.strip_prefix(tree.join(".git")).ok()?;
    below.starts_with("modules").then(|| below.to_owned())
}
