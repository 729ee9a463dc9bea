//! The commands of `docs/ci.md` work as they are written; so does the demo.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use harness::ci_runner::{CiRunner, yaml};
use harness::{TestHome, TestRepo, Workplace, git, kinds};
use serde_json::{Value, json};

use crate::CCB;

const CI: &str = include_str!("../../docs/ci.md");

/// The examples of the page in this language.
fn examples(language: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut rest = CI;
    let open = format!("```{language}\n");
    while let Some(start) = rest.find(&open) {
        let text = &rest[start + open.len()..];
        let end = text.find("```").unwrap();
        found.push(text[..end].to_owned());
        rest = &text[end..];
    }
    found
}

/// A directory with `ccb` and a stand-in for cargo.
fn programs(repo: &TestRepo, cargo: &str) -> PathBuf {
    let bin = repo.beside("bin");
    std::fs::create_dir(&bin).unwrap();
    std::os::unix::fs::symlink(CCB, bin.join("ccb")).unwrap();
    std::os::unix::fs::symlink(cargo, bin.join("cargo")).unwrap();
    bin
}

/// A repository with a plan of eight tasks, of which `broken` do not succeed, and a runner for its
/// jobs.
fn ci(broken: usize) -> (TestRepo, CiRunner) {
    let repo = TestRepo::new();
    let tasks: Vec<Value> = (0..8)
        .map(|n| {
            let exit = i32::from(n < broken);
            json!({"id": format!("t{n}"), "run": format!("echo {n} > t{n}; exit {exit}"),
                   "verify": format!("test -s t{n}"), "retries": 0})
        })
        .collect();
    repo.write("plan.yaml", &json!({"tasks": tasks}).to_string());
    repo.write("README.md", "a project\n");
    repo.write(".gitignore", ".ccb-home/\nccb-out/\nparts/\n");
    repo.git(&["add", "."]);
    repo.git(&["commit", "-qm", "a plan"]);
    let bin = programs(&repo, "/bin/true");
    let runner = CiRunner::new(repo.main(), &bin, include_str!("../../action.yml"));
    (repo, runner)
}

/// The number of tasks with each kind of end, from a report.
fn kinds_in(dir: &Path) -> BTreeMap<String, usize> {
    let text = std::fs::read_to_string(dir.join("report.json")).unwrap();
    let report: Value = serde_json::from_str(&text).unwrap();
    let mut counts = BTreeMap::new();
    for (_, kind) in kinds(&report) {
        *counts.entry(kind).or_default() += 1;
    }
    counts
}

fn counted(expected: &[(&str, usize)]) -> BTreeMap<String, usize> {
    let owned = expected.iter().map(|(kind, n)| ((*kind).to_owned(), *n));
    owned.collect()
}

#[test]
fn the_github_job_of_the_ci_page_works_and_goes_on_from_its_cache() {
    let (_repo, mut runner) = ci(0);
    let job = yaml(&examples("yaml")[0])["jobs"]["fix"].clone();
    let ended = runner.github_job(&job, &[]);
    assert!(ended.succeeded, "{ended:?}");
    let out = runner.artifact("ccb-out");
    assert_eq!(kinds_in(&out), counted(&[("proven", 8)]));
    assert!(ended.summary.contains("8 proven"), "{}", ended.summary);
    // The next job has another machine, and the cache.
    let ended = runner.github_job(&job, &[]);
    assert!(ended.succeeded, "{ended:?}");
    assert_eq!(kinds_in(&out), counted(&[("cached", 8)]));
    // The results apply to a plain clone.
    let clone = &ended.workspace;
    git(clone, &["config", "user.name", "t"]);
    git(clone, &["config", "user.email", "t@example.org"]);
    for n in 0..8 {
        let patch = out.join(format!("t{n}.patch"));
        git(clone, &["am", "-q", &patch.to_string_lossy()]);
    }
    assert_eq!(git(clone, &["show", "HEAD:t7"]), "7\n");
}

#[test]
fn a_github_job_that_fails_says_what_and_keeps_its_results() {
    let (_repo, mut runner) = ci(1);
    let job = yaml(&examples("yaml")[0])["jobs"]["fix"].clone();
    let ended = runner.github_job(&job, &[]);
    assert!(!ended.succeeded);
    assert!(ended.log.contains("::error"), "{ended:?}");
    let expected = counted(&[("failed", 1), ("proven", 7)]);
    assert_eq!(kinds_in(&runner.artifact("ccb-out")), expected);
}

#[test]
fn a_github_job_that_failed_goes_on_with_what_was_proven() {
    let (_repo, mut runner) = ci(2);
    let job = yaml(&examples("yaml")[0])["jobs"]["fix"].clone();
    for proven in ["proven", "cached"] {
        let ended = runner.github_job(&job, &[]);
        assert!(!ended.succeeded, "{ended:?}");
        let expected = counted(&[("failed", 2), (proven, 6)]);
        assert_eq!(kinds_in(&runner.artifact("ccb-out")), expected);
    }
}

/// A job with one step of our action.
fn step(with: &Value) -> Value {
    json!({"steps": [{"uses": "./.github/actions/ccb", "with": with}]})
}

#[test]
fn the_action_takes_words_as_they_are_quoted_and_runs_none_of_them() {
    let (_repo, mut runner) = ci(0);
    let job = step(
        &json!({"plan": "plan.yaml", "jobs": "2", "land": "merge", "into": "all of it",
        "check": "test -s t1 && touch \"a b\"",
        "args": "--only 't[1]' --skip \"t 2\" $(touch /tmp/never)"}),
    );
    let ended = runner.github_job(&job, &[]);
    assert!(!ended.succeeded);
    assert!(ended.log.contains("unexpected argument"), "{}", ended.log);
    let job = step(
        &json!({"plan": "plan.yaml", "land": "merge", "into": "whole",
        "check": "test -s t1 && test \"a b\" = 'a b'", "args": "--only \"t1\" --only 't2'"}),
    );
    let ended = runner.github_job(&job, &[]);
    assert!(ended.succeeded, "{ended:?}");
    assert_eq!(
        kinds_in(&runner.artifact("ccb-out")),
        counted(&[("proven", 2)])
    );
    assert_eq!(git(&ended.workspace, &["show", "whole:t2"]), "2\n");
    let ended = runner.github_job(
        &step(&json!({"plan": "plan.yaml", "args": "--only 't1"})),
        &[],
    );
    assert!(!ended.succeeded && ended.log.contains("quote"), "{ended:?}");
}

#[test]
fn the_action_lands_on_a_red_base_only_if_told() {
    let (_repo, mut runner) = ci(0);
    for (allowed, green) in [("false", false), ("true", true)] {
        let job = step(
            &json!({"plan": "plan.yaml", "land": "merge", "into": "whole",
            "check": "test -e nowhere", "allow-red-base": allowed, "args": "--only t1"}),
        );
        let ended = runner.github_job(&job, &[]);
        let landed = git(&ended.workspace, &["branch", "--list", "whole"]);
        assert_eq!(!landed.trim().is_empty(), green, "{ended:?}");
    }
}

#[test]
fn a_step_that_ran_no_plan_is_not_green() {
    let (repo, mut runner) = ci(0);
    for with in [
        json!({"plan": "--help"}),
        json!({"plan": ""}),
        json!({"plan": "plan.yaml", "args": "--help"}),
        json!({"plan": "gone.yaml"}),
    ] {
        let ended = runner.github_job(&step(&with), &[]);
        assert!(!ended.succeeded, "{with}: {ended:?}");
    }
    // The page of the job shows what is wrong with a plan.
    repo.write("plan.yaml", "tasks:\n  - id: a\n    rnu: x\n");
    repo.git(&["commit", "-qam", "a mistake"]);
    let ended = runner.github_job(&step(&json!({"plan": "plan.yaml"})), &[]);
    assert!(!ended.succeeded);
    assert!(
        ended.summary.contains("plan.yaml:3: unknown key"),
        "{}",
        ended.summary
    );
    assert!(ended.summary.contains("did you mean"), "{}", ended.summary);
    assert!(
        ended.log.contains("::error file=plan.yaml,line=3,"),
        "{}",
        ended.log
    );
}

#[test]
fn the_action_builds_ccb_once() {
    let (repo, _) = ci(0);
    // No ccb, and a cargo that installs one and counts.
    let bin = repo.beside("tools");
    std::fs::create_dir(&bin).unwrap();
    let built = repo.beside("built");
    let cargo = format!(
        "echo x >> '{}'\nfor root; do :; done\nmkdir -p \"$root/bin\"\nln -s '{CCB}' \"$root/bin/ccb\"\n",
        built.display()
    );
    program(&bin, "cargo", &cargo);
    let mut runner = CiRunner::new(repo.main(), &bin, include_str!("../../action.yml"));
    for kind in ["proven", "cached"] {
        let ended = runner.github_job(&step(&json!({"plan": "plan.yaml"})), &[]);
        assert!(ended.succeeded, "{ended:?}");
        assert_eq!(kinds_in(&runner.artifact("ccb-out")), counted(&[(kind, 8)]));
    }
    assert_eq!(
        std::fs::read_to_string(&built).unwrap(),
        "x\n",
        "built once"
    );
}

#[test]
fn a_shard_that_died_is_named_by_the_last_job() {
    let (_repo, mut runner) = ci(0);
    let jobs = yaml(&examples("yaml")[1])["jobs"].clone();
    for shard in ["1", "2", "4"] {
        let ended = runner.github_job(&jobs["part"], &[("matrix.shard", shard)]);
        assert!(ended.succeeded, "{ended:?}");
    }
    let ended = runner.github_job(&jobs["whole"], &[]);
    assert!(!ended.succeeded, "{ended:?}");
    assert!(
        ended.summary.contains("no results of shard 3/4"),
        "{}",
        ended.summary
    );
}

#[test]
fn the_shards_of_the_ci_page_are_put_together() {
    let (_repo, mut runner) = ci(0);
    let jobs = yaml(&examples("yaml")[1])["jobs"].clone();
    let mut all = 0;
    for shard in jobs["part"]["strategy"]["matrix"]["shard"]
        .as_array()
        .unwrap()
    {
        let shard = shard.to_string();
        let ended = runner.github_job(&jobs["part"], &[("matrix.shard", &shard)]);
        assert!(ended.succeeded, "{ended:?}");
        let counts = kinds_in(&runner.artifact(&format!("ccb-{shard}")));
        all += counts.values().sum::<usize>();
    }
    assert_eq!(all, 8, "each task is in one shard");
    let ended = runner.github_job(&jobs["whole"], &[]);
    assert!(ended.succeeded, "{ended:?}");
    let whole = ended.workspace.join("ccb-out");
    assert_eq!(kinds_in(&whole), counted(&[("proven", 8)]));
    assert!(whole.join("t7.patch").is_file());
}

#[test]
fn the_gitlab_job_of_the_ci_page_works_and_goes_on_from_its_cache() {
    let (_repo, mut runner) = ci(0);
    let job = yaml(&examples("yaml")[2])["fix"].clone();
    for kind in ["proven", "cached"] {
        let ended = runner.gitlab_job(&job);
        assert!(ended.succeeded, "{ended:?}");
        assert_eq!(
            kinds_in(&runner.artifact("ccb-out/")),
            counted(&[(kind, 8)])
        );
        for kind in ["junit", "codequality"] {
            let report = job["artifacts"]["reports"][kind].as_str().unwrap();
            assert!(ended.workspace.join(report).is_file(), "{kind}");
        }
    }
}

/// Runs a shell example in the repository, with these programs before all others.
fn typed(place: &Workplace, example: &str, bin: &Path) {
    let path = std::env::var("PATH").unwrap();
    let mut shell = Command::new("sh");
    let typical = place.command(&[]);
    for (name, value) in typical.get_envs() {
        match value {
            Some(value) => shell.env(name, value),
            None => shell.env_remove(name),
        };
    }
    let ended = shell
        .args(["-ec", example])
        .current_dir(place.repo.main())
        .env("CCB_HOME", place.home.path())
        .env("PATH", format!("{}:{path}", bin.display()))
        .output()
        .unwrap();
    assert!(ended.status.success(), "{example}\n{ended:?}");
}

fn program(bin: &Path, name: &str, script: &str) {
    harness::write(&bin.join(name), &format!("#!/bin/sh\n{script}"));
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(bin.join(name), mode).unwrap();
}

#[test]
fn the_findings_of_a_linter_become_a_pull_request() {
    let place = Workplace::new(CCB);
    let repo = &place.repo;
    repo.write("docs/conf.py", "import os\nimport sys\nx = 1\n");
    repo.write("src dir/a b.py", "import json\nx = 2\n");
    repo.write("tests/t.py", "x = 3\n");
    repo.write("fix-lint.yaml", &examples("yaml")[3]);
    repo.git(&["add", "."]);
    repo.git(&["commit", "-qm", "a project"]);
    let origin = repo.beside("origin.git");
    repo.git(&["clone", "-q", "--bare", ".", &origin.to_string_lossy()]);
    repo.git(&["remote", "add", "origin", &origin.to_string_lossy()]);
    // A ruff that writes its log to the given file, and removes imports.
    let bin = programs(repo, "/bin/true");
    let top = repo.main().canonicalize().unwrap();
    let log = include_str!("../fixtures/findings/ruff.sarif");
    let log = log.replace("/home/me/project", &top.to_string_lossy());
    let sarif = repo.beside("ruff.sarif");
    harness::write(&sarif, &log);
    let ruff = format!(
        "case \"$2\" in\n--output-format) cp '{}' \"$5\"; exit 1 ;;\n--fix-only) sed -i /^import/d \"$4\" ;;\n*) ! grep -q ^import \"$3\" ;;\nesac\n",
        sarif.display()
    );
    program(&bin, "ruff", &ruff);
    let asked = repo.beside("asked");
    program(
        &bin,
        "gh",
        &format!("echo \"$@\" > '{}'\n", asked.display()),
    );
    program(&bin, "python3", "test -f docs/conf.py\n");
    let before = repo.git(&["show", "HEAD:docs/conf.py"]);
    typed(&place, &examples("sh")[1], &bin);
    let pushed = |file: &str| git(&origin, &["show", &format!("lint-fixes:{file}")]);
    assert_eq!(pushed("docs/conf.py"), "x = 1\n");
    assert_eq!(pushed("src dir/a b.py"), "x = 2\n");
    let here = std::fs::read_to_string(repo.main().join("docs/conf.py")).unwrap();
    assert_eq!(here, before, "the checkout is as it was");
    let asked = std::fs::read_to_string(asked).unwrap();
    assert!(asked.contains("--body-file ccb-out/report.md"), "{asked}");
    let body = std::fs::read_to_string(repo.main().join("ccb-out/report.md")).unwrap();
    assert!(
        body.contains("3 findings of ruff in docs/conf.py"),
        "{body}"
    );
    // A linter that touches a test as well does not land.
    program(
        &bin,
        "ruff",
        &ruff.replace("sed -i", "echo x >> tests/t.py; sed -i"),
    );
    let plan = ["fanout", "fix-lint.yaml", "--ci", "--fresh"];
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    let ended = place.command(&plan).env("PATH", path).output().unwrap();
    assert_eq!(ended.status.code(), Some(1), "{ended:?}");
    let counts = kinds_in(&repo.main().join("ccb-out"));
    assert_eq!(counts, counted(&[("out_of_bounds", 2)]));
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
    let bin = programs(repo, "/bin/false");
    let examples = examples("sh");
    assert_eq!(examples.len(), 3, "{examples:?}");
    for example in [&examples[0], &examples[2]] {
        typed(&place, example, &bin);
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
    // The files it names exist.
    let ended = home.command(&["demo"]).output().unwrap();
    let said = String::from_utf8_lossy(&ended.stdout).into_owned();
    let said = said + &String::from_utf8_lossy(&ended.stderr);
    assert!(said.contains("7 defects repaired"), "{said}");
    assert!(!said.contains("/ccb-demo-"), "{said}");
}
