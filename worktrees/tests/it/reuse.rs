//! Reused worktrees: as new for the next agent, and nothing of the previous one is lost.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use worktrees::{ChangeState, CreateRequest, GivenBack, SetUp, Trees};

use crate::repo::{TestRepo, git, slug, write};

/// A change that a process made in a worktree.
type Meddle = fn(&Path);

/// A worktree with a commit of its work, which is kept, and the commit.
fn worked_in(repo: &TestRepo, trees: &Trees, name: &str) -> String {
    repo.create(name);
    write(&repo.tree(name).join("new"), "work\n");
    write(&repo.tree(name).join("readme"), "changed\n");
    let sealed = trees.seal(&slug(name), "Work\n\nTask: x#1\n").unwrap();
    assert!(sealed.changed);
    assert_eq!(sealed.seen.head.as_ref(), Some(&sealed.commit));
    assert_eq!(sealed.seen, trees.changes(&slug(name)).unwrap());
    trees.pin(&format!("kept/{name}"), &sealed.commit).unwrap();
    sealed.commit
}

fn inode(path: &Path) -> u64 {
    std::fs::metadata(path).unwrap().ino()
}

#[test]
fn a_tree_is_as_new_for_the_next_one() {
    let repo = TestRepo::new();
    let trees = repo.trees();
    let kept = worked_in(&repo, &trees, "one");
    write(&repo.tree("one").join("cache.ignored"), "of the one before");
    write(
        &repo.tree("one").join("build/deep/out"),
        "of the one before",
    );
    let was = inode(&repo.tree("one"));
    let given = trees.give_back(&slug("one"), &kept, &SetUp::default());
    assert_eq!(given.unwrap(), GivenBack::Yes);
    assert!(trees.get(&slug("one")).is_err());
    assert_eq!(repo.tree_branches(), Vec::<String>::new());
    assert_eq!(trees.pinned("kept/one").unwrap(), Some(kept));
    repo.check_sound();

    repo.create("two");
    let tree = repo.tree("two");
    assert_eq!(inode(&tree), was, "it is that very directory");
    assert!(trees.pool().unwrap().is_empty());
    for gone in ["new", "cache.ignored", "build"] {
        assert!(!tree.join(gone).exists(), "{gone}");
    }
    assert_eq!(
        std::fs::read_to_string(tree.join("readme")).unwrap(),
        "one\n"
    );
    assert_eq!(
        git(&tree, &["rev-parse", "HEAD"]),
        repo.git(&["rev-parse", "main"])
    );
    let changes = trees.changes(&slug("two")).unwrap();
    assert_eq!(changes.state, ChangeState::Clean, "{changes:?}");
    repo.check_sound();
    // And an untouched worktree, too.
    let base = repo.git(&["rev-parse", "main"]).trim().to_owned();
    let given = trees.give_back(&slug("two"), &base, &SetUp::default());
    assert_eq!(given.unwrap(), GivenBack::Yes);
    assert_eq!(trees.drop_used().unwrap(), 1);
    assert!(trees.pool().unwrap().is_empty());
    assert_eq!(std::fs::read_dir(repo.tree("")).unwrap().count(), 0);
    assert_eq!(
        std::fs::read_dir(repo.ours().join("trash"))
            .unwrap()
            .count(),
        0,
        "nothing was in it"
    );
    repo.check_sound();
}

#[test]
fn what_is_not_kept_elsewhere_stays_where_it_is() {
    let meddles: &[(&str, Meddle)] = &[
        ("a commit on top", |tree| {
            git(tree, &["commit", "-q", "--allow-empty", "-m", "precious"]);
        }),
        ("an amended commit", |tree| {
            git(tree, &["commit", "-q", "--amend", "-m", "precious"]);
            git(tree, &["reset", "-q", "--hard", "ORIG_HEAD"]);
        }),
        ("another branch", |tree| {
            git(tree, &["checkout", "-q", "-b", "mine"]);
        }),
        ("a merge", |tree| {
            let path = git(tree, &["rev-parse", "--git-path", "MERGE_HEAD"]);
            let head = git(tree, &["rev-parse", "HEAD"]);
            write(&tree.join(path.trim()), &head);
        }),
    ];
    for (what, meddle) in meddles {
        let repo = TestRepo::new();
        let trees = repo.trees();
        let kept = worked_in(&repo, &trees, "one");
        let tree = repo.tree("one");
        meddle(&tree);
        let before = git(&tree, &["reflog", "--format=%H"]);
        let given = trees.give_back(&slug("one"), &kept, &SetUp::default());
        assert!(matches!(given, Ok(GivenBack::No(_))), "{what}: {given:?}");
        assert!(trees.get(&slug("one")).is_ok(), "{what}");
        assert_eq!(git(&tree, &["reflog", "--format=%H"]), before, "{what}");
    }
}

#[test]
fn what_somebody_leaves_in_a_tree_of_the_pool_goes_to_the_trash_not_to_the_next_one() {
    let meddles: &[(&str, Meddle)] = &[
        ("untracked", |tree| write(&tree.join("precious"), "x")),
        ("modified", |tree| write(&tree.join("src/lib"), "precious")),
        ("staged", |tree| {
            write(&tree.join("precious"), "x");
            git(tree, &["add", "."]);
        }),
        ("committed", |tree| {
            git(tree, &["commit", "-q", "--allow-empty", "-m", "precious"]);
        }),
    ];
    for (what, meddle) in meddles {
        let repo = TestRepo::new();
        let trees = repo.trees();
        let kept = worked_in(&repo, &trees, "one");
        // Late: by a process that was not ended, or a person.
        trees
            .give_back(&slug("one"), &kept, &SetUp::default())
            .unwrap();
        let pooled = trees.pool().unwrap().remove(0);
        meddle(Path::new(&pooled.path));
        let was = inode(Path::new(&pooled.path));
        repo.create("two");
        assert_ne!(inode(&repo.tree("two")), was, "{what}");
        let changes = trees.changes(&slug("two")).unwrap();
        assert_eq!(changes.state, ChangeState::Clean, "{what}");
        trees.undo(&slug(&pooled.name)).unwrap();
        assert_eq!(inode(&repo.tree(&pooled.name)), was, "{what}");
        repo.check_sound();
    }
}

#[test]
fn a_tree_with_directories_of_the_main_tree_is_not_used_again() {
    let repo = TestRepo::new();
    let trees = repo.trees();
    repo.write("node_modules/dep", "d");
    let set_up = SetUp {
        copy_directories: vec!["node_modules".into()],
        ..SetUp::default()
    };
    let name = slug("one");
    let request = CreateRequest {
        set_up: set_up.clone(),
        ..CreateRequest::new(Some(name.clone()), repo.main())
    };
    let made = trees.create(&request).unwrap();
    let base = made.entry.base.unwrap();
    let given = trees.give_back(&name, &base, &set_up).unwrap();
    assert!(matches!(given, GivenBack::No(_)), "{given:?}");
}

#[test]
fn patches_made_together_are_those_made_one_by_one() {
    let repo = TestRepo::new();
    let trees = repo.trees();
    repo.git(&["config", "diff.noprefix", "true"]);
    repo.git(&["config", "log.decorate", "full"]);
    repo.git(&["config", "diff.context", "1"]);
    let base = repo.git(&["rev-parse", "main"]).trim().to_owned();
    let mut pairs = Vec::new();
    for number in 0..7 {
        let name = format!("t{number}");
        repo.create(&name);
        let tree = repo.tree(&name);
        match number {
            0 => write(&tree.join("new"), "work\n"),
            1 => write(&tree.join("readme"), "no end of line"),
            2 => std::fs::remove_file(tree.join("src/lib")).unwrap(),
            3 => std::fs::write(tree.join("bytes"), [0, 1, 2, 0, 255]).unwrap(),
            4 => write(&tree.join("ümlaut"), "x\u{0}y\n"),
            5 => write(&tree.join("a b\"c"), "From 1 Mon Sep 17 00:00:00 2001\n"),
            _ => {
                write(&tree.join("first"), "1");
                git(&tree, &["add", "."]);
                git(&tree, &["commit", "-qm", "first of two"]);
                write(&tree.join("second"), "2");
            }
        }
        let message = "Subject über\n\nFrom me.\n---\ndiff --git\n";
        let sealed = trees.seal(&slug(&name), message).unwrap();
        pairs.push((base.clone(), sealed.commit));
    }
    let together = worktrees::patch::format_all(repo.main(), &pairs);
    for ((base, commit), patch) in pairs.iter().zip(together) {
        let alone = worktrees::patch::format(repo.main(), base, commit).unwrap();
        assert_eq!(
            String::from_utf8_lossy(&patch.unwrap()),
            String::from_utf8_lossy(&alone)
        );
        let stat = worktrees::patch::stat(repo.main(), base, commit).unwrap();
        let numbers = repo.git(&["diff", "--numstat", "--no-renames", "-z", base, commit]);
        let said: String = stat
            .iter()
            .map(|file| {
                let number = |it: Option<u64>| it.map_or("-".to_owned(), |it| it.to_string());
                format!(
                    "{}\t{}\t{}\0",
                    number(file.added),
                    number(file.deleted),
                    file.path
                )
            })
            .collect();
        assert_eq!(said, numbers);
    }
}

#[test]
fn commits_are_by_whom_git_says_and_survive_together_under_one_name() {
    let repo = TestRepo::new();
    let trees = repo.trees();
    repo.git(&["config", "user.name", "Änne Example"]);
    repo.git(&["config", "user.email", "a@example.org"]);
    let mut commits = Vec::new();
    for number in 0..3 {
        let name = format!("t{number}");
        if number == 2 {
            repo.git(&["config", "author.email", "other@example.org"]);
        }
        commits.push(worked_in(&repo, &trees, &name));
    }
    let show = |commit: &str| repo.git(&["show", "-s", "--format=%an <%ae> %cn <%ce>%n%B", commit]);
    assert_eq!(
        show(&commits[0]).trim(),
        "Änne Example <a@example.org> Änne Example <a@example.org>\nWork\n\nTask: x#1"
    );
    assert!(show(&commits[2]).starts_with("Änne Example <other@example.org>"));
    for (number, commit) in commits.iter().enumerate() {
        let name = slug(&format!("t{number}"));
        let given = trees.give_back(&name, commit, &SetUp::default());
        assert_eq!(given.unwrap(), GivenBack::Yes);
    }
    let singles: Vec<String> = (0..3).map(|number| format!("kept/t{number}")).collect();
    assert!(trees.keep_together("kept/all", &commits, &singles).unwrap());
    let refs = repo.git(&["for-each-ref", "--format=%(refname)", "refs/ccb"]);
    assert_eq!(refs, "refs/ccb/kept/all\n");
    repo.git(&["reflog", "expire", "--expire=now", "--all"]);
    repo.git(&["gc", "-q", "--prune=now"]);
    for commit in &commits {
        assert!(trees.has_commit(commit));
    }
    repo.check_sound();
}
