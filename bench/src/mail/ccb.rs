//! ccb's own mailbox, through its API.

use std::path::Path;
use std::time::Duration;

use mailbox::{Draft, Limits, MailOptions, Mailbox};
use store::atomic::Durability;
use store::home::Home;
use store::name::Name;

use super::{Reader, Sender, text};
use crate::Failure;
use crate::args::MailArgs;
use crate::fleet::now;

/// Time that a reader waits before it checks the clock.
const MOMENT: Duration = Duration::from_millis(50);

fn open(dir: &Path, durable: bool) -> Result<Mailbox, Failure> {
    let options = MailOptions {
        durability: if durable {
            Durability::Full
        } else {
            Durability::Relaxed
        },
        // No process reads while throughput is measured, and a full inbox refuses.
        limits: Limits {
            unread: u64::MAX,
            log_bytes: u64::MAX,
            ..Limits::default()
        },
        ..MailOptions::default()
    };
    let team = Name::new("team", "bench")?;
    Ok(Mailbox::new(&Home::new(dir.to_owned())?, &team, options))
}

fn draft(from: &str, inbox: &str, text: &str) -> Result<Draft, Failure> {
    let (from, to) = (Name::new("agent", from)?, Name::new("agent", inbox)?);
    Ok(Draft::text(from, to, text))
}

pub(super) fn fill(dir: &Path, inbox: &str, messages: u64, read: bool) -> Result<(), Failure> {
    let mailbox = open(dir, false)?;
    for _ in 0..messages {
        mailbox.send(&draft("filler", inbox, &text(0))?)?;
    }
    if read && messages > 0 {
        let mut consumer = mailbox.inbox(&Name::new("agent", inbox)?)?.consumer()?;
        consumer.take(usize::MAX)?;
        consumer.ack_up_to(messages)?;
    }
    Ok(())
}

pub(super) fn count(dir: &Path, inbox: &str) -> Result<u64, Failure> {
    let inbox = open(dir, false)?.inbox(&Name::new("agent", inbox)?)?;
    let log = std::fs::read(inbox.dir().join("log.jsonl"))?;
    Ok(log.iter().filter(|byte| **byte == b'\n').count() as u64)
}

/// A process that keeps its mailbox open, as agents' hosts do.
pub(super) struct Writer {
    mailbox: Mailbox,
    draft: Draft,
}

impl Writer {
    pub(super) fn open(args: &MailArgs, from: &str) -> Result<Self, Failure> {
        Ok(Self {
            mailbox: open(&args.dir, args.durable)?,
            draft: draft(from, &args.inbox, "")?,
        })
    }
}

impl Sender for Writer {
    fn send(&mut self, text: &str) -> Result<(), Failure> {
        self.draft.body = mailbox::Body::Text(text.to_owned());
        self.mailbox.send(&self.draft)?;
        Ok(())
    }
}

/// The inbox's reader.
pub(super) struct Consumer(mailbox::Consumer);

impl Consumer {
    pub(super) fn open(args: &MailArgs) -> Result<Self, Failure> {
        let mailbox = open(&args.dir, args.durable)?;
        let inbox = mailbox.inbox(&Name::new("agent", &args.inbox)?)?;
        Ok(Self(inbox.consumer()?))
    }
}

impl Reader for Consumer {
    fn receive(&mut self, received: &mut dyn FnMut(&str, u64)) -> Result<(), Failure> {
        if !self.0.wait(MOMENT)? {
            return Ok(());
        }
        let woken = now();
        let batch = self.0.take(usize::MAX)?;
        for message in &batch.messages {
            received(message.text().unwrap_or_default(), woken);
        }
        let seqs: Vec<u64> = batch.messages.iter().map(|message| message.seq).collect();
        self.0.ack(&seqs)?;
        Ok(())
    }
}
