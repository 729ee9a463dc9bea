//! Mail: the designs that are compared, and the processes that send and read.

mod array;
mod ccb;
pub(crate) mod latency;
pub(crate) mod throughput;

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

use crate::Failure;
use crate::args::{MailArgs, MailWriterArgs};
use crate::fleet::{now, wait_for_start};

/// A way to keep messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum MailDesign {
    /// ccb's mailbox: an append-only log per agent.
    Ccb,
    /// One JSON array per agent, written anew for each message.
    Array,
}

/// A process that sends.
trait Sender {
    fn send(&mut self, text: &str) -> Result<(), Failure>;
}

/// A process that reads one inbox.
trait Reader {
    /// Waits a moment for messages, fetches them, and only then passes them to `received`, with the
    /// time at which it woke up and saw them; acknowledges them afterwards.
    fn receive(&mut self, received: &mut dyn FnMut(&str, u64)) -> Result<(), Failure>;
}

impl MailDesign {
    pub(crate) const ALL: [Self; 2] = [Self::Ccb, Self::Array];

    /// For tables.
    fn label(self) -> &'static str {
        match self {
            Self::Ccb => "ccb",
            Self::Array => "JSON array",
        }
    }

    fn word(self) -> &'static str {
        match self {
            Self::Ccb => "ccb",
            Self::Array => "array",
        }
    }

    /// Fills an inbox with messages, unread or read.
    fn fill(self, dir: &Path, inbox: &str, messages: u64, read: bool) -> Result<(), Failure> {
        match self {
            Self::Ccb => ccb::fill(dir, inbox, messages, read),
            Self::Array => array::fill(dir, inbox, messages, read),
        }
    }

    /// The number of messages in an inbox that was never read.
    fn count(self, dir: &Path, inbox: &str) -> Result<u64, Failure> {
        match self {
            Self::Ccb => ccb::count(dir, inbox),
            Self::Array => array::count(dir, inbox),
        }
    }

    fn sender(self, args: &MailArgs, from: &str) -> Result<Box<dyn Sender>, Failure> {
        Ok(match self {
            Self::Ccb => Box::new(ccb::Writer::open(args, from)?),
            Self::Array => Box::new(array::Writer::open(args, from)),
        })
    }

    fn reader(self, args: &MailArgs) -> Result<Box<dyn Reader>, Failure> {
        Ok(match self {
            Self::Ccb => Box::new(ccb::Consumer::open(args)?),
            Self::Array => Box::new(array::Watcher::open(args)),
        })
    }
}

/// A text with its sending time, as long as messages between agents often are.
fn text(sent: u64) -> String {
    const WORDS: &str = "The parser is done and its tests pass; the fuzzer found two more cases \
        in the number reader, which I have put on the board. Please look at the branch \
        before you rebase yours.";
    format!("{sent:020} {WORDS}")
}

/// The sending time of a text.
fn sent(text: &str) -> Option<u64> {
    text.get(..20)?.parse().ok()
}

/// The results of a writer. Times in nanoseconds.
#[derive(Debug, Serialize, Deserialize)]
struct Written {
    /// Messages whose sending was acknowledged.
    sent: u64,
    /// Those of them that were within the time.
    in_time: u64,
    /// The duration of each call; a sample if there are very many.
    waits: Vec<u64>,
    longest: u64,
    failures: u64,
    first_failure: Option<String>,
}

/// The delay of each message for a reader, from before it was sent. Times in nanoseconds.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Delays {
    /// Until it had woken up and seen it.
    seen: Vec<u64>,
    /// Until it had the message.
    taken: Vec<u64>,
}

/// The writer's side.
pub(crate) fn write(args: &MailWriterArgs) -> Result<(), Failure> {
    let mut sender = args.mail.design.sender(&args.mail, &args.from)?;
    let Some(start) = wait_for_start()? else {
        return Ok(());
    };
    let limit = Duration::from_millis(args.mail.millis).as_nanos() as u64;
    let mut written = Written {
        sent: 0,
        in_time: 0,
        waits: Vec::new(),
        longest: 0,
        failures: 0,
        first_failure: None,
    };
    loop {
        let before = now();
        if before - start > limit {
            break;
        }
        match sender.send(&text(before)) {
            Ok(()) => {
                let after = now();
                written.sent += 1;
                written.in_time += u64::from(after - start <= limit);
                written.longest = written.longest.max(after - before);
                // One process reads the reports; a share of the waits says as much.
                if written.sent < 1000 || written.sent.is_multiple_of(64) {
                    written.waits.push(after - before);
                }
            }
            Err(error) => {
                written.failures += 1;
                written.first_failure.get_or_insert(error.to_string());
            }
        }
        if args.pause > 0 {
            std::thread::sleep(Duration::from_micros(args.pause));
        }
    }
    println!("{}", serde_json::to_string(&written)?);
    Ok(())
}

/// The reader's side: reads for its time and reports the delay of each message.
pub(crate) fn read(args: &MailArgs) -> Result<(), Failure> {
    let mut reader = args.design.reader(args)?;
    let Some(start) = wait_for_start()? else {
        return Ok(());
    };
    // Longer than the writers write, so that all messages arrive.
    let limit = Duration::from_millis(args.millis).as_nanos() as u64;
    let mut delays = Delays::default();
    while now() - start < limit {
        reader.receive(&mut |text, woken| {
            if let Some(sent) = sent(text).filter(|sent| *sent >= start) {
                let taken = now();
                // A message sent after that was seen only when it was taken.
                let seen = if woken > sent { woken } else { taken };
                delays.seen.push(seen - sent);
                delays.taken.push(taken - sent);
            }
        })?;
    }
    println!("{}", serde_json::to_string(&delays)?);
    Ok(())
}

/// The command line of a process that uses an inbox.
fn process(word: &str, args: &MailArgs) -> Result<Command, Failure> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args([word, "--design", args.design.word(), "--inbox", &args.inbox]);
    command.arg("--millis").arg(args.millis.to_string());
    command.arg("--dir").arg(&args.dir);
    if args.durable {
        command.arg("--durable");
    }
    Ok(command)
}

fn durable_word(durable: bool) -> String {
    if durable { "durable" } else { "not durable" }.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_design_delivers_what_is_sent() {
        for design in MailDesign::ALL {
            let dir = tempfile::tempdir().unwrap();
            let args = MailArgs {
                design,
                dir: dir.path().to_owned(),
                inbox: "reader".into(),
                durable: true,
                millis: 0,
            };
            design.fill(dir.path(), "reader", 7, false).unwrap();
            design.sender(&args, "w0").unwrap().send(&text(42)).unwrap();
            assert_eq!(design.count(dir.path(), "reader").unwrap(), 8);
            let mut reader = design.reader(&args).unwrap();
            let mut found = Vec::new();
            while found.len() < 8 {
                reader
                    .receive(&mut |text, _| found.push(sent(text).unwrap()))
                    .unwrap();
            }
            assert_eq!(found, [0, 0, 0, 0, 0, 0, 0, 42]);
            reader
                .receive(&mut |text, _| panic!("{text} again"))
                .unwrap();
        }
    }
}
