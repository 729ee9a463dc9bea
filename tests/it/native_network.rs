//! Commands without a network (`agents.sandboxNetwork: false`): the agent reaches its model, its
//! commands reach no other machine or port.

use std::net::TcpListener;

use harness::NativeTeam;
use harness::model::Step;
use serde_json::json;

use crate::CCB;

/// A command that connects to a port of this machine. Its shell is not the agent's: not every one
/// can connect.
fn connects(port: u16) -> Step {
    let line = format!(
        "export PATH=/usr/bin:/bin\nbash -c 'exec 3<>/dev/tcp/127.0.0.1/{port}' && echo CONNECTED"
    );
    Step::tool("Bash", json!({ "command": line }))
}

fn settings(team: &NativeTeam, network: bool) {
    let settings = json!({ "agents": { "sandboxNetwork": network } });
    team.home.settings(&settings.to_string());
}

/// The last result that the model got.
fn told(team: &NativeTeam) -> String {
    let last = team.requests().pop().expect("a request");
    last.body["messages"].to_string()
}

#[test]
fn a_command_without_a_network_reaches_nobody_and_the_agent_its_model() {
    if let Err(why) = swarm::sandbox::support() {
        eprintln!("not tested here: {why}");
        return;
    }
    let team = NativeTeam::new(CCB);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let how = ["--type", "free", "--isolation", "worktree"];
    settings(&team, true);
    team.ask(&how, &[connects(port), Step::text("done")]);
    assert!(told(&team).contains("CONNECTED"), "{}", told(&team));
    settings(&team, false);
    let work = Step::tool(
        "Bash",
        json!({ "command": "echo still > here; read -r w < here; echo $w working" }),
    );
    let answer = team.ask(&how, &[connects(port), work, Step::text("done")]);
    assert_eq!(answer["content"], "done", "{answer}");
    let told = told(&team);
    assert!(
        !told.contains("\nCONNECTED") && !told.contains("\"CONNECTED"),
        "{told}"
    );
    assert!(told.contains("still working"), "{told}");
}

#[test]
fn a_program_that_talks_to_its_model_is_not_started_without_a_network() {
    let team = NativeTeam::new(CCB);
    for kind in ["claude", "codex", "acp"] {
        let settings = json!({
            "agents": { "sandbox": "tree", "sandboxNetwork": false },
            "runtimes": { "other": { "kind": kind, "command": ["sh"] } },
        });
        team.home.settings(&settings.to_string());
        let how = [
            "--json",
            "agent",
            "spawn",
            "--runtime",
            "other",
            "--wait",
            "hello",
        ];
        let answer = team.run(&how);
        assert_eq!(answer.code, Some(2), "{kind}: {answer:?}");
        let error = &answer.json()["error"];
        assert_eq!(error["kind"], "needs_network", "{answer:?}");
        let hint = error["hint"].as_str().unwrap();
        assert!(hint.contains("--runtime native"), "{hint}");
        assert!(hint.contains("runtimes.other.sandbox"), "{hint}");
    }
}
