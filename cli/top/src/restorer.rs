//! A separate process that restores the terminal if the view is killed.
//!
//! It holds the other end of a pipe and the terminal, in its own session, so that neither Ctrl-C, a
//! hangup nor a kill of the view's process group reaches it. If the pipe ends while the view has
//! the terminal, no other process can restore it.

use std::io::{self, Read, Write};
use std::process::{Child, ChildStdin, Command, ExitCode, Stdio};

use rustix::termios::{OptionalActions, tcgetattr, tcsetattr};

/// Reverses the changes that the view made to the terminal.
pub(super) const LEAVE: &str = "\x1b[0m\x1b[?2004l\x1b[?25h\x1b[?1049l";

/// The name of the process; no user types it.
pub(crate) const RESTORER: &str = "__restore_terminal";

const READY: u8 = b'r';
const ENTERED: u8 = b'e';
const LEFT: u8 = b'l';

/// The view's end.
#[derive(Debug)]
pub(super) struct Restorer {
    child: Child,
    pipe: Option<ChildStdin>,
}

impl Restorer {
    /// Starts the process while the terminal is in the state to restore.
    pub(super) fn start() -> io::Result<Self> {
        let mut child = Command::new(std::env::current_exe()?)
            .arg(RESTORER)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // The terminal.
            .stderr(Stdio::inherit())
            .spawn()?;
        let pipe = child.stdin.take();
        let mut ready = [0];
        if let Some(mut answer) = child.stdout.take() {
            answer.read_exact(&mut ready)?;
        }
        Ok(Self { child, pipe })
    }

    /// Tells the process whether the view has the terminal.
    pub(super) fn entered(&mut self, entered: bool) {
        let byte = if entered { ENTERED } else { LEFT };
        if let Some(pipe) = &mut self.pipe {
            pipe.write_all(&[byte]).ok();
        }
    }
}

impl Drop for Restorer {
    fn drop(&mut self) {
        self.pipe = None;
        self.child.wait().ok();
    }
}

/// Runs the restorer if this process was started as one.
pub fn main(args: &[std::ffi::OsString]) -> Option<ExitCode> {
    let [_, role] = args else {
        return None;
    };
    if role != RESTORER {
        return None;
    }
    Some(match restore_after() {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    })
}

fn restore_after() -> io::Result<()> {
    // Without a controlling terminal, no event on this one sends it a signal.
    rustix::process::setsid().ok();
    let before = tcgetattr(io::stderr())?;
    let mut stdout = io::stdout();
    stdout.write_all(&[READY])?;
    stdout.flush()?;
    let mut entered = false;
    let mut byte = [0];
    let mut pipe = io::stdin().lock();
    loop {
        match pipe.read(&mut byte) {
            Ok(0) => break,
            Ok(_) => entered = byte[0] == ENTERED,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => break,
        }
    }
    if entered {
        let mut terminal = io::stderr();
        terminal.write_all(LEAVE.as_bytes())?;
        terminal.flush()?;
        tcsetattr(terminal, OptionalActions::Now, &before)?;
    }
    Ok(())
}
