//! The content and format of one line of `.ccb/slots`.

use serde::{Deserialize, Serialize};

use crate::facts::LeaseTerm;
use crate::id::TaskId;

/// Length of a worker's line in bytes.
pub(crate) const LONG: usize = 256;

/// The content of a worker's line.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) enum Slot {
    /// The worker asks for nothing.
    #[default]
    Free,
    /// The worker asks for a task.
    Asked(Ask),
    /// A task was chosen for it; the worker writes and syncs the new file.
    Chosen(Choice),
    /// The file is on the disk and can take its place.
    Synced(Offer),
    /// The task is being given to the worker. If the giving process dies, the worker can tell from
    /// the file if it was done.
    Taking(Taken),
    /// The task is the worker's.
    Done(Taken),
    /// It came to nothing; the worker has to see for itself.
    StartOver,
}

/// A request for the next task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Ask {
    /// The position up to which the worker has read the log.
    #[serde(skip)]
    pub(crate) seen: u64,
    pub(crate) agent: String,
    pub(crate) lease: Option<LeaseTerm>,
    pub(crate) durable: bool,
}

/// A task that is not on offer to another worker meanwhile.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Choice {
    /// The position up to which the worker has read the log.
    pub(crate) seen: u64,
    /// The time, by the machine's monotonic clock, in nanoseconds.
    pub(crate) since: i64,
    pub(crate) id: TaskId,
    /// The fingerprint of the task's file.
    pub(crate) before: u64,
}

/// A task on its way to a worker.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Offer {
    pub(crate) choice: Choice,
    pub(crate) check_busy: bool,
    /// Of the file that takes its place.
    pub(crate) after: u64,
    /// The name of that file in `.ccb/tmp`.
    pub(crate) file: String,
}

/// A task that is a worker's, and its file's fingerprint.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Taken {
    pub(crate) id: TaskId,
    pub(crate) after: u64,
}

/// True if a request with these words fits into a line.
pub(crate) fn fits(ask: &Ask) -> bool {
    encode(&Slot::Asked(ask.clone())).is_some()
}

/// A letter that says what kind of line it is, a number to compare it by, the rest, and a
/// checksum, because a line may be read while it is written.
pub(crate) fn encode(slot: &Slot) -> Option<String> {
    let choice = |tag: char, c: &Choice| {
        let (seen, since) = (c.seen, c.since);
        format!("{tag}{seen:016x} {since:016x} {} {:x}", c.id, c.before)
    };
    let taken = |tag: char, t: &Taken| format!("{tag}{} {:x}", t.id, t.after);
    let text = match slot {
        Slot::Free => return Some(String::new()),
        Slot::Asked(ask) => format!("a{:016x} {}", ask.seen, serde_json::to_string(ask).ok()?),
        Slot::Chosen(c) => choice('c', c),
        Slot::Synced(o) => {
            let (choice, busy) = (choice('y', &o.choice), u8::from(o.check_busy));
            format!("{choice} {:x} {busy} {}", o.after, o.file)
        }
        Slot::Taking(t) => taken('t', t),
        Slot::Done(t) => taken('d', t),
        Slot::StartOver => "o".to_owned(),
    };
    let line = sealed(&text);
    (line.len() < LONG).then_some(line)
}

/// The line with this text, and its checksum.
pub(crate) fn sealed(text: &str) -> String {
    format!("{text} {:016x}", store::fingerprint(text.as_bytes()))
}

pub(crate) fn decode(line: &[u8]) -> Option<Slot> {
    let text = std::str::from_utf8(line.trim_ascii_end()).ok()?;
    let (text, sum) = text.rsplit_once(' ')?;
    if u64::from_str_radix(sum, 16).ok()? != store::fingerprint(text.as_bytes()) {
        return None;
    }
    let (tag, rest) = text.split_at_checked(1)?;
    let mut words = rest.split(' ');
    let hex = |word: Option<&str>| u64::from_str_radix(word?, 16).ok();
    let id = |word: Option<&str>| TaskId::new(word?.parse().ok()?);
    let choice = |words: &mut std::str::Split<'_, char>| {
        Some(Choice {
            seen: hex(words.next())?,
            since: hex(words.next())?.cast_signed(),
            id: id(words.next())?,
            before: hex(words.next())?,
        })
    };
    Some(match tag {
        "a" => {
            let (seen, json) = rest.split_once(' ')?;
            let ask: Ask = serde_json::from_str(json).ok()?;
            let seen = hex(Some(seen))?;
            Slot::Asked(Ask { seen, ..ask })
        }
        "c" => Slot::Chosen(choice(&mut words)?),
        "y" => Slot::Synced(Offer {
            choice: choice(&mut words)?,
            after: hex(words.next())?,
            check_busy: words.next()? == "1",
            file: words.next()?.to_owned(),
        }),
        "t" | "d" => {
            let taken = Taken {
                id: id(words.next())?,
                after: hex(words.next())?,
            };
            match tag {
                "t" => Slot::Taking(taken),
                _ => Slot::Done(taken),
            }
        }
        "o" => Slot::StartOver,
        _ => return None,
    })
}
