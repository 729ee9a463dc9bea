//! The terminal of `ccb web`: Enter asks for a new address, and a person is told who came.

use std::collections::HashMap;
use std::io::IsTerminal;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec};
use store::text::clean_line;
use term::style::{DIM, YELLOW};

use super::host::Host;

/// Notices that wait to be shown; more are lost.
const WAITING: usize = 64;
/// Time in which one thing is said once: an agent can try a thousand times.
const ONCE_IN: Duration = Duration::from_secs(60);

/// Something that a person at the terminal should know.
#[derive(Debug)]
pub(super) struct Notice {
    /// What it is about; notices about the same are one.
    pub(super) about: String,
    pub(super) text: String,
    /// True if it may be bad.
    pub(super) bad: bool,
}

/// The terminal.
#[derive(Debug)]
pub(super) struct Console {
    notices: Receiver<Notice>,
    shown: HashMap<String, Instant>,
    /// True as long as a person can press Enter.
    has_keys: bool,
}

impl Console {
    /// With the end that takes notices. `attended`: a person sees what is printed.
    pub(super) fn new(attended: bool) -> (Self, SyncSender<Notice>) {
        let (to, notices) = sync_channel(WAITING);
        let console = Self {
            notices,
            shown: HashMap::new(),
            has_keys: attended && std::io::stdin().is_terminal(),
        };
        (console, to)
    }

    pub(super) fn has_keys(&self) -> bool {
        self.has_keys
    }

    /// True if a person has pressed Enter since the last call. Never waits.
    pub(super) fn entered(&mut self) -> bool {
        if !self.has_keys {
            return false;
        }
        let stdin = std::io::stdin();
        let mut fds = [PollFd::new(&stdin, PollFlags::IN)];
        if !matches!(
            rustix::event::poll(&mut fds, Some(&Timespec::default())),
            Ok(1..)
        ) {
            return false;
        }
        // One that reads in the background is stopped.
        let in_front = rustix::termios::tcgetpgrp(&stdin);
        if in_front != Ok(rustix::process::getpgrp()) {
            return false;
        }
        let mut line = [0; 1024];
        match rustix::io::read(&stdin, &mut line) {
            Ok(0) => {
                self.has_keys = false;
                false
            }
            Ok(length) => line[..length].contains(&b'\n'),
            Err(_) => false,
        }
    }

    /// Shows the notices that have come.
    pub(super) fn show(&mut self, host: &mut dyn Host) {
        self.shown.retain(|_, at| at.elapsed() < ONCE_IN);
        while let Ok(notice) = self.notices.try_recv() {
            if self.shown.insert(notice.about, Instant::now()).is_some() {
                continue;
            }
            let text = clean_line(&notice.text);
            match notice.bad {
                true => host.note(&format!("{YELLOW}⚠{YELLOW:#} {text}")),
                false => host.note(&format!("{DIM}{text}{DIM:#}")),
            }
        }
    }
}
