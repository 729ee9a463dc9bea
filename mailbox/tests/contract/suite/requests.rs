//! Requests get one answer, and each side gets one message.

use std::time::Duration;

use mailbox::{
    Asked, Body, DEFAULT_DEADLINE, Draft, Mailbox, Mode, Permission, Plan, Protocol, Question,
    RequestState, Shutdown,
};
use store::Explain;

use super::{Team, name, text};

fn plan() -> Question {
    Question::Plan(Plan {
        plan: "1. do it".into(),
        plan_file_path: Some("/p.md".into()),
        allowed_prompts: Vec::new(),
    })
}

fn ask(mailbox: &Mailbox, question: Question) -> String {
    let (bob, lead) = (name("bob"), name("team-lead"));
    let request = mailbox.ask(&bob, &lead, question, DEFAULT_DEADLINE);
    request.unwrap().id
}

fn kinds(mailbox: &Mailbox, agent: &str) -> Vec<String> {
    let listing = mailbox.inbox(&name(agent)).unwrap().list(true).unwrap();
    let messages = listing.messages.iter();
    messages
        .map(|(message, _)| message.body.kind().to_owned())
        .collect()
}

pub(crate) fn a_request_is_answered_once_by_the_one_who_was_asked(team: &mut Team) {
    let mailbox = team.open();
    let id = ask(&mailbox, plan());
    assert_eq!(kinds(&mailbox, "team-lead"), ["plan_approval_request"]);
    assert_eq!(mailbox.request(&id).unwrap().state, RequestState::Pending);
    assert_eq!(team.open().waiting_requests().unwrap().len(), 1);
    let other = mailbox.answer(&id, &name("carol"), true, None).unwrap_err();
    assert_eq!(other.kind(), "not_yours");
    let feedback = Some("smaller steps".to_owned());
    let answered = mailbox.answer(&id, &name("Team-Lead"), false, feedback.clone());
    assert_eq!(answered.unwrap().state, RequestState::Rejected);
    let second = team.open().answer(&id, &name("team-lead"), true, None);
    let second = second.unwrap_err();
    assert_eq!(second.kind(), "already_answered");
    assert!(second.to_string().contains("rejected"), "{second}");
    assert!(second.to_string().contains("Team-Lead"), "{second}");
    let inbox = mailbox.inbox(&name("bob")).unwrap().list(true).unwrap();
    assert_eq!(inbox.messages.len(), 1);
    let Body::Protocol(Protocol::PlanApprovalResponse(answer)) = &inbox.messages[0].0.body else {
        panic!("{inbox:?}");
    };
    assert_eq!(answer.request_id, id);
    assert_eq!((answer.approved, &answer.feedback), (false, &feedback));
    assert_eq!(mailbox.requests().unwrap().requests.len(), 1);
    assert!(team.open().waiting_requests().unwrap().is_empty());
}

pub(crate) fn every_kind_of_request_has_its_answer(team: &mut Team) {
    let mailbox = team.open();
    let questions = [
        Question::Shutdown(Shutdown::default()),
        Question::Shutdown(Shutdown::default()),
        plan(),
        Question::Permission(Permission {
            tool_name: "Bash".into(),
            tool_use_id: None,
            description: "run it".into(),
            input: serde_json::json!({"command": "ls"}),
        }),
        Question::Mode(Mode {
            mode: "plan".into(),
        }),
    ];
    for (n, question) in questions.into_iter().enumerate() {
        let id = ask(&mailbox, question);
        let yes = n != 1;
        mailbox.answer(&id, &name("team-lead"), yes, None).unwrap();
    }
    assert_eq!(
        kinds(&mailbox, "bob"),
        [
            "shutdown_approved",
            "shutdown_rejected",
            "plan_approval_response",
            "permission_response",
            "mode_set_response"
        ]
    );
}

pub(crate) fn a_late_answer_is_refused_and_the_asker_told_that_nobody_answered(team: &mut Team) {
    let mailbox = team.open();
    let id = ask(&mailbox, plan());
    (team.pass)(600_000);
    let late = mailbox
        .answer(&id, &name("team-lead"), true, None)
        .unwrap_err();
    assert_eq!(late.kind(), "request_expired");
    for _ in 0..2 {
        let requests = team.open().requests().unwrap().requests;
        assert_eq!(requests[0].state, RequestState::Expired);
    }
    let inbox = mailbox.inbox(&name("bob")).unwrap().list(true).unwrap();
    let Body::Protocol(Protocol::PlanApprovalResponse(answer)) = &inbox.messages[0].0.body else {
        panic!("{inbox:?}");
    };
    assert!(answer.expired && !answer.approved);
    assert_eq!(inbox.messages.len(), 1);
    // The question itself is no longer worth reading.
    let lead = mailbox.inbox(&name("team-lead")).unwrap();
    assert!(lead.list(false).unwrap().messages.is_empty());
}

pub(crate) fn unknown_ids_are_not_found_and_never_paths(team: &mut Team) {
    let mailbox = team.open();
    let id = ask(&mailbox, plan());
    let mut near = id.clone();
    near.replace_range(35.., if id.ends_with('0') { "1" } else { "0" });
    for bad in [&near[..], "", "../../../etc/passwd", "x", "'; --"] {
        let error = mailbox.answer(bad, &name("team-lead"), true, None);
        let error = error.unwrap_err();
        assert_eq!(error.kind(), "request_not_found", "{bad}");
    }
    let error = mailbox.answer(&near, &name("team-lead"), true, None);
    assert!(error.unwrap_err().hint().unwrap().contains(&id));
}

pub(crate) fn many_answers_at_once_and_one_counts(team: &mut Team) {
    let id = ask(&team.open(), plan());
    let won: Vec<bool> = std::thread::scope(|scope| {
        let answers: Vec<_> = (0..8)
            .map(|n| {
                let (team, id) = (&*team, &id);
                scope.spawn(move || {
                    let answer = team.open().answer(id, &name("team-lead"), n % 2 == 0, None);
                    if let Err(error) = &answer {
                        assert_eq!(error.kind(), "already_answered", "{error}");
                    }
                    answer.is_ok()
                })
            })
            .collect();
        answers.into_iter().map(|a| a.join().unwrap()).collect()
    });
    assert_eq!(won.iter().filter(|won| **won).count(), 1);
    assert_eq!(kinds(&team.open(), "bob").len(), 1);
}

pub(crate) fn a_request_nobody_can_be_told_of_is_not_made(team: &mut Team) {
    team.limits.unread = 1;
    let mailbox = team.open();
    ask(&mailbox, plan());
    let (bob, lead) = (name("bob"), name("team-lead"));
    let error = mailbox.ask(&bob, &lead, plan(), Duration::from_secs(1));
    assert_eq!(error.unwrap_err().kind(), "inbox_full");
    assert_eq!(mailbox.requests().unwrap().requests.len(), 1);
}

pub(crate) fn an_answer_stands_if_the_asker_has_no_room_for_it(team: &mut Team) {
    team.limits.unread = 1;
    let mailbox = team.open();
    let id = ask(&mailbox, plan());
    mailbox.send(&text("a", "bob", "fills it")).unwrap();
    let answered = mailbox.answer(&id, &name("team-lead"), true, None);
    assert_eq!(answered.unwrap().state, RequestState::Approved);
    assert_eq!(kinds(&mailbox, "bob"), ["message"]);
    mailbox.requests().unwrap();
    assert_eq!(
        kinds(&mailbox, "bob"),
        ["message"],
        "there is still no room"
    );
    let mut reader = team.open().consumer(&name("bob")).unwrap();
    reader.ack_up_to(1).unwrap();
    drop(reader);
    for _ in 0..2 {
        team.open().requests().unwrap();
        let all = kinds(&mailbox, "bob");
        assert_eq!(all, ["message", "plan_approval_response"]);
    }
}

pub(crate) fn old_requests_go_once_there_are_many(team: &mut Team) {
    let mailbox = team.open();
    let waiting = ask(&mailbox, plan());
    let (bob, lead) = (name("bob"), name("team-lead"));
    let mut first = None;
    for _ in 0..260 {
        let question = Question::Shutdown(Shutdown::default());
        let request = mailbox.ask(&bob, &lead, question, DEFAULT_DEADLINE);
        let id = request.unwrap().id;
        mailbox.answer(&id, &lead, true, None).unwrap();
        if first.is_none() {
            first = Some(id);
            // The others are younger.
            (team.pass)(1);
        }
    }
    let known = mailbox.requests().unwrap().requests;
    assert!((256..=258).contains(&known.len()), "{}", known.len());
    assert!(known.iter().any(|request| request.id == waiting));
    let gone = mailbox.request(&first.unwrap()).unwrap_err();
    assert_eq!(gone.kind(), "request_not_found");
}

pub(crate) fn requests_and_answers_cannot_simply_be_sent(team: &mut Team) {
    let body = Body::Protocol(Protocol::ModeSetRequest(Asked {
        request_id: "1".into(),
        question: Mode {
            mode: "plan".into(),
        },
    }));
    let draft = Draft::new(name("a"), name("bob"), body);
    assert_eq!(team.open().send(&draft).unwrap_err().kind(), "invalid");
}
