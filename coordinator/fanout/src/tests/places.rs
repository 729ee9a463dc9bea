//! Paths of inputs: nothing leaves the repository.

use std::os::unix::fs::symlink;
use std::path::Path;

use store::atomic::{Durability, Staged};

use super::*;

/// Output of ruff 0.17 for a project in /home/me/project.
const RUFF: &str = include_str!("../../../../tests/fixtures/findings/ruff.sarif");
/// Output of pytest 9 with `junit_family=xunit1`.
const PYTEST: &str = include_str!("../../../../tests/fixtures/findings/pytest.xml");

/// A checkout with a file `docs/conf.py`, a link to it from elsewhere, and links out of it.
struct Disk {
    dir: tempfile::TempDir,
}

impl Disk {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let here = dir.path();
        for sub in ["top/docs", "top/.git", "other"] {
            std::fs::create_dir_all(here.join(sub)).unwrap();
        }
        put(&here.join("top/docs/conf.py"));
        put(&here.join("other/secret.py"));
        symlink(here.join("top"), here.join("linked")).unwrap();
        symlink(here.join("other"), here.join("top/out")).unwrap();
        symlink("docs", here.join("top/in")).unwrap();
        Self { dir }
    }

    fn path(&self, path: &str) -> String {
        let dir = self.dir.path().canonicalize().unwrap();
        dir.join(path).to_string_lossy().into_owned()
    }

    fn checkout(&self) -> Checkout {
        let top = self.path("top");
        Checkout::new(Path::new(&top), Path::new(&self.path("linked/docs")))
    }
}

fn put(path: &Path) {
    let staged = Staged::write(path.parent().unwrap(), b"x\n", Durability::Relaxed).unwrap();
    staged.replace(path).unwrap();
}

#[test]
fn paths_are_made_relative_to_the_repository() {
    let disk = Disk::new();
    let checkout = disk.checkout();
    let (top, linked) = (disk.path("top"), disk.path("linked"));
    for (given, expected) in [
        ("docs/conf.py".to_owned(), "docs/conf.py"),
        ("./docs//conf.py".into(), "docs/conf.py"),
        ("docs/../docs/conf.py".into(), "docs/conf.py"),
        ("not/there yet.py".into(), "not/there yet.py"),
        ("in/conf.py".into(), "in/conf.py"),
        ("docs\\conf.py".into(), "docs/conf.py"),
        (format!("{top}/docs/conf.py"), "docs/conf.py"),
        (format!("{top}/x/../docs/conf.py"), "docs/conf.py"),
        (format!("file://{top}/docs/a%20b.py"), "docs/a b.py"),
        (
            format!("file://localhost{top}/docs/conf.py"),
            "docs/conf.py",
        ),
        (format!("file:{top}/docs/conf.py"), "docs/conf.py"),
        // By another name of the same place, as /tmp is /private/tmp on some systems.
        (format!("{linked}/docs/conf.py"), "docs/conf.py"),
        (format!("file://{linked}/docs/new.py"), "docs/new.py"),
        (top.clone(), "."),
    ] {
        assert_eq!(
            checkout.relative(&given).as_deref(),
            Ok(expected),
            "{given}"
        );
    }
}

#[test]
fn what_lies_outside_is_refused_with_the_reason() {
    let disk = Disk::new();
    let checkout = disk.checkout();
    let top = disk.path("top");
    for (given, words) in [
        ("/etc/passwd".to_owned(), "outside"),
        ("../other/secret.py".into(), "outside"),
        ("docs/../../other/secret.py".into(), "outside"),
        (disk.path("other/secret.py"), "outside"),
        (format!("{top}-2/docs/conf.py"), "outside"),
        (format!("file://{top}/%2e%2e/other/secret.py"), "outside"),
        ("out/secret.py".into(), "symbolic link"),
        (format!("{top}/out/secret.py"), "symbolic link"),
        (".git/hooks/pre-commit".into(), "git's own"),
        ("file:///C:/project/conf.py".into(), "Windows"),
        ("C:\\project\\conf.py".into(), "Windows"),
        ("file://server/share/conf.py".into(), "another machine"),
        ("https://example.org/conf.py".into(), "https: address"),
        ("a\0b".into(), "NUL"),
    ] {
        let why = checkout.relative(&given).unwrap_err();
        assert!(why.contains(words), "{given}: {why}");
    }
}

fn given(disk: &Disk, name: &'static str, text: String) -> Given {
    Given {
        texts: BTreeMap::from([(name, text)]),
        checkout: disk.checkout(),
        ..Given::default()
    }
}

#[test]
fn the_findings_of_ruff_stay_inside() {
    let disk = Disk::new();
    let log = RUFF.replace("/home/me/project", &disk.path("top"));
    assert!(log.contains("file:///"));
    let text = "foreach: [{sarif: r, task: {prompt: '{{path}} {{line}}', paths: '{{path}}'}}]";
    let tasks = tasks_of(text, &given(&disk, "r", log)).unwrap();
    assert_eq!(tasks.len(), 5);
    assert_eq!(tasks[0].work, Work::Prompt("docs/conf.py 1".into()));
    assert_eq!(tasks[4].work, Work::Prompt("src dir/a b.py 5".into()));
    assert_eq!(tasks[4].paths, ["src dir/a b.py"]);
    let origin = tasks[0].origin.as_ref().unwrap();
    assert_eq!(origin.file.as_deref(), Some("docs/conf.py"));
    assert!(origin.rule_uri.as_ref().unwrap().contains("ruff/rules"));
    assert!(origin.rule_text.is_some());
    // The same project in another place has the same tasks.
    let other = Disk::new();
    let log = RUFF.replace("/home/me/project", &other.path("top"));
    let again = tasks_of(text, &given(&other, "r", log)).unwrap();
    assert_eq!(again[0].key, tasks[0].key);
}

#[test]
fn findings_outside_are_refused_by_item_or_left_out() {
    let disk = Disk::new();
    let text = "foreach:\n  - id: lint\n    sarif: r\n    task: {prompt: '{{path}}'}\n";
    let log = RUFF.replace("/home/me/project/docs", &disk.path("top/docs"));
    let error = tasks_of(text, &given(&disk, "r", log.clone())).unwrap_err();
    assert_eq!(error.kind(), "outside");
    let said = error.to_string();
    let expected = "plan.yaml:3: foreach \"lint\": 2 of 5 items cannot be used: F401: \
                    \"file:///home/me/project/src%20dir/a%20b.py\" is outside of the repository";
    assert!(said.starts_with(expected), "{said}");
    let text = text.replace("    task", "    outside: skip\n    task");
    let file = PlanFile::read("plan.yaml", &text).unwrap();
    let expanded = expand(&file, &given(&disk, "r", log), &basis()).unwrap();
    assert_eq!(expanded.tasks.len(), 3);
    assert!(expanded.notes[0].contains("2 of 5 items were left out"));
}

#[test]
fn bases_of_uris_are_followed() {
    let disk = Disk::new();
    let location = |location: serde_json::Value| {
        let result = serde_json::json!({"ruleId": "R", "message": {"text": "m"},
            "locations": [{"physicalLocation": {"artifactLocation": location}}]});
        let log = serde_json::json!({"version": "2.1.0", "runs": [{
            "tool": {"driver": {"name": "t"}},
            "originalUriBaseIds": {
                "TOP": {"uri": format!("file://{}/", disk.path("top"))},
                "DOCS": {"uri": "docs/", "uriBaseId": "TOP"},
                "ELSEWHERE": {"uri": "file:///home/runner/work/"},
                "LOOP": {"uri": "x/", "uriBaseId": "LOOP"},
            },
            "artifacts": [{"location": {"uri": "conf.py", "uriBaseId": "DOCS"}}],
            "results": [result],
        }]});
        let text = "foreach: [{sarif: r, task: {prompt: 'at {{path}}'}}]";
        tasks_of(text, &given(&disk, "r", log.to_string())).map(|tasks| tasks[0].work.clone())
    };
    let at = |path: &str| Work::Prompt(format!("at {path}"));
    for (place, path) in [
        (
            serde_json::json!({"uri": "docs/conf.py", "uriBaseId": "TOP"}),
            "docs/conf.py",
        ),
        (
            serde_json::json!({"uri": "conf.py", "uriBaseId": "DOCS"}),
            "docs/conf.py",
        ),
        (serde_json::json!({"index": 0}), "docs/conf.py"),
        // A base that the log leaves open is the top of the repository.
        (
            serde_json::json!({"uri": "docs/conf.py", "uriBaseId": "%SRCROOT%"}),
            "docs/conf.py",
        ),
        // The log is from another machine, the file is here.
        (
            serde_json::json!({"uri": "docs/conf.py", "uriBaseId": "ELSEWHERE"}),
            "docs/conf.py",
        ),
    ] {
        assert_eq!(location(place.clone()).unwrap(), at(path), "{place}");
    }
    assert!(location(serde_json::json!({"uri": "gone.py", "uriBaseId": "ELSEWHERE"})).is_err());
    assert!(location(serde_json::json!({"uri": "../x", "uriBaseId": "TOP"})).is_err());
    location(serde_json::json!({"uri": "a", "uriBaseId": "LOOP"})).unwrap();
}

#[test]
fn tests_lines_and_json_lines_stay_inside() {
    let disk = Disk::new();
    let top = disk.path("top");
    let report = format!(
        "<testsuite name='s'><testcase name='a' classname='m' file='{top}/docs/conf.py'>\
         <failure message='{top}/docs/conf.py:3: no'>in {top}/docs/conf.py\nat x{top}/y</failure>\
         </testcase></testsuite>"
    );
    let text = "foreach: [{junit: r, task: {prompt: '{{file}}|{{message}}|{{text}}'}}]";
    let tasks = tasks_of(text, &given(&disk, "r", report.clone())).unwrap();
    let said = format!("docs/conf.py|docs/conf.py:3: no|in docs/conf.py\nat x{top}/y");
    assert_eq!(tasks[0].work, Work::Prompt(said));
    let bad = report.replace(&format!("file='{top}"), "file='/elsewhere");
    assert_eq!(
        tasks_of(text, &given(&disk, "r", bad)).unwrap_err().kind(),
        "outside"
    );

    let lines = format!("{top}/docs/conf.py\n{top}/docs/conf.py:3: no\n/api/users\n");
    let text = "foreach: [{lines: l, task: {prompt: '{{line}}'}}]";
    let tasks = tasks_of(text, &given(&disk, "l", lines.clone())).unwrap();
    let subjects: Vec<&str> = tasks.iter().map(|task| task.subject.as_str()).collect();
    assert_eq!(
        subjects,
        ["docs/conf.py", "docs/conf.py:3: no", "/api/users"]
    );
    // As a path of the task a line must be one.
    let text = "foreach: [{lines: l, task: {prompt: '{{line}}', paths: '{{line}}'}}]";
    let error = tasks_of(text, &given(&disk, "l", lines))
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("1 of 3 items") && error.contains("/api/users"),
        "{error}"
    );

    let lines = format!("{{\"path\":\"{top}/docs/conf.py\",\"why\":\"see {top}/docs/x\"}}\n");
    let text = "foreach: [{jsonl: l, task: {prompt: '{{path}} {{json}}'}}]";
    let tasks = tasks_of(text, &given(&disk, "l", lines)).unwrap();
    let said = "docs/conf.py {\"path\":\"docs/conf.py\",\"why\":\"see docs/x\"}";
    assert_eq!(tasks[0].work, Work::Prompt(said.into()));
    let lines = "{\"file\":\"../x\"}\n".to_owned();
    let text = "foreach: [{jsonl: l, task: {prompt: x}}]";
    assert_eq!(
        tasks_of(text, &given(&disk, "l", lines))
            .unwrap_err()
            .kind(),
        "outside"
    );
    let (why, _) = wrong("tasks:\n  - id: a\n    run: x\n    paths:\n      - /etc/passwd\n");
    assert!(
        why.starts_with("plan.yaml:4: task \"a\" cannot change"),
        "{why}"
    );
}

#[test]
fn pytest_counts_lines_from_0() {
    let disk = Disk::new();
    let text = "foreach: [{junit: r, task: {prompt: '{{file}}:{{line}}'}}]";
    let tasks = tasks_of(text, &given(&disk, "r", PYTEST.to_owned())).unwrap();
    assert_eq!(tasks[0].work, Work::Prompt("t/test_x.py:4".into()));
    assert_eq!(tasks[1].origin.as_ref().unwrap().line, Some(8));
}
