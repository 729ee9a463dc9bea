//! Forks of native agents: their limits, the questions, and the savings.

use harness::model::{Step, prompt};
use harness::native_fan::{
    AGENT, background, fan, first_requests, fork, fork_call, orders, request_that_forked, share,
    spawn, team,
};
use harness::runs::LONG;
use harness::wait_until;
use serde_json::{Value, json};
use swarm::provider::Wire;

use crate::CCB;

#[test]
fn a_fork_does_not_fork_and_what_cannot_be_copied_says_why() {
    let team = team(CCB, Wire::Anthropic);
    let id = spawn(&team, &["--wait"], "Lead.", &[Step::text("Fine.")]);
    let again = json!({ "description": "d", "prompt": "p", "subagent_type": "fork" });
    let script = [Step::tool(AGENT, again), Step::text("{{last}}")];
    let order = prompt("ORDER.", &script);
    let answer = team.ok(&["agent", "spawn", "--wait", "--fork", &id, &order]);
    let said = answer["agent"]["content"].as_str().unwrap();
    assert!(said.contains("a fork cannot fork again"), "{said}");
    let copy = answer["agent"]["agentId"].as_str().unwrap().to_owned();
    let fails = |args: &[&str]| {
        let answer = team.run(&[&["--json", "agent", "spawn"], args].concat());
        assert_eq!(answer.code, Some(2), "{args:?}: {answer:?}");
        let error = answer.json()["error"].clone();
        assert!(error["hint"].is_string(), "{error}");
        error["message"].as_str().unwrap().to_owned()
    };
    let before = team.requests().len();
    // The mark is lost; the text of the order is left.
    let meta = team
        .home
        .team_dir()
        .join("runs")
        .join(&copy)
        .join("meta.json");
    let text = std::fs::read_to_string(&meta).unwrap();
    assert!(text.contains("\"fork\": true"), "{text}");
    std::fs::write(&meta, text.replace("\"fork\": true", "\"fork\": false")).unwrap();
    assert!(fails(&["--fork", &copy, "x"]).contains("cannot fork again"));
    // A line that is not there, no uuid, no parent, a parent whose file is damaged.
    let nil = "00000000-0000-0000-0000-000000000000";
    assert!(fails(&["--fork", &id, "--at", nil, "x"]).contains(nil));
    let answer = team.run(&["agent", "spawn", "--fork", &id, "--at", "here", "x"]);
    assert_eq!(answer.code, Some(2), "{answer:?}");
    let answer = team.run(&["agent", "spawn", "--at", nil, "x"]);
    assert_eq!(answer.code, Some(2), "{answer:?}");
    let session = team.home.run_meta(&id)["session"]
        .as_str()
        .unwrap()
        .to_owned();
    let whole = std::fs::read(&session).unwrap();
    std::fs::write(&session, [b"{oops\n", &whole[..]].concat()).unwrap();
    assert!(fails(&["--fork", &id, "x"]).contains("line 1 of"));
    std::fs::remove_file(&session).unwrap();
    assert!(fails(&["--fork", &id, "x"]).contains("is not there"));
    // Half a line at the end is one that was never written.
    std::fs::write(&session, [&whole[..], b"{\"uuid\":\"0"].concat()).unwrap();
    assert_eq!(team.requests().len(), before, "nothing was started");
    fork(&team, &id, &[], "ORDER-torn.");
}

#[test]
fn a_coordinator_is_not_copied() {
    let team = team(CCB, Wire::Anthropic);
    let copy = json!({ "description": "d", "prompt": "p", "subagent_type": "fork" });
    let steps = [
        Step::tool(AGENT, copy),
        Step::text("{{last}}"),
        Step::text("So be it."),
    ];
    let order = prompt("Coordinate.", &steps);
    let answer = team.run(&["--json", "--coordinator", &order]);
    assert_eq!(answer.code, Some(0), "{answer:?}");
    assert!(
        answer.stdout.contains("makes no copies of itself"),
        "{answer:?}"
    );
    let agents = team.ok(&["agent", "list"]);
    let id = agents["agents"][0]["agentId"].as_str().unwrap();
    let answer = team.run(&["--json", "agent", "spawn", "--fork", id, "x"]);
    assert_eq!(answer.code, Some(2), "{answer:?}");
    assert_eq!(answer.json()["error"]["kind"], "cannot_fork", "{answer:?}");
}

#[test]
fn what_a_fork_may_not_do_is_asked_of_its_parent() {
    let team = team(CCB, Wire::Anthropic);
    let gate = team.home.path().join("gate");
    let script = [
        Step::tool("Bash", json!({ "command": "echo asked > asked.txt" })),
        Step::text("Done."),
    ];
    let fan = fork_call(Step::text("I fork."), "ORDER-ask.", &script, false);
    let mut steps = vec![fan, Step::text("On.").wait_for(&gate)];
    steps.extend((0..4).map(|_| Step::text("I have heard.")));
    let how = ["--background", "--permission-mode", "default"];
    let id = spawn(&team, &how, "Lead.", &steps);
    let mut request = Value::Null;
    wait_until(LONG, "a question", || {
        let all = team.ok(&["mail", "requests"]);
        request = all["requests"][0].clone();
        request.is_object()
    });
    assert_eq!(request["to"], id.as_str(), "{request}");
    let number = request["id"].as_str().unwrap();
    team.ok(&["mail", "approve", number, "--as", &id]);
    std::fs::write(&gate, "").unwrap();
    let ended = team.ok(&["agent", "output", &id]);
    assert_eq!(ended["agent"]["status"], "completed", "{ended}");
    let written = std::fs::read_to_string(team.repo.main().join("asked.txt"));
    assert_eq!(written.unwrap(), "asked\n");
}

#[test]
fn what_forks_read_from_the_cache_and_save_is_shown_everywhere() {
    let team = team(CCB, Wire::Anthropic);
    std::fs::write(team.repo.main().join("facts.txt"), background()).unwrap();
    let orders = orders("d", 3);
    let steps = fan("COST", &orders, &[Step::text("Looked.")]);
    let id = spawn(&team, &["--wait"], "Lead COST.", &steps);
    let known = request_that_forked(&team, "COST").raw.len() as u64 / 4;
    let agents = team.ok(&["agent", "list"]);
    let forks: Vec<&Value> = agents["agents"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|agent| agent["agentId"] != id.as_str())
        .collect();
    assert_eq!(forks.len(), 3);
    let number = |value: &Value| value.as_u64().unwrap();
    for fork in &forks {
        let usage = &fork["usage"];
        let forked = number(&usage["forkedTokens"]);
        assert!(forked * 100 >= known * 97, "{forked} of {known}: {usage}");
        let parts = ["cacheReadTokens", "cacheWriteTokens", "uncachedTokens"];
        let sum: u64 = parts.iter().map(|part| number(&usage[*part])).sum();
        assert_eq!(sum, number(&usage["inputTokens"]), "{usage}");
        let saved = usage["savedUsd"].as_f64().unwrap();
        let expected = forked as f64 * (3.75 - 0.3) / 1e6;
        assert!((saved - expected).abs() < 1e-9, "{saved} {expected}");
    }
    // A team without work is not shown to people.
    team.ok(&["task", "create", "later"]);
    let status = team.ok(&["status"]);
    let of_team = &status["teams"][0]["usage"];
    let total: u64 = forks
        .iter()
        .map(|fork| number(&fork["usage"]["forkedTokens"]))
        .sum();
    assert_eq!(number(&of_team["forkedTokens"]), total, "{status}");
    let text = team.run(&["status"]).stdout;
    assert!(
        text.contains("from cache") && text.contains("forks read"),
        "{text}"
    );
    let fork = forks[0]["agentId"].as_str().unwrap();
    let text = team.run(&["agent", "show", fork]).stdout;
    assert!(
        text.contains("saved") && text.contains("uncached"),
        "{text}"
    );
    let report = team.ok(&["report", fork]);
    let part = &report["agents"][0];
    assert!(number(&part["forkedTokens"]) > 0, "{report}");
}

#[test]
fn a_sessions_end_says_what_forks_saved() {
    let team = team(CCB, Wire::Anthropic);
    std::fs::write(team.repo.main().join("facts.txt"), background()).unwrap();
    team.repo.git(&["add", "facts.txt"]);
    team.repo.git(&["commit", "-qm", "facts"]);
    let orders = orders("e", 2);
    // A lead's tool is in its forks' list, but they may not use it.
    let lists = Step::tool("mcp__ccb__Worktrees", json!({ "action": "list" }));
    let steps = fan("SESSION", &orders, &[lists, Step::text("{{last}}")]);
    let order = prompt("Lead SESSION.", &steps);
    let answer = team.run(&["--json", &order]);
    assert_eq!(answer.code, Some(0), "{answer:?}");
    let end = answer.json_lines().pop().unwrap();
    assert!(end["usage"]["forkedTokens"].as_u64().unwrap() > 0, "{end}");
    assert!(end["usage"]["savedUsd"].as_f64().unwrap() > 0.0, "{end}");
    share(
        &request_that_forked(&team, "SESSION"),
        &first_requests(&team, &orders),
    );
    let told = "for the agent that you are a copy of, not for you";
    let told = team
        .requests()
        .iter()
        .filter(|one| one.raw_contains(told))
        .count();
    assert!(told >= 2, "each of the two was told: {told}");
    let text = team.run(&["report"]).stdout;
    assert!(text.contains("forks read"), "{text}");
}
