//! What tools found becomes tasks: inside the repository, and nowhere else.

use harness::script::Script;
use harness::team_session::SessionScene;
use harness::{Fan, kinds};
use serde_json::json;

use crate::{CCB, FAKE_AGENT};

/// What ruff writes for a project in /home/me/project.
const RUFF: &str = include_str!("../fixtures/findings/ruff.sarif");

/// A repository with what ruff complained about, and its log with the paths ruff would write.
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
    // One that works in the checkout by its own wish is no surprise.
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
