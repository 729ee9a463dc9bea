//! What `docs/ci.md` tells people to type works as it stands; so does the demo.

use std::process::Command;

use harness::{TestHome, Workplace};
use serde_json::json;

use crate::CCB;

const CI: &str = include_str!("../../docs/ci.md");

/// The shell examples of the page.
fn examples() -> Vec<String> {
    let mut found = Vec::new();
    let mut rest = CI;
    while let Some(start) = rest.find("```sh\n") {
        let text = &rest[start + 6..];
        let end = text.find("```").unwrap();
        found.push(text[..end].to_owned());
        rest = &text[end..];
    }
    found
}

#[test]
fn the_shell_examples_of_the_ci_page_work() {
    let place = Workplace::new(CCB);
    let repo = &place.repo;
    repo.write("junit.xml", "<testsuites><testsuite name=\"s\"><testcase name=\"adds\" classname=\"m\"><failure message=\"3 is not 4\"/></testcase></testsuite></testsuites>");
    let plan = json!({"tasks": [
        {"id": "a", "run": "echo 1 > a", "verify": "test -f a"},
        {"id": "b", "run": "echo 1 > b", "verify": "test -f b"},
    ]});
    repo.write("plan.yaml", &plan.to_string());
    let fix = json!({"foreach": [{"junit": "junit.xml", "task": {
        "subject": "{{test}}", "run": "echo {{message}} > fixed", "verify": "test -s fixed",
    }}]});
    repo.write("fix-tests.yaml", &fix.to_string());
    repo.git(&["add", "."]);
    repo.git(&["commit", "-qm", "plans"]);
    repo.git(&["config", "user.name", "t"]);
    repo.git(&["config", "user.email", "t@example.org"]);
    // Programs of the examples: ours, and one that other projects have.
    let bin = repo.beside("bin");
    std::fs::create_dir(&bin).unwrap();
    std::os::unix::fs::symlink(CCB, bin.join("ccb")).unwrap();
    std::os::unix::fs::symlink("/bin/false", bin.join("cargo")).unwrap();
    let path = std::env::var("PATH").unwrap();
    let examples = examples();
    assert_eq!(examples.len(), 2, "{examples:?}");
    for example in &examples {
        let mut shell = Command::new("sh");
        let typical = place.command(&[]);
        for (name, value) in typical.get_envs() {
            match value {
                Some(value) => shell.env(name, value),
                None => shell.env_remove(name),
            };
        }
        let ended = shell
            .args(["-c", example])
            .current_dir(repo.main())
            .env("CCB_HOME", place.home.path())
            .env("PATH", format!("{}:{path}", bin.display()))
            .output()
            .unwrap();
        assert!(ended.status.success(), "{example}\n{ended:?}");
    }
    assert_eq!(
        repo.git(&["show", "HEAD:b"]),
        "1\n",
        "the results were applied"
    );
    let results = std::fs::read_to_string(repo.main().join("ccb-out/report.md")).unwrap();
    assert!(results.contains("adds"), "{results}");
}

#[test]
fn the_demo_ends_green_also_when_it_is_killed_on_the_way() {
    let home = TestHome::new(CCB);
    for (args, kills) in [(&["demo"][..], 0), (&["demo", "--chaos"], 3)] {
        let demo = &home.ok(args)["demo"];
        assert_eq!(demo["green"], true, "{demo}");
        assert_eq!(demo["defects"], 7, "{demo}");
        assert!(demo["kills"].as_u64().unwrap() >= kills, "{demo}");
    }
    assert!(!home.list_dir().exists(), "the demo has a home of its own");
}
