//! Many senders at once, and a reader that is killed over and over.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use harness::{Random, TestHome, wait_until};

use crate::{CCB, MAIL_WORKER};

const SENDERS: u64 = 32;

/// Messages per sender, and kills of the reader. A database takes longer for each, and is no less
/// at risk.
fn size(home: &TestHome) -> (u64, u64) {
    match home.board_url() {
        None => (500, 50),
        Some(_) => (100, 15),
    }
}

/// The output of one reader before it was killed or done, in its order.
#[derive(Debug, PartialEq)]
enum Said {
    Handed {
        seq: u64,
        id: String,
        redelivered: bool,
        from: String,
        number: u64,
    },
    Trying(u64),
    Acked(u64),
}

fn parse(line: &str) -> Option<Said> {
    let fields: Vec<&str> = line.split(' ').collect();
    match fields[..] {
        ["H", seq, id, redelivered, from, number] => Some(Said::Handed {
            seq: seq.parse().ok()?,
            id: id.to_owned(),
            redelivered: redelivered == "true",
            from: from.to_owned(),
            number: number.parse().ok()?,
        }),
        ["T", seq] => Some(Said::Trying(seq.parse().ok()?)),
        ["A", seq] => Some(Said::Acked(seq.parse().ok()?)),
        _ => None,
    }
}

fn start(home: &TestHome, args: &[&str]) -> Child {
    Command::new(MAIL_WORKER)
        .arg(home.path())
        .arg("board")
        .args(args)
        .envs(home.board_url().map(|url| ("CCB_BOARD", url)))
        .stdout(Stdio::piped())
        .spawn()
        .expect("the worker starts")
}

/// One life of a reader: killed once it has printed `enough`.
fn live(home: &TestHome, enough: impl Fn(&Said) -> bool) -> Vec<Said> {
    let mut process = start(home, &["read", "bob", "7"]);
    let mut lines = BufReader::new(process.stdout.take().expect("piped")).lines();
    let mut said = Vec::new();
    loop {
        let line = lines.next().expect("a line").expect("text");
        let line = parse(&line).expect("what a reader says");
        let enough = enough(&line);
        said.push(line);
        if enough {
            break;
        }
    }
    process.kill().expect("it can be killed");
    process.wait().expect("it ends");
    // Its last line may be half a line.
    said.extend(lines.map_while(Result::ok).filter_map(|line| parse(&line)));
    said
}

/// 32 processes send many messages each while their reader is killed again and again: every message
/// is acknowledged once, each sender's order is kept, and a message that was delivered twice said
/// so and had not been acknowledged.
#[test]
fn nothing_is_lost_or_acknowledged_twice() {
    let home = TestHome::in_memory(CCB);
    let (each, kills) = size(&home);
    let mut senders: Vec<Child> = (0..SENDERS)
        .map(|n| {
            let from = format!("s{n}");
            start(&home, &["send", &from, "bob", &each.to_string()])
        })
        .collect();
    let mut random = Random::new(7);
    let mut history = Vec::new();
    for _ in 0..kills {
        let left = std::cell::Cell::new(1 + random.below(400));
        history.extend(live(&home, |_| {
            left.set(left.get() - 1);
            left.get() == 0
        }));
    }
    for sender in &mut senders {
        assert!(sender.wait().unwrap().success());
    }
    let total = SENDERS * each;
    history.extend(live(&home, |said| *said == Said::Acked(total)));

    check(&history, each, kills);
    let inbox = home.ok(&["mail", "inbox", "--as", "bob"]);
    assert_eq!(inbox["acked"], total);
    assert_eq!(inbox["messages"], serde_json::json!([]));
    assert_eq!(inbox.get("rejected"), None);
}

fn check(history: &[Said], each: u64, kills: u64) {
    let total = SENDERS * each;
    let mut ids: BTreeMap<u64, &str> = BTreeMap::new();
    let mut acked = BTreeSet::new();
    let mut tried = BTreeSet::new();
    let mut numbers: BTreeMap<&str, u64> = BTreeMap::new();
    let mut repeats = 0;
    for said in history {
        match said {
            Said::Handed {
                seq,
                id,
                redelivered,
                from,
                number,
            } => {
                assert!(!acked.contains(seq), "{seq} came after it was acknowledged");
                match ids.insert(*seq, id) {
                    Some(before) => {
                        repeats += 1;
                        assert_eq!(before, id, "{seq} has another id");
                        assert!(redelivered, "{seq} came again without saying so");
                    }
                    None => {
                        let last = numbers.entry(from).or_default();
                        assert_eq!(*number, *last + 1, "{from}'s messages are out of order");
                        *last = *number;
                    }
                }
            }
            Said::Trying(seq) => {
                tried.insert(*seq);
            }
            Said::Acked(seq) => assert!(acked.insert(*seq), "{seq} was acknowledged twice"),
        }
    }
    assert_eq!(
        ids.keys().copied().collect::<Vec<_>>(),
        (1..=total).collect::<Vec<_>>()
    );
    assert!(numbers.values().all(|last| *last == each), "{numbers:?}");
    // A reader that was killed between acknowledging and printing that had tried.
    let untold: Vec<u64> = (1..=total).filter(|seq| !acked.contains(seq)).collect();
    assert!(untold.iter().all(|seq| tried.contains(seq)), "{untold:?}");
    assert!(untold.len() as u64 <= kills * 7, "{untold:?}");
    assert!(
        repeats > 0,
        "no kill came between delivery and acknowledgement"
    );
    println!(
        "{total} messages, {kills} kills, {repeats} redelivered, {} untold",
        untold.len()
    );
}

/// Broadcasts and messages from many processes at once, while old broadcasts are dropped and
/// one inbox is read: every inbox has every broadcast once, all in the same order.
#[test]
fn broadcasts_reach_every_inbox_once_and_in_one_order() {
    const SHOUTS: u64 = 40;
    let home = TestHome::in_memory(CCB);
    home.team(&["bob", "carol", "team-lead"]);
    let reader = start(&home, &["read", "carol", "5"]);
    let mut writers: Vec<Child> = (0..6)
        .flat_map(|n| {
            let (shouter, sender) = (format!("b{n}"), format!("s{n}"));
            [
                start(&home, &["shout", &shouter, &SHOUTS.to_string()]),
                start(&home, &["send", &sender, "bob", "100"]),
            ]
        })
        .collect();
    for writer in &mut writers {
        assert!(writer.wait().unwrap().success());
    }
    let mut reader = reader;
    reader.kill().unwrap();
    reader.wait().unwrap();
    let inbox = |agent: &str| {
        let listing = home.ok(&["mail", "inbox", "--all", "--as", agent]);
        listing["messages"].as_array().unwrap().clone()
    };
    let shouts = |messages: &[serde_json::Value]| -> Vec<(String, String)> {
        let copies = messages.iter().filter(|m| m.get("broadcast").is_some());
        copies
            .map(|m| (m["from"].to_string(), m["text"].to_string()))
            .collect()
    };
    let bob = inbox("bob");
    let seqs: Vec<u64> = bob.iter().map(|m| m["seq"].as_u64().unwrap()).collect();
    assert_eq!(seqs, (1..=6 * (SHOUTS + 100)).collect::<Vec<_>>());
    let expected = shouts(&bob);
    let different: BTreeSet<_> = expected.iter().collect();
    assert_eq!(different.len() as u64, 6 * SHOUTS, "each once");
    for agent in ["carol", "team-lead"] {
        assert!(
            shouts(&inbox(agent)) == expected,
            "{agent} has another order"
        );
    }
    if home.board_url().is_some() {
        return;
    }
    let kept = home.team_dir().join("broadcast.jsonl");
    assert!(
        kept.metadata().unwrap().len() < 3 * 4096,
        "old ones are gone"
    );
}

/// A reader that waits is woken by the next message, also by a broadcast.
#[test]
fn a_waiting_reader_gets_what_arrives() {
    let home = TestHome::in_memory(CCB);
    home.team(&["bob", "carol"]);
    let mut reader = start(&home, &["read", "bob", "7"]);
    let mut lines = BufReader::new(reader.stdout.take().expect("piped")).lines();
    // Another reader is refused then.
    let listens = || home.run(&["--json", "mail", "read", "--as", "bob"]).code == Some(4);
    wait_until(Duration::from_secs(30), "the reader", listens);
    for (to, text) in [("bob", "1"), ("*", "2")] {
        home.ok(&["mail", "send", to, text]);
        let line = lines.next().expect("a line").expect("text");
        match parse(&line).expect("what a reader says") {
            Said::Handed { number, .. } => assert_eq!(number.to_string(), text),
            other => panic!("{other:?}"),
        }
        for _ in 0..2 {
            lines.next().expect("a line").expect("text");
        }
    }
    reader.kill().unwrap();
    reader.wait().unwrap();
}

/// While one process reads, another is refused and learns which one reads.
#[test]
fn a_second_reader_is_refused() {
    let home = TestHome::in_memory(CCB);
    home.team(&["bob"]);
    home.ok(&["mail", "send", "bob", "1"]);
    let mut reader = start(&home, &["read", "bob", "7"]);
    let mut lines = BufReader::new(reader.stdout.take().expect("piped")).lines();
    lines.next().expect("a line").expect("text");
    let error = home.fails(4, &["mail", "read", "--as", "bob"]);
    assert_eq!(error["error"]["kind"], "being_read");
    let message = error["error"]["message"].as_str().unwrap();
    assert!(message.contains(&reader.id().to_string()), "{message}");
    home.fails(4, &["mail", "ack", "1", "--as", "bob"]);
    home.ok(&["mail", "inbox", "--as", "bob"]);
    reader.kill().unwrap();
    reader.wait().unwrap();
    home.ok(&["mail", "read", "--as", "bob"]);
}
