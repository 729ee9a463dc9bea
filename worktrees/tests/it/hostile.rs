//! Traps that an agent can leave in its worktree: none of them runs, and nothing outside is
//! written. Every trap is first seen to work where git is called without care.

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
    // The same length, and written later: git has to look inside.
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

/// A worktree with a change in it, and a branch of the user's that no agent may move.
fn with_work() -> (TestRepo, String) {
    let repo = TestRepo::new();
    repo.git(&["branch", "feature/x"]);
    repo.create("x");
    write(&repo.tree("x").join("readme"), "work\n");
    let feature = repo.git(&["rev-parse", "feature/x"]);
    (repo, feature)
}

fn seal(repo: &TestRepo) -> Result<worktrees::Sealed, worktrees::TreeError> {
    repo.trees().seal(&slug("x"), "$(touch ran)")
}

#[test]
fn no_log_is_written_through_a_link() {
    let branch = ".git/logs/refs/heads/worktree/x";
    for (log, dir) in [
        (branch, false),
        (".git/worktrees/x/logs/HEAD", false),
        (".git/logs/refs/heads/worktree", true),
    ] {
        let (repo, _) = with_work();
        let log = repo.main().join(log);
        let victim = repo.beside("victim");
        if dir {
            std::fs::rename(&log, &victim).unwrap();
        } else {
            std::fs::rename(&log, repo.beside("old")).unwrap();
            write(&victim, "untouched\n");
        }
        std::os::unix::fs::symlink(&victim, &log).unwrap();
        let before = contents(&victim);
        let error = seal(&repo).unwrap_err();
        assert!(error.to_string().contains("symbolic link"), "{error}");
        assert_eq!(contents(&victim), before, "{log:?}");
        repo.git_in("x", &["commit", "-qam", "careless"]);
        assert_ne!(contents(&victim), before, "the trap works: {log:?}");
    }
}

/// The text of a file, or of the file `x` in a directory.
fn contents(path: &std::path::Path) -> String {
    let file = match path.is_dir() {
        true => path.join("x"),
        false => path.to_owned(),
    };
    std::fs::read_to_string(file).unwrap()
}

#[test]
fn only_the_registered_branch_moves() {
    let at_feature = "ref: refs/heads/feature/x\n";
    for file in [".git/worktrees/x/HEAD", ".git/refs/heads/worktree/x"] {
        let (repo, feature) = with_work();
        write(&repo.main().join(file), at_feature);
        let sealed = seal(&repo).unwrap();
        assert!(sealed.changed);
        assert_eq!(repo.git(&["rev-parse", "feature/x"]), feature, "{file}");
        let branch = repo.git(&["rev-parse", "worktree/x"]);
        assert_eq!(branch.trim(), sealed.commit, "{file}");
        let head = repo.git_in("x", &["symbolic-ref", "HEAD"]);
        assert_eq!(head.trim(), "refs/heads/worktree/x", "{file}");
        assert_eq!(repo.git_in("x", &["status", "--porcelain"]), "");
        // A careless git does this with the same files.
        write(&repo.main().join(file), at_feature);
        repo.git_in("x", &["commit", "-q", "--allow-empty", "-m", "careless"]);
        assert_ne!(repo.git(&["rev-parse", "feature/x"]), feature, "{file}");
    }
}

#[test]
fn what_git_cannot_keep_is_named_and_a_link_for_a_directory_is_work() {
    let (repo, _) = with_work();
    let at = repo.tree("x");
    std::fs::remove_dir_all(at.join("src")).unwrap();
    std::os::unix::fs::symlink("elsewhere", at.join("src")).unwrap();
    let sealed = seal(&repo).unwrap();
    let files = repo.git(&["ls-tree", "-r", "--name-only", &sealed.commit]);
    assert_eq!(files, ".gitignore\nreadme\nsrc\n");
    std::fs::remove_file(at.join("readme")).unwrap();
    let made = std::process::Command::new("mkfifo")
        .arg(at.join("readme"))
        .status();
    assert!(made.unwrap().success());
    let error = seal(&repo).unwrap_err().to_string();
    assert!(error.contains("readme is a FIFO"), "{error}");
}
