//! The files a new worktree gets besides the commit's, and the leftovers if that fails.

use std::os::unix::fs::symlink;
use store::Explain;

use worktrees::{CreateRequest, SetUp};

use crate::repo::{TestRepo, git, slug, write};

#[test]
fn set_up_links_copies_and_runs() {
    let repo = TestRepo::new();
    repo.write("node_modules/pkg/index.js", "js");
    repo.write("build/out", "built");
    repo.write("secret.ignored", "key");
    repo.write("deep/other.ignored", "key");
    repo.write("not-wanted.ignored", "key");
    repo.write(".claude/settings.local.json", "{}");
    repo.write(".worktreeinclude", "secret.ignored\n/deep/\nreadme\n");
    repo.git(&["add", ".worktreeinclude"]);
    repo.git(&["commit", "-qm", "include"]);
    let before = repo.surroundings();
    let request = CreateRequest {
        set_up: SetUp {
            symlink_directories: vec!["node_modules/".into(), "absent".into()],
            copy_directories: vec!["build".into()],
            command: Some("echo ran; pwd > made.ignored".into()),
            ..SetUp::default()
        },
        ..CreateRequest::new(Some(slug("x")), repo.main())
    };
    let made = repo.trees().create(&request).unwrap();
    let tree = repo.tree("x");
    assert_eq!(
        std::fs::read_link(tree.join("node_modules")).unwrap(),
        repo.main().join("node_modules")
    );
    let text = |path: &str| std::fs::read_to_string(tree.join(path)).unwrap();
    assert_eq!(text("build/out"), "built");
    assert_eq!(text("secret.ignored"), "key");
    assert_eq!(text("deep/other.ignored"), "key");
    assert_eq!(text(".claude/settings.local.json"), "{}");
    assert_eq!(text("made.ignored").trim(), tree.to_str().unwrap());
    assert!(!tree.join("not-wanted.ignored").exists());
    assert!(made.notes.iter().any(|note| note.contains("absent")));
    let changes = repo.trees().changes(&slug("x")).unwrap();
    assert_eq!(changes.state.as_str(), "clean", "{changes:?}");
    assert_eq!(repo.surroundings(), before);
    // A placed file counts once it is changed.
    write(&tree.join(".claude/settings.local.json"), "{\"a\":1}");
    assert_eq!(repo.trees().changes(&slug("x")).unwrap().untracked, 1);
}

#[test]
fn a_set_up_that_fails_leaves_a_log_and_nothing_else() {
    let repo = TestRepo::new();
    let before = repo.surroundings();
    let request = CreateRequest {
        set_up: SetUp {
            command: Some("echo from the set-up; mkdir shut; chmod 0 shut; exit 3".into()),
            ..SetUp::default()
        },
        ..CreateRequest::new(Some(slug("x")), repo.main())
    };
    let error = repo.trees().create(&request).unwrap_err();
    assert_eq!(error.kind(), "setup_failed", "{error}");
    assert!(!repo.tree("x").exists());
    assert!(repo.tree_branches().is_empty());
    assert!(repo.trees().list().unwrap().is_empty());
    let logs: Vec<_> = std::fs::read_dir(repo.ours().join("logs"))
        .unwrap()
        .collect();
    assert_eq!(logs.len(), 1);
    let log = std::fs::read_to_string(logs[0].as_ref().unwrap().path()).unwrap();
    assert_eq!(log, "from the set-up\n");
    assert_eq!(repo.surroundings(), before);
    let names: Vec<String> = repo
        .trees()
        .events(10)
        .unwrap()
        .iter()
        .map(|event| event["event"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(names, ["worktree.create.before", "worktree.create.failed"]);
    repo.check_sound();
    repo.create("x");
}

#[test]
fn committed_links_lead_the_set_up_nowhere() {
    let repo = TestRepo::new();
    let outside = repo.beside("outside");
    std::fs::create_dir(&outside).unwrap();
    symlink(&outside, repo.main().join("conf")).unwrap();
    repo.git(&["add", "conf"]);
    repo.git(&["commit", "-qm", "a link"]);
    // In the main worktree it is a directory now, with a file worth copying.
    std::fs::remove_file(repo.main().join("conf")).unwrap();
    repo.write("conf/key.ignored", "key");
    repo.write(".worktreeinclude", "*.ignored\n");
    let request = CreateRequest {
        set_up: SetUp {
            copy_directories: vec!["conf/deep".into()],
            ..SetUp::default()
        },
        ..CreateRequest::new(Some(slug("x")), repo.main())
    };
    repo.write("conf/deep/file", "x");
    repo.trees().create(&request).unwrap();
    assert_eq!(std::fs::read_dir(&outside).unwrap().count(), 0);
    for path in ["/etc", "../x", ".git/hooks"] {
        let request = CreateRequest {
            set_up: SetUp {
                symlink_directories: vec![path.into()],
                ..SetUp::default()
            },
            ..CreateRequest::new(Some(slug("y")), repo.main())
        };
        assert_eq!(repo.trees().create(&request).unwrap_err().kind(), "invalid");
    }
}

#[test]
fn a_sparse_tree_stays_sparse_without_shared_configuration() {
    let repo = TestRepo::new();
    repo.write("a/x", "1");
    repo.write("b/y", "1");
    repo.git(&["add", "."]);
    repo.git(&["commit", "-qm", "dirs"]);
    let before = repo.surroundings();
    let request = CreateRequest {
        set_up: SetUp {
            sparse_paths: vec!["a".into()],
            ..SetUp::default()
        },
        ..CreateRequest::new(Some(slug("s")), repo.main())
    };
    repo.trees().create(&request).unwrap();
    let tree = repo.tree("s");
    let shown = |path: &str| tree.join(path).exists();
    assert!(shown("a/x") && shown("readme") && !shown("b") && !shown("src"));
    assert_eq!(
        repo.trees().changes(&slug("s")).unwrap().state.as_str(),
        "clean"
    );
    write(&tree.join("a/new"), "x");
    git(&tree, &["add", "."]);
    git(&tree, &["commit", "-qm", "in a"]);
    git(&tree, &["reset", "-q", "--hard"]);
    assert!(!shown("b"));
    assert!(git(&tree, &["ls-tree", "-r", "--name-only", "HEAD"]).contains("b/y"));
    assert_eq!(repo.surroundings(), before);
}
