//! Every outcome in every form of report, and the verdict.

use std::collections::BTreeSet;

use director::Verdict;
use roxmltree::{Document, Node};
use serde_json::Value;

use super::*;

fn text(text: &str) -> String {
    text.to_owned()
}

/// One of each.
pub(super) fn outcomes() -> Vec<Outcome> {
    let commit = "c".repeat(40);
    vec![
        Outcome::Proven {
            commit: commit.clone(),
        },
        Outcome::Cached { commit: None },
        Outcome::Unchecked {
            commit: commit.clone(),
        },
        Outcome::NoChange { proven: true },
        Outcome::Failed {
            why: text("exit <1> & \"2\" \u{1b}[31m"),
        },
        Outcome::VerifyFailed {
            why: text("exit code 1"),
        },
        Outcome::VerifyMissing {
            tool: text("cargo"),
        },
        Outcome::TimedOut { after_ms: 60_000 },
        Outcome::Budget { why: text("1 USD") },
        Outcome::Quota { why: text("429") },
        Outcome::Conflict {
            commit,
            files: vec![text("a"), text("b")],
            with: vec![text("t1")],
            places: Vec::new(),
        },
        Outcome::Skipped {
            why: Skip::Dependency { task: text("t4") },
        },
        Outcome::Skipped {
            why: Skip::MaxFailures,
        },
        Outcome::Killed {
            why: text("SIGKILL"),
        },
        Outcome::Internal { why: text("oops") },
    ]
}

fn task(n: usize, outcome: Outcome) -> TaskReport {
    TaskReport {
        id: format!("t{n}"),
        subject: format!("do | <b>{n}</b> `x` @all"),
        key: format!("{n:064}"),
        outcome,
        attempts: 1,
        duration_ms: 1500,
        cost: Cost {
            usd: 0.25,
            tokens: 10,
        },
        check: Some(CheckReport {
            command: text("cargo test"),
            exit_code: Some(1),
            flaky: None,
            duration_ms: 3,
            place: swarm::run::CheckPlace::Commit,
            tail: text("line ]]> one\n```\n\u{0}two"),
        }),
        ..TaskReport::default()
    }
}

pub(super) fn report(outcomes: Vec<Outcome>) -> Report {
    let tasks = outcomes
        .into_iter()
        .enumerate()
        .map(|(n, outcome)| task(n, outcome));
    Report::new("run <1>", &"b".repeat(40), (1_000, 62_500), tasks.collect())
}

#[test]
fn what_a_run_comes_to_follows_the_documented_order() {
    let commit = "c".repeat(40);
    let good = || Outcome::Proven {
        commit: commit.clone(),
    };
    let conflict = || Outcome::Conflict {
        commit: commit.clone(),
        files: vec![],
        with: Vec::new(),
        places: Vec::new(),
    };
    let failed = || Outcome::Failed { why: String::new() };
    let skipped = |why| Outcome::Skipped { why };
    let budget = || Outcome::Budget { why: String::new() };
    let quota = || Outcome::Quota { why: String::new() };
    let internal = || Outcome::Internal { why: String::new() };
    for (outcomes, verdict) in [
        (vec![], Verdict::Done),
        (
            vec![good(), Outcome::NoChange { proven: false }],
            Verdict::Done,
        ),
        (vec![good(), conflict()], Verdict::Conflicts),
        (vec![conflict(), failed()], Verdict::Failed),
        (vec![failed(), skipped(Skip::Deadline)], Verdict::Budget),
        (vec![budget(), failed()], Verdict::Budget),
        (vec![budget(), quota(), failed()], Verdict::Quota),
        (
            vec![skipped(Skip::Quota), skipped(Skip::Budget)],
            Verdict::Quota,
        ),
        (vec![quota(), internal()], Verdict::Internal),
        (
            vec![skipped(Skip::Dependency { task: text("x") }), conflict()],
            Verdict::Conflicts,
        ),
        (
            vec![skipped(Skip::Dependency { task: text("x") })],
            Verdict::Failed,
        ),
        (vec![skipped(Skip::Interrupted)], Verdict::Failed),
        (
            vec![Outcome::Killed { why: String::new() }],
            Verdict::Failed,
        ),
    ] {
        assert_eq!(report(outcomes.clone()).verdict, verdict, "{outcomes:?}");
    }
    let interrupted = report(vec![internal(), quota()]).interrupted(15);
    assert_eq!(interrupted.verdict, Verdict::Interrupted(15));
}

#[test]
fn reports_survive_being_written_and_read() {
    let report = report(outcomes()).interrupted(2);
    let json = serde_json::to_value(&report).unwrap();
    assert_eq!(
        json["tasks"][7]["outcome"],
        serde_json::json!({"kind": "timed_out", "afterMs": 60_000})
    );
    assert_eq!(
        json["tasks"][11]["outcome"],
        serde_json::json!({"kind": "skipped", "why": {"reason": "dependency", "task": "t4"}})
    );
    for (n, task) in report.tasks.iter().enumerate() {
        assert_eq!(json["tasks"][n]["outcome"]["kind"], task.outcome.kind());
    }
    assert_eq!(serde_json::from_value::<Report>(json).unwrap(), report);
}

/// The rules of the schema most CI systems use: which elements and attributes may be where.
fn check_junit(node: Node<'_, '_>) {
    let (children, attributes, required): (&[&str], &[&str], &[&str]) = match node.tag_name().name()
    {
        "testsuites" => (
            &["testsuite"],
            &["name", "time", "tests", "failures", "errors"],
            &[],
        ),
        "testsuite" => (
            &[
                "testsuite",
                "properties",
                "testcase",
                "system-out",
                "system-err",
            ],
            &[
                "name",
                "tests",
                "failures",
                "errors",
                "group",
                "time",
                "skipped",
                "timestamp",
                "hostname",
                "id",
                "package",
                "file",
                "log",
                "url",
            ],
            &["name", "tests", "failures", "errors"],
        ),
        "testcase" => (
            &["skipped", "error", "failure", "system-out", "system-err"],
            &["name", "time", "classname", "group"],
            &["name"],
        ),
        "properties" => (&["property"], &[], &[]),
        "property" => (&[], &["name", "value"], &["name", "value"]),
        "failure" | "error" | "skipped" => (&[], &["type", "message"], &[]),
        "system-out" | "system-err" => (&[], &[], &[]),
        other => panic!("an element that is not in the schema: {other}"),
    };
    let has_text = matches!(
        node.tag_name().name(),
        "failure" | "error" | "skipped" | "system-out" | "system-err"
    );
    for attribute in node.attributes() {
        assert!(
            attributes.contains(&attribute.name()),
            "{} in {:?}",
            attribute.name(),
            node.tag_name()
        );
        if attribute.name() == "time" {
            assert!(attribute.value().parse::<f64>().is_ok());
        }
    }
    for name in required {
        assert!(
            node.has_attribute(*name),
            "{name} is missing in {:?}",
            node.tag_name()
        );
    }
    for child in node.children() {
        if child.is_element() {
            assert!(
                children.contains(&child.tag_name().name()),
                "{:?} in {:?}",
                child.tag_name(),
                node.tag_name()
            );
            check_junit(child);
        } else {
            let blank = child.text().unwrap_or_default().trim().is_empty();
            assert!(has_text || blank, "text in {:?}", node.tag_name());
        }
    }
}

#[test]
fn junit_is_valid_and_says_it_all() {
    let report = report(outcomes());
    let xml = junit(&report);
    let document = Document::parse(&xml).unwrap();
    let root = document.root_element();
    check_junit(root);
    let suite = root.first_element_child().unwrap();
    let cases: Vec<_> = suite
        .children()
        .filter(|node| node.has_tag_name("testcase"))
        .collect();
    assert_eq!(cases.len(), report.tasks.len());
    let with = |tag: &str| {
        let has = |case: &&Node<'_, '_>| case.children().any(|node| node.has_tag_name(tag));
        cases.iter().filter(has).count().to_string()
    };
    assert_eq!(suite.attribute("tests"), Some("15"));
    assert_eq!(suite.attribute("time"), Some("61.500"));
    assert_eq!(suite.attribute("failures"), Some(with("failure").as_str()));
    assert_eq!(suite.attribute("errors"), Some(with("error").as_str()));
    assert_eq!(suite.attribute("skipped"), Some(with("skipped").as_str()));
    assert_eq!(
        (with("failure"), with("error"), with("skipped")),
        (text("4"), text("5"), text("2"))
    );
    let failure = cases[4]
        .children()
        .find(|node| node.has_tag_name("failure"))
        .unwrap();
    assert!(
        failure
            .attribute("message")
            .unwrap()
            .contains("exit <1> & \"2\"")
    );
    assert_eq!(failure.text(), Some("line ]]> one\n```\n\u{fffd}two"));
    for (case, task) in cases.iter().zip(&report.tasks) {
        let out = case
            .children()
            .find(|node| node.has_tag_name("system-out"))
            .unwrap();
        assert!(
            out.text()
                .unwrap()
                .contains(&format!("outcome: {}\n", task.outcome.kind()))
        );
    }
}

/// The rules of SARIF 2.1.0 for the parts ccb uses.
fn check_sarif(log: &Value) {
    let only = |value: &Value, keys: &[&str]| {
        for key in value.as_object().unwrap().keys() {
            assert!(keys.contains(&key.as_str()), "{key} is not in the schema");
        }
    };
    only(log, &["$schema", "version", "runs"]);
    assert_eq!(log["version"], "2.1.0");
    for run in log["runs"].as_array().unwrap() {
        only(
            run,
            &[
                "tool",
                "invocations",
                "columnKind",
                "originalUriBaseIds",
                "results",
            ],
        );
        let driver = &run["tool"]["driver"];
        only(
            driver,
            &["name", "semanticVersion", "rules", "informationUri"],
        );
        assert!(driver["name"].is_string());
        let rules = driver["rules"].as_array().unwrap();
        for rule in rules {
            let said = rule["shortDescription"]["text"].as_str().unwrap();
            assert!(!said.is_empty() && !said.contains('\n'), "{rule}");
            assert!(rule["help"]["text"].is_string());
        }
        let ids: BTreeSet<&str> = rules
            .iter()
            .map(|rule| rule["id"].as_str().unwrap())
            .collect();
        assert_eq!(ids.len(), rules.len(), "rules must be unique");
        assert!(run["invocations"][0]["executionSuccessful"].is_boolean());
        for result in run["results"].as_array().unwrap() {
            only(
                result,
                &[
                    "ruleId",
                    "ruleIndex",
                    "level",
                    "message",
                    "locations",
                    "partialFingerprints",
                    "properties",
                ],
            );
            let text = result["message"]["text"].as_str().unwrap();
            assert!(!text.is_empty() && !text.contains('\n'), "{text}");
            let index = usize::try_from(result["ruleIndex"].as_u64().unwrap()).unwrap();
            assert_eq!(rules[index]["id"], result["ruleId"]);
            assert!(
                ["none", "note", "warning", "error"].contains(&result["level"].as_str().unwrap())
            );
            for place in result["locations"].as_array().into_iter().flatten() {
                let place = &place["physicalLocation"];
                let uri = place["artifactLocation"]["uri"].as_str().unwrap();
                assert!(
                    !uri.contains([' ', '\\', '#', ':']) && !uri.starts_with('/'),
                    "{uri}"
                );
                if let Some(region) = place.get("region") {
                    assert!(region["startLine"].as_u64().unwrap() >= 1);
                }
            }
        }
    }
}

#[test]
fn sarif_is_valid_and_has_what_is_left() {
    let mut report = report(outcomes());
    report.tasks[4].origin = Some(Origin {
        file: Some(text("src/a b#.rs")),
        line: Some(3),
        column: Some(2),
        rule: Some(text("R1")),
        level: Some(text("warning")),
        message: Some(format!("too long\n{}", "x".repeat(1000))),
        rule_text: Some(text("Lines are short")),
        rule_uri: Some(text("https://example.org/R1")),
        ..Origin::default()
    });
    report.tasks[5].paths = vec![text("src/x.rs")];
    report.tasks[6].paths = vec![text("src/*.rs")];
    let log = sarif(&report);
    check_sarif(&log);
    let results = log["runs"][0]["results"].as_array().unwrap();
    assert_eq!(results.len(), 11);
    assert_eq!(results[0]["ruleId"], "R1");
    let said = results[0]["message"]["text"].as_str().unwrap();
    assert!(said.starts_with("too long (t4: "), "{said}");
    let rules = log["runs"][0]["tool"]["driver"]["rules"]
        .as_array()
        .unwrap();
    let one = rules.iter().find(|rule| rule["id"] == "R1").unwrap();
    assert_eq!(one["shortDescription"]["text"], "Lines are short");
    assert_eq!(one["helpUri"], "https://example.org/R1");
    let place = &results[0]["locations"][0]["physicalLocation"];
    assert_eq!(place["artifactLocation"]["uri"], "src/a%20b%23.rs");
    assert_eq!(
        place["region"],
        serde_json::json!({"startLine": 3, "startColumn": 2})
    );
    assert_eq!(results[1]["ruleId"], "ccb/verify_failed");
    assert!(results[1]["locations"].is_array());
    assert!(results[2].get("locations").is_none());
    check_sarif(&sarif(&super::reports::report(vec![])));
}

/// A task of several findings has a place for each of them.
#[test]
fn every_finding_of_a_group_is_in_the_logs() {
    let mut report = report(outcomes());
    let finding = |line: u64| Origin {
        file: Some(text("a.py")),
        line: Some(line),
        rule: Some(text("R1")),
        level: Some(text("warning")),
        message: Some(text("bad")),
        ..Origin::default()
    };
    report.tasks[4].findings = vec![finding(3), finding(0)];
    let log = sarif(&report);
    check_sarif(&log);
    let results = log["runs"][0]["results"].as_array().unwrap();
    assert_eq!(results.len(), 12);
    assert_ne!(
        results[0]["partialFingerprints"],
        results[1]["partialFingerprints"]
    );
    let quality = code_quality(&report);
    let quality = quality.as_array().unwrap();
    assert_eq!(quality.len(), 12);
    assert_eq!(
        quality[0]["location"],
        serde_json::json!({"path": "a.py", "lines": {"begin": 3}})
    );
    assert_eq!(quality[0]["severity"], "minor");
    assert_eq!(quality[1]["location"]["lines"]["begin"], 1);
    let prints: BTreeSet<&str> = quality
        .iter()
        .map(|entry| entry["fingerprint"].as_str().unwrap())
        .collect();
    assert_eq!(prints.len(), 12);
    for entry in quality {
        for key in ["description", "check_name", "severity"] {
            assert!(entry[key].is_string(), "{entry}");
        }
    }
}

#[test]
fn a_flaky_check_is_told_in_every_report() {
    let mut report = report(outcomes());
    let check = report.tasks[0].check.as_mut().unwrap();
    check.flaky = Some(text("exit code 1"));
    assert!(report.tasks[0].words().ends_with("flaky"));
    let page = markdown(&report);
    assert!(page.contains("| ⚠️ | **t0**"), "{page}");
    assert!(junit(&report).contains("flaky: exit code 1"));
    assert!(!report.tasks[5].is_flaky());
}

#[test]
fn names_of_files_are_as_they_are_in_code_spans() {
    let mut report = report(outcomes());
    let files = &mut report.tasks[0].files;
    files.insert(text("patch"), text("fix_a_b.patch"));
    let page = markdown(&report);
    assert!(page.contains("| `fix_a_b.patch` |"), "{page}");
}

/// A missing part is a failure with its name.
#[test]
fn a_missing_shard_is_a_failure() {
    let part = |shard: &str, cut: &str| {
        let commit = "c".repeat(40);
        let mut part = report(vec![Outcome::Proven { commit }]);
        let n = Shard::parse(shard).unwrap().index;
        part.tasks[0].id = format!("t{n}");
        part.shard = Some(shard.to_owned());
        part.cut = Some(cut.to_owned());
        part
    };
    let whole = Report::merge(vec![part("1/3", "x"), part("3/3", "x")]).unwrap();
    assert_eq!(whole.verdict, Verdict::Failed);
    assert_eq!(whole.missing_shards, ["2/3"]);
    assert_eq!(whole.broken.as_deref(), Some("no results of shard 2/3"));
    assert!(markdown(&whole).contains("no results of shard 2/3"));
    // It is complete with the rest.
    let whole = Report::merge(vec![whole, part("2/3", "x")]).unwrap();
    assert_eq!((whole.verdict, whole.broken), (Verdict::Done, None));
    assert_eq!(whole.tasks.len(), 3);
    let error = Report::merge(vec![part("1/2", "x"), part("2/3", "x")]).unwrap_err();
    assert!(
        error.to_string().contains("of 2 and of 3 shards"),
        "{error}"
    );
    let error = Report::merge(vec![part("1/2", "x"), part("2/2", "y")]).unwrap_err();
    assert!(error.to_string().contains("cut in another way"), "{error}");
}

#[test]
fn markdown_shows_every_task_and_nothing_of_it_is_markup() {
    let mut report = report(outcomes());
    report.tasks[5].depends_on = vec![text("t0")];
    let page = markdown(&report);
    for task in &report.tasks {
        assert!(page.contains(&format!("**{}**", task.id)), "{}", task.id);
    }
    assert!(!page.contains("<b>"), "{page}");
    assert!(!page.contains("@all"), "{page}");
    assert!(
        page.contains("````text"),
        "a fence must be longer than those in the text"
    );
    assert!(page.contains("t0 --> t5"));
    let rows = page.lines().filter(|line| line.starts_with("| "));
    for row in rows {
        let bars = row.replace("\\|", "").matches('|').count();
        assert_eq!(bars, 9, "{row}");
    }
    assert_eq!(time(61_500), "1m01s");
    assert_eq!(time(999), "999 ms");
    assert_eq!(time(3_660_000), "1h01m");
}

#[test]
fn parts_are_merged() {
    let commit = "c".repeat(40);
    let part = |ids: &[(usize, Outcome)]| {
        let tasks = ids
            .iter()
            .map(|(n, outcome)| task(*n, outcome.clone()))
            .collect();
        Report::new("run", "base", (5_000, 9_000), tasks)
    };
    let good = Outcome::Proven { commit };
    let bad = Outcome::Failed { why: text("x") };
    let one = part(&[(0, good.clone()), (1, bad.clone())]);
    let mut two = part(&[
        (1, good.clone()),
        (2, Outcome::Skipped { why: Skip::Canary }),
    ]);
    two.started_at = store::clock::rfc3339(1_000);
    for parts in [
        vec![one.clone(), two.clone()],
        vec![two.clone(), one.clone()],
    ] {
        let whole = Report::merge(parts).unwrap();
        assert_eq!(whole.tasks.len(), 3);
        let found = whole.tasks.iter().find(|task| task.id == "t1").unwrap();
        assert_eq!(found.outcome, good);
        assert_eq!(whole.duration_ms(), 8_000);
        assert_eq!(whole.verdict, Verdict::Failed);
    }
    let mut other = two.clone();
    other.base = text("else");
    assert!(Report::merge(vec![one.clone(), other]).is_err());
    let mut other = two;
    other.tasks[0].key = text("else");
    assert!(Report::merge(vec![one, other]).is_err());
    assert!(Report::merge(vec![]).is_err());
}
