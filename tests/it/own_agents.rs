//! Agents that agents start: they outlive the turn that started them, and end with their parent if
//! that is stopped.

use harness::runs::{LONG, kill};
use harness::script::Script;
use harness::{TestHome, wait_until};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::{CCB, FAKE_AGENT};

fn home() -> TestHome {
    let home = TestHome::in_memory(CCB);
    home.with_fake_runtime(FAKE_AGENT, "");
    home
}

/// A script that starts `child` in the background.
fn starts(child: &Script) -> Script {
    let call = json!({
        "description": "look around", "prompt": child.to_prompt(), "run_in_background": true,
    });
    Script::new().call("Agent", call)
}

/// The only agent that `parent` has started, once it runs.
fn child_of(home: &TestHome, parent: &str) -> String {
    let mut found = None;
    wait_until(LONG, "the child", || {
        let all = home.ok(&["agent", "list"]);
        let own = |agent: &&Value| agent["parent"] == parent && agent["state"] == "running";
        let agents = all["agents"].as_array().unwrap();
        found = agents.iter().find(own).map(|agent| {
            let id = agent["agentId"].as_str().unwrap();
            id.to_owned()
        });
        found.is_some()
    });
    found.unwrap()
}

#[test]
fn an_agent_stays_open_for_those_it_has_started() {
    let home = home();
    let go = home.path().join("go");
    let child = Script::new().wait_file(&go).done("there are two doors");
    let parent = starts(&child)
        .result("completed", "started it")
        .wait_message()
        .done("now I know");
    let id = home.spawn_fake(&parent, &[]);
    home.await_run(&id, "idle");
    let child = child_of(&home, &id);
    // It waits, however often its state is read.
    assert_eq!(home.run_meta(&id)["state"], "idle");
    assert_eq!(home.run_exit(&id), None);
    std::fs::write(&go, "").unwrap();
    home.await_settled(&id);
    let exit = home.run_exit(&id).unwrap();
    assert_eq!(exit["status"], "completed", "{exit}");
    assert_eq!(exit["result"], "now I know", "{exit}");
    assert_eq!(home.run_exit(&child).unwrap()["status"], "completed");
    let heard = home.entries(&id, "message");
    assert_eq!(heard.len(), 1, "{heard:?}");
    let text = heard[0]["text"].as_str().unwrap();
    assert!(
        text.contains("<task-notification>") && text.contains("there are two doors"),
        "{text}"
    );
}

/// Its guard and host die, and no process is left to report it: the next command does.
#[test]
fn an_agent_hears_of_one_that_was_lost() {
    let home = home();
    let child = Script::new().wait_file(home.path().join("never"));
    let parent = starts(&child)
        .result("completed", "started it")
        .wait_message()
        .done("that is a pity");
    let id = home.spawn_fake(&parent, &[]);
    home.await_run(&id, "idle");
    let child = child_of(&home, &id);
    let supervisors = ["guard", "host"].map(|which| home.run_process(&child, which));
    for pid in supervisors {
        kill(pid, Signal::KILL);
    }
    home.await_settled(&id);
    assert_eq!(home.run_exit(&child).unwrap()["status"], "lost");
    let exit = home.run_exit(&id).unwrap();
    assert_eq!(
        (&exit["status"], &exit["result"]),
        (&json!("completed"), &json!("that is a pity"))
    );
    assert!(
        home.entries(&id, "message")[0]["text"]
            .as_str()
            .unwrap()
            .contains("it was lost")
    );
}

#[test]
fn a_stopped_agent_stops_those_it_has_started() {
    let home = home();
    let child = Script::new().wait_file(home.path().join("never"));
    for (script, state) in [
        (starts(&child).result("completed", "started it"), "idle"),
        (
            starts(&child).wait_file(home.path().join("never")),
            "running",
        ),
    ] {
        let id = home.spawn_fake(&script, &[]);
        let child = child_of(&home, &id);
        home.await_run(&id, state);
        home.ok(&["agent", "stop", &id, "--reason", "enough"]);
        home.await_settled(&id);
        home.await_settled(&child);
        let exit = home.run_exit(&id).unwrap();
        assert_eq!(exit["status"], "killed", "{exit}");
        let words = exit["error"].as_str().unwrap();
        let with_it = format!("stopped with it: {child} (look around)");
        assert!(
            words.contains("enough") && words.contains(&with_it),
            "{words}"
        );
        let exit = home.run_exit(&child).unwrap();
        assert_eq!(exit["status"], "killed", "{exit}");
        let words = exit["error"].as_str().unwrap();
        assert!(
            words.contains(&format!("{id}, which had started it, was stopped")),
            "{words}"
        );
    }
}

/// One that fails does not wait for its agents: nothing would use their results.
#[test]
fn an_agent_that_fails_ends_its_agents() {
    let home = home();
    let child = Script::new().wait_file(home.path().join("never"));
    let script = starts(&child).result("failed", "I give up");
    let id = home.spawn_fake(&script, &[]);
    home.await_settled(&id);
    assert_eq!(home.run_exit(&id).unwrap()["status"], "failed");
    let all = home.ok(&["agent", "list"]);
    for agent in all["agents"].as_array().unwrap() {
        assert_eq!(agent["alive"], false, "{agent}");
        if agent["parent"] == id.as_str() {
            let exit = home.run_exit(agent["agentId"].as_str().unwrap()).unwrap();
            assert_eq!(exit["status"], "killed", "{exit}");
        }
    }
}

/// A command that starts an agent and ends: the agent continues, and the command's run with it.
#[test]
fn a_command_waits_for_the_agents_it_has_started() {
    let home = home();
    let go = home.path().join("go");
    let waits = format!("until test -e '{}'; do :; done; echo seen", go.display());
    let command = format!(
        "{CCB} agent spawn --runtime shell --background --description inner \"{waits}\" && echo started"
    );
    let answer = home.ok(&[
        "agent",
        "spawn",
        "--runtime",
        "shell",
        "--background",
        &command,
    ]);
    let id = answer["agent"]["agentId"].as_str().unwrap().to_owned();
    let child = child_of(&home, &id);
    wait_until(LONG, "the command to end", || {
        let output = std::fs::read_to_string(home.run_dir(&id).join("output.log"));
        output.is_ok_and(|text| text.contains("started"))
    });
    assert_eq!(home.run_exit(&id), None);
    std::fs::write(&go, "").unwrap();
    home.await_settled(&id);
    assert_eq!(home.run_exit(&child).unwrap()["status"], "completed");
    assert_eq!(home.run_exit(&id).unwrap()["status"], "completed");
}

/// Another process that waits for a result takes no notification from its receiver.
#[test]
fn a_bystander_does_not_swallow_a_notification() {
    let home = home();
    home.ok(&["team", "create", "board"]);
    let go = home.path().join("go");
    let id = home.spawn_fake(&Script::new().wait_file(&go).done("found it"), &[]);
    assert_eq!(home.run_meta(&id)["parent"], "team-lead");
    let mut bystander = home.command(&["agent", "output", &id, "--as", "ann", "--timeout", "60s"]);
    let bystander = bystander
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    home.await_run(&id, "running");
    std::fs::write(&go, "").unwrap();
    let output = bystander.wait_with_output().unwrap();
    assert!(String::from_utf8_lossy(&output.stdout).contains("found it"));
    home.await_settled(&id);
    let told = [(id.clone(), "completed".to_owned())];
    assert_eq!(home.notifications(), told);
    // And a later question, as well.
    home.ok(&["agent", "output", &id, "--as", "bob"]);
    assert_eq!(home.notifications(), told);
}
