//! The `.git` of its own that an agent has in its worktree, from outside.

use std::path::{Path, PathBuf};

use worktrees::{ChangeState, GivenBack, Lease, RemoveRequest, SetUp, Trees};

use crate::repo::{TestRepo, git_command, slug, write};

/// The output of git, without the end of the last line.
fn git(dir: &Path, args: &[&str]) -> String {
    crate::repo::git(dir, args).trim_end().to_owned()
}

fn main_git(repo: &TestRepo, args: &[&str]) -> String {
    git(repo.main(), args)
}

/// A worktree with an agent inside.
fn inside(repo: &TestRepo) -> (Trees, Lease, PathBuf) {
    repo.create("x");
    let trees = repo.trees();
    let lease = enter(&trees);
    (trees, lease, repo.tree("x"))
}

fn enter(trees: &Trees) -> Lease {
    let mut lease = trees.hold(&slug("x")).unwrap();
    let without = trees.enter(&slug("x"), &mut lease).unwrap();
    assert_eq!(without, None);
    lease
}

fn leave(trees: &Trees, mut lease: Lease) -> Option<String> {
    trees.leave(&slug("x"), Some(&mut lease)).unwrap()
}

/// Properties of every worktree that no agent is in.
fn assert_ordinary(repo: &TestRepo) {
    let tree = repo.tree("x");
    assert!(tree.join(".git").is_file());
    let private = repo.ours().join("private/x");
    for name in ["stay.json", "new", "out"] {
        assert!(
            std::fs::symlink_metadata(private.join(name)).is_err(),
            "{name}"
        );
    }
    main_git(repo, &["fsck", "--strict", "--no-dangling"]);
    main_git(repo, &["worktree", "list", "--porcelain"]);
    assert_eq!(
        main_git(repo, &["worktree", "prune", "--dry-run", "-v"]),
        ""
    );
}

fn commit(tree: &Path, file: &str, text: &str) -> String {
    write(&tree.join(file), text);
    git(tree, &["add", "-A"]);
    git(tree, &["commit", "-qm", text.trim()]);
    git(tree, &["rev-parse", "HEAD"])
}

#[test]
fn an_agent_uses_git_as_in_a_repository_of_its_own() {
    let repo = TestRepo::new();
    let (trees, lease, tree) = inside(&repo);
    assert!(tree.join(".git").is_dir());
    assert_eq!(git(&tree, &["status", "--porcelain"]), "");
    assert_eq!(git(&tree, &["branch", "--show-current"]), "worktree/x");
    let before = main_git(&repo, &["for-each-ref"]);
    let own = commit(&tree, "readme", "two\n");
    write(&tree.join("readme"), "stashed\n");
    git(&tree, &["stash", "-q"]);
    git(&tree, &["tag", "mine"]);
    git(&tree, &["checkout", "-qb", "other"]);
    let last = commit(&tree, "readme", "three\n");
    git(&tree, &["notes", "add", "-m", "note"]);
    git(&tree, &["gc", "-q"]);
    assert_eq!(
        main_git(&repo, &["for-each-ref"]),
        before,
        "nothing outside has moved"
    );
    assert_eq!(leave(&trees, lease), None);
    assert_ordinary(&repo);
    assert_eq!(
        main_git(&repo, &["rev-parse", "worktree/x", "worktree/x~"]),
        format!("{last}\n{own}")
    );
    assert_eq!(
        git(&tree, &["status", "--porcelain", "--branch"]),
        "## worktree/x"
    );
    let names = main_git(&repo, &["for-each-ref", "--format=%(refname)"]);
    assert_eq!(names, "refs/heads/main\nrefs/heads/worktree/x");
    let found = trees.changes(&slug("x")).unwrap();
    assert_eq!((found.commits, found.stashes), (2, 1), "{found:?}");
    // The next agent finds its own branches and its stash again.
    let lease = enter(&trees);
    assert_eq!(git(&tree, &["branch", "--show-current"]), "worktree/x");
    assert_eq!(git(&tree, &["rev-parse", "other"]), last);
    let stashed = git(&tree, &["show", "stash:readme"]);
    assert_eq!(stashed, "stashed");
    leave(&trees, lease);
    assert_ordinary(&repo);
}

#[test]
fn commits_are_seen_while_the_agent_works() {
    let repo = TestRepo::new();
    let (trees, lease, tree) = inside(&repo);
    let own = commit(&tree, "readme", "two\n");
    assert_eq!(trees.changes(&slug("x")).unwrap().commits, 1);
    assert_eq!(main_git(&repo, &["rev-parse", "worktree/x"]), own);
    assert!(tree.join(".git").is_dir(), "the agent is still inside");
    let amended = {
        git(&tree, &["commit", "-q", "--amend", "-m", "better"]);
        git(&tree, &["rev-parse", "HEAD"])
    };
    let sealed = trees.seal(&slug("x"), "work").unwrap();
    assert_eq!(sealed.commit, amended);
    leave(&trees, lease);
    assert_eq!(main_git(&repo, &["rev-parse", "worktree/x"]), amended);
    assert_ordinary(&repo);
}

#[test]
fn files_that_are_not_committed_are_sealed() {
    let repo = TestRepo::new();
    let (trees, lease, tree) = inside(&repo);
    commit(&tree, "readme", "two\n");
    write(&tree.join("new"), "new\n");
    write(&tree.join("forced.ignored"), "forced\n");
    git(&tree, &["add", "-f", "forced.ignored"]);
    git(&tree, &["commit", "-qm", "forced"]);
    leave(&trees, lease);
    let sealed = trees.seal(&slug("x"), "work").unwrap();
    let files = main_git(&repo, &["ls-tree", "-r", "--name-only", &sealed.commit]);
    assert_eq!(files, ".gitignore\nforced.ignored\nnew\nreadme\nsrc/lib");
    assert_eq!(
        main_git(&repo, &["rev-list", "--count", "main..worktree/x"]),
        "3"
    );
    assert_eq!(sealed.history_refused, None);
    assert_ordinary(&repo);
}

#[test]
fn an_unfinished_rebase_waits_for_the_next_one() {
    let repo = TestRepo::new();
    let (trees, lease, tree) = inside(&repo);
    let mine = commit(&tree, "readme", "mine\n");
    git(&tree, &["checkout", "-q", "-b", "theirs", "HEAD~"]);
    commit(&tree, "readme", "theirs\n");
    git(&tree, &["checkout", "-q", "worktree/x"]);
    let rebased = git_command(&tree, &["rebase", "-q", "theirs"])
        .output()
        .unwrap();
    assert!(!rebased.status.success());
    leave(&trees, lease);
    assert_ordinary(&repo);
    let found = trees.changes(&slug("x")).unwrap();
    assert_eq!(
        (found.in_progress, found.unmerged),
        (Some("rebase"), 1),
        "{found:?}"
    );
    assert!(trees.seal(&slug("x"), "work").is_err());
    let lease = enter(&trees);
    write(&tree.join("readme"), "both\n");
    git(&tree, &["add", "readme"]);
    git(&tree, &["-c", "core.editor=true", "rebase", "--continue"]);
    leave(&trees, lease);
    let sealed = trees.seal(&slug("x"), "work").unwrap();
    let text = main_git(&repo, &["show", &format!("{}:readme", sealed.commit)]);
    assert_eq!(text, "both");
    assert_ne!(sealed.commit, mine);
    assert_ordinary(&repo);
}

#[test]
fn what_is_nowhere_else_is_neither_reused_nor_lost() {
    let repo = TestRepo::new();
    let (trees, lease, tree) = inside(&repo);
    let kept = main_git(&repo, &["rev-parse", "main"]);
    write(&tree.join("readme"), "stashed\n");
    git(&tree, &["stash", "-q"]);
    let stash = git(&tree, &["rev-parse", "stash"]);
    leave(&trees, lease);
    assert_eq!(
        trees.changes(&slug("x")).unwrap().state,
        ChangeState::Changed
    );
    let given = trees
        .give_back(&slug("x"), &kept, &SetUp::default())
        .unwrap();
    assert!(matches!(given, GivenBack::No(_)), "{given:?}");
    assert!(trees.remove(&slug("x"), &RemoveRequest::default()).is_err());
    let discard = RemoveRequest {
        discard: true,
        ..RemoveRequest::default()
    };
    trees.remove(&slug("x"), &discard).unwrap();
    // A ref holds it, and restoring the worktree restores the stash.
    main_git(&repo, &["cat-file", "-e", &stash]);
    main_git(&repo, &["gc", "-q", "--prune=now"]);
    main_git(&repo, &["cat-file", "-e", &stash]);
    trees.undo(&slug("x")).unwrap();
    let lease = enter(&trees);
    assert_eq!(git(&tree, &["rev-parse", "stash"]), stash);
    leave(&trees, lease);
    assert_ordinary(&repo);
}

#[test]
fn a_worktree_with_nothing_left_goes_to_the_pool() {
    let repo = TestRepo::new();
    let (trees, lease, tree) = inside(&repo);
    let last = commit(&tree, "readme", "two\n");
    leave(&trees, lease);
    assert!(!repo.ours().join("private/x/git").exists());
    let given = trees
        .give_back(&slug("x"), &last, &SetUp::default())
        .unwrap();
    assert_eq!(given, GivenBack::Yes);
    assert!(!repo.ours().join("private/x").exists());
}

#[test]
fn two_agents_in_one_worktree_share_its_git() {
    let repo = TestRepo::new();
    let (trees, first, tree) = inside(&repo);
    let second = enter(&trees);
    let last = commit(&tree, "readme", "two\n");
    assert_eq!(leave(&trees, first), None);
    assert!(tree.join(".git").is_dir(), "an agent is inside");
    assert_eq!(main_git(&repo, &["rev-parse", "worktree/x"]), last);
    leave(&trees, second);
    assert_ordinary(&repo);
}

#[test]
fn whoever_comes_after_a_crash_makes_an_end_of_it() {
    let repo = TestRepo::new();
    let (trees, lease, tree) = inside(&repo);
    let last = commit(&tree, "readme", "two\n");
    // The process is gone without leaving.
    drop(lease);
    drop(trees.hold(&slug("x")).unwrap());
    assert_ordinary(&repo);
    assert_eq!(main_git(&repo, &["rev-parse", "worktree/x"]), last);
    drop(enter(&trees));
    commit(&tree, "readme", "three\n");
    let sealed = trees.seal(&slug("x"), "work").unwrap();
    assert_eq!(
        main_git(&repo, &["log", "-1", "--format=%s", &sealed.commit]),
        "three"
    );
    drop(enter(&trees));
    trees
        .remove(
            &slug("x"),
            &RemoveRequest {
                kept: Some(&sealed.commit),
                discard: true,
                ..RemoveRequest::default()
            },
        )
        .unwrap();
    assert!(!tree.exists());
}

#[test]
fn the_repository_is_found_from_inside() {
    let repo = TestRepo::new();
    let (trees, lease, tree) = inside(&repo);
    std::fs::create_dir(tree.join("deep")).unwrap();
    for dir in [tree.clone(), tree.join("deep")] {
        let found = worktrees::Repository::discover(&dir).unwrap();
        assert_eq!(found.main_tree.as_deref(), Some(repo.main()));
    }
    // In whatever state the agent left its `.git`.
    std::fs::remove_dir_all(tree.join(".git")).unwrap();
    let found = worktrees::Repository::discover(&tree).unwrap();
    assert_eq!(found.main_tree.as_deref(), Some(repo.main()));
    write(&tree.join("readme"), "two\n");
    assert_eq!(trees.changes(&slug("x")).unwrap().files, 1);
    leave(&trees, lease);
    assert_ordinary(&repo);
    assert!(trees.seal(&slug("x"), "work").unwrap().changed);
}
