//! Files, lines, JSON lines, JUnit and SARIF as inputs.

use super::*;

fn given(name: &'static str, text: &str) -> Given {
    Given {
        texts: BTreeMap::from([(name, text.to_owned())]),
        ..Given::default()
    }
}

#[test]
fn a_task_for_every_file() {
    let given = Given {
        files: vec!["src/b c.rs", "src/a.rs", "-x", "skip"],
        ..Given::default()
    };
    let text = "
foreach:
  - id: fmt
    files: '**'
    exclude: skip
    task:
      subject: Format {{name}} in {{dir}} ({{stem}}, {{ext}})
      run: rustfmt {{path}}
      verify: rustfmt --check {{path}}
      paths: ['{{path}}']
tasks:
  - {id: end, run: 'true', dependsOn: fmt}
";
    let tasks = tasks_of(text, &given).unwrap();
    let subjects: Vec<_> = tasks.iter().map(|task| task.subject.as_str()).collect();
    assert_eq!(
        subjects,
        [
            "end",
            "Format -x in . (-x, )",
            "Format a.rs in src (a, rs)",
            "Format b c.rs in src (b c, rs)"
        ]
    );
    assert_eq!(tasks[1].work, Work::Run("rustfmt './-x'".into()));
    assert_eq!(tasks[3].work, Work::Run("rustfmt 'src/b c.rs'".into()));
    assert_eq!(
        tasks[3].verify.as_deref(),
        Some("rustfmt --check 'src/b c.rs'")
    );
    assert_eq!(tasks[3].paths, ["src/b c.rs"]);
    assert!(
        tasks[3].id.starts_with("fmt-src-b-c.rs-"),
        "{}",
        tasks[3].id
    );
    assert_eq!(tasks[0].depends_on.len(), 3);
    assert_eq!(
        tasks[3].origin.as_ref().unwrap().file.as_deref(),
        Some("src/b c.rs")
    );
}

#[test]
fn commands_in_inputs_are_only_words() {
    let given = given("-", "a; touch /tmp/x\n$(reboot)\n`reboot`\n' ; reboot '\n");
    let text = "foreach: [{lines: '-', task: {subject: s, run: 'echo {{line}}'}}]";
    let runs: Vec<_> = tasks_of(text, &given)
        .unwrap()
        .into_iter()
        .map(|task| task.work)
        .collect();
    let expected = [
        "echo 'a; touch /tmp/x'",
        "echo '$(reboot)'",
        "echo '`reboot`'",
        r"echo ''\'' ; reboot '\'''",
    ];
    assert_eq!(runs, expected.map(|run| Work::Run(run.into())));
}

#[test]
fn templates_that_cannot_be_filled_are_refused() {
    let given = given("-", "x\n");
    for (task, words) in [
        ("{run: 'echo {{lime}}'}", "there is no {{lime}} here"),
        ("{run: 'echo \"{{line}}\"'}", "inside quotes"),
        ("{run: 'echo {{line'}", "has no \"}}\""),
        ("{prompt: x, id: 'a/{{line}}'}", "not a valid task name"),
    ] {
        let text = format!("foreach: [{{lines: '-', task: {task}}}]");
        let error = tasks_of(&text, &given).unwrap_err().to_string();
        assert!(error.contains(words), "{task}: {error}");
    }
}

#[test]
fn nothing_found_is_an_error_unless_allowed() {
    let text = "foreach: [{files: 'x/**', task: {run: y}}]";
    let error = tasks_of(text, &Given::default()).unwrap_err();
    assert_eq!(error.kind(), "nothing_matched");
    assert!(error.to_string().contains("x/**"));
    let basis = Basis {
        allow_empty: true,
        ..basis()
    };
    let file = PlanFile::read("p", text).unwrap();
    assert_eq!(expand(&file, &Given::default(), &basis).unwrap().tasks, []);
}

#[test]
fn a_foreach_is_over_one_thing() {
    for (text, words) in [
        ("foreach: [{task: {run: x}}]", "exactly one"),
        (
            "foreach: [{lines: a, junit: b, task: {run: x}}]",
            "exactly one",
        ),
        (
            "foreach: [{lines: a, exclude: b, task: {run: x}}]",
            "goes with `files`",
        ),
        (
            "foreach: [{lines: '-', task: {run: x}}, {sarif: '-', task: {run: x}}]",
            "one foreach only",
        ),
    ] {
        let mut given = given("-", "x\n");
        given.texts.insert("a", "x".into());
        let error = tasks_of(text, &given).unwrap_err().to_string();
        assert!(error.contains(words), "{text}: {error}");
    }
}

#[test]
fn json_lines() {
    let lines = "{\"id\":\"one\",\"at\":{\"line\":3},\"tags\":[1,2],\"none\":null}\n\n{\"id\":\"two\",\"at\":{\"line\":4},\"tags\":[],\"none\":\"\"}\n";
    let text =
        "foreach: [{jsonl: items, task: {id: '{{id}}', prompt: 'L{{at.line}} {{tags}}{{none}}'}}]";
    let tasks = tasks_of(text, &given("items", lines)).unwrap();
    assert_eq!(tasks[0].id, "one");
    assert_eq!(tasks[0].work, Work::Prompt("L3 [1,2]".into()));
    assert_eq!(tasks[1].subject, "two");
    for (bad, place) in [
        ("{}\nnope\n", "items:2"),
        ("[1]\n", "items:1"),
        ("\u{7}", "items:1"),
    ] {
        let error = tasks_of(text, &given("items", bad));
        let error = error.unwrap_err().to_string();
        assert!(
            error.contains(place) || error.contains("there is no"),
            "{bad:?}: {error}"
        );
    }
}

const JUNIT: &str = r#"<?xml version="1.0"?>
<testsuites><testsuite name="s" file="tests/s.py">
 <testcase name="ok" classname="m"/>
 <testcase name="bad &lt;1&gt;" classname="m" line="7"><failure message="no &amp; no">trace
 more</failure></testcase>
 <testcase name="worse" classname="m" file="src/x.py"><error>boom
at 3</error></testcase>
 <testcase name="later" classname="m"><skipped/></testcase>
</testsuite></testsuites>"#;

#[test]
fn a_task_for_every_failing_test() {
    let text = "foreach: [{junit: r.xml, task: {subject: '{{test}}', prompt: '{{kind}} {{message}} {{suite}} {{file}}', run: null}}]";
    let text = text.replace(", run: null", "");
    let tasks = tasks_of(&text, &given("r.xml", JUNIT)).unwrap();
    assert_eq!(tasks.len(), 2);
    assert_eq!(tasks[0].subject, "m::bad <1>");
    assert_eq!(
        tasks[0].work,
        Work::Prompt("failure no & no s tests/s.py".into())
    );
    assert_eq!(tasks[1].work, Work::Prompt("error boom s src/x.py".into()));
    let origin = tasks[0].origin.as_ref().unwrap();
    assert_eq!(
        (origin.line, origin.file.as_deref()),
        (Some(7), Some("tests/s.py"))
    );
    for bad in [
        "",
        "<html/>",
        "<testsuite>",
        "<!DOCTYPE a [<!ENTITY b 'c'>]><testsuite/>",
    ] {
        let error = tasks_of(&text, &given("r.xml", bad)).unwrap_err();
        assert!(
            error.to_string().contains("not a JUnit report"),
            "{bad:?}: {error}"
        );
    }
}

#[test]
fn a_task_for_every_finding() {
    let log = serde_json::json!({"version": "2.1.0", "runs": [{
    "tool": {"driver": {"name": "lint", "rules": [
        {"id": "R1", "defaultConfiguration": {"level": "error"}, "shortDescription": {"text": "short"}}]}},
    "results": [
        {"ruleId": "R1", "ruleIndex": 0, "message": {"text": "m"}, "locations": [{"physicalLocation":
            {"artifactLocation": {"uri": "src/a%20b.rs"}, "region": {"startLine": 4, "startColumn": 2}}}]},
        {"ruleId": "R2", "level": "note", "message": {"text": "n"}},
        {"ruleId": "R3", "message": {"text": "gone"}, "suppressions": [{"kind": "inSource"}]},
        {"ruleId": "R4", "kind": "pass", "message": {"text": "fine"}},
        {"ruleId": "R5", "baselineState": "absent", "message": {"text": "fixed"}},
    ]}]});
    let text = "foreach: [{sarif: log, task: {prompt: '{{rule}} {{level}} {{path}}:{{line}}:{{column}} {{message}} {{tool}}'}}]";
    let tasks = tasks_of(text, &given("log", &log.to_string())).unwrap();
    let works: Vec<_> = tasks.iter().map(|task| task.work.clone()).collect();
    let expected = ["R1 error src/a b.rs:4:2 m lint", "R2 note :: n lint"];
    assert_eq!(works, expected.map(|text| Work::Prompt(text.into())));
    assert_eq!(tasks[0].origin.as_ref().unwrap().column, Some(2));
    for bad in [
        "",
        "{}",
        "{\"runs\":[]}",
        "{\"version\":\"1.0\",\"runs\":[]}",
    ] {
        let error = tasks_of(text, &given("log", bad)).unwrap_err().to_string();
        assert!(error.contains("SARIF"), "{bad:?}: {error}");
    }
}

#[test]
fn the_same_line_twice_is_two_tasks() {
    let text = "foreach: [{lines: l, task: {run: 'echo {{line}}'}}]";
    let tasks = tasks_of(text, &given("l", "a\nb\na\n")).unwrap();
    assert_eq!(tasks.len(), 3);
    assert_eq!(tasks[2].id, format!("{}-2", tasks[0].id));
}
