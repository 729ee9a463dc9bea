//! From sending to acknowledging, and what a reader that dies leaves behind.

use std::sync::Arc;
use std::time::{Duration, Instant};

use mailbox::{Draft, Inbox, MailError, Message, MessageState, Priority};
use store::Explain;

use super::{Team, kept, name, send, text};

fn texts(messages: &[Message]) -> Vec<&str> {
    messages.iter().map(|m| m.text().unwrap()).collect()
}

fn bob(team: &Team) -> Arc<Inbox> {
    team.open().inbox(&name("bob")).unwrap()
}

pub(crate) fn messages_are_numbered_without_gaps_and_handed_over_in_order(team: &mut Team) {
    let (one, two) = (team.open(), team.open());
    for n in 1..=6 {
        let mailbox = if n % 2 == 0 { &one } else { &two };
        assert_eq!(send(mailbox, &format!("m{n}")).seq, n);
    }
    let mut consumer = bob(team).consumer().unwrap();
    let batch = consumer.take(4).unwrap();
    assert_eq!(texts(&batch.messages), ["m1", "m2", "m3", "m4"]);
    assert_eq!(texts(&consumer.take(9).unwrap().messages), ["m5", "m6"]);
    assert!(consumer.take(9).unwrap().messages.is_empty());
    assert_eq!(consumer.ack_up_to(6).unwrap().acked, 6);
    assert_eq!(send(&one, "m7").seq, 7);
    assert_eq!(texts(&consumer.take(9).unwrap().messages), ["m7"]);
}

pub(crate) fn many_senders_at_once_leave_no_gap(team: &mut Team) {
    std::thread::scope(|scope| {
        for sender in 0..32 {
            let team = &*team;
            scope.spawn(move || {
                let mailbox = team.open();
                for n in 0..8 {
                    send(&mailbox, &format!("{sender} {n}"));
                }
            });
        }
    });
    let kept = kept(&team.open(), "bob");
    let numbers: Vec<u64> = kept.iter().map(|(seq, _)| *seq).collect();
    assert_eq!(numbers, (1..=256).collect::<Vec<u64>>());
    for sender in 0..32 {
        let own = format!("{sender} ");
        let own = kept.iter().filter(|(_, text)| text.starts_with(&own));
        let own: Vec<&str> = own.map(|(_, text)| text.as_str()).collect();
        let expected: Vec<String> = (0..8).map(|n| format!("{sender} {n}")).collect();
        assert_eq!(own, expected, "in the order in which they were sent");
    }
}

pub(crate) fn names_that_differ_only_in_case_are_one_inbox(team: &mut Team) {
    let mailbox = team.open();
    mailbox.send(&text("a", "bob", "one")).unwrap();
    assert_eq!(team.open().send(&text("a", "BOB", "two")).unwrap().seq, 2);
    assert!(mailbox.inbox(&name("bob.json")).is_err());
}

pub(crate) fn priority_comes_before_age(team: &mut Team) {
    let mailbox = team.open();
    let priorities = [
        Priority::Later,
        Priority::Next,
        Priority::Now,
        Priority::Next,
    ];
    for (n, priority) in priorities.into_iter().enumerate() {
        let draft = Draft {
            priority: Some(priority),
            ..text("a", "bob", &format!("m{n}"))
        };
        mailbox.send(&draft).unwrap();
    }
    let mut consumer = bob(team).consumer().unwrap();
    let batch = consumer.take(9).unwrap();
    assert_eq!(texts(&batch.messages), ["m2", "m1", "m3", "m0"]);
    // Acknowledging the urgent one leaves the others.
    let acked = consumer.ack(&[3]).unwrap();
    assert_eq!((acked.acked, acked.new), (0, vec![3]));
    drop(consumer);
    let mut next = bob(team).consumer().unwrap();
    let batch = next.take(9).unwrap();
    assert_eq!(texts(&batch.messages), ["m1", "m3", "m0"]);
    assert!(batch.messages.iter().all(|message| message.redelivered));
    assert_eq!(next.ack(&[1, 2, 4]).unwrap().acked, 4);
}

pub(crate) fn what_a_dead_reader_did_not_acknowledge_comes_again_and_says_so(team: &mut Team) {
    let mailbox = team.open();
    for n in 1..=4 {
        send(&mailbox, &format!("m{n}"));
    }
    let mut first = bob(team).consumer().unwrap();
    let batch = first.take(3).unwrap();
    first.delivered(&[1, 2]).unwrap();
    assert_eq!(first.ack(&[1]).unwrap().acked, 1);
    drop(first);
    let mut second = bob(team).consumer().unwrap();
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

pub(crate) fn one_message_can_be_read_again_by_its_number(team: &mut Team) {
    let mailbox = team.open();
    send(&mailbox, "m1");
    send(&mailbox, "m2");
    let mut consumer = bob(team).consumer().unwrap();
    assert_eq!(texts(&consumer.take_one(2).unwrap().messages), ["m2"]);
    let again = consumer.take_one(2).unwrap().messages;
    assert!(again[0].redelivered);
    assert_eq!(texts(&consumer.take(9).unwrap().messages), ["m1"]);
    consumer.ack(&[2]).unwrap();
    assert!(consumer.take_one(2).unwrap().messages.is_empty());
    let missing = consumer.take_one(3).unwrap_err();
    assert_eq!(missing.kind(), "message_not_found");
}

pub(crate) fn states_are_seen_by_others(team: &mut Team) {
    let mailbox = team.open();
    assert!(!bob(team).exists());
    for n in 1..=3 {
        send(&mailbox, &format!("m{n}"));
    }
    assert!(bob(team).exists());
    let mut consumer = bob(team).consumer().unwrap();
    consumer.take(9).unwrap();
    consumer.delivered(&[1, 2]).unwrap();
    consumer.ack(&[1]).unwrap();
    let states = |all| -> Vec<(u64, MessageState)> {
        let listing = bob(team).list(all).unwrap();
        assert_eq!((listing.acked, listing.rejected), (1, 0));
        let messages = listing.messages.into_iter();
        messages.map(|(m, state)| (m.seq, state)).collect()
    };
    let waiting = [(2, MessageState::Delivered), (3, MessageState::Queued)];
    assert_eq!(states(false), waiting);
    assert_eq!(states(true)[0], (1, MessageState::Acknowledged));
    assert_eq!(states(true)[1..], waiting);
}

pub(crate) fn a_second_reader_is_refused_and_told_who_reads(team: &mut Team) {
    send(&team.open(), "m1");
    assert!(!bob(team).has_reader().unwrap());
    let first = bob(team).consumer().unwrap();
    assert!(bob(team).has_reader().unwrap());
    let refused = bob(team).consumer().unwrap_err();
    assert_eq!(refused.kind(), "being_read");
    let pid = std::process::id().to_string();
    assert!(refused.to_string().contains(&pid), "{refused}");
    drop(first);
    assert!(!bob(team).has_reader().unwrap());
    bob(team).consumer().unwrap();
}

pub(crate) fn expired_messages_are_counted_and_not_handed_over(team: &mut Team) {
    let mailbox = team.open();
    let expiring = Draft {
        expires_at: Some((team.now)() + 60_000),
        ..text("a", "bob", "old news")
    };
    mailbox.send(&expiring).unwrap();
    send(&mailbox, "news");
    assert_eq!(bob(team).list(false).unwrap().messages.len(), 2);
    (team.pass)(60_000);
    assert_eq!(bob(team).list(false).unwrap().messages.len(), 1);
    let mut consumer = bob(team).consumer().unwrap();
    let batch = consumer.take(9).unwrap();
    assert_eq!(texts(&batch.messages), ["news"]);
    assert_eq!(texts(&batch.expired), ["old news"]);
    assert_eq!(consumer.acked(), 1, "it leaves no gap");
    assert_eq!(consumer.ack(&[2]).unwrap().acked, 2);
}

pub(crate) fn a_reader_is_woken(team: &mut Team) {
    let inbox = bob(team);
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

/// The bench measures the time.
pub(crate) fn a_waiting_reader_is_woken(team: &mut Team) {
    let mut consumer = bob(team).consumer().unwrap();
    let mailbox = team.open();
    for n in 0..9 {
        std::thread::scope(|scope| {
            scope.spawn(|| send(&mailbox, &format!("m{n}")));
            assert!(consumer.wait(Duration::from_secs(60)).unwrap());
        });
        assert_eq!(consumer.take(9).unwrap().messages.len(), 1);
    }
}

pub(crate) fn a_follower_sees_everything_once(team: &mut Team) {
    let mailbox = team.open();
    send(&mailbox, "m1");
    send(&mailbox, "m2");
    let mut new = bob(team).follow(None).unwrap();
    let mut from_one = bob(team).follow(Some(1)).unwrap();
    assert_eq!((new.last(), from_one.last()), (2, 1));
    assert!(new.poll().unwrap().is_empty());
    assert_eq!(texts(&from_one.poll().unwrap()), ["m2"]);
    let mut seen = Vec::new();
    std::thread::scope(|scope| {
        scope.spawn(|| send(&mailbox, "m3"));
        let begun = Instant::now();
        while seen.is_empty() && begun.elapsed() < Duration::from_secs(60) {
            new.wait(Duration::from_secs(1));
            seen.extend(new.poll().unwrap());
        }
    });
    assert_eq!(texts(&seen), ["m3"]);
    assert_eq!(texts(&from_one.poll().unwrap()), ["m3"]);
    assert!(from_one.poll().unwrap().is_empty());
    assert_eq!((new.last(), from_one.last()), (3, 3));
    let later = bob(team).follow(Some(4)).unwrap_err();
    assert_eq!(later.kind(), "message_not_found");
    assert!(!bob(team).has_reader().unwrap(), "looking is not reading");
}
