//! From sending to acknowledging, and what a reader that dies leaves behind.

use std::sync::Arc;
use std::time::Duration;
use store::Explain;

use super::{NOW, Team, name, send, text};
use crate::{Draft, Inbox, MailError, Message, Priority};

fn texts(messages: &[Message]) -> Vec<&str> {
    messages.iter().map(|m| m.text().unwrap()).collect()
}

fn bob(team: &Team) -> Arc<Inbox> {
    team.open().inbox(&name("bob")).unwrap()
}

#[test]
fn messages_are_numbered_without_gaps_and_handed_over_in_order() {
    let team = Team::new();
    let (one, two) = (team.open(), team.open());
    for n in 1..=6 {
        let mailbox = if n % 2 == 0 { &one } else { &two };
        assert_eq!(send(mailbox, &format!("m{n}")).seq, n);
    }
    let mut consumer = bob(&team).consumer().unwrap();
    let batch = consumer.take(4).unwrap();
    assert_eq!(texts(&batch.messages), ["m1", "m2", "m3", "m4"]);
    assert_eq!(texts(&consumer.take(9).unwrap().messages), ["m5", "m6"]);
    assert!(consumer.take(9).unwrap().messages.is_empty());
    assert_eq!(consumer.ack_up_to(6).unwrap().acked, 6);
    assert_eq!(send(&one, "m7").seq, 7);
    assert_eq!(texts(&consumer.take(9).unwrap().messages), ["m7"]);
}

#[test]
fn names_that_differ_only_in_case_are_one_inbox() {
    let team = Team::new();
    let mailbox = team.open();
    mailbox.send(&text("a", "bob", "one")).unwrap();
    assert_eq!(team.open().send(&text("a", "BOB", "two")).unwrap().seq, 2);
    assert!(mailbox.inbox(&name("bob.json")).is_err());
}

#[test]
fn priority_comes_before_age() {
    let team = Team::new();
    let mailbox = team.open();
    for (n, priority) in [
        Priority::Later,
        Priority::Next,
        Priority::Now,
        Priority::Next,
    ]
    .into_iter()
    .enumerate()
    {
        let draft = Draft {
            priority: Some(priority),
            ..text("a", "bob", &format!("m{n}"))
        };
        mailbox.send(&draft).unwrap();
    }
    let mut consumer = bob(&team).consumer().unwrap();
    let batch = consumer.take(9).unwrap();
    assert_eq!(texts(&batch.messages), ["m2", "m1", "m3", "m0"]);
    // Acknowledging the urgent one leaves the others.
    let acked = consumer.ack(&[3]).unwrap();
    assert_eq!((acked.acked, acked.new), (0, vec![3]));
    drop(consumer);
    let mut next = bob(&team).consumer().unwrap();
    let batch = next.take(9).unwrap();
    assert_eq!(texts(&batch.messages), ["m1", "m3", "m0"]);
    assert!(batch.messages.iter().all(|message| message.redelivered));
    assert_eq!(next.ack(&[1, 2, 4]).unwrap().acked, 4);
}

#[test]
fn what_a_dead_reader_did_not_acknowledge_comes_again_and_says_so() {
    let team = Team::new();
    let mailbox = team.open();
    for n in 1..=4 {
        send(&mailbox, &format!("m{n}"));
    }
    let mut first = bob(&team).consumer().unwrap();
    let batch = first.take(3).unwrap();
    first.delivered(&[1, 2]).unwrap();
    assert_eq!(first.ack(&[1]).unwrap().acked, 1);
    drop(first);
    let mut second = bob(&team).consumer().unwrap();
    let again = second.take(9).unwrap();
    assert_eq!(texts(&again.messages), ["m2", "m3", "m4"]);
    let marked: Vec<bool> = again.messages.iter().map(|m| m.redelivered).collect();
    assert_eq!(marked, [true, true, false]);
    assert_eq!(again.messages[0].id, batch.messages[1].id);
    assert_eq!(second.ack_up_to(4).unwrap().new, [2, 3, 4]);
    assert_eq!(second.ack_up_to(4).unwrap().new, Vec::<u64>::new());
    let missing = second.ack_up_to(5).unwrap_err();
    assert!(matches!(missing, MailError::NoSuchMessage { last: 4, .. }));
}

#[test]
fn a_second_reader_is_refused_and_told_who_reads() {
    let team = Team::new();
    send(&team.open(), "m1");
    let first = bob(&team).consumer().unwrap();
    let refused = bob(&team).consumer().unwrap_err();
    assert_eq!(refused.kind(), "being_read");
    let pid = std::process::id().to_string();
    assert!(refused.to_string().contains(&pid), "{refused}");
    drop(first);
    bob(&team).consumer().unwrap();
}

#[test]
fn expired_messages_are_counted_and_not_handed_over() {
    let team = Team::new();
    let mailbox = team.open();
    let expiring = Draft {
        expires_at: Some(NOW + 10),
        ..text("a", "bob", "old news")
    };
    mailbox.send(&expiring).unwrap();
    send(&mailbox, "news");
    team.clock.set(NOW + 10);
    let mut consumer = bob(&team).consumer().unwrap();
    let batch = consumer.take(9).unwrap();
    assert_eq!(texts(&batch.messages), ["news"]);
    assert_eq!(texts(&batch.expired), ["old news"]);
    assert_eq!(consumer.acked(), 1, "it leaves no gap");
    assert_eq!(consumer.ack(&[2]).unwrap().acked, 2);
}

#[test]
fn a_reader_is_woken() {
    let team = Team::new();
    let inbox = bob(&team);
    let mut consumer = inbox.consumer().unwrap();
    assert!(!consumer.wait(Duration::ZERO).unwrap());
    let mailbox = team.open();
    std::thread::scope(|scope| {
        scope.spawn(|| send(&mailbox, "m1"));
        assert!(consumer.wait(Duration::from_secs(60)).unwrap());
    });
    assert_eq!(texts(&consumer.take(9).unwrap().messages), ["m1"]);
    assert!(!consumer.wait(Duration::ZERO).unwrap());
}

#[test]
fn whoever_sends_rings() {
    let team = Team::new();
    let mailbox = team.open();
    send(&mailbox, "nobody listens yet");
    let bell = store::fifo::Bell::new(&team.inbox_dir("bob").join("wake")).unwrap();
    // What was rung for before somebody listened may be heard now, but only once.
    bell.wait(Duration::ZERO);
    assert!(!bell.wait(Duration::ZERO));
    send(&mailbox, "m2");
    assert!(bell.wait(Duration::ZERO), "rung before the sender goes on");
    let draft = text("a", "a", "to all");
    team.open().broadcast(&draft, &[name("bob")]).unwrap();
    assert!(bell.wait(Duration::ZERO), "for a broadcast as well");
    assert!(!bell.wait(Duration::ZERO));
}
