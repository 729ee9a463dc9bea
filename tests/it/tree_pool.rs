//! Worktrees made in advance: as new for their users, and never with work of others.

use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

use harness::{TestRepo, Workplace, git, write};
use serde_json::Value;

use crate::CCB;

fn pool(at: &Workplace) -> Vec<Value> {
    let answer = at.ok(&["worktree", "pool", "list"]);
    answer["pool"].as_array().unwrap().clone()
}

fn inode(path: &Path) -> u64 {
    std::fs::metadata(path).unwrap().ino()
}

#[test]
fn a_tree_of_the_pool_becomes_one_like_any_other() {
    let at = Workplace::new(CCB);
    let before = at.repo.surroundings();
    let filled = at.ok(&["worktree", "pool", "fill", "2"]);
    assert_eq!(filled["pool"]["made"], 2, "{filled}");
    let listed = at.ok(&["worktree", "list", "--all"]);
    assert_eq!(listed["worktrees"], serde_json::json!([]), "not the user's");
    let pooled = pool(&at);
    assert_eq!(pooled.len(), 2);
    let from = Path::new(pooled[0]["path"].as_str().unwrap()).to_owned();
    let was = inode(&from);

    let made = at.ok(&["worktree", "create", "fix/a"]);
    assert_eq!(made["worktree"]["created"], true);
    let tree = at.repo.tree("fix+a");
    assert_eq!(inode(&tree), was, "it is that very directory");
    assert_eq!(pool(&at).len(), 1);
    assert_eq!(
        git(&tree, &["branch", "--show-current"]).trim(),
        "worktree/fix+a"
    );
    assert_eq!(git(&tree, &["status", "--porcelain"]), "");
    let status = at.ok(&["worktree", "status", "fix/a"]);
    assert_eq!(status["changes"]["state"], "clean", "{status}");
    assert_eq!(at.repo.surroundings(), before);
    at.repo.check_sound();
    assert_eq!(at.ok(&["doctor"])["findings"], serde_json::json!([]));

    // Work in it, a removal and its undo are as with any other.
    write(&tree.join("new"), "x");
    git(&tree, &["add", "."]);
    git(&tree, &["commit", "-qm", "work"]);
    at.fails(4, "has_changes", &["worktree", "remove", "fix/a"]);
    at.ok(&["worktree", "remove", "fix/a", "--discard"]);
    at.ok(&["worktree", "undo", "fix/a"]);
    assert_eq!(std::fs::read_to_string(tree.join("new")).unwrap(), "x");
    at.ok(&["worktree", "create", "b"]);
    assert!(pool(&at).is_empty());
    at.ok(&["worktree", "create", "c"]);
    at.repo.check_sound();
}

#[test]
fn the_base_is_the_one_asked_for_whatever_the_pool_was_made_from() {
    let at = Workplace::new(CCB);
    at.repo.write("readme", "two\n");
    at.repo.write("src/new", "n");
    at.repo.git(&["add", "."]);
    at.repo.git(&["commit", "-qm", "second"]);
    at.ok(&["worktree", "pool", "fill", "2"]);
    at.repo.git(&["rm", "-q", "src/lib"]);
    at.repo.git(&["commit", "-qm", "third"]);
    // Looks like another file to git until it is read.
    harness::set_mtime(&at.repo.tree("ccb-pool-1").join("src/lib"), 1_000_000).unwrap();
    for (name, base) in [("older", "HEAD~2"), ("newer", "HEAD")] {
        let was = inode(Path::new(pool(&at)[0]["path"].as_str().unwrap()));
        at.ok(&["worktree", "create", name, "--base", base]);
        let tree = at.repo.tree(name);
        assert_eq!(inode(&tree), was);
        let wanted = at.repo.git(&["rev-parse", base]);
        assert_eq!(git(&tree, &["rev-parse", "HEAD"]), wanted);
        assert_eq!(git(&tree, &["status", "--porcelain"]), "", "{name}");
        let status = at.ok(&["worktree", "status", name]);
        assert_eq!(status["changes"]["state"], "clean", "{name}: {status}");
    }
    assert!(!at.repo.tree("older").join("src/new").exists());
    assert!(!at.repo.tree("newer").join("src/lib").exists());
    at.repo.check_sound();
}

/// Changes a worktree of the pool.
type Meddle = fn(&Path);

#[test]
fn what_somebody_did_in_a_tree_of_the_pool_is_rescued_not_handed_out() {
    let meddles: &[(&str, Meddle)] = &[
        ("untracked", |tree| write(&tree.join("precious"), "x")),
        ("ignored", |tree| write(&tree.join("precious.ignored"), "x")),
        ("modified", |tree| write(&tree.join("readme"), "precious")),
        ("committed", |tree| {
            write(&tree.join("precious"), "x");
            git(tree, &["add", "."]);
            git(tree, &["commit", "-qm", "precious"]);
        }),
        ("committed and reset", |tree| {
            git(tree, &["commit", "-q", "--allow-empty", "-m", "precious"]);
            git(tree, &["reset", "-q", "--hard", "HEAD~1"]);
        }),
        ("on a branch", |tree| {
            git(tree, &["checkout", "-q", "-b", "mine"]);
        }),
    ];
    for (what, meddle) in meddles {
        let at = Workplace::new(CCB);
        at.ok(&["worktree", "pool", "fill", "1"]);
        let tree = at.repo.tree("ccb-pool-1");
        meddle(&tree);
        let was = inode(&tree);
        let log = git(&tree, &["reflog", "--format=%H"]);
        at.ok(&["worktree", "create", "x"]);
        let made = at.repo.tree("x");
        assert_ne!(inode(&made), was, "{what}");
        let status = at.ok(&["worktree", "status", "x"]);
        assert_eq!(status["changes"]["state"], "clean", "{what}: {status}");
        assert!(!made.join("precious.ignored").exists(), "{what}");
        assert!(pool(&at).is_empty(), "{what}");
        // As after any removal: all of it can be restored.
        at.ok(&["worktree", "undo", "ccb-pool-1"]);
        assert_eq!(inode(&tree), was, "{what}");
        assert_eq!(git(&tree, &["reflog", "--format=%H"]), log, "{what}");
        at.repo.check_sound();
    }
}

#[test]
fn set_up_is_done_when_a_tree_is_handed_out() {
    let at = Workplace::new(CCB);
    at.home.settings(
        r#"{"worktree":{"symlinkDirectories":["node_modules"],"copyDirectories":["build"]}}"#,
    );
    at.repo.write("node_modules/dep", "d");
    at.repo.write("build/out", "slow");
    at.repo.write(".worktreeinclude", "*.ignored\n");
    at.ok(&["worktree", "pool", "fill", "1"]);
    let pooled = at.repo.tree("ccb-pool-1");
    assert!(
        pooled.join("build/out").exists(),
        "slow things are done before"
    );
    // Small files are copied late, so that they are current.
    at.repo.write("key.ignored", "secret");
    at.repo.write(".claude/settings.local.json", "{}");
    let was = inode(&pooled.join("build/out"));
    at.ok(&[
        "worktree",
        "create",
        "x",
        "--setup",
        "echo made > made.ignored",
    ]);
    let tree = at.repo.tree("x");
    assert_eq!(inode(&tree.join("build/out")), was);
    assert!(tree.join("node_modules").is_symlink());
    assert_eq!(
        std::fs::read_to_string(tree.join("key.ignored")).unwrap(),
        "secret"
    );
    assert_eq!(
        std::fs::read_to_string(tree.join("made.ignored")).unwrap(),
        "made\n"
    );
    let status = at.ok(&["worktree", "status", "x"]);
    assert_eq!(status["changes"]["state"], "clean", "{status}");

    // A set-up that fails leaves nothing, also of a tree from the pool.
    at.ok(&["worktree", "pool", "fill", "1"]);
    at.fails(
        1,
        "setup_failed",
        &["worktree", "create", "y", "--setup", "false"],
    );
    assert!(!at.repo.tree("y").exists());
    assert_eq!(at.repo.tree_branches(), ["worktree/x"]);
    at.repo.check_sound();
}

#[test]
fn a_tree_that_does_not_suit_is_left_in_the_pool() {
    let at = Workplace::new(CCB);
    at.ok(&["worktree", "pool", "fill", "1"]);
    at.ok(&["worktree", "create", "part", "--sparse", "src"]);
    assert_eq!(pool(&at).len(), 1, "that one is whole");
    assert!(at.repo.tree("part/src/lib").exists());
    at.home.settings(r#"{"worktree":{"sparsePaths":["src"]}}"#);
    // Filling replaces those that no longer fit.
    let filled = at.ok(&["worktree", "pool", "fill", "1"]);
    assert_eq!(filled["pool"]["made"], 1, "{filled}");
    assert_eq!(filled["pool"]["retired"], 1, "{filled}");
    at.ok(&["worktree", "create", "small"]);
    assert!(pool(&at).is_empty());
    assert_eq!(
        at.ok(&["worktree", "status", "small"])["changes"]["state"],
        "clean"
    );
    at.ok(&["worktree", "pool", "fill", "1"]);
    assert_eq!(
        at.ok(&["worktree", "pool", "fill", "0"])["pool"]["retired"],
        1
    );
    assert!(pool(&at).is_empty());
    at.repo.check_sound();
}

#[test]
fn no_pool_where_it_would_not_work() {
    let at = Workplace::new(CCB);
    at.repo.write(".gitmodules", "");
    at.repo.git(&["add", "."]);
    at.repo.git(&["commit", "-qm", "submodules"]);
    let filled = at.ok(&["worktree", "pool", "fill", "2"]);
    assert_eq!(filled["pool"]["ready"], 0);
    assert!(
        filled["pool"]["why"]
            .as_str()
            .unwrap()
            .contains("submodules")
    );

    let reftable = Workplace {
        repo: TestRepo::with_format(&["--ref-format=reftable"]),
        home: at.home,
    };
    let filled = reftable.ok(&["worktree", "pool", "fill", "2"]);
    assert_eq!(filled["pool"]["ready"], 0);
    reftable.ok(&["worktree", "create", "x"]);
}

#[test]
fn many_take_at_once_and_the_pool_fills_up_again_behind_them() {
    let at = Workplace::new(CCB);
    at.home.settings(r#"{"worktree":{"pool":2}}"#);
    at.ok(&["worktree", "pool", "fill"]);
    std::thread::scope(|scope| {
        for n in 0..6 {
            let at = &at;
            scope.spawn(move || at.ok(&["worktree", "create", &format!("t{n}")]));
        }
    });
    for n in 0..6 {
        let status = at.ok(&["worktree", "status", &format!("t{n}")]);
        assert_eq!(status["changes"]["state"], "clean", "t{n}: {status}");
    }
    // In the background, by processes that no command waits for.
    let limit = Duration::from_secs(60);
    harness::wait_until(limit, "the pool is full again", || pool(&at).len() == 2);
    // The process that made the last one may not have ended yet.
    let lock = at.repo.ours().join("locks/pool");
    harness::wait_until(limit, "no process to fill it", || {
        store::lock::FileLock::try_exclusive(&lock)
            .unwrap()
            .is_some()
    });
    at.repo.check_sound();
    assert_eq!(at.repo.tree_branches().len(), 6);
}

#[test]
fn trees_that_only_have_names_like_those_of_the_pool_are_left_alone() {
    let at = Workplace::new(CCB);
    // The user's own, and one that was restored because of its content.
    at.ok(&["worktree", "create", "ccb-pool-notes"]);
    at.ok(&["worktree", "pool", "fill", "1"]);
    let pooled = at.repo.tree("ccb-pool-1");
    write(&pooled.join("precious"), "x");
    at.ok(&["worktree", "create", "x"]);
    at.ok(&["worktree", "undo", "ccb-pool-1"]);
    at.ok(&["worktree", "gc", "--yes"]);
    assert!(at.repo.tree("ccb-pool-notes").is_dir());
    assert!(pooled.join("precious").is_file());
    at.repo.check_sound();
}
