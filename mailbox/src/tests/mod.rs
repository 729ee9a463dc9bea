//! Tests of the whole crate, by promise.

mod broadcasts;
mod delivery;
mod keeping;
mod once;
mod reading;
mod rendering;
mod requests;

use std::sync::Arc;

use store::atomic::Durability;
use store::clock::ManualClock;
use store::home::Home;
use store::name::Name;
use tempfile::TempDir;

use crate::{Draft, Limits, MailOptions, Mailbox, Posted};

/// The time it is in these tests, unless they change it.
pub(super) const NOW: i64 = 1_700_000_000_000;

/// A team's mail in a directory of its own, which several "processes" can open.
pub(super) struct Team {
    pub(super) dir: TempDir,
    pub(super) clock: Arc<ManualClock>,
    pub(super) limits: Limits,
}

impl Team {
    pub(super) fn new() -> Self {
        // In memory where that is possible: these tests make many files.
        let memory = tempfile::tempdir_in("/dev/shm");
        Self {
            dir: memory.or_else(|_| tempfile::tempdir()).unwrap(),
            clock: Arc::new(ManualClock::at(NOW)),
            limits: Limits::default(),
        }
    }

    /// Opens the mail as a new process would: without earlier state.
    pub(super) fn open(&self) -> Mailbox {
        let options = MailOptions {
            durability: Durability::Relaxed,
            reader_timeout: std::time::Duration::from_millis(50),
            clock: self.clock.clone(),
            limits: self.limits,
            ..MailOptions::default()
        };
        let home = Home::new(self.dir.path().to_owned()).unwrap();
        Mailbox::new(&home, &name("team"), options)
    }

    pub(super) fn inbox_dir(&self, agent: &str) -> std::path::PathBuf {
        self.dir.path().join("teams/team/inboxes").join(agent)
    }
}

pub(super) fn name(text: &str) -> Name {
    Name::new("agent", text).unwrap()
}

pub(super) fn text(from: &str, to: &str, text: &str) -> Draft {
    Draft::text(name(from), name(to), text)
}

/// Sends from `a` to `bob`.
pub(super) fn send(mailbox: &Mailbox, words: &str) -> Posted {
    mailbox.send(&text("a", "bob", words)).unwrap()
}
