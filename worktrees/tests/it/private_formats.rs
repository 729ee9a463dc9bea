//! An agent's own `.git` in repositories of every kind that git knows.

use std::path::Path;

use worktrees::{CreateRequest, Sealed, SetUp};

use crate::repo::{TestRepo, git, git_command, slug, write};

/// An agent commits twice, stashes and leaves an uncommitted file; all of it is sealed.
fn agent_works(repo: &TestRepo, about: &str, meanwhile: impl FnOnce(&Path)) -> Sealed {
    let trees = repo.trees();
    let mut lease = trees.hold(&slug("x")).unwrap();
    assert_eq!(
        trees.enter(&slug("x"), &mut lease).unwrap(),
        None,
        "{about}"
    );
    let tree = repo.tree("x");
    assert_eq!(git(&tree, &["status", "--porcelain"]), "", "{about}");
    for text in ["one more\n", "two more\n"] {
        write(&tree.join("readme"), text);
        git(&tree, &["commit", "-qam", text.trim()]);
    }
    write(&tree.join("readme"), "stashed\n");
    git(&tree, &["stash", "-q"]);
    git(&tree, &["stash", "drop", "-q"]);
    meanwhile(&tree);
    write(&tree.join("loose"), "loose\n");
    assert_eq!(
        trees.leave(&slug("x"), Some(&mut lease)).unwrap(),
        None,
        "{about}"
    );
    drop(lease);
    let sealed = trees.seal(&slug("x"), "sealed").unwrap();
    assert_eq!(sealed.history_refused, None, "{about}");
    let log = repo.git(&["log", "--format=%s", &sealed.commit]);
    assert!(log.starts_with("sealed\n"), "{about}: {log}");
    assert!(
        log.contains("two more\n") && log.contains("one more\n"),
        "{about}: {log}"
    );
    assert_eq!(git(&tree, &["status", "--porcelain"]), "", "{about}");
    let private = repo.ours().join("private");
    if private.exists() {
        std::fs::remove_dir_all(private).unwrap();
    }
    repo.git(&["fsck", "--strict", "--no-dangling"]);
    sealed
}

fn nothing(_: &Path) {}

#[test]
fn with_other_names_for_objects_and_another_store_for_refs() {
    for format in [
        &["--object-format=sha256"][..],
        &["--ref-format=reftable"],
        &["--object-format=sha256", "--ref-format=reftable"],
    ] {
        let repo = TestRepo::with_format(format);
        repo.create("x");
        agent_works(&repo, &format!("{format:?}"), nothing);
    }
}

#[test]
fn in_a_shallow_and_in_a_partial_clone() {
    let origin = TestRepo::new();
    for n in 0..3 {
        origin.write("readme", &format!("{n}\n"));
        origin.git(&["commit", "-qam", "more"]);
    }
    origin.git(&["config", "uploadpack.allowFilter", "true"]);
    origin.git(&["config", "uploadpack.allowAnySHA1InWant", "true"]);
    let from = format!("file://{}", origin.main().display());
    for how in ["--depth=1", "--filter=blob:none"] {
        let repo = TestRepo::cloned(&from, &[how]);
        repo.create("x");
        agent_works(&repo, how, |tree| {
            if how == "--depth=1" {
                git(tree, &["fetch", "-q", "--unshallow"]);
            }
            git(tree, &["log", "-p", "-2"]);
        });
    }
}

#[test]
fn with_a_split_index() {
    let repo = TestRepo::new();
    repo.git(&["config", "core.splitIndex", "true"]);
    repo.create("x");
    git(&repo.tree("x"), &["update-index", "--split-index"]);
    agent_works(&repo, "split index", nothing);
}

#[test]
fn with_only_some_paths_checked_out() {
    let repo = TestRepo::new();
    repo.write("docs/guide", "guide\n");
    repo.git(&["add", "."]);
    repo.git(&["commit", "-qm", "docs"]);
    let set_up = SetUp {
        sparse_paths: vec!["src".into(), "readme".into()],
        ..SetUp::default()
    };
    repo.trees()
        .create(&CreateRequest {
            set_up,
            ..CreateRequest::new(Some(slug("x")), repo.main())
        })
        .unwrap();
    let sealed = agent_works(&repo, "sparse", |tree| {
        assert!(!tree.join("docs").exists());
        // A merge also changes files that are not checked out.
        git(tree, &["checkout", "-q", "-b", "other", "HEAD~2"]);
        let blob = {
            write(&tree.join("src/new"), "guide, better\n");
            git(tree, &["hash-object", "-w", "src/new"])
                .trim()
                .to_owned()
        };
        git(
            tree,
            &[
                "update-index",
                "--cacheinfo",
                &format!("100644,{blob},docs/guide"),
            ],
        );
        git(tree, &["update-index", "--skip-worktree", "docs/guide"]);
        git(tree, &["commit", "-qm", "other"]);
        git(tree, &["checkout", "-q", "worktree/x"]);
        git(tree, &["merge", "-q", "--no-edit", "other"]);
    });
    let guide = repo.git(&["show", &format!("{}:docs/guide", sealed.commit)]);
    assert_eq!(
        guide, "guide, better\n",
        "nothing was deleted or taken back"
    );
}

#[test]
fn an_agent_that_narrows_the_checkout_deletes_nothing() {
    let repo = TestRepo::new();
    repo.write("docs/guide", "guide\n");
    repo.git(&["add", "."]);
    repo.git(&["commit", "-qm", "docs"]);
    repo.create("x");
    let sealed = agent_works(&repo, "narrowed", |tree| {
        git(
            tree,
            &["sparse-checkout", "set", "--no-cone", "/readme", "/loose"],
        );
        assert!(!tree.join("docs/guide").exists());
        write(&tree.join("readme"), "three\n");
        git(tree, &["commit", "-qam", "three"]);
    });
    repo.git(&["show", &format!("{}:docs/guide", sealed.commit)]);
}

#[test]
fn with_submodules() {
    let repo = TestRepo::new();
    let library = repo.beside("library");
    std::fs::create_dir(&library).unwrap();
    git(&library, &["init", "-q"]);
    write(&library.join("file"), "one\n");
    git(&library, &["add", "."]);
    git(&library, &["commit", "-qm", "library"]);
    let file = ["-c", "protocol.file.allow=always", "submodule"];
    let library = library.to_str().unwrap().to_owned();
    repo.git(&[&file[..], &["add", "-q", &library, "lib"]].concat());
    repo.git(&["commit", "-qm", "a submodule"]);
    repo.create("x");
    let init = |tree: &Path| {
        git(tree, &[&file[..], &["update", "-q", "--init"]].concat());
        assert!(tree.join("lib/file").exists());
    };
    agent_works(&repo, "submodule", init);
    assert!(repo.tree("x").join("lib/file").exists());
    // Commits inside are not taken over, and the result says so.
    let trees = repo.trees();
    let mut lease = trees.hold(&slug("x")).unwrap();
    trees.enter(&slug("x"), &mut lease).unwrap();
    let tree = repo.tree("x");
    std::fs::remove_dir_all(tree.join("lib")).unwrap();
    init(&tree);
    // The next agent finds it as it was left.
    trees.leave(&slug("x"), Some(&mut lease)).unwrap();
    assert!(!tree.join("lib/.git").exists());
    assert_eq!(git(&tree, &["status", "--porcelain", "lib"]), "");
    trees.enter(&slug("x"), &mut lease).unwrap();
    git(
        &tree.join("lib"),
        &["commit", "-q", "--allow-empty", "-m", "inside"],
    );
    trees.leave(&slug("x"), Some(&mut lease)).unwrap();
    let error = trees.seal(&slug("x"), "sealed").unwrap_err().to_string();
    assert!(error.contains("submodule lib"), "{error}");
}

#[test]
fn with_large_files_of_lfs() {
    // The store alone: git-lfs is not on every machine.
    let repo = TestRepo::new();
    repo.create("x");
    let trees = repo.trees();
    let mut lease = trees.hold(&slug("x")).unwrap();
    trees.enter(&slug("x"), &mut lease).unwrap();
    let tree = repo.tree("x");
    let sum = "03ac674216f3e15c761ee1a5e255f067953623c8b388b4459e13f978d7c846f4";
    let lies = "13ac674216f3e15c761ee1a5e255f067953623c8b388b4459e13f978d7c846f4";
    for name in [sum, lies] {
        let dir = tree
            .join(".git/lfs/objects")
            .join(&name[..2])
            .join(&name[2..4]);
        std::fs::create_dir_all(&dir).unwrap();
        write(&dir.join(name), "1234");
    }
    trees.leave(&slug("x"), Some(&mut lease)).unwrap();
    let taken = repo.main().join(".git/lfs/objects/03/ac").join(sum);
    assert_eq!(std::fs::read_to_string(taken).unwrap(), "1234");
    let refused = repo.main().join(".git/lfs/objects/13/ac").join(lies);
    assert!(!refused.exists());
}

#[test]
fn hooks_of_the_repository_run_for_the_agent() {
    use std::os::unix::fs::PermissionsExt;
    let repo = TestRepo::new();
    let hook = repo.main().join(".git/hooks/post-commit");
    std::fs::create_dir_all(hook.parent().unwrap()).unwrap();
    write(&hook, "#!/bin/sh\ntouch hooked\n");
    std::fs::set_permissions(&hook, std::fs::Permissions::from_mode(0o755)).unwrap();
    repo.create("x");
    agent_works(&repo, "hooks", |tree| {
        assert!(tree.join("hooked").exists());
        std::fs::remove_file(tree.join("hooked")).unwrap();
        let alternates = git_command(tree, &["rev-parse", "--git-path", "hooks"]).output();
        assert!(alternates.unwrap().status.success());
    });
}
