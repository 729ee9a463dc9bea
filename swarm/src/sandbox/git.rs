//! What `git commit` writes outside a linked worktree.

use std::fs::File;
use std::io::Read;
use std::path::{Component, Path, PathBuf};

/// git's small files are shorter than this.
const MOST: u64 = 64 * 1024;

/// What committing in `tree` needs to write outside it: nothing in a main worktree or outside git;
/// in a linked one git's directory for it, the objects, and the directories of its branch and
/// reflog, which are made if they are not there.
///
/// Everything here but the repository itself may have been written by an agent: git's directory is
/// taken only if it points back to the tree, and the repository is found by where that directory
/// is, not by what is written in it.
pub fn commit_paths(tree: &Path) -> Result<Vec<PathBuf>, String> {
    let dot_git = tree.join(".git");
    let Ok(meta) = std::fs::symlink_metadata(&dot_git) else {
        return Ok(Vec::new());
    };
    if meta.is_dir() {
        return Ok(Vec::new());
    }
    let wrong = |why: &str| {
        format!(
            "{}: {why}. It may have been changed; see: git worktree repair",
            dot_git.display()
        )
    };
    let text = text_of(&dot_git).ok_or_else(|| wrong("it is not a file of git's"))?;
    let named = text
        .strip_prefix("gitdir:")
        .ok_or_else(|| wrong("it does not name a directory"))?;
    let admin = tree.join(named.trim()).canonicalize();
    let admin = admin.map_err(|_| wrong("it names a directory that is not there"))?;
    let shared = admin
        .parent()
        .filter(|dir| dir.ends_with("worktrees"))
        .and_then(Path::parent);
    let Some(common) = shared else {
        // A submodule, or a repository whose files are elsewhere: they stay as they are.
        return Ok(Vec::new());
    };
    let back = text_of(&admin.join("gitdir")).unwrap_or_default();
    let back = admin.join(back.trim()).canonicalize().ok();
    if back.is_none() || back != dot_git.canonicalize().ok() {
        return Err(wrong("the repository has another worktree there"));
    }
    let mut paths = vec![admin.clone(), common.join("objects")];
    if let Some(branch) = branch_dir(&admin, tree) {
        for dir in [common.join(&branch), common.join("logs").join(&branch)] {
            if let Err(error) = std::fs::create_dir_all(&dir) {
                tracing::debug!(%error, "a directory of refs cannot be made");
            }
            paths.push(dir);
        }
    }
    Ok(paths)
}

/// The working tree that `dir` is in: the nearest directory above with a `.git`, else `dir`.
pub fn tree_around(dir: &Path) -> PathBuf {
    let mut above = dir.ancestors();
    let tree = above.find(|dir| std::fs::symlink_metadata(dir.join(".git")).is_ok());
    tree.unwrap_or(dir).to_owned()
}

/// The directory of the branch that is checked out, from the shared directory.
fn branch_dir(admin: &Path, tree: &Path) -> Option<PathBuf> {
    let head = text_of(&admin.join("HEAD"))?;
    let name = Path::new(head.strip_prefix("ref: ")?.trim());
    let plain = |part: Component<'_>| matches!(part, Component::Normal(_));
    let is_branch = name.starts_with("refs/heads") && name.components().all(plain);
    // Branches of ccb's own worktrees have a directory; an agent that has chosen another branch does
    // not get the one that all branches are in.
    let ours = tree
        .parent()
        .is_some_and(|dir| dir.ends_with(".claude/worktrees"));
    name.parent()
        .filter(|dir| is_branch && (!ours || dir.components().count() > 2))
        .map(Path::to_owned)
}

fn text_of(path: &Path) -> Option<String> {
    let mut text = String::new();
    let file = File::open(path).ok()?;
    file.take(MOST).read_to_string(&mut text).ok()?;
    Some(text)
}
