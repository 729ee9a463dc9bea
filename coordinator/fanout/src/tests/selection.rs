//! Which tasks of a plan are made and chosen.

use super::*;

/// Six findings in two files, of three rules.
fn findings() -> Given {
    let all = [
        ("R1", "a.py", 1),
        ("R2", "a.py", 2),
        ("R1", "b.py", 3),
        ("R1", "a.py", 4),
        ("R3", "b.py", 5),
        ("R2", "b.py", 6),
    ];
    let results: Vec<serde_json::Value> = all
        .iter()
        .map(|(rule, path, line)| {
            serde_json::json!({"ruleId": rule, "message": {"text": format!("bad {line}")},
            "locations": [{"physicalLocation": {"artifactLocation": {"uri": path},
                "region": {"startLine": line}}}]})
        })
        .collect();
    let log = serde_json::json!({"version": "2.1.0", "runs": [{
        "tool": {"driver": {"name": "t"}}, "results": results}]});
    Given {
        texts: BTreeMap::from([("s", log.to_string())]),
        ..Given::default()
    }
}

fn loop_with(keys: &str) -> String {
    format!(
        "foreach:\n  - sarif: s\n    {keys}\n    task:\n      subject: '{{{{rule}}}} {{{{path}}}}'\n      prompt: |\n        {{{{count}}}} in {{{{path}}}}, lines {{{{line}}}}:\n        {{{{findings}}}}\n      paths: '{{{{path}}}}'\n"
    )
}

#[test]
fn findings_of_one_file_are_one_task() {
    let tasks = tasks_of(&loop_with("groupBy: path"), &findings()).unwrap();
    assert_eq!(tasks.len(), 2);
    let said = "3 in a.py, lines 1,2,4:\na.py:1: R1 bad 1\na.py:2: R2 bad 2\na.py:4: R1 bad 4\n";
    assert_eq!(tasks[0].work, Work::Prompt(said.into()));
    assert_eq!(tasks[0].subject, "R1,R2 a.py");
    assert_eq!(tasks[0].paths, ["a.py"]);
    assert_eq!(tasks[0].findings.len(), 3);
    assert!(tasks[0].id.starts_with("a.py-"), "{}", tasks[0].id);
    // By rule, with the paths of all of them; by anything.
    let tasks = tasks_of(&loop_with("group-by: rule"), &findings()).unwrap();
    assert_eq!(tasks.len(), 3);
    assert_eq!(tasks[0].paths, ["a.py", "b.py"]);
    let tasks = tasks_of(&loop_with("groupBy: '{{rule}} in {{path}}'"), &findings());
    assert_eq!(tasks.unwrap().len(), 5);
    // Without a group the names are there as well.
    let tasks = tasks_of(&loop_with("limit: 9"), &findings()).unwrap();
    let said = "1 in a.py, lines 1:\na.py:1: R1 bad 1\n";
    assert_eq!(tasks[0].work, Work::Prompt(said.into()));
    assert!(tasks[0].findings.is_empty());
}

#[test]
fn a_group_keeps_its_id_when_one_of_its_findings_is_gone() {
    let all = findings();
    let mut fewer = findings();
    let text = fewer.texts["s"].replacen("\"R2\"", "\"R1\"", 1);
    fewer.texts.insert("s", text);
    let text = loop_with("groupBy: path");
    let (before, after) = (
        tasks_of(&text, &all).unwrap(),
        tasks_of(&text, &fewer).unwrap(),
    );
    assert_eq!(before[0].id, after[0].id);
    assert_ne!(before[0].key, after[0].key);
    assert_eq!(before[1].key, after[1].key);
}

#[test]
fn a_foreach_takes_a_part_of_its_things() {
    let of = |keys: &str| {
        let file = PlanFile::read("p", &loop_with(keys)).unwrap();
        expand(&file, &findings(), &basis())
    };
    let lines = |keys: &str| -> Vec<u64> {
        let tasks = of(keys).unwrap().tasks.into_iter();
        tasks
            .map(|task| task.origin.unwrap().line.unwrap())
            .collect()
    };
    assert_eq!(lines("limit: 2"), [1, 2]);
    assert_eq!(lines("only: 'R1-*'"), [1, 3, 4]);
    assert_eq!(lines("skip: ['R1-*', '*-5-????????']"), [2, 6]);
    let sample = lines("sample: 3");
    assert_eq!(sample.len(), 3);
    assert_eq!(sample, lines("sample: 3"));
    assert!(sample.is_sorted());
    assert_eq!(
        lines(
            "{sample: 3, limit: 2}"
                .trim_matches(['{', '}'].as_slice())
                .replace(", ", "\n    ")
                .as_str()
        ),
        sample[..2]
    );
    assert_eq!(
        of("limit: 2").unwrap().notes,
        ["foreach number 1: 2 of 6 items were chosen"]
    );
    assert_eq!(of("limit: 6").unwrap().notes, [""; 0]);
    assert_eq!(of("only: nothing").unwrap_err().kind(), "nothing_matched");
}

#[test]
fn the_command_line_chooses_tasks_with_what_they_need() {
    let text = "tasks:
  - {id: base, run: x}
  - {id: fix-a, run: x, dependsOn: base}
  - {id: fix-b, run: x}
  - {id: end, run: x, dependsOn: [fix-a, fix-b]}
";
    let chosen = |selection: Selection| -> Vec<String> {
        let (tasks, _) = selection.apply(tasks(text)).unwrap();
        tasks.into_iter().map(|task| task.id).collect()
    };
    let only = |only: &[&str], skip: &[&str]| Selection {
        only: only.iter().map(ToString::to_string).collect(),
        skip: skip.iter().map(ToString::to_string).collect(),
        ..Selection::default()
    };
    assert_eq!(chosen(Selection::default()).len(), 4);
    assert_eq!(chosen(only(&["fix-a"], &[])), ["base", "fix-a"]);
    assert_eq!(chosen(only(&["fix-*"], &["fix-a"])), ["fix-b"]);
    // Without what it needs a task cannot be done.
    assert_eq!(chosen(only(&[], &["base"])), ["fix-b"]);
    let limit = Selection {
        limit: Some(2),
        ..Selection::default()
    };
    assert_eq!(chosen(limit), ["base", "fix-a"]);
    let sample = Selection {
        sample: Some(1),
        ..Selection::default()
    };
    assert_eq!(chosen(sample.clone()), chosen(sample));
    let error = only(&["fix-c"], &[]).apply(tasks(text)).unwrap_err();
    assert_eq!(error.kind(), "nothing_matched");
    assert!(error.hint().unwrap().contains("fix-"));
    let (_, note) = only(&["fix-b"], &[]).apply(tasks(text)).unwrap();
    assert_eq!(note.unwrap(), "1 of 4 tasks of the plan were chosen");
}
