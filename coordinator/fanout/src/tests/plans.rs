//! The keys of a plan, and the messages for mistakes.

use std::time::Duration;

use super::*;

#[test]
fn everything_a_plan_can_say_is_read() {
    let text = r#"
$schema: https://example.org/plan.json
v: 1
name: all of it
defaults:
  runtime: claude
  model: small
  agent: worker
  verify: cargo test
  retries: 2
  budget: {usd: 0.5}
  isolation: worktree
  base: main
  timeout: 10m
  env: {A: "1", B: "2"}
tasks:
  - id: one
    subject: "  do\n it "
    prompt: Do it.
    paths: src
    env: {B: "3"}
  - id: two
    run: make
    dependsOn: one
    verify: ""
    priority: 5
    retries: 0
    timeout: 90
    budget: {tokens: 1000}
    isolation: none
"#;
    let tasks = tasks(text);
    let [one, two] = &tasks[..] else {
        panic!("{tasks:?}")
    };
    assert_eq!(one.subject, "do it");
    assert_eq!(one.work, Work::Prompt("Do it.".into()));
    assert_eq!(one.runtime.as_deref(), Some("claude"));
    assert_eq!(one.model.as_deref(), Some("small"));
    assert_eq!(one.agent.as_deref(), Some("worker"));
    assert_eq!(one.verify.as_deref(), Some("cargo test"));
    assert_eq!(one.attempts, 3);
    assert_eq!(one.timeout, Some(Duration::from_secs(600)));
    assert_eq!(one.budget.usd, Some(0.5));
    assert_eq!(one.paths, ["src"]);
    assert_eq!(one.env["A"], "1");
    assert_eq!(one.env["B"], "3");
    assert_eq!(two.work, Work::Run("make".into()));
    assert_eq!(two.runtime.as_deref(), Some("shell"));
    assert_eq!(two.depends_on, ["one"]);
    assert_eq!(two.verify, None);
    assert_eq!((two.priority, two.attempts), (5, 1));
    assert_eq!(two.timeout, Some(Duration::from_secs(90)));
    assert_eq!(two.budget.tokens, Some(1000));
    assert_eq!(two.isolation, TaskIsolation::None);
}

#[test]
fn json_is_a_plan_too() {
    let text = "{\n \"tasks\": [\n  {\"id\": \"a\", \"run\": \"true\"}\n ]\n}";
    assert_eq!(tasks(text).len(), 1);
    let bad = "{\n \"tasks\": [\n  {\"id\": \"a\", \"rum\": \"true\"}\n ]\n}";
    let (why, hint) = wrong(bad);
    assert_eq!(why, "plan.yaml:3: unknown key \"rum\"");
    assert_eq!(hint, "did you mean \"run\"?");
    assert!(
        wrong("{\"tasks\": [}")
            .0
            .contains("plan.yaml:1: it is not JSON")
    );
}

#[test]
fn an_unknown_key_is_told_with_its_line_and_the_nearest() {
    for (text, line, key, near) in [
        ("task:\n  - id: a\n", 1, "task", "tasks"),
        ("tasks:\n  - id: a\n    promt: x\n", 3, "promt", "prompt"),
        (
            "tasks:\n  - id: a\n    run: x\n    depends_on: [b]\n",
            4,
            "depends_on",
            "dependsOn",
        ),
        (
            "defaults:\n  retrys: 1\ntasks: []\n",
            2,
            "retrys",
            "retries",
        ),
        ("defaults:\n  budget:\n    us: 1\n", 3, "us", "usd"),
        (
            "foreach:\n  - file: a\n    task: {run: x}\n",
            2,
            "file",
            "files",
        ),
    ] {
        let (why, hint) = wrong(text);
        assert_eq!(
            why,
            format!("plan.yaml:{line}: unknown key {key:?}"),
            "{text}"
        );
        assert_eq!(hint, format!("did you mean {near:?}?"), "{text}");
    }
    let (_, hint) = wrong("defaults:\n  budget: {zzzzzz: 1}\n");
    assert_eq!(hint, "there are: usd, tokens");
}

#[test]
fn what_is_no_plan_is_told_with_its_line() {
    for (text, place, words) in [
        ("tasks:\n  - id: a\n   run: x\n", "plan.yaml:", ""),
        ("tasks: 3\n", "plan.yaml:1", ""),
        ("v: 9\ntasks: []\n", "plan.yaml:1", "version 9"),
        (
            "tasks:\n  - id: a\n    run: x\n    timeout: soon\n",
            "plan.yaml:4",
            "90s",
        ),
        (
            "tasks:\n  - id: a\n    run: x\n    retries: -1\n",
            "plan.yaml:4",
            "",
        ),
        ("foreach:\n  - files: a\n", "plan.yaml:", "task"),
        ("tasks: []\ntasks: []\n", "plan.yaml:2", ""),
    ] {
        let (why, _) = wrong(text);
        assert!(why.starts_with(place), "{text}: {why}");
        assert!(why.contains(words), "{text}: {why}");
        assert!(!why.contains('\n'), "{why}");
    }
}

#[test]
fn plans_that_cannot_be_meant_are_refused() {
    let task = |more: &str| format!("tasks:\n  - id: a\n    run: x\n{more}");
    for (text, words) in [
        (String::new(), "no task"),
        ("tasks: []".into(), "no task"),
        (
            task("  - id: a\n    run: y\n"),
            "plan.yaml:4: the id \"a\" is there twice",
        ),
        (task("  - id: A\n    run: y\n"), "differ in case only"),
        (task("  - id: ../b\n    run: y\n"), "not a valid task name"),
        (task("  - subject: b\n    run: y\n"), "has no id"),
        (task("    prompt: y\n"), "plan.yaml:2: task \"a\" has both"),
        ("tasks:\n  - id: a\n".into(), "has neither"),
        (
            "tasks:\n  - id: a\n    run: \" \"\n".into(),
            "says nothing to do",
        ),
        (task("    runtime: claude\n"), "does not do"),
        (task("    retries: 21\n"), "at most 20"),
        (task("    budget: {usd: -1}\n"), "not an amount"),
        (task("    env: {\"A=B\": c}\n"), "environment variable"),
        (task("    dependsOn: a\n"), "a → a"),
        (
            "defaults: {runtime: shell}\ntasks: [{id: a, prompt: x}]".into(),
            "does not understand",
        ),
    ] {
        let (why, _) = wrong(&text);
        assert!(why.contains(words), "{text}: {why}");
    }
    let (why, hint) = wrong(&task("  - id: build\n    run: y\n    dependsOn: [biuld]\n"));
    assert!(
        why.starts_with("plan.yaml:6: task \"build\" depends on \"biuld\""),
        "{why}"
    );
    assert_eq!(hint, "did you mean \"build\"?");
}

/// Plans with a mistake, and the beginning of the message.
const MISTAKES: &[(&str, &str)] = &[
    (
        "tasks:\n  - id: a\n    run: x\n    dependsOn:\n      - a1\n      - nope\n  - id: a1\n    run: x\n",
        "plan.yaml:6: task \"a\" depends on \"nope\"",
    ),
    (
        "{\n\"tasks\": [\n {\"id\": \"a\",\n  \"run\": \"x\",\n  \"dependsOn\": [\n   \"nope\"]}]}",
        "plan.yaml:6: task \"a\" depends on \"nope\"",
    ),
    (
        "foreach:\n  - lines: a\n    junit: b\n    task: {run: x}\n",
        "plan.yaml:3: foreach number 1 needs exactly one of files, lines, jsonl, junit, sarif; it has lines and junit",
    ),
    (
        "foreach:\n  - id: e\n    task: {run: x}\n",
        "plan.yaml:3: foreach \"e\" needs exactly one",
    ),
    (
        "tasks:\n  - id: a\n    run: x\n    retries: 21\n",
        "plan.yaml:4: task \"a\" wants 21 retries",
    ),
    (
        "defaults:\n  timeout: 1m\n  retries: 99\ntasks:\n  - id: a\n    run: x\n",
        "plan.yaml:3: task \"a\" wants 99 retries",
    ),
    (
        "tasks:\n  - run: x\n    id: a b\n",
        "plan.yaml:3: \"a b\" is not a valid task name",
    ),
    (
        "tasks:\n  - id: a\n    subject: s\n    run: \"\"\n",
        "plan.yaml:4: task \"a\" says nothing to do: its `run` is empty",
    ),
    (
        "foreach:\n  - files: x\n    task:\n      id: fine\n      verify: v\n      run: |\n        echo {{pth}}\n",
        "plan.yaml:6: foreach, run: there is no {{pth}} here",
    ),
    (
        "foreach:\n  - files: x\n    task:\n      id: \"a/{{path}}\"\n      run: x\n",
        "plan.yaml:4: \"a/x\" is not a valid task name",
    ),
    (
        "foreach:\n  - files: [x, \"src/[a\"]\n    task: {run: x}\n",
        "plan.yaml:2: foreach number 1, files: the pattern \"src/[a\" has a \"[\" without its \"]\"",
    ),
    (
        "foreach:\n  - files: x\n    exclude:\n      - y\n      - \"*.{js,ts}\"\n    task: {run: x}\n",
        "plan.yaml:5: foreach number 1, exclude: the pattern \"*.{js,ts}\" has braces",
    ),
    (
        "foreach:\n  - files: ../x\n    task: {run: x}\n",
        "plan.yaml:2: foreach number 1, files: the pattern \"../x\" leads out",
    ),
    (
        "foreach:\n  - id: e\n    sarif: gone.sarif\n    task: {run: x}\n",
        "plan.yaml:3: foreach \"e\": gone.sarif: there is no such file",
    ),
    (
        "foreach:\n  - files: x\n    group-by: pth\n    task: {run: x}\n",
        "plan.yaml:3: foreach number 1, groupBy: there is no {{pth}} here",
    ),
    (
        "foreach:\n  - files: x\n    limit: 0\n    task: {run: x}\n",
        "plan.yaml:3: foreach number 1: `limit` must be at least 1",
    ),
    (
        "tasks:\n  - id: a\n    run: x\n    retries: many\n",
        "plan.yaml:4: there should be a whole number here",
    ),
    (
        "tasks:\n  - id: a\n    run: x\n    timeout: no time at line 3, column 4\n",
        "plan.yaml:4: invalid value: string \"no time at line 3, column 4\", expected a time",
    ),
];

/// Every mistake names the line it is on, however the plan is laid out.
#[test]
fn mistakes_name_their_lines() {
    for (text, expected) in MISTAKES {
        let given = Given {
            files: vec!["x"],
            texts: BTreeMap::from([("a", String::new()), ("b", String::new())]),
            ..Given::default()
        };
        let error = tasks_of(text, &given).unwrap_err().to_string();
        assert!(error.starts_with(expected), "{text}\n{error}");
    }
}

#[test]
fn an_unknown_runtime_or_agent_is_told_before_anything_runs() {
    let basis = Basis {
        runtimes: Some(vec!["claude".into(), "shell".into()]),
        agents: Some(vec!["worker".into()]),
        ..basis()
    };
    let wrong = |text: &str| {
        let file = PlanFile::read("plan.yaml", text).unwrap();
        let error = expand(&file, &Given::default(), &basis).unwrap_err();
        (error.to_string(), error.hint().unwrap_or_default())
    };
    let (why, hint) = wrong("defaults:\n  runtime: claud\ntasks:\n  - {id: a, prompt: x}\n");
    assert_eq!(
        why,
        "plan.yaml:2: task \"a\": there is no runtime \"claud\""
    );
    assert_eq!(hint, "did you mean \"claude\"?");
    let (why, _) = wrong("tasks:\n  - id: a\n    prompt: x\n    agent: wroker\n");
    assert_eq!(
        why,
        "plan.yaml:4: task \"a\": there is no agent of type \"wroker\""
    );
    // Commands need neither.
    let text = "defaults: {runtime: claud, agent: x}\ntasks: [{id: a, run: x}]";
    let file = PlanFile::read("plan.yaml", text).unwrap();
    expand(&file, &Given::default(), &basis).unwrap();
}

#[test]
fn a_variable_can_be_a_number() {
    for text in [
        "tasks: [{id: a, run: x, env: {N: 1, V: 3.10, B: true, S: \"s\"}}]",
        "{\"tasks\": [{\"id\": \"a\", \"run\": \"x\", \"env\": {\"N\": 1, \"V\": 3.10, \"B\": true, \"S\": \"s\"}}]}",
    ] {
        let env = &tasks(text)[0].env;
        let values: Vec<&str> = env.values().map(String::as_str).collect();
        assert_eq!(values, ["true", "1", "s", "3.10"], "{text}");
    }
    let types = &schema()["$defs"]["TaskSpec"]["properties"]["env"]["additionalProperties"]["type"];
    assert_eq!(*types, serde_json::json!(["string", "number", "boolean"]));
    let (why, _) = wrong("{\"tasks\": [{\"id\": \"a\", \"run\": \"x\", \"env\": {\"N\": [1]}}]}");
    assert!(why.contains("expected a string"), "{why}");
    assert!(wrong("{\"tasks\": [],}").0.contains("it is not JSON"));
}

#[test]
fn a_cycle_is_named() {
    let text = "tasks:
  - {id: start, run: x}
  - {id: a, run: x, dependsOn: [c, start]}
  - {id: b, run: x, dependsOn: a}
  - {id: c, run: x, dependsOn: b}
";
    let (why, _) = wrong(text);
    assert_eq!(why, "plan.yaml:3: tasks wait for each other: a → c → b → a");
}

#[test]
fn times_are_read_as_people_write_them() {
    for (text, seconds) in [
        ("90", 90),
        ("90s", 90),
        ("10m", 600),
        ("1h30m", 5400),
        ("2d", 172_800),
    ] {
        assert_eq!(
            Span::FORMAT.read(text),
            Ok(Duration::from_secs(seconds)),
            "{text}"
        );
    }
    for bad in [
        "",
        "0",
        "m",
        "1x",
        "1h30",
        "-5",
        "31d",
        "99999999999999999999h",
        "1.5h",
    ] {
        assert!(Span::FORMAT.read(bad).is_err(), "{bad}");
    }
}

#[test]
fn bombs_are_refused_at_once() {
    let mut yaml = String::from("name: &a0 x\n");
    yaml.push_str("defaults: {env: {k0: &b0 x}}\ntasks:\n");
    for n in 1..40 {
        let list = vec![format!("*t{}", n - 1); 10].join(",");
        let list = if n == 1 { "x".into() } else { list };
        yaml.push_str(&format!("- {{id: a{n}, run: x, paths: &t{n} [{list}]}}\n"));
    }
    assert!(PlanFile::read("plan.yaml", &yaml).is_err());
    let deep = format!("name: {}", "[".repeat(100_000));
    assert!(PlanFile::read("plan.yaml", &deep).is_err());
}

/// The published schema is what the types say. `UPDATE_SCHEMA=1` writes it.
#[test]
fn the_published_schema_is_true() {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/fanout.schema.json");
    let text = serde_json::to_string_pretty(&schema()).unwrap() + "\n";
    if std::env::var_os("UPDATE_SCHEMA").is_some() {
        let dir = path.parent().unwrap();
        store::atomic::replace(
            dir,
            &path,
            text.as_bytes(),
            store::atomic::Durability::Relaxed,
        )
        .unwrap();
    }
    let there = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(there, text, "run this test with UPDATE_SCHEMA=1");
    // Readers of the schema rely on this.
    assert_eq!(schema()["additionalProperties"], false);
    assert!(schema()["properties"]["tasks"].is_object());
}
