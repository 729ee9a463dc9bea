//! The terminal of `ccb web`: Enter asks for a new address, and notices tell the person who came
//! in.

use std::collections::HashMap;
use std::io::IsTerminal;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec};
use store::text::clean_line;
use term::style::{DIM, YELLOW};

use super::host::Host;

/// Maximum number of waiting notices; more are lost.
const WAITING: usize = 64;
/// Time in which a notice is shown only once: an agent can try a thousand times.
const ONCE_IN: Duration = Duration::from_secs(60);

/// A notice for the person at the terminal.
#[derive(Debug)]
pub(super) struct Notice {
    /// The subject; of several notices with one subject, the first is shown.
    pub(super) about: String,
    pub(super) text: String,
    /// True if the notice is a warning.
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
    /// The terminal, and the end that takes notices. `attended`: a person sees the output.
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
        // A process that reads in the background is stopped.
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

    /// Shows the waiting notices.
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
