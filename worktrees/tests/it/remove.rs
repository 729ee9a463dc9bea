//! Removing worktrees and restoring them.

use std::os::unix::fs::symlink;
use store::Explain;

use worktrees::{RemoveRequest, Removed, TreeError, TreeStatus};

use crate::repo::{TestRepo, git, git_command, slug, write};

const DISCARD: RemoveRequest<'_> = RemoveRequest {
    discard: true,
    rescue_ignored: false,
    kept: None,
    hook: None,
};

fn remove(repo: &TestRepo, discard: bool) -> Result<Removed, TreeError> {
    let request = RemoveRequest {
        discard,
        ..RemoveRequest::default()
    };
    repo.trees().remove(&slug("x"), &request)
}

#[test]
fn a_clean_tree_goes_with_its_branch_and_comes_back() {
    let repo = TestRepo::new();
    let before = repo.surroundings();
    repo.create("x");
    write(&repo.tree("x").join("cache.ignored"), "cached");
    let removed = remove(&repo, false).unwrap();
    assert_eq!(removed.entry.status, TreeStatus::Removed);
    assert!(!repo.tree("x").exists());
    assert!(repo.tree_branches().is_empty());
    repo.check_sound();
    assert_eq!(repo.surroundings(), before);

    let back = repo.trees().undo(&slug("x")).unwrap();
    assert_eq!(back.status, TreeStatus::Active);
    assert_eq!(repo.git_in("x", &["status", "--porcelain"]), "");
    assert!(repo.tree("x").join("cache.ignored").exists());
    assert_eq!(repo.tree_branches(), ["worktree/x"]);
    repo.check_sound();
    let error = repo.trees().undo(&slug("x")).unwrap_err();
    assert_eq!(error.kind(), "exists");
    remove(&repo, false).unwrap();
    // The name is free again, and undo restores the last one only if it is.
    assert!(repo.create("x").created);
    assert_eq!(repo.trees().undo(&slug("x")).unwrap_err().kind(), "exists");
    assert_eq!(
        repo.trees().list().unwrap().len(),
        2,
        "removed ones stay listed"
    );
}

#[test]
fn a_tree_with_changes_is_refused_with_the_counts() {
    let repo = TestRepo::new();
    repo.create("x");
    write(&repo.tree("x").join("readme"), "changed\n");
    write(&repo.tree("x").join("new"), "x");
    let error = remove(&repo, false).unwrap_err();
    let TreeError::HasChanges { changes, .. } = &error else {
        panic!("{error}");
    };
    assert_eq!((changes.files, changes.untracked), (1, 1));
    assert!(
        error
            .to_string()
            .contains("1 changed file, 1 untracked file"),
        "{error}"
    );
    assert!(repo.tree("x").join("new").exists());
    assert_eq!(
        repo.trees().get(&slug("x")).unwrap().status,
        TreeStatus::Active
    );
}

#[test]
fn undo_brings_back_files_index_commits_and_an_unfinished_merge() {
    let repo = TestRepo::new();
    repo.create("x");
    let at = repo.tree("x");
    repo.write("readme", "theirs\n");
    repo.git(&["commit", "-qam", "theirs"]);
    write(&at.join("readme"), "ours\n");
    git(&at, &["commit", "-qam", "ours"]);
    git(&at, &["commit", "-q", "--allow-empty", "-m", "dropped"]);
    let dropped = git(&at, &["rev-parse", "HEAD"]).trim().to_owned();
    git(&at, &["reset", "-q", "--hard", "HEAD~1"]);
    write(&at.join("src/lib"), "staged\n");
    git(&at, &["add", "src/lib"]);
    git(&at, &["stash", "-q"]);
    assert!(
        !git_command(&at, &["merge", "main"])
            .output()
            .unwrap()
            .status
            .success()
    );
    write(&at.join("new"), "untracked");
    let view = || {
        let status = git(
            &at,
            &[
                "status",
                "--porcelain=v2",
                "--branch",
                "--untracked-files=all",
            ],
        );
        let log = git(&at, &["reflog"]);
        let stages = git(&at, &["ls-files", "--stage"]);
        (status, log, stages)
    };
    let before = view();
    remove(&repo, true).unwrap();
    assert!(!at.exists());
    // git throws away unreferenced objects; ccb's must survive that.
    repo.git(&[
        "reflog",
        "expire",
        "--expire=now",
        "--expire-unreachable=now",
        "--all",
    ]);
    repo.git(&["gc", "-q", "--prune=now"]);
    repo.git(&["worktree", "prune"]);
    repo.git(&["cat-file", "-e", &dropped]);
    repo.trees().undo(&slug("x")).unwrap();
    assert_eq!(view(), before);
    git(&at, &["merge", "--abort"]);
    repo.check_sound();
}

#[test]
fn staged_blobs_and_conflicts_survive_gc_in_the_trash() {
    let repo = TestRepo::new();
    repo.create("x");
    let at = repo.tree("x");
    write(&at.join("readme"), "only in the index\n");
    git(&at, &["add", "readme"]);
    let blob = git(&at, &["rev-parse", ":readme"]);
    write(&at.join("readme"), "and again changed\n");
    remove(&repo, true).unwrap();
    repo.git(&["gc", "-q", "--prune=now"]);
    assert_eq!(
        repo.git(&["cat-file", "-p", blob.trim()]),
        "only in the index\n"
    );
    repo.trees().undo(&slug("x")).unwrap();
    assert_eq!(git(&at, &["show", ":readme"]), "only in the index\n");
    assert_eq!(
        std::fs::read_to_string(at.join("readme")).unwrap(),
        "and again changed\n"
    );
}

#[test]
fn a_tree_somebody_works_in_stays() {
    let repo = TestRepo::new();
    repo.create("x");
    let trees = repo.trees();
    let first = trees.hold(&slug("x")).unwrap();
    let second = trees.hold(&slug("x")).unwrap();
    let error = remove(&repo, true).unwrap_err();
    assert_eq!(error.kind(), "in_use", "{error}");
    drop(first);
    assert_eq!(remove(&repo, true).unwrap_err().kind(), "in_use");
    assert!(trees.is_held(&slug("x")).unwrap());
    drop(second);
    assert!(!trees.is_held(&slug("x")).unwrap());
    remove(&repo, true).unwrap();
    assert_eq!(
        trees.hold(&slug("x")).unwrap_err().kind(),
        "worktree_not_found"
    );
}

#[test]
fn only_registered_trees_that_are_what_they_should_be() {
    let repo = TestRepo::new();
    assert_eq!(
        remove(&repo, true).unwrap_err().kind(),
        "worktree_not_found"
    );
    repo.git(&["worktree", "add", "-q", ".claude/worktrees/x"]);
    assert_eq!(
        remove(&repo, true).unwrap_err().kind(),
        "worktree_not_found"
    );
    repo.git(&["worktree", "remove", ".claude/worktrees/x"]);
    repo.git(&["branch", "-D", "x"]);

    // Swapped for another repository's worktree, a link, a plain directory.
    let other = TestRepo::new();
    other.create("x");
    repo.create("x");
    let at = repo.tree("x");
    let aside = repo.beside("aside");
    std::fs::rename(&at, &aside).unwrap();
    std::fs::rename(other.tree("x"), &at).unwrap();
    assert_eq!(remove(&repo, true).unwrap_err().kind(), "not_ours");
    std::fs::rename(&at, other.tree("x")).unwrap();
    symlink(&aside, &at).unwrap();
    assert_eq!(remove(&repo, true).unwrap_err().kind(), "not_ours");
    std::fs::remove_file(&at).unwrap();
    write(&at.join("file"), "x");
    assert_eq!(remove(&repo, true).unwrap_err().kind(), "not_ours");
    std::fs::remove_dir_all(&at).unwrap();
    std::fs::rename(&aside, &at).unwrap();

    repo.git(&[
        "worktree",
        "lock",
        "--reason",
        "mine",
        ".claude/worktrees/x",
    ]);
    let error = remove(&repo, true).unwrap_err();
    assert_eq!(error.kind(), "locked");
    assert!(error.to_string().contains("mine"));
    repo.git(&["worktree", "unlock", ".claude/worktrees/x"]);
    assert!(at.join("readme").exists());
    remove(&repo, false).unwrap();
}

#[test]
fn links_in_a_tree_are_moved_not_followed() {
    let repo = TestRepo::new();
    let outside = repo.beside("outside");
    write(&outside.join("precious"), "x");
    repo.create("x");
    symlink(&outside, repo.tree("x").join("link.ignored")).unwrap();
    remove(&repo, false).unwrap();
    assert!(outside.join("precious").exists());
}

#[test]
fn a_branch_that_moved_or_is_used_elsewhere_stays() {
    let repo = TestRepo::new();
    repo.create("x");
    repo.git_in("x", &["checkout", "-q", "--detach"]);
    let other = repo.beside("other");
    repo.git(&[
        "worktree",
        "add",
        "-q",
        other.to_str().unwrap(),
        "worktree/x",
    ]);
    let removed = remove(&repo, true).unwrap();
    assert!(removed.branch_kept.unwrap().contains("elsewhere"));
    assert_eq!(repo.tree_branches(), ["worktree/x"]);
    git(&other, &["commit", "-q", "--allow-empty", "-m", "more"]);
    let error = repo.trees().undo(&slug("x"));
    assert!(error.is_ok(), "its own HEAD was detached: {error:?}");
    repo.check_sound();
}

#[test]
fn undo_refuses_what_is_in_the_way() {
    let repo = TestRepo::new();
    assert_eq!(
        repo.trees().undo(&slug("x")).unwrap_err().kind(),
        "nothing_to_undo"
    );
    repo.create("x");
    remove(&repo, false).unwrap();
    write(&repo.tree("x").join("file"), "x");
    assert_eq!(
        repo.trees().undo(&slug("x")).unwrap_err().kind(),
        "path_taken"
    );
    std::fs::remove_dir_all(repo.tree("x")).unwrap();
    repo.git(&["commit", "-q", "--allow-empty", "-m", "second"]);
    repo.git(&["branch", "worktree/x"]);
    assert_eq!(
        repo.trees().undo(&slug("x")).unwrap_err().kind(),
        "branch_exists"
    );
    repo.git(&["branch", "-q", "-D", "worktree/x"]);
    repo.trees().undo(&slug("x")).unwrap();
    repo.check_sound();
}

#[test]
fn a_tree_whose_directory_is_gone_can_be_removed_with_its_commits_kept() {
    let repo = TestRepo::new();
    repo.create("x");
    repo.git_in("x", &["commit", "-q", "--allow-empty", "-m", "work"]);
    let tip = repo.git_in("x", &["rev-parse", "HEAD"]).trim().to_owned();
    std::fs::remove_dir_all(repo.tree("x")).unwrap();
    assert_eq!(remove(&repo, false).unwrap_err().kind(), "has_changes");
    repo.trees().remove(&slug("x"), &DISCARD).unwrap();
    assert!(repo.tree_branches().is_empty());
    repo.git(&["gc", "-q", "--prune=now"]);
    repo.git(&["cat-file", "-e", &tip]);
    repo.check_sound();
}

#[test]
fn git_clean_and_stash_in_the_main_tree_lose_nothing_of_ours() {
    let repo = TestRepo::new();
    repo.create("x");
    repo.create("gone");
    repo.trees().remove(&slug("gone"), &DISCARD).unwrap();
    write(&repo.tree("x").join("untracked"), "x");
    write(&repo.tree("x").join("cache.ignored"), "x");
    repo.write("mine", "x");
    repo.git(&["clean", "-fdxq"]);
    assert!(!repo.main().join("mine").exists(), "it did clean");
    repo.write("readme", "dirty\n");
    repo.write("mine", "x");
    repo.git(&["stash", "-aq"]);
    assert!(!repo.main().join("mine").exists(), "it did stash");
    assert!(repo.tree("x").join("untracked").exists());
    assert!(repo.tree("x").join("cache.ignored").exists());
    assert_eq!(repo.trees().changes(&slug("x")).unwrap().untracked, 1);
    repo.trees().undo(&slug("gone")).unwrap();
    repo.git(&["stash", "pop", "-q"]);
    repo.check_sound();
}

/// Another git may be in the middle of a commit.
#[test]
fn a_tree_whose_index_is_locked_is_not_taken_away_unasked() {
    let repo = TestRepo::new();
    repo.create("x");
    let lock = repo.main().join(".git/worktrees/x/index.lock");
    write(&lock, "");
    let error = remove(&repo, false).unwrap_err();
    assert!(error.to_string().contains("index.lock"), "{error}");
    assert!(repo.tree("x").exists());
    std::fs::remove_file(&lock).unwrap();
    remove(&repo, false).unwrap();
    repo.trees().undo(&slug("x")).unwrap();
    write(&lock, "");
    remove(&repo, true).unwrap();
}
