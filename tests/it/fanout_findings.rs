//! Findings of tools become tasks: inside the repository, and nowhere else.

use harness::script::Script;
use harness::team_session::SessionScene;
use harness::{Fan, kinds};
use serde_json::json;

use crate::{CCB, FAKE_AGENT};

/// ruff's output for a project in /home/me/project.
const RUFF: &str = include_str!("../fixtures/findings/ruff.sarif");

/// A repository with ruff's findings, and its log with the paths ruff would write.
fn project() -> Fan {
    let fan = Fan::new(CCB);
    fan.write(
        "docs/conf.py",
        "import os\nimport sys\nx = 1\nif x == None:\n    print()\n",
    );
    fan.write("src dir/a b.py", "import json\n\n\ndef f():\n    y = 1\n");
    fan.commit();
    let top = fan.0.repo.main().canonicalize().unwrap();
    let log = RUFF.replace("/home/me/project", &top.to_string_lossy());
    fan.write("ruff.sarif", &log);
    fan
}

#[test]
fn findings_with_absolute_paths_are_repaired_in_worktrees() {
    let fan = project();
    fan.plan(
        &json!({"foreach": [{"sarif": "ruff.sarif", "groupBy": "path", "task": {
            "run": "echo '# repaired' >> {{path}}", "verify": "grep -q repaired {{path}}",
            "paths": "{{path}}",
        }}]}),
    );
    let before = fan.git(&["status", "--porcelain"]);
    let (code, report) = fan.run(&[]);
    assert_eq!(code, Some(0), "{report}");
    let all = kinds(&report);
    assert_eq!(all.len(), 2, "{report}");
    assert!(all.iter().all(|(_, kind)| kind == "proven"), "{report}");
    assert_eq!(report["tasks"][0]["origin"]["file"], "docs/conf.py");
    assert_eq!(
        fan.git(&["status", "--porcelain"]),
        before,
        "the checkout is as it was"
    );
    assert!(
        !report["notes"].to_string().contains("changed meanwhile"),
        "{report}"
    );
}

#[test]
fn findings_outside_of_the_repository_are_refused() {
    let fan = project();
    fan.write("ruff.sarif", RUFF);
    let plan = json!({"foreach": [{"id": "lint", "sarif": "ruff.sarif", "task": {
        "run": "touch {{path}}",
    }}]});
    fan.plan(&plan);
    let error = fan.0.fails(2, "outside", &["fanout", "plan.json", "--ci"]);
    let message = error["message"].as_str().unwrap();
    assert!(
        message.contains("foreach \"lint\": 5 of 5 items"),
        "{message}"
    );
    assert!(
        message.contains("file:///home/me/project/docs/conf.py"),
        "{message}"
    );
}

#[test]
fn a_task_that_writes_into_the_checkout_is_noticed() {
    let fan = project();
    let conf = fan.0.repo.main().join("docs/conf.py");
    let run = format!("echo x >> '{}'; echo 1 > own", conf.display());
    fan.plan(&json!({"tasks": [{"id": "a", "run": run, "verify": "test -s own"}]}));
    let (code, report) = fan.run(&[]);
    assert_eq!(code, Some(0), "{report}");
    let notes = report["notes"].to_string();
    assert!(notes.contains("changed meanwhile: docs/conf.py"), "{notes}");
    // A task that works in the checkout by its own request is no surprise.
    fan.plan(
        &json!({"tasks": [{"id": "b", "run": "echo y >> docs/conf.py", "isolation": "none"}]}),
    );
    let (_, report) = fan.run(&[]);
    let notes = report["notes"].to_string();
    assert!(!notes.contains("changed meanwhile"), "{notes}");
}

#[test]
fn a_teammate_that_writes_into_the_checkout_is_noticed() {
    let scene = SessionScene::new(CCB);
    scene
        .home
        .with_fake_runtime(FAKE_AGENT, r#""agents":{"stopGraceMs":300}"#);
    let readme = scene.repo.main().join("readme");
    let strays = format!("echo x >> '{}'; echo 1 > own", readme.display());
    let work = Script::new().run(&["sh", "-c", &strays]).done("did it");
    let lead = Script::new()
        .call(
            "TaskCreate",
            json!({"subject": "one", "description": work.to_prompt(),
                   "metadata": {"ccb": {"verify": "test -s own"}}}),
        )
        .done("handed out")
        .serve();
    let prompt = lead.to_prompt();
    let answer = scene.run(&["--json", "--runtime", "fake", "--mates", "1", &prompt]);
    assert!(
        answer.stdout.contains("changed meanwhile: readme"),
        "{answer:?}"
    );
}

#[test]
fn a_part_of_a_plan_runs_by_id() {
    let fan = project();
    let task =
        |id: &str, on: &[&str]| json!({"id": id, "run": format!("echo 1 > {id}"), "dependsOn": on});
    fan.plan(&json!({"tasks": [task("base", &[]), task("a-1", &["base"]), task("b-1", &[])]}));
    let (code, report) = fan.run(&["--only", "a-*"]);
    assert_eq!(code, Some(0), "{report}");
    let ids: Vec<String> = kinds(&report).into_iter().map(|(id, _)| id).collect();
    assert_eq!(ids, ["base", "a-1"]);
    assert!(
        report["notes"].to_string().contains("2 of 3 tasks"),
        "{report}"
    );
    let (_, report) = fan.run(&["--skip", "base", "--limit", "1"]);
    let ids: Vec<String> = kinds(&report).into_iter().map(|(id, _)| id).collect();
    assert_eq!(ids, ["b-1"]);
    fan.0.fails(
        2,
        "nothing_matched",
        &["fanout", "plan.json", "--only", "c-*"],
    );
}

#[test]
fn a_check_that_passes_when_it_is_run_again_is_reported_as_flaky() {
    let fan = project();
    let count = fan.0.home.path().join("count");
    // Passes every second time.
    let check = format!(
        "echo x >> '{0}'; test $(($(wc -l < '{0}') % 2)) = 0",
        count.display()
    );
    let task = json!({"id": "a", "run": "echo 1 > a", "verify": check, "retries": 0});
    fan.plan(&json!({"tasks": [task]}));
    let (code, report) = fan.run(&[]);
    assert_eq!(code, Some(1), "{report}");
    std::fs::remove_file(&count).unwrap();
    let mut again = task;
    again["id"] = "b".into();
    again["checkRetries"] = 1.into();
    fan.plan(&json!({"tasks": [again]}));
    let (code, report) = fan.run(&[]);
    assert_eq!(code, Some(0), "{report}");
    let task = &report["tasks"][0];
    assert_eq!(task["outcome"]["kind"], "proven", "{report}");
    assert_eq!(task["attempts"], 1, "{report}");
    assert!(task["check"]["flaky"].is_string(), "{report}");
    assert!(fan.read("report.md").contains("flaky"));
    // The check of what lands may be run again as well: it is the third and fails first.
    let (code, report) = fan.run(&["--land", "merge", "--check", "true"]);
    assert_eq!(code, Some(0), "{report}");
    assert_eq!(report["landed"]["branch"], "ccb/plan", "{report}");
}

#[test]
fn a_lost_shard_is_a_failure_by_name() {
    let fan = project();
    let tasks: Vec<_> = (0..9)
        .map(|n| json!({"id": format!("t{n}"), "run": format!("echo {n} > t{n}")}))
        .collect();
    fan.plan(&json!({"tasks": tasks}));
    let out = |n: usize| {
        fan.0
            .repo
            .beside(&format!("part-{n}"))
            .to_string_lossy()
            .into_owned()
    };
    for n in 1..=3 {
        let answer = fan.answer(&["--shard", &format!("{n}/3"), "--out", &out(n)]);
        assert_eq!(answer.code, Some(0), "{answer:?}");
    }
    let merge = |parts: &[usize], more: &[&str]| {
        let dirs: Vec<String> = parts.iter().map(|n| out(*n)).collect();
        let mut args = vec!["fanout", "merge-reports"];
        args.extend(dirs.iter().map(String::as_str));
        args.extend(more);
        fan.0.run(&args)
    };
    assert_eq!(merge(&[1, 2, 3], &[]).code, Some(0));
    let whole = fan.0.repo.beside("whole").to_string_lossy().into_owned();
    let lost = merge(&[1, 3], &["-o", &whole]);
    assert_eq!(lost.code, Some(1), "{lost:?}");
    let report = lost.json()["report"].clone();
    assert_eq!(report["missingShards"], json!(["2/3"]), "{report}");
    assert!(
        report["broken"].as_str().unwrap().contains("shard 2/3"),
        "{report}"
    );
    // A part whose job died half-way is reported, and the others are merged.
    let manifest = std::path::Path::new(&out(2)).join("manifest.json");
    let text = std::fs::read_to_string(&manifest).unwrap();
    let died = text.replace("\"complete\": true", "\"complete\": false");
    std::fs::write(&manifest, died).unwrap();
    let dead = merge(&[1, 2, 3], &[]);
    assert_eq!(dead.code, Some(1), "{dead:?}");
    let broken = dead.json()["report"]["broken"].to_string();
    assert!(
        broken.contains("shard 2/3") && broken.contains("part-2 did not come to its end"),
        "{broken}"
    );
    // By the durations of the first run, and the same for all of them.
    let mut seen = Vec::new();
    let mut cuts = Vec::new();
    for n in 1..=3 {
        let shard = format!("{n}/3");
        let args = ["fanout", "plan.json", "--dry-run", "--shard", &shard];
        let preview = fan.0.ok(&[&args[..], &["--timings", &whole]].concat());
        let ids = preview["tasks"].as_array().unwrap().iter();
        seen.extend(ids.map(|task| task["id"].as_str().unwrap().to_owned()));
        cuts.push(preview["cut"].clone());
        // The home has seen all of them.
        let balanced = fan.0.ok(&[&args[..], &["--timings", "home"]].concat());
        let count = balanced["tasks"].as_array().unwrap().len();
        assert!((1..=5).contains(&count), "{balanced}");
    }
    seen.sort();
    let all: Vec<String> = (0..9).map(|n| format!("t{n}")).collect();
    assert_eq!(seen, all);
    assert!(cuts.windows(2).all(|pair| pair[0] == pair[1]), "{cuts:?}");
    fan.0.fails(
        2,
        "bad_input",
        &[
            "fanout",
            "plan.json",
            "--dry-run",
            "--shard",
            "1/2",
            "--timings",
            "gone.json",
        ],
    );
}

#[test]
fn merge_commits_name_their_tasks() {
    let fan = project();
    let task = |id: &str| json!({"id": id, "subject": format!("make {id}"), "run": format!("echo 1 > {id}")});
    fan.plan(&json!({"name": "p", "tasks": [task("one"), task("two")]}));
    let (code, report) = fan.run(&["--land", "merge"]);
    assert_eq!(code, Some(0), "{report}");
    let merges = fan.git(&["log", "--merges", "--format=%s", "ccb/p"]);
    assert_eq!(merges.lines().count(), 1, "{merges}");
    let named = ["Land one: make one", "Land two: make two"];
    assert!(named.contains(&merges.as_str()), "{merges}");
}

#[test]
fn a_quiet_run_shows_its_result_and_status_knows_a_run() {
    let fan = project();
    let go = fan.0.home.path().join("go");
    let wait = format!(
        "until test -e '{}'; do sleep 0.05; done; echo 1 > b",
        go.display()
    );
    fan.plan(&json!({"name": "slow", "tasks": [
        {"id": "a", "run": "echo 1 > a"}, {"id": "b", "run": wait, "dependsOn": "a"}]}));
    assert_eq!(fan.0.ok(&["status"])["plans"], json!([]));
    let mut child = fan.0.command(&["-q", "fanout", "plan.json"]);
    let child = child
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    harness::wait_until(harness::runs::LONG, "the plan to be half done", || {
        let plans = fan.0.ok(&["status"])["plans"].clone();
        plans[0]["done"] == 1 && plans[0]["tasks"] == 2
    });
    std::fs::write(go, "").unwrap();
    let ended = child.wait_with_output().unwrap();
    assert!(ended.status.success(), "{ended:?}");
    assert_eq!(String::from_utf8_lossy(&ended.stderr), "");
    let said = String::from_utf8_lossy(&ended.stdout).into_owned();
    assert!(said.contains("2 of 2 tasks done"), "{said}");
    assert_eq!(fan.0.ok(&["status"])["plans"], json!([]));
}
