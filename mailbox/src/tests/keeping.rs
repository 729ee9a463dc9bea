//! Kept messages, refused messages, and the limits of a damaged file's effect.

use std::io::Write;
use std::path::Path;
use store::Explain;

use proptest::prelude::*;
use store::atomic::{Durability, replace};

use super::{Team, name, send, text};
use crate::Mailbox;

fn write(path: &Path, bytes: &[u8]) {
    replace(path.parent().unwrap(), path, bytes, Durability::Relaxed).unwrap();
}

/// Everything that was ever sent to bob and is still kept, by number.
fn kept(mailbox: &Mailbox) -> Vec<(u64, String)> {
    let listing = mailbox.inbox(&name("bob")).unwrap().list(true).unwrap();
    let messages = listing.messages.into_iter();
    messages
        .map(|(message, _)| (message.seq, message.text().unwrap().to_owned()))
        .collect()
}

#[test]
fn acknowledged_messages_move_to_archives_and_old_archives_go() {
    let mut team = Team::new();
    team.limits.rotate_bytes = 1000;
    team.limits.archives = 2;
    let (mailbox, other) = (team.open(), team.open());
    let mut consumer = mailbox.consumer(&name("bob")).unwrap();
    for n in 1..=100 {
        let sender = if n % 3 == 0 { &other } else { &mailbox };
        assert_eq!(send(sender, &format!("m{n}")).seq, n);
        let messages = consumer.take(9).unwrap().messages;
        assert_eq!(messages.len(), 1);
        assert_eq!(messages[0].seq, n);
        // A few are always left.
        if n % 5 == 0 {
            consumer.ack_up_to(n - 2).unwrap();
        }
    }
    let inbox = mailbox.inbox(&name("bob")).unwrap();
    let files = store::tree::names_in(&team.inbox_dir("bob")).unwrap();
    let archives = files.iter().filter(|file| file.starts_with("archive-"));
    assert_eq!(archives.count(), 2, "{files:?}");
    let log = team.inbox_dir("bob").join("log.jsonl");
    assert!(log.metadata().unwrap().len() < 3000);
    let kept = kept(&team.open());
    assert_eq!(kept.last().unwrap(), &(100, "m100".to_owned()));
    assert!(kept.windows(2).all(|pair| pair[0].0 + 1 == pair[1].0));
    let waiting = inbox.list(false).unwrap();
    assert_eq!((waiting.acked, waiting.messages.len()), (98, 2));
}

#[test]
fn damaged_lines_are_set_aside_and_numbers_go_on() {
    let team = Team::new();
    let mailbox = team.open();
    send(&mailbox, "one");
    let log = team.inbox_dir("bob").join("log.jsonl");
    let mut bytes = std::fs::read(&log).unwrap();
    bytes.extend_from_slice(b"garbage\n{\"v\":1,\"seq\":1}\n\xff\xfe\n");
    write(&log, &bytes);
    assert_eq!(send(&team.open(), "two").seq, 2, "they took no number");
    let listing = mailbox.inbox(&name("bob")).unwrap().list(false).unwrap();
    assert_eq!((listing.messages.len(), listing.rejected), (2, 3));
    let mut consumer = mailbox.consumer(&name("bob")).unwrap();
    let batch = consumer.take(9).unwrap();
    assert_eq!((batch.messages.len(), batch.rejected), (2, 3));
    assert_eq!(consumer.ack_up_to(2).unwrap().acked, 2);
    let rejected = std::fs::read_to_string(team.inbox_dir("bob").join("rejected.jsonl"));
    assert!(rejected.unwrap().contains("garbage"));
    let log = std::fs::read_to_string(&log).unwrap();
    assert_eq!(log.lines().count(), 2, "{log}");
    assert_eq!(send(&mailbox, "three").seq, 3);
}

#[test]
fn an_old_line_that_comes_again_takes_no_number() {
    let team = Team::new();
    let warm = team.open();
    for n in 1..=4 {
        send(&warm, &format!("m{n}"));
    }
    let log = team.inbox_dir("bob").join("log.jsonl");
    let mut bytes = std::fs::read(&log).unwrap();
    let first = bytes.iter().position(|b| *b == b'\n').unwrap();
    bytes.extend_from_within(..=first);
    write(&log, &bytes);
    assert_eq!(send(&team.open(), "m5").seq, 5);
    std::fs::OpenOptions::new()
        .append(true)
        .open(&log)
        .and_then(|mut log| log.write_all(&bytes[..=first]))
        .unwrap();
    assert_eq!(
        send(&warm, "m6").seq,
        6,
        "a process that was there notices, too"
    );
    let mut consumer = team.open().consumer(&name("bob")).unwrap();
    let batch = consumer.take(9).unwrap();
    assert_eq!((batch.messages.len(), batch.rejected), (6, 2));
}

#[test]
fn a_damaged_message_leaves_a_gap_that_blocks_nothing() {
    let team = Team::new();
    let mailbox = team.open();
    for n in 1..=3 {
        send(&mailbox, &format!("m{n}"));
    }
    let log = team.inbox_dir("bob").join("log.jsonl");
    let text = std::fs::read_to_string(&log).unwrap();
    write(
        &log,
        text.replace("\"text\":\"m2\"", "\"text\":m2").as_bytes(),
    );
    let mut consumer = team.open().consumer(&name("bob")).unwrap();
    let batch = consumer.take(9).unwrap();
    assert_eq!((batch.messages.len(), batch.rejected), (2, 1));
    assert_eq!(consumer.ack(&[1, 3]).unwrap().acked, 3);
    assert_eq!(send(&mailbox, "m4").seq, 4);
}

#[test]
fn a_log_or_cursor_that_is_lost_hides_no_new_message() {
    let team = Team::new();
    for n in 1..=3 {
        send(&team.open(), &format!("m{n}"));
    }
    let mut consumer = team.open().consumer(&name("bob")).unwrap();
    consumer.take(9).unwrap();
    consumer.ack_up_to(2).unwrap();
    drop(consumer);
    let dir = team.inbox_dir("bob");
    std::fs::remove_file(dir.join("log.jsonl")).unwrap();
    assert_eq!(send(&team.open(), "m4").seq, 4, "no number comes twice");
    let mut consumer = team.open().consumer(&name("bob")).unwrap();
    let batch = consumer.take(9).unwrap();
    assert_eq!(batch.messages.len(), 1);
    assert!(!batch.messages[0].redelivered);
    drop(consumer);
    write(&dir.join("cursor.json"), b"");
    send(&team.open(), "m5");
    let mut consumer = team.open().consumer(&name("bob")).unwrap();
    let batch = consumer.take(9).unwrap();
    let marked: Vec<bool> = batch.messages.iter().map(|m| m.redelivered).collect();
    assert_eq!(marked, [true, true], "nobody knows who has seen them");
    send(&team.open(), "m6");
    assert!(!consumer.take(9).unwrap().messages[0].redelivered);
}

#[test]
fn numbers_go_on_after_everything_was_archived_and_the_cursor_lost() {
    let mut team = Team::new();
    team.limits.rotate_bytes = 1;
    for n in 1..=3 {
        send(&team.open(), &format!("m{n}"));
    }
    let mut consumer = team.open().consumer(&name("bob")).unwrap();
    consumer.ack_up_to(3).unwrap();
    std::fs::remove_file(team.inbox_dir("bob").join("cursor.json")).unwrap();
    assert_eq!(send(&team.open(), "m4").seq, 4);
}

#[test]
fn a_failed_look_is_made_up_for() {
    let team = Team::new();
    for n in 1..=3 {
        send(&team.open(), &format!("m{n}"));
    }
    let cursor = team.inbox_dir("bob").join("cursor.json");
    std::fs::create_dir(&cursor).unwrap();
    let mailbox = team.open();
    for _ in 0..2 {
        let error = mailbox.send(&text("a", "bob", "x")).unwrap_err();
        assert_eq!(error.kind(), "io", "{error}");
    }
    std::fs::remove_dir(&cursor).unwrap();
    assert_eq!(send(&mailbox, "m4").seq, 4);
}

#[test]
fn files_of_a_newer_format_are_read_and_not_written() {
    let team = Team::new();
    send(&team.open(), "one");
    let log = team.inbox_dir("bob").join("log.jsonl");
    let mut text = std::fs::read_to_string(&log).unwrap();
    let newer = text
        .replace("\"v\":1,\"seq\":1", "\"v\":2,\"seq\":2")
        .replace("\"kind\":\"message\"", "\"kind\":\"dream\"");
    text.push_str(&newer);
    write(&log, text.as_bytes());
    let mailbox = team.open();
    let error = mailbox.send(&super::text("a", "bob", "x")).unwrap_err();
    assert_eq!(error.kind(), "newer_version");
    let listing = mailbox.inbox(&name("bob")).unwrap().list(false).unwrap();
    assert_eq!(listing.messages[1].0.body.kind(), "dream");
    assert_eq!(std::fs::read_to_string(&log).unwrap(), text);
    let other = Team::new();
    send(&other.open(), "one");
    write(
        &other.inbox_dir("bob").join("cursor.json"),
        b"{\"v\":2,\"acked\":0}",
    );
    let mut consumer = other.open().consumer(&name("bob")).unwrap();
    assert_eq!(consumer.take(9).unwrap_err().kind(), "newer_version");
}

/// A damage to a log.
#[derive(Debug, Clone)]
enum Damage {
    /// These bytes replace one, anywhere.
    Splice(prop::sample::Index, Vec<u8>),
    /// A line of them comes in at some line's end.
    Insert(prop::sample::Index, Vec<u8>),
    /// It ends here.
    Cut(prop::sample::Index),
}

/// A whole message with this number.
fn full_line(seq: u64) -> Vec<u8> {
    let draft = text("x", "bob", "forged");
    let mut line = Vec::new();
    let sealed = crate::line::seal(
        &draft,
        super::NOW,
        None,
        &store::secret_filter::SecretFilter::default(),
    )
    .unwrap();
    sealed.write(seq, &mut line);
    line.pop();
    line
}

fn damage() -> impl Strategy<Value = Damage> {
    let bytes = || {
        prop_oneof![
            prop::collection::vec(any::<u8>(), 0..40),
            Just(b"{\"v\":1,\"seq\":3,}".to_vec()),
            Just(b"{\"v\":1,\"seq\":99999,\"x\":1}".to_vec()),
            Just(b"{\"v\":1,\"seq\":18446744073709551615,\"x\":1}".to_vec()),
            Just(full_line(u64::MAX)),
            Just(b"\n\n".to_vec()),
        ]
    };
    prop_oneof![
        (any::<prop::sample::Index>(), bytes()).prop_map(|(at, b)| Damage::Splice(at, b)),
        (any::<prop::sample::Index>(), bytes()).prop_map(|(at, b)| Damage::Insert(at, b)),
        any::<prop::sample::Index>().prop_map(Damage::Cut),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2048))]

    /// With any bytes in the log: no panic, no untouched line lost, no number twice, and the inbox
    /// still works.
    #[test]
    fn any_damage_spares_the_other_lines(damages in prop::collection::vec(damage(), 1..5)) {
        let team = Team::new();
        let mailbox = team.open();
        for n in 1..=6 {
            send(&mailbox, &format!("m{n}"));
        }
        let log = team.inbox_dir("bob").join("log.jsonl");
        let original = std::fs::read(&log).unwrap();
        let mut bytes = original.clone();
        for damage in damages {
            match damage {
                Damage::Splice(at, with) if !bytes.is_empty() => {
                    let at = at.index(bytes.len());
                    bytes.splice(at..=at, with);
                }
                Damage::Insert(at, line) => {
                    let ends: Vec<usize> = (0..bytes.len()).filter(|n| bytes[*n] == b'\n').collect();
                    if !ends.is_empty() {
                        let at = ends[at.index(ends.len())] + 1;
                        bytes.splice(at..at, [line, b"\n".to_vec()].concat());
                    }
                }
                Damage::Cut(at) => bytes.truncate(at.index(bytes.len() + 1)),
                Damage::Splice(..) => {}
            }
        }
        write(&log, &bytes);
        // Undamaged messages must be handed over in their old order.
        let complete = bytes.iter().rposition(|b| *b == b'\n').map_or(0, |n| n + 1);
        let lines: Vec<&[u8]> = bytes[..complete].split(|b| *b == b'\n').collect();
        let untouched: Vec<&[u8]> = original
            .split(|b| *b == b'\n')
            .filter(|line| !line.is_empty() && lines.contains(line))
            .collect();
        let fresh = team.open();
        let added = send(&fresh, "after").seq;
        prop_assert!(added > untouched.len() as u64);
        let mut consumer = fresh.consumer(&name("bob")).unwrap();
        let messages = consumer.take(usize::MAX).unwrap().messages;
        let seqs: Vec<u64> = messages.iter().map(|message| message.seq).collect();
        prop_assert!(seqs.windows(2).all(|pair| pair[0] < pair[1]), "{:?}", seqs);
        for line in untouched {
            let message = crate::line::parse(line).unwrap().message;
            prop_assert!(messages.contains(&message), "{:?} is lost", message);
        }
        prop_assert_eq!(messages.last().unwrap().text(), Some("after"));
        prop_assert_eq!(consumer.ack_up_to(added).unwrap().acked, added);
        prop_assert_eq!(send(&fresh, "more").seq, added + 1);
        prop_assert_eq!(consumer.take(9).unwrap().messages.len(), 1);
    }

    #[test]
    fn any_bytes_are_read_without_panic(line in prop::collection::vec(any::<u8>(), 0..300)) {
        crate::line::parse(&line).ok();
        crate::line::head(&line);
    }
}
