//! Landing a worktree's commits on another branch: landings, refusals, and that a refusal changes
//! nothing.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use harness::{Workplace, git, git_command, write};
use serde_json::Value;

use crate::CCB;

/// A worktree `x` with two commits, and an unrelated commit on main.
fn diverged() -> Workplace {
    let at = Workplace::new(CCB);
    at.ok(&["worktree", "create", "x"]);
    commit(&at.repo.tree("x"), "one", "1\n", "Add one");
    commit(&at.repo.tree("x"), "two", "2\n", "Add two");
    commit(at.repo.main(), "theirs", "t\n", "Theirs");
    at
}

fn commit(tree: &Path, file: &str, text: &str, message: &str) {
    write(&tree.join(file), text);
    git(tree, &["add", "."]);
    git(tree, &["commit", "-qm", message]);
}

fn tip(at: &Workplace, branch: &str) -> String {
    at.repo.git(&["rev-parse", branch]).trim().to_owned()
}

fn subjects(at: &Workplace, range: &str) -> Vec<String> {
    let text = at.repo.git(&["log", "--reverse", "--format=%s", range]);
    text.lines().map(str::to_owned).collect()
}

/// All state that must not change when nothing lands.
fn scene(at: &Workplace) -> String {
    let refs = at.repo.git(&["for-each-ref"]);
    let trees = at.repo.git(&["worktree", "list", "--porcelain"]);
    let entry = at.ok(&["worktree", "list", "--quick"]);
    format!("{}{refs}{trees}{entry}", at.repo.surroundings())
}

#[test]
fn each_strategy_puts_the_same_files_there_in_its_own_way() {
    for (strategy, expected) in [
        (
            "merge",
            vec!["Add one", "Add two", "Merge branch 'worktree/x' into main"],
        ),
        ("squash", vec!["Squash worktree x"]),
        ("rebase", vec!["Add one", "Add two"]),
    ] {
        let at = diverged();
        let before = tip(&at, "main");
        let tree_before = git(&at.repo.tree("x"), &["log", "--format=%H"]);
        let answer = at.ok(&["worktree", "merge", "x", "--strategy", strategy]);
        let merge = &answer["merge"];
        assert_eq!(merge["outcome"], "landed", "{strategy}: {answer}");
        assert_eq!(merge["commits"], 2);
        assert_eq!(merge["before"], *before);
        assert_eq!(merge["after"], *tip(&at, "main"));
        assert_eq!(subjects(&at, &format!("{before}..main")), expected);
        // The checkout of main moved along.
        for (file, text) in [("one", "1\n"), ("two", "2\n"), ("theirs", "t\n")] {
            assert_eq!(
                std::fs::read_to_string(at.repo.main().join(file)).unwrap(),
                text
            );
        }
        assert_eq!(at.repo.git(&["status", "--porcelain"]), "", "{strategy}");
        assert_eq!(
            git(&at.repo.tree("x"), &["log", "--format=%H"]),
            tree_before
        );
        at.repo.check_sound();

        // Landed work is no reason to refuse.
        assert_eq!(answer["worktree"]["merged"]["into"], "main");
        let again = at.ok(&["worktree", "merge", "x", "--strategy", strategy]);
        assert_eq!(again["merge"]["outcome"], "nothing_to_do", "{strategy}");
        at.ok(&["worktree", "remove", "x"]);
        assert!(!at.repo.tree("x").exists());
    }
}

#[test]
fn authors_and_words_stay_and_nobody_is_asked_for_a_name() {
    let at = diverged();
    let tree = at.repo.tree("x");
    write(&tree.join("three"), "3");
    git(&tree, &["add", "."]);
    let author = "--author=Ann Other <ann@example.org>";
    git(
        &tree,
        &["commit", "-q", author, "-m", "Add three", "-m", "Because."],
    );
    at.ok(&["worktree", "merge", "x", "--strategy", "rebase"]);
    let shown = at
        .repo
        .git(&["log", "-1", "--format=%an <%ae>|%cn|%B", "main"]);
    assert_eq!(
        shown.trim(),
        "Ann Other <ann@example.org>|ccb|Add three\n\nBecause."
    );

    // With a configured identity, that one; and of a single commit its author and message.
    at.repo.git(&["config", "user.name", "Mine"]);
    at.repo.git(&["config", "user.email", "mine@example.org"]);
    at.ok(&["worktree", "create", "y"]);
    let tree = at.repo.tree("y");
    write(&tree.join("four"), "4");
    git(&tree, &["add", "."]);
    git(&tree, &["commit", "-q", author, "-m", "Add four"]);
    commit(at.repo.main(), "more", "m", "More");
    at.ok(&["worktree", "merge", "y", "--strategy", "squash"]);
    let shown = at
        .repo
        .git(&["log", "-1", "--format=%an|%cn|%s|%P", "main"]);
    let parent = tip(&at, "main~1");
    assert_eq!(shown.trim(), format!("Ann Other|Mine|Add four|{parent}"));
}

#[test]
fn a_conflict_is_told_with_its_files_and_moves_nothing() {
    for strategy in ["merge", "squash", "rebase"] {
        let at = diverged();
        commit(&at.repo.tree("x"), "readme", "ours\n", "Ours");
        commit(at.repo.main(), "readme", "theirs\n", "Clash");
        let before = scene(&at);
        for extra in [&["--dry-run"][..], &[]] {
            let args = [&["worktree", "merge", "x", "--strategy", strategy], extra].concat();
            let error = at.fails(8, "conflicts", &args);
            assert_eq!(error["files"], serde_json::json!(["readme"]), "{strategy}");
            assert_eq!(scene(&at), before, "{strategy} {extra:?}");
        }
        at.repo.check_sound();
    }
}

#[test]
fn a_dry_run_says_what_would_land_and_runs_nothing() {
    let at = diverged();
    let before = scene(&at);
    let args = [
        "worktree",
        "merge",
        "x",
        "--dry-run",
        "--check",
        "touch ran; false",
    ];
    let answer = at.ok(&args);
    assert_eq!(answer["merge"]["outcome"], "would_land");
    assert_eq!(answer["merge"]["commits"], 2);
    assert_eq!(scene(&at), before);
    assert_eq!(
        at.ok(&["worktree", "events"])["events"]
            .as_array()
            .unwrap()
            .len(),
        2
    );
}

#[test]
fn what_is_not_committed_keeps_a_tree_from_landing() {
    let at = diverged();
    let tree = at.repo.tree("x");
    write(&tree.join("one"), "changed");
    write(&tree.join("new"), "untracked");
    let before = scene(&at);
    let error = at.fails(4, "has_changes", &["worktree", "merge", "x"]);
    assert_eq!(error["changes"]["files"], 1);
    assert_eq!(error["changes"]["untracked"], 1);
    assert!(
        error["hint"].as_str().unwrap().contains("commit them"),
        "{error}"
    );
    assert_eq!(scene(&at), before);
    // A detached HEAD that left its branch behind.
    git(&tree, &["clean", "-qfd"]);
    git(&tree, &["checkout", "-q", "--force", "--detach", "HEAD~1"]);
    at.fails(4, "not_mergeable", &["worktree", "merge", "x"]);
    git(&tree, &["checkout", "-q", "worktree/x"]);
    at.ok(&["worktree", "merge", "x"]);
}

#[test]
fn the_target_can_be_any_branch_whether_checked_out_or_not() {
    let at = diverged();
    at.repo.git(&["branch", "other", "main~1"]);
    at.repo.git(&["branch", "elsewhere", "main"]);
    let linked = at.repo.beside("linked");
    at.repo.git(&[
        "worktree",
        "add",
        "-q",
        linked.to_str().unwrap(),
        "elsewhere",
    ]);
    let before = at.repo.surroundings();

    // Without a checkout: a fast-forward of a ref.
    at.ok(&["worktree", "merge", "x", "--into", "other"]);
    assert_eq!(tip(&at, "other"), tip(&at, "worktree/x"));
    // In a linked worktree: its files move too.
    let answer = at.ok(&["worktree", "merge", "x", "--into", "refs/heads/elsewhere"]);
    assert_eq!(answer["merge"]["checkout"], *linked.to_str().unwrap());
    assert!(linked.join("one").exists());
    assert_eq!(git(&linked, &["status", "--porcelain"]), "");
    assert_eq!(at.repo.surroundings(), before, "main is not concerned");

    for (into, why) in [
        ("nope", "no such branch"),
        ("other~1", "no such branch"),
        ("-f", "no such branch"),
        ("worktree/x", "own"),
    ] {
        let error = at.fails(2, "invalid", &["worktree", "merge", "x", "--into", into]);
        assert!(error["message"].as_str().unwrap().contains(why), "{error}");
    }
    at.repo.git(&["checkout", "-q", "--detach"]);
    at.fails(2, "invalid", &["worktree", "merge", "x"]);
    at.fails(3, "worktree_not_found", &["worktree", "merge", "y"]);
}

#[test]
fn files_in_the_way_of_the_checkout_are_never_overwritten() {
    let at = diverged();
    write(&at.repo.tree("x").join("cache.ignored"), "theirs");
    git(&at.repo.tree("x"), &["add", "--force", "cache.ignored"]);
    git(&at.repo.tree("x"), &["commit", "-qm", "Cache"]);
    commit(&at.repo.tree("x"), "readme", "new\n", "Readme");
    for file in ["readme", "one", "cache.ignored"] {
        let path = at.repo.main().join(file);
        let old = std::fs::read_to_string(&path).ok();
        at.repo.write(file, "precious");
        let before = scene(&at);
        let error = at.fails(8, "target_refused", &["worktree", "merge", "x"]);
        let message = error["message"].as_str().unwrap();
        assert!(message.contains(file), "{message}");
        assert_eq!(scene(&at), before, "{file}");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "precious");
        match old {
            Some(text) => at.repo.write(file, &text),
            None => std::fs::remove_file(&path).unwrap(),
        }
    }
    // A dirty file that is not in the way is no reason.
    at.repo.write("src/lib", "mine");
    at.ok(&["worktree", "merge", "x"]);
    assert_eq!(at.repo.git(&["status", "--porcelain"]), " M src/lib\n");
}

#[test]
fn the_check_sees_the_result_and_decides() {
    let at = diverged();
    at.repo.write(".claude/settings.local.json", "{}");
    at.repo.git(&["config", "user.name", "t"]);
    let before = scene(&at);
    let failing = "test -f one && test -f theirs && echo seen && touch litter && exit 3";
    let error = at.fails(
        1,
        "check_failed",
        &["worktree", "merge", "x", "--check", failing],
    );
    assert!(error["message"].as_str().unwrap().contains('3'), "{error}");
    let log = error["log"].as_str().unwrap();
    assert_eq!(std::fs::read_to_string(log).unwrap(), "seen\n");
    assert_eq!(scene(&at), before, "nothing moved, nothing is left");

    // The set-up is the usual one, and its failure stops it too.
    let args = [
        "worktree", "merge", "x", "--check", "true", "--setup", "false",
    ];
    at.fails(1, "setup_failed", &args);
    assert_eq!(scene(&at), before);

    // A check that hangs is ended with everything it started.
    let marker = at.repo.beside("alive");
    let hanging = format!("(sleep 600; touch {}) & sleep 600", marker.display());
    let args = [
        "worktree",
        "merge",
        "x",
        "--check",
        &hanging,
        "--check-timeout",
        "1",
    ];
    at.fails(1, "check_failed", &args);
    assert_eq!(scene(&at), before);

    let passing = "test -f one && test -f theirs && test -f .claude/settings.local.json && \
        test \"$PWD\" = \"$CCB_WORKTREE\" && test -e \"$CCB_MAIN_TREE/.git/ccb\" && test -d .git";
    let answer = at.ok(&["worktree", "merge", "x", "--check", passing]);
    assert_eq!(answer["merge"]["outcome"], "landed");
    let left = std::fs::read_dir(at.repo.tree("")).unwrap().count();
    assert_eq!(left, 1, "the check tree is gone");
    at.repo.check_sound();
}

#[test]
fn a_target_that_moves_during_the_check_is_merged_again() {
    let at = diverged();
    // The first check commits to main, the second time it finds that done.
    let main = at.repo.main().display();
    let check = format!(
        "test -f late || {{ cd {main} && test ! -f late && echo l > late && git add late && \
         git -c user.name=t -c user.email=t@example.org commit -qm Late; }}"
    );
    at.ok(&[
        "worktree",
        "merge",
        "x",
        "--strategy",
        "rebase",
        "--check",
        &check,
    ]);
    let all = subjects(&at, "main");
    assert_eq!(all, ["first", "Theirs", "Late", "Add one", "Add two"]);
    assert_eq!(at.repo.git(&["status", "--porcelain"]), "");

    // The landing gives up on a branch that never stands still, and leaves it unchanged.
    at.ok(&["worktree", "create", "y", "--base", "main~1"]);
    commit(&at.repo.tree("y"), "four", "4", "Add four");
    let check = format!(
        "git -C {main} -c user.name=t -c user.email=t@example.org \
        commit -q --allow-empty -m again"
    );
    at.fails(
        5,
        "target_moved",
        &["worktree", "merge", "y", "--check", &check],
    );
    assert!(!at.repo.main().join("four").exists());
    at.repo.check_sound();
}

#[test]
fn hooks_editors_signatures_and_settings_of_the_user_do_not_get_in_the_way() {
    let at = diverged();
    for hook in [
        "pre-merge-commit",
        "commit-msg",
        "post-merge",
        "post-checkout",
        "reference-transaction",
    ] {
        let path = at.repo.main().join(".git/hooks").join(hook);
        write(&path, "#!/bin/sh\nexit 1\n");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    for (key, value) in [
        ("commit.gpgSign", "true"),
        ("gpg.program", "/bin/false"),
        ("core.editor", "/bin/false"),
        ("merge.ff", "false"),
        ("merge.verifySignatures", "true"),
        ("merge.autoStash", "true"),
        ("branch.main.mergeOptions", "--squash"),
    ] {
        at.repo.git(&["config", key, value]);
    }
    let answer = at.ok(&["worktree", "merge", "x", "--message", "Landing: -x-"]);
    assert_eq!(answer["merge"]["outcome"], "landed");
    let shown = at.repo.git(&["log", "-1", "--format=%s|%P", "main"]);
    let parents = format!("{} {}", tip(&at, "main^1"), tip(&at, "worktree/x"));
    assert_eq!(shown.trim(), format!("Landing: -x-|{parents}"));
    assert_eq!(at.repo.git(&["status", "--porcelain"]), "");
}

#[test]
fn a_rebase_that_would_lose_what_a_merge_decided_is_refused() {
    let at = diverged();
    commit(&at.repo.tree("x"), "readme", "ours\n", "Ours");
    commit(at.repo.main(), "readme", "theirs\n", "Clash");
    let tree = at.repo.tree("x");
    let merging = git_command(&tree, &["merge", "-q", "main"])
        .output()
        .unwrap();
    assert!(!merging.status.success());
    write(&tree.join("readme"), "both\n");
    git(&tree, &["commit", "-qam", "Both"]);
    commit(at.repo.main(), "later", "l", "Later");
    let before = scene(&at);
    let answer = at.run(&["worktree", "merge", "x", "--strategy", "rebase"]);
    assert!(matches!(answer.code, Some(4 | 8)), "{answer:?}");
    assert_eq!(scene(&at), before);
    at.ok(&["worktree", "merge", "x", "--strategy", "squash"]);
    assert_eq!(
        std::fs::read_to_string(at.repo.main().join("readme")).unwrap(),
        "both\n"
    );
}

#[test]
fn landings_wait_for_each_other_and_all_arrive() {
    let at = Workplace::new(CCB);
    let names: Vec<String> = (0..6).map(|n| format!("t{n}")).collect();
    for name in &names {
        at.ok(&["worktree", "create", name]);
        commit(&at.repo.tree(name), name, "x", name);
    }
    std::thread::scope(|scope| {
        for (n, name) in names.iter().enumerate() {
            let strategy = ["merge", "squash", "rebase"][n % 3];
            let at = &at;
            scope.spawn(move || {
                at.ok(&[
                    "worktree",
                    "merge",
                    name,
                    "--strategy",
                    strategy,
                    "--check",
                    "true",
                ]);
            });
        }
    });
    for name in &names {
        assert!(at.repo.main().join(name).exists(), "{name}");
    }
    assert_eq!(at.repo.git(&["status", "--porcelain"]), "");
    at.repo.check_sound();
    let events = at.ok(&["worktree", "events", "--limit", "1000"]);
    let count = |wanted: &str| {
        let events = events["events"].as_array().unwrap().iter();
        events.filter(|event| event["event"] == wanted).count()
    };
    assert_eq!(count("worktree.merge.before"), 6);
    assert_eq!(count("worktree.merge.after"), 6);
}

#[test]
fn work_after_a_landing_counts_as_before() {
    let at = diverged();
    at.ok(&["worktree", "merge", "x", "--strategy", "squash"]);
    commit(&at.repo.tree("x"), "more", "m", "More");
    at.fails(4, "has_changes", &["worktree", "remove", "x"]);
    git(&at.repo.tree("x"), &["reset", "-q", "--hard", "HEAD~1"]);
    // Reset away, but in no branch: it still counts as work.
    at.fails(4, "has_changes", &["worktree", "remove", "x"]);

    // A landing that was undone no longer counts.
    at.ok(&["worktree", "create", "y", "--base", "main~1"]);
    commit(&at.repo.tree("y"), "why", "y", "Why");
    at.ok(&["worktree", "merge", "y", "--strategy", "squash"]);
    at.repo.git(&["reset", "-q", "--hard", "HEAD~1"]);
    at.fails(4, "has_changes", &["worktree", "remove", "y"]);
}

#[test]
fn three_events_tell_the_story() {
    let at = diverged();
    commit(at.repo.main(), "one", "clash", "Clash");
    at.fails(8, "conflicts", &["worktree", "merge", "x"]);
    at.repo.git(&["reset", "-q", "--hard", "HEAD~1"]);
    at.ok(&["worktree", "merge", "x"]);
    let events = at.ok(&["worktree", "events", "--limit", "4"]);
    let events: Vec<&Value> = events["events"].as_array().unwrap().iter().collect();
    let names: Vec<&str> = events
        .iter()
        .map(|e| e["event"].as_str().unwrap())
        .collect();
    assert_eq!(
        names,
        [
            "worktree.merge.before",
            "worktree.merge.failed",
            "worktree.merge.before",
            "worktree.merge.after"
        ]
    );
    assert!(
        events[1]["error"].as_str().unwrap().contains("one"),
        "{events:?}"
    );
    assert_eq!(events[3]["worktree"]["into"], "main");
    assert_eq!(events[3]["worktree"]["commit"], *tip(&at, "main"));
}
