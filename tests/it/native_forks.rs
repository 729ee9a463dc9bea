//! Forks of native agents: the shared part of their parent.

use harness::model::{Recorded, Step, prompt};
use harness::native_fan::{
    TAG, background, fan, first_requests, fork, last_text, open_end, orders, request_that_forked,
    same, same_bytes, share, spawn, team,
};
use harness::native_world::{NativeWorld, WIRES, results};
use harness::runs::LONG;
use harness::{NativeTeam, wait_until};
use serde_json::{Value, json};
use swarm::provider::Wire;
use swarm::runtime::{Launch, Start, TurnStatus};

use crate::{CCB, FAKE_MCP};

#[test]
fn eight_forks_of_one_answer_send_the_parents_bytes_and_their_order() {
    for wire in WIRES {
        let team = team(CCB, wire);
        std::fs::write(team.repo.main().join("facts.txt"), background()).unwrap();
        let gate = team.home.path().join("gate");
        let orders = orders("a", 8);
        let scripts = [Step::text("Looked.").wait_for(&gate)];
        let steps = fan("FIRST", &orders, &scripts);
        let id = spawn(&team, &["--background"], "Lead FIRST.", &steps);
        // The parent continues while none of the forks has its answer.
        team.model
            .wait_for(LONG, "the parent and its forks", |all| {
                let asks = |text: &str| all.iter().any(|one| one.raw_contains(text));
                orders.iter().all(|order| asks(&format!("\n\n{order}"))) && all.iter().any(goes_on)
            });
        std::fs::write(&gate, "").unwrap();
        let told = team.ok(&["agent", "output", &id]);
        assert_eq!(told["agent"]["status"], "completed", "{wire}: {told}");
        let parent = request_that_forked(&team, "FIRST");
        let forks = first_requests(&team, &orders);
        share(&parent, &forks);
        for (n, fork) in forks.iter().enumerate() {
            let text = String::from_utf8_lossy(&fork.raw);
            let placeholders = text.matches("You do not get the result.").count();
            assert_eq!(placeholders, 8, "{wire}: one for every call");
            let order = &text[last_text(&fork.raw)..];
            let moved = order.contains("Read files again before you change them");
            assert_eq!(moved, n % 2 == 1, "{wire}: {order}");
        }
        // It hears of each end once.
        let last = team.requests();
        let last = last.iter().rfind(|one| !one.raw_contains(TAG));
        let last = last.unwrap().body.to_string();
        assert_eq!(
            last.matches("<status>completed</status>").count(),
            8,
            "{wire}"
        );
    }
}

fn goes_on(request: &Recorded) -> bool {
    !request.raw_contains(TAG)
        && request.step.as_ref().is_some_and(|step| {
            let text = step.text.as_deref().unwrap_or_default();
            text.ends_with("I go on.")
        })
}

#[test]
fn a_parent_that_was_killed_or_resumed_is_copied_as_it_was() {
    for wire in WIRES {
        let team = team(CCB, wire);
        let facts = team.repo.main().join("facts.txt");
        std::fs::write(&facts, background()).unwrap();
        let never = team.home.path().join("never");
        let steps = [
            Step::tool("Read", json!({ "file_path": "facts.txt" })),
            Step::text("never said").wait_for(&never),
        ];
        let id = spawn(&team, &["--background"], "Lead SECOND.", &steps);
        team.model
            .wait_for(LONG, "the second request", |all| all.len() >= 2);
        let before = team.requests().pop().unwrap();
        kill(&team, &id);
        settled(&team, &id);
        let order = ["ORDER-killed.".to_owned()];
        fork(&team, &id, &[], &order[0]);
        // The service keeps nothing of a request before it begins to answer.
        same_bytes(&before, &first_requests(&team, &order));
        // Resumed, it fans out itself.
        let orders = orders("b", 8);
        let steps = fan("THIRD", &orders, &[Step::text("Looked.")]);
        let again = prompt("Go on, THIRD.", &steps);
        team.ok(&["agent", "resume", &id, &again]);
        let parent = request_that_forked(&team, "THIRD");
        share(&parent, &first_requests(&team, &orders));
        // It has ended; its last request is that of its last answer.
        let ended = |one: &Recorded| !one.raw_contains(TAG) && one.step_number.is_some();
        let last = team.requests();
        let last = last.iter().rfind(|one| ended(one)).unwrap().clone();
        let order = ["ORDER-ended.".to_owned()];
        fork(&team, &id, &["--isolation", "worktree"], &order[0]);
        share(&last, &first_requests(&team, &order));
    }
}

fn kill(team: &NativeTeam, id: &str) {
    let pid = team.home.run_meta(id)["pid"].as_i64().unwrap();
    let pid = rustix::process::Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
}

fn settled(team: &NativeTeam, id: &str) {
    let active = team.home.team_dir().join("runs/.active").join(id);
    wait_until(LONG, "the run to be settled", || {
        team.ok(&["agent", "list"]);
        !active.exists()
    });
}

#[test]
fn a_summary_begins_a_new_prefix_that_forks_share() {
    let team = team(CCB, Wire::Anthropic);
    std::fs::write(team.repo.main().join("facts.txt"), background()).unwrap();
    let orders = orders("c", 8);
    let after = fan("FIFTH", &orders, &[Step::text("Looked.")]);
    let summary = prompt("FIFTH: all that matters.", &after);
    let steps = [
        Step::tool("Read", json!({ "file_path": "facts.txt" })).usage(190_000, 10),
        Step::text(&summary),
    ];
    let id = spawn(&team, &["--wait"], "Lead FOURTH.", &steps);
    let first = team.requests()[0].clone();
    let parent = request_that_forked(&team, "FIFTH");
    assert!(
        same(&first.raw, &parent.raw) < open_end(&first.raw),
        "a new prefix"
    );
    share(&parent, &first_requests(&team, &orders));
    let logs = team.run(&["agent", "logs", &id]);
    assert!(logs.stdout.contains("begin with the summary"), "{logs:?}");
    // Before the summary there is the old prefix.
    let line = lines(&team, &id)
        .into_iter()
        .find(|line| line["type"] == "assistant");
    let at = line.unwrap()["uuid"].as_str().unwrap().to_owned();
    let order = ["ORDER-before.".to_owned()];
    fork(&team, &id, &["--at", &at], &order[0]);
    let back = &first_requests(&team, &order)[0];
    assert!(same(&first.raw, &back.raw) >= open_end(&first.raw));
    assert!(!back.raw_contains("What follows is what you need"));
}

/// The lines of an agent's conversation.
fn lines(team: &NativeTeam, id: &str) -> Vec<Value> {
    let session = team.home.run_meta(id)["session"]
        .as_str()
        .unwrap()
        .to_owned();
    let text = std::fs::read_to_string(session).unwrap();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// A copy of the only conversation of a world, without a host.
fn copy(world: &NativeWorld, steps: &[Step]) -> Launch {
    let session = world.path("records/conversation.jsonl");
    let session = session.to_string_lossy().into_owned();
    let mut launch = world.launch(&prompt("<fork-boilerplate> ORDER.", steps));
    launch.start = Start::Fork { session, at: None };
    launch
}

#[test]
fn a_model_that_cannot_think_harder_is_not_asked_to_by_forks_either() {
    for wire in WIRES {
        let world = NativeWorld::new(CCB, wire);
        let mut step = Step::text("plainly").http_first(400, 1);
        let message = "this model does not support thinking, reasoning or effort";
        step.body = Some(json!({ "error": { "type": "invalid_request", "message": message } }));
        let mut launch = world.launch(&prompt("Go.", &[step]));
        launch.effort = Some("high".into());
        let mut parent = world.start(launch);
        assert_eq!(parent.turn().text, "plainly", "{wire}");
        parent.finish();
        let mut launch = copy(&world, &[Step::text("so it is")]);
        launch.effort = Some("high".into());
        let mut fork = world.start(launch);
        assert_eq!(fork.turn().text, "so it is", "{wire}");
        fork.finish();
        let requests = world.requests();
        assert_eq!(requests.len(), 3, "{wire}: asked once");
        same_bytes(&requests[1], &requests[2..]);
    }
}

#[test]
fn a_fork_is_offered_what_its_parent_has_and_told_what_it_may_not_use() {
    for wire in WIRES {
        let world = NativeWorld::new(CCB, wire);
        let mut parent = world.follow(&[Step::text("known")]);
        assert_eq!(parent.turn().status, TurnStatus::Completed);
        parent.finish();
        let steps = [
            Step::tool("Bash", json!({ "command": "touch x" })),
            Step::text("I do without"),
        ];
        let mut launch = copy(&world, &steps);
        launch.disallowed_tools = vec!["Bash".into()];
        launch.cwd = world.path("scratch");
        let mut fork = world.start(launch);
        assert_eq!(fork.turn().text, "I do without", "{wire}");
        let said = results(&fork);
        assert!(said[0].1 && said[0].0.contains("denies"), "{said:?}");
        fork.finish();
        let requests = world.requests();
        same_bytes(&requests[0], &requests[1..2]);
        // Resumed, it still begins as its parent did.
        let session = fork.session().unwrap();
        let mut launch = world.launch(&prompt("More.", &[Step::text("yes")]));
        launch.cwd = world.path("scratch");
        launch.start = Start::Resume { session };
        let mut again = world.start(launch);
        assert_eq!(again.turn().text, "yes", "{wire}");
        again.finish();
        let last = world.requests().pop().unwrap();
        let head = |request: &Recorded| {
            let keys = ["model", "system", "instructions", "tools"];
            keys.map(|key| request.body[key].clone())
        };
        assert_eq!(head(&last), head(&requests[0]), "{wire}");
    }
}

/// Nothing in its first request comes from its servers, however long they take to come up.
#[test]
fn a_fork_asks_its_model_before_its_servers_are_up() {
    let team = team(CCB, Wire::Anthropic);
    let gate = team.home.path().join("may-start");
    std::fs::write(&gate, "").unwrap();
    let waits = format!(
        "until [ -e {} ]; do sleep 0.05; done; exec {FAKE_MCP} look",
        gate.display()
    );
    let users = json!({"mcpServers": {"mine": {"command": "sh", "args": ["-c", waits]}}});
    let file = team.home.path().join(".claude.json");
    std::fs::write(file, users.to_string()).unwrap();
    let how = ["--wait", "--permission-mode", "bypassPermissions"];
    let id = spawn(&team, &how, "Lead.", &[Step::text("known")]);
    std::fs::remove_file(&gate).unwrap();
    let steps = [
        Step::tool("mcp__mine__look", json!({})),
        Step::text("heard {{last}}"),
    ];
    let order = prompt("ORDER-early.", &steps);
    let started = team.ok(&["agent", "spawn", "--background", "--fork", &id, &order]);
    let fork = started["agent"]["agentId"].as_str().unwrap();
    team.model
        .wait_for(LONG, "the fork's first request", |all| {
            all.iter().any(|one| one.raw_contains(TAG))
        });
    std::fs::write(&gate, "").unwrap();
    let told = team.ok(&["agent", "output", fork]);
    let said = told["agent"]["content"].to_string();
    assert!(said.contains("heard ours: look"), "{told}");
    let requests = team.requests();
    same_bytes(
        &requests[0],
        &first_requests(&team, &["ORDER-early.".to_owned()]),
    );
}
