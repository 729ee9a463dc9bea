//! Native agents that fork, and the common parts of their requests.

use serde_json::{Value, json};
use swarm::provider::Wire;

use crate::NativeTeam;
use crate::model::{Recorded, Step, prompt};

/// The beginning of a fork's order.
pub const TAG: &str = "<fork-boilerplate>";
/// The tool that starts agents.
pub const AGENT: &str = "mcp__ccb__Agent";

/// A team whose model speaks this protocol, with prices.
pub fn team(ccb: &str, wire: Wire) -> NativeTeam {
    let team = NativeTeam::new(ccb);
    let (kind, base) = match wire {
        Wire::Anthropic => ("anthropic", team.model.url()),
        Wire::Chat => ("openai-chat", format!("{}/v1", team.model.url())),
        Wire::Responses => ("openai-responses", format!("{}/v1", team.model.url())),
    };
    let prices = json!({ "input": 3.0, "output": 15.0, "cacheRead": 0.3, "cacheWrite": 3.75 });
    let provider = json!({
        "kind": kind, "baseUrl": base, "keyEnv": "ANTHROPIC_API_KEY", "model": "m", "prices": prices,
    });
    let settings = json!({ "agents": { "defaultProvider": "p" }, "providers": { "p": provider } });
    team.home.settings(&settings.to_string());
    team
}

/// Background knowledge, long enough for a service to cache it.
pub fn background() -> String {
    let lines = (0..600).map(|n| format!("Fact {n}: the value of {n} is {}.", n * n));
    lines.collect::<Vec<_>>().join("\n")
}

/// A call that makes a fork.
pub fn fork_call(step: Step, order: &str, script: &[Step], tree: bool) -> Step {
    let mut input = json!({
        "description": order, "subagent_type": "fork", "prompt": prompt(order, script),
    });
    if tree {
        input["isolation"] = "worktree".into();
    }
    step.and_tool(AGENT, input)
}

pub fn spawn(team: &NativeTeam, how: &[&str], words: &str, steps: &[Step]) -> String {
    let order = prompt(words, steps);
    let first = ["agent", "spawn", "--runtime", "native"];
    let answer = team.ok(&[&first, how, &[order.as_str()]].concat());
    answer["agent"]["agentId"]
        .as_str()
        .expect("it is there")
        .to_owned()
}

/// The first requests of forks, in the order of their orders.
pub fn first_requests(team: &NativeTeam, orders: &[String]) -> Vec<Recorded> {
    let requests = team.requests();
    let of = |order: &String| {
        let is_it = |one: &&Recorded| {
            let text = String::from_utf8_lossy(&one.raw);
            text.rfind(TAG)
                .is_some_and(|at| text[at..].contains(order.as_str()))
        };
        requests
            .iter()
            .find(is_it)
            .unwrap_or_else(|| panic!("no request of {order}"))
            .clone()
    };
    orders.iter().map(of).collect()
}

pub fn same(one: &[u8], two: &[u8]) -> usize {
    one.iter().zip(two).take_while(|(a, b)| a == b).count()
}

/// A request without the closing brackets of its lists.
pub fn open_end(raw: &[u8]) -> usize {
    raw.len()
        - raw
            .iter()
            .rev()
            .take_while(|byte| b"]}".contains(byte))
            .count()
}

pub fn last_text(raw: &[u8]) -> usize {
    String::from_utf8_lossy(raw)
        .rfind(TAG)
        .expect("it is there")
}

/// All of the parent's request is the beginning of each fork's, and forks differ in their order
/// alone.
pub fn same_bytes(parent: &Recorded, forks: &[Recorded]) {
    let known = open_end(&parent.raw);
    for fork in forks {
        let shared = same(&parent.raw, &fork.raw);
        assert!(shared >= known, "{shared} of {known} bytes");
        let same = same(&forks[0].raw, &fork.raw);
        assert!(same >= last_text(&fork.raw), "{same}");
    }
}

/// The same, and nearly all of the parent came from the cache.
pub fn share(parent: &Recorded, forks: &[Recorded]) {
    same_bytes(parent, forks);
    for fork in forks {
        let tokens = parent.raw.len() as u64 / 4;
        let read = fork.cached.read;
        assert!(read * 100 >= tokens * 97, "{read} of {tokens}");
    }
}

/// The request whose answer made the forks.
pub fn request_that_forked(team: &NativeTeam, words: &str) -> Recorded {
    let asks = |one: &&Recorded| {
        let calls = one.step.as_ref().is_some_and(|step| step.calls().len() > 1);
        calls && one.conversation.was_told(words)
    };
    team.requests()
        .iter()
        .rfind(asks)
        .expect("it is there")
        .clone()
}

/// The steps of an agent that fans out: it reads, fans out, continues, and hears of every end.
pub fn fan(words: &str, orders: &[String], scripts: &[Step]) -> Vec<Step> {
    let mut fan = Step::text("I fan out.");
    for (n, order) in orders.iter().enumerate() {
        // Every other one in a worktree of its own.
        fan = fork_call(fan, order, scripts, n % 2 == 1);
    }
    let mut steps = vec![
        Step::tool("Read", json!({ "file_path": "facts.txt" })),
        fan,
        Step::text(format!("{words}: I go on.")),
    ];
    steps.extend((0..2 * orders.len()).map(|_| Step::text("I have heard.")));
    steps
}

pub fn orders(of: &str, count: usize) -> Vec<String> {
    (0..count).map(|n| format!("ORDER-{of}-{n}.")).collect()
}

/// Forks an agent from outside; waits for its end.
pub fn fork(team: &NativeTeam, of: &str, how: &[&str], order: &str) -> Value {
    let order = prompt(order, &[Step::text("Looked.")]);
    let first = ["agent", "spawn", "--wait", "--fork", of];
    let answer = team.ok(&[&first, how, &[order.as_str()]].concat());
    assert_eq!(answer["agent"]["content"], "Looked.", "{answer}");
    answer["agent"].clone()
}
