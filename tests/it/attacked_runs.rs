//! Every attack from an agent's own `.git`, in whole runs: a confined agent and one that is not do it,
//! and a plan goes on. The default run takes a sample; `tests/torture.sh attacks` takes all.

use std::path::PathBuf;

use harness::sample::{Sample, is_full};
use harness::script::Script;
use harness::{Fan, Workplace, kinds};
use serde_json::json;

use crate::{CCB, FAKE_AGENT};

#[path = "../../worktrees/tests/it/attacks.rs"]
mod attacks;

use attacks::{ATTACKS, Attack, Ends, PRELUDE};

const VICTIM: &str = "a file of the user's\n";
/// One attack of this many is in a sample.
const SAMPLE: u64 = 9;

struct Scene {
    fan: Fan,
    ran: PathBuf,
    victim: PathBuf,
    refs: String,
}

impl Scene {
    fn new(settings: &str) -> Self {
        let fan = Fan::new(CCB);
        fan.0.home.settings(settings);
        fan.git(&["branch", "feature/x"]);
        let (ran, victim) = (fan.0.repo.beside("ran"), fan.0.repo.beside("victim"));
        std::fs::write(&victim, VICTIM).unwrap();
        let refs = refs(&fan);
        Self {
            fan,
            ran,
            victim,
            refs,
        }
    }

    fn script(&self, attack: &Attack) -> String {
        // The branch has another name in a run.
        let script = attack
            .script
            .replace("refs/heads/worktree/x", "$(git symbolic-ref HEAD)");
        format!(
            "export PATH=/usr/bin:/bin COMMON={} VICTIM={} CODE='touch {}'\n\
             {PRELUDE}\necho work > work; g add work; c work\n{script}",
            self.fan.0.repo.main().join(".git").display(),
            self.victim.display(),
            self.ran.display(),
        )
    }

    fn assert_unharmed(&self, about: &str) {
        assert!(!self.ran.exists(), "{about}: code ran");
        let victim = std::fs::read_to_string(&self.victim).unwrap();
        assert_eq!(victim, VICTIM, "{about}");
        assert_eq!(refs(&self.fan), self.refs, "{about}");
    }
}

/// All refs that are not ccb's, and the configuration.
fn refs(fan: &Fan) -> String {
    let all = fan.git(&["for-each-ref", "--format=%(refname) %(objectname)"]);
    let theirs = |line: &&str| {
        let ours = ["refs/heads/worktree/", "refs/heads/ccb/", "refs/ccb/"];
        !ours.iter().any(|start| line.starts_with(start))
    };
    let theirs: Vec<&str> = all.lines().filter(theirs).collect();
    theirs.join("\n") + &fan.git(&["config", "--local", "--list"])
}

fn strike(attack: &Attack, settings: &str) {
    let about = format!("{} with {settings}", attack.name);
    let scene = Scene::new(settings);
    scene.fan.plan(&json!({ "tasks": [
        { "id": "attack", "run": scene.script(attack), "verify": "test -e work", "retries": 0 },
        { "id": "honest", "run": "echo 1 > honest", "verify": "test -e honest" },
    ]}));
    let (_, report) = scene.fan.run(&["--land", "merge"]);
    scene.assert_unharmed(&about);
    let kinds = kinds(&report);
    let said = report.to_string();
    match attack.ends {
        Ends::Not(why) => {
            assert_ne!(kinds[0].1, "proven", "{about}: {said}");
            assert!(said.contains(why), "{about}: {said}");
        }
        Ends::Whole | Ends::Files => {
            assert_eq!(kinds[0].1, "proven", "{about}: {said}");
            let branch = report["landed"]["branch"].as_str().unwrap();
            // Some attacks write it once more.
            let work = scene.fan.git(&["show", &format!("{branch}:work")]);
            assert!(
                ["work", "changed"].contains(&work.as_str()),
                "{about}: {work}"
            );
        }
    }
    assert_eq!(kinds[1].1, "proven", "{about}: {said}");
    let private = scene.fan.0.repo.ours().join("private");
    if private.exists() {
        std::fs::remove_dir_all(private).unwrap();
    }
    scene.fan.git(&["fsck", "--strict", "--no-dangling"]);
    assert_eq!(
        scene.fan.git(&["status", "--porcelain", "-uno"]),
        "",
        "{about}"
    );
    scene.assert_unharmed(&about);
}

/// The attacks of this run: all if `CCB_FULL` is set, else some.
fn chosen() -> Vec<&'static Attack> {
    let sample = Sample::one_in(SAMPLE);
    let light = |attack: &&Attack| !attack.heavy && sample.takes(attack.name);
    let chosen = ATTACKS.iter().filter(|attack| is_full() || light(attack));
    chosen.collect()
}

fn strike_all(settings: &str) {
    let fails = |attack: &&&Attack| std::panic::catch_unwind(|| strike(attack, settings)).is_err();
    let chosen = chosen();
    let failed: Vec<&str> = chosen.iter().filter(fails).map(|it| it.name).collect();
    assert!(failed.is_empty(), "{failed:?}");
}

#[test]
fn attacks_of_agents_that_are_not_confined_come_to_nothing() {
    strike_all("{}");
}

#[test]
fn attacks_of_confined_agents_come_to_nothing() {
    if let Err(why) = swarm::sandbox::support() {
        eprintln!("SKIPPED: {why}");
        return;
    }
    strike_all(r#"{"agents":{"sandbox":"tree"}}"#);
}

#[test]
fn a_confined_agent_writes_nothing_of_the_repository_or_the_board() {
    if let Err(why) = swarm::sandbox::support() {
        eprintln!("SKIPPED: {why}");
        return;
    }
    let scene = Scene::new(r#"{"agents":{"sandbox":"tree"}}"#);
    let common = scene.fan.0.repo.main().join(".git");
    let common = common.display();
    let home = scene.fan.0.home.path().display();
    let tries = format!(
        "export PATH=/usr/bin:/bin\n\
         for f in {common}/x {common}/objects/x {common}/refs/heads/worktree/y {common}/ccb/x \
         {common}/worktrees/*/HEAD {common}/logs/refs/heads/worktree/y {home}/tasks/x {home}/tasks/*/1.json \
         {home}/teams/x {home}/ccb/x; do \
         if (echo gone >> $f) 2> /dev/null; then echo $f >> written; fi; done; \
         rm -rf {common}/objects/?? 2> /dev/null; echo done > done"
    );
    scene.fan.plan(&json!({ "tasks": [
        { "id": "tries", "run": tries, "verify": "test -e done" },
    ]}));
    let (_, report) = scene.fan.run(&["--land", "merge"]);
    let branch = report["landed"]["branch"].as_str().unwrap_or_default();
    let files = scene.fan.git(&["ls-tree", "--name-only", branch]);
    assert!(
        files.contains("done") && !files.contains("written"),
        "{files}"
    );
    scene.assert_unharmed("tries");
    scene.fan.git(&["fsck", "--strict"]);
}

#[test]
fn a_program_that_is_confined_has_ccbs_tools_and_cannot_write_the_board_itself() {
    if let Err(why) = swarm::sandbox::support() {
        eprintln!("SKIPPED: {why}");
        return;
    }
    let place = Workplace::new(CCB);
    let tree = r#""agents":{"sandbox":"tree"}"#;
    place.home.with_fake_runtime(FAKE_AGENT, tree);
    let home = place.home.path().display();
    let tries = format!(
        "export PATH=/usr/bin:/bin; for f in {home}/tasks/*/*.json {home}/tasks/x {home}/teams/x; do \
         if (echo gone >> $f) 2> /dev/null; then echo $f >> written; fi; done; echo tried > tried"
    );
    let script = Script::new()
        .call(
            "TaskCreate",
            json!({ "subject": "by its tools", "description": "d" }),
        )
        .call("TaskList", json!({}))
        .run(&["sh", "-c", &tries])
        .done("done");
    let spawn = [
        "agent",
        "spawn",
        "--runtime",
        "fake",
        "--isolation",
        "worktree",
    ];
    let more = ["--wait", &script.to_prompt()];
    let answer = place.run(&[&spawn[..], &more].concat());
    assert_eq!(answer.code, Some(0), "{answer:?}");
    let tasks = place.ok(&["task", "list"]);
    assert!(tasks.to_string().contains("by its tools"), "{tasks}");
    let tree = answer.json()["agent"]["worktree"]["worktreePath"].clone();
    let tree = PathBuf::from(tree.as_str().unwrap());
    assert!(tree.join("tried").exists() && !tree.join("written").exists());
    assert!(
        !answer.stdout.contains("left"),
        "nothing of the tools is left: {answer:?}"
    );
}
