//! Messages to all agents.

use super::{Team, name, send, text};
use crate::{Body, Draft, Mailbox, Protocol, TeammateTerminated};
use store::Explain;

fn texts(mailbox: &Mailbox, agent: &str) -> Vec<(u64, String)> {
    let listing = mailbox.inbox(&name(agent)).unwrap().list(true).unwrap();
    let messages = listing.messages.into_iter();
    messages
        .map(|(message, _)| (message.seq, message.text().unwrap().to_owned()))
        .collect()
}

fn broadcast(mailbox: &Mailbox, from: &str, words: &str) -> u64 {
    let everyone = ["bob", "carol", "dan"].map(name);
    let draft = text(from, from, words);
    mailbox.broadcast(&draft, &everyone).unwrap().number
}

fn numbered(expected: &[&str]) -> Vec<(u64, String)> {
    (1..)
        .zip(expected)
        .map(|(seq, text)| (seq, (*text).to_owned()))
        .collect()
}

#[test]
fn a_copy_that_was_not_noted_is_not_made_again() {
    let team = Team::new();
    broadcast(&team.open(), "a", "one");
    broadcast(&team.open(), "a", "two");
    // As if every process had died between copying and recording it.
    std::fs::remove_file(team.inbox_dir("bob").join("marks.jsonl")).unwrap();
    send(&team.open(), "three");
    assert_eq!(
        texts(&team.open(), "bob"),
        numbered(&["one", "two", "three"])
    );
}

#[test]
fn a_broadcast_nobody_copied_comes_before_later_mail() {
    let team = Team::new();
    let mailbox = team.open();
    send(&mailbox, "one");
    // A sender that died right after the commit, twice.
    let committed = {
        let other = Team::new();
        broadcast(&other.open(), "a", "two");
        broadcast(&other.open(), "a", "three");
        std::fs::read(other.dir.path().join("teams/team/broadcast.jsonl")).unwrap()
    };
    let path = team.dir.path().join("teams/team/broadcast.jsonl");
    let tmp = team.dir.path();
    store::atomic::replace(tmp, &path, &committed, store::atomic::Durability::Relaxed).unwrap();
    assert_eq!(texts(&team.open(), "dan"), numbered(&["two", "three"]));
    send(&mailbox, "four");
    assert_eq!(
        texts(&mailbox, "bob"),
        numbered(&["one", "two", "three", "four"])
    );
}

#[test]
fn old_broadcasts_are_dropped_once_everyone_has_them() {
    let mut team = Team::new();
    team.limits.broadcast_bytes = 2000;
    let mut expected = Vec::new();
    for n in 1..=60 {
        let words = format!("number {n}");
        assert_eq!(broadcast(&team.open(), "a", &words), n);
        expected.push((n, words));
    }
    let path = team.dir.path().join("teams/team/broadcast.jsonl");
    assert!(path.metadata().unwrap().len() < 3000);
    for agent in ["bob", "carol", "dan"] {
        assert_eq!(texts(&team.open(), agent), expected);
    }
}

#[test]
fn what_is_not_for_all_is_refused() {
    let team = Team::new();
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
    assert!(!team.dir.path().join("teams").exists(), "nothing happened");
}
