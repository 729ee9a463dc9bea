//! Kills the process at every write point of making, removing, restoring and collecting worktrees,
//! and checks the result.
//!
//! As in `crash`, each scenario is traced once to learn which points it passes, then run once per
//! pass with a crash at exactly that pass, and once with a full disk where a write can fail. The
//! next command that changes worktrees must leave everything settled: the worktree is there and
//! whole, or it is gone and undo restores it whole. Where the crash left an operation half done,
//! the recovery is crashed at each of its own steps as well.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Command;
use std::sync::Mutex;

use harness::sample::Sample;
use harness::{Answer, Workplace, git, git_command, write};
use serde_json::Value;

use crate::CCB;

struct Scenario {
    name: &'static str,
    setup: fn(&Workplace),
    command: &'static [&'static str],
    /// The required state of the worktree in the end.
    after: After,
    /// A further check after every crash, with its point.
    check: fn(&Workplace, &str),
}

/// The required state of the worktree `x`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum After {
    /// It can be created, and is clean.
    Clean,
    /// Its earlier work is there unchanged.
    SameWork,
    /// The scenario's own check decides.
    Checked,
}

/// The store's point before all of git's writes are synced.
pub(crate) const FILE_SYSTEM_SYNC: &str = "file-system.sync";

const SCENARIOS: &[Scenario] = &[
    Scenario {
        name: "the first tree",
        setup: |_| {},
        command: &["worktree", "create", "x"],
        after: After::Clean,
        check: |_, _| {},
    },
    Scenario {
        name: "a tree with set-up",
        setup: |at| {
            at.repo.write("secret.ignored", "key");
            at.repo.write(".worktreeinclude", "*.ignored\n");
            at.ok(&["worktree", "create", "other"]);
        },
        command: &[
            "worktree", "create", "x", "--sparse", "src", "--setup", "true",
        ],
        after: After::Clean,
        check: |_, _| {},
    },
    Scenario {
        name: "removing an unchanged tree",
        setup: |at| drop(at.ok(&["worktree", "create", "x"])),
        command: &["worktree", "remove", "x"],
        after: After::SameWork,
        check: |_, _| {},
    },
    Scenario {
        name: "removing a tree with all kinds of work",
        setup: with_work,
        command: &["worktree", "remove", "x", "--discard"],
        after: After::SameWork,
        check: |_, _| {},
    },
    Scenario {
        name: "removing a tree whose directory is gone",
        setup: |at| {
            at.ok(&["worktree", "create", "x"]);
            std::fs::remove_dir_all(at.repo.tree("x")).unwrap();
        },
        command: &["worktree", "remove", "x", "--discard"],
        after: After::Clean,
        check: |_, _| {},
    },
    Scenario {
        name: "checking out a deleted worktree again",
        setup: |at| {
            at.ok(&["worktree", "create", "x"]);
            std::fs::remove_dir_all(at.repo.tree("x")).unwrap();
        },
        command: &["worktree", "create", "x"],
        after: After::Clean,
        check: |_, _| {},
    },
    Scenario {
        name: "undo",
        setup: |at| {
            with_work(at);
            at.ok(&["worktree", "remove", "x", "--discard"]);
        },
        command: &["worktree", "undo", "x"],
        after: After::SameWork,
        check: |_, _| {},
    },
    Scenario {
        name: "gc and emptying the trash",
        setup: |at| {
            at.ok(&["worktree", "create", "x"]);
            at.ok(&["worktree", "create", "y"]);
            write(&at.repo.tree("y").join("new"), "untracked");
            at.ok(&["worktree", "remove", "y", "--discard"]);
            at.home
                .settings(r#"{"worktree":{"trashDays":0,"gcDays":0}}"#);
        },
        command: &["worktree", "gc", "--yes"],
        after: After::Clean,
        check: |_, _| {},
    },
    Scenario {
        name: "a merge with a check",
        setup: with_two_sides,
        command: &["worktree", "merge", "x", "--check", "test -f ours"],
        after: After::SameWork,
        check: landed_or_not,
    },
    Scenario {
        name: "a squash onto a branch that is not checked out",
        setup: |at| {
            with_two_sides(at);
            at.repo.git(&["checkout", "-q", "-b", "elsewhere"]);
        },
        command: &[
            "worktree",
            "merge",
            "x",
            "--into",
            "main",
            "--strategy",
            "squash",
        ],
        after: After::SameWork,
        check: landed_or_not,
    },
    Scenario {
        name: "undoing a landing that nothing is on top of",
        setup: |at| {
            with_two_sides(at);
            at.ok(&["worktree", "merge", "x"]);
        },
        command: &["undo", "x"],
        after: After::SameWork,
        check: undone_or_not,
    },
    Scenario {
        name: "undoing a landing by a revert with a check",
        setup: |at| {
            with_two_sides(at);
            at.ok(&["worktree", "merge", "x"]);
            at.repo.write("later", "later");
            at.repo.git(&["add", "."]);
            at.repo.git(&["commit", "-qm", "later"]);
        },
        command: &["undo", "x", "--check", "test -f later && ! test -e ours"],
        after: After::SameWork,
        check: undone_or_not,
    },
    Scenario {
        name: "filling the pool",
        setup: |_| {},
        command: &["worktree", "pool", "fill", "1"],
        after: After::Clean,
        check: |_, _| {},
    },
    Scenario {
        name: "a tree from the pool",
        setup: |at| {
            at.ok(&["worktree", "pool", "fill", "1"]);
            at.repo.write("readme", "newer\n");
            at.repo.git(&["commit", "-qam", "newer"]);
        },
        command: &["worktree", "create", "x"],
        after: After::Clean,
        check: |_, _| {},
    },
    Scenario {
        name: "a tree that goes back to the pool",
        setup: |at| {
            at.ok(&["worktree", "create", "x"]);
            write(&at.repo.tree("x").join("left.ignored"), "by the one before");
        },
        command: &["worktree", "pool", "return", "x"],
        after: After::Clean,
        check: |at, about| {
            // The next one that was made is as new, whether or not it is that one.
            let probe = at.repo.tree("probe");
            assert!(!probe.join("left.ignored").exists(), "{about}");
            let head = git(&probe, &["rev-parse", "HEAD"]);
            assert_eq!(head, at.repo.git(&["rev-parse", "main"]), "{about}");
        },
    },
    Scenario {
        name: "deleting a tree that was used",
        setup: |at| {
            at.ok(&["worktree", "create", "x"]);
            at.ok(&["worktree", "pool", "return", "x"]);
        },
        command: &["worktree", "gc", "--yes"],
        after: After::Clean,
        check: |at, about| {
            at.ok(&["worktree", "gc", "--yes"]);
            let left = at.repo.git(&["worktree", "list"]);
            assert!(!left.contains("ccb-pool"), "{about}: {left}");
        },
    },
    Scenario {
        name: "a worktree of the pool that is in use",
        setup: |at| {
            at.ok(&["worktree", "pool", "fill", "1"]);
            write(&at.repo.tree("ccb-pool-1").join("precious"), "work");
        },
        command: &["worktree", "create", "x"],
        after: After::Clean,
        check: |at, about| {
            let mut found = 0;
            store::tree::walk(at.repo.main(), &mut |path, _| {
                found += usize::from(path.ends_with("precious"));
                Ok(true)
            })
            .unwrap();
            assert_eq!(found, 1, "{about}");
        },
    },
    Scenario {
        name: "an agent's own .git",
        setup: |at| drop(at.ok(&["worktree", "create", "x"])),
        command: &[
            "worktree",
            "run",
            "x",
            "--private-git",
            "--",
            "sh",
            "-c",
            AGENT,
        ],
        after: After::Checked,
        check: committed_or_not,
    },
    Scenario {
        name: "an agent's own .git for the second time",
        setup: |at| {
            at.ok(&["worktree", "create", "x"]);
            at.ok(&[
                "worktree",
                "run",
                "x",
                "--private-git",
                "--",
                "sh",
                "-c",
                STASHES,
            ]);
        },
        command: &[
            "worktree",
            "run",
            "x",
            "--private-git",
            "--",
            "sh",
            "-c",
            AGENT,
        ],
        after: After::Checked,
        check: |at, about| {
            committed_or_not(at, about);
            at.ok(&[
                "worktree",
                "run",
                "x",
                "--private-git",
                "--",
                "git",
                "rev-parse",
                "stash",
            ]);
        },
    },
];

/// An agent that commits.
const AGENT: &str = "set -e; test -e ours || { echo ours > ours; git add ours; \
                     git -c user.name=a -c user.email=a@a commit -qm ours; }";
/// An agent that stashes.
const STASHES: &str =
    "set -e; echo stashed > readme; git -c user.name=a -c user.email=a@a stash -q";

/// The worktree is an ordinary one, and its agent's commits, if there are any, are on its branch; a
/// second try gets them there.
fn committed_or_not(at: &Workplace, about: &str) {
    let tree = at.repo.tree("x");
    assert!(tree.join(".git").is_file(), "{about}");
    assert_eq!(git(&tree, &["status", "--porcelain"]), "", "{about}");
    let ours = |at: &Workplace| {
        let files = at.repo.git(&["ls-tree", "--name-only", "worktree/x"]);
        files.contains("ours")
    };
    assert_eq!(tree.join("ours").exists(), ours(at), "{about}");
    at.ok(&[
        "worktree",
        "run",
        "x",
        "--private-git",
        "--",
        "sh",
        "-c",
        AGENT,
    ]);
    assert!(ours(at), "{about}");
    at.repo.git(&["fsck", "--strict", "--no-dangling"]);
    let stay = at.repo.ours().join("private/x/stay.json");
    assert!(!stay.exists(), "{about}");
}

/// A worktree `x` with a commit, and another one on main.
fn with_two_sides(at: &Workplace) {
    at.ok(&["worktree", "create", "x"]);
    let tree = at.repo.tree("x");
    write(&tree.join("ours"), "ours");
    git(&tree, &["add", "."]);
    git(&tree, &["commit", "-qm", "ours"]);
    at.repo.write("theirs", "theirs");
    at.repo.git(&["add", "."]);
    at.repo.git(&["commit", "-qm", "theirs"]);
}

/// Main is at its old commit, or at the new one, and so are the files of its checkout; a second try
/// gets it there.
fn landed_or_not(at: &Workplace, about: &str) {
    let files = at.repo.git(&["ls-tree", "--name-only", "main"]);
    let subject = at.repo.git(&["log", "-1", "--format=%s", "main"]);
    assert!(files.contains("theirs"), "{about}: {files}");
    assert_eq!(
        files.contains("ours"),
        subject.trim() != "theirs",
        "{about}"
    );
    assert_eq!(at.repo.git(&["status", "--porcelain"]), "", "{about}");
    let scratch = std::fs::read_dir(at.repo.tree("")).unwrap();
    let names: Vec<_> = scratch.map(|entry| entry.unwrap().file_name()).collect();
    let check = |name: &std::ffi::OsString| name.to_string_lossy().starts_with("ccb-check-");
    assert!(!names.iter().any(check), "{about}: {names:?}");
    at.ok(&["worktree", "merge", "x", "--into", "main"]);
    let files = at.repo.git(&["ls-tree", "--name-only", "main"]);
    assert!(files.contains("ours"), "{about}");
    assert_eq!(at.repo.git(&["status", "--porcelain"]), "", "{about}");
}

/// The landing is there or it is not, on main as in the files of its checkout and in the list of
/// landings; a second try undoes it.
fn undone_or_not(at: &Workplace, about: &str) {
    let listed = at.ok(&["undo", "--show"])["landings"].clone();
    assert_eq!(
        listed.as_array().map(Vec::len),
        Some(1),
        "{about}: {listed}"
    );
    let undone = listed[0].get("undone");
    assert!(
        undone.is_none_or(|it| it.get("pending").is_none()),
        "{about}: {listed}"
    );
    let files = || at.repo.git(&["ls-tree", "--name-only", "main"]);
    assert!(files().contains("theirs"), "{about}");
    assert_eq!(files().contains("ours"), undone.is_none(), "{about}");
    assert_eq!(at.repo.git(&["status", "--porcelain"]), "", "{about}");
    if undone.is_none() {
        at.ok(&["undo", "x"]);
    }
    assert!(!files().contains("ours"), "{about}");
    assert_eq!(at.repo.git(&["status", "--porcelain"]), "", "{about}");
}

/// The "next command".
const RECOVERY: &[&str] = &["worktree", "create", "probe"];

/// One recovery of this many is crashed in its turn (`tests/torture.sh crashes`: each).
const TWICE_CRASHED: u64 = 6;

#[test]
fn every_crash_point_of_every_operation_on_trees_recovers() {
    let visited: Mutex<BTreeSet<String>> = Mutex::default();
    let crashes = Mutex::new(0);
    let queue: Mutex<Vec<&Scenario>> = Mutex::new(SCENARIOS.iter().collect());
    let sample = Sample::one_in(TWICE_CRASHED);
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                while let Some(scenario) = { queue.lock().unwrap().pop() } {
                    let (points, count) = sweep(scenario, sample);
                    visited.lock().unwrap().extend(points);
                    *crashes.lock().unwrap() += count;
                }
            });
        }
    });
    println!("{} crashes and write errors", crashes.into_inner().unwrap());
    let visited = visited.into_inner().unwrap();
    let missed: Vec<_> = worktrees::FAULT_POINTS
        .iter()
        .map(|point| point.name())
        .chain([FILE_SYSTEM_SYNC])
        .filter(|name| !visited.contains(*name))
        .collect();
    assert!(missed.is_empty(), "no scenario passes {missed:?}");
}

#[test]
fn the_place_of_a_tree_that_may_come_back_to_the_pool_is_not_given_to_another() {
    let at = Workplace::new(CCB);
    for name in ["y", "z"] {
        at.ok(&["worktree", "create", name]);
    }
    at.ok(&["worktree", "pool", "return", "z"]);
    crash(&at, &["worktree", "create", "x"], &("pool.moved".into(), 1));
    at.ok(&["worktree", "pool", "return", "y"]);
    at.ok(RECOVERY);
    assert_eq!(at.ok(&["doctor"])["findings"], serde_json::json!([]));
    at.ok(&["worktree", "gc", "--yes"]);
    let left = at.repo.git(&["worktree", "list"]);
    assert_eq!(left.lines().count(), 2, "{left}");
    at.repo.check_sound();
}

fn sweep(scenario: &Scenario, sample: Sample) -> (BTreeSet<String>, usize) {
    let at = Workplace::new(CCB);
    (scenario.setup)(&at);
    let saved = at.repo.beside("saved");
    copy(at.repo.main(), &saved);
    let restore = || {
        std::fs::remove_dir_all(at.repo.main()).unwrap();
        copy(&saved, at.repo.main());
    };
    // Worktrees hold absolute paths, so every run has to happen in the same place.
    let whole = if scenario.after == After::SameWork {
        if !at.repo.tree("x").exists() {
            at.ok(&["worktree", "undo", "x"]);
        }
        let view = view(&at.repo.tree("x"));
        restore();
        Some(view)
    } else {
        None
    };
    let passes = traced(&at, scenario.command);
    let mut visited: BTreeSet<String> = passes.iter().map(|(point, _)| point.clone()).collect();
    let mut count = 0;
    // A crash before a file has its name leaves only a temporary file.
    let invisible = ["stage.opened", "stage.written", "log.half"];
    for pass in passes
        .iter()
        .filter(|pass| !invisible.contains(&pass.0.as_str()))
    {
        let about = format!("{}, crash at {}:{}", scenario.name, pass.0, pass.1);
        restore();
        crash(&at, scenario.command, pass);
        count += 1;
        // A command the user might run before ccb cleans up.
        at.repo.git(&["worktree", "prune"]);
        at.repo.git(&["clean", "-fdxq"]);
        let half_done = at.ok(&["worktree", "list", "--all", "--quick"])["worktrees"]
            .as_array()
            .unwrap()
            .iter()
            .any(|tree| tree.get("underWay").is_some());
        let recovery = traced(&at, RECOVERY);
        visited.extend(recovery.iter().map(|(point, _)| point.clone()));
        check(&at, &about, scenario.after, whole.as_ref());
        (scenario.check)(&at, &about);
        // The steps of the recovery itself; those of `create.` are about the next worktree.
        let settles = |point: &str| match point.split_once('.') {
            Some(("removal" | "undo", _)) => half_done,
            Some((part, _)) => matches!(part, "leave" | "import"),
            None => false,
        };
        let steps = recovery
            .iter()
            .filter(|step| settles(&step.0) && sample.takes((scenario.name, pass, step)));
        for again in steps {
            restore();
            crash(&at, scenario.command, pass);
            crash(&at, RECOVERY, again);
            count += 2;
            at.ok(RECOVERY);
            check(
                &at,
                &format!("{about}, then at {}", again.0),
                scenario.after,
                whole.as_ref(),
            );
            (scenario.check)(&at, &about);
        }
        let can_fail = [
            "stage.synced",
            "dir.sync",
            "create.checkout",
            FILE_SYSTEM_SYNC,
        ];
        if can_fail.contains(&pass.0.as_str()) {
            restore();
            full_disk(&at, scenario.command, pass);
            count += 1;
            at.ok(RECOVERY);
            check(
                &at,
                &format!("{about}, but a full disk"),
                scenario.after,
                whole.as_ref(),
            );
            (scenario.check)(&at, &about);
        }
    }
    (visited, count)
}

/// Nothing is half done, git and the registry agree, and no work is missing.
fn check(at: &Workplace, about: &str, after: After, whole: Option<&View>) {
    let list = at.ok(&["worktree", "list", "--all", "--quick"]);
    for tree in list["worktrees"].as_array().unwrap() {
        assert!(tree.get("underWay").is_none(), "{about}: {tree}");
    }
    let doctor = at.run(&["doctor"]);
    let findings = doctor.json()["findings"].clone();
    // One scenario begins with a directory that a user deleted.
    let but_gone = |finding: &&Value| finding["kind"] != "tree_missing";
    let findings = findings.as_array().unwrap();
    let left: Vec<&Value> = findings.iter().filter(but_gone).collect();
    assert!(left.is_empty(), "{about}: {left:?}");
    if findings.is_empty() {
        at.repo.check_sound();
    }
    let trees: Vec<&Value> = list["worktrees"].as_array().unwrap().iter().collect();
    let branches: Vec<String> = trees
        .iter()
        .filter(|tree| tree["status"] != "removed")
        .filter_map(|tree| tree["branch"].as_str().map(str::to_owned))
        .collect();
    for branch in at.repo.tree_branches() {
        assert!(
            branches.contains(&branch),
            "{about}: {branch} belongs to no tree"
        );
    }
    if let Some(whole) = whole {
        if !at.repo.tree("x").exists() {
            at.ok(&["worktree", "undo", "x"]);
        }
        assert_eq!(view(&at.repo.tree("x")), *whole, "{about}");
    } else if after == After::Clean {
        // Whatever state it is in, it can be created.
        at.ok(&["worktree", "create", "x"]);
        let status = at.ok(&["worktree", "status", "x"]);
        assert_eq!(status["changes"]["state"], "clean", "{about}: {status}");
    }
    at.repo.check_sound();
}

/// All parts of a worktree that could be lost.
#[derive(Debug, PartialEq)]
struct View {
    files: BTreeMap<String, Vec<u8>>,
    status: String,
    index: String,
    reflog: String,
}

fn view(tree: &Path) -> View {
    let mut files = BTreeMap::new();
    store::tree::walk(tree, &mut |path, meta| {
        if meta.is_file() && path.file_name().unwrap() != ".git" {
            let name = path
                .strip_prefix(tree)
                .unwrap()
                .to_str()
                .unwrap()
                .to_owned();
            files.insert(name, std::fs::read(path)?);
        }
        Ok(true)
    })
    .unwrap();
    View {
        files,
        status: git(
            tree,
            &[
                "status",
                "--porcelain=v2",
                "--branch",
                "--untracked-files=all",
            ],
        ),
        index: git(tree, &["ls-files", "--stage"]),
        reflog: git(tree, &["reflog", "--format=%H %gs"]),
    }
}

fn with_work(at: &Workplace) {
    at.ok(&["worktree", "create", "x"]);
    let tree = at.repo.tree("x");
    at.repo.write("readme", "theirs\n");
    at.repo.git(&["commit", "-qam", "theirs"]);
    write(&tree.join("readme"), "ours\n");
    git(&tree, &["commit", "-qam", "ours"]);
    git(&tree, &["commit", "-q", "--allow-empty", "-m", "dropped"]);
    git(&tree, &["reset", "-q", "--hard", "HEAD~1"]);
    write(&tree.join("src/lib"), "staged\n");
    git(&tree, &["add", "src/lib"]);
    git(&tree, &["commit", "-qm", "staged"]);
    assert!(
        !git_command(&tree, &["merge", "main"])
            .output()
            .unwrap()
            .status
            .success()
    );
    write(&tree.join("src/lib"), "staged again\n");
    git(&tree, &["add", "src/lib"]);
    write(&tree.join("new"), "untracked");
    write(&tree.join("cache.ignored"), "ignored");
}

fn copy(from: &Path, to: &Path) {
    let status = Command::new("cp")
        .arg("-a")
        .arg(from)
        .arg(to)
        .status()
        .unwrap();
    assert!(status.success());
}

/// Runs a command to its end and returns each point it passed with the number of the pass.
fn traced(at: &Workplace, command: &[&str]) -> Vec<(String, usize)> {
    let file = at.repo.beside("trace");
    let mut process = at.command(&[&["--json"], command].concat());
    let output = process.env("CCB_FAULT_TRACE", &file).output().unwrap();
    let answer = Answer::of(output);
    assert_eq!(answer.code, Some(0), "{command:?}: {answer:?}");
    let text = std::fs::read_to_string(&file).unwrap_or_default();
    std::fs::remove_file(&file).ok();
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    text.lines()
        .map(|point| {
            let count = counts.entry(point).or_default();
            *count += 1;
            (point.to_owned(), *count)
        })
        .collect()
}

fn crash(at: &Workplace, command: &[&str], (point, nth): &(String, usize)) {
    let fault = format!("crash:{point}:{nth}");
    let output = at
        .command(command)
        .env("CCB_FAULT", &fault)
        .output()
        .unwrap();
    let aborted = output.status.signal() == Some(rustix::process::Signal::ABORT.as_raw());
    assert!(aborted, "{command:?} did not come to {fault}: {output:?}");
}

/// It may fail or not (an event that cannot be written is no failure), but must not crash.
fn full_disk(at: &Workplace, command: &[&str], (point, nth): &(String, usize)) {
    let fault = format!("enospc:{point}:{nth}");
    let output = at
        .command(command)
        .env("CCB_FAULT", &fault)
        .output()
        .unwrap();
    assert!(
        matches!(output.status.code(), Some(0 | 1)),
        "{fault}: {output:?}"
    );
}
