//! The worktrees in which checks run: exactly the commit every time, whatever was done to them,
//! and nothing of them is left behind.

use std::collections::BTreeSet;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Mutex;

use harness::runs::{LONG, kill};
use harness::team_session::SessionScene;
use harness::{TestRepo, Workplace, git, wait_until, write};
use rustix::process::Signal;
use serde_json::{Value, json};
use worktrees::{After, CheckTree, Repository, SetUp};

use crate::CCB;
use crate::fanout_run::Fan;

/// Two commits that differ in a changed, a new and a deleted file.
fn two_commits(repo: &TestRepo) -> (String, String) {
    let first = repo.git(&["rev-parse", "HEAD"]).trim().to_owned();
    repo.write("readme", "two\n");
    repo.write("src/new", "new\n");
    repo.git(&["rm", "-q", "src/lib"]);
    repo.git(&["add", "."]);
    repo.git(&["commit", "-qm", "second"]);
    let second = repo.git(&["rev-parse", "HEAD"]).trim().to_owned();
    (first, second)
}

fn take(repo: &TestRepo, commit: &str) -> CheckTree {
    repo.trees().check_tree(commit, &SetUp::default()).unwrap()
}

/// All files and directories of a tree but those of git.
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

/// Fails unless the tree has exactly the files of `commit`, and what is `left` by checks.
fn assert_exact(repo: &TestRepo, tree: &Path, commit: &str, left: &[&str], about: &str) {
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
    // What a check does: builds, litters, changes what it checks.
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
    tree.release(After::Keep);

    let tree = take(&repo, &second);
    assert_eq!(tree.path(), path, "the same one again");
    assert_exact(&repo, &path, &second, &["build", "build/out"], "second");
    let now = std::fs::metadata(path.join(".gitignore")).unwrap();
    assert_eq!(
        (now.ino(), now.mtime_nsec()),
        (kept.ino(), kept.mtime_nsec())
    );
    // It sees the branches as they are now, and has no others.
    let branches = git(&path, &["for-each-ref", "--format=%(refname)"]);
    assert_eq!(branches, "refs/heads/main\n");
    assert_eq!(git(&path, &["rev-parse", "main"]).trim(), second);
    // Whatever runs there belongs to the repository.
    let found = Repository::discover(&path.join("src")).unwrap();
    assert_eq!(found.main_tree.as_deref(), Some(repo.main()));
    tree.release(After::Keep);

    assert_eq!(repo.surroundings(), before, "the repository is as it was");
    assert_eq!(repo.trees().list().unwrap().len(), 0, "nobody's worktree");
    assert_eq!(repo.trees().doctor(false).unwrap(), []);
    assert_eq!(repo.trees().drop_check_trees(true).unwrap(), 1);
    assert!(!path.exists());
    repo.check_sound();
}

#[test]
fn whatever_is_done_to_an_idle_check_tree_the_next_check_is_exact() {
    type Damage = (&'static str, fn(&TestRepo, &Path));
    let damages: &[Damage] = &[
        ("no .git", |_, tree| {
            std::fs::remove_dir_all(tree.join(".git")).unwrap()
        }),
        ("a .git file", |_, tree| {
            std::fs::remove_dir_all(tree.join(".git")).unwrap();
            write(&tree.join(".git"), "gitdir: nowhere\n");
        }),
        ("no directory", |_, tree| {
            std::fs::remove_dir_all(tree).unwrap()
        }),
        ("a garbage index", |_, tree| {
            write(&tree.join(".git/index"), "DIRC garbage")
        }),
        ("an empty index", |_, tree| {
            write(&tree.join(".git/index"), "")
        }),
        ("no index", |_, tree| {
            std::fs::remove_file(tree.join(".git/index")).unwrap()
        }),
        ("a stale lock", |_, tree| {
            write(&tree.join(".git/index.lock"), "")
        }),
        ("HEAD nowhere", |_, tree| {
            write(&tree.join(".git/HEAD"), "ref: refs/x\n")
        }),
        ("garbage refs", |_, tree| {
            write(&tree.join(".git/packed-refs"), "garbage\n");
            write(&tree.join(".git/refs/heads/main"), "garbage\n");
        }),
        ("objects elsewhere", |_, tree| {
            write(&tree.join(".git/objects/info/alternates"), "/nowhere\n");
        }),
        ("assume-unchanged", |_, tree| {
            git(tree, &["update-index", "--assume-unchanged", "readme"]);
            write(&tree.join("readme"), "hidden\n");
        }),
        ("skip-worktree", |_, tree| {
            git(tree, &["update-index", "--skip-worktree", "readme"]);
            write(&tree.join("readme"), "hidden\n");
        }),
        ("skip-worktree in an index of version 4", |_, tree| {
            git(
                tree,
                &[
                    "update-index",
                    "--index-version",
                    "4",
                    "--skip-worktree",
                    "readme",
                ],
            );
            write(&tree.join("readme"), "hidden\n");
        }),
        ("a filter and a hook", |_, tree| {
            git(tree, &["config", "filter.x.smudge", "tr a-z A-Z"]);
            write(&tree.join(".git/info/attributes"), "* filter=x\n");
            let hook = tree.join(".git/hooks/post-checkout");
            write(&hook, "#!/bin/sh\necho hook > hook\n");
            let run = std::fs::Permissions::from_mode(0o755);
            std::fs::set_permissions(&hook, run).unwrap();
            write(&tree.join("readme"), "changed\n");
        }),
        ("files git is told to ignore", |_, tree| {
            write(&tree.join(".git/info/exclude"), "hidden\n");
            write(&tree.join("hidden"), "x");
        }),
        ("an ignored file", |repo, tree| {
            // File systems count time in steps.
            let changed = |path: &Path| {
                let meta = std::fs::metadata(path).unwrap();
                (meta.ctime(), meta.ctime_nsec())
            };
            wait_until(LONG, "the clock to go on", || {
                write(&tree.join("planted.ignored"), "x");
                changed(&tree.join("planted.ignored")) > changed(&state(repo))
            });
        }),
        ("a commit", |_, tree| {
            write(&tree.join("readme"), "committed\n");
            git(tree, &["commit", "-qam", "an agent was here"]);
        }),
        ("a merge under way", |_, tree| {
            write(&tree.join("readme"), "other\n");
            git(tree, &["commit", "-qam", "other"]);
            let merge = harness::git_command(tree, &["merge", "-q", "main"]).output();
            assert!(!merge.unwrap().status.success());
        }),
        ("a directory that is a link", |repo, tree| {
            std::fs::remove_dir_all(tree.join("src")).unwrap();
            symlink(repo.main(), tree.join("src")).unwrap();
        }),
        ("a directory nobody can write to", |_, tree| {
            write(&tree.join("shut/file"), "x");
            let shut = std::fs::Permissions::from_mode(0o500);
            std::fs::set_permissions(tree.join("shut"), shut).unwrap();
        }),
        ("a garbage state", |repo, _| write(&state(repo), "garbage")),
        ("an empty state", |repo, _| write(&state(repo), "")),
        ("no state", |repo, _| {
            std::fs::remove_file(state(repo)).unwrap()
        }),
        ("a state of a newer version", |repo, _| {
            write(&state(repo), "{\"v\":9}")
        }),
    ];
    for (about, damage) in damages {
        let repo = TestRepo::new();
        let (first, second) = two_commits(&repo);
        take(&repo, &first).release(After::Keep);
        let tree = repo.tree("ccb-check-1");
        damage(&repo, &tree);
        let taken = take(&repo, &second);
        assert_exact(&repo, taken.path(), &second, &[], about);
        assert!(!repo.main().join("hook").exists(), "{about}");
        taken.release(After::Keep);
        let taken = take(&repo, &first);
        assert_exact(&repo, taken.path(), &first, &[], about);
        taken.release(After::Keep);
        assert_eq!(repo.git(&["status", "--porcelain"]), "", "{about}");
        repo.trees().drop_check_trees(true).unwrap();
        assert_eq!(repo.trees().check_trees(), Vec::<String>::new(), "{about}");
    }
}

fn state(repo: &TestRepo) -> PathBuf {
    repo.ours().join("checks/ccb-check-1.json")
}

#[test]
fn somebody_elses_directory_of_that_name_is_left_alone() {
    let repo = TestRepo::new();
    let (first, _) = two_commits(&repo);
    write(&repo.tree("ccb-check-1").join("mine"), "precious");
    repo.create("ccb-check-2");
    let taken = take(&repo, &first);
    assert_eq!(taken.path(), repo.tree("ccb-check-3"));
    taken.release(After::Keep);
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
                    tree.release(After::Keep);
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
    other.release(After::Leave);
    assert_eq!(repo.trees().check_trees(), Vec::<String>::new());
    // The doctor and whoever makes a tree next clear up as well.
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
        tree.release(After::Keep);
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
    tree.release(After::Keep);
    // Only some paths, and then all of them again.
    let sparse = SetUp {
        sparse_paths: vec!["docs".into()],
        ..SetUp::default()
    };
    for _ in 0..2 {
        let tree = repo.trees().check_tree(&commit, &sparse).unwrap();
        assert!(tree.path().join("readme").exists());
        assert!(!tree.path().join("src").exists());
        tree.release(After::Keep);
    }
    let tree = take(&repo, &commit);
    assert!(tree.path().join("src/lib").exists());
    tree.release(After::Keep);
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
            tree.release(After::Keep);
        }
        // Bits are found in an index of any form.
        let tree = repo.tree("ccb-check-1");
        git(&tree, &["update-index", "--assume-unchanged", "readme"]);
        write(&tree.join("readme"), "hidden\n");
        let tree = take(&repo, &second);
        assert_exact(&repo, tree.path(), &second, &[], &format!("{format:?}"));
        tree.release(After::Keep);
    }
}

#[test]
fn submodules_shallow_and_sparse_repositories_do_not_get_in_the_way() {
    let repo = TestRepo::new();
    let (_, second) = two_commits(&repo);
    // A main tree with only some directories.
    repo.git(&["sparse-checkout", "set", "--cone", "other"]);
    let tree = take(&repo, &second);
    assert!(tree.path().join("readme").exists());
    assert!(
        !tree.path().join("src").exists(),
        "sparse like the main tree"
    );
    tree.release(After::Keep);
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
        tree.release(After::Keep);
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
    let trees = worktrees::Trees::discover(&shallow, worktrees::TreeOptions::default()).unwrap();
    let tree = trees.check_tree(&with, &SetUp::default()).unwrap();
    assert_eq!(git(tree.path(), &["log", "--format=%s"]), "submodule\n");
    let origin = git(tree.path(), &["remote", "get-url", "origin"]);
    assert_eq!(origin.trim(), from);
    tree.release(After::Keep);
}

#[test]
fn a_killed_merge_leaves_nothing_that_the_next_one_minds() {
    let at = Workplace::new(CCB);
    at.ok(&["worktree", "create", "x"]);
    write(&at.repo.tree("x").join("ours"), "ours");
    git(&at.repo.tree("x"), &["add", "."]);
    git(&at.repo.tree("x"), &["commit", "-qm", "ours"]);
    let pid = at.repo.beside("pid");
    // `tail` ends when nobody reads its output any more; this check outlives the merge.
    let hangs = format!(
        "echo $$ > {0}.new; mv {0}.new {0}; exec tail -f /dev/null > /dev/null 2>&1",
        pid.display()
    );
    let mut merge = at
        .command(&["worktree", "merge", "x", "--check", &hangs])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    wait_until(LONG, "the check to run", || pid.exists());
    merge.kill().unwrap();
    merge.wait().unwrap();
    let first = at.repo.tree("ccb-check-1");
    assert!(first.exists());
    let check = format!("test -e ours && test \"$PWD\" != {}", first.display());
    at.ok(&["worktree", "merge", "x", "--check", &check]);
    let shell: i32 = std::fs::read_to_string(&pid)
        .unwrap()
        .trim()
        .parse()
        .unwrap();
    kill(shell, Signal::KILL);
    wait_until(LONG, "the tree to be gone", || {
        at.repo.trees().drop_check_trees(false).unwrap();
        at.repo.trees().check_trees().is_empty()
    });
    at.repo.check_sound();
}

/// A session of one mate with these settings; its tasks one after the other.
fn session(settings: &Value, tasks: &[(&str, &str)], more: &[&str]) -> (SessionScene, Vec<Value>) {
    let scene = SessionScene::new(CCB);
    scene.home.settings(&settings.to_string());
    let ids: Vec<u64> = tasks
        .iter()
        .map(|(run, verify)| scene.task("do it", &["--run", run, "--verify", verify]))
        .collect();
    let answer = scene.session(&[&["--mates", "1", "--attempts", "1"], more].concat());
    assert!(matches!(answer.code, Some(0 | 1)), "{answer:?}");
    let files = ids.iter().map(|id| scene.file(*id)).collect();
    (scene, files)
}

#[test]
fn the_checks_of_a_session_share_a_tree_that_is_gone_at_the_end() {
    let verify = "test -e ready.ignored && test \"$PWD\" = \"$CCB_WORKTREE\" &&
        test -e \"$CCB_MAIN_TREE/.git\" && test -d \"$TMPDIR\" && echo $PWD >> seen.ignored &&
        wc -l < seen.ignored >> \"$CCB_SCRATCHPAD/seen\"; echo litter > readme";
    let settings = json!({"worktree": {"setup": "echo 1 > ready.ignored"}});
    let tasks = [("echo 1 > one", verify), ("echo 2 > two", verify)];
    let (scene, files) = session(&settings, &tasks, &[]);
    for task in &files {
        assert_eq!(task["status"], "completed", "{task}");
        let check = &task["metadata"]["ccb"]["result"]["check"];
        assert_eq!(
            (&check["passed"], &check["place"]),
            (&true.into(), &"commit".into())
        );
    }
    let seen = std::fs::read_to_string(scene.home.team_dir().join("scratchpad/seen")).unwrap();
    let seen: Vec<&str> = seen.split_whitespace().collect();
    assert_eq!(seen.first(), Some(&"1"));
    assert_eq!(
        seen.get(1),
        Some(&"2"),
        "the second check finds what the first built"
    );
    assert_eq!(scene.repo.trees().check_trees(), Vec::<String>::new());
    // What a check changes is neither blamed on the task nor part of it.
    assert_eq!(scene.repo.git(&["show", "HEAD:readme"]), "one\n");
}

#[test]
fn a_host_that_is_killed_during_its_check_costs_nothing() {
    let scene = SessionScene::new(CCB);
    let verify = "test -e \"$CCB_SCRATCHPAD/host\" && test -e one && exit 0
        echo half > half.ignored; echo $PPID > \"$CCB_SCRATCHPAD/new\"
        mv \"$CCB_SCRATCHPAD/new\" \"$CCB_SCRATCHPAD/host\"; exec tail -f /dev/null";
    let id = scene.task("do it", &["--run", "echo 1 > one", "--verify", verify]);
    let mut director = scene.start(&["--mates", "1", "--attempts", "1"]);
    let host = scene.home.team_dir().join("scratchpad/host");
    wait_until(LONG, "the check to run", || host.exists());
    let pid = std::fs::read_to_string(&host).unwrap();
    kill(pid.trim().parse().unwrap(), Signal::KILL);
    assert_eq!(scene.await_end(&mut director), Some(0));
    let check = &scene.file(id)["metadata"]["ccb"]["result"]["check"];
    assert_eq!(check["place"], "commit", "{check}");
    assert_eq!(scene.repo.git(&["show", "HEAD:one"]), "1\n");
    assert_eq!(scene.repo.trees().check_trees(), Vec::<String>::new());
    scene.await_nobody();
}

#[test]
fn a_failed_check_says_what_the_agent_hid_from_git() {
    let hides = "git update-index --assume-unchanged readme; echo fixed > readme
        echo 1 > key.ignored; mkdir -p build; echo 1 > build/out; echo x > changed";
    let verify = "mkdir -p build; grep -q fixed readme && test -e key.ignored";
    let (_, files) = session(&json!({}), &[(hides, verify)], &[]);
    let why = files[0]["metadata"]["ccb"]["parked"]["reason"].as_str();
    let why = why.unwrap_or_else(|| panic!("{}", files[0]));
    let words = "2 files of the worktree are hidden from git, so the commit that was checked \
        does not have them: readme (assume-unchanged), key.ignored (ignored)";
    assert!(why.contains(words), "{why}");
}

#[test]
fn a_set_up_that_fails_before_the_check_is_said_to_be_that() {
    let set_up = "case $CCB_WORKTREE in *ccb-check*) echo no network; exit 3;; esac";
    let settings = json!({"worktree": {"setup": set_up}});
    let (scene, files) = session(&settings, &[("echo 1 > one", "true")], &[]);
    let why = files[0]["metadata"]["ccb"]["parked"]["reason"].to_string();
    assert!(
        why.contains("the set-up") && why.contains("no network"),
        "{why}"
    );
    assert_eq!(scene.repo.trees().check_trees(), Vec::<String>::new());
}

#[test]
fn a_check_without_isolation_runs_in_place_and_says_so() {
    let scene = SessionScene::new(CCB);
    let id = scene.task(
        "here",
        &["--run", "echo 1 > one", "--verify", "test -e one"],
    );
    let answer = scene.run(&["--runtime", "shell", "--no-worktrees", "--mates", "1"]);
    assert_eq!(answer.code, Some(0), "{answer:?}");
    assert!(
        answer.stderr.contains("done, checked in place"),
        "{answer:?}"
    );
    let task = scene.file(id);
    assert_eq!(
        task["metadata"]["ccb"]["result"]["check"]["place"], "in place",
        "{task}"
    );

    let fan = Fan::new();
    fan.plan(&json!({"tasks": [
        {"id": "here", "run": "echo 1 > here", "verify": "test -f here", "isolation": "none"},
        {"id": "apart", "run": "echo 1 > apart", "verify": "test -f apart"},
    ]}));
    let (code, report) = fan.run(&[]);
    assert_eq!(code, Some(0), "{report}");
    let place = |at: usize| report["tasks"][at]["check"]["place"].clone();
    assert_eq!(
        (place(0), place(1)),
        ("in place".into(), "commit".into()),
        "{report}"
    );
    let summary = fan.read("report.md");
    assert!(summary.contains("checked in place"), "{summary}");
}
