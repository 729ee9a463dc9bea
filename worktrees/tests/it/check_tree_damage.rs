//! Whatever damage a check worktree takes between two checks, the next check finds exactly its
//! commit.

use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use worktrees::AfterCheck;

use crate::check_tree::{assert_exact, take, two_commits};
use crate::repo::{TestRepo, git, git_command, write};

/// Damage to the worktree, in words and as a function.
type Damage = (&'static str, fn(&TestRepo, &Path));

const DAMAGES: &[Damage] = &[
    ("no .git", |_, tree| {
        std::fs::remove_dir_all(tree.join(".git")).unwrap();
    }),
    ("a .git file", |_, tree| {
        std::fs::remove_dir_all(tree.join(".git")).unwrap();
        write(&tree.join(".git"), "gitdir: nowhere\n");
    }),
    ("no directory", |_, tree| {
        std::fs::remove_dir_all(tree).unwrap();
    }),
    ("a garbage index", |_, tree| {
        write(&tree.join(".git/index"), "DIRC garbage");
    }),
    ("an empty index", |_, tree| {
        write(&tree.join(".git/index"), "");
    }),
    ("no index", |_, tree| {
        std::fs::remove_file(tree.join(".git/index")).unwrap();
    }),
    ("a stale lock", |_, tree| {
        write(&tree.join(".git/index.lock"), "");
    }),
    ("HEAD nowhere", |_, tree| {
        write(&tree.join(".git/HEAD"), "ref: refs/x\n");
    }),
    ("garbage refs", |_, tree| {
        write(&tree.join(".git/packed-refs"), "garbage\n");
        write(&tree.join(".git/refs/heads/main"), "garbage\n");
    }),
    ("objects elsewhere", |_, tree| {
        write(&tree.join(".git/objects/info/alternates"), "/nowhere\n");
    }),
    ("assume-unchanged", |_, tree| {
        git(tree, &["update-index", "--assume-unchanged", "readme"]);
        write(&tree.join("readme"), "hidden\n");
    }),
    ("skip-worktree", |_, tree| {
        git(tree, &["update-index", "--skip-worktree", "readme"]);
        write(&tree.join("readme"), "hidden\n");
    }),
    ("skip-worktree in an index of version 4", |_, tree| {
        git(
            tree,
            &[
                "update-index",
                "--index-version",
                "4",
                "--skip-worktree",
                "readme",
            ],
        );
        write(&tree.join("readme"), "hidden\n");
    }),
    ("a filter and a hook", |_, tree| {
        git(tree, &["config", "filter.x.smudge", "tr a-z A-Z"]);
        write(&tree.join(".git/info/attributes"), "* filter=x\n");
        let hook = tree.join(".git/hooks/post-checkout");
        write(&hook, "#!/bin/sh\necho hook > hook\n");
        let run = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(&hook, run).unwrap();
        write(&tree.join("readme"), "changed\n");
    }),
    ("files in git's list of ignored ones", |_, tree| {
        write(&tree.join(".git/info/exclude"), "hidden\n");
        write(&tree.join("hidden"), "x");
    }),
    ("an ignored file", |repo, tree| {
        // File systems count time in steps.
        let changed = |path: &Path| {
            let meta = std::fs::metadata(path).unwrap();
            (meta.ctime(), meta.ctime_nsec())
        };
        let planted = tree.join("planted.ignored");
        write(&planted, "x");
        while changed(&planted) <= changed(&state(repo)) {
            write(&planted, "x");
        }
    }),
    ("a commit", |_, tree| {
        write(&tree.join("readme"), "committed\n");
        git(tree, &["commit", "-qam", "an agent was here"]);
    }),
    ("a merge under way", |_, tree| {
        write(&tree.join("readme"), "other\n");
        git(tree, &["commit", "-qam", "other"]);
        let merge = git_command(tree, &["merge", "-q", "main"]).output();
        assert!(!merge.unwrap().status.success());
    }),
    ("a directory that is a link", |repo, tree| {
        std::fs::remove_dir_all(tree.join("src")).unwrap();
        symlink(repo.main(), tree.join("src")).unwrap();
    }),
    ("a directory without rights to write", |_, tree| {
        write(&tree.join("shut/file"), "x");
        let shut = std::fs::Permissions::from_mode(0o500);
        std::fs::set_permissions(tree.join("shut"), shut).unwrap();
    }),
    ("a garbage state", |repo, _| write(&state(repo), "garbage")),
    ("an empty state", |repo, _| write(&state(repo), "")),
    ("no state", |repo, _| {
        std::fs::remove_file(state(repo)).unwrap();
    }),
    ("a state of a newer version", |repo, _| {
        write(&state(repo), "{\"v\":9}");
    }),
];

fn state(repo: &TestRepo) -> PathBuf {
    repo.ours().join("checks/ccb-check-1.json")
}

#[test]
fn whatever_is_done_to_an_idle_check_tree_the_next_check_is_exact() {
    for (about, damage) in DAMAGES {
        let repo = TestRepo::new();
        let (first, second) = two_commits(&repo);
        take(&repo, &first).release(AfterCheck::Keep);
        let tree = repo.tree("ccb-check-1");
        damage(&repo, &tree);
        let taken = take(&repo, &second);
        assert_exact(&repo, taken.path(), &second, &[], about);
        assert!(!repo.main().join("hook").exists(), "{about}");
        taken.release(AfterCheck::Keep);
        let taken = take(&repo, &first);
        assert_exact(&repo, taken.path(), &first, &[], about);
        taken.release(AfterCheck::Keep);
        assert_eq!(repo.git(&["status", "--porcelain"]), "", "{about}");
        repo.trees().drop_check_trees(true).unwrap();
        assert_eq!(repo.trees().check_trees(), Vec::<String>::new(), "{about}");
    }
}
