//! Real programs that are confined to their worktree (`agents.sandbox: "tree"`): they work and
//! commit there, reach their model and ccb's tools, and write nothing outside.

use std::path::{Path, PathBuf};

use harness::RealTeam;
use harness::model::{Step, prompt};
use harness::shell;
use serde_json::json;

use crate::CCB;

/// The attempts of a confined agent, one command after the other, each with a word that says if it
/// worked.
fn attempts(outside: &Path) -> Vec<String> {
    let (outside, up) = (outside.display(), "../".repeat(20));
    [
        format!("echo gone > {outside}/secret"),
        format!("echo gone > {up}{}/secret", &outside.to_string()[1..]),
        format!("ln -s {outside} link && echo gone > link/secret"),
        format!("echo gone > /proc/self/root{outside}/secret"),
        format!("mkdir {outside}/dir"),
        format!("git init -q {outside}/repo"),
        "git config -f \"$(cat .git/objects/info/alternates)/../config\" core.fsmonitor gone"
            .to_owned(),
        "echo gone > \"$(cat .git/objects/info/alternates)/gone\"".to_owned(),
    ]
    .iter()
    .map(|line| format!("if {line}; then echo ESCAPED; else echo held; fi"))
    .collect()
}

const WORK: &str = "echo work > work.txt && git add work.txt && \
                    git -c user.name=x -c user.email=x@x commit -q -m Work && echo COMMITTED";

/// A file outside that must not change.
fn outside(team: &RealTeam) -> PathBuf {
    let outside = team.home.path().join("outside");
    std::fs::create_dir(&outside).unwrap();
    std::fs::write(outside.join("secret"), "secret\n").unwrap();
    outside
}

/// Runs a confined agent in a worktree of its own, and checks the results.
fn stays_inside(team: &RealTeam, runtime: &str, command: fn(&str) -> Step) {
    if let Err(why) = swarm::sandbox::support() {
        eprintln!("not tested here: {why}");
        return;
    }
    let outside = outside(team);
    let mut steps: Vec<Step> = attempts(&outside)
        .iter()
        .map(|line| command(line))
        .collect();
    let tried = steps.len();
    steps.push(command(WORK));
    steps.push(Step::text("I give up."));
    let order = prompt("Do it.", &steps);
    let how = [
        "--runtime",
        runtime,
        "--type",
        "free",
        "--isolation",
        "worktree",
    ];
    let answer = team.ask(&[&how[..], &[order.as_str()]].concat());
    assert_eq!(answer["status"], "completed", "{answer}");
    let requests = team.world.model.scripted();
    let last = requests.last().unwrap().body.to_string();
    assert!(
        !last.contains("\\nESCAPED") && !last.contains("\"ESCAPED"),
        "{last}"
    );
    assert!(last.matches("held").count() >= tried, "{last}");
    assert!(last.contains("COMMITTED"), "it works where it may: {last}");
    let names = store::tree::names_in(&outside).unwrap();
    assert_eq!(names, ["secret"]);
    let text = std::fs::read_to_string(outside.join("secret")).unwrap();
    assert_eq!(text, "secret\n");
    let id = answer["agentId"].as_str().unwrap();
    let subject = harness::git(&team.tree(id), &["log", "-1", "--format=%s"]);
    assert_eq!(subject.trim(), "Work");
}

fn confined() -> serde_json::Value {
    json!({ "agents": { "sandbox": "tree" } })
}

pub(crate) fn a_confined_claude_stays_in_its_worktree() {
    let team = RealTeam::claude(CCB, &confined());
    stays_inside(&team, "claude", |line| Step::tool("Bash", shell(line)));
}

/// The usual case: no variable names its configuration.
pub(crate) fn a_confined_claude_works_with_its_usual_configuration() {
    let team = RealTeam::claude(CCB, &confined());
    let file = team.home.path().join("ccb.json");
    let text = std::fs::read_to_string(&file).unwrap();
    let mut settings: serde_json::Value = serde_json::from_str(&text).unwrap();
    let env = settings["runtimes"]["claude"]["env"]
        .as_object_mut()
        .unwrap();
    assert!(env.remove("CLAUDE_CONFIG_DIR").is_some());
    team.home.settings(&settings.to_string());
    stays_inside(&team, "claude", |line| Step::tool("Bash", shell(line)));
}

pub(crate) fn a_confined_codex_stays_in_its_worktree() {
    let team = RealTeam::codex(CCB, &confined());
    stays_inside(&team, "codex", |line| {
        let input = json!({ "cmd": line, "yield_time_ms": 60_000 });
        Step::tool("exec_command", input)
    });
}

pub(crate) fn a_confined_claude_uses_our_tools() {
    if swarm::sandbox::support().is_err() {
        return;
    }
    let team = RealTeam::claude(CCB, &confined());
    let task = json!({ "subject": "from inside", "description": "d" });
    let steps = [
        Step::tool("mcp__ccb__TaskCreate", task),
        Step::text("made: {{last}}"),
    ];
    let order = prompt("Do it.", &steps);
    let how = [
        "--runtime",
        "claude",
        "--type",
        "free",
        "--isolation",
        "worktree",
    ];
    let answer = team.ask(&[&how[..], &[order.as_str()]].concat());
    assert_eq!(answer["status"], "completed", "{answer}");
    assert!(answer["content"].to_string().contains("#1"), "{answer}");
    assert!(team.home.task_file(1).exists());
}
