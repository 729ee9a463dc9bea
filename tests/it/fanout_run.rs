//! Plans that run: proven, landed, reported, resumed.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use harness::fake::Pids;
use harness::model::ModelServer;
use harness::runs::{LONG, await_none_left};
use harness::sample_project::{DEFECTS, all_is_well, file, project, repaired};
use harness::script::Script;
use harness::{Answer, Fan, kinds, wait_until};
use serde_json::{Value, json};

use crate::{CCB, FAKE_ACP, FAKE_AGENT};

fn kind<'r>(report: &'r Value, id: &str) -> &'r Value {
    let tasks = report["tasks"].as_array().unwrap();
    let task = tasks.iter().find(|task| task["id"] == id);
    &task.unwrap_or_else(|| panic!("no {id} in {report}"))["outcome"]
}

#[test]
fn twelve_defects_go_from_red_to_green_with_commands() {
    let fan = Fan::new(CCB);
    project(&fan);
    let tasks: Vec<Value> = DEFECTS
        .iter()
        .map(|(name, _, _, repair)| {
            json!({
                "id": name, "subject": format!("repair {name}"), "paths": [file(name)],
                "run": repaired(name, repair),
                "verify": format!("sh checks/{name}.sh"),
            })
        })
        .collect();
    fan.plan(&json!({"name": "twelve", "tasks": tasks}));
    let (code, report) = fan.run(&["--land", "merge", "--check", "sh check.sh"]);
    assert_eq!(code, Some(0), "{report}");
    assert_eq!(report["landed"]["branch"], "ccb/twelve");
    let notes = report["notes"].to_string();
    assert!(notes.contains("not committed"), "{notes}");
    all_is_well(&fan, &report);
    // Once more: nothing runs.
    fan.git(&["checkout", "-q", "main"]);
    let (code, again) = fan.run(&["--land", "merge"]);
    assert_eq!(code, Some(0), "{again}");
    assert!(
        kinds(&again).iter().all(|(_, kind)| kind == "cached"),
        "{again}"
    );
    // A result that is gone, here and in the home, is not proven.
    for path in walk(&fan.0.home.path().join("teams")) {
        if path.ends_with("proven.bundle") {
            std::fs::remove_file(path).unwrap();
        }
    }
    let refs = fan.git(&[
        "for-each-ref",
        "--format=%(refname)",
        "refs/ccb",
        "refs/heads/ccb",
    ]);
    for name in refs.lines() {
        fan.git(&["update-ref", "-d", name]);
    }
    fan.git(&["reflog", "expire", "--expire=now", "--all"]);
    fan.git(&["gc", "--quiet", "--prune=now"]);
    let (code, again) = fan.run(&[]);
    assert_eq!(code, Some(0), "{again}");
    assert!(
        kinds(&again).iter().all(|(_, kind)| kind == "proven"),
        "{again}"
    );
    let (_, again) = fan.run(&["--fresh"]);
    assert!(
        kinds(&again).iter().all(|(_, kind)| kind == "proven"),
        "{again}"
    );
}

#[test]
fn twelve_defects_go_from_red_to_green_with_agents() {
    green_with_agents(&json!({ "kind": "lines", "command": [FAKE_AGENT] }));
}

#[test]
fn twelve_defects_go_from_red_to_green_with_acp_agents() {
    green_with_agents(&json!({ "kind": "acp", "command": [FAKE_ACP, "plain"] }));
}

#[test]
fn twelve_defects_go_from_red_to_green_with_native_agents() {
    let model = ModelServer::start();
    let settings = json!({
        "agents": { "defaultProvider": "scripted" },
        "providers": {
            "scripted": { "kind": "anthropic", "baseUrl": model.url(), "model": "scripted-1" },
        },
    });
    green_with(&settings, "native", Script::to_model_prompt);
}

/// The same with agents of this runtime.
fn green_with_agents(runtime: &Value) {
    let settings = json!({ "runtimes": { "fake": runtime } });
    green_with(&settings, "fake", Script::to_prompt);
}

fn green_with(settings: &Value, runtime: &str, prompt: fn(&Script) -> String) {
    let fan = Fan::new(CCB);
    fan.0.home.settings(&settings.to_string());
    project(&fan);
    let pids = fan.0.home.path().join("pids");
    std::fs::create_dir(&pids).unwrap();
    let tasks: Vec<Value> = DEFECTS
        .iter()
        .map(|(name, _, _, repair)| {
            let script = Script::new()
                .pids(&pids)
                .run(&["sh", "-c", &repaired(name, repair)]);
            let script = script.usage(10, 5, 0.01).done("repaired");
            json!({
                "id": name, "prompt": prompt(&script), "runtime": runtime,
                "verify": format!("sh checks/{name}.sh"),
            })
        })
        .collect();
    fan.plan(&json!({"tasks": tasks}));
    let (code, report) = fan.run(&["--land", "merge", "--check", "sh check.sh"]);
    assert_eq!(code, Some(0), "{report}");
    let whole: Value = serde_json::from_str(&fan.read("report.json")).unwrap();
    assert_eq!(whole["cost"]["tokens"], 180, "{whole}");
    assert!(fan.read("transcripts/sum.jsonl").contains("repaired"));
    all_is_well(&fan, &report);
    await_none_left(&Pids::new(&pids));
}

#[test]
fn a_check_that_runs_is_told() {
    let fan = Fan::new(CCB);
    let go = fan.0.home.path().join("go");
    let check = format!("until test -e '{}'; do sleep 0.05; done", go.display());
    fan.plan(&json!({"tasks": [{"id": "a", "run": "echo 1 > a", "verify": check}]}));
    let said = fan.0.home.path().join("said");
    let mut child = fan
        .0
        .command(&["--json", "fanout", "plan.json"])
        .stdout(std::fs::File::create(&said).unwrap())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let events = || std::fs::read_to_string(&said).unwrap();
    wait_until(LONG, "the check to be told", || {
        events().contains(r#""event":"checking","task":"a""#)
    });
    std::fs::write(go, "").unwrap();
    assert!(child.wait().unwrap().success(), "{}", events());
}

#[test]
fn every_outcome_is_in_every_report() {
    let fan = Fan::new(CCB);
    fan.plan(&json!({"name": "all", "defaults": {"retries": 0}, "tasks": [
        {"id": "good", "run": "echo 1 > good; echo secret: $SHOP_TOKEN", "verify": "cat good; echo $SHOP_TOKEN"},
        {"id": "no-check", "run": "echo 1 > unchecked"},
        {"id": "idle", "run": "true", "verify": "true"},
        {"id": "bad", "run": "echo oh >&2; exit 3", "verify": "true"},
        {"id": "wrong", "run": "echo 1 > wrong", "verify": "echo not yet; exit 1"},
        {"id": "no-tool", "run": "true", "verify": "no-such-tool-anywhere"},
        {"id": "no-script", "run": "true", "verify": "./no-such-script"},
        {"id": "slow", "run": "sleep 600", "timeout": "1s"},
        {"id": "after", "run": "true", "dependsOn": ["bad"]},
        {"id": "after-that", "run": "true", "dependsOn": ["after"]},
        {"id": "tries", "run": "test $CCB_ATTEMPT = 2 && echo $CCB_LAST_FAILURE > lesson", "retries": 1, "verify": "test -s lesson"},
    ], }));
    let mut command = fan
        .0
        .command(&["--json", "fanout", "plan.json", "-j", "4", "--ci"]);
    command.env("SHOP_TOKEN", "hush-hush-0123456789");
    let answer = Answer::of(command.output().unwrap());
    assert_eq!(answer.code, Some(1), "{answer:?}");
    let lines = answer.json_lines();
    let report = &lines.last().unwrap()["report"];
    let expected = [
        ("good", "proven"),
        ("no-check", "unchecked"),
        ("idle", "no_change"),
        ("bad", "failed"),
        ("wrong", "verify_failed"),
        ("no-tool", "verify_missing"),
        ("no-script", "verify_missing"),
        ("slow", "timed_out"),
        ("after", "skipped"),
        ("after-that", "skipped"),
        ("tries", "proven"),
    ];
    let expected = expected.map(|(id, kind)| (id.to_owned(), kind.to_owned()));
    assert_eq!(kinds(report), expected, "{report:#}");
    assert_eq!(kind(report, "after")["why"]["task"], "bad");
    let (junit, md) = (fan.read("junit.xml"), fan.read("report.md"));
    let sarif: Value = serde_json::from_str(&fan.read("results.sarif")).unwrap();
    assert_eq!(sarif["version"], "2.1.0");
    for (id, kind) in expected {
        let line = format!("{id}\noutcome: {kind}\n");
        assert!(junit.contains(&line), "{id}: {junit}");
        assert!(md.contains(&id), "{id}: {md}");
        let left = sarif.to_string().contains(&id);
        assert!(
            left || matches!(&*kind, "proven" | "unchecked" | "no_change"),
            "{id}: {sarif}"
        );
    }
    // Secrets are nowhere.
    for entry in walk(&fan.out()) {
        let text = String::from_utf8_lossy(&std::fs::read(&entry).unwrap()).into_owned();
        assert!(!text.contains("hush-hush"), "{entry:?}: {text}");
    }
    assert!(fan.read("checks/wrong.log").contains("not yet"));
    // Failed tasks are tried again, proven ones are not.
    let (_, again) = fan.run(&[]);
    assert_eq!(kind(&again, "good")["kind"], "cached");
    assert_eq!(kind(&again, "bad")["kind"], "failed");
}

fn walk(dir: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => files.extend(walk(&path)),
            false => files.push(path),
        }
    }
    files
}

#[test]
fn what_does_not_go_together_is_left_out_and_the_rest_lands() {
    let fan = Fan::new(CCB);
    let make = |name: &str| json!({"id": name, "run": format!("echo 1 > {name}"), "verify": format!("test -f {name}")});
    let mut tasks: Vec<Value> = ["a", "b", "c", "d", "e", "f"].map(make).into();
    tasks.push(
        json!({"id": "after-e", "run": "echo 1 > g", "verify": "test -f g", "dependsOn": ["e"]}),
    );
    fan.plan(&json!({"name": "batch", "tasks": tasks}));
    // Both are fine alone.
    let check = "! { test -f b && test -f e; } || { echo b and e do not mix; exit 1; }";
    let (code, report) = fan.run(&["--land", "merge", "--check", check]);
    assert_eq!(code, Some(1), "{report}");
    assert_eq!(kind(&report, "e")["kind"], "verify_failed", "{report:#}");
    assert!(
        kind(&report, "e")["why"].to_string().contains("do not mix"),
        "{report}"
    );
    assert_eq!(kind(&report, "after-e")["kind"], "skipped");
    let files = fan.files("ccb/batch");
    let there = |name: &str| {
        files
            .lines()
            .any(|line| line.ends_with(&format!("\t{name}")))
    };
    let landed: Vec<&str> = ["a", "b", "c", "d", "e", "f", "g"]
        .into_iter()
        .filter(|name| there(name))
        .collect();
    assert_eq!(landed, ["a", "b", "c", "d", "f"]);
    // It is open again and has the reason: with an alternative it lands.
    let (code, report) = fan.run(&["--land", "merge"]);
    assert_eq!(code, Some(0), "{report}");
    assert_eq!(kind(&report, "a")["kind"], "cached");
    assert_eq!(kind(&report, "e")["kind"], "proven");
    assert!(fan.files("ccb/batch").contains("\te\n"));
}

#[test]
fn a_check_that_failed_before_keeps_everything_from_landing_unless_allowed() {
    let fan = Fan::new(CCB);
    fan.plan(
        &json!({"name": "part", "defaults": {"retries": 0}, "tasks": [
            {"id": "a", "run": "echo 1 > a", "verify": "test -f a"},
            {"id": "b", "run": "echo 1 > b", "verify": "test -f b"},
            {"id": "c", "run": "echo 1 > d", "verify": "test -f c"},
        ]}),
    );
    let check = "test -f a && test -f b && test -f c || { echo one is missing; exit 1; }";
    let (code, report) = fan.run(&["--land", "merge", "--check", check]);
    assert_eq!(code, Some(1), "{report}");
    let broken = report["broken"].to_string();
    for words in [
        "nothing has landed on ccb/part",
        "--allow-red-base",
        "one is missing",
    ] {
        assert!(broken.contains(words), "{broken}");
    }
    assert_eq!(fan.0.repo.git(&["branch", "--list", "ccb/part"]), "");
    let (code, report) = fan.run(&["--land", "merge", "--check", check, "--allow-red-base"]);
    assert_eq!(code, Some(1), "{report}");
    assert_eq!(kind(&report, "a")["kind"], "cached", "{report}");
    let files = fan.files("ccb/part");
    assert!(files.contains("\ta") && files.contains("\tb"), "{files}");
    assert!(
        report["broken"].to_string().contains("one is missing"),
        "{report}"
    );
}

#[test]
fn another_clone_with_the_same_home_goes_on() {
    let fan = Fan::new(CCB);
    fan.plan(&json!({"name": "far", "tasks": [
        {"id": "a", "run": "echo 1 > a", "verify": "test -f a"},
        {"id": "b", "run": "echo 1 > b", "verify": "test -f a -a -f b", "dependsOn": ["a"]},
    ]}));
    let (code, report) = fan.run(&[]);
    assert_eq!(code, Some(0), "{report}");
    // The same place, cloned anew.
    let old = fan.0.repo.beside("old");
    std::fs::rename(fan.0.repo.main(), &old).unwrap();
    let main = fan.0.repo.main().to_str().unwrap().to_owned();
    let cloned = harness::git_command(&old, &["clone", "-q", "--no-local", ".", &main]).status();
    assert!(cloned.unwrap().success());
    std::fs::copy(old.join("plan.json"), fan.0.repo.main().join("plan.json")).unwrap();
    let (code, report) = fan.run(&["--land", "merge"]);
    assert_eq!(code, Some(0), "{report}");
    assert!(
        kinds(&report).iter().all(|(_, kind)| kind == "cached"),
        "{report}"
    );
    assert!(fan.files("ccb/far").contains("\tb"));
}

#[test]
fn money_and_quota_have_codes_of_their_own_and_it_goes_on_later() {
    let fan = Fan::new(CCB);
    let more = r#""limits":{"quota":{"firstPauseMs":50,"longestPauseMs":50,"giveUpMs":300}}"#;
    fan.0.home.with_fake_runtime(FAKE_AGENT, more);
    let task = |id: &str, script: Script| json!({"id": id, "prompt": script.to_prompt(), "runtime": "fake", "retries": 0});
    let write = |name: &str| Script::new().write(name, "x").usage(1, 1, 0.6).done("done");
    fan.plan(&json!({"name": "money", "tasks": [
        task("a", write("a")), task("b", write("b")), task("c", write("c")),
    ]}));
    let args = ["fanout", "plan.json", "-j", "1", "--ci", "--budget", "1"];
    let answer = fan.0.run(&args);
    assert_eq!(answer.code, Some(6), "{answer:?}");
    let report = answer.json_lines().last().unwrap()["report"].clone();
    assert_eq!(kind(&report, "b")["kind"], "unchecked", "{report}");
    assert_eq!(kind(&report, "c")["why"]["reason"], "budget", "{report}");
    let (code, report) = fan.run(&[]);
    assert_eq!(code, Some(0), "{report}");
    assert_eq!(kind(&report, "a")["kind"], "cached");
    let refused = Script::new().then(harness::script::Do::Repeat {
        times: None,
        steps: vec![
            harness::script::Do::Result {
                status: "quota".into(),
                text: String::new(),
                error: None,
            },
            harness::script::Do::WaitMessage { echo: false },
        ],
    });
    fan.plan(&json!({"name": "quota", "tasks": [task("refused", refused), {"id": "after", "run": "true", "dependsOn": ["refused"]}]}));
    let (code, report) = fan.run(&[]);
    assert_eq!(code, Some(7), "{report}");
    assert_eq!(kind(&report, "refused")["kind"], "quota", "{report}");
}

#[test]
fn a_plan_runs_once_at_a_time_and_in_place_where_it_says_so() {
    let fan = Fan::new(CCB);
    let gate = fan.0.home.path().join("gate");
    let waits = format!(
        "while ! test -f {}; do sleep 0.05; done; echo 1 > here",
        gate.display()
    );
    fan.plan(&json!({"name": "one", "tasks": [
        {"id": "here", "run": waits, "verify": "test -f here", "isolation": "none"},
    ]}));
    let mut child = fan.start(&[]);
    let started = || fan.0.home.path().join("teams").is_dir() && running(&fan);
    wait_until(LONG, "an agent to be at work", started);
    let answer = fan.answer(&[]);
    assert_eq!(answer.code, Some(4), "{answer:?}");
    std::fs::write(&gate, "").unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert!(fan.0.repo.main().join("here").exists());
    let report: Value = serde_json::from_str(&fan.read("report.json")).unwrap();
    assert_eq!(kind(&report, "here")["kind"], "proven", "{report}");
}

#[test]
fn two_that_change_the_same_lines_conflict_and_end_with_eight() {
    let fan = Fan::new(CCB);
    fan.plan(&json!({"name": "clash", "tasks": [
        {"id": "one", "run": "echo uno > readme", "verify": "true"},
        {"id": "two", "run": "echo due > readme", "verify": "true"},
        {"id": "far", "run": "echo far > far", "verify": "true"},
    ]}));
    let (code, report) = fan.run(&["--land", "merge", "--into", "release"]);
    assert_eq!(code, Some(8), "{report}");
    assert_eq!(kind(&report, "two")["kind"], "conflict", "{report}");
    assert_eq!(kind(&report, "two")["files"], json!(["readme"]));
    assert_eq!(fan.git(&["show", "release:readme"]), "uno");
    assert_eq!(fan.git(&["show", "release:far"]), "far");
    // Nothing is lost.
    let commit = kind(&report, "two")["commit"].as_str().unwrap();
    assert_eq!(fan.git(&["show", &format!("{commit}:readme")]), "due");
}

#[test]
fn each_group_gets_a_branch() {
    let fan = Fan::new(CCB);
    fan.write("list", "x\ny\n");
    fan.plan(&json!({"name": "groups",
        "foreach": [{"id": "lines", "lines": "list", "task": {"id": "{{line}}", "run": "echo 1 > {{line}}.txt", "verify": "test -f {{line}}.txt"}}],
        "tasks": [{"id": "end", "run": "ls *.txt > all", "verify": "test $(wc -l < all) = 2", "dependsOn": ["lines"]}],
    }));
    let (code, report) = fan.run(&["--land", "branch"]);
    assert_eq!(code, Some(0), "{report}");
    let lines = fan.files("ccb/groups-lines");
    assert!(lines.contains("x.txt") && lines.contains("y.txt") && !lines.contains("\tall"));
    assert!(fan.files("ccb/groups-tasks").contains("\tall"));
}

#[test]
fn limits_stop_a_run_that_can_go_on() {
    let fan = Fan::new(CCB);
    let gate = fan.0.home.path().join("gate");
    let waits = format!(
        "while ! test -f {}; do sleep 0.05; done; echo 1 > w",
        gate.display()
    );
    fan.plan(&json!({"tasks": [
        {"id": "quick", "run": "echo 1 > q", "verify": "true"},
        {"id": "waits", "run": waits, "verify": "true"},
        {"id": "later", "run": "echo 1 > l", "dependsOn": ["waits"]},
    ]}));
    let (code, report) = fan.run(&["--deadline", "3s"]);
    assert_eq!(code, Some(6), "{report}");
    assert_eq!(kind(&report, "quick")["kind"], "proven", "{report}");
    assert_eq!(kind(&report, "waits")["kind"], "budget", "{report}");
    assert_eq!(
        kind(&report, "later")["why"]["reason"],
        "dependency",
        "{report}"
    );
    // A signal: the report is written, the state is whole.
    let mut child = fan.start(&[]);
    let started = || fan.0.home.path().join("teams").is_dir() && running(&fan);
    wait_until(LONG, "an agent to be at work", started);
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    let code = child.wait().unwrap().code();
    assert_eq!(code, Some(143));
    let report: Value = serde_json::from_str(&fan.read("report.json")).unwrap();
    assert_eq!(report["signal"], 15, "{report}");
    std::fs::write(&gate, "").unwrap();
    let (code, report) = fan.run(&[]);
    assert_eq!(code, Some(0), "{report}");
    assert_eq!(kind(&report, "quick")["kind"], "cached");
    // Too many failures, and a canary.
    let bad = |n: usize| json!({"id": format!("bad-{n}"), "run": "exit 1", "retries": 0});
    let tasks: Vec<Value> = (0..6).map(bad).collect();
    fan.plan(&json!({"name": "bad", "tasks": tasks}));
    let args = [
        "fanout",
        "plan.json",
        "-j",
        "1",
        "--ci",
        "--max-failures",
        "2",
    ];
    let answer = fan.0.run(&args);
    assert_eq!(answer.code, Some(1));
    let report = answer.json_lines().last().unwrap()["report"].clone();
    let skipped = |report: &Value, why: &str| {
        let tasks = report["tasks"].as_array().unwrap();
        let those = tasks
            .iter()
            .filter(|task| task["outcome"]["why"]["reason"] == why);
        those.count()
    };
    assert_eq!(skipped(&report, "max_failures"), 4, "{report}");
    let (_, report) = fan.run(&["--canary", "1"]);
    assert_eq!(skipped(&report, "canary"), 5, "{report}");
}

fn running(fan: &Fan) -> bool {
    walk(&fan.0.home.path().join("teams")).iter().any(|path| {
        path.ends_with("meta.json")
            && std::fs::read_to_string(path).is_ok_and(|text| {
                text.contains("\"state\": \"running\"") || text.contains("\"state\":\"running\"")
            })
    })
}
