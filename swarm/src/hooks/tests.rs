use std::time::{Duration, Instant};

use serde_json::json;
use store::atomic::{self, Durability};
use tokio::sync::mpsc::{self, UnboundedReceiver};

use super::*;
use crate::definitions::{Definitions, Sources};
use crate::process::Processes;

fn put(path: &Path, text: &str) {
    let dir = path.parent().unwrap();
    store::home::create_dir(dir).unwrap();
    atomic::replace(dir, path, text.as_bytes(), Durability::Relaxed).unwrap();
}

/// Hooks of the user and the repository, as JSON of `hooks`.
fn load(user: &Value, project: &Value) -> (tempfile::TempDir, Hooks) {
    let dir = tempfile::tempdir().unwrap();
    let files = HookFiles {
        user: Some(dir.path().join("home/settings.json")),
        project: Some(dir.path().join("repo/settings.json")),
        local: Some(dir.path().join("repo/settings.local.json")),
    };
    for (path, hooks) in [(&files.user, user), (&files.project, project)] {
        let text = json!({"model": "x", "hooks": hooks}).to_string();
        put(path.as_ref().unwrap(), &text);
    }
    (dir, Hooks::load(&files))
}

/// One group with these commands.
fn commands(list: &[&str]) -> Value {
    let hooks: Vec<Value> = list
        .iter()
        .map(|command| json!({"type": "command", "command": command}))
        .collect();
    json!([{ "hooks": hooks }])
}

fn selected(hooks: &Hooks, event: HookEvent, agent: Option<&str>, trust: bool) -> Vec<String> {
    let selection = hooks.select(event, agent, |_| trust);
    let commands = selection.run.iter().map(|hook| hook.command.clone());
    commands.collect()
}

#[test]
fn matchers_look_at_the_type_of_agent() {
    let user = json!({"SubagentStart": [
        {"matcher": "Plan|Explore", "hooks": [{"type": "command", "command": "a"}]},
        {"matcher": "^rev", "hooks": [{"command": "b", "timeout": 1.5}]},
        {"command": "c"},
    ], "PreToolUse": "not ours to read"});
    let (_dir, hooks) = load(&user, &Value::Null);
    assert_eq!(hooks.problems, []);
    let start = |agent| selected(&hooks, HookEvent::SubagentStart, Some(agent), false);
    assert_eq!(start("Plan"), ["a", "c"]);
    assert_eq!(start("reviewer"), ["b", "c"]);
    assert_eq!(start("Planner"), ["c"]);
    assert_eq!(hooks.all[1].timeout, Duration::from_millis(1500));
    assert_eq!(hooks.all[2].timeout, DEFAULT_TIMEOUT);
}

#[test]
fn the_same_command_runs_once_and_untrusted_ones_do_not_replace_it() {
    let user = json!({"TaskCreated": commands(&["same", "mine"])});
    let project = json!({"TaskCreated": commands(&["theirs", "same"])});
    let (_dir, hooks) = load(&user, &project);
    let created = |trust| selected(&hooks, HookEvent::TaskCreated, None, trust);
    assert_eq!(created(true), ["mine", "theirs", "same"]);
    assert_eq!(
        created(false),
        ["same", "mine"],
        "the user's own always run"
    );
    let selection = hooks.select(HookEvent::TaskCreated, None, |_| false);
    assert_eq!(selection.untrusted.len(), 2);
    let last = hooks.select(HookEvent::TaskCreated, None, |_| true);
    assert!(last.run[2].origin.is_repository(), "the last level wins");
}

#[test]
fn what_is_no_hook_is_reported_and_the_rest_counts() {
    let user = json!({
        "TaskCreated": [
            {"hooks": [
                {"type": "prompt", "prompt": "x"},
                {"type": "command", "command": ""},
                {"type": "command", "command": "x", "if": "Bash(git *)"},
                {"type": "command", "command": "x", "timeout": 0},
                {"type": "command", "command": "x", "shell": "powershell"},
                {"type": "command", "command": "good", "shell": "bash", "unknown": 1},
            ]},
            {"matcher": "(", "hooks": []},
            {"matcher": 1, "hooks": []},
            {"nothing": 1},
            7,
        ],
        "TaskCompleted": {},
    });
    let (dir, hooks) = load(&user, &Value::Null);
    assert_eq!(hooks.problems.len(), 10, "{:#?}", hooks.problems);
    assert_eq!(hooks.all.len(), 1);
    assert!(hooks.unreadable().is_none());
    let path = dir.path().join("home/settings.json");
    for bad in ["{", "[]", r#"{"hooks": []}"#] {
        put(&path, bad);
        let hooks = Hooks::load(&HookFiles {
            user: Some(path.clone()),
            ..HookFiles::default()
        });
        assert!(hooks.unreadable().is_some(), "{bad}");
    }
}

#[test]
fn an_agents_own_hooks_count_for_it() {
    let agent = json!({"a": {"description": "d", "prompt": "p", "hooks": {
        "Stop": commands(&["at its end"]),
        "SubagentStop": commands(&["also"]),
        "PreToolUse": commands(&["not ours"]),
    }}});
    let all = Definitions::load(&Sources {
        json: Some(agent.to_string()),
        ..Sources::default()
    });
    let hooks = Hooks::default().with_agent(all.get("a").unwrap());
    assert_eq!(hooks.problems, []);
    let stop = selected(&hooks, HookEvent::SubagentStop, Some("a"), false);
    assert_eq!(stop, ["also", "at its end"]);
}

#[test]
fn three_blocks_in_a_row_are_enough() {
    let mut guard = LoopGuard::default();
    let stop = HookEvent::SubagentStop;
    assert!(!guard.blocked(stop, "a"));
    assert!(!guard.blocked(stop, "a"));
    assert!(!guard.blocked(stop, "b"), "another hook");
    assert!(guard.blocked(stop, "a"));
    guard.passed(stop);
    assert!(!guard.blocked(stop, "a"), "counted anew");
}

/// Runs these commands as hooks of the user.
fn run_all(event: HookEvent, hooks: &Value) -> (Outcome, Vec<Late>) {
    let (dir, hooks) = load(&json!({ event.as_str(): hooks }), &Value::Null);
    assert_eq!(hooks.problems, []);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let (sender, receiver) = mpsc::unbounded_channel();
        let environment = std::env::vars_os().filter(|(name, _)| name == "PATH");
        let processes = Processes::own().unwrap();
        let runner = Runner::new(processes, environment.collect(), sender);
        let input = HookInput {
            cwd: dir.path().to_owned(),
            project: dir.path().join("repo"),
            session_id: Some("s-1".into()),
            task_id: Some("7".into()),
            task_subject: Some("a \"subject\"".into()),
            ..HookInput::default()
        };
        let selection = hooks.select(event, None, |_| true);
        let outcome = runner.run(event, &selection.run, &input).await;
        drop(runner);
        (outcome, all_late(receiver).await)
    })
}

/// All answers until the last hook has ended.
async fn all_late(mut receiver: UnboundedReceiver<Late>) -> Vec<Late> {
    let mut all = Vec::new();
    while let Some(late) = receiver.recv().await {
        all.push(late);
    }
    all
}

fn run(event: HookEvent, command: &str) -> Outcome {
    run_all(event, &commands(&[command])).0
}

#[test]
fn hooks_are_told_what_it_is_about() {
    let outcome = run(
        HookEvent::TaskCreated,
        r#"read -r line; echo "$line|$CLAUDE_PROJECT_DIR|$CCB_HOOK|$(pwd)" >&2; exit 2"#,
    );
    let (command, reason) = outcome.block.unwrap();
    assert!(command.starts_with("read -r"));
    let mut parts = reason.split('|');
    let said: Value = serde_json::from_str(parts.next().unwrap()).unwrap();
    assert_eq!(said["hook_event_name"], "TaskCreated");
    assert_eq!(said["task_subject"], "a \"subject\"");
    assert_eq!(said["session_id"], "s-1");
    assert_eq!(said.get("agent_id"), None);
    assert!(parts.next().unwrap().ends_with("/repo"));
    assert_eq!(parts.next(), Some("1"));
    assert_eq!(
        Path::new(parts.next().unwrap()),
        Path::new(said["cwd"].as_str().unwrap())
    );
}

#[test]
fn exit_codes_pass_block_and_fail() {
    let event = HookEvent::TaskCompleted;
    assert_eq!(run(event, "true"), Outcome::default());
    assert!(run(event, "echo plain text").passes());
    let blocked = run(event, "echo why >&2; exit 2").block.unwrap();
    assert_eq!(blocked.1, "why");
    let silent = run(event, "exit 2").block.unwrap();
    assert!(silent.1.contains("no reason"));
    let failed = run(event, "echo oops >&2; exit 1");
    assert!(failed.passes());
    assert_eq!(failed.failures[0].1, "oops");
    let missing = run(event, "/no/such/program");
    assert!(missing.passes() && missing.failures.len() == 1);
    // Exit code 2 wins over what is printed.
    let both = run(
        event,
        r#"echo '{"decision":"approve"}'; echo no >&2; exit 2"#,
    );
    assert_eq!(both.block.unwrap().1, "no");
    let killed = run(event, "kill -9 $$");
    assert!(!killed.passes(), "nobody knows what it would have said");
    let killed = run(HookEvent::SubagentStop, "kill -9 $$");
    assert!(killed.passes() && killed.failures.len() == 1);
}

#[test]
fn a_hook_in_the_background_can_keep_quiet() {
    let said = |suppress_output| super::answer::Answer {
        message: Some("m".into()),
        suppress_output,
        ..Default::default()
    };
    assert_eq!(said(false).in_words().as_deref(), Some("m"));
    assert_eq!(said(true).in_words(), None);
    let failed = super::answer::Answer {
        failure: Some("it died".into()),
        ..said(true)
    };
    assert_eq!(failed.in_words().as_deref(), Some("it died"));
}

#[test]
fn output_says_more() {
    let say = |event, said: Value| run(event, &format!("echo '{said}'"));
    let created = HookEvent::TaskCreated;
    let blocked = say(created, json!({"decision": "block", "reason": "r"}));
    assert_eq!(blocked.block.unwrap().1, "r");
    let stopped = say(created, json!({"continue": false, "stopReason": "s"}));
    assert_eq!(stopped.block.unwrap().1, "s");
    let said = json!({"systemMessage": "m", "suppressOutput": true, "hookSpecificOutput":
        {"hookEventName": "SubagentStart", "additionalContext": "c"}});
    let start = say(HookEvent::SubagentStart, said.clone());
    assert_eq!(
        (start.context, start.messages),
        (vec!["c".into()], vec!["m".into()])
    );
    assert_eq!(
        say(created, said).context,
        [""; 0],
        "meant for another event"
    );
    let tree = HookEvent::WorktreeCreate;
    let path = json!({"hookSpecificOutput": {"worktreePath": "/x"}});
    assert_eq!(say(tree, path).worktree_path, Some("/x".into()));
    assert_eq!(
        run(tree, "echo hello; echo /y").worktree_path,
        Some("/y".into())
    );
    assert!(!run(tree, "exit 1").passes());
}

#[test]
fn several_run_at_the_same_time_and_the_first_no_counts() {
    // Each waits for the other: one after the other they would never end.
    let meet = |own: &str, other: &str| {
        format!("touch {own}; while [ ! -e {other} ]; do sleep 0.01; done; echo {own} >&2; exit 2")
    };
    let (one, two) = (meet("one", "two"), meet("two", "one"));
    let (outcome, _) = run_all(HookEvent::TaskCreated, &commands(&[&one, &two]));
    assert_eq!(outcome.block.unwrap(), (one, "one".into()));
}

#[test]
fn a_veto_that_takes_too_long_blocks_and_its_processes_are_gone() {
    let dir = tempfile::tempdir().unwrap();
    let pid_file = dir.path().join("pid");
    let command = format!("sleep 600 & echo $! > {}; wait", pid_file.display());
    let hooks = json!([{"command": command, "timeout": 2}]);
    let (outcome, _) = run_all(HookEvent::TaskCompleted, &hooks);
    assert!(outcome.block.unwrap().1.contains("longer than 2 s"));
    let pid = std::fs::read_to_string(&pid_file).unwrap();
    let proc = format!("/proc/{}/stat", pid.trim());
    let deadline = Instant::now() + Duration::from_secs(20);
    // It is not our child, so it may be a zombie for a while.
    let gone = || match std::fs::read_to_string(&proc) {
        Ok(stat) => stat.contains(") Z"),
        Err(_) => true,
    };
    while !gone() {
        assert!(Instant::now() < deadline, "still there");
        std::thread::yield_now();
    }
    let hooks = json!([{"command": "sleep 600", "timeout": 0.1}]);
    let (outcome, _) = run_all(HookEvent::TeammateIdle, &hooks);
    assert!(outcome.passes(), "it may end although nobody answered");
}

#[test]
fn what_a_hook_leaves_running_is_not_waited_for() {
    // It ends when the directory has gone with the test.
    let dir = tempfile::tempdir().unwrap();
    let wait = format!("while [ -d {} ]; do sleep 0.05; done", dir.path().display());
    let outcome = run(
        HookEvent::TaskCreated,
        &format!("( {wait} ) & echo no >&2; exit 2"),
    );
    assert_eq!(outcome.block.unwrap().1, "no");
}

#[test]
fn a_hook_in_the_background_answers_later() {
    let said = r#"echo '{"async":true}'; echo '{"systemMessage":"later"}'; exit 0"#;
    let (outcome, late) = run_all(HookEvent::TaskCompleted, &commands(&[said]));
    assert_eq!(outcome, Outcome::default());
    assert_eq!(late[0].answer.message.as_deref(), Some("later"));
    assert!(!late[0].wakes);
    // It runs on while no caller waits: the second ends only after the first was answered.
    let hooks = json!([
        {"command": "echo late >&2; exit 2", "asyncRewake": true},
        {"command": "echo fine; exit 1", "async": true},
        {"command": "echo now >&2; exit 2"},
    ]);
    let (outcome, mut late) = run_all(HookEvent::SubagentStop, &hooks);
    assert_eq!(outcome.block.unwrap().1, "now");
    late.sort_by_key(|late| !late.wakes);
    assert_eq!(late.len(), 2);
    assert_eq!(
        (late[0].wakes, late[0].answer.block.as_deref()),
        (true, Some("late"))
    );
    assert!(!late[1].wakes);
}

#[test]
fn much_output_and_unread_input_do_no_harm() {
    let outcome = run(
        HookEvent::TaskCreated,
        "head -c 5000000 /dev/zero; head -c 5000000 /dev/zero >&2; exit 0",
    );
    assert!(outcome.passes());
}

#[test]
fn a_reason_is_no_longer_than_a_message() {
    let outcome = run(
        HookEvent::TaskCreated,
        "head -c 200000 /dev/zero | tr '\\0' x >&2; exit 2",
    );
    let reason = outcome.block.unwrap().1;
    assert!(
        reason.len() < 20_000 && reason.ends_with("[…]"),
        "{}",
        reason.len()
    );
}
