//! A worktree from its checkout to the commit that is kept of it: git's view of a new worktree, the
//! commit of a seal, and the rest once the commit is safe elsewhere.

use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::time::{Duration, SystemTime};
use store::Explain;

use worktrees::{ChangeState, CreateMode, CreateRequest, RemoveRequest, TreeStatus};

use crate::repo::{TestRepo, git, slug, write};

/// A repository with every kind of file a checkout can make.
fn varied(format: &[&str]) -> TestRepo {
    let repo = TestRepo::with_format(format);
    repo.write("-dash", "dash\n");
    repo.write("new\nline", "odd\n");
    repo.write("empty", "");
    repo.write("deep/er/file", "deep\n");
    repo.write(".gitattributes", "*.txt text eol=crlf\n");
    repo.write("text.txt", "one\ntwo\n");
    repo.write("tool", "#!/bin/sh\n");
    let run = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(repo.main().join("tool"), run).unwrap();
    symlink("readme", repo.main().join("link")).unwrap();
    repo.git(&["add", "."]);
    repo.git(&["commit", "-qm", "varied"]);
    repo
}

/// The seconds at which the index says its files were written.
fn noted(repo: &TestRepo, name: &str) -> Vec<i64> {
    let text = repo.git_in(name, &["ls-files", "--debug"]);
    let times = text.lines().filter_map(|line| {
        let time = line.trim().strip_prefix("mtime: ")?;
        time.split(':').next()?.parse().ok()
    });
    times.collect()
}

fn index_of(repo: &TestRepo, name: &str) -> std::path::PathBuf {
    repo.main().join(".git/worktrees").join(name).join("index")
}

#[test]
fn git_need_not_read_the_files_of_a_new_tree_again() {
    let repo = varied(&[]);
    repo.create("x");
    let index = std::fs::metadata(index_of(&repo, "x")).unwrap().mtime();
    let noted = noted(&repo, "x");
    assert_eq!(noted.len(), 11);
    assert!(noted.iter().all(|time| *time < index), "{noted:?} {index}");
    for file in ["text.txt", "link", "-dash"] {
        let meta = std::fs::symlink_metadata(repo.tree("x").join(file)).unwrap();
        assert!(noted.contains(&meta.mtime()), "{file}");
    }
    // Says so itself: nothing needs a second look.
    repo.git_in("x", &["diff-files", "--quiet"]);
    assert_eq!(
        repo.trees().changes(&slug("x")).unwrap().state,
        ChangeState::Clean
    );
    repo.check_sound();
}

#[test]
fn what_is_written_right_after_the_checkout_is_seen() {
    let repo = varied(&[]);
    for round in 0..20 {
        let name = format!("x{round}");
        repo.create(&name);
        let at = repo.tree(&name);
        // The same length, within the same moment.
        write(&at.join("readme"), "two\n");
        let found = repo.trees().changes(&slug(&name)).unwrap();
        assert_eq!(found.files, 1, "round {round}: {found:?}");
        assert!(
            repo.git_in(&name, &["status", "--porcelain"])
                .contains(" M readme"),
            "round {round}"
        );
    }
}

#[test]
fn an_index_of_another_form_is_left_as_it_is() {
    for (what, format, config) in [
        ("version 4", &[][..], &["index.version", "4"]),
        ("no checksum", &[], &["index.skipHash", "true"]),
        ("split", &[], &["core.splitIndex", "true"]),
        (
            "sha256",
            &["--object-format=sha256"],
            &["core.fileMode", "true"],
        ),
    ] {
        let repo = varied(format);
        repo.git(&["config", config[0], config[1]]);
        repo.create("x");
        assert_eq!(
            repo.git_in("x", &["status", "--porcelain"]),
            "",
            "{what}: nothing changed"
        );
        write(&repo.tree("x").join("readme"), "two\n");
        let sealed = repo.trees().seal(&slug("x"), "two").unwrap();
        assert!(sealed.changed, "{what}");
        assert_eq!(
            repo.git_in("x", &["show", "HEAD:readme"]),
            "two\n",
            "{what}"
        );
        repo.check_sound();
    }
}

#[test]
fn a_seal_commits_everything_and_nothing_else() {
    let repo = varied(&[]);
    repo.create("x");
    let at = repo.tree("x");
    for (path, text) in [
        ("readme", "changed\n"),
        ("-new", "dash\n"),
        (":(top)odd", "pathspec\n"),
        ("sp ace/new\nline", "odd\n"),
        ("text.txt", "one\r\ntwo\r\nthree\r\n"),
        ("out.ignored", "not this\n"),
    ] {
        write(&at.join(path), text);
    }
    // A file becomes a directory, a directory a file, a file a link; one is deleted, one becomes
    // executable.
    std::fs::remove_file(at.join("empty")).unwrap();
    write(&at.join("empty/not"), "inside\n");
    std::fs::remove_dir_all(at.join("deep")).unwrap();
    write(&at.join("deep"), "a file now\n");
    std::fs::remove_file(at.join("src/lib")).unwrap();
    symlink("../tool", at.join("src/lib")).unwrap();
    std::fs::remove_file(at.join("-dash")).unwrap();
    let run = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(at.join("new\nline"), run).unwrap();
    // Something staged, then changed again.
    git(&at, &["add", "readme"]);
    write(&at.join("readme"), "changed again\n");

    let sealed = repo
        .trees()
        .seal(&slug("x"), "all of it\n\nwith words")
        .unwrap();
    assert!(sealed.changed);
    assert_eq!(repo.git_in("x", &["status", "--porcelain"]), "");
    assert_eq!(
        repo.git_in("x", &["rev-parse", "HEAD"]).trim(),
        sealed.commit
    );
    let listed = repo.git_in("x", &["ls-tree", "-r", "--name-only", "-z", "HEAD"]);
    let mut listed: Vec<&str> = listed.split('\0').filter(|name| !name.is_empty()).collect();
    listed.sort_unstable();
    let expected = [
        "-new",
        ".gitattributes",
        ".gitignore",
        ":(top)odd",
        "deep",
        "empty/not",
        "link",
        "new\nline",
        "readme",
        "sp ace/new\nline",
        "src/lib",
        "text.txt",
        "tool",
    ];
    assert_eq!(listed, expected);
    let show = |spec: &str| repo.git_in("x", &["show", spec]);
    assert_eq!(show("HEAD:readme"), "changed again\n");
    // git decides about the form of a file in the repository.
    assert_eq!(show("HEAD:text.txt"), "one\ntwo\nthree\n");
    assert_eq!(
        repo.git_in("x", &["log", "-1", "--format=%B"]).trim(),
        "all of it\n\nwith words"
    );
    let modes = repo.git_in("x", &["ls-tree", "-r", "HEAD"]);
    assert_eq!(modes.matches("100755 blob").count(), 2, "{modes}");
    assert_eq!(modes.matches("120000 blob").count(), 2, "{modes}");
    // Once more: there is nothing to commit.
    let again = repo.trees().seal(&slug("x"), "again").unwrap();
    assert_eq!(again.commit, sealed.commit);
    repo.check_sound();
}

#[test]
fn a_change_that_makes_no_difference_makes_no_commit() {
    let repo = varied(&[]);
    repo.create("x");
    let head = repo.git(&["rev-parse", "HEAD"]);
    // Staged and reverted: git sees two changes that cancel each other.
    write(&repo.tree("x").join("readme"), "two\n");
    repo.git_in("x", &["add", "readme"]);
    write(&repo.tree("x").join("readme"), "one\n");
    let sealed = repo.trees().seal(&slug("x"), "nothing").unwrap();
    assert_eq!(sealed.commit, head.trim());
    assert!(!sealed.changed);
    assert_eq!(repo.git_in("x", &["status", "--porcelain"]), "");
}

fn remove_keeping(repo: &TestRepo, name: &str, commit: &str) -> worktrees::Removed {
    let request = RemoveRequest {
        discard: true,
        kept: Some(commit),
        ..RemoveRequest::default()
    };
    repo.trees().remove(&slug(name), &request).unwrap()
}

fn rescued(repo: &TestRepo) -> String {
    repo.git(&["for-each-ref", "--format=%(refname)", "refs/ccb/rescue/"])
}

fn in_trash(repo: &TestRepo) -> usize {
    std::fs::read_dir(repo.ours().join("trash"))
        .unwrap()
        .count()
}

#[test]
fn a_tree_whose_commit_is_kept_leaves_nothing_but_a_line() {
    let repo = TestRepo::new();
    for name in ["a", "b", "c"] {
        let base = repo.create(name).entry.base;
        write(&repo.tree(name).join("work"), name);
        let sealed = repo.trees().seal(&slug(name), "work").unwrap();
        let removed = remove_keeping(&repo, name, &sealed.commit);
        assert!(!removed.undoable);
        assert!(!repo.tree(name).exists());
        let listed = repo.trees().list().unwrap();
        let last = listed.last().unwrap();
        assert_eq!(
            (last.name.as_str(), last.status),
            (name, TreeStatus::Removed)
        );
        assert_eq!(last.base, base);
    }
    assert_eq!(rescued(&repo), "");
    assert_eq!(in_trash(&repo), 0);
    assert!(repo.tree_branches().is_empty());
    let registry = std::fs::read_to_string(repo.ours().join("index.json")).unwrap();
    assert!(
        !registry.contains("\"name\""),
        "it does not grow: {registry}"
    );
    assert_eq!(repo.trees().list().unwrap().len(), 3);
    assert_eq!(
        repo.trees().undo(&slug("a")).unwrap_err().kind(),
        "nothing_to_undo"
    );
    // A resumed agent starts from the same base.
    let base = repo.trees().list().unwrap()[0].base.clone();
    repo.git(&["commit", "-q", "--allow-empty", "-m", "later"]);
    let mut request = CreateRequest::new(Some(slug("a")), repo.main());
    request.mode = CreateMode::Resume;
    let again = repo.trees().create(&request).unwrap();
    assert_eq!(again.entry.base, base);
    repo.check_sound();
}

#[test]
fn what_the_kept_commit_does_not_have_goes_to_the_trash() {
    type Spoil = fn(&TestRepo, &str);
    let cases: [(&str, Spoil); 5] = [
        ("file", |repo, name| {
            write(&repo.tree(name).join("late"), "late");
        }),
        ("commit", |repo, name| {
            repo.git_in(name, &["commit", "-q", "--allow-empty", "-m", "late"]);
        }),
        ("elsewhere", |repo, name| {
            // The branch has more than HEAD.
            repo.git_in(name, &["commit", "-q", "--allow-empty", "-m", "late"]);
            repo.git_in(name, &["checkout", "-q", "--detach", "HEAD~1"]);
        }),
        ("reflog", |repo, name| {
            repo.git_in(name, &["commit", "-q", "--allow-empty", "-m", "late"]);
            repo.git_in(name, &["reset", "-q", "--hard", "HEAD~1"]);
        }),
        ("stash", |repo, name| {
            write(&repo.tree(name).join("work"), "stashed");
            repo.git_in(name, &["stash", "-q"]);
        }),
    ];
    for (name, spoil) in cases {
        let repo = TestRepo::new();
        repo.create(name);
        write(&repo.tree(name).join("work"), "work");
        let sealed = repo.trees().seal(&slug(name), "work").unwrap();
        spoil(&repo, name);
        let removed = remove_keeping(&repo, name, &sealed.commit);
        assert!(removed.undoable, "{name}");
        assert_eq!(in_trash(&repo), 1, "{name}");
        assert_ne!(rescued(&repo), "", "{name}");
        repo.trees().undo(&slug(name)).unwrap();
        assert!(repo.tree(name).join("work").exists(), "{name}");
        repo.check_sound();
    }
}

#[test]
fn removed_trees_are_forgotten_in_the_end() {
    let repo = TestRepo::new();
    repo.create("a");
    write(&repo.tree("a").join("work"), "work");
    let sealed = repo.trees().seal(&slug("a"), "work").unwrap();
    remove_keeping(&repo, "a", &sealed.commit);
    let list = repo.ours().join("removed.jsonl");
    // A crash may leave half a line, or one twice.
    let line = std::fs::read_to_string(&list).unwrap();
    std::fs::write(&list, format!("{line}{line}{{\"name\":")).unwrap();
    assert_eq!(repo.trees().list().unwrap().len(), 1);
    repo.create("b");
    let head = repo.git(&["rev-parse", "HEAD"]);
    remove_keeping(&repo, "b", head.trim());
    let names: Vec<String> = repo
        .trees()
        .list()
        .unwrap()
        .into_iter()
        .map(|entry| entry.name)
        .collect();
    assert_eq!(names, ["a", "b"]);
    repo.trees().tidy().unwrap();
    assert_eq!(repo.trees().list().unwrap().len(), 2);
    let later = SystemTime::now() + Duration::from_secs(1000 * 24 * 60 * 60);
    let later = later.duration_since(SystemTime::UNIX_EPOCH).unwrap();
    let options = worktrees::TreeOptions {
        clock: std::sync::Arc::new(store::clock::ManualClock::at(
            i64::try_from(later.as_millis()).unwrap(),
        )),
        ..worktrees::TreeOptions::default()
    };
    let then = worktrees::Trees::discover(repo.main(), options).unwrap();
    then.tidy().unwrap();
    assert!(then.list().unwrap().is_empty());
}
