//! Single native agents, with a key and no other program: the tools of each type, their length, and
//! the fate of agents whose parent is stopped.

use harness::model::{Step, prompt};
use harness::runs::{LONG, left_of};
use harness::{NativeTeam, tools_of, wait_until};
use serde_json::json;

use crate::CCB;

#[test]
fn every_built_in_type_is_offered_the_tools_of_its_definition() {
    let team = NativeTeam::new(CCB);
    for (kind, has, lacks) in [
        (
            "general-purpose",
            &[
                "Bash",
                "Edit",
                "Glob",
                "Grep",
                "Read",
                "Write",
                "mcp__ccb__TaskList",
            ][..],
            &["ExitPlanMode"][..],
        ),
        (
            "Explore",
            &["Glob", "Grep", "Read"],
            &[
                "Edit",
                "NotebookEdit",
                "Write",
                "mcp__ccb__Agent",
                "ExitPlanMode",
            ],
        ),
        (
            "Plan",
            &["Glob", "Grep", "Read"],
            &["Edit", "NotebookEdit", "Write", "mcp__ccb__Agent"],
        ),
        (
            "worker",
            &["Bash", "Edit", "Read", "Write"],
            &["mcp__ccb__Agent"],
        ),
        (
            "verification",
            &["Bash", "Read"],
            &["Edit", "NotebookEdit", "Write"],
        ),
    ] {
        let before = team.requests().len();
        team.ask(&["--type", kind], &[Step::text("Seen.")]);
        let tools = tools_of(&team.requests()[before]);
        let missing: Vec<&&str> = has
            .iter()
            .filter(|tool| !tools.contains(&tool.to_string()))
            .collect();
        let surplus: Vec<&&str> = lacks
            .iter()
            .filter(|tool| tools.contains(&tool.to_string()))
            .collect();
        assert!(
            missing.is_empty() && surplus.is_empty(),
            "{kind}: {tools:?}"
        );
    }
}

/// Bytes of JSON that make up about one token.
const BYTES_PER_TOKEN: usize = 4;

#[test]
fn what_every_request_begins_with_is_short() {
    let team = NativeTeam::new(CCB);
    team.ok(&["team", "create", "board"]);
    // One that works alone, and one with all tools of a teammate.
    for how in [
        &["--type", "general-purpose"][..],
        &["--type", "general-purpose", "--name", "ann"],
    ] {
        let before = team.requests().len();
        team.ask(how, &[Step::text("Seen.")]);
        let body = team.requests()[before].body.clone();
        let tokens = |part: &str| body[part].to_string().len() / BYTES_PER_TOKEN;
        assert!(tokens("tools") < 4000, "{how:?}: {}", tokens("tools"));
        let fixed = tokens("tools") + tokens("system") + tokens("messages");
        assert!(fixed <= 6000, "{how:?}: {fixed}");
    }
    let steps = [Step::text("nothing to do")];
    let before = team.requests().len();
    team.run(&["--json", "--mates", "1", &prompt("Lead.", &steps)]);
    let body = team.requests()[before].body.clone();
    let fixed = body.to_string().len() / BYTES_PER_TOKEN;
    assert!(fixed <= 6000, "a lead: {fixed}");
}

#[test]
fn a_parent_that_is_stopped_takes_its_agents_with_it() {
    let team = NativeTeam::new(CCB);
    let never = team.home.path().join("never");
    let inner = prompt("INNER.", &[Step::text("never said").wait_for(&never)]);
    let agent = json!({
        "description": "waits for ever", "prompt": inner, "subagent_type": "general-purpose",
        "run_in_background": false,
    });
    let steps = [
        Step::tool("mcp__ccb__Agent", agent),
        Step::text("never said either"),
    ];
    let order = prompt("OUTER.", &steps);
    let how = ["agent", "spawn", "--runtime", "native", "--background"];
    let started = team.ok(&[&how[..], &[order.as_str()]].concat());
    let parent = started["agent"]["agentId"].as_str().unwrap().to_owned();
    wait_until(LONG, "the child's request", || team.requests().len() >= 2);
    let listed = team.ok(&["agent", "list"]);
    let agents = listed["agents"].as_array().unwrap().clone();
    let ids: Vec<String> = agents
        .iter()
        .map(|agent| agent["agentId"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(ids.len(), 2, "{listed}");
    team.ok(&["agent", "stop", &parent]);
    for id in &ids {
        wait_until(LONG, "its processes to be gone", || left_of(id).is_empty());
        let active = team.home.team_dir().join("runs/.active").join(id);
        wait_until(LONG, "the run to be settled", || {
            team.ok(&["agent", "list"]);
            !active.exists()
        });
        let meta = team.home.run_meta(id);
        assert_eq!(meta["state"], "killed", "{meta}");
    }
    // Its knowledge is not lost.
    let again = prompt("AFTER", &[Step::text("I know it.")]);
    let resumed = team.ok(&["agent", "resume", &parent, &again]).to_string();
    assert!(resumed.contains("I know it."), "{resumed}");
    let last = team.requests().pop().unwrap().body.to_string();
    assert!(last.contains("OUTER.") && last.contains("AFTER"));
    // It learns the results of its call and of the agent.
    for words in [
        "was cancelled before it finished",
        "Agent \\\"waits for ever\\\" killed",
    ] {
        assert!(last.contains(words), "{words}: {last}");
    }
}
