//! Old worktrees, the trash, and a registry that disagrees with git or the disk.

use std::os::unix::fs::{PermissionsExt, symlink};
use std::sync::Arc;
use store::Explain;

use store::clock::{Clock, ManualClock, SystemClock};
use worktrees::{AgentEnd, GcVerdict, RemoveRequest, TreeOptions, Trees};

use crate::repo::{TestRepo, git, slug, write};

const DISCARD: RemoveRequest<'_> = RemoveRequest {
    discard: true,
    rescue_ignored: false,
    kept: None,
    hook: None,
};

/// The worktrees as they are seen some days from now.
fn later(repo: &TestRepo, days: i64) -> Trees {
    let now = SystemClock.now_ms() + days * 24 * 60 * 60 * 1000;
    let options = TreeOptions {
        clock: Arc::new(ManualClock::at(now)),
        ..TreeOptions::default()
    };
    Trees::discover(repo.main(), options).unwrap()
}

fn commit(repo: &TestRepo, name: &str, file: &str) {
    write(&repo.tree(name).join(file), "work\n");
    repo.git_in(name, &["add", "."]);
    repo.git_in(name, &["commit", "-qm", "work"]);
}

#[test]
fn only_what_is_provably_not_needed_is_collected() {
    let repo = TestRepo::new();
    for name in [
        "unchanged",
        "merged",
        "squashed",
        "open",
        "dirty",
        "held",
        "task",
        "amended",
    ] {
        repo.create(name);
    }
    commit(&repo, "merged", "merged");
    repo.git(&["merge", "-q", "--no-ff", "-m", "merge", "worktree/merged"]);
    commit(&repo, "squashed", "squashed");
    commit(&repo, "squashed", "squashed-too");
    repo.git(&["merge", "-q", "--squash", "worktree/squashed"]);
    repo.git(&["commit", "-qm", "squashed"]);
    commit(&repo, "open", "open");
    write(&repo.tree("dirty").join("new"), "x");
    commit(&repo, "amended", "amended");
    repo.git_in("amended", &["commit", "-q", "--amend", "-m", "amended"]);
    repo.git(&["merge", "-q", "--no-ff", "-m", "merge", "worktree/amended"]);
    let now = repo.trees();
    now.set_task(&slug("task"), Some(("1".into(), "board".into())))
        .unwrap();
    let _held = now.hold(&slug("held")).unwrap();

    assert!(
        now.gc_candidates().unwrap().is_empty(),
        "all were just used"
    );
    let then = later(&repo, 31);
    let verdicts: Vec<(String, String)> = then
        .gc_candidates()
        .unwrap()
        .into_iter()
        .map(|candidate| {
            let verdict = match candidate.verdict {
                GcVerdict::Unchanged => "unchanged".to_owned(),
                GcVerdict::Merged { into } => format!("merged into {into}"),
                GcVerdict::Stays(_) => "stays".to_owned(),
            };
            (candidate.entry.name, verdict)
        })
        .collect();
    let expected = [
        ("unchanged", "unchanged"),
        ("merged", "merged into HEAD"),
        ("squashed", "merged into HEAD"),
        ("open", "stays"),
        ("dirty", "stays"),
        ("held", "stays"),
        ("task", "stays"),
        ("amended", "stays"),
    ];
    let expected: Vec<_> = expected
        .iter()
        .map(|(a, b)| ((*a).to_owned(), (*b).to_owned()))
        .collect();
    assert_eq!(verdicts, expected);
    for (name, _) in &expected {
        let collected = then.collect(&slug(name)).unwrap().is_some();
        let can_go = ["unchanged", "merged", "squashed"].contains(&name.as_str());
        assert_eq!(collected, can_go, "{name}");
        assert_eq!(repo.tree(name).exists(), !can_go, "{name}");
    }
    repo.trees().undo(&slug("squashed")).unwrap();
    repo.check_sound();
}

#[test]
fn the_end_of_an_agent_keeps_what_it_made() {
    let repo = TestRepo::new();
    let trees = repo.trees();
    repo.create("agent-a");
    assert!(matches!(
        trees.agent_ended(&slug("agent-a")).unwrap(),
        AgentEnd::Removed(_)
    ));
    assert!(repo.tree_branches().is_empty());
    repo.create("agent-b");
    write(&repo.tree("agent-b").join("new"), "x");
    let AgentEnd::Kept { entry, changes, .. } = trees.agent_ended(&slug("agent-b")).unwrap() else {
        panic!("removed");
    };
    assert_eq!((entry.status.as_str(), changes.untracked), ("kept", 1));
    repo.create("agent-c");
    let held = trees.hold(&slug("agent-c")).unwrap();
    let AgentEnd::Kept { why, .. } = trees.agent_ended(&slug("agent-c")).unwrap() else {
        panic!("removed while in use");
    };
    assert!(why.unwrap().contains("in use"));
    drop(held);
}

#[test]
fn the_trash_is_emptied_into_a_byte_exact_ref() {
    let repo = TestRepo::new();
    repo.write(".gitattributes", "*.txt text eol=lf\n");
    repo.git(&["add", "."]);
    repo.git(&["commit", "-qm", "attributes"]);
    repo.create("x");
    let at = repo.tree("x");
    write(&at.join("crlf.txt"), "one\r\ntwo\r\n");
    write(&at.join("odd\nname"), "odd");
    write(&at.join("tool"), "#!/bin/sh\n");
    std::fs::set_permissions(at.join("tool"), std::fs::Permissions::from_mode(0o755)).unwrap();
    symlink("/etc/passwd", at.join("link")).unwrap();
    write(&at.join("readme"), "changed\n");
    write(&at.join("cache.ignored"), "cache");
    std::fs::remove_file(at.join("src/lib")).unwrap();
    repo.trees().remove(&slug("x"), &DISCARD).unwrap();
    assert!(later(&repo, 6).empty_trash().unwrap().is_empty());
    let done = later(&repo, 8).empty_trash().unwrap();
    assert_eq!(done.len(), 1);
    assert_eq!(done[0].stays, None);
    assert_eq!(
        std::fs::read_dir(repo.ours().join("trash"))
            .unwrap()
            .count(),
        0
    );
    let id = done[0].entry.trash.as_ref().unwrap().id.clone();
    let files = format!("refs/ccb/rescue/{id}/files");
    repo.git(&["gc", "-q", "--prune=now"]);
    let show = |path: &str| repo.git(&["cat-file", "blob", &format!("{files}:{path}")]);
    assert_eq!(show("crlf.txt"), "one\r\ntwo\r\n");
    assert_eq!(show("odd\nname"), "odd");
    assert_eq!(show("readme"), "changed\n");
    assert_eq!(show("link"), "/etc/passwd");
    let listed = repo.git(&["ls-tree", "-r", &files]);
    assert!(listed.contains("100755 blob"), "{listed}");
    assert!(listed.contains("120000 blob"), "{listed}");
    assert!(
        !listed.contains("src/lib") && !listed.contains("cache"),
        "{listed}"
    );
    assert_eq!(
        repo.trees().undo(&slug("x")).unwrap_err().kind(),
        "nothing_to_undo"
    );
    assert!(later(&repo, 8).empty_trash().unwrap().is_empty());
    repo.check_sound();
}

#[test]
fn what_no_ref_can_hold_stays_in_the_trash() {
    let repo = TestRepo::new();
    for name in ["nested", "large", "plain"] {
        repo.create(name);
    }
    let at = repo.tree("nested");
    git(&at, &["init", "-q", "build/inside"]);
    write(&at.join("build/inside/work"), "x");
    write(&repo.tree("large").join("big"), &"x".repeat(2_000));
    write(&repo.tree("plain").join("cache.ignored"), "worth keeping");
    for name in ["nested", "large"] {
        repo.trees().remove(&slug(name), &DISCARD).unwrap();
    }
    let with_ignored = RemoveRequest {
        rescue_ignored: true,
        ..RemoveRequest::default()
    };
    repo.trees().remove(&slug("plain"), &with_ignored).unwrap();
    let now = SystemClock.now_ms() + 8 * 24 * 60 * 60 * 1000;
    let options = TreeOptions {
        clock: Arc::new(ManualClock::at(now)),
        rescue_max_bytes: 1_000,
        ..TreeOptions::default()
    };
    let trees = Trees::discover(repo.main(), options).unwrap();
    let stays: Vec<(String, bool)> = trees
        .empty_trash()
        .unwrap()
        .into_iter()
        .map(|overdue| (overdue.entry.name, overdue.stays.is_some()))
        .collect();
    let expected = [("nested", true), ("large", true), ("plain", false)];
    assert_eq!(
        stays,
        expected.map(|(name, stays)| (name.to_owned(), stays))
    );
    let refs = repo.git(&["for-each-ref", "--format=%(refname)", "refs/ccb/rescue"]);
    let files = refs.lines().find(|line| line.ends_with("/files")).unwrap();
    let cached = repo.git(&["cat-file", "blob", &format!("{files}:cache.ignored")]);
    assert_eq!(cached, "worth keeping");
    // Examined, but still whole.
    repo.trees().undo(&slug("nested")).unwrap();
    assert!(at.join("build/inside/work").exists());
    assert_eq!(repo.git_in("nested", &["status", "--porcelain"]), "");
    repo.check_sound();
}

#[test]
fn an_unchanged_tree_leaves_nothing_behind_in_the_end() {
    let repo = TestRepo::new();
    repo.create("x");
    repo.trees()
        .remove(&slug("x"), &RemoveRequest::default())
        .unwrap();
    let then = later(&repo, 40);
    assert_eq!(then.empty_trash().unwrap()[0].stays, None);
    assert_eq!(repo.git(&["for-each-ref", "refs/ccb"]), "");
    then.tidy().unwrap();
    assert!(repo.trees().list().unwrap().is_empty());
    // Numbers continue, so that no name in the trash comes twice.
    repo.create("x");
    let removed = repo.trees().remove(&slug("x"), &DISCARD).unwrap();
    assert_eq!(removed.entry.trash.unwrap().id, "x-2");
}

#[test]
fn the_doctor_reports_what_disagrees_and_deletes_nothing() {
    let repo = TestRepo::new();
    let kinds = |fix: bool| -> Vec<&'static str> {
        let findings = repo.trees().doctor(fix).unwrap();
        findings.iter().map(|finding| finding.kind).collect()
    };
    for name in ["gone", "unlinked", "branchless", "fine", "trashed"] {
        repo.create(name);
    }
    assert!(kinds(false).is_empty());
    std::fs::remove_dir_all(repo.tree("gone")).unwrap();
    write(&repo.tree("unlinked").join(".git"), "gitdir: /nowhere\n");
    repo.git_in("branchless", &["checkout", "-q", "--detach"]);
    repo.git(&["branch", "-q", "-D", "worktree/branchless"]);
    let removed = repo.trees().remove(&slug("trashed"), &DISCARD).unwrap();
    let id = removed.entry.trash.unwrap().id;
    std::fs::rename(
        repo.ours().join("trash").join(id),
        repo.ours().join("trash/other"),
    )
    .unwrap();
    repo.git(&[
        "worktree",
        "add",
        "-q",
        "-b",
        "mine",
        ".claude/worktrees/foreign",
    ]);
    write(&repo.tree("stray").join("file"), "x");
    let mut found = kinds(false);
    found.sort_unstable();
    let mut expected = [
        "tree_missing",
        "not_ours",
        "branch_missing",
        "trash_missing",
        "trash_unknown",
        "not_registered",
        "stray_directory",
    ];
    expected.sort_unstable();
    assert_eq!(found, expected);
    assert!(repo.tree("stray/file").exists() && repo.tree("foreign/readme").exists());
    kinds(true);
    assert!(!kinds(false).contains(&"not_registered"), "adopted");
    // Adopted without a base, so it never counts as unchanged, and its branch is not ccb's.
    let error = repo
        .trees()
        .remove(&slug("foreign"), &RemoveRequest::default())
        .unwrap_err();
    assert_eq!(error.kind(), "has_changes");
    repo.trees().remove(&slug("foreign"), &DISCARD).unwrap();
    repo.git(&["rev-parse", "--verify", "refs/heads/mine"]);
}

#[test]
fn a_registry_that_cannot_be_read_is_set_aside_and_rebuilt() {
    let repo = TestRepo::new();
    repo.create("x");
    commit(&repo, "x", "work");
    let index = repo.ours().join("index.json");
    std::fs::write(&index, "{ half").unwrap();
    let request = worktrees::CreateRequest::new(Some(slug("y")), repo.main());
    let error = repo.trees().create(&request).unwrap_err();
    assert_eq!(error.kind(), "registry_unreadable");
    let found = repo.trees().doctor(false).unwrap();
    assert_eq!(found[0].kind, "registry_unreadable");
    assert_eq!(std::fs::read_to_string(&index).unwrap(), "{ half");
    repo.trees().doctor(true).unwrap();
    assert!(repo.trees().doctor(false).unwrap().is_empty());
    let changes = repo.trees().changes(&slug("x")).unwrap();
    assert_eq!(
        changes.state.as_str(),
        "unknown",
        "its base is not known any more"
    );
    let aside = std::fs::read_dir(repo.ours()).unwrap();
    let aside = aside
        .flatten()
        .map(|e| e.file_name().into_string().unwrap());
    assert_eq!(aside.filter(|name| name.contains("unreadable")).count(), 1);
    repo.create("y");
}
