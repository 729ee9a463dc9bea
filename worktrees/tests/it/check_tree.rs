//! The worktrees in which checks run: exactly the commit every time, whatever was done to them, and
//! no file of a check is left behind.

use std::collections::BTreeSet;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use worktrees::{AfterCheck, CheckTree, Repository, SetUp, TreeOptions, Trees};

use crate::repo::{TestRepo, git, write};

/// Two commits that differ in a changed, a new and a deleted file.
pub(crate) fn two_commits(repo: &TestRepo) -> (String, String) {
    let first = repo.git(&["rev-parse", "HEAD"]).trim().to_owned();
    repo.write("readme", "two\n");
    repo.write("src/new", "new\n");
    repo.git(&["rm", "-q", "src/lib"]);
    repo.git(&["add", "."]);
    repo.git(&["commit", "-qm", "second"]);
    let second = repo.git(&["rev-parse", "HEAD"]).trim().to_owned();
    (first, second)
}

pub(crate) fn take(repo: &TestRepo, commit: &str) -> CheckTree {
    repo.trees().check_tree(commit, &SetUp::default()).unwrap()
}

/// All files and directories of a worktree but those of git.
fn entries(tree: &Path) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    store::tree::walk(tree, &mut |path, _| {
        let name = path.strip_prefix(tree).unwrap().to_string_lossy();
        let mine = name != ".git";
        if mine {
            found.insert(name.into_owned());
        }
        Ok(mine)
    })
    .unwrap();
    found
}

/// Fails unless the worktree has exactly the files of `commit`, and those `left` by checks.
pub(crate) fn assert_exact(repo: &TestRepo, tree: &Path, commit: &str, left: &[&str], about: &str) {
    let listed = repo.git(&["ls-tree", "-r", "-t", "--name-only", commit]);
    let mut expected: BTreeSet<String> = listed.lines().map(str::to_owned).collect();
    expected.extend(left.iter().map(|name| (*name).to_owned()));
    assert_eq!(entries(tree), expected, "{about}");
    for path in repo.git(&["ls-tree", "-r", "--name-only", commit]).lines() {
        let wanted = repo.git(&["cat-file", "blob", &format!("{commit}:{path}")]);
        let found = std::fs::read_to_string(tree.join(path)).unwrap();
        assert_eq!(found, wanted, "{about}: {path}");
    }
    assert_eq!(git(tree, &["rev-parse", "HEAD"]).trim(), commit, "{about}");
    let status = git(tree, &["status", "--porcelain"]);
    assert_eq!(status, "", "{about}");
}

#[test]
fn a_second_check_finds_the_commit_and_what_the_first_left_ignored() {
    let repo = TestRepo::new();
    let (first, second) = two_commits(&repo);
    let before = repo.surroundings();
    let tree = take(&repo, &first);
    let path = tree.path().to_owned();
    assert_exact(&repo, &path, &first, &[], "new");
    // A check builds, litters, changes the files it checks.
    for (name, text) in [
        ("build/out", "cache"),
        ("litter", "x"),
        ("deep/er/litter", "x"),
        ("readme", "formatted\n"),
    ] {
        write(&path.join(name), text);
    }
    std::fs::create_dir(path.join("empty")).unwrap();
    git(&path, &["init", "-q", "nested"]);
    git(&path, &["tag", "mine"]);
    std::fs::remove_file(path.join("src/lib")).unwrap();
    let kept = std::fs::metadata(path.join(".gitignore")).unwrap();
    tree.release(AfterCheck::Keep);

    let tree = take(&repo, &second);
    assert_eq!(tree.path(), path, "the same one again");
    assert_exact(&repo, &path, &second, &["build", "build/out"], "second");
    let now = std::fs::metadata(path.join(".gitignore")).unwrap();
    assert_eq!(
        (now.ino(), now.mtime_nsec()),
        (kept.ino(), kept.mtime_nsec())
    );
    // It sees the present branches, and no others.
    let branches = git(&path, &["for-each-ref", "--format=%(refname)"]);
    assert_eq!(branches, "refs/heads/main\n");
    assert_eq!(git(&path, &["rev-parse", "main"]).trim(), second);
    // Commands that run there belong to the repository.
    let found = Repository::discover(&path.join("src")).unwrap();
    assert_eq!(found.main_tree.as_deref(), Some(repo.main()));
    tree.release(AfterCheck::Keep);

    assert_eq!(repo.surroundings(), before, "the repository is as it was");
    assert_eq!(
        repo.trees().list().unwrap().len(),
        0,
        "no registered worktree"
    );
    assert_eq!(repo.trees().doctor(false).unwrap(), []);
    assert_eq!(repo.trees().drop_check_trees(true).unwrap(), 1);
    assert!(!path.exists());
    repo.check_sound();
}

#[test]
fn somebody_elses_directory_of_that_name_is_left_alone() {
    let repo = TestRepo::new();
    let (first, _) = two_commits(&repo);
    write(&repo.tree("ccb-check-1").join("mine"), "precious");
    repo.create("ccb-check-2");
    let taken = take(&repo, &first);
    assert_eq!(taken.path(), repo.tree("ccb-check-3"));
    taken.release(AfterCheck::Keep);
    repo.trees().drop_check_trees(true).unwrap();
    assert!(repo.tree("ccb-check-1").join("mine").exists());
    assert!(repo.tree("ccb-check-2").join("readme").exists());
}

#[test]
fn many_checks_at_once_have_each_a_tree_and_few_stay() {
    let repo = TestRepo::new();
    let (first, second) = two_commits(&repo);
    let busy: Mutex<BTreeSet<PathBuf>> = Mutex::default();
    std::thread::scope(|scope| {
        for worker in 0..8 {
            let (repo, busy) = (&repo, &busy);
            let commits = [&first, &second];
            scope.spawn(move || {
                for round in 0..5 {
                    let commit = commits[(worker + round) % 2];
                    let tree = take(repo, commit);
                    let path = tree.path().to_owned();
                    assert!(busy.lock().unwrap().insert(path.clone()), "{path:?} twice");
                    let about = format!("{worker}, {round}");
                    assert_exact(repo, &path, commit, &[], &about);
                    write(&path.join("litter"), "x");
                    assert!(busy.lock().unwrap().remove(&path));
                    tree.release(AfterCheck::Keep);
                }
            });
        }
    });
    let cores = std::thread::available_parallelism().unwrap().get().max(2);
    let left = repo.trees().check_trees();
    assert!(!left.is_empty() && left.len() <= cores, "{left:?}");
    assert_eq!(repo.trees().doctor(false).unwrap(), []);
}

#[test]
fn a_check_waits_for_a_tree_rather_than_make_one_of_many_files_but_not_for_ever() {
    let repo = TestRepo::new();
    let (first, second) = two_commits(&repo);
    let few = std::thread::available_parallelism().unwrap().get().max(2);
    // Only its length matters: that of a repository with a hundred thousand files.
    let index = std::fs::File::options()
        .write(true)
        .open(repo.main().join(".git/index"));
    index.unwrap().set_len(10 << 20).unwrap();
    let numbers: Mutex<BTreeSet<PathBuf>> = Mutex::default();
    std::thread::scope(|scope| {
        for worker in 0..=few {
            let (repo, numbers) = (&repo, &numbers);
            let commit = if worker % 2 == 0 { &first } else { &second };
            scope.spawn(move || {
                for _ in 0..3 {
                    let tree = take(repo, commit);
                    numbers.lock().unwrap().insert(tree.path().to_owned());
                    tree.release(AfterCheck::Keep);
                }
            });
        }
    });
    let numbers = numbers.into_inner().unwrap();
    assert!(numbers.len() <= few, "{numbers:?}");
    // None is released: a holder may wait for this very check.
    let held: Vec<CheckTree> = (0..few).map(|_| take(&repo, &first)).collect();
    let another = take(&repo, &second);
    assert!(held.iter().all(|tree| tree.path() != another.path()));
    assert_exact(&repo, another.path(), &second, &[], "another");
    another.release(AfterCheck::Keep);
    held.into_iter()
        .for_each(|tree| tree.release(AfterCheck::Keep));
}

#[test]
fn a_tree_whose_check_was_cut_short_is_not_used_again() {
    let repo = TestRepo::new();
    let (first, second) = two_commits(&repo);
    let tree = take(&repo, &first);
    let path = tree.path().to_owned();
    write(&path.join("half.ignored"), "built");
    drop(tree);
    let findings = repo.trees().doctor(false).unwrap();
    assert_eq!(findings.len(), 1, "{findings:?}");
    assert_eq!(findings[0].kind, "check_tree_left");
    let other = take(&repo, &second);
    assert_ne!(other.path(), path, "something may still run there");
    assert!(!path.exists());
    assert_exact(&repo, other.path(), &second, &[], "another");
    other.release(AfterCheck::Leave);
    assert_eq!(repo.trees().check_trees(), Vec::<String>::new());
    // The doctor and the next maker of a worktree clean up as well.
    drop(take(&repo, &first));
    let findings = repo.trees().doctor(true).unwrap();
    assert!(findings[0].fixed.is_some(), "{findings:?}");
    assert_eq!(repo.trees().doctor(false).unwrap(), []);
    drop(take(&repo, &first));
    repo.create("x");
    assert_eq!(repo.trees().check_trees(), Vec::<String>::new());
}

#[test]
fn the_set_up_is_there_and_follows_the_main_tree() {
    let repo = TestRepo::new();
    repo.write(".worktreeinclude", "*.ignored\n");
    repo.write("key.ignored", "one");
    repo.write(".claude/settings.local.json", "{}");
    repo.write("node_modules/m", "module");
    repo.write("build/b", "built");
    let commit = repo.git(&["rev-parse", "HEAD"]).trim().to_owned();
    let set_up = SetUp {
        symlink_directories: vec!["node_modules".into()],
        copy_directories: vec!["build/".into()],
        ..SetUp::default()
    };
    let look = |expected: [&str; 2]| {
        let tree = repo.trees().check_tree(&commit, &set_up).unwrap();
        let read = |name: &str| std::fs::read_to_string(tree.path().join(name)).unwrap();
        assert_eq!([read("key.ignored"), read("node_modules/m")], expected);
        assert_eq!(
            [read(".claude/settings.local.json"), read("build/b")],
            ["{}", "built"]
        );
        assert!(tree.path().join("node_modules").is_symlink());
        let status = git(
            tree.path(),
            &["status", "--porcelain", "--", "node_modules"],
        );
        assert_eq!(status, "");
        tree.release(AfterCheck::Keep);
    };
    look(["one", "module"]);
    look(["one", "module"]);
    repo.write("key.ignored", "another");
    repo.write("node_modules/m", "newer");
    look(["another", "newer"]);
    std::fs::remove_file(repo.main().join("key.ignored")).unwrap();
    let tree = repo.trees().check_tree(&commit, &set_up).unwrap();
    assert!(
        !tree.path().join("key.ignored").exists(),
        "gone there, gone here"
    );
    tree.release(AfterCheck::Keep);
    // Only some paths, and then all of them again.
    let sparse = SetUp {
        sparse_paths: vec!["docs".into()],
        ..SetUp::default()
    };
    for _ in 0..2 {
        let tree = repo.trees().check_tree(&commit, &sparse).unwrap();
        assert!(tree.path().join("readme").exists());
        assert!(!tree.path().join("src").exists());
        tree.release(AfterCheck::Keep);
    }
    let tree = take(&repo, &commit);
    assert!(tree.path().join("src/lib").exists());
    tree.release(AfterCheck::Keep);
}

#[test]
fn repositories_of_every_form_can_be_checked() {
    for format in [
        &["--object-format=sha256"][..],
        &["--ref-format=reftable"],
        &[],
    ] {
        let repo = TestRepo::with_format(format);
        let (first, second) = two_commits(&repo);
        for commit in [&first, &second, &first] {
            let tree = take(&repo, commit);
            assert_exact(&repo, tree.path(), commit, &[], &format!("{format:?}"));
            assert_eq!(git(tree.path(), &["rev-parse", "main"]).trim(), second);
            tree.release(AfterCheck::Keep);
        }
        // Bits are found in an index of any form.
        let tree = repo.tree("ccb-check-1");
        git(&tree, &["update-index", "--assume-unchanged", "readme"]);
        write(&tree.join("readme"), "hidden\n");
        let tree = take(&repo, &second);
        assert_exact(&repo, tree.path(), &second, &[], &format!("{format:?}"));
        tree.release(AfterCheck::Keep);
    }
}

#[test]
fn submodules_shallow_and_sparse_repositories_do_not_get_in_the_way() {
    let repo = TestRepo::new();
    let (_, second) = two_commits(&repo);
    // A main worktree with only some directories.
    repo.git(&["sparse-checkout", "set", "--cone", "other"]);
    let tree = take(&repo, &second);
    assert!(tree.path().join("readme").exists());
    assert!(
        !tree.path().join("src").exists(),
        "sparse like the main tree"
    );
    tree.release(AfterCheck::Keep);
    repo.trees().drop_check_trees(true).unwrap();
    repo.git(&["sparse-checkout", "disable"]);
    // A submodule: its directory is there and empty, as in any worktree.
    let other = TestRepo::new();
    let url = other.main().to_str().unwrap();
    repo.git(&[
        "-c",
        "protocol.file.allow=always",
        "submodule",
        "--quiet",
        "add",
        url,
        "sub",
    ]);
    repo.git(&["commit", "-qm", "submodule"]);
    let with = repo.git(&["rev-parse", "HEAD"]).trim().to_owned();
    for commit in [&with, &second, &with] {
        let tree = take(&repo, commit);
        assert_eq!(tree.path().join("sub").is_dir(), *commit == with);
        assert_eq!(git(tree.path(), &["status", "--porcelain"]), "");
        tree.release(AfterCheck::Keep);
    }
    // A clone without history.
    let shallow = repo.beside("shallow");
    let from = format!("file://{}", repo.main().display());
    git(
        repo.main(),
        &[
            "clone",
            "-q",
            "--depth",
            "1",
            &from,
            shallow.to_str().unwrap(),
        ],
    );
    let trees = Trees::discover(&shallow, TreeOptions::default()).unwrap();
    let tree = trees.check_tree(&with, &SetUp::default()).unwrap();
    assert_eq!(git(tree.path(), &["log", "--format=%s"]), "submodule\n");
    let origin = git(tree.path(), &["remote", "get-url", "origin"]);
    assert_eq!(origin.trim(), from);
    tree.release(AfterCheck::Keep);
}
