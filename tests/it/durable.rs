//! git's writes are on the disk before ccb reports them. `tests/power/` cuts the power to test that
//! they survive; here, a disk that fails at that moment is reported.

use harness::{Workplace, write};
use serde_json::Value;

use crate::CCB;
use crate::tree_crash::FILE_SYSTEM_SYNC;

/// A worktree with a commit that can land.
fn with_work() -> Workplace {
    let at = Workplace::new(CCB);
    at.ok(&["worktree", "create", "x"]);
    write(&at.repo.tree("x").join("new"), "work\n");
    at.repo.git_in("x", &["add", "."]);
    at.repo.git_in("x", &["commit", "-qm", "work"]);
    at
}

/// The write points a command passes, in order.
fn trace(at: &Workplace, args: &[&str]) -> Vec<String> {
    let file = at.home.path().join("trace");
    let output = at.command(args).env("CCB_FAULT_TRACE", &file).output();
    assert!(output.unwrap().status.success());
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::remove_file(&file).unwrap();
    text.lines().map(str::to_owned).collect()
}

fn landed(at: &Workplace) -> Value {
    let registry = std::fs::read(at.repo.ours().join("index.json")).unwrap();
    let registry: Value = serde_json::from_slice(&registry).unwrap();
    registry["worktrees"][0]["merged"].clone()
}

#[test]
fn nothing_has_landed_before_it_is_on_the_disk() {
    let passed = trace(&with_work(), &["worktree", "merge", "x"]);
    let moved = passed
        .iter()
        .position(|point| point == "merge.moved")
        .unwrap();
    assert_eq!(passed[moved + 1], FILE_SYSTEM_SYNC, "{passed:?}");
    assert_eq!(
        passed[moved + 2],
        "merge.durable",
        "then the registry: {passed:?}"
    );
    let syncs = passed[..=moved + 1]
        .iter()
        .filter(|point| *point == FILE_SYSTEM_SYNC);

    let at = with_work();
    let fault = format!("eio:{FILE_SYSTEM_SYNC}:{}", syncs.count());
    let output = at
        .command(&["worktree", "merge", "x"])
        .env("CCB_FAULT", fault)
        .output();
    let output = output.unwrap();
    assert!(!output.status.success(), "{output:?}");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("sync"), "{said}");
    assert_eq!(
        landed(&at)["pending"],
        true,
        "it is not known to be on the disk"
    );

    let again = at.ok(&["worktree", "merge", "x"]);
    assert_eq!(again["worktree"]["name"], "x", "{again}");
    assert!(at.repo.main().join("new").exists());
}

#[test]
fn what_nobody_promised_is_not_waited_for() {
    // A worktree without work has nothing that could be lost.
    let at = Workplace::new(CCB);
    at.ok(&["worktree", "create", "x"]);
    let passed = trace(&at, &["worktree", "remove", "x"]);
    assert!(
        !passed.iter().any(|point| point == FILE_SYSTEM_SYNC),
        "{passed:?}"
    );
    let at = with_work();
    let passed = trace(&at, &["worktree", "remove", "x", "--discard"]);
    let gone = passed
        .iter()
        .position(|point| point == "removal.branch-gone");
    let synced = passed.iter().position(|point| point == FILE_SYSTEM_SYNC);
    assert!(
        synced.is_some() && synced < gone,
        "its commits before its branch: {passed:?}"
    );
}

/// The leftovers of a power cut during a landing into a branch that is checked out: files without
/// content, the lock of a git that is gone, an ORIG_HEAD without content, and a branch that has not
/// moved.
#[test]
fn a_landing_that_was_cut_off_is_tidied_up_and_lands() {
    let at = with_work();
    write(&at.repo.tree("x").join("readme"), "changed\n");
    at.repo.git_in("x", &["commit", "-qam", "change"]);
    let merge = ["worktree", "merge", "x"];
    let crash = at
        .command(&merge)
        .env("CCB_FAULT", "crash:merge.noted:1")
        .output();
    assert!(!crash.unwrap().status.success());
    assert_eq!(landed(&at)["pending"], true);
    let main = at.repo.main();
    let locks = [
        ".git/index.lock",
        ".git/HEAD.lock",
        ".git/refs/heads/main.lock",
    ];
    for path in ["new", "readme", ".git/ORIG_HEAD"].iter().chain(&locks) {
        write(&main.join(path), "");
    }
    // The user's own work is not taken for such a leftover.
    write(&main.join("src/lib"), "of a person\n");
    at.ok(&merge);
    assert_eq!(std::fs::read_to_string(main.join("new")).unwrap(), "work\n");
    assert_eq!(
        std::fs::read_to_string(main.join("readme")).unwrap(),
        "changed\n"
    );
    assert_eq!(at.repo.git(&["status", "--porcelain"]), " M src/lib\n");
    assert_eq!(landed(&at)["pending"], Value::Null, "{}", landed(&at));
}

#[test]
fn what_a_power_cut_tore_is_moved_out_of_the_way() {
    let at = with_work();
    let tip = at.repo.git_in("x", &["rev-parse", "HEAD"]);
    let git = at.repo.main().join(".git");
    for path in [
        "worktrees/x/HEAD",
        "worktrees/x/index",
        "refs/heads/worktree/x",
    ] {
        write(&git.join(path), "");
    }
    let object = git.join("objects").join(&tip[..2]).join(tip[2..].trim());
    std::fs::remove_file(&object).unwrap();
    write(&object, "");
    let found = at.run(&["doctor"]);
    assert_eq!(found.code, Some(1), "{found:?}");
    let fixed = at.ok(&["doctor", "--fix"]);
    let kinds: Vec<&str> = fixed["findings"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|f| f["kind"].as_str())
        .collect();
    assert!(
        kinds.contains(&"torn_tree") && kinds.contains(&"empty_objects"),
        "{fixed}"
    );
    at.ok(&["doctor"]);
    at.repo.check_sound();
    let trash = at.repo.ours().join("trash");
    let kept = std::fs::read_dir(trash)
        .unwrap()
        .next()
        .unwrap()
        .unwrap()
        .path();
    assert_eq!(
        std::fs::read_to_string(kept.join("tree/new")).unwrap(),
        "work\n"
    );
    at.ok(&["worktree", "create", "x"]);
}
