//! Agents: their permissions without a question, changed while they run.

use std::time::Duration;

use harness::runs::LONG;
use harness::script::{Do, Script};
use harness::{TestHome, wait_until};
use mailbox::{MailOptions, Mailbox, Mode, Plan, Question, Request, RequestState};
use serde_json::json;
use store::home::Home;
use store::name::Name;

use crate::{CCB, FAKE_AGENT};

/// A teammate `alice` that is idle, in plan mode if that is wanted.
fn alice(script: &Script, more: &[&str]) -> (TestHome, String) {
    let home = TestHome::in_memory(CCB);
    home.with_fake_runtime(FAKE_AGENT, "");
    home.ok(&["team", "create", "board"]);
    let mut args = vec!["--name", "alice"];
    args.extend_from_slice(more);
    let id = home.spawn_fake(script, &args);
    home.await_run(&id, "idle");
    (home, id)
}

fn mail(home: &TestHome) -> Mailbox {
    let place = Home::new(home.path().to_owned()).unwrap();
    let team = Name::new("team", "board").unwrap();
    Mailbox::new(&place, &team, MailOptions::default())
}

fn ask(home: &TestHome, from: &str, to: &str, question: Question) -> Request {
    let name = |name| Name::new("agent", name).unwrap();
    let deadline = Duration::from_secs(300);
    mail(home)
        .ask(&name(from), &name(to), question, deadline)
        .unwrap()
}

fn mode(mode: &str) -> Question {
    Question::Mode(Mode { mode: mode.into() })
}

/// The request once it has its answer.
fn answered(home: &TestHome, request: &Request) -> Request {
    let now = || mail(home).request(&request.id).unwrap();
    wait_until(LONG, "an answer", || now().state != RequestState::Pending);
    now()
}

fn plan() -> Question {
    Question::Plan(Plan {
        plan: "first this, then that".into(),
        plan_file_path: None,
        allowed_prompts: Vec::new(),
    })
}

fn end(home: &TestHome, id: &str) {
    home.ok(&["agent", "stop", "alice"]);
    home.await_settled(id);
}

#[test]
fn an_approved_plan_ends_plan_mode_and_a_rejected_one_does_not() {
    let (home, id) = alice(&Script::new().done("up").serve(), &["--mode", "plan"]);
    assert_eq!(home.run_meta(&id)["permissionMode"], "plan");
    let request = ask(&home, "alice", "team-lead", plan());
    let no = [
        "mail",
        "reject",
        &request.id,
        "--as",
        "team-lead",
        "--feedback",
        "too vague",
    ];
    home.ok(&no);
    wait_until(LONG, "the feedback", || {
        let messages = home.entries(&id, "message");
        messages
            .iter()
            .any(|message| message["text"].as_str().unwrap().contains("too vague"))
    });
    home.await_run(&id, "idle");
    assert_eq!(home.run_meta(&id)["permissionMode"], "plan");
    let request = ask(&home, "alice", "team-lead", plan());
    home.ok(&["mail", "approve", &request.id, "--as", "team-lead"]);
    wait_until(LONG, "the mode", || {
        home.run_meta(&id)["permissionMode"] == "acceptEdits"
    });
    wait_until(LONG, "the model to know", || {
        home.entries(&id, "message").len() == 2
    });
    end(&home, &id);
}

#[test]
fn an_approved_plan_restores_the_mode_from_before() {
    let plans = ["--mode", "plan", "--permission-mode", "default"];
    let (home, id) = alice(&Script::new().done("up").serve(), &plans);
    let request = ask(&home, "alice", "team-lead", plan());
    home.ok(&["mail", "approve", &request.id, "--as", "team-lead"]);
    wait_until(LONG, "the mode", || {
        home.run_meta(&id)["permissionMode"] == "default"
    });
    end(&home, &id);
    // Also one that the lead sent to plan.
    let (home, id) = alice(&Script::new().done("up").serve(), &plans[2..]);
    let request = ask(&home, "team-lead", "alice", mode("plan"));
    answered(&home, &request);
    let request = ask(&home, "alice", "team-lead", plan());
    home.ok(&["mail", "approve", &request.id, "--as", "team-lead"]);
    wait_until(LONG, "the mode", || {
        home.run_meta(&id)["permissionMode"] == "default"
    });
    end(&home, &id);
}

/// The words of the messages alice has accepted.
fn taken_in(home: &TestHome, id: &str) -> String {
    let messages = home.entries(id, "message");
    let texts = messages.iter().map(|message| message["text"].to_string());
    texts.collect()
}

#[test]
fn an_agent_plans_by_itself_and_runs_what_came_with_the_plan() {
    let asks = |command: &str| {
        let done = |text: &str| Do::Say { text: text.into() };
        let ask = Do::Ask {
            id: "q1".into(),
            tool: "Bash".into(),
            input: json!({ "command": command }),
            allowed: vec![done("it may")],
            denied: vec![done("it may not")],
        };
        Script::new().then(ask).done("asked").to_prompt()
    };
    let plans = Script::new()
        .call("EnterPlanMode", json!({}))
        .then(Do::WaitMode {
            mode: "plan".into(),
        })
        .done("up")
        .serve();
    let (home, id) = alice(&plans, &[]);
    wait_until(LONG, "the mode", || {
        home.run_meta(&id)["permissionMode"] == "plan"
    });
    let hand_in = Script::new().call(
        "ExitPlanMode",
        json!({"plan": "Test it", "allowedPrompts": [{"tool": "Bash", "prompt": "cargo test"}]}),
    );
    home.ok(&[
        "agent",
        "send",
        "alice",
        &hand_in.done("planned").to_prompt(),
    ]);
    let open = || {
        let all = mail(&home).requests().unwrap().requests;
        all.into_iter()
            .find(|request| matches!(request.question, Question::Plan(_)))
    };
    wait_until(LONG, "the plan", || open().is_some());
    let request = open().unwrap();
    let Question::Plan(handed_in) = &request.question else {
        unreachable!("looked for above");
    };
    std::fs::write(handed_in.plan_file_path.as_ref().unwrap(), "Test all of it").unwrap();
    home.ok(&["mail", "approve", &request.id, "--as", "team-lead"]);
    wait_until(LONG, "the mode", || {
        home.run_meta(&id)["permissionMode"] == "acceptEdits"
    });
    wait_until(LONG, "the plan as it is now", || {
        taken_in(&home, &id).contains("Test all of it")
    });
    let said = |text: &str| {
        let texts = home.entries(&id, "text");
        texts.iter().filter(|entry| entry["text"] == text).count()
    };
    // No person is there to answer.
    home.ok(&["agent", "send", "alice", &asks("cargo test --lib")]);
    wait_until(LONG, "a permission", || said("it may") == 1);
    home.ok(&["agent", "send", "alice", &asks("cargo test && rm x")]);
    wait_until(LONG, "a refusal", || said("it may not") == 1);
    end(&home, &id);
}

#[test]
fn the_lead_changes_a_mode_and_hears_of_it() {
    let waits = Script::new().done("up").then(Do::WaitMode {
        mode: "plan".into(),
    });
    let (home, id) = alice(&waits.serve(), &[]);
    let request = ask(&home, "team-lead", "alice", mode("plan"));
    assert_eq!(answered(&home, &request).state, RequestState::Approved);
    assert_eq!(home.run_meta(&id)["permissionMode"], "plan");
    let shown = home.ok(&["team", "show", "board"]).to_string();
    assert!(shown.contains(r#""mode":"plan""#), "{shown}");
    end(&home, &id);
}

#[test]
fn who_may_not_and_what_cannot_be_is_refused_with_a_reason() {
    let (home, id) = alice(&Script::new().done("up").serve(), &[]);
    home.ok(&["team", "join", "board", "--as", "bob"]);
    for (from, wanted, why) in [
        ("bob", "plan", "only team-lead"),
        ("team-lead", "bypassPermissions", "definition"),
        ("team-lead", "yolo", "there is no mode"),
    ] {
        let request = answered(&home, &ask(&home, from, "alice", mode(wanted)));
        assert_eq!(request.state, RequestState::Rejected, "{wanted}");
        let feedback = request.answer.unwrap().feedback.unwrap();
        assert!(feedback.contains(why), "{feedback}");
    }
    assert_eq!(home.run_meta(&id)["permissionMode"], "acceptEdits");
    end(&home, &id);
}

#[test]
fn a_program_that_refuses_keeps_its_mode() {
    let (home, id) = alice(&Script::new().stubborn().done("up").serve(), &[]);
    let request = answered(&home, &ask(&home, "team-lead", "alice", mode("plan")));
    assert_eq!(request.state, RequestState::Rejected);
    let feedback = request.answer.unwrap().feedback.unwrap();
    assert!(feedback.contains("does not want to"), "{feedback}");
    assert_eq!(home.run_meta(&id)["permissionMode"], "acceptEdits");
    end(&home, &id);
}

#[test]
fn what_was_approved_while_it_was_away_counts_when_it_is_back() {
    let (home, id) = alice(&Script::new().done("up").serve(), &["--mode", "plan"]);
    let request = ask(&home, "alice", "team-lead", plan());
    end(&home, &id);
    home.ok(&["mail", "approve", &request.id, "--as", "team-lead"]);
    home.ok(&[
        "agent",
        "send",
        "alice",
        &Script::new().done("on").serve().to_prompt(),
    ]);
    home.await_run(&id, "idle");
    assert_eq!(home.run_meta(&id)["permissionMode"], "acceptEdits");
    end(&home, &id);
}
