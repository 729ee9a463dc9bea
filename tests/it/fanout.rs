//! Plans, their previews and their results, as a user meets them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use fanout::{Outcome, Report, Results, TaskReport};
use harness::{Answer, Workplace};
use serde_json::Value;
use swarm::redact::Secrets;

use crate::CCB;

struct Place(Workplace);

impl Place {
    fn new() -> Self {
        Self(Workplace::new(CCB))
    }

    fn ccb(&self, args: &[&str]) -> Answer {
        Answer::of(self.0.command(args).output().unwrap())
    }

    /// The same with JSON out.
    fn json(&self, args: &[&str]) -> (Option<i32>, Value) {
        let answer = self.0.run(args);
        (answer.code, answer.json())
    }

    fn plan(&self, text: &str) {
        self.0.repo.write("plan.yaml", text);
    }

    /// Results of one task that changed `readme`.
    fn results(&self, id: &str, text: &str, outcome: impl FnOnce(String) -> Outcome) -> PathBuf {
        let repo = &self.0.repo;
        let base = repo.git(&["rev-parse", "HEAD"]).trim().to_owned();
        repo.write("readme", text);
        repo.git(&["commit", "-qam", "change"]);
        let commit = repo.git(&["rev-parse", "HEAD"]).trim().to_owned();
        repo.git(&["reset", "-q", "--hard", &base]);
        let dir = repo.beside(id);
        let secrets = Arc::new(Secrets::new([""; 0]));
        let results = Results::create(&dir, &base, secrets).unwrap();
        let patch = results
            .keep_patch(
                id,
                &worktrees::patch::format(repo.main(), &base, &commit).unwrap(),
            )
            .unwrap();
        let task = TaskReport {
            id: id.into(),
            key: id.into(),
            outcome: outcome(commit),
            files: BTreeMap::from([("patch".into(), patch.file)]),
            ..TaskReport::default()
        };
        results
            .finish(&Report::new("r", &base, (0, 1), vec![task]), None)
            .unwrap();
        dir
    }
}

fn proven(commit: String) -> Outcome {
    Outcome::Proven { commit }
}

#[test]
fn a_dry_run_shows_tasks_graph_levels_and_cost() {
    let place = Place::new();
    place.plan(
        "defaults: {runtime: claude, budget: {usd: 1.5}, retries: 1, verify: no-such-tool-anywhere}
foreach:
  - {id: each, files: ['*', 'src/**'], exclude: '.git*', task: {prompt: 'look at {{path}}'}}
tasks:
  - {id: end, run: 'true', verify: '', dependsOn: each}
",
    );
    let (code, answer) = place.json(&["fanout", "plan.yaml", "--dry-run"]);
    assert_eq!(code, Some(0), "{answer}");
    let subjects: Vec<&str> = answer["tasks"]
        .as_array()
        .unwrap()
        .iter()
        .map(|task| task["subject"].as_str().unwrap())
        .collect();
    assert_eq!(subjects, ["end", "readme", "src/lib"]);
    assert_eq!(answer["levels"].as_array().unwrap().len(), 2);
    assert_eq!(answer["edges"].as_array().unwrap().len(), 2);
    assert_eq!(answer["worstCase"]["usd"], 6.0);
    assert_eq!(
        answer["base"],
        place.0.repo.git(&["rev-parse", "HEAD"]).trim()
    );
    let warnings = answer["warnings"].to_string();
    assert!(warnings.contains("no-such-tool-anywhere"), "{warnings}");
    assert!(warnings.contains("not committed"), "{warnings}");
    let text = place.ccb(&["fanout", "run", "plan.yaml", "--dry-run"]);
    assert!(
        text.stdout.contains("at worst 6 attempts, $6.00"),
        "{}",
        text.stdout
    );
    // Every task is in one of the shards.
    let mut seen = 0;
    for shard in ["1/2", "2/2"] {
        let (_, part) = place.json(&["fanout", "plan.yaml", "--dry-run", "--shard", shard]);
        seen += part["tasks"].as_array().unwrap().len();
    }
    assert_eq!(seen, 3);
}

#[test]
fn bad_plans_end_with_two_and_say_where() {
    let place = Place::new();
    for (text, kind, words) in [
        (
            "tasks:\n  - id: a\n    rnu: x\n",
            "bad_plan",
            "plan.yaml:3: unknown key \"rnu\"",
        ),
        (
            "tasks: [{id: a, run: x, dependsOn: b}, {id: b, run: x, dependsOn: a}]",
            "bad_plan",
            "a → b → a",
        ),
        ("tasks: []", "empty_plan", "no task"),
        (
            "tasks:\n  - {id: a, prompt: x, runtime: claud}\n",
            "bad_plan",
            "plan.yaml:2: task \"a\": there is no runtime \"claud\"",
        ),
        (
            "foreach: [{files: 'src/[a', task: {run: x}}]",
            "bad_plan",
            "plan.yaml:1: foreach number 1, files: the pattern \"src/[a\"",
        ),
        (
            "foreach: [{files: 'nothing/**', task: {run: x}}]",
            "nothing_matched",
            "nothing/**",
        ),
        (
            "foreach: [{junit: gone.xml, task: {run: x}}]",
            "bad_input",
            "plan.yaml:1: foreach number 1: gone.xml: there is no such file",
        ),
        (
            "defaults: {base: nowhere}\ntasks: [{id: a, run: x}]",
            "bad_base",
            "nowhere",
        ),
    ] {
        place.plan(text);
        let (code, answer) = place.json(&["fanout", "plan.yaml", "--dry-run"]);
        assert_eq!(code, Some(2), "{text}: {answer}");
        assert_eq!(answer["error"]["kind"], kind, "{answer}");
        let message = answer["error"]["message"].as_str().unwrap();
        assert!(message.contains(words), "{text}: {message}");
    }
    place.plan("tasks: [{id: a, rnu: x}]");
    let (_, answer) = place.json(&["fanout", "plan.yaml", "--dry-run"]);
    assert_eq!(answer["error"]["hint"], "did you mean \"run\"?", "{answer}");
    place.plan("foreach: [{files: 'nothing/**', task: {run: x}}]");
    let (code, answer) = place.json(&["fanout", "plan.yaml", "--dry-run", "--allow-empty"]);
    assert_eq!(
        (code, answer["tasks"].as_array().map(Vec::len)),
        (Some(0), Some(0))
    );
    for args in [
        &["fanout"][..],
        &["fanout", "gone.yaml"],
        &["fanout", "plan.yaml", "--shard", "3/2"],
        &["fanout", "plan.yaml", "--jobs", "0"],
        &["fanout", "plan.yaml", "--budget", "much"],
        &["fanout", "plan.yaml", "--deadline", "soon"],
        &["fanout", "plan.yaml", "--land", "moon"],
    ] {
        let (code, answer) = place.json(args);
        assert_eq!(code, Some(2), "{args:?}: {answer}");
    }
    let mut outside = place
        .0
        .home
        .command_without_list(&["fanout", "p.yaml", "--dry-run"]);
    harness::write(
        &place.0.home.path().join("p.yaml"),
        "tasks: [{id: a, run: x}]",
    );
    assert_eq!(Answer::of(outside.output().unwrap()).code, Some(2));
}

#[test]
fn the_example_is_a_plan_of_this_repository() {
    let place = Place::new();
    let (code, answer) = place.json(&["fanout", "init"]);
    assert_eq!(
        (code, &answer["plan"]["path"]),
        (Some(0), &Value::from("fanout.yaml"))
    );
    let (code, again) = place.json(&["fanout", "init"]);
    assert_eq!(
        (code, &again["error"]["kind"]),
        (Some(4), &Value::from("exists"))
    );
    assert_eq!(place.ccb(&["fanout", "init", "--force"]).code, Some(0));
    let (code, preview) = place.json(&["fanout", "fanout.yaml", "--dry-run"]);
    assert_eq!(code, Some(0), "{preview}");
    let tasks = preview["tasks"].as_array().unwrap();
    let ids: Vec<&str> = tasks
        .iter()
        .map(|task| task["id"].as_str().unwrap())
        .collect();
    assert_eq!(ids.len(), 3, "{ids:?}");
    // Every printed command does what the preview says, in order.
    for level in preview["levels"].as_array().unwrap() {
        for id in level.as_array().unwrap() {
            let task = tasks.iter().find(|task| task["id"] == *id).unwrap();
            for command in ["run", "verify"] {
                let command = task[command].as_str().unwrap();
                let status = std::process::Command::new("sh")
                    .args(["-c", command])
                    .current_dir(place.0.repo.main())
                    .status();
                assert!(status.unwrap().success(), "{command}");
            }
        }
    }
}

#[test]
fn the_schema_is_printed() {
    let answer = Place::new().ccb(&["fanout", "schema"]);
    let schema: Value = serde_json::from_str(&answer.stdout).unwrap();
    let published = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/fanout.schema.json");
    let published: Value = serde_json::from_slice(&std::fs::read(published).unwrap()).unwrap();
    assert_eq!(schema, published);
}

#[test]
fn patches_are_applied_or_nothing_changes() {
    let place = Place::new();
    let repo = &place.0.repo;
    let dir = place.results("one", "one\ntwo\n", proven);
    let dir = dir.to_str().unwrap();
    let error = place.0.fails(2, "no_identity", &["fanout", "apply", dir]);
    assert!(
        error["hint"].as_str().unwrap().contains("user.name"),
        "{error}"
    );
    let checked = place.0.ok(&["fanout", "apply", dir, "--check"]);
    assert_eq!(checked["apply"]["applied"], false);
    assert_eq!(
        std::fs::read_to_string(repo.main().join("readme")).unwrap(),
        "one\n"
    );
    repo.git(&["config", "user.name", "t"]);
    repo.git(&["config", "user.email", "t@example.org"]);
    repo.write("readme", "mine\n");
    place.0.fails(4, "has_changes", &["fanout", "apply", dir]);
    repo.git(&["commit", "-qam", "mine"]);
    let head = repo.git(&["rev-parse", "HEAD"]);
    let error = place.0.fails(8, "conflicts", &["fanout", "apply", dir]);
    assert!(
        error["message"].as_str().unwrap().starts_with("one.patch"),
        "{error}"
    );
    assert_eq!(repo.git(&["rev-parse", "HEAD"]), head);
    assert_eq!(repo.git(&["status", "--porcelain"]), "");
    repo.git(&["reset", "-q", "--hard", "HEAD~1"]);
    let applied = place.0.ok(&["fanout", "apply", dir]);
    assert_eq!(applied["apply"]["tasks"], serde_json::json!(["one"]));
    assert_eq!(
        std::fs::read_to_string(repo.main().join("readme")).unwrap(),
        "one\ntwo\n"
    );
    place.0.fails(4, "bad_results", &["fanout", "apply", "src"]);
}

#[test]
fn merged_reports_end_with_the_code_of_the_whole() {
    let place = Place::new();
    let good = place.results("one", "a\n", proven);
    let bad = place.results("two", "b\n", |_| Outcome::Quota { why: "429".into() });
    let conflict = place.results("three", "c\n", |commit| Outcome::Conflict {
        commit,
        files: vec![],
        with: vec![],
        places: vec![],
    });
    let all = place.0.repo.beside("all");
    let name = |path: &Path| path.to_str().unwrap().to_owned();
    let (good, bad, conflict, all) = (name(&good), name(&bad), name(&conflict), name(&all));
    for (dirs, code) in [
        (vec![&good], 0),
        (vec![&good, &conflict], 8),
        (vec![&conflict, &bad, &good], 7),
    ] {
        let mut args = vec!["fanout", "merge-reports", "-o", &all];
        args.extend(dirs.iter().map(|dir| dir.as_str()));
        let (found, answer) = place.json(&args);
        assert_eq!(found, Some(code), "{answer}");
        assert_eq!(
            answer["report"]["tasks"].as_array().unwrap().len(),
            dirs.len()
        );
    }
    for file in [
        "report.json",
        "junit.xml",
        "report.md",
        "results.sarif",
        "manifest.json",
        "one.patch",
    ] {
        assert!(Path::new(&all).join(file).exists(), "{file}");
    }
    let (code, _) = place.json(&["fanout", "merge-reports"]);
    assert_eq!(code, Some(2));
}
