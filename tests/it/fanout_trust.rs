//! The guarantees for CI: protected files, reliable checks, reports that are never greener than the
//! run, and no leftovers.

use harness::sample::is_full;
use harness::{Fan, wait_until};
use serde_json::{Value, json};

use crate::CCB;

fn task<'a>(report: &'a Value, id: &str) -> &'a Value {
    let tasks = report["tasks"].as_array().unwrap();
    tasks.iter().find(|task| task["id"] == id).unwrap()
}

#[test]
fn a_task_that_changes_a_protected_file_or_leaves_its_paths_is_out_of_bounds() {
    let fan = Fan::new(CCB);
    fan.write(".github/workflows/ci.yml", "on: push\n");
    fan.write("lint", "#!/bin/sh\ntrue\n");
    fan.write("tests/a", "1\n");
    fan.commit();
    fan.plan(&json!({"name": "bounds", "protect": ["tests/**"],
        "defaults": {"retries": 0, "verify": "sh lint"}, "tasks": [
        {"id": "ci", "run": "echo x >> .github/workflows/ci.yml; echo 1 > fine"},
        {"id": "check", "run": "echo true > lint"},
        {"id": "attributes", "run": "mkdir sub; echo '* binary' > sub/.gitattributes"},
        {"id": "plan", "run": "echo 2 > tests/a"},
        {"id": "allowed", "run": "echo 3 > tests/a", "protect": ["!tests/a"]},
        {"id": "paths", "run": "echo 1 > src/own; echo 1 > other", "paths": ["src/own"]},
        {"id": "inside", "run": "echo 1 > src/mine", "paths": ["src/mine"]},
    ]}));
    let (code, report) = fan.run(&[]);
    assert_eq!(code, Some(1), "{report}");
    for (id, files) in [
        ("ci", json!([".github/workflows/ci.yml"])),
        ("check", json!(["lint"])),
        ("attributes", json!(["sub/.gitattributes"])),
        ("plan", json!(["tests/a"])),
        ("paths", json!(["other"])),
    ] {
        let outcome = &task(&report, id)["outcome"];
        assert_eq!(outcome["kind"], "out_of_bounds", "{id}: {report}");
        assert_eq!(outcome["files"], files, "{id}");
        assert_eq!(task(&report, id)["attempts"], 1);
    }
    for id in ["allowed", "inside"] {
        assert_eq!(task(&report, id)["outcome"]["kind"], "proven", "{report}");
    }
    assert_eq!(
        task(&report, "inside")["changes"],
        json!([{"path": "src/mine", "added": 1, "deleted": 0}])
    );
    assert!(fan.read("report.md").contains("src/mine +1 −0"));
    assert!(fan.read("junit.xml").contains("type=\"out_of_bounds\""));
}

#[test]
fn the_next_attempt_is_told_what_it_must_not_change() {
    let fan = Fan::new(CCB);
    fan.write("tests/a", "1\n");
    fan.commit();
    let run =
        "case \"$CCB_LAST_FAILURE\" in *tests/a*) echo 1 > fixed;; *) echo 2 > tests/a;; esac";
    fan.plan(&json!({"name": "told", "protect": ["tests"], "tasks": [
        {"id": "a", "run": run, "verify": "test -f fixed"},
    ]}));
    let (code, report) = fan.run(&[]);
    assert_eq!(code, Some(0), "{report}");
    assert_eq!(task(&report, "a")["attempts"], 2);
}

/// A command that writes a JUnit report: one test for each file in `t`, which fails if the file says
/// so.
const TESTS: &str = "echo '<testsuite>' > \"$CCB_JUNIT\"; for f in t/*; do \
    echo \"<testcase name='$f'>$(cat $f)</testcase>\" >> \"$CCB_JUNIT\"; done; \
    echo '</testsuite>' >> \"$CCB_JUNIT\"; exit 1";

#[test]
fn tests_that_failed_before_may_fail_and_no_others() {
    let fan = Fan::new(CCB);
    fan.write("t/old", "<failure/>");
    fan.write("t/good", "");
    fan.commit();
    fan.plan(
        &json!({"name": "tests", "check": {"no-new-failures": TESTS}, "tasks": [
            {"id": "fine", "run": "echo 1 > a"},
            {"id": "breaks", "run": "echo '<failure/>' > t/good"},
        ]}),
    );
    let (code, report) = fan.run(&["--land", "merge"]);
    assert_eq!(code, Some(1), "{report}");
    assert_eq!(
        task(&report, "fine")["outcome"]["kind"],
        "unchecked",
        "{report}"
    );
    let outcome = &task(&report, "breaks")["outcome"];
    assert_eq!(outcome["kind"], "verify_failed", "{report}");
    let why = outcome["why"].as_str().unwrap();
    assert!(
        why.contains("1 test fails that did not fail before"),
        "{why}"
    );
    assert!(why.contains("t/good") && !why.contains("t/old"), "{why}");
    assert!(fan.files("ccb/tests").contains("\ta"));

    // Without a report nothing is known, so nothing lands.
    fan.plan(
        &json!({"name": "none", "check": {"no-new-failures": "true"}, "tasks": [
            {"id": "a", "run": "echo 1 > b"},
        ]}),
    );
    let (code, report) = fan.run(&["--land", "merge"]);
    assert_eq!(code, Some(1), "{report}");
    assert!(
        report.to_string().contains("wrote no JUnit report"),
        "{report}"
    );
    assert_eq!(fan.git(&["diff", "--stat", "main", "ccb/none"]), "");
    // One that is written elsewhere is found there.
    let elsewhere = TESTS.replace("\"$CCB_JUNIT\"", "out.xml");
    let check = json!({"no-new-failures": elsewhere, "report": "out.xml"});
    fan.plan(&json!({"name": "else", "check": check, "tasks": [{"id": "a", "run": "echo 1 > c"}]}));
    let (code, report) = fan.run(&["--land", "merge"]);
    assert_eq!(code, Some(0), "{report}");
}

#[test]
fn the_check_of_the_whole_has_the_plan_s_environment() {
    let fan = Fan::new(CCB);
    fan.plan(
        &json!({"name": "env", "defaults": {"env": {"LEVEL": "it's 3"}}, "tasks": [
            {"id": "a", "run": "echo 1 > a", "verify": "test \"$LEVEL\" = \"it's 3\""},
        ]}),
    );
    let check = "test \"$LEVEL\" = \"it's 3\"";
    let (code, report) = fan.run(&["--land", "merge", "--check", check]);
    assert_eq!(code, Some(0), "{report}");
}

#[test]
fn junit_has_a_failure_wherever_the_exit_code_is_not_0() {
    let fan = Fan::new(CCB);
    fan.plan(&json!({"name": "red", "tasks": [{"id": "a", "run": "echo 1 > a"}]}));
    let (code, report) = fan.run(&["--land", "merge", "--check", "echo never; exit 3"]);
    assert_eq!(code, Some(1), "{report}");
    assert_eq!(
        task(&report, "a")["outcome"]["kind"],
        "unchecked",
        "{report}"
    );
    let junit = fan.read("junit.xml");
    assert!(junit.contains("failures=\"1\""), "{junit}");
    assert!(junit.contains("nothing has landed on ccb/red"), "{junit}");
}

/// The number of entries of a directory; 0 if it does not exist.
fn count(dir: &std::path::Path) -> usize {
    std::fs::read_dir(dir).map_or(0, Iterator::count)
}

#[test]
fn trees_are_used_again_and_nothing_is_left_at_the_end() {
    let fan = Fan::new(CCB);
    let items: String = (0..40).map(|n| format!("{n}\n")).collect();
    fan.write("items", &items);
    fan.write(".gitignore", "*.o\nccb-out/\n");
    fan.commit();
    // Every second one changes nothing; each leaves a file that git ignores.
    let run = "n={{line}}; test ! -e left.o || exit 9; echo x > left.o; \
               test $((n % 2)) = 0 || echo {{line}} > out-{{line}}; \
               ls -d ../*/ | grep -vc ccb-check >> \"$OUT\"";
    let seen = fan.0.repo.beside("seen");
    fan.plan(
        &json!({"name": "many", "defaults": {"env": {"OUT": seen}}, "foreach": [
            {"lines": "items", "task": {"id": "t{{line}}", "run": run}},
        ]}),
    );
    let (code, report) = fan.run(&[]);
    assert_eq!(code, Some(0), "{report}");
    let most = std::fs::read_to_string(&seen).unwrap();
    let most = most
        .lines()
        .map(|line| line.trim().parse::<usize>().unwrap());
    let most = most.max().unwrap();
    // Those that run, and for each one whose end is being handled.
    assert!(most <= 8, "{most} trees at once");
    let ours = fan.0.repo.ours();
    assert_eq!(count(&fan.0.repo.tree("")), 0, "no tree");
    assert_eq!(count(&ours.join("trash")), 0, "nothing in the trash");
    let refs = fan.git(&[
        "for-each-ref",
        "--format=%(refname)",
        "refs/ccb",
        "refs/heads/worktree",
    ]);
    assert_eq!(refs.lines().count(), 1, "{refs}");
    let listed = fan.0.ok(&["worktree", "list", "--all"]);
    assert_eq!(listed["worktrees"], json!([]), "{listed}");
    fan.0.repo.check_sound();
    // Proven tasks are still known.
    let (code, report) = fan.run(&["--land", "merge"]);
    assert_eq!(code, Some(0), "{report}");
    let cached = |task: &Value| task["outcome"]["kind"] == "cached";
    assert!(
        report["tasks"].as_array().unwrap().iter().all(cached),
        "{report}"
    );
    assert!(fan.files("ccb/many").contains("\tout-39"));
}

#[test]
fn the_report_is_written_when_a_long_plan_is_told_to_stop() {
    let fan = Fan::new(CCB);
    let tasks = if is_full() { 500 } else { 120 };
    let items: String = (0..tasks).map(|n| format!("{n}\n")).collect();
    fan.write("items", &items);
    fan.commit();
    fan.plan(&json!({"name": "long", "foreach": [
        {"lines": "items", "task": {"id": "t{{line}}", "run": "echo {{line}} > out-{{line}}",
            "verify": "test -f out-{{line}}"}},
    ]}));
    let mut child = fan.start(&[]);
    let board = || fan.0.repo.ours().join("checks");
    let limit = std::time::Duration::from_secs(60);
    wait_until(limit, "something is checked", || count(&board()) > 0);
    let pid = i32::try_from(child.id()).unwrap();
    harness::runs::kill(pid, rustix::process::Signal::TERM);
    let status = child.wait().unwrap();
    assert_eq!(status.code(), Some(143));
    let report: Value = serde_json::from_str(&fan.read("report.json")).unwrap();
    assert_eq!(report["signal"], 15, "{report}");
    assert!(fan.read("manifest.json").contains("\"complete\": true"));
    let (code, report) = fan.run(&["--land", "merge"]);
    assert_eq!(code, Some(0), "{}", report["counts"]);
    assert_eq!(fan.files("ccb/long").matches("\tout-").count(), tasks);
    assert_eq!(count(&fan.0.repo.tree("")), 0);
}

#[test]
fn what_was_proven_counts_as_long_as_its_inputs_are_the_same() {
    let fan = Fan::new(CCB);
    for file in ["src/a", "src/b", "lock"] {
        fan.write(file, "1\n");
    }
    fan.commit();
    fan.plan(
        &json!({"name": "inputs", "foreach": [{"files": "src/[ab]", "task": {
            "id": "{{name}}", "run": "echo done >> {{path}}", "verify": "grep -q done {{path}}",
            "inputs": ["{{path}}", "lock"],
        }}]}),
    );
    let kinds = |report: &Value| {
        let of = |id| {
            task(report, id)["outcome"]["kind"]
                .as_str()
                .unwrap()
                .to_owned()
        };
        [of("a"), of("b")]
    };
    let (code, report) = fan.run(&[]);
    assert_eq!(
        (code, kinds(&report)),
        (Some(0), ["proven", "proven"].map(Into::into))
    );

    // Another base, on which no part of it matters: rewritten history, even.
    let old = fan.git(&["rev-parse", "HEAD"]);
    fan.write("other", "2\n");
    fan.git(&["add", "."]);
    fan.git(&["commit", "-q", "--amend", "-m", "another first commit"]);
    let base = fan.git(&["rev-parse", "HEAD"]);
    let (code, report) = fan.run(&["--land", "merge"]);
    assert_eq!(
        (code, kinds(&report)),
        (Some(0), ["cached", "cached"].map(Into::into))
    );
    assert_eq!(fan.git(&["show", "ccb/inputs:src/a"]), "1\ndone");
    assert_eq!(fan.git(&["show", "ccb/inputs:other"]), "2");
    let log = fan.git(&["log", "--format=%H", "ccb/inputs"]);
    assert!(!log.contains(&old), "nothing of the old history");
    let commit = task(&report, "a")["outcome"]["commit"].as_str().unwrap();
    assert_eq!(fan.git(&["rev-parse", &format!("{commit}^")]), base);
    assert!(fan.read("a.patch").contains("+done"));

    // One of them matters for one task, the other for both.
    fan.write("src/b", "2\n");
    fan.commit();
    let (_, report) = fan.run(&[]);
    assert_eq!(kinds(&report), ["cached", "proven"]);
    fan.write("lock", "2\n");
    fan.commit();
    let (_, report) = fan.run(&[]);
    assert_eq!(kinds(&report), ["proven", "proven"]);
}

#[test]
fn at_the_deadline_agents_that_do_not_listen_are_ended_and_the_report_is_written() {
    let fan = Fan::new(CCB);
    let deaf = "trap '' TERM INT; echo 1 > begun; while :; do sleep 1; done";
    fan.plan(&json!({"name": "late", "tasks": [
        {"id": "done", "run": "echo 1 > a", "verify": "test -f a", "priority": 1},
        {"id": "deaf", "run": deaf, "dependsOn": ["done"]},
        {"id": "never", "run": "echo 1 > b", "dependsOn": ["deaf"]},
    ]}));
    let (code, report) = fan.run(&["--deadline", "4s"]);
    assert_eq!(code, Some(6), "{report}");
    assert_eq!(
        task(&report, "done")["outcome"]["kind"],
        "proven",
        "{report}"
    );
    assert_eq!(
        task(&report, "deaf")["outcome"]["kind"],
        "budget",
        "{report}"
    );
    assert_eq!(
        task(&report, "never")["outcome"]["kind"],
        "skipped",
        "{report}"
    );
    assert!(fan.read("junit.xml").contains("type=\"budget\""));
}
