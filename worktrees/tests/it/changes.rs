//! Every change counts that could be lost.

use store::Explain;
use worktrees::{ChangeState, Changes};

use crate::repo::{TestRepo, git, git_command, slug, write};

fn changes(repo: &TestRepo) -> Changes {
    repo.trees().changes(&slug("x")).unwrap()
}

fn tree() -> TestRepo {
    let repo = TestRepo::new();
    repo.create("x");
    assert_eq!(changes(&repo).state, ChangeState::Clean);
    repo
}

#[test]
fn files_staged_untracked_and_commits_are_counted() {
    let repo = tree();
    let at = repo.tree("x");
    write(&at.join("readme"), "changed\n");
    write(&at.join("src/lib"), "staged\n");
    git(&at, &["add", "src/lib"]);
    write(&at.join("dir/new"), "x");
    write(&at.join("dir/odd\nname"), "x");
    write(&at.join("out.ignored"), "x");
    let found = changes(&repo);
    assert_eq!(
        (found.files, found.staged, found.untracked, found.commits),
        (2, 1, 2, 0)
    );
    assert_eq!(found.state, ChangeState::Changed);
    assert_eq!(
        repo.trees().ignored(&slug("x")).unwrap(),
        [std::path::Path::new("out.ignored")]
    );
    git(&at, &["add", "."]);
    git(&at, &["commit", "-qm", "all"]);
    let found = changes(&repo);
    assert_eq!((found.files, found.untracked, found.commits), (0, 0, 1));
    assert_eq!(found.state, ChangeState::Changed);
}

#[test]
fn hidden_untracked_files_are_found() {
    // `status.showUntrackedFiles=no` has cost people their files elsewhere.
    let repo = tree();
    repo.git(&["config", "status.showUntrackedFiles", "no"]);
    repo.git(&["config", "diff.ignoreSubmodules", "all"]);
    write(&repo.tree("x").join("new"), "x");
    assert_eq!(changes(&repo).untracked, 1);
}

#[test]
fn commits_that_only_the_reflog_knows_count() {
    let repo = tree();
    let at = repo.tree("x");
    git(&at, &["commit", "-q", "--allow-empty", "-m", "work"]);
    git(&at, &["reset", "-q", "--hard", "HEAD~1"]);
    let found = changes(&repo);
    assert_eq!((found.commits, found.unreferenced), (0, 1));
    assert_eq!(found.state, ChangeState::Changed);
}

#[test]
fn the_reflog_is_kept_whatever_the_settings_say() {
    let repo = TestRepo::new();
    repo.git(&["config", "core.logAllRefUpdates", "false"]);
    repo.create("x");
    let at = repo.tree("x");
    git(&at, &["commit", "-q", "--allow-empty", "-m", "work"]);
    git(&at, &["reset", "-q", "--hard", "HEAD~1"]);
    assert_eq!(changes(&repo).unreferenced, 1);
}

#[test]
fn work_on_another_branch_or_on_none_counts() {
    let repo = tree();
    let at = repo.tree("x");
    git(&at, &["checkout", "-q", "--detach"]);
    let found = changes(&repo);
    assert!(
        found.detached && found.state == ChangeState::Clean,
        "{found:?}"
    );
    git(&at, &["commit", "-q", "--allow-empty", "-m", "detached"]);
    assert_eq!(changes(&repo).commits, 1);
    git(&at, &["checkout", "-q", "worktree/x"]);
    assert_eq!(changes(&repo).unreferenced, 1);

    let repo = tree();
    let at = repo.tree("x");
    git(
        &at,
        &["commit", "-q", "--allow-empty", "-m", "on our branch"],
    );
    git(&at, &["checkout", "-q", "-b", "elsewhere", "HEAD~1"]);
    assert_eq!(changes(&repo).commits, 1, "the branch it left behind");
}

#[test]
fn unfinished_merges_rebases_and_bisects_count() {
    let repo = tree();
    let at = repo.tree("x");
    repo.write("readme", "theirs\n");
    repo.git(&["commit", "-qam", "theirs"]);
    git(&at, &["cherry-pick", "--no-commit", "main"]);
    git(&at, &["reset", "-q", "--hard"]);
    assert_eq!(changes(&repo).state, ChangeState::Clean);
    write(&at.join("readme"), "ours\n");
    git(&at, &["commit", "-qam", "ours"]);
    assert!(
        !git_command(&at, &["merge", "main"])
            .output()
            .unwrap()
            .status
            .success()
    );
    let found = changes(&repo);
    assert_eq!((found.unmerged, found.in_progress), (1, Some("merge")));
    git(&at, &["merge", "--abort"]);
    assert!(
        !git_command(&at, &["rebase", "main"])
            .output()
            .unwrap()
            .status
            .success()
    );
    assert_eq!(changes(&repo).in_progress, Some("rebase"));
    git(&at, &["rebase", "--abort"]);
    git(&at, &["bisect", "start"]);
    assert_eq!(changes(&repo).in_progress, Some("bisect"));
}

#[test]
fn stashes_and_repositories_inside_count() {
    let repo = tree();
    let at = repo.tree("x");
    write(&at.join("readme"), "to be stashed\n");
    git(&at, &["stash", "-q"]);
    let found = changes(&repo);
    assert_eq!(
        (found.files, found.stashes, found.state),
        (0, 1, ChangeState::Changed)
    );
    git(&at, &["stash", "drop", "-q"]);

    git(&at, &["init", "-q", "inside"]);
    write(&at.join("inside/file"), "x");
    let found = changes(&repo);
    assert_eq!(
        (found.nested, found.state),
        (1, ChangeState::Changed),
        "{found:?}"
    );
}

#[test]
fn what_cannot_be_read_is_unknown() {
    /// Damages the worktree and git's directory for it.
    type Damage = fn(&std::path::Path, &std::path::Path);
    let damage: [(&str, Damage); 6] = [
        ("a broken .git", |at, _| {
            write(&at.join(".git"), "gitdir: /nowhere\n");
        }),
        ("a .git directory", |at, _| {
            std::fs::remove_file(at.join(".git")).unwrap();
            git(at, &["init", "-q"]);
        }),
        ("a damaged index", |_, admin| {
            write(&admin.join("index"), "damaged");
        }),
        ("no reflog", |_, admin| {
            std::fs::remove_file(admin.join("logs/HEAD")).unwrap();
        }),
        ("a HEAD to nowhere", |_, admin| {
            write(&admin.join("HEAD"), "ref: refs/heads/nothing\n");
        }),
        ("another tree's record", |_, admin| {
            write(&admin.join("gitdir"), "/somewhere/else/.git\n");
        }),
    ];
    for (what, damage) in damage {
        let repo = tree();
        damage(&repo.tree("x"), &repo.main().join(".git/worktrees/x"));
        let found = changes(&repo);
        assert_eq!(found.state, ChangeState::Unknown, "{what}: {found:?}");
        assert!(found.reason.is_some(), "{what}");
        let error = repo
            .trees()
            .remove(&slug("x"), &Default::default())
            .unwrap_err();
        assert_eq!(
            error.category(),
            store::Category::Refused,
            "{what}: {error}"
        );
        assert!(repo.tree("x").join("readme").exists(), "{what}");
    }
}

#[test]
fn an_index_lock_of_somebody_does_not_matter_to_looking() {
    let repo = tree();
    write(&repo.main().join(".git/worktrees/x/index.lock"), "");
    assert_eq!(changes(&repo).state, ChangeState::Clean);
}
