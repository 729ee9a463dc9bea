//! The promises of mail, on files and in memory.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test stops where something is wrong"
)]

#[path = "suite/mod.rs"]
mod mail_suite;

use std::sync::Arc;

use mail_suite::Team;
use mailbox::{MailOptions, Mailbox};
use store::atomic::Durability;
use store::clock::{Clock, ManualClock};
use store::home::Home;
use store::name::Name;

/// A team whose mail is in a directory of its own, with a clock that stands still.
fn team() -> Team {
    // In memory where that is possible: these tests make many files.
    let memory = tempfile::tempdir_in("/dev/shm");
    let dir = memory.or_else(|_| tempfile::tempdir()).unwrap();
    let home = Home::new(dir.path().to_owned()).unwrap();
    let clock = Arc::new(ManualClock::at(1_700_000_000_000));
    let (read, moved) = (Arc::clone(&clock), Arc::clone(&clock));
    Team {
        limits: mailbox::Limits::default(),
        open_with: Box::new(move |options| {
            // Lives as long as a process may open the mail.
            let _dir = &dir;
            let options = MailOptions {
                durability: Durability::Relaxed,
                reader_timeout: std::time::Duration::from_millis(50),
                clock: clock.clone(),
                ..options
            };
            Mailbox::new(&home, &Name::new("team", "team").unwrap(), options)
        }),
        now: Box::new(move || read.now_ms()),
        pass: Box::new(move |ms| moved.set(moved.now_ms() + ms)),
    }
}

mail_suite::every_promise!(team());

/// The same promises, in memory.
mod in_memory {
    use super::*;

    fn team() -> Team {
        let memory = mailbox::Memory::default();
        let clock = Arc::new(ManualClock::at(1_700_000_000_000));
        let (read, moved) = (Arc::clone(&clock), Arc::clone(&clock));
        Team {
            limits: mailbox::Limits::default(),
            open_with: Box::new(move |options| {
                let options = MailOptions {
                    reader_timeout: std::time::Duration::from_millis(50),
                    clock: clock.clone(),
                    ..options
                };
                Mailbox::in_memory(&memory, options)
            }),
            now: Box::new(move || read.now_ms()),
            pass: Box::new(move |ms| moved.set(moved.now_ms() + ms)),
        }
    }

    mail_suite::every_promise!(team());
}
