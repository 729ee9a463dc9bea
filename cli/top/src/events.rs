//! The sources of keys and signals. Both wait without polling.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::mpsc::Sender;
use std::thread::JoinHandle;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::pipe::{PipeFlags, pipe_with};
use signal_hook::consts::{SIGCONT, SIGHUP, SIGINT, SIGTERM, SIGTSTP, SIGWINCH};
use signal_hook::iterator::{Handle, Signals};

use super::input::Input;
use super::model::Message;
use super::terminal::give_back;

/// Passes on typed keys until it is dropped.
#[derive(Debug)]
pub(super) struct Keys {
    /// The end of a pipe; closing it ends the thread.
    wake: Option<OwnedFd>,
    thread: Option<JoinHandle<()>>,
}

impl Keys {
    pub(super) fn read(to: Sender<Message>) -> io::Result<Self> {
        let (woken, wake) = pipe_with(PipeFlags::CLOEXEC)?;
        let thread = std::thread::spawn(move || {
            if follow(&woken, &to).is_err() {
                to.send(Message::Hangup).ok();
            }
        });
        Ok(Self {
            wake: Some(wake),
            thread: Some(thread),
        })
    }
}

impl Drop for Keys {
    fn drop(&mut self) {
        self.wake = None;
        if let Some(thread) = self.thread.take() {
            thread.join().ok();
        }
    }
}

/// Maximum wait for the rest of a key, which a slow connection sends in parts.
const REST: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 40_000_000,
};

fn follow(woken: &OwnedFd, to: &Sender<Message>) -> io::Result<()> {
    let stdin = io::stdin();
    let mut input = Input::default();
    let mut bytes = [0; 1024];
    loop {
        let mut both = [
            PollFd::new(&stdin, PollFlags::IN),
            PollFd::new(woken, PollFlags::IN),
        ];
        let rest = input.is_unfinished().then_some(&REST);
        let ready = match poll(&mut both, rest) {
            Ok(ready) => ready,
            Err(rustix::io::Errno::INTR) => continue,
            Err(error) => return Err(error.into()),
        };
        let [keys, woken] = both.map(|one| one.revents());
        if !woken.is_empty() {
            return Ok(());
        }
        let messages = if ready == 0 {
            input.finish()
        } else if keys.contains(PollFlags::IN) {
            match rustix::io::read(&stdin, &mut bytes) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(count) => input.take(&bytes[..count]),
                Err(rustix::io::Errno::INTR | rustix::io::Errno::AGAIN) => continue,
                Err(error) => return Err(error.into()),
            }
        } else {
            return Err(io::Error::other("the terminal is gone"));
        };
        for message in messages {
            if to.send(message).is_err() {
                return Ok(());
            }
        }
    }
}

/// The one that ends the process after a signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OnEnd {
    /// The view ends it at once.
    Die,
    /// The session ends it when its agents have stopped; it handles SIGINT and SIGTERM itself.
    Session,
}

/// Passes on signals until it is dropped.
#[derive(Debug)]
pub(super) struct SignalThread {
    handle: Handle,
    thread: Option<JoinHandle<()>>,
}

impl SignalThread {
    pub(super) fn listen(to: Sender<Message>, on_end: OnEnd) -> io::Result<Self> {
        let mut signals = Signals::new([SIGWINCH, SIGTSTP, SIGCONT, SIGHUP, SIGTERM, SIGINT])?;
        let handle = signals.handle();
        let thread = std::thread::spawn(move || {
            for signal in signals.forever() {
                let message = match signal {
                    SIGWINCH => Message::Resized,
                    SIGTSTP => Message::Suspend,
                    SIGCONT => Message::Continued,
                    SIGTERM | SIGINT if on_end == OnEnd::Session => continue,
                    _ => {
                        give_back();
                        signal_hook::low_level::emulate_default_handler(signal).ok();
                        continue;
                    }
                };
                if to.send(message).is_err() {
                    break;
                }
            }
        });
        Ok(Self {
            handle,
            thread: Some(thread),
        })
    }
}

impl Drop for SignalThread {
    fn drop(&mut self) {
        self.handle.close();
        if let Some(thread) = self.thread.take() {
            thread.join().ok();
        }
    }
}

/// Stops this process as Ctrl-Z would; returns when it continues.
pub(super) fn stop_here() {
    // Not SIGTSTP, which the view handles, and which the kernel does not deliver where no shell
    // waits.
    rustix::process::kill_current_process_group(rustix::process::Signal::STOP).ok();
}
