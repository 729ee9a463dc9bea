//! Access to the key of a model: no command of an agent gets it, not even as root, as far as the
//! kernel allows.

use harness::model::{Step, prompt};
use harness::native_world::{KEY, NativeWorld, results};
use harness::{NATIVE_KEY, NativeTeam};
use serde_json::{Value, json};
use swarm::provider::Wire;
use swarm::sandbox::Sandbox;

use crate::CCB;

fn bash(command: &str) -> Step {
    Step::tool("Bash", json!({ "command": command }))
}

/// Copies the environments of the loop and of its parents: the host and the guard, if there are
/// any. Into a file, because results are redacted.
const COPY: &str = "pid=$PPID; for level in 1 2 3; do \
                    cat /proc/$pid/environ; read -r line < /proc/$pid/stat; \
                    set -- ${line##*) }; pid=$2; done > found; cat /proc/self/environ >> found";

#[test]
fn no_process_has_the_key_in_its_environment() {
    let world = NativeWorld::new(CCB, Wire::Anthropic);
    // Not confined: only ccb keeps it back.
    let mut talk = world.follow(&[bash(COPY), Step::text("looked")]);
    assert_eq!(talk.turn().text, "looked");
    talk.finish();
    let found = std::fs::read(world.path("cwd/found")).unwrap();
    assert!(!found.is_empty(), "it reads its own, at least");
    let has = |word: &str| {
        let word = word.as_bytes();
        found.windows(word.len()).any(|part| part == word)
    };
    assert!(has("PATH=") && !has(KEY), "the key is in /proc");
}

#[test]
fn a_team_leaves_no_key_in_any_environment() {
    let team = NativeTeam::new(CCB);
    let copy = format!("export PATH=/usr/bin:/bin\n{COPY}");
    team.ask(&["--type", "free"], &[bash(&copy), Step::text("looked")]);
    let found = team.repo.main().join("found");
    assert!(found.exists(), "it looked");
    assert_eq!(
        team.files_with(NATIVE_KEY),
        [""; 0].map(std::path::PathBuf::from)
    );
}

#[test]
fn a_confined_command_cannot_look_into_the_loop_not_even_as_root() {
    if let Err(why) = swarm::sandbox::support() {
        eprintln!("not tested here: {why}");
        return;
    }
    let world = NativeWorld::new(CCB, Wire::Anthropic);
    let steps = [
        bash("head -c 1 /proc/$PPID/environ"),
        bash("head -c 1 /proc/$PPID/mem"),
        bash("cat /proc/$PPID/fd/0"),
        bash("cat /proc/self/environ > /dev/null && echo mine"),
        Step::text("looked"),
    ];
    let mut launch = world.launch(&prompt("Go.", &steps));
    launch.sandbox = Some(Sandbox::default());
    let mut talk = world.start(launch);
    assert_eq!(talk.turn().text, "looked");
    let results = results(&talk);
    let (tried, own) = results.split_at(steps.len() - 2);
    for (text, is_error) in tried {
        assert!(is_error, "{text}");
    }
    assert_eq!(own[0], ("mine".to_owned(), false));
    talk.finish();
}

#[test]
fn agents_that_an_agent_starts_have_the_key_to_work_with() {
    let team = NativeTeam::new(CCB);
    let order = prompt("Inner.", &[Step::text("inner word")]);
    let agent = json!({
        "description": "say a word", "prompt": order, "subagent_type": "general-purpose",
        "run_in_background": false,
    });
    let steps = [
        Step::tool("mcp__ccb__Agent", agent),
        Step::text("heard: {{last}}"),
    ];
    let answer: Value = team.ask(&["--type", "free"], &steps);
    assert!(answer.to_string().contains("inner word"), "{answer}");
}
