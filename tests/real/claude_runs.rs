//! The real Claude Code through the command line, from start to end, on a scripted model.

use harness::model::{Step, prompt};
use harness::runs::{LONG, kill};
use harness::{RealTeam, is_waiting, let_go, shell, wait_until, waiting};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::CCB;

fn team() -> RealTeam {
    RealTeam::claude(CCB, &json!({ "agents": { "stopGraceMs": 2000 } }))
}

fn take(task: usize) -> Step {
    let input = json!({ "taskId": task.to_string(), "status": "in_progress" });
    Step::tool("mcp__ccb__TaskUpdate", input)
}

/// All requests to the model so far, as text.
fn asked(team: &RealTeam) -> String {
    let all = team.world.model.scripted();
    all.iter().map(|one| one.body.to_string()).collect()
}

pub(crate) fn a_whole_life_from_a_task_to_a_copy() {
    let team = team();
    let home = &team.home;
    home.create("job");
    let gates = home.path();
    let mut steps = vec![
        take(1).usage(100, 10),
        Step::tool("Bash", shell("echo by-the-agent > made.txt")).usage(100, 10),
    ];
    let tools: Vec<String> = (0..30).map(|n| format!("a{n}")).collect();
    for gate in &tools {
        steps.push(Step::tool("Bash", shell(&waiting(gates, gate))).usage(100, 10));
    }
    steps.push(Step::text("first: {{last}}").usage(100, 10));
    let id = team.spawn(&prompt("FIRST WORDS", &steps));
    is_waiting(gates, "a0");
    let task = home.ok(&["task", "show", "1"])["task"].clone();
    assert_eq!(task["status"], "in_progress", "{task}");
    assert_eq!(task["owner"], id, "it claimed it with our tool: {task}");
    assert!(team.tree(&id).join("made.txt").exists());
    // A message in the middle of a turn arrives with the tool's result.
    home.ok(&["agent", "send", &id, "FROM THE SIDE"]);
    for gate in &tools {
        // On its way it may miss some of them: a step takes less than a tenth of a second here.
        let_go(gates, gate, "open");
    }
    team.settle(&id);
    assert!(asked(&team).contains("FROM THE SIDE"));
    let told = team.told(&id);
    assert_eq!(told["status"], "completed", "{told}");
    let result = told["result"].as_str().unwrap();
    assert!(result.contains("first: open"), "{told}");
    assert!(result.contains("free again: task #1"), "{told}");
    assert_eq!(told["usage"]["totalTokens"], 3630, "{told}");
    assert_eq!(told["usage"]["toolUses"], 32, "{told}");
    let tree = told["worktree"]["worktreePath"].as_str().unwrap();
    assert_eq!(team.tree(&id).to_str(), Some(tree), "{told}");
    // A message resumes an ended one; an urgent one interrupts.
    let more = [Step::tool("Bash", shell(&waiting(gates, "b"))).usage(5, 5)];
    let sent = home.ok(&["agent", "send", &id, &prompt("SECOND WORDS", &more)]);
    assert_eq!(sent["message"]["resumed"], true, "{sent}");
    is_waiting(gates, "b");
    let now = prompt("Now.", &[Step::text("At once.").usage(5, 5)]);
    home.ok(&["agent", "send", &id, "--priority", "now", &now]);
    team.settle(&id);
    let told = team.told(&id);
    assert_eq!(told["status"], "completed", "{told}");
    assert!(
        told["result"].as_str().unwrap().contains("At once."),
        "{told}"
    );
    let exit = home.run_exit(&id).unwrap();
    assert_eq!(exit["life"], 2, "{exit}");
    assert!(
        exit["usage"]["inputTokens"].as_u64().unwrap() < 3300,
        "what the first life used is not its own: {exit}"
    );
    // A copy knows what its original knows, and works somewhere else.
    let steps = [
        Step::tool("Bash", shell("pwd > where.txt")).usage(7, 7),
        Step::text("A copy.").usage(7, 7),
    ];
    let order = prompt("FOR THE COPY", &steps);
    let copy = team.ask(&["--fork", &id, "--isolation", "worktree", &order]);
    assert_eq!(copy["content"], "A copy.", "{copy}");
    assert_eq!(copy["totalTokens"], 28, "{copy}");
    let place = copy["worktree"]["worktreePath"].as_str().unwrap();
    assert_ne!(place, tree);
    let body = team.world.model.scripted().last().unwrap().body.to_string();
    assert!(body.contains("FIRST WORDS") && body.contains("fork-boilerplate"));
    // And its original is unchanged.
    let last = [Step::text("Still me.")];
    home.ok(&["agent", "send", &id, &prompt("LAST WORDS", &last)]);
    team.settle(&id);
    let body = team.world.model.scripted().last().unwrap().body.to_string();
    assert!(body.contains("SECOND WORDS") && !body.contains("FOR THE COPY"));
    assert!(team.left_of(&id).is_empty());
}

pub(crate) fn whoever_is_killed_nothing_is_left() {
    let team = team();
    let home = &team.home;
    for (which, status) in [("guard", "lost"), ("host", "lost"), ("pid", "failed")] {
        let task = home.create(which);
        let steps = [
            take(usize::try_from(task).unwrap()),
            Step::tool("Bash", shell(&waiting(home.path(), which))),
        ];
        let id = team.spawn(&prompt("Go.", &steps));
        is_waiting(home.path(), which);
        assert!(team.left_of(&id).len() >= 3, "claude, its tool, its server");
        kill(home.run_process(&id, which), Signal::KILL);
        team.settle(&id);
        let exit = home.run_exit(&id).unwrap();
        assert_eq!(exit["status"], status, "{which}: {exit}");
        wait_until(LONG, "everything to be gone", || {
            team.left_of(&id).is_empty()
        });
        let task = home.ok(&["task", "show", &task.to_string()])["task"].clone();
        assert_eq!(task["status"], "pending", "{which}: {task}");
        let told = home.notifications();
        let told = told.iter().filter(|told| told.0 == id);
        assert_eq!(told.count(), 1, "{which}");
    }
}

pub(crate) fn twelve_at_once_take_each_task_once() {
    let team = team();
    let (home, count) = (&team.home, 12);
    for n in 1..=count {
        home.create(&format!("job {n}"));
    }
    let gate = |n: usize| format!("gate-{n}");
    // Three want each task.
    let ids: Vec<String> = (0..count)
        .map(|n| {
            let mut steps: Vec<Step> = (0..3).map(|k| take((n + k) % count + 1)).collect();
            steps.push(Step::tool("Bash", shell(&waiting(home.path(), &gate(n)))));
            steps.push(Step::text("done"));
            team.spawn(&prompt("Go.", &steps))
        })
        .collect();
    for n in 0..count {
        let ready = home.path().join(format!("{}.ready", gate(n)));
        wait_until(LONG * 2, "all to be at work", || ready.exists());
    }
    let tasks = home.ok(&["task", "list"])["tasks"].clone();
    let tasks = tasks.as_array().unwrap();
    assert_eq!(tasks.len(), count);
    for task in tasks {
        assert_eq!(task["status"], "in_progress", "{task}");
        let owner = task["owner"].as_str().unwrap().to_owned();
        assert!(ids.contains(&owner), "{task}");
    }
    // There are as many winners as tasks.
    let mut taken = 0;
    for id in &ids {
        let log = std::fs::read_to_string(home.run_dir(id).join("transcript.jsonl")).unwrap();
        let results = log
            .lines()
            .filter_map(|line| serde_json::from_str(line).ok());
        let results = results.filter(|record: &Value| {
            let text = record.to_string();
            text.contains("tool_result")
                && text.contains("in_progress")
                && !text.contains("already_claimed")
        });
        taken += results.count();
    }
    assert_eq!(taken, count);
    for n in 0..count {
        let_go(home.path(), &gate(n), "open");
    }
    for id in &ids {
        team.settle(id);
        assert_eq!(home.run_exit(id).unwrap()["status"], "completed");
        assert!(team.left_of(id).is_empty());
    }
}

pub(crate) fn a_refusal_is_waited_for_and_the_work_goes_on() {
    let quota = json!({ "firstPauseMs": 500, "longestPauseMs": 500 });
    let team = RealTeam::claude(CCB, &json!({ "limits": { "quota": quota } }));
    let id = team.spawn(&prompt("Go.", &[Step::http(429).retry_after(1)]));
    wait_until(LONG, "it to be held back", || {
        let stalled = team.home.run_meta(&id)["stalled"].clone();
        stalled
            .as_str()
            .is_some_and(|why| why.starts_with("the provider refuses"))
    });
    // It continues with the messages that came meanwhile.
    let more = prompt("More.", &[Step::text("it went on")]);
    team.home.ok(&["agent", "send", &id, &more]);
    team.settle(&id);
    let exit = team.home.run_exit(&id).unwrap();
    assert_eq!(exit["status"], "completed", "{exit}");
    assert_eq!(exit["result"], "it went on", "{exit}");
    let log = team.home.run(&["agent", "logs", &id]).stdout;
    assert!(log.contains("held back"), "{log}");
}

pub(crate) fn limits_end_it_by_whoever_sees_it_first() {
    let team = team();
    let tool = |n: u32| Step::tool("Bash", shell(&format!("echo {n}"))).usage(1000, 100);
    let steps = [tool(1), tool(2), tool(3), tool(4), Step::text("never")];
    let prompt = prompt("Go.", &steps);
    for flags in [["--max-turns", "2"], ["--max-cost", "0.000001"]] {
        let mut args = vec!["--json", "-C", team.repo.main().to_str().unwrap()];
        args.extend([
            "agent",
            "spawn",
            "--runtime",
            "claude",
            "--type",
            "free",
            "--wait",
        ]);
        args.extend(flags);
        args.push(&prompt);
        let answer = team.home.run(&args);
        assert_eq!(answer.code, Some(6), "{flags:?}: {answer:?}");
        assert_eq!(answer.json()["agent"]["reason"], "limit", "{answer:?}");
    }
}

/// An agent copies itself twice in one turn, hears of both, and ends. The requests of the copies to
/// their models differ in the order alone.
pub(crate) fn copies_share_every_byte_up_to_their_order() {
    let team = team();
    let order = |words: &str| {
        json!({
            "description": words, "subagent_type": "fork",
            "prompt": prompt(words, &[Step::text(format!("{words} is done"))]),
        })
    };
    let steps = [
        Step::tool("mcp__ccb__TaskList", json!({})),
        Step::tool("mcp__ccb__Agent", order("ORDER ONE"))
            .and_tool("mcp__ccb__Agent", order("ORDER TWO")),
        Step::text("Both are working."),
        Step::text("I heard of one."),
        Step::text("I heard of both."),
    ];
    let id = team.spawn(&prompt("FIRST WORDS", &steps));
    team.settle(&id);
    let told = team.told(&id);
    assert_eq!(told["status"], "completed", "{told}");
    assert!(
        told["result"].as_str().unwrap().contains("I heard of"),
        "{told}"
    );
    let copies: Vec<Value> = team
        .world
        .model
        .scripted()
        .into_iter()
        .map(|request| request.body)
        .filter(|body| body.to_string().contains("<fork-boilerplate>"))
        .collect();
    assert_eq!(copies.len(), 2);
    let parts = copies.iter().map(|body| {
        let mut body = body.clone();
        let messages = body["messages"].as_array_mut().unwrap();
        let mut last = messages.pop().unwrap();
        let order = match &mut last["content"] {
            Value::Array(blocks) => blocks.pop().unwrap(),
            text => text.take(),
        };
        (
            body["system"].clone(),
            body["tools"].clone(),
            body["messages"].clone(),
            last,
            order,
        )
    });
    let parts: Vec<_> = parts.collect();
    assert_eq!(parts[0].0, parts[1].0, "the same prompt");
    assert_eq!(parts[0].1, parts[1].1, "the same tools");
    assert_eq!(parts[0].2, parts[1].2, "the same conversation");
    assert_eq!(parts[0].3, parts[1].3);
    assert_ne!(parts[0].4, parts[1].4, "an order of its own");
    assert!(parts[0].2.to_string().contains("FIRST WORDS"));
}
