//! Messages to all agents.

use mailbox::{Body, Draft, Mailbox, Protocol, TeammateTerminated};
use store::Explain;

use super::{Team, kept, name, numbered, send, text};

fn broadcast(mailbox: &Mailbox, from: &str, words: &str) -> u64 {
    let everyone = ["bob", "carol", "dan"].map(name);
    let draft = text(from, from, words);
    mailbox.broadcast(&draft, &everyone).unwrap().number
}

pub(crate) fn everyone_but_the_sender_gets_it_in_order(team: &mut Team) {
    let mailbox = team.open();
    send(&mailbox, "one");
    assert_eq!(broadcast(&mailbox, "Carol", "two"), 1);
    send(&mailbox, "three");
    assert_eq!(broadcast(&team.open(), "a", "four"), 2);
    let expected = numbered(&["one", "two", "three", "four"]);
    assert_eq!(kept(&mailbox, "bob"), expected);
    assert_eq!(kept(&mailbox, "carol"), numbered(&["four"]));
    assert_eq!(kept(&mailbox, "dan"), numbered(&["two", "four"]));
    assert_eq!(kept(&mailbox, "eve"), numbered(&[]));
    let copy = mailbox.inbox(&name("dan")).unwrap().list(true).unwrap();
    assert_eq!(copy.messages[1].0.broadcast, Some(2));
    assert_eq!(copy.messages[1].0.to, "dan");
    let ids: Vec<_> = ["bob", "carol", "dan"]
        .into_iter()
        .map(|agent| mailbox.inbox(&name(agent)).unwrap().list(true).unwrap())
        .map(|listing| listing.messages.last().unwrap().0.id)
        .collect();
    assert!(ids.iter().all(|id| *id == ids[0]), "every copy has its id");
}

/// A view of the team sees every message, and a broadcast as one to everyone.
pub(crate) fn a_view_sees_what_passes(team: &mut Team) {
    let mailbox = team.open();
    send(&mailbox, "one");
    let mut view = team.open().follow();
    let mut look = || {
        let mut seen = view.look().unwrap();
        seen.sort_by_key(|message| message.id);
        seen.dedup_by_key(|message| message.id);
        let shown = |message: mailbox::Message| {
            let text = message.text().unwrap().to_owned();
            (text, message.to)
        };
        let mut shown: Vec<_> = seen.into_iter().map(shown).collect();
        shown.sort();
        shown
    };
    let to = |text: &str, to: &str| (text.to_owned(), to.to_owned());
    assert_eq!(look(), [to("one", "bob")]);
    assert_eq!(look(), []);
    broadcast(&mailbox, "a", "all");
    mailbox.send(&text("bob", "a", "two")).unwrap();
    assert_eq!(look(), [to("all", "*"), to("two", "a")]);
    assert_eq!(look(), []);
    assert_eq!(
        kept(&mailbox, "bob"),
        numbered(&["one", "all"]),
        "nothing is taken"
    );
}

/// Recipients named in another order must not make senders wait for each other for ever.
pub(crate) fn many_at_once_are_in_the_same_order_for_everyone(team: &mut Team) {
    std::thread::scope(|scope| {
        for sender in 0..8 {
            let team = &*team;
            scope.spawn(move || {
                let mailbox = team.open();
                let mut everyone = ["bob", "carol", "dan"].map(name);
                everyone.rotate_left(sender % 3);
                for n in 0..5 {
                    let draft = text("a", "a", &format!("{sender} {n}"));
                    mailbox.broadcast(&draft, &everyone).unwrap();
                    send(&mailbox, "between");
                }
            });
        }
    });
    let numbers = |agent: &str| -> Vec<(u64, String)> {
        let inbox = team.open().inbox(&name(agent)).unwrap();
        let messages = inbox.list(true).unwrap().messages.into_iter();
        messages
            .filter_map(|(m, _)| Some((m.broadcast?, m.text()?.to_owned())))
            .collect()
    };
    let bob = numbers("bob");
    let expected: Vec<u64> = (1..=40).collect();
    assert_eq!(bob.iter().map(|(n, _)| *n).collect::<Vec<_>>(), expected);
    assert_eq!(bob, numbers("carol"));
    assert_eq!(bob, numbers("dan"));
    assert_eq!(kept(&team.open(), "bob").len(), 80);
}

pub(crate) fn what_is_not_for_all_is_refused(team: &mut Team) {
    let mailbox = team.open();
    let body = Body::Protocol(Protocol::TeammateTerminated(TeammateTerminated {
        teammate: "x".into(),
        reason: None,
        returned_tasks: vec![],
    }));
    let protocol = Draft::new(name("a"), name("a"), body);
    let error = mailbox.broadcast(&protocol, &[name("bob")]).unwrap_err();
    assert_eq!(error.kind(), "not_for_all");
    let alone = mailbox.broadcast(&text("bob", "bob", "hi"), &[name("BOB")]);
    assert_eq!(alone.unwrap_err().kind(), "invalid");
    assert!(!mailbox.inbox(&name("bob")).unwrap().exists());
}

pub(crate) fn one_full_inbox_stops_it_for_all(team: &mut Team) {
    team.limits.unread = 2;
    let mailbox = team.open();
    send(&mailbox, "one");
    send(&mailbox, "two");
    let everyone = ["carol", "bob"].map(name);
    let error = mailbox.broadcast(&text("a", "a", "hi"), &everyone);
    assert_eq!(error.unwrap_err().kind(), "inbox_full");
    assert_eq!(kept(&mailbox, "carol"), numbered(&[]));
    team.limits.unread = 3;
    assert_eq!(
        broadcast(&team.open(), "a", "hi"),
        1,
        "it took no number either"
    );
}
