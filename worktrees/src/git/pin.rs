//! The repository a worktree belongs to, independent of the worktree's own files.
//!
//! An agent can write to `<worktree>/.git`, and to git's directory for the worktree. A file there
//! that leads to another repository would make git, started by ccb, run the programs that that
//! repository's configuration names. So ccb gives git every path, and refuses to start it if the
//! files disagree.

use std::path::{Path, PathBuf};

use crate::git::stay::is_stay;
use crate::git::{config_code, files};
use crate::layout::{Layout, is_check_name};

/// The repository that a git works on.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Pin {
    /// Not in one of ccb's worktrees: git finds its repository.
    Free,
    /// This one.
    To {
        tree: PathBuf,
        admin: PathBuf,
        common: PathBuf,
    },
    /// This one, but its files contradict each other.
    Wrong { tree: PathBuf, why: String },
}

/// The worktree of ccb's that `dir` is in. One for checks has a repository of its own, and no agent
/// works there: it does not count.
fn around(dir: &Path) -> Option<(&Path, Layout)> {
    let ours = |dir: &&Path| {
        dir.parent()
            .is_some_and(|it| it.ends_with(".claude/worktrees"))
    };
    let tree = dir.ancestors().find(ours)?;
    let name = tree.file_name().and_then(|name| name.to_str());
    if name.is_some_and(is_check_name) {
        return None;
    }
    let main = tree.ancestors().nth(3)?;
    Some((tree, Layout::new(&common_of(main)?, main)))
}

/// The main worktree and the shared directory of the repository that has a worktree of ccb's at
/// `tree`, by its path.
pub(crate) fn repository_of(tree: &Path) -> Option<(PathBuf, PathBuf)> {
    let (top, layout) = around(tree)?;
    (top == tree).then_some((layout.main, layout.common))
}

/// The top of the worktree of ccb's that `dir` is in, whatever repositories are inside.
pub(crate) fn tree_around(dir: &Path) -> Option<PathBuf> {
    let dir = dir.canonicalize().ok()?;
    around(&dir).map(|(tree, _)| tree.to_owned())
}

/// The repository of a git that is started in `dir`.
pub(crate) fn of(dir: &Path) -> Pin {
    let Some((tree, layout)) = around(dir) else {
        return Pin::Free;
    };
    let wrong = |why| Pin::Wrong {
        tree: tree.to_owned(),
        why,
    };
    let inside = dir.ancestors().take_while(|dir| *dir != tree);
    let has_git = |dir: &&Path| std::fs::symlink_metadata(dir.join(".git")).is_ok();
    if !has_git(&tree) && !is_stay(&layout, tree) {
        // Abandoned, or not made by git.
        return Pin::Free;
    }
    if let Some(nested) = inside.into_iter().find(has_git) {
        let nested = nested.display();
        return wrong(format!(
            "{nested} is a repository inside it, and ccb starts no git under the configuration \
             of one"
        ));
    }
    let common = layout.common.clone();
    match files::admin_of(&layout, tree) {
        Err(why) => wrong(why),
        Ok(admin) => match config_code::of_tree(&admin) {
            Some(key) => wrong(format!("its own git configuration sets {key}")),
            None => Pin::To {
                tree: tree.to_owned(),
                admin,
                common,
            },
        },
    }
}

/// The shared directory of the repository whose main worktree is `main`.
fn common_of(main: &Path) -> Option<PathBuf> {
    let dot_git = main.join(".git");
    if std::fs::symlink_metadata(&dot_git).ok()?.is_dir() {
        return dot_git.canonicalize().ok();
    }
    let text = String::from_utf8(store::atomic::read(&dot_git).ok()??).ok()?;
    let named = main.join(text.strip_prefix("gitdir:")?.trim());
    let admin = named.canonicalize().ok()?;
    match admin.parent() {
        Some(dir) if dir.ends_with("worktrees") => dir.parent().map(Path::to_owned),
        _ => Some(admin),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::git::Git;
    use std::process::Command;

    /// A repository with one of ccb's worktrees, and a trap in it: a repository that runs a program
    /// whenever a file is added.
    struct Scene {
        dir: tempfile::TempDir,
        tree: PathBuf,
    }

    fn sh(dir: &Path, line: &str) {
        let mut command = Command::new("sh");
        crate::process::forget_git(&mut command);
        let line =
            format!("set -e\ng() {{ git -c user.name=x -c user.email=x@x \"$@\"; }}\n{line}");
        let ended = command.args(["-c", &line]).current_dir(dir).status();
        assert!(ended.unwrap().success(), "{line}");
    }

    fn scene() -> Scene {
        let dir = tempfile::tempdir().unwrap();
        let base = dir.path().canonicalize().unwrap();
        sh(
            &base,
            "g init -q -b main main; cd main; echo a > a; g add a; g commit -q -m a; \
             g worktree add -q -b worktree/t .claude/worktrees/t",
        );
        let tree = base.join("main/.claude/worktrees/t");
        let ran = base.join("ran");
        sh(
            &tree,
            &format!(
                "g init -q trap; g -C trap commit -q --allow-empty -m x; \
                 g -C trap config filter.t.clean 'touch {}; cat'; \
                 echo '* filter=t' > .gitattributes; echo new > new",
                ran.display()
            ),
        );
        Scene { dir, tree }
    }

    fn add(scene: &Scene) -> (bool, bool) {
        let added = Git::at(&scene.tree, "add").args(["-A", "new"]).run();
        let ran = scene.dir.path().join("ran").exists();
        (added.is_ok(), ran)
    }

    #[test]
    fn a_worktree_as_it_was_made_is_used() {
        let scene = scene();
        assert!(matches!(of(&scene.tree), Pin::To { .. }));
        assert_eq!(add(&scene), (true, false));
        assert!(matches!(of(&scene.tree.join("trap")), Pin::Wrong { .. }));
        std::fs::create_dir(scene.tree.join("deep")).unwrap();
        assert!(matches!(of(&scene.tree.join("deep")), Pin::To { .. }));
        assert_eq!(of(scene.dir.path()), Pin::Free);
    }

    #[test]
    fn one_that_leads_elsewhere_is_refused_and_runs_nothing() {
        let linked = "mkdir -p trap/.git/worktrees/w; cp trap/.git/HEAD trap/.git/worktrees/w/; \
             echo ../.. > trap/.git/worktrees/w/commondir; \
             echo \"$PWD/.git\" > trap/.git/worktrees/w/gitdir; \
             echo \"gitdir: $PWD/trap/.git/worktrees/w\" > .git";
        for detour in [
            "echo \"gitdir: $PWD/trap/.git\" > .git",
            "rm .git; mv trap/.git .git",
            "echo \"$PWD/trap/.git\" > \"$(git rev-parse --absolute-git-dir)/commondir\"",
            linked,
            "git config extensions.worktreeConfig true; \
             git config --worktree filter.t.clean \"touch $PWD/../../../../ran; cat\"",
            "git config extensions.worktreeConfig true; \
             git config --worktree include.path \"$PWD/trap/.git/config\"",
        ] {
            let scene = scene();
            sh(&scene.tree, detour);
            assert_eq!(add(&scene), (false, false), "{detour}");
            assert!(matches!(of(&scene.tree), Pin::Wrong { .. }), "{detour}");
            // Without the pin it runs: the trap works.
            let mut plain = Command::new("git");
            crate::process::forget_git(&mut plain);
            let plain = plain.args(["add", "-A", "new"]).current_dir(&scene.tree);
            plain.output().unwrap();
            assert!(scene.dir.path().join("ran").exists(), "{detour}");
        }
    }
}
