//! The engine decides who an agent is, whatever its variables, flags and processes say.

use harness::{Answer, Inside};
use serde_json::{Value, json};

use crate::CCB;

/// A teammate of the team that every scene has.
const ALICE: [&str; 2] = ["--name", "alice"];

fn scene() -> Inside {
    let scene = Inside::new(CCB);
    scene.home.ok(&["team", "join", "board", "--as", "bob"]);
    scene
}

/// Everything must be refused as none of its business.
fn all_refused(answers: &[Answer], lines: &[&str]) {
    for (answer, line) in answers.iter().zip(lines) {
        assert_eq!(answer.code, Some(4), "{line}: {answer:?}");
        assert!(
            answer.stdout.contains(r#""kind":"not_yours""#),
            "{line}: {answer:?}"
        );
    }
}

fn mail_of(scene: &Inside, whose: &str) -> Vec<Value> {
    let inbox = scene.home.ok(&["mail", "inbox", "--all", "--as", whose]);
    inbox["messages"].as_array().cloned().unwrap_or_default()
}

#[test]
fn mail_comes_from_the_run_whatever_the_environment_says() {
    let scene = scene();
    let home = scene.home.path().display();
    let bare = format!("env -i PATH=\"$PATH\" CCB_HOME={home} CCB_AGENT=team-lead");
    let lines = [
        "CCB_AGENT=team-lead ccb mail send bob variable",
        "CCB_AGENT=team-lead CCB_RUN_ID=a0000000000000000 ccb mail send bob no-run",
        "env -u CCB_RUN_ID -u CCB_AGENT $CCB mail send bob unset",
        &format!("{bare} CLAUDE_CODE_TEAM_NAME=board $CCB mail send bob cleared"),
        &format!("{bare} $CCB mail send bob no-team"),
        &format!("{bare} setsid -w $CCB mail send bob session"),
        // Its parent is gone before it reads.
        &format!(
            "( {bare} setsid sh -c 'sleep 0.2; '$CCB' mail send bob orphan; echo >orphan' & ) ; \
             while ! test -e orphan; do sleep 0.05; done"
        ),
    ];
    let answers = scene.agent(&ALICE, &lines);
    for (answer, line) in answers.iter().zip(lines) {
        assert_eq!(answer.code, Some(0), "{line}: {answer:?}");
    }
    let mail = mail_of(&scene, "bob");
    let texts: Vec<&str> = mail.iter().map(|m| m["text"].as_str().unwrap()).collect();
    let all = [
        "variable", "no-run", "unset", "cleared", "no-team", "session", "orphan",
    ];
    assert_eq!(texts, all);
    for message in &mail {
        assert_eq!(message["from"], "alice", "{message}");
    }
}

#[test]
fn another_run_is_not_taken_over_by_naming_it() {
    let scene = scene();
    let bob = scene.agent(&["--name", "carol"], &["echo $CCB_RUN_ID"]);
    let carol = bob[0].stdout.trim().to_owned();
    let dir = scene.home.run_dir(&carol);
    let runs = dir.parent().unwrap();
    // A program that is called like the host of that run.
    let fake = scene.dir().join("__host");
    std::fs::write(&fake, format!("{CCB} mail send bob pretended\nexit 0\n")).unwrap();
    let lines = [
        &format!("CCB_RUN_ID={carol} CCB_AGENT=carol ccb mail send bob named"),
        &format!(
            "env -u CCB_RUN_ID -u CCB_AGENT sh __host {}",
            runs.display()
        ),
    ];
    let lines: Vec<&str> = lines.iter().map(|line| line.as_str()).collect();
    scene.agent(&ALICE, &lines);
    let mail = mail_of(&scene, "bob");
    let from: Vec<(&str, &str)> = mail
        .iter()
        .map(|m| (m["text"].as_str().unwrap(), m["from"].as_str().unwrap()))
        .collect();
    assert_eq!(from, [("named", "alice"), ("pretended", "alice")]);
    // Outside every run no process is an agent, but one with the name of a run's host is no person
    // either.
    let mut command = std::process::Command::new("sh");
    command
        .arg("__host")
        .arg(runs)
        .current_dir(scene.dir())
        .env("CCB_HOME", scene.home.path());
    let output = command.output().unwrap();
    assert!(output.status.success());
    assert_eq!(mail_of(&scene, "bob").len(), 2, "{output:?}");
}

#[test]
fn flags_that_say_otherwise_are_refused() {
    let scene = scene();
    scene.home.ok(&["team", "create", "others"]);
    let other = tempfile::tempdir().unwrap();
    let home = format!("ccb --json --home {} task list", other.path().display());
    let lines = [
        "ccb --json --as bob mail send team-lead x",
        "ccb --json --as bob mail inbox",
        "ccb --json --team others mail send team-lead x",
        "ccb --json --team others task create x",
        "ccb --json --list others task create x",
        &home,
    ];
    let lines_out = scene.agent(&ALICE, &lines);
    all_refused(&lines_out, &lines);
    // Its own identity may be named, and another list may be read. Variables count for nothing.
    let home = scene.home.path().display();
    let lines = [
        &format!("ccb --json --home {home} --team board --list board --as dora task create own"),
        "ccb --json --list others task list",
        "CCB_HOME=/nowhere CLAUDE_CODE_TEAM_NAME=others CLAUDE_CODE_TASK_LIST_ID=others \
         ccb --json task create mine",
    ];
    for (answer, line) in scene.agent(&["--name", "dora"], &lines).iter().zip(lines) {
        assert_eq!(answer.code, Some(0), "{line}: {answer:?}");
    }
    let subjects: Vec<Value> = scene.home.tasks_on_disk();
    let subjects: Vec<&str> = subjects
        .iter()
        .map(|task| task["subject"].as_str().unwrap())
        .collect();
    assert_eq!(subjects, ["own", "mine"]);
    assert!(!std::path::Path::new("/nowhere").exists());
}

#[test]
fn tasks_and_requests_of_others_are_theirs() {
    let scene = scene();
    let home = &scene.home;
    for subject in ["bobs", "free", "checked"] {
        home.create(subject);
    }
    home.ok(&["task", "claim", "1", "--as", "bob"]);
    home.ok(&["task", "update", "3", "--verify", "true"]);
    let ask = |from: &str, to: &str| {
        let mailbox = mailbox::Mailbox::new(
            &store::home::Home::new(home.path().to_owned()).unwrap(),
            &store::name::Name::new("team", "board").unwrap(),
            mailbox::MailOptions::default(),
        );
        let name = |name| store::name::Name::new("agent", name).unwrap();
        let question = mailbox::Question::Mode(mailbox::Mode {
            mode: "plan".into(),
        });
        let deadline = std::time::Duration::from_secs(300);
        mailbox
            .ask(&name(from), &name(to), question, deadline)
            .unwrap()
            .id
    };
    let (to_lead, to_bob) = (ask("bob", "team-lead"), ask("team-lead", "bob"));
    let lines = [
        &format!("CCB_AGENT=team-lead ccb --json mail approve {to_lead}"),
        &format!("CCB_AGENT=bob ccb --json mail reject {to_bob} --feedback no"),
        "ccb --json task done 1 --force",
        "ccb --json task release 1 --force",
        "ccb --json task rm 1 --force",
        "ccb --json task rm 3",
        "ccb --json task update 1 --owner alice --force",
        "ccb --json task update 2 --status in_progress --owner bob",
        "ccb --json task reset --force",
        "ccb --json task unblock 1 2",
    ]
    .map(str::to_owned);
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    all_refused(&scene.agent(&ALICE, &lines), &lines);
    // Without `--force` the board itself refuses.
    let lines = [
        "CCB_AGENT=bob ccb --json task done 1",
        "CCB_AGENT=bob ccb --json task release 1",
        "ccb --json task update 1 --owner alice",
        "CCB_AGENT=bob ccb --json task claim 1",
    ];
    for answer in scene.agent(&["--name", "dora"], &lines) {
        assert_eq!(answer.code, Some(4), "{answer:?}");
        assert!(answer.stdout.contains("already_claimed"), "{answer:?}");
    }
    let tasks = home.tasks_on_disk();
    assert_eq!(tasks.len(), 3);
    assert_eq!(
        (&tasks[0]["owner"], &tasks[0]["status"]),
        (&json!("bob"), &json!("in_progress"))
    );
    for request in home.ok(&["mail", "requests"])["requests"]
        .as_array()
        .unwrap()
    {
        assert_eq!(request["state"], "pending", "{request}");
    }
    // A person outside of every run still answers for any member.
    home.ok(&["mail", "approve", &to_lead, "--as", "team-lead"]);
}

/// Calls of tools in one connection to a server, as a command line.
fn tools(server: &str, calls: &[(&str, Value)]) -> String {
    let mut lines = vec![json!({
        "jsonrpc": "2.0", "id": 0, "method": "initialize",
        "params": {"protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": {"name": "t", "version": "1"}},
    })];
    lines.push(json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    for (n, (tool, arguments)) in calls.iter().enumerate() {
        lines.push(json!({
            "jsonrpc": "2.0", "id": n + 1, "method": "tools/call",
            "params": {"name": tool, "arguments": arguments},
        }));
    }
    let lines: String = lines.iter().map(|line| format!("{line}\n")).collect();
    format!("{server} <<'EOF'\n{lines}EOF")
}

#[test]
fn the_server_serves_the_role_of_the_run_and_gives_nobody_elses_mail() {
    let scene = scene();
    let secret = [
        "mail",
        "send",
        "team-lead",
        "for the lead alone",
        "--as",
        "bob",
    ];
    scene.home.ok(&secret);
    scene.home.ok(&["mail", "send", "bob", "for bob alone"]);
    let list = [("TaskList", json!({}))];
    let lines = [
        tools("ccb --json mcp --role lead", &list),
        tools("ccb --json mcp --role coordinator", &list),
        tools("CCB_AGENT=team-lead ccb --json mcp --role lead", &list),
        tools(
            "env -u CCB_RUN_ID -u CCB_AGENT $CCB --json --team board mcp --role lead",
            &list,
        ),
        tools("ccb --json --as bob mcp --role teammate", &list),
        tools("CCB_AGENT=bob ccb mcp --role teammate", &list),
    ];
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    let answers = scene.agent(&ALICE, &lines);
    all_refused(&answers[..5], &lines);
    assert_eq!(answers[5].code, Some(0), "{answers:?}");
    for answer in &answers {
        assert!(!answer.stdout.contains("alone"), "{answer:?}");
    }
    for whose in ["team-lead", "bob"] {
        let mail = mail_of(&scene, whose);
        let waiting = mail.iter().filter(|mail| {
            let text = mail["text"].as_str().unwrap_or_default();
            text.contains("alone") && mail["state"] == "queued"
        });
        assert_eq!(waiting.count(), 1, "{whose}: {mail:?}");
    }
}

#[test]
fn nothing_an_agent_can_set_or_clear_gives_it_the_users_word() {
    let place = harness::Workplace::new(CCB);
    harness::write(
        &place.repo.main().join(".claude/ccb.json"),
        &json!({"worktree": {"setup": "true"}}).to_string(),
    );
    let home = place.home.path().display().to_string();
    let bare = format!("env -i PATH=\"$PATH\" HOME={home} CCB_HOME={home}");
    let fake = place.home.path().join("elsewhere");
    let script = [
        "env -u CCB_RUN_ID CCB --json trust".to_owned(),
        "env -u CCB_RUN_ID -u CCB_HOOK -u CCB_AGENT CCB --json trust --revoke".to_owned(),
        format!("{bare} CCB --json trust"),
        format!("{bare} setsid -w CCB --json trust"),
        format!(
            "env -i PATH=\"$PATH\" HOME={0} CCB --json trust",
            fake.display()
        ),
        format!(
            "rm -f o; ( {bare} setsid sh -c 'sleep 0.2; CCB --json trust >o.tmp; mv o.tmp o' & ); \
             while ! test -e o; do sleep 0.05; done; cat o"
        ),
    ];
    let lines = script.map(|line| line.replace("CCB --json", &format!("{CCB} --json")));
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    let out = place.home.path().join("answers");
    let text: String = lines.iter().map(|line| format!("( {line}\n)\n")).collect();
    let script = place.home.path().join("script.sh");
    std::fs::write(&script, text).unwrap();
    let command = format!("sh {} >{} 2>&1; true", script.display(), out.display());
    place.ok(&["agent", "spawn", "--runtime", "shell", "--wait", &command]);
    let said = std::fs::read_to_string(out).unwrap();
    let refused = said.matches(r#""kind":"not_yours""#).count();
    assert_eq!(refused, lines.len(), "{said}");
    let shown = place.ok(&["trust", "--show"]);
    assert!(!shown.to_string().contains(r#""trusted":true"#), "{shown}");
    assert!(!fake.exists(), "no home is made elsewhere");
}

#[test]
fn a_process_with_nothing_but_the_mark_of_an_agent_is_no_person() {
    let scene = scene();
    // 2^62 and more: a run's processes have it as a limit.
    let limit = "--rttime=4611686018427387999:";
    let marked = |args: &[&str]| {
        let mut command = std::process::Command::new("prlimit");
        command.args([limit, CCB, "--json", "--team", "board"]);
        command.args(args).env("CCB_HOME", scene.home.path());
        Answer::of(command.output().expect("prlimit is part of every Linux"))
    };
    let line = "mail send bob x";
    all_refused(&[marked(&["mail", "send", "bob", "x"])], &[line]);
    assert_eq!(marked(&["task", "list"]).code, Some(0));
}

#[test]
fn an_agent_that_an_agent_starts_is_itself() {
    let scene = scene();
    let inner = format!("{CCB} mail send bob inner");
    let outer = format!("ccb agent spawn --runtime shell --name carol --wait '{inner}'");
    let answers = scene.agent(&ALICE, &[&outer, "ccb mail send bob outer"]);
    assert_eq!(answers[0].code, Some(0), "{answers:?}");
    let mail = mail_of(&scene, "bob");
    let from: Vec<(&str, &str)> = mail
        .iter()
        .map(|m| (m["text"].as_str().unwrap(), m["from"].as_str().unwrap()))
        .collect();
    assert_eq!(from, [("inner", "carol"), ("outer", "alice")]);
    // No agent gets the name of another member to be taken for that one.
    let lines = [
        "ccb --json agent spawn --runtime shell --name user --wait true",
        "ccb --json agent spawn --runtime shell --name engine --wait true",
        "ccb --json agent spawn --runtime shell --name bob --wait true",
        "ccb --json --team board agent spawn --runtime shell --name eve true",
    ];
    for (answer, line) in scene.agent(&["--name", "dora"], &lines).iter().zip(lines) {
        assert!(matches!(answer.code, Some(2 | 4)), "{line}: {answer:?}");
    }
    let members = scene.home.ok(&["team", "show", "board"]);
    assert!(!members.to_string().contains("eve"), "{members}");
}

#[test]
fn a_hook_that_runs_for_an_agent_acts_as_that_agent() {
    let scene = scene();
    let hook = format!("{CCB} mail send bob from-a-hook --as bob; {CCB} mail send bob from-a-hook");
    scene.home.hook("TaskCreated", &hook);
    scene.agent(&ALICE, &["ccb task create x"]);
    let mail = mail_of(&scene, "bob");
    let from: Vec<&str> = mail.iter().map(|m| m["from"].as_str().unwrap()).collect();
    assert_eq!(from, ["alice"]);
}

#[test]
fn a_worker_has_its_work_and_nothing_else() {
    let scene = scene();
    scene.home.create("free");
    let lines = [
        tools("ccb --json mcp --role teammate", &[("TaskList", json!({}))]),
        "ccb --json task create x".to_owned(),
        "ccb --json task claim 1".to_owned(),
        "ccb --json agent spawn --runtime shell --wait true".to_owned(),
        "ccb --json worktree create w".to_owned(),
    ];
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    let answers = scene.agent(&["--type", "worker"], &lines);
    all_refused(&answers, &lines);
    let answers = scene.agent(&["--type", "worker"], &["ccb task list", "ccb status"]);
    assert!(answers.iter().all(|it| it.code == Some(0)), "{answers:?}");
}
