//! The plain design: an inbox is one JSON array; a sender reads it, adds an element and rewrites
//! it, under a lock. Reading marks elements as read, the same way.
//!
//! Its model runs on Node, retries for its lock and gives up in the end; this one is compiled code,
//! waits for its lock in the kernel and loses nothing, but its cost has the same shape.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};
use store::watch::DirWatch;

use super::{Reader, Sender, text};
use crate::Failure;
use crate::args::MailArgs;
use crate::fleet::now;

const MOMENT: Duration = Duration::from_millis(50);

/// An inbox.
struct Inbox {
    dir: PathBuf,
    name: String,
    durable: bool,
}

impl Inbox {
    fn new(dir: &Path, name: &str, durable: bool) -> Self {
        Self {
            dir: dir.to_owned(),
            name: name.to_owned(),
            durable,
        }
    }

    fn path(&self) -> PathBuf {
        self.dir.join(format!("{}.json", self.name))
    }

    fn load(&self) -> Result<Vec<Value>, Failure> {
        match std::fs::read(self.path()) {
            Ok(bytes) => Ok(serde_json::from_slice(&bytes)?),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
            Err(error) => Err(error.into()),
        }
    }

    /// A process's own temporary file is enough: it is written under the lock.
    fn store(&self, messages: &[Value]) -> Result<(), Failure> {
        let temporary = self.dir.join(format!("{}.tmp", self.name));
        let mut file = File::create(&temporary)?;
        file.write_all(&serde_json::to_vec_pretty(messages)?)?;
        if self.durable {
            file.sync_data()?;
        }
        std::fs::rename(&temporary, self.path())?;
        if self.durable {
            File::open(&self.dir)?.sync_all()?;
        }
        Ok(())
    }

    /// Changes the array under the lock; writes nothing if `change` returns false.
    fn change(&self, change: impl FnOnce(&mut Vec<Value>) -> bool) -> Result<(), Failure> {
        let lock = File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .open(self.dir.join(format!("{}.lock", self.name)))?;
        fs4::FileExt::lock(&lock)?;
        let mut messages = self.load()?;
        if change(&mut messages) {
            self.store(&messages)?;
        }
        Ok(())
    }
}

fn message(from: &str, text: &str, read: bool) -> Value {
    json!({
        "from": from,
        "text": text,
        "timestamp": "2026-11-16T05:00:00.000Z",
        "color": "blue",
        "summary": "The parser is done",
        "read": read,
    })
}

pub(super) fn fill(dir: &Path, inbox: &str, messages: u64, read: bool) -> Result<(), Failure> {
    let messages: Vec<Value> = (0..messages)
        .map(|_| message("filler", &text(0), read))
        .collect();
    Inbox::new(dir, inbox, false).store(&messages)
}

pub(super) fn count(dir: &Path, inbox: &str) -> Result<u64, Failure> {
    Ok(Inbox::new(dir, inbox, false).load()?.len() as u64)
}

/// A process that sends.
pub(super) struct Writer {
    inbox: Inbox,
    from: String,
}

impl Writer {
    pub(super) fn open(args: &MailArgs, from: &str) -> Self {
        Self {
            inbox: Inbox::new(&args.dir, &args.inbox, args.durable),
            from: from.to_owned(),
        }
    }
}

impl Sender for Writer {
    fn send(&mut self, text: &str) -> Result<(), Failure> {
        let message = message(&self.from, text, false);
        self.inbox.change(|messages| {
            messages.push(message);
            true
        })
    }
}

/// A process that reads when the directory changes.
pub(super) struct Watcher {
    inbox: Inbox,
    watch: DirWatch,
}

impl Watcher {
    pub(super) fn open(args: &MailArgs) -> Self {
        Self {
            watch: DirWatch::new(&args.dir),
            inbox: Inbox::new(&args.dir, &args.inbox, args.durable),
        }
    }
}

impl Reader for Watcher {
    fn receive(&mut self, received: &mut dyn FnMut(&str, u64)) -> Result<(), Failure> {
        let unread = |message: &&Value| message["read"] == false;
        let messages = self.inbox.load()?;
        let fresh: Vec<&Value> = messages.iter().filter(unread).collect();
        if fresh.is_empty() {
            self.watch.wait(MOMENT);
            return Ok(());
        }
        let woken = now();
        for message in &fresh {
            received(message["text"].as_str().unwrap_or_default(), woken);
        }
        // Later messages are not among those that were read.
        let seen = messages.len();
        self.inbox.change(|messages| {
            for message in messages.iter_mut().take(seen) {
                message["read"] = true.into();
            }
            true
        })
    }
}
