//! Team sessions whose lead is an agent that uses ccb's tools, and whose teammates are agents, too.

use harness::runs::LONG;
use harness::script::{Do, Script};
use harness::team_session::SessionScene;
use harness::{Answer, wait_until};
use serde_json::{Value, json};

use crate::{CCB, FAKE_AGENT};

fn scene() -> SessionScene {
    let scene = SessionScene::new(CCB);
    scene
        .home
        .with_fake_runtime(FAKE_AGENT, r#""agents":{"stopGraceMs":300}"#);
    scene
}

fn session(scene: &SessionScene, lead: &Script, more: &[&str]) -> Answer {
    let prompt = scene.prompt(lead);
    let how = ["--json", "--runtime", scene.runtime()];
    scene.run(&[&how[..], more, &[prompt.as_str()]].concat())
}

harness::on_scripted_agents! {
    a_lead_hands_out_work_and_its_mates_do_it_in_trees_of_their_own,
    what_an_agent_says_is_done_counts_when_the_check_has_passed,
    a_lead_that_misbehaves_gets_errors_and_harms_nobody,
    a_lead_that_never_does_anything_ends_the_session,
    a_led_session_goes_on_after_two_kills_and_ends_green,
    what_the_lead_says_is_the_answer,
}

/// The output of a session, event by event.
fn events(answer: &Answer) -> Vec<Value> {
    let lines = answer.stdout.lines();
    lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// A teammate's work, as part of a task's description.
fn work(script: Script) -> String {
    script.done("did it").to_prompt()
}

fn a_lead_hands_out_work_and_its_mates_do_it_in_trees_of_their_own(scene: &SessionScene) {
    let one = work(Script::new().write("one", "1\n"));
    let two = work(
        Script::new()
            .write("two", "2\n")
            .run(&["sh", "-c", "cat one >> two"]),
    );
    let lead = Script::new()
        .call(
            "TaskCreate",
            json!({"subject": "one", "description": one,
                   "metadata": {"ccb": {"verify": "grep -qx 1 one"}}}),
        )
        .call(
            "TaskCreate",
            json!({"subject": "two", "description": two, "addBlockedBy": ["1"],
                   "metadata": {"ccb": {"verify": "grep -qx 1 two"}}}),
        )
        .done("handed out")
        .serve();
    let answer = session(scene, &lead, &["--mates", "2"]);
    assert_eq!(answer.code, Some(0), "{answer:?}");
    for id in [1, 2] {
        let task = scene.file(id);
        assert_eq!(task["status"], "completed", "{task}");
        assert_eq!(task["metadata"]["ccb"]["result"]["check"]["passed"], true);
    }
    assert_eq!(scene.repo.git(&["show", "HEAD:two"]), "2\n1\n");
    assert_eq!(scene.trees(), Vec::<String>::new(), "{answer:?}");
    scene.await_nobody();
    // The lead was notified of each, once, and has read it.
    let mut told = scene.home.notifications();
    told.retain(|(_, status)| status == "completed");
    assert_eq!(told.len(), 2, "{told:?}");
    let inbox = scene.home.ok(&["mail", "inbox", "--as", "team-lead"]);
    assert_eq!(inbox["messages"], json!([]), "nothing is unread");
}

fn what_an_agent_says_is_done_counts_when_the_check_has_passed(scene: &SessionScene) {
    let lies = Script::new()
        .call("TaskUpdate", json!({"taskId": "1", "status": "completed"}))
        .done("all done");
    let lead = Script::new()
        .call(
            "TaskCreate",
            json!({"subject": "one", "description": lies.to_prompt(),
                   "metadata": {"ccb": {"verify": "test -e proof"}}}),
        )
        .done("handed out")
        .serve();
    let answer = session(scene, &lead, &["--attempts", "1"]);
    assert_eq!(answer.code, Some(1), "{answer:?}");
    let task = scene.file(1);
    assert_eq!(task["status"], "pending", "{task}");
    let why = task["metadata"]["ccb"]["parked"]["reason"]
        .as_str()
        .unwrap();
    assert!(why.contains("test -e proof"), "{why}");
}

fn a_lead_that_misbehaves_gets_errors_and_harms_nobody(scene: &SessionScene) {
    let lead = Script::new()
        .call(
            "TaskCreate",
            json!({"subject": "a", "description": "", "metadata": {"ccb": {"run": "true"}}}),
        )
        .call(
            "TaskCreate",
            json!({"subject": "b", "description": "", "metadata": {"ccb": {"run": "true"}}}),
        )
        .call("TaskUpdate", json!({"taskId": "2", "addBlockedBy": ["1"]}))
        // A cycle, a message to itself, an end to itself, an unknown task.
        .try_call("TaskUpdate", json!({"taskId": "1", "addBlockedBy": ["2"]}))
        .try_call(
            "SendMessage",
            json!({"to": "team-lead", "message": "hi", "summary": "me"}),
        )
        .try_call("TaskStop", json!({"task_id": "team-lead"}))
        .try_call("TaskUpdate", json!({"taskId": "99", "status": "completed"}))
        .done("tried")
        .serve();
    let answer = session(scene, &lead, &[]);
    assert_eq!(answer.code, Some(0), "{answer:?}");
    for id in [1, 2] {
        assert_eq!(scene.status(id), "completed");
    }
    assert_eq!(scene.file(1)["blockedBy"], json!([]));
    scene.await_nobody();
}

#[test]
fn a_lead_that_starts_agents_without_end_is_held_to_the_limit() {
    let scene = SessionScene::new(CCB);
    let settings = r#""agents":{"stopGraceMs":300,"maxAgents":5}"#;
    scene.home.with_fake_runtime(FAKE_AGENT, settings);
    let gate = scene.home.path().join("go");
    let waits = Script::new().wait_file(&gate).done("waited").to_prompt();
    let mut lead = Script::new();
    for n in 0..12 {
        lead = lead.try_call(
            "Agent",
            json!({"description": format!("one of many {n}"), "prompt": waits, "run_in_background": true}),
        );
    }
    let answer = session(
        &scene,
        &lead.touch(&gate).done("tried").serve(),
        &["--mates", "2"],
    );
    assert_eq!(answer.code, Some(0), "{answer:?}");
    scene.await_nobody();
    let listed = scene.home.ok(&["agent", "list"]);
    let agents = listed["agents"].as_array().unwrap();
    let lead = agents
        .iter()
        .find(|agent| agent["name"] == "team-lead")
        .unwrap();
    let dir = scene.home.run_dir(lead["agentId"].as_str().unwrap());
    let said = std::fs::read_to_string(dir.join("transcript.jsonl")).unwrap();
    assert_eq!(agents.len(), 5, "the lead and four of its own: {said}");
    assert_eq!(said.matches("no more than 5 may").count(), 8, "{said}");
    let answer = session(
        &scene,
        &Script::new().done("never").serve(),
        &["--mates", "9"],
    );
    assert_eq!(answer.code, Some(2), "{answer:?}");
}

fn a_lead_that_never_does_anything_ends_the_session(scene: &SessionScene) {
    let answer = session(
        scene,
        &Script::new().done("I would rather not").serve(),
        &[],
    );
    assert_eq!(answer.code, Some(0), "{answer:?}");
    let end = answer.json_lines().pop().unwrap();
    assert_eq!(end["tasks"]["total"], 0);
    scene.await_nobody();
}

fn a_led_session_goes_on_after_two_kills_and_ends_green(scene: &SessionScene) {
    let gate = |name: &str| scene.home.path().join(name);
    for module in ["alpha", "beta", "gamma", "delta"] {
        scene.repo.write(&format!("{module}/value"), "broken\n");
    }
    scene.repo.git(&["add", "."]);
    scene.repo.git(&["commit", "-qm", "modules"]);
    let mut lead = Script::new();
    for module in ["alpha", "beta", "gamma", "delta"] {
        let fix = Script::new()
            .touch(gate(&format!("{module}-up")))
            .wait_file(gate("first"))
            .write(format!("{module}/value"), "fixed\n");
        let verify = format!("grep -qx fixed {module}/value");
        lead = lead.call(
            "TaskCreate",
            json!({"subject": format!("fix {module}"), "description": work(fix),
                   "metadata": {"ccb": {"verify": verify}}}),
        );
    }
    let join = Script::new()
        .touch(gate("join-up"))
        .wait_file(gate("second"))
        .run(&["sh", "-c", "cat */value | grep -cx fixed > summary"]);
    lead = lead
        .call(
            "TaskCreate",
            json!({"subject": "count", "description": work(join), "addBlockedBy": ["1", "2", "3", "4"],
                   "metadata": {"ccb": {"verify": "grep -qx 4 summary"}}}),
        )
        .done("handed out")
        .serve();
    let prompt = scene.prompt(&lead);
    let start = |more: &[&str]| {
        let log = std::fs::File::options()
            .create(true)
            .append(true)
            .open(scene.log())
            .unwrap();
        scene
            .command(&[&["--json", "--runtime", scene.runtime()], more].concat())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn()
            .unwrap()
    };
    let mut first = start(&["--mates", "4", &prompt]);
    wait_until(LONG, "four mates to be at work", || {
        ["alpha", "beta", "gamma", "delta"]
            .iter()
            .all(|m| gate(&format!("{m}-up")).exists())
    });
    first.kill().unwrap();
    first.wait().unwrap();
    let mut second = start(&[]);
    std::fs::write(gate("first"), "").unwrap();
    wait_until(LONG, "the last task to be at work", || {
        gate("join-up").exists()
    });
    second.kill().unwrap();
    second.wait().unwrap();
    let mut third = start(&[]);
    std::fs::write(gate("second"), "").unwrap();
    let log = || std::fs::read_to_string(scene.log()).unwrap_or_default();
    assert_eq!(scene.await_end(&mut third), Some(0), "{}", log());
    for id in 1..=5 {
        let task = scene.file(id);
        assert_eq!(
            task["metadata"]["ccb"]["result"]["check"]["passed"], true,
            "{task}"
        );
        assert_eq!(
            task["metadata"]["ccb"]["attempts"],
            json!(null),
            "each once: {task}"
        );
    }
    assert_eq!(scene.repo.git(&["show", "HEAD:summary"]), "4\n");
    assert_eq!(scene.trees(), Vec::<String>::new(), "{}", log());
    scene.await_nobody();
}

/// The lead's text is shown as it comes, and its last words stand at the end.
fn what_the_lead_says_is_the_answer(scene: &SessionScene) {
    let lead = Script::new()
        .say("I look around")
        .say("It is the cache")
        .done("It was the cache.");
    let answer = session(scene, &lead, &["--mates", "1"]);
    assert_eq!(answer.code, Some(0), "{answer:?}");
    let all = events(&answer);
    let said: Vec<&str> = all
        .iter()
        .filter(|event| event["event"] == "lead")
        .filter_map(|event| event["text"].as_str())
        .collect();
    assert!(
        said.contains(&"I look around") && said.contains(&"It is the cache"),
        "{said:?}"
    );
    let end = all.last().unwrap();
    assert_eq!(
        (&end["event"], &end["report"]),
        (&json!("end"), &json!("It was the cache."))
    );
    let prompt = scene.prompt(&lead);
    let plain = scene.run(&[
        "--runtime",
        scene.runtime(),
        "--mates",
        "1",
        prompt.as_str(),
    ]);
    assert_eq!(plain.code, Some(0), "{plain:?}");
    let end = plain.stderr.rsplit("It was the cache.").next().unwrap();
    assert!(
        end.contains("done") && !end.contains("0 of 0"),
        "{}",
        plain.stderr
    );
}

#[test]
fn a_lead_that_cannot_work_is_a_failure() {
    for (script, words) in [
        (
            Script {
                silent: true,
                ..Script::new()
            }
            .print_error("no such key\n")
            .then(Do::Exit { code: 1 }),
            "no such key",
        ),
        (Script::new().failed("I cannot"), "I cannot"),
    ] {
        let scene = scene();
        let answer = session(&scene, &script, &["--mates", "1"]);
        assert_eq!(answer.code, Some(1), "{answer:?}");
        let end = events(&answer).pop().unwrap();
        assert_eq!(end["exit"], 1, "{end}");
        assert!(
            end["leadFailure"].as_str().unwrap().contains(words),
            "{end}"
        );
    }
}

/// No person is at the terminal: a question is answered at once, with a refusal that says why.
/// Permissions that every task needs are not asked for.
#[test]
fn what_nobody_can_answer_is_denied_at_once() {
    let scene = scene();
    let ask = |n: u32, command: &str| Do::Ask {
        id: format!("q{n}"),
        tool: "Bash".into(),
        input: json!({"command": command}),
        allowed: vec![Do::Append {
            path: "answers".into(),
            text: "yes".into(),
        }],
        denied: vec![Do::Append {
            path: "answers".into(),
            text: "no".into(),
        }],
    };
    let script = Script::new()
        .then(ask(1, "curl example.org"))
        .then(ask(2, "git add -A"))
        .then(ask(3, "git commit -m 'Say it'"))
        .then(ask(4, "git push"))
        .then(ask(5, "test -e answers"));
    scene.task(
        "asks",
        &[
            "--description",
            &work(script),
            "--verify",
            "test -e answers",
        ],
    );
    let answer = scene.run(&[
        "--json",
        "--runtime",
        "fake",
        "--lead",
        "me",
        "--mates",
        "1",
    ]);
    assert_eq!(answer.code, Some(0), "{answer:?}");
    assert_eq!(
        scene.repo.git(&["show", "HEAD:answers"]),
        "no\nyes\nyes\nno\nyes\n"
    );
}

/// Teammates on several runtimes: commands go to the shell, a type goes to the runtime it names.
#[test]
fn a_task_goes_to_a_mate_that_can_do_it() {
    let scene = SessionScene::new(CCB);
    let fake = json!(FAKE_AGENT).to_string();
    let runtime = |name: &str| {
        format!(r#""{name}":{{"kind":"lines","command":[{fake}],"env":{{"WHO":"{name}"}}}}"#)
    };
    scene.home.settings(&format!(
        r#"{{"runtimes":{{{},{}}},"agents":{{"stopGraceMs":300}}}}"#,
        runtime("one"),
        runtime("two")
    ));
    let types = scene.home.path().join("agents");
    std::fs::create_dir_all(&types).unwrap();
    let second = "---\nname: second\ndescription: d\nruntime: two\n---\nWork.\n";
    std::fs::write(types.join("second.md"), second).unwrap();
    let who = work(Script::new().run(&["sh", "-c", "echo $WHO > who-$CCB_AGENT"]));
    scene.task("any", &["-d", &who]);
    for n in 0..2 {
        let subject = format!("second {n}");
        scene.task(
            &subject,
            &["-d", &who, "--meta", "ccb={\"agent\":\"second\"}"],
        );
    }
    scene.task("command", &["--run", "echo shell > command"]);
    let answer = scene.run(&["--json", "--lead", "me", "--mates", "one=1,two=1,shell=1"]);
    assert_eq!(answer.code, Some(0), "{answer:?}");
    let begun = events(&answer);
    assert_eq!(
        begun[0]["matesByRuntime"],
        json!({"one": 1, "shell": 1, "two": 1})
    );
    let mates: std::collections::BTreeMap<u64, String> = begun
        .iter()
        .filter(|event| event["event"] == "started")
        .map(|event| {
            let task = event["task"]
                .as_str()
                .map_or_else(|| event["task"].as_u64(), |t| t.parse().ok());
            (task.unwrap(), event["name"].as_str().unwrap().to_owned())
        })
        .collect();
    // The teammates are numbered by the names of their runtimes.
    assert_eq!(
        (mates[&2].as_str(), mates[&3].as_str()),
        ("mate-3", "mate-3"),
        "{mates:?}"
    );
    assert_eq!(mates[&4], "mate-2", "{mates:?}");
    assert_eq!(scene.repo.git(&["show", "HEAD:command"]), "shell\n");
    assert_eq!(scene.repo.git(&["show", "HEAD:who-mate-3"]), "two\n");
    let wrong = scene.run(&["--json", "--mates", "one=1,nosuch=2"]);
    assert_eq!(wrong.code, Some(2), "{wrong:?}");
    let wrong = scene.run(&["--json", "--mates", "one=x"]);
    assert!(wrong.stdout.contains("is not a number"), "{wrong:?}");
}
