//! A confined command answers no question in a person's place: not with ccb, not by writing the
//! answer, not by ringing.

use std::path::{Path, PathBuf};
use std::process::Command;

use harness::model::Step;
use harness::{McpClient, NativeTeam};
use serde_json::{Value, json};

use crate::CCB;

fn bash(line: &str) -> Step {
    let line = format!("export PATH=/usr/sbin:/usr/bin:/bin\n{line}");
    Step::tool("Bash", json!({ "command": line }))
}

/// The files below `dir` whose names end like this.
fn files(dir: &Path, end: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(files(&path, end));
        } else if path.to_string_lossy().ends_with(end) {
            found.push(path);
        }
    }
    found
}

fn state(request: &Path) -> Value {
    let bytes = std::fs::read(request).unwrap();
    serde_json::from_slice::<Value>(&bytes).unwrap()["state"].clone()
}

#[test]
fn a_confined_command_answers_nothing() {
    if let Err(why) = swarm::sandbox::support() {
        eprintln!("not tested here: {why}");
        return;
    }
    let team = NativeTeam::new(CCB);
    team.ok(&["team", "create", "board"]);
    team.ok(&["team", "join", "board", "--as", "alice"]);
    let mut alice =
        McpClient::connect(team.command(&["mcp", "--role", "teammate", "--as", "alice"]));
    alice.ok("EnterPlanMode", json!({}));
    alice.ok("ExitPlanMode", json!({"plan": "First this"}));
    let asked = files(&team.home.team_dir(), ".json");
    let asked = asked.into_iter().find(|path| {
        let text = std::fs::read_to_string(path).unwrap_or_default();
        text.contains("First this") && text.contains("pending")
    });
    let request = asked.expect("a request");
    let id = request.file_stem().unwrap().to_string_lossy().into_owned();
    let wake = files(&team.home.team_dir(), "/wake");
    let wake = wake.first().expect("a bell").display();
    let (dir, file) = (request.parent().unwrap().display(), request.display());
    let before = std::fs::read(&request).unwrap();

    let writes = [
        format!("sed -i s/pending/approved/ {file}"),
        format!("printf %s '{{}}' > {file}"),
        format!("cp {file} {dir}/other.json"),
        format!("mv {file} {dir}/gone"),
        // Opened both ways: that never blocks.
        format!("printf x 1<> {wake}"),
    ];
    let asks = [
        format!("{CCB} mail approve {id}"),
        format!("{CCB} mail approve {id} --as team-lead"),
        format!("env -u CCB_RUN_ID {CCB} mail approve {id} --as team-lead"),
        format!("env -i HOME=$HOME CCB_HOME=$CCB_HOME {CCB} mail approve {id} --as team-lead"),
    ];
    let mut steps: Vec<Step> = writes.iter().chain(&asks).map(|line| bash(line)).collect();
    steps.push(Step::text("I give up."));
    team.ask(&["--isolation", "worktree", "--type", "free"], &steps);
    let requests = team.requests();
    let last = requests.last().expect("a request").body["messages"].clone();
    let results: Vec<&Value> = last
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|message| message["content"].as_array())
        .flatten()
        .filter(|block| block["type"] == "tool_result")
        .collect();
    assert_eq!(results.len(), steps.len() - 1);
    for (result, line) in results.iter().zip(writes.iter().chain(&asks)) {
        assert_eq!(result["is_error"], true, "{line}: {result}");
    }
    assert_eq!(std::fs::read(&request).unwrap(), before);

    // Each way works for a person: first the one that ccb offers.
    team.ok(&["mail", "approve", &id, "--as", "team-lead"]);
    assert_eq!(state(&request), "approved");
    std::fs::write(&request, &before).unwrap();
    for line in &writes {
        let ran = Command::new("sh").args(["-c", line]).output().unwrap();
        assert!(ran.status.success(), "{line}: {ran:?}");
    }
}
