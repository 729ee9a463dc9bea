//! What an agent can leave in its worktree: nothing of it runs, and nothing outside is written.
//! Every trap is first seen to work where git is called without care.

use worktrees::{ChangeState, TreeSnapshot, fingerprint_of};

use crate::repo::{TestRepo, git, git_command, slug, write};

/// A worktree with a repository inside that its index names, and in that one a filter that runs a
/// program as soon as git compares a file.
fn with_nested_trap(submodule: bool) -> TestRepo {
    let repo = TestRepo::new();
    if submodule {
        let library = repo.beside("library");
        std::fs::create_dir(&library).unwrap();
        git(&library, &["init", "-q"]);
        write(&library.join("file"), "one\n");
        git(&library, &["add", "."]);
        git(&library, &["commit", "-qm", "library"]);
        let file = ["-c", "protocol.file.allow=always", "submodule", "add", "-q"];
        let library = library.to_str().unwrap().to_owned();
        repo.git(&[&file[..], &[&library, "nest"]].concat());
        repo.git(&["commit", "-qm", "a submodule"]);
    }
    repo.create("x");
    let nest = repo.tree("x").join("nest");
    if !submodule {
        std::fs::create_dir(&nest).unwrap();
    }
    git(&nest, &["init", "-q"]);
    write(&nest.join("file"), "one\n");
    git(&nest, &["add", "file"]);
    git(&nest, &["commit", "-qm", "inside"]);
    if !submodule {
        repo.git_in("x", &["-c", "advice.addEmbeddedRepo=false", "add", "nest"]);
    }
    let ran = repo.beside("ran");
    let clean = format!("touch {}; cat", ran.display());
    git(&nest, &["config", "filter.t.clean", &clean]);
    write(&nest.join(".gitattributes"), "* filter=t\n");
    // As long as before, and written later: git has to look inside.
    write(&nest.join("file"), "two\n");
    repo
}

#[test]
fn a_repository_inside_runs_nothing_when_ccb_looks() {
    for submodule in [false, true] {
        let repo = with_nested_trap(submodule);
        let (tree, ran) = (repo.tree("x"), repo.beside("ran"));
        let found = repo.trees().changes(&slug("x")).unwrap();
        assert_eq!(found.state, ChangeState::Changed, "{found:?}");
        assert_eq!(found.nested, 1, "work in it would be lost: {found:?}");
        for dir in [tree.clone(), tree.join("nest")] {
            assert!(TreeSnapshot::take(&dir).is_some());
            assert!(fingerprint_of(&dir).is_some());
        }
        assert!(worktrees::patch::uncommitted(&tree).is_ok());
        assert!(repo.trees().seal(&slug("x"), "work").is_err());
        assert!(!ran.exists(), "submodule: {submodule}");
        let careless = ["status", "--ignore-submodules=none"];
        git_command(&tree, &careless).output().unwrap();
        assert!(ran.exists(), "the trap works");
    }
}

#[test]
fn a_repository_inside_with_clean_files_still_counts() {
    // A commit that holds a repository inside, and a worktree in which that one has files.
    let repo = with_nested_trap(true);
    let found = repo.trees().changes(&slug("x")).unwrap();
    assert_eq!((found.nested, found.commits), (1, 0));
    let removed = repo
        .trees()
        .remove(&slug("x"), &worktrees::RemoveRequest::default());
    assert!(removed.is_err(), "what is inside is nowhere else");
}
