//! Failed tasks: the kept files, and the messages for people.

use harness::runs::LONG;
use harness::{Fan, git};
use serde_json::{Value, json};

use crate::CCB;

#[test]
fn of_many_failed_tasks_few_keep_their_worktrees_and_all_keep_their_work() {
    let fan = Fan::new(CCB);
    let task = |n: usize| {
        let run = match n {
            // Its work is not even committed.
            5 => "echo 5 > out-5; exit 3".to_owned(),
            n => format!("echo {n} > out-{n}"),
        };
        json!({"id": format!("t{n}"), "run": run, "verify": "false"})
    };
    let plan = |keep: usize| {
        let tasks: Vec<Value> = (0..6).map(task).collect();
        fan.plan(
            &json!({"name": "red", "keepFailed": keep, "defaults": {"retries": 0}, "tasks": tasks}),
        );
    };
    plan(2);
    let (code, report) = fan.run(&[]);
    assert_eq!(code, Some(1), "{report}");
    let trees = || fan.git(&["worktree", "list"]).lines().count() - 1;
    assert_eq!(trees(), 2, "{}", fan.git(&["worktree", "list"]));
    let notes = report["notes"].to_string();
    assert!(notes.contains("4 failed tasks"), "{notes}");
    assert!(notes.contains("keepFailed"), "{notes}");
    let refs = || {
        let format = "--format=%(refname)";
        fan.git(&["for-each-ref", format, "refs/ccb/fanout/failed"])
    };
    assert_eq!(refs().lines().count(), 4, "{}", refs());
    for n in 0..6 {
        let patch = fan.read(&format!("t{n}.patch"));
        assert!(patch.contains(&format!("+++ b/out-{n}")), "{patch}");
    }
    let name = refs()
        .lines()
        .find(|name| name.ends_with("/t5"))
        .unwrap()
        .to_owned();
    assert_eq!(fan.git(&["show", &format!("{name}:out-5")]), "5");
    // No message says that a removed worktree is kept.
    let team = fan.git(&[
        "for-each-ref",
        "--format=%(refname)",
        "refs/ccb/fanout/failed",
    ]);
    let team = team.split('/').nth(4).unwrap().to_owned();
    let listed = fan.0.command(&["--team", &team, "agent", "list"]).output();
    let listed = String::from_utf8(listed.unwrap().stdout).unwrap();
    assert_eq!(listed.matches("kept agent-").count(), 2, "{listed}");
    // They run again, and this time all of them may be kept.
    plan(100);
    let (_, report) = fan.run(&[]);
    assert!(
        !report["notes"].to_string().contains("failed tasks"),
        "{report}"
    );
    assert_eq!(refs(), "");
    assert_eq!(trees(), 6, "{}", fan.git(&["worktree", "list"]));
}

/// The output of a run for a person: the summary, without colours.
fn seen(fan: &Fan, more: &[&str]) -> (Option<i32>, String) {
    let args = [&["fanout", "plan.json", "-j", "4", "--ci"], more].concat();
    let ended = fan.0.command(&args).output().unwrap();
    (
        ended.status.code(),
        String::from_utf8(ended.stdout).unwrap(),
    )
}

fn task<'r>(report: &'r Value, id: &str) -> &'r Value {
    let tasks = report["tasks"].as_array().unwrap();
    tasks.iter().find(|task| task["id"] == id).unwrap()
}

/// Two tasks that write other words into the same line, and one that is far from both.
fn clash(fan: &Fan) {
    fan.plan(&json!({"name": "clash", "tasks": [
        {"id": "one", "run": "echo uno > readme", "verify": "test -s readme"},
        {"id": "two", "run": "echo due > readme", "verify": "test -s readme"},
        {"id": "far", "run": "echo far > far", "verify": "true"},
    ]}));
}

#[test]
fn a_conflict_says_with_whom_and_where_and_is_over_once_somebody_resolved_it() {
    let fan = Fan::new(CCB);
    clash(&fan);
    let (code, text) = seen(&fan, &["--land", "merge"]);
    assert_eq!(code, Some(8), "{text}");
    assert!(
        text.contains("⚠ two: did not land: conflicts with one in readme:1"),
        "{text}"
    );
    let (code, report) = fan.run(&["--land", "merge"]);
    assert_eq!(code, Some(8), "{report}");
    let two = task(&report, "two");
    assert_eq!(two["outcome"]["with"], json!(["one"]));
    assert_eq!(two["outcome"]["places"], json!(["readme:1"]));
    let tree = two["worktree"]
        .as_str()
        .expect("a worktree to resolve it in");
    let steps = two["resolve"].as_array().unwrap();
    assert_eq!(steps[0], format!("cd {tree} && git merge ccb/clash"));
    assert!(
        steps[2].as_str().unwrap().ends_with("--land merge"),
        "{steps:?}"
    );
    assert!(
        text.contains(&format!("resolve: cd {tree} && git merge ccb/clash")),
        "{text}"
    );
    // Half way it is not over.
    let tree = std::path::Path::new(tree);
    harness::git_command(tree, &["merge", "-q", "ccb/clash"])
        .output()
        .unwrap();
    let (code, report) = fan.run(&["--land", "merge"]);
    assert_eq!(code, Some(8), "{report}");
    assert!(
        report["notes"].to_string().contains("not resolved yet"),
        "{report}"
    );
    // Resolved.
    harness::write(&tree.join("readme"), "uno e due\n");
    git(tree, &["commit", "-qam", "Both"]);
    let (code, report) = fan.run(&["--land", "merge"]);
    assert_eq!(code, Some(0), "{report}");
    assert_eq!(fan.git(&["show", "ccb/clash:readme"]), "uno e due");
    assert_eq!(fan.git(&["show", "ccb/clash:far"]), "far");
    assert!(!tree.exists(), "the worktree is not needed any more");
    // And it does not change.
    let (code, report) = fan.run(&["--land", "merge"]);
    assert_eq!(code, Some(0), "{report}");
    assert_eq!(fan.git(&["show", "ccb/clash:readme"]), "uno e due");
}

#[test]
fn a_conflict_that_was_resolved_on_the_branch_is_over() {
    resolved_on("ccb/clash", &["--land", "merge"]);
    resolved_on("release", &["--land", "merge", "--into", "release"]);
}

fn resolved_on(branch: &str, args: &[&str]) {
    let fan = Fan::new(CCB);
    clash(&fan);
    let (code, report) = fan.run(args);
    assert_eq!(code, Some(8), "{report}");
    let commit = task(&report, "two")["outcome"]["commit"].as_str().unwrap();
    let aside = fan.0.repo.beside("aside");
    fan.git(&["worktree", "add", "-q", &aside.to_string_lossy(), branch]);
    harness::git_command(&aside, &["merge", "-q", commit])
        .output()
        .unwrap();
    harness::write(&aside.join("readme"), "uno e due\n");
    git(&aside, &["commit", "-qam", "Both"]);
    for _ in 0..2 {
        let (code, report) = fan.run(args);
        assert_eq!(code, Some(0), "{report}");
        assert_eq!(fan.git(&["show", &format!("{branch}:readme")]), "uno e due");
    }
}

#[test]
fn what_is_not_applied_is_named() {
    let fan = Fan::new(CCB);
    fan.git(&["config", "user.name", "t"]);
    fan.git(&["config", "user.email", "t@example.org"]);
    clash(&fan);
    fan.run(&["--land", "merge"]);
    let answer = fan.0.run(&["fanout", "apply", "ccb-out"]);
    assert_eq!(answer.code, Some(8), "{answer:?}");
    let apply = answer.json()["apply"].clone();
    assert_eq!(apply["skipped"][0]["task"], "two", "{apply}");
    assert_eq!(apply["skipped"][0]["proven"], true, "{apply}");
    assert_eq!(fan.git(&["show", "HEAD:readme"]), "uno");
    // Where nothing landed, patches of both are there, and the second does not fit.
    fan.git(&["reset", "-q", "--hard", "HEAD~2"]);
    fan.run(&[]);
    let answer = fan.0.run(&["fanout", "apply", "ccb-out"]);
    let message = answer.json()["error"]["message"].to_string();
    assert!(
        message.contains("the same files as one (readme)"),
        "{message}"
    );
}

#[test]
fn a_failed_check_can_be_read() {
    let fan = Fan::new(CCB);
    let check = "echo first; echo second; exit 3";
    fan.plan(
        &json!({"name": "red", "defaults": {"retries": 0}, "tasks": [
            {"id": "t-1", "run": "echo 1 > out", "verify": check},
            {"id": "gone", "run": "echo what happened >&2; exit 9"},
            {"id": "good", "run": "echo 1 > good", "verify": "true"},
        ]}),
    );
    let (code, text) = seen(&fan, &[]);
    assert_eq!(code, Some(1), "{text}");
    let log = fan.out().join("checks/t-1.log");
    for wanted in [
        "✘ red: 1 of 3 tasks done",
        &format!("✘ t-1: the check `{check}` failed: exit code 3"),
        "│ first\n",
        "│ second\n",
        &format!("log:   {}", log.display()),
        "retry: ccb ",
        " fanout plan.json -j 4 --ci --only t-1\n",
        "✘ gone: the agent failed",
        "│ what happened",
        "worktree: ",
        "1 check failed",
    ] {
        assert!(text.contains(wanted), "{wanted:?} is not in\n{text}");
    }
    assert!(!text.contains("verify_failed"), "{text}");
    let page = fan.read("report.md");
    assert!(page.contains("failed: exit code 3"), "{page}");
    assert!(page.contains("first\nsecond\n"), "{page}");
    assert!(page.contains("--only t-1"), "{page}");
    // The file it names exists.
    let (_, report) = fan.run(&[]);
    let tree = task(&report, "t-1")["worktree"].as_str().unwrap();
    assert!(std::path::Path::new(tree).is_dir(), "{tree}");
    assert_eq!(
        task(&report, "gone")["worktree"],
        Value::Null,
        "nothing is in it"
    );
}

#[test]
fn a_task_is_retried_as_often_as_the_plan_says() {
    let fan = Fan::new(CCB);
    let tries = fan.0.home.path().join("tries");
    let run = format!(
        "echo $CCB_ATTEMPT >> '{}'; echo no >&2; exit 1",
        tries.display()
    );
    fan.plan(&json!({"tasks": [{"id": "a", "run": run, "retries": 2}]}));
    let (code, report) = fan.run(&[]);
    assert_eq!(code, Some(1), "{report}");
    let made = || std::fs::read_to_string(&tries).unwrap();
    assert_eq!(made(), "1\n2\n3\n", "{report}");
    // The next run continues to count.
    let (_, report) = fan.run(&[]);
    assert_eq!(made(), "1\n2\n3\n4\n5\n6\n", "{report}");
    assert_eq!(task(&report, "a")["attempts"], 3, "those of this run");
}

#[test]
fn what_failed_in_an_earlier_run_is_told_to_the_next_one() {
    let fan = Fan::new(CCB);
    let told = fan.0.home.path().join("told");
    let run = format!(
        "echo \"$CCB_LAST_FAILURE\" >> '{}'; echo oh dear >&2; exit 1",
        told.display()
    );
    fan.plan(&json!({"tasks": [{"id": "a", "run": run, "retries": 0}]}));
    fan.run(&[]);
    fan.run(&[]);
    let told = std::fs::read_to_string(&told).unwrap();
    assert!(
        told.starts_with('\n') && told.contains("oh dear"),
        "{told:?}"
    );
}

#[test]
fn a_plan_s_board_is_named_listed_and_deleted() {
    let fan = Fan::new(CCB);
    fan.plan(
        &json!({"name": "named", "tasks": [{"id": "a", "run": "echo 1 > a", "verify": "true"}]}),
    );
    let answer = fan.answer(&[]);
    let first = answer.json_lines()[0].clone();
    let team = first["team"]
        .as_str()
        .expect("the first event names it")
        .to_owned();
    let ended = fan
        .0
        .command(&["fanout", "plan.json", "--ci"])
        .output()
        .unwrap();
    let said = String::from_utf8(ended.stderr).unwrap();
    let first = said.lines().next().unwrap();
    assert!(first.contains("1 task, "), "{first}");
    assert!(
        first.ends_with(&format!("--team {team} task list")),
        "{first}"
    );
    let teams = fan.0.ok(&["team", "list"]);
    assert_eq!(teams["teams"][0]["name"], team.as_str(), "{teams}");
    fan.0.ok(&["team", "delete", &team]);
    assert_eq!(fan.0.ok(&["team", "list"])["teams"], json!([]));
}

#[test]
fn a_board_is_not_deleted_while_its_plan_runs() {
    let fan = Fan::new(CCB);
    let (began, go) = (
        fan.0.home.path().join("began"),
        fan.0.home.path().join("go"),
    );
    let run = format!(
        "touch '{}'; until test -e '{}'; do sleep 0.05; done; echo 1 > a",
        began.display(),
        go.display()
    );
    fan.plan(&json!({"tasks": [{"id": "a", "run": run}]}));
    let mut plan = fan.start(&[]);
    harness::wait_until(LONG, "the task to begin", || began.exists());
    let teams = fan.0.ok(&["team", "list"]);
    let team = teams["teams"][0]["name"].as_str().unwrap();
    fan.0.fails(4, "in_use", &["team", "delete", team]);
    std::fs::write(go, "").unwrap();
    assert!(plan.wait().unwrap().success());
    fan.0.ok(&["team", "delete", team]);
}

#[test]
fn a_checkout_in_the_way_of_a_landing_is_named_with_its_files() {
    let fan = Fan::new(CCB);
    fan.plan(&json!({"tasks": [{"id": "a", "run": "echo 1 > readme", "verify": "true"}]}));
    fan.write("readme", "mine\n");
    let (code, report) = fan.run(&["--land", "merge", "--into", "main"]);
    assert_eq!(code, Some(8), "{report}");
    let notes = report["notes"].to_string();
    assert!(
        notes.contains("would overwrite your changes in readme"),
        "{notes}"
    );
}
