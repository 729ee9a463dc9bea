//! The directory of results, and applying it with real git.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use store::atomic::{self, Durability};
use swarm::redact::Secrets;

use super::reports::{outcomes, report};
use super::*;

fn write(path: &Path, bytes: &[u8]) {
    let dir = path.parent().unwrap();
    std::fs::create_dir_all(dir).unwrap();
    atomic::replace(dir, path, bytes, Durability::Relaxed).unwrap();
}

fn git(dir: &Path, args: &[&str]) -> String {
    let output = Command::new("git")
        .current_dir(dir)
        .env_remove("GIT_DIR")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_SYSTEM", "/dev/null")
        .args(args)
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "git {args:?}: {errors}");
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

fn repository(dir: &Path) -> String {
    std::fs::create_dir_all(dir).unwrap();
    git(dir, &["init", "-q", "-b", "main"]);
    git(dir, &["config", "user.name", "A"]);
    git(dir, &["config", "user.email", "a@b"]);
    write(&dir.join("a"), b"1\n2\n3\n");
    git(dir, &["add", "."]);
    git(dir, &["commit", "-qm", "first"]);
    git(dir, &["rev-parse", "HEAD"])
}

fn commit(dir: &Path, file: &str, bytes: &[u8], message: &str) -> String {
    write(&dir.join(file), bytes);
    git(dir, &["add", "."]);
    git(dir, &["commit", "-qm", message]);
    git(dir, &["rev-parse", "HEAD"])
}

fn secrets() -> Arc<Secrets> {
    Arc::new(Secrets::new(["hunter2hunter2"]))
}

fn done(id: &str, on: &[&str], commit: &str) -> TaskReport {
    TaskReport {
        id: id.into(),
        key: id.into(),
        depends_on: on.iter().map(|on| (*on).to_owned()).collect(),
        outcome: Outcome::Proven {
            commit: commit.into(),
        },
        files: BTreeMap::from([("patch".into(), format!("{id}.patch"))]),
        ..TaskReport::default()
    }
}

/// Two tasks, the first in the report building on the second; the second is binary.
fn made(root: &Path) -> (PathBuf, PathBuf, String) {
    let (repo, out) = (root.join("repo"), root.join("out"));
    let base = repository(&repo);
    let binary: Vec<u8> = (0..=255).cycle().take(5000).collect();
    let first = commit(&repo, "dir/bin \u{e4}", &binary, "add\n\nbinary");
    let second = commit(
        &repo,
        "a",
        b"1\r\nzwei\n3\n",
        "change a\n\nFrom here on: it's two",
    );
    git(&repo, &["reset", "-q", "--hard", &base]);
    let results = Results::create(&out, &base, secrets()).unwrap();
    results
        .keep_patch(
            "one",
            &worktrees::patch::format(&repo, &base, &first).unwrap(),
        )
        .unwrap();
    let kept = results
        .keep_patch(
            "two",
            &worktrees::patch::format(&repo, &first, &second).unwrap(),
        )
        .unwrap();
    assert!(!kept.holds_secret);
    let tasks = vec![done("two", &["one"], &second), done("one", &[], &first)];
    results
        .finish(&Report::new("r", &base, (0, 1), tasks), None)
        .unwrap();
    (repo, out, base)
}

#[test]
fn patches_apply_in_order_with_every_byte() {
    let root = tempfile::tempdir().unwrap();
    let (repo, out, base) = made(root.path());
    let check = ApplyOptions {
        check: true,
        ..ApplyOptions::default()
    };
    let answer = apply(&out, &repo, check).unwrap();
    assert_eq!(answer.tasks, ["one", "two"]);
    assert_eq!(git(&repo, &["rev-parse", "HEAD"]), base);
    assert_eq!(git(&repo, &["status", "--porcelain"]), "");
    let answer = apply(&out, &repo.join("."), ApplyOptions::default()).unwrap();
    assert!(answer.same_base);
    assert_eq!(git(&repo, &["rev-parse", "HEAD"]), answer.after);
    assert_eq!(git(&repo, &["log", "--format=%s", "-2"]), "change a\nadd");
    assert_eq!(std::fs::read(repo.join("a")).unwrap(), b"1\r\nzwei\n3\n");
    assert_eq!(
        std::fs::read(repo.join("dir/bin \u{e4}")).unwrap().len(),
        5000
    );
}

#[test]
fn plain_git_am_applies_them_too() {
    let root = tempfile::tempdir().unwrap();
    let (repo, out, _) = made(root.path());
    for file in ["one.patch", "two.patch"] {
        let path = out.join(file);
        git(&repo, &["am", "-q", "--keep-cr", path.to_str().unwrap()]);
    }
    assert_eq!(std::fs::read(repo.join("a")).unwrap(), b"1\r\nzwei\n3\n");
}

#[test]
fn a_conflict_leaves_everything_as_it_was() {
    let root = tempfile::tempdir().unwrap();
    let (repo, out, _) = made(root.path());
    let head = commit(&repo, "a", b"eins\nzwo\ndrei\n", "mine");
    for check in [true, false] {
        for three_way in [true, false] {
            let options = ApplyOptions { check, three_way };
            let error = apply(&out, &repo, options).unwrap_err();
            let FanoutError::DoesNotApply { patch, .. } = &error else {
                panic!("{error}")
            };
            assert_eq!(patch, "two.patch", "{options:?}");
            assert_eq!(git(&repo, &["rev-parse", "HEAD"]), head);
            assert_eq!(git(&repo, &["status", "--porcelain"]), "");
            assert!(!repo.join(".git/rebase-apply").exists());
            assert!(!repo.join("dir").exists());
        }
    }
}

#[test]
fn three_way_merges_what_moved() {
    let root = tempfile::tempdir().unwrap();
    let (repo, out, _) = made(root.path());
    commit(&repo, "other", b"x\n", "beside");
    let options = ApplyOptions {
        three_way: true,
        ..ApplyOptions::default()
    };
    let answer = apply(&out, &repo, options).unwrap();
    assert!(!answer.same_base);
}

#[test]
fn what_is_not_committed_is_in_the_way() {
    let root = tempfile::tempdir().unwrap();
    let (repo, out, _) = made(root.path());
    write(&repo.join("a"), b"mine\n");
    let error = apply(&out, &repo, ApplyOptions::default()).unwrap_err();
    assert_eq!(error.kind(), "has_changes");
    assert_eq!(std::fs::read(repo.join("a")).unwrap(), b"mine\n");
}

#[test]
fn a_merge_in_a_tree_becomes_one_patch() {
    let root = tempfile::tempdir().unwrap();
    let (repo, other) = (root.path().join("repo"), root.path().join("other"));
    let base = repository(&repo);
    git(root.path(), &["clone", "-q", "repo", "other"]);
    git(&repo, &["checkout", "-qb", "side"]);
    commit(&repo, "b", b"b\n", "b");
    git(&repo, &["checkout", "-q", "main"]);
    commit(&repo, "c", b"c\n", "c");
    git(&repo, &["merge", "-q", "--no-ff", "-m", "both", "side"]);
    let merged = git(&repo, &["rev-parse", "HEAD"]);
    let patch = worktrees::patch::format(&repo, &base, &merged).unwrap();
    let file = root.path().join("m.patch");
    write(&file, &patch);
    git(&other, &["config", "user.name", "A"]);
    git(&other, &["config", "user.email", "a@b"]);
    git(&other, &["am", "-q", file.to_str().unwrap()]);
    assert_eq!(
        git(&other, &["rev-parse", "HEAD^{tree}"]),
        git(&repo, &["rev-parse", "HEAD^{tree}"])
    );
}

#[test]
fn tampered_results_are_refused() {
    for (file, words) in [
        ("one.patch", "not the one"),
        ("report.json", "not the one"),
        ("junit.xml", "not the one"),
    ] {
        let root = tempfile::tempdir().unwrap();
        let (repo, out, base) = made(root.path());
        let mut bytes = std::fs::read(out.join(file)).unwrap();
        bytes.push(b' ');
        write(&out.join(file), &bytes);
        let error = apply(&out, &repo, ApplyOptions::default()).unwrap_err();
        assert!(error.to_string().contains(words), "{error}");
        assert_eq!(git(&repo, &["rev-parse", "HEAD"]), base);
    }
    let root = tempfile::tempdir().unwrap();
    let (repo, out, _) = made(root.path());
    atomic::remove(&out.join("two.patch")).unwrap();
    let error = apply(&out, &repo, ApplyOptions::default()).unwrap_err();
    assert!(error.to_string().contains("missing"), "{error}");
    let text = std::fs::read_to_string(out.join(MANIFEST)).unwrap();
    for (from, to, words) in [
        (
            "\"path\": \"one.patch\"",
            "\"path\": \"../one.patch\"",
            "not a file of this directory",
        ),
        (
            "\"path\": \"one.patch\"",
            "\"path\": \"/etc/passwd\"",
            "not a file of this directory",
        ),
        (
            "\"complete\": true",
            "\"complete\": false",
            "not come to its end",
        ),
        ("\"v\": 1", "\"v\": 7", "newer"),
        ("{", "[", "cannot be read"),
    ] {
        write(&out.join(MANIFEST), text.replace(from, to).as_bytes());
        let error = apply(&out, &repo, ApplyOptions::default())
            .unwrap_err()
            .to_string();
        assert!(error.contains(words), "{to}: {error}");
    }
    let error = apply(root.path(), &repo, ApplyOptions::default()).unwrap_err();
    assert!(error.to_string().contains("no results of ccb"), "{error}");
}

#[test]
fn secrets_are_in_no_file() {
    let root = tempfile::tempdir().unwrap();
    let out = root.path().join("out");
    let results = Results::create(&out, "base", secrets()).unwrap();
    let secret = b"before hunter2hunter2 after";
    let transcript = results.keep("t4", Keep::Transcript, secret).unwrap();
    let check = results.keep("t4", Keep::Check, secret).unwrap();
    let mut report = report(outcomes());
    report.base = "base".into();
    report.notes = vec!["hunter2hunter2".into()];
    report.tasks[4].outcome = Outcome::Failed {
        why: "hunter2hunter2".into(),
    };
    report.tasks[4].subject = "hunter2hunter2".into();
    report.tasks[4].files =
        BTreeMap::from([("transcript".into(), transcript), ("check".into(), check)]);
    for task in &mut report.tasks {
        if let Some(check) = &mut task.check {
            check.tail = "hunter2hunter2".into();
        }
    }
    results.finish(&report, None).unwrap();
    let mut seen = 0;
    store::tree::walk(&out, &mut |path, meta| {
        if meta.is_file() {
            let text = String::from_utf8_lossy(&std::fs::read(path)?).into_owned();
            assert!(!text.contains("hunter2"), "{}", path.display());
            seen += 1;
        }
        Ok(true)
    })
    .unwrap();
    // With the one that keeps them out of git's sight.
    assert_eq!(seen, 9);
    Loaded::load(&out).unwrap();
}

#[test]
fn a_patch_with_a_secret_is_told() {
    let root = tempfile::tempdir().unwrap();
    let repo = root.path().join("repo");
    let base = repository(&repo);
    let next = commit(&repo, "key", b"hunter2hunter2\n", "oops");
    let results = Results::create(&root.path().join("out"), &base, secrets()).unwrap();
    assert!(
        results
            .keep_patch("k", &worktrees::patch::format(&repo, &base, &next).unwrap())
            .unwrap()
            .holds_secret
    );
}

#[test]
fn earlier_results_go_and_foreign_files_stay() {
    let root = tempfile::tempdir().unwrap();
    let (_, out, base) = made(root.path());
    let results = Results::create(&out, &base, secrets()).unwrap();
    assert!(!out.join("one.patch").exists());
    assert!(
        Loaded::load(&out).is_err(),
        "a run that is under way is not complete"
    );
    drop(results);
    // The same after a run that was killed.
    Results::create(&out, &base, secrets())
        .unwrap()
        .finish(&report(vec![]), None)
        .unwrap();
    let foreign = root.path().join("foreign");
    write(&foreign.join("thesis.txt"), b"years of work");
    let error = Results::create(&foreign, &base, secrets()).unwrap_err();
    assert!(error.to_string().contains("no result of ccb"), "{error}");
    assert!(foreign.join("thesis.txt").exists());
}

#[test]
fn parts_are_merged_with_their_files() {
    let root = tempfile::tempdir().unwrap();
    let repo = root.path().join("repo");
    let base = repository(&repo);
    let one = commit(&repo, "x", b"x\n", "x");
    git(&repo, &["reset", "-q", "--hard", &base]);
    let two = commit(&repo, "y", b"y\n", "y");
    git(&repo, &["reset", "-q", "--hard", &base]);
    let mut dirs = Vec::new();
    for (id, commit) in [("one", &one), ("two", &two)] {
        let dir = root.path().join(id);
        let results = Results::create(&dir, &base, secrets()).unwrap();
        results
            .keep_patch(id, &worktrees::patch::format(&repo, &base, commit).unwrap())
            .unwrap();
        let report = Report::new("r", &base, (0, 1), vec![done(id, &[], commit)]);
        results.finish(&report, None).unwrap();
        dirs.push(dir);
    }
    let out = root.path().join("all");
    let whole = merge_results(&dirs, Some(&out), secrets(), None).unwrap();
    assert_eq!(
        (whole.tasks.len(), whole.verdict),
        (2, director::Verdict::Done)
    );
    assert_eq!(
        apply(&out, &repo, ApplyOptions::default()).unwrap().tasks,
        ["one", "two"]
    );
    assert!(merge_results(&dirs, Some(&dirs[0]), secrets(), None).is_err());
    assert!(dirs[0].join("one.patch").exists());
}
