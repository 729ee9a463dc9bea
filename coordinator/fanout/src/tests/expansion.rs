//! Keys, shards, levels: properties of every plan.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;

/// Tasks `t0`, `t1`, … of which each waits for some of those before it.
fn plan(edges: &[Vec<usize>]) -> String {
    let line = |(n, on): (usize, &Vec<usize>)| {
        let on: Vec<String> = on
            .iter()
            .filter(|on| **on < n)
            .map(|on| format!("t{on}"))
            .collect();
        format!(
            "  - {{id: t{n}, run: echo {n}, dependsOn: [{}]}}\n",
            on.join(", ")
        )
    };
    let lines: String = edges.iter().enumerate().map(line).collect();
    format!("tasks:\n{lines}")
}

fn some_edges() -> impl Strategy<Value = Vec<Vec<usize>>> {
    proptest::collection::vec(proptest::collection::vec(0usize..40, 0..3), 1..40)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn every_task_is_in_exactly_one_shard(edges in some_edges(), count in 1u32..9) {
        let all = tasks(&plan(&edges));
        let mut seen = BTreeSet::new();
        for index in 1..=count {
            let part = Shard { index, count }.select(all.clone(), &Timings::default()).tasks;
            let ids: BTreeSet<String> = part.iter().map(|task| task.id.clone()).collect();
            for task in &part {
                prop_assert!(seen.insert(task.id.clone()), "{} is in two shards", task.id);
                prop_assert!(task.depends_on.iter().all(|on| ids.contains(on)), "a chain is broken");
            }
        }
        prop_assert_eq!(seen.len(), all.len());
    }

    #[test]
    fn the_order_of_a_plan_changes_nothing(edges in some_edges(), seed in any::<u64>()) {
        let text = plan(&edges);
        let mut lines: Vec<&str> = text.lines().skip(1).collect();
        let mut state = seed | 1;
        for at in (1..lines.len()).rev() {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            lines.swap(at, usize::try_from(state >> 33).unwrap() % (at + 1));
        }
        let mixed = format!("tasks:\n{}\n", lines.join("\n"));
        let keys = |tasks: Vec<PlannedTask>| -> BTreeSet<(String, String)> {
            tasks.into_iter().map(|task| (task.id, task.key)).collect()
        };
        prop_assert_eq!(keys(tasks(&text)), keys(tasks(&mixed)));
        let shard = Shard { index: 1, count: 3 };
        let part = |text: &str| keys(shard.select(tasks(text), &Timings::default()).tasks);
        prop_assert_eq!(part(&text), part(&mixed));
    }

    #[test]
    fn levels_and_order_keep_dependencies(edges in some_edges()) {
        let all = tasks(&plan(&edges));
        let graph = Graph::new(all.iter().map(|task| (task.id.as_str(), &task.depends_on[..])));
        let order = graph.order();
        prop_assert_eq!(order.len(), all.len());
        let place = |task: usize| order.iter().position(|one| *one == task).unwrap();
        let levels = graph.levels();
        let level = |task: usize| levels.iter().position(|level| level.contains(&task)).unwrap();
        for (task, before) in graph.before.iter().enumerate() {
            for on in before {
                prop_assert!(place(*on) < place(task));
                prop_assert!(level(*on) < level(task));
            }
        }
        prop_assert_eq!(graph.longest(|_| 1).0, levels.len() as u64);
        prop_assert!(graph.cycle().is_none());
    }
}

#[test]
fn a_key_changes_with_what_the_result_depends_on_and_nothing_else() {
    let text = "defaults: {runtime: claude}\ntasks:\n  - {id: a, prompt: x}\n  - {id: b, run: y, dependsOn: a}\n  - {id: c, run: z}\n";
    let keys = |text: &str, basis: &Basis| -> Vec<String> {
        let file = PlanFile::read("p", text).unwrap();
        let tasks = expand(&file, &Given::default(), basis).unwrap().tasks;
        tasks.into_iter().map(|task| task.key).collect()
    };
    let first = keys(text, &basis());
    assert_eq!(first, keys(text, &basis()));
    assert!(first.iter().all(|key| key.len() == 64));
    // The task, and the tasks that build on it.
    let other = keys(&text.replace("prompt: x", "prompt: y"), &basis());
    assert_ne!(first[0], other[0]);
    assert_ne!(first[1], other[1]);
    assert_eq!(first[2], other[2]);
    for same in [
        "prompt: x, priority: 3",
        "prompt: x, retries: 3",
        "prompt: x, timeout: 1h",
        "prompt: x, budget: {usd: 1}",
    ] {
        assert_eq!(
            first,
            keys(&text.replace("prompt: x", same), &basis()),
            "{same}"
        );
    }
    for more in [
        "prompt: x, verify: t",
        "prompt: x, model: m",
        "prompt: x, agent: g",
        "prompt: x, env: {A: b}",
        "prompt: x, paths: p",
    ] {
        assert_ne!(
            first[0],
            keys(&text.replace("prompt: x", more), &basis())[0],
            "{more}"
        );
    }
    let base = Basis {
        base: "c".repeat(40),
        ..basis()
    };
    assert!(keys(text, &base).iter().zip(&first).all(|(a, b)| a != b));
    let settings = Basis {
        settings: "other".into(),
        ..basis()
    };
    // The settings of agents change their work and the work that builds on it; not a command.
    let other = keys(text, &settings);
    assert_ne!(first[0], other[0]);
    assert_ne!(first[1], other[1]);
    assert_eq!(first[2], other[2]);
}

#[test]
fn a_new_file_changes_no_other_task() {
    let text = "foreach: [{files: x, task: {run: 'cat {{path}}'}}]";
    let of = |files: &[&'static str]| {
        let given = Given {
            files: files.to_vec(),
            ..Given::default()
        };
        let tasks = tasks_of(text, &given).unwrap();
        tasks
            .into_iter()
            .map(|task| (task.id, task.key))
            .collect::<BTreeSet<_>>()
    };
    let few = of(&["a/b", "a-b"]);
    assert_eq!(few.len(), 2);
    assert!(few.is_subset(&of(&["0", "a-b", "a/b", "z"])));
}

#[test]
fn shards_are_read_as_written() {
    assert_eq!(Shard::parse("2/8"), Some(Shard { index: 2, count: 8 }));
    for bad in ["", "0/8", "9/8", "1", "1/0", "a/b", "1/8/2", "-1/8"] {
        assert_eq!(Shard::parse(bad), None, "{bad}");
    }
}

#[test]
fn shards_take_about_the_same_time_where_it_is_known() {
    let text = plan(&vec![Vec::new(); 12]);
    let all = tasks(&text);
    // One takes as long as all the others together, and one has no known duration.
    let reports = all[1..].iter().enumerate().map(|(at, task)| TaskReport {
        attempts: 1,
        duration_ms: if at == 0 { 1100 } else { 100 },
        ..TaskReport::new(task)
    });
    let report = Report::new("r", "base", (0, 1), reports.collect());
    let timings = Timings::of([&report]);
    let parts: Vec<Part> = (1..=2)
        .map(|index| Shard { index, count: 2 }.select(all.clone(), &timings))
        .collect();
    let mut sizes: Vec<usize> = parts.iter().map(|part| part.tasks.len()).collect();
    sizes.sort_unstable();
    assert_eq!(sizes, [1, 11]);
    assert_eq!(parts[0].cut, parts[1].cut, "the same way to cut");
    let plain = Shard { index: 1, count: 2 }.select(all.clone(), &Timings::default());
    assert_ne!(plain.cut, parts[0].cut, "another way to cut");
    // Nothing but tasks and times decides.
    let mut mixed = all.clone();
    mixed.reverse();
    let again = Shard { index: 1, count: 2 }.select(mixed, &timings);
    assert_eq!(again.cut, parts[0].cut);
}

#[test]
fn a_preview_counts_the_worst_case() {
    let text = "
defaults: {runtime: claude, budget: {usd: 0.5}, retries: 2, verify: no-such-tool --x}
tasks:
  - {id: a, prompt: x}
  - {id: b, prompt: x, dependsOn: a, retries: 0, budget: {tokens: 10}}
  - {id: c, run: make, dependsOn: a, verify: ''}
  - {id: d, prompt: x, budget: {}}
";
    let preview = Preview::new("base", tasks(text), &|tool| tool != "no-such-tool");
    assert_eq!(preview.levels, [vec!["a", "d"], vec!["b", "c"]]);
    assert_eq!(preview.critical_path, ["a", "b"]);
    let worst = Worst {
        attempts: 10,
        usd: 1.5,
        tokens: 10,
        unlimited: 1,
    };
    assert_eq!(preview.worst, worst);
    assert_eq!(preview.warnings.len(), 2, "{:?}", preview.warnings);
    let json = preview.to_json();
    assert_eq!(json["edges"], serde_json::json!([["a", "b"], ["a", "c"]]));
    assert_eq!(json["worstCase"]["usd"], 1.5);
}

#[test]
fn the_tool_of_a_command_is_found_where_it_is_plain() {
    for (command, found) in [
        ("cargo test -q", Some("cargo")),
        ("A=b RUST_LOG=x ./run.sh", Some("./run.sh")),
        ("test -f x", None),
        ("if true; then make; fi", None),
        ("$TOOL x", None),
        ("(cd x && make)", None),
        ("", None),
    ] {
        assert_eq!(tool(command), found, "{command}");
    }
}
