//! Requests get one answer, and each side gets one message.

use store::Explain;

use super::{Team, name};
use crate::{DEFAULT_DEADLINE, Mailbox, Plan, Question};

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

#[test]
fn an_unreadable_request_hides_no_other() {
    let team = Team::new();
    let mailbox = team.open();
    let id = ask(&mailbox, plan());
    let other = ask(&mailbox, plan());
    let path = mailbox.dir().join(format!("requests/{other}.json"));
    store::atomic::replace(
        mailbox.dir(),
        &path,
        b"{ half",
        store::atomic::Durability::Relaxed,
    )
    .unwrap();
    let found = mailbox.requests().unwrap();
    assert_eq!((found.requests.len(), found.unreadable.len()), (1, 1));
    let error = mailbox.answer(&other, &name("team-lead"), true, None);
    assert_eq!(error.unwrap_err().kind(), "corrupt");
    mailbox.answer(&id, &name("team-lead"), true, None).unwrap();
}
