//! Reports of sessions, plans and agents, and the list of ended ones.

use harness::team_session::SessionScene;
use harness::{Fan, write};
use serde_json::{Value, json};

use crate::CCB;

const SECRET: &str = "sk-ant-api03-abcdefghijklmnopqrstuvwxyz0123456789";

fn task<'r>(report: &'r Value, id: &str) -> &'r Value {
    let mut tasks = report["tasks"].as_array().expect("tasks").iter();
    let found = tasks.find(|task| task["id"] == id);
    found.unwrap_or_else(|| panic!("no {id} in {report}"))
}

#[test]
fn a_session_can_be_looked_at_when_it_has_ended() {
    let scene = SessionScene::new(CCB);
    scene.task(
        "write one",
        &[
            "--run",
            "echo 1 > one",
            "--verify",
            "echo looked; test -s one",
        ],
    );
    scene.task(
        "write two",
        &[
            "--run",
            "echo 2 > two",
            "--verify",
            "test -s two",
            "--blocked-by",
            "1",
        ],
    );
    let bad = "echo nothing works >&2; false";
    scene.task("never works", &["--run", "echo 3 > three", "--verify", bad]);
    scene.session(&["--attempts", "1"]);
    let report = scene.ok(&["report"]);
    assert_eq!(report["kind"], "session", "{report}");
    assert_eq!(report["state"], "failed", "{report}");
    assert_eq!(report["totals"]["done"], 2, "{report}");
    assert_eq!(report["totals"]["landed"], 2, "{report}");
    let one = task(&report, "1");
    assert_eq!(
        (&one["state"], &one["landing"]),
        (&json!("done"), &json!("landed"))
    );
    assert_eq!(one["check"]["passed"], true, "{one}");
    assert!(
        one["check"]["output"]["text"]
            .as_str()
            .unwrap()
            .contains("looked"),
        "{one}"
    );
    assert!(
        one["diff"]["text"].as_str().unwrap().contains("+++ b/one"),
        "{one}"
    );
    let parked = task(&report, "3");
    assert_eq!(parked["state"], "parked", "{parked}");
    assert_eq!(parked["attempts"].as_array().unwrap().len(), 1, "{parked}");
    assert!(
        parked["check"]["output"]["text"]
            .as_str()
            .unwrap()
            .contains("nothing works")
    );
    // The second waited for the first.
    let path = report["timeline"]["criticalPath"].as_array().unwrap();
    let path: Vec<&Value> = path.iter().map(|step| &step["task"]).collect();
    assert!(path == ["1", "2"] || path == ["3"], "{path:?}");
    for row in report["timeline"]["rows"].as_array().unwrap() {
        let spans = row["spans"].as_array().unwrap();
        assert!(spans.iter().any(|span| span["what"] == "check"), "{row}");
        for pair in spans.windows(2) {
            assert_eq!(pair[0]["toMs"], pair[1]["fromMs"], "{row}");
        }
    }
    let left = report["left"].to_string();
    assert!(
        left.contains("never works") && left.contains("task show 3"),
        "{left}"
    );

    // It is listed, with its landings.
    let runs = scene.ok(&["runs"]);
    assert_eq!(runs["runs"][0]["id"], report["id"], "{runs}");
    assert_eq!(runs["runs"][0]["totals"]["landed"], 2, "{runs}");
    // Undone, the live report says so; the kept one has the old state.
    scene.ok(&["undo", "2"]);
    let report = scene.ok(&["report"]);
    assert_eq!(report["totals"]["undone"], 1, "{report}");
    assert_eq!(task(&report, "2")["landing"], "undone", "{report}");
    let id = report["id"].as_str().unwrap().to_owned();
    let kept = scene.ok(&["report", &id]);
    assert_eq!(kept["totals"]["undone"], 0, "{kept}");
    // One agent of it.
    let agent = task(&report, "1")["agent"].as_str().unwrap();
    let one = scene.ok(&["report", agent]);
    assert_eq!(
        (&one["kind"], &one["state"]),
        (&json!("agent"), &json!("done")),
        "{one}"
    );
    assert_eq!(one["agents"].as_array().unwrap().len(), 1, "{one}");
    // In words.
    let text = scene.run(&["report"]).stdout;
    assert!(text.contains("2 of 3 tasks done"), "{text}");
    let nothing = scene.run(&["report", "ghost"]);
    assert_eq!(nothing.code, Some(3), "{nothing:?}");
}

#[test]
fn what_agents_wrote_is_harmless_in_a_page_and_secrets_are_not_in_it() {
    let scene = SessionScene::new(CCB);
    let subject = "<script>alert(1)</script> \u{202e}gnp.exe";
    let verify = format!(
        "echo '<img src=x onerror=alert(2)>' {SECRET}; printf '\\033[31mred\\n'; test -s one"
    );
    let run = format!("echo '<script>alert(3)</script> {SECRET}' > one");
    scene.task(subject, &["--run", &run, "--verify", &verify]);
    scene.session(&["--merge", "never"]);
    let page = scene.run(&["report", "--html", "-"]).stdout;
    assert!(page.starts_with("<!doctype html>"), "{page}");
    assert!(
        !page.contains("<script") && !page.contains("<img"),
        "{page}"
    );
    assert!(
        !page.contains('\u{202e}') && !page.contains('\u{1b}'),
        "{page}"
    );
    assert!(!page.contains(SECRET), "{page}");
    assert!(page.contains("&lt;script&gt;alert(1)"), "{page}");
    assert!(page.contains("⟨U+202E⟩gnp.exe"), "{page}");
    assert!(page.contains("Content-Security-Policy"), "{page}");
    for request in ["http:", "https:", "url(", "@import", "src="] {
        let found = page.replace("&lt;img src=x", "").contains(request);
        assert!(!found, "{request} in {page}");
    }
    let json = scene.run(&["--json", "report"]).stdout;
    assert!(!json.contains(SECRET), "{json}");
    // Into a file, replacing it; not over a directory.
    let file = scene.repo.main().join("out.html");
    write(&file, "old");
    let answer = scene.run(&["report", "--html", "out.html"]);
    assert_eq!(answer.code, Some(0), "{answer:?}");
    assert!(
        std::fs::read_to_string(&file)
            .unwrap()
            .starts_with("<!doctype")
    );
    let answer = scene.run(&["report", "--html", "."]);
    assert_eq!(answer.code, Some(2), "{answer:?}");
    let answer = scene.run(&["report", "--html", "no/such/place.html"]);
    assert_eq!(answer.code, Some(3), "{answer:?}");
}

#[test]
fn a_plan_leaves_a_page_among_its_results_and_is_listed() {
    let fan = Fan::new(CCB);
    fan.write("a.txt", "a\n");
    fan.commit();
    fan.plan(&json!({"name": "two", "tasks": [
        {"id": "first", "subject": "add b", "run": "echo b > b.txt", "verify": "test -s b.txt"},
        {"id": "second", "subject": "fail", "run": "true", "verify": "echo it is broken; false",
         "dependsOn": ["first"]},
    ]}));
    let (code, _) = fan.run(&["--land", "merge"]);
    assert_eq!(code, Some(1));
    let page = fan.read("report.html");
    assert!(
        page.contains("add b") && page.contains("+++ b/b.txt"),
        "{page}"
    );
    assert!(page.contains("it is broken"), "{page}");
    assert!(page.contains("Timeline"), "{page}");
    let manifest = fan.read("manifest.json");
    assert!(manifest.contains("report.html"), "{manifest}");
    let runs = fan.0.home.ok(&["runs", "--all"]);
    let one = &runs["runs"][0];
    assert_eq!(
        (&one["kind"], &one["state"]),
        (&json!("fanout"), &json!("failed")),
        "{runs}"
    );
    assert_eq!(
        (&one["totals"]["done"], &one["totals"]["tasks"]),
        (&json!(1), &json!(2)),
        "{runs}"
    );
    let report = fan.0.home.ok(&["report", one["id"].as_str().unwrap()]);
    assert_eq!(
        task(&report, "second")["after"],
        json!(["first"]),
        "{report}"
    );
}

#[test]
fn a_session_that_deletes_its_team_is_still_listed_and_old_ones_go() {
    let scene = SessionScene::new(CCB);
    scene.task(
        "write one",
        &["--run", "echo 1 > one", "--verify", "test -s one"],
    );
    assert_eq!(scene.session(&[]).code, Some(0));
    let id = scene.ok(&["runs"])["runs"][0]["id"]
        .as_str()
        .unwrap()
        .to_owned();
    scene.ok(&["team", "delete", "board", "--force"]);
    assert_eq!(scene.ok(&["report", &id])["totals"]["done"], 1);
    // Written long ago, by its own time.
    let summary = scene
        .home
        .path()
        .join("ccb/history")
        .join(&id)
        .join("summary.json");
    let mut old: Value = serde_json::from_slice(&std::fs::read(&summary).unwrap()).unwrap();
    old["endedAt"] = json!("2020-01-01T00:00:00.000Z");
    write(&summary, &old.to_string());
    scene.task(
        "write two",
        &["--run", "echo 2 > two", "--verify", "test -s two"],
    );
    assert_eq!(scene.session(&[]).code, Some(0));
    let runs = scene.ok(&["runs"]);
    let ids: Vec<&Value> = runs["runs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|run| &run["id"])
        .collect();
    assert!(!ids.contains(&&json!(id)) && ids.len() == 1, "{runs}");
}
