//! Making worktrees: which files and refs exist afterwards, and which do not.

use std::os::unix::fs::symlink;
use store::Explain;

use worktrees::{Base, CreateMode, CreateRequest, TreeOptions, Trees};

use crate::repo::{TestRepo, git, slug, write};

#[test]
fn a_tree_is_made_once_and_found_again() {
    let repo = TestRepo::new();
    let before = repo.surroundings();
    let made = repo.create("fix/auth");
    assert!(made.created);
    assert_eq!(made.entry.path(), repo.tree("fix+auth"));
    assert_eq!(made.entry.branch.as_deref(), Some("worktree/fix+auth"));
    let head = repo.git(&["rev-parse", "HEAD"]);
    assert_eq!(made.entry.base.as_deref(), Some(head.trim()));
    assert_eq!(repo.git_in("fix+auth", &["rev-parse", "HEAD"]), head);
    assert_eq!(repo.git_in("fix+auth", &["status", "--porcelain"]), "");

    let again = repo.create("fix/auth");
    assert!(!again.created);
    assert_eq!(again.head.as_deref(), Some(head.trim()));
    assert_eq!(again.entry.base, made.entry.base);
    assert_eq!(repo.surroundings(), before, "the main tree is as before");
    repo.check_sound();
}

#[test]
fn the_base_is_the_callers_head_or_what_was_asked_for() {
    let repo = TestRepo::new();
    let first = repo.git(&["rev-parse", "HEAD"]).trim().to_owned();
    repo.create("one");
    write(&repo.tree("one").join("new"), "x");
    repo.git_in("one", &["add", "."]);
    repo.git_in("one", &["commit", "-qm", "second"]);
    let second = repo.git_in("one", &["rev-parse", "HEAD"]).trim().to_owned();

    let from = repo.tree("one").join("src");
    let trees = Trees::discover(&from, TreeOptions::default()).unwrap();
    let request = CreateRequest::new(Some(slug("two")), &from);
    let two = trees.create(&request).unwrap();
    assert_eq!(two.entry.base.as_deref(), Some(second.as_str()));
    assert_eq!(two.entry.path(), repo.tree("two"), "in the main repository");

    for (name, base) in [("three", "main"), ("four", &first[..8]), ("five", "HEAD~1")] {
        let request = CreateRequest {
            base: Base::Given(base.into()),
            ..CreateRequest::new(Some(slug(name)), &from)
        };
        let made = trees.create(&request).unwrap();
        assert_eq!(made.entry.base.as_deref(), Some(first.as_str()), "{base}");
    }
    repo.check_sound();
}

#[test]
fn fresh_is_the_default_branch_of_origin() {
    let origin = TestRepo::new();
    let repo = TestRepo::empty(&[]);
    repo.write("readme", "mine");
    repo.git(&["add", "."]);
    repo.git(&["commit", "-qm", "mine"]);
    let fresh = |name| CreateRequest {
        base: Base::Fresh,
        ..CreateRequest::new(Some(slug(name)), repo.main())
    };
    let error = repo.trees().create(&fresh("a")).unwrap_err();
    assert_eq!(error.kind(), "bad_base", "{error}");
    repo.git(&["remote", "add", "origin", origin.main().to_str().unwrap()]);
    let made = repo.trees().create(&fresh("a")).unwrap();
    let theirs = origin.git(&["rev-parse", "HEAD"]);
    assert_eq!(made.entry.base.as_deref(), Some(theirs.trim()));
    let refs = repo.git(&["for-each-ref", "refs/ccb", "refs/remotes"]);
    assert_eq!(refs, "", "nothing is left of the fetch");
    repo.check_sound();
}

#[test]
fn names_and_places_that_are_taken() {
    let repo = TestRepo::new();
    let trees = repo.trees();
    let refused = |name: &str, kind: &str| {
        let request = CreateRequest::new(Some(slug(name)), repo.main());
        let error = trees.create(&request).unwrap_err();
        assert_eq!(error.kind(), kind, "{name}: {error}");
    };
    repo.create("Mine");
    refused("mine", "bad_name");

    repo.git(&["branch", "worktree/branch", "HEAD"]);
    write(&repo.main().join("readme"), "two\n");
    repo.git(&["commit", "-qam", "second"]);
    let tip = repo.git(&["rev-parse", "worktree/branch"]);
    refused("branch", "branch_exists");
    assert_eq!(
        repo.git(&["rev-parse", "worktree/branch"]),
        tip,
        "not moved"
    );

    write(&repo.tree("dir").join("file"), "precious");
    refused("dir", "path_taken");
    symlink("/", repo.tree("link")).unwrap();
    refused("link", "path_taken");
    assert!(repo.tree("dir/file").exists());
    assert_eq!(
        repo.tree_branches(),
        ["worktree/Mine", "worktree/branch"],
        "no branch is left behind"
    );
    repo.check_sound();
}

#[test]
fn an_agents_tree_is_its_own() {
    let repo = TestRepo::new();
    let trees = repo.trees();
    let request = |mode, agent: &str| CreateRequest {
        mode,
        agent: Some(agent.into()),
        ..CreateRequest::new(Some(slug("agent-a1")), repo.main())
    };
    let made = trees.create(&request(CreateMode::Exclusive, "a1")).unwrap();
    let error = trees
        .create(&request(CreateMode::Exclusive, "a1"))
        .unwrap_err();
    assert_eq!(error.kind(), "exists");
    let error = trees
        .create(&request(CreateMode::Resume, "b2"))
        .unwrap_err();
    assert_eq!(error.kind(), "exists");
    assert!(
        !trees
            .create(&request(CreateMode::Resume, "a1"))
            .unwrap()
            .created
    );

    // Removed as unchanged; the main worktree moves on; the agent returns to its old commit.
    trees
        .remove(&slug("agent-a1"), &Default::default())
        .unwrap();
    repo.write("readme", "two\n");
    repo.git(&["commit", "-qam", "second"]);
    let back = trees.create(&request(CreateMode::Resume, "a1")).unwrap();
    assert!(back.created);
    assert_eq!(back.entry.base, made.entry.base);
    assert_eq!(back.entry.path, made.entry.path);
}

#[test]
fn repositories_that_cannot_have_trees() {
    let empty = TestRepo::empty(&[]);
    let request = CreateRequest::new(Some(slug("x")), empty.main());
    let error = empty.trees().create(&request).unwrap_err();
    assert_eq!(error.kind(), "no_commit");
    assert!(!empty.tree("x").exists());

    let bare = TestRepo::empty(&["--bare"]);
    let error = Trees::discover(bare.main(), TreeOptions::default()).unwrap_err();
    assert_eq!(error.kind(), "bare_repository");
    let nowhere = tempfile::tempdir().unwrap();
    let error = Trees::discover(nowhere.path(), TreeOptions::default()).unwrap_err();
    assert_eq!(error.kind(), "no_repository");

    let outer = TestRepo::new();
    let inner = TestRepo::new();
    outer.git(&[
        "-c",
        "protocol.file.allow=always",
        "submodule",
        "add",
        "-q",
        inner.main().to_str().unwrap(),
        "sub",
    ]);
    let error = Trees::discover(&outer.main().join("sub"), TreeOptions::default()).unwrap_err();
    assert_eq!(error.kind(), "bare_repository");
    assert!(error.to_string().contains("submodule"), "{error}");
}

#[test]
fn repository_hooks_and_monitors_do_not_run() {
    use std::os::unix::fs::PermissionsExt;
    let repo = TestRepo::new();
    let trap = repo.beside("trap");
    let script = format!("#!/bin/sh\necho \"$0\" >> {}\n", trap.display());
    for hook in [
        "post-checkout",
        "post-index-change",
        "reference-transaction",
        "monitor",
    ] {
        let path = repo.main().join(".git/hooks").join(hook);
        write(&path, &script);
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    let monitor = repo.main().join(".git/hooks/monitor");
    repo.git(&["config", "core.fsmonitor", monitor.to_str().unwrap()]);
    std::fs::remove_file(&trap).ok();
    repo.create("x");
    repo.trees().changes(&slug("x")).unwrap();
    repo.trees()
        .remove(&slug("x"), &Default::default())
        .unwrap();
    assert!(!trap.exists(), "{:?}", std::fs::read_to_string(&trap));
}

#[test]
fn a_deleted_directory_is_checked_out_again_with_its_commits_and_index() {
    let repo = TestRepo::new();
    repo.create("x");
    let tree = repo.tree("x");
    write(&tree.join("new"), "committed");
    git(&tree, &["add", "."]);
    git(&tree, &["commit", "-qm", "work"]);
    write(&tree.join("readme"), "staged\n");
    git(&tree, &["add", "."]);
    let tip = git(&tree, &["rev-parse", "HEAD"]);
    // Not into a foreign directory in its place.
    let aside = repo.beside("aside");
    std::fs::rename(&tree, &aside).unwrap();
    write(&tree.join("file"), "not ours");
    let request = CreateRequest::new(Some(slug("x")), repo.main());
    let error = repo.trees().create(&request).unwrap_err();
    assert_eq!(error.kind(), "not_ours", "{error}");
    std::fs::remove_dir_all(&tree).unwrap();
    std::fs::rename(&aside, &tree).unwrap();
    for pruned in [false, true] {
        std::fs::remove_dir_all(&tree).unwrap();
        if pruned {
            repo.git(&["worktree", "prune"]);
        }
        let again = repo.create("x");
        assert!(!again.created);
        assert_eq!(git(&tree, &["rev-parse", "HEAD"]), tip);
        let staged = git(&tree, &["diff", "--cached", "--name-only"]);
        assert_eq!(staged, if pruned { "" } else { "readme\n" });
        let expected = if pruned { "one\n" } else { "staged\n" };
        assert_eq!(
            std::fs::read_to_string(tree.join("readme")).unwrap(),
            expected
        );
    }
    // Only the entry is left: made again from the base, which is recorded.
    std::fs::remove_dir_all(&tree).unwrap();
    repo.git(&["worktree", "prune"]);
    repo.git(&["branch", "-q", "-D", "worktree/x"]);
    repo.git(&[
        "commit",
        "-q",
        "--allow-empty",
        "-m",
        "the main tree goes on",
    ]);
    let again = repo.create("x");
    assert_eq!(again.head, again.entry.base);
    assert_eq!(
        repo.git_in("x", &["branch", "--show-current"]),
        "worktree/x\n"
    );
    repo.check_sound();
}

#[test]
fn a_hook_replaces_git() {
    let repo = TestRepo::new();
    let trees = repo.trees();
    let place = repo.beside("elsewhere");
    let made_at = |answer: String| {
        let hook = move |_: &worktrees::Slug| Ok(answer.clone());
        let request = CreateRequest {
            hook: Some(&hook),
            ..CreateRequest::new(Some(slug("h")), repo.main())
        };
        trees.create(&request)
    };
    for bad in [
        "relative/path".to_owned(),
        place.display().to_string(),
        String::new(),
    ] {
        assert_eq!(made_at(bad).unwrap_err().kind(), "hook_failed");
    }
    std::fs::create_dir(&place).unwrap();
    let made = made_at(format!("{}\n", place.display())).unwrap();
    assert!(made.created && made.entry.hook_based);
    assert_eq!(made.entry.path(), place);
    assert!(repo.tree_branches().is_empty());
    assert_eq!(trees.changes(&slug("h")).unwrap().state.as_str(), "unknown");
    let remove = |discard, hook: Option<worktrees::RemoveHook<'_>>| {
        let request = worktrees::RemoveRequest {
            discard,
            hook,
            ..Default::default()
        };
        trees.remove(&slug("h"), &request)
    };
    assert_eq!(remove(false, None).unwrap_err().kind(), "hook_based");
    assert_eq!(remove(true, None).unwrap_err().kind(), "hook_based");
    let refuse = |_: &worktrees::Entry| Err("no".to_owned());
    assert_eq!(
        remove(true, Some(&refuse)).unwrap_err().kind(),
        "hook_failed"
    );
    let accept = |_: &worktrees::Entry| Ok(());
    let removed = remove(true, Some(&accept)).unwrap();
    assert!(!removed.undoable);
    assert!(place.exists(), "what the hook leaves is left");
}

#[test]
fn other_formats_of_repositories_work_through_git_itself() {
    for args in [["--ref-format=reftable"], ["--object-format=sha256"]] {
        // Older versions of git do not know all of them.
        let probe = tempfile::tempdir().unwrap();
        let known = crate::repo::git_command(probe.path(), &["init", "-q", args[0]]).output();
        if !known.unwrap().status.success() {
            println!("this git does not know {args:?}");
            continue;
        }
        let repo = TestRepo::with_format(&args);
        repo.create("x");
        assert!(!repo.create("x").created);
        let tree = repo.tree("x");
        let state = || repo.trees().changes(&slug("x")).unwrap();
        assert_eq!(state().state.as_str(), "clean", "{args:?} {:?}", state());
        write(&tree.join("new"), "x");
        git(&tree, &["add", "."]);
        git(&tree, &["commit", "-qm", "work"]);
        assert_eq!(state().commits, 1, "{args:?}");
        git(&tree, &["reset", "-q", "--hard", "HEAD~1"]);
        assert_eq!(state().unreferenced, 1, "{args:?}");
        let discard = worktrees::RemoveRequest {
            discard: true,
            ..Default::default()
        };
        repo.trees().remove(&slug("x"), &discard).unwrap();
        assert!(repo.tree_branches().is_empty());
        repo.trees().undo(&slug("x")).unwrap();
        assert_eq!(state().unreferenced, 1, "{args:?}");
        repo.check_sound();
    }
    let repo = TestRepo::new();
    repo.git(&["config", "core.splitIndex", "true"]);
    repo.git(&["update-index", "--split-index"]);
    repo.create("x");
    repo.git_in("x", &["update-index", "--split-index"]);
    let changes = repo.trees().changes(&slug("x")).unwrap();
    assert_eq!(changes.state.as_str(), "clean", "{changes:?}");
}

#[test]
fn links_on_the_way_and_paths_that_are_not_text_are_refused() {
    use std::os::unix::ffi::OsStrExt;
    let repo = TestRepo::new();
    let outside = repo.beside("outside");
    std::fs::create_dir(&outside).unwrap();
    symlink(&outside, repo.main().join(".claude")).unwrap();
    let request = CreateRequest::new(Some(slug("x")), repo.main());
    let error = repo.trees().create(&request).unwrap_err();
    assert_eq!(error.kind(), "path_taken", "{error}");
    assert_eq!(std::fs::read_dir(&outside).unwrap().count(), 0);
    assert!(repo.tree_branches().is_empty());

    let odd = repo
        .beside("x")
        .with_file_name(std::ffi::OsStr::from_bytes(b"odd-\xff"));
    std::fs::create_dir(&odd).unwrap();
    git(&odd, &["init", "-q"]);
    let error = Trees::discover(&odd, TreeOptions::default()).unwrap_err();
    assert_eq!(error.kind(), "bad_path");
}

#[test]
fn a_lock_that_is_never_free_is_named() {
    use std::time::Duration;
    let repo = TestRepo::new();
    repo.create("x");
    let options = TreeOptions {
        lock_timeout: Duration::from_millis(30),
        checkout_timeout: Duration::from_millis(30),
        ..TreeOptions::default()
    };
    let hasty = Trees::discover(repo.main(), options).unwrap();
    for lock in ["repository", "y.tree"] {
        let path = repo.ours().join("locks").join(lock);
        let held = store::lock::FileLock::try_exclusive(&path).unwrap();
        assert!(held.is_some());
        let error = hasty
            .create(&CreateRequest::new(Some(slug("y")), repo.main()))
            .unwrap_err();
        assert_eq!(error.kind(), "lock_timeout", "{lock}: {error}");
    }
    assert!(!repo.tree("y").exists());
    assert_eq!(repo.tree_branches(), ["worktree/x"]);
    repo.create("y");
}

#[test]
fn what_an_interrupted_git_left_does_not_stand_in_the_way() {
    // `git worktree add` writes this first; killed here, it leaves this behind.
    let repo = TestRepo::new();
    repo.create("other");
    let half = repo.main().join(".git/worktrees/x");
    write(&half.join("locked"), "initializing");
    repo.git(&["branch", "unrelated"]);
    let made = repo.create("x");
    assert!(made.created);
    assert_eq!(
        repo.trees().changes(&slug("x")).unwrap().state.as_str(),
        "clean"
    );
    assert!(repo.tree("x").join("readme").exists());
}

#[test]
fn events_name_the_task_a_tree_is_made_for() {
    let repo = TestRepo::new();
    let made_for = CreateRequest {
        task: Some(("board".into(), "3".into())),
        ..CreateRequest::new(Some(slug("attempt")), repo.main())
    };
    let bound = CreateRequest {
        bound_to: Some(("4".into(), "board".into())),
        ..CreateRequest::new(Some(slug("bound")), repo.main())
    };
    for request in [made_for, bound] {
        repo.trees().create(&request).unwrap();
    }
    let events = repo.trees().events(10).unwrap();
    let named: Vec<_> = events.iter().map(|event| &event["task"]["id"]).collect();
    assert_eq!(named, ["3", "3", "4", "4"]);
}
