//! The time until the reader has a message, on an idle machine and on a busy one.

use std::time::Duration;

use serde::Serialize;

use super::{Delays, MailDesign, Written, durable_word, process};
use crate::args::{MailArgs, Options};
use crate::environment::Place;
use crate::fleet::{Fleet, agent};
use crate::stats::percentile;
use crate::table::{Table, significant, thousands};
use crate::{Failure, check_interrupted};

/// Messages that have been read before.
const HISTORY: [u64; 2] = [0, 10_000];
const INBOX: &str = "reader";
/// The pause between two messages of the one whose delivery is measured.
const PAUSE: Duration = Duration::from_millis(5);
/// Time for which the reader reads after the writers have stopped.
const LINGER: Duration = Duration::from_millis(500);

/// The load meanwhile.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
enum Load {
    /// Nothing: one message every few milliseconds.
    Idle,
    /// Eight writers send into the same inbox, together about 800 messages a second.
    BusyInbox,
    /// Eight writers send into other inboxes as fast as they can.
    BusyMachine,
}

impl Load {
    const ALL: [Self; 3] = [Self::Idle, Self::BusyInbox, Self::BusyMachine];

    fn label(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::BusyInbox => "busy inbox",
            Self::BusyMachine => "busy machine",
        }
    }
}

/// One cell of the matrix, measured.
#[derive(Debug, Serialize)]
pub(crate) struct Sample {
    place: String,
    durable: bool,
    history: u64,
    load: Load,
    design: MailDesign,
    received: usize,
    /// Messages sent and not received within the time; an array may be that slow.
    missing: i64,
    /// Until the reader has woken up and seen it.
    seen_p50_ms: f64,
    seen_p99_ms: f64,
    /// Until the reader has the message.
    taken_p50_ms: f64,
    taken_p99_ms: f64,
    taken_max_ms: f64,
}

/// Measures the whole matrix.
pub(crate) fn run(options: &Options) -> Result<Vec<Sample>, Failure> {
    let mut samples = Vec::new();
    for place in &options.places {
        for durable in [true, false] {
            for history in HISTORY {
                for load in Load::ALL {
                    let (at, sync) = (&place.label, durable_word(durable));
                    let what = load.label();
                    eprintln!("delivery: {at}, {sync}, {history} messages before, {what}");
                    for design in MailDesign::ALL {
                        samples.push(cell(options, place, durable, (history, load), design)?);
                    }
                }
            }
        }
    }
    Ok(samples)
}

fn cell(
    options: &Options,
    place: &Place,
    durable: bool,
    (history, load): (u64, Load),
    design: MailDesign,
) -> Result<Sample, Failure> {
    let (mut delays, mut sent) = (Delays::default(), 0);
    for _ in 0..options.mail_rounds() {
        check_interrupted()?;
        let dir = place.scratch()?;
        design.fill(dir.path(), INBOX, history, true)?;
        place.flush()?;
        let args = |inbox: &str, limit: Duration| MailArgs {
            design,
            dir: dir.path().to_owned(),
            inbox: inbox.to_owned(),
            durable,
            millis: limit.as_millis() as u64,
        };
        let writer = |n: usize, inbox: &str, pause: Duration| {
            let mut command = process("mail-writer", &args(inbox, options.limit))?;
            command.arg("--from").arg(agent(n));
            command.arg("--pause").arg(pause.as_micros().to_string());
            Ok::<_, Failure>(command)
        };
        let mut commands = vec![writer(0, INBOX, PAUSE)?];
        for n in 1..=8 {
            match load {
                Load::Idle => {}
                Load::BusyInbox => commands.push(writer(n, INBOX, PAUSE * 2)?),
                Load::BusyMachine => {
                    commands.push(writer(n, &format!("other{n}"), Duration::ZERO)?);
                }
            }
        }
        let reader = process("mail-reader", &args(INBOX, options.limit + LINGER))?;
        let mut reading = Fleet::start(vec![reader])?;
        let mut writing = Fleet::start(commands)?;
        reading.begin()?;
        writing.begin()?;
        let written: Vec<Written> = writing.end(options.limit)?;
        let counted = if load == Load::BusyInbox { 9 } else { 1 };
        sent += written[..counted]
            .iter()
            .map(|report| report.sent)
            .sum::<u64>();
        let received: Vec<Delays> = reading.end(options.limit + LINGER)?;
        for received in received {
            delays.seen.extend(received.seen);
            delays.taken.extend(received.taken);
        }
    }
    delays.seen.sort_unstable();
    delays.taken.sort_unstable();
    let in_ms = |nanos: u64| nanos as f64 / 1e6;
    let received = delays.taken.len();
    Ok(Sample {
        place: place.label.clone(),
        durable,
        history,
        load,
        design,
        received,
        missing: sent.cast_signed() - (received as u64).cast_signed(),
        seen_p50_ms: in_ms(percentile(&delays.seen, 0.5)),
        seen_p99_ms: in_ms(percentile(&delays.seen, 0.99)),
        taken_p50_ms: in_ms(percentile(&delays.taken, 0.5)),
        taken_p99_ms: in_ms(percentile(&delays.taken, 0.99)),
        taken_max_ms: in_ms(delays.taken.last().copied().unwrap_or(0)),
    })
}

/// Prints one table per place.
pub(crate) fn print(options: &Options, samples: &[Sample]) {
    println!("## Mail: from sending to the reader's hands\n");
    println!("Idle: one message every 5 ms. Busy inbox: eight more writers, together about 800");
    println!("messages a second. Busy machine: eight writers at full speed into other inboxes.");
    println!("A durable message is synced once more before it is handed over.\n");
    for place in &options.places {
        println!("### {}\n", place.label);
        let head = [
            "",
            "read before",
            "load",
            "design",
            "wakes p50 ms",
            "p99 ms",
            "in hand p50 ms",
            "p99 ms",
            "max ms",
            "received",
            "missing",
        ];
        let mut table = Table::new(4, head);
        for sample in samples.iter().filter(|s| s.place == place.label) {
            table.row(vec![
                durable_word(sample.durable),
                thousands(sample.history),
                sample.load.label().to_owned(),
                sample.design.label().to_owned(),
                significant(sample.seen_p50_ms),
                significant(sample.seen_p99_ms),
                significant(sample.taken_p50_ms),
                significant(sample.taken_p99_ms),
                significant(sample.taken_max_ms),
                thousands(sample.received as u64),
                sample.missing.to_string(),
            ]);
        }
        println!("{table}");
    }
}
