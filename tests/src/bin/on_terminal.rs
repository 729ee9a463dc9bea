//! Runs a program on the terminal that its own standard input is, as the session's leader, so that
//! Ctrl-C and hanging up reach it as they would from a terminal window.

use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

fn main() -> ExitCode {
    let mut words = std::env::args_os().skip(1);
    let Some(program) = words.next() else {
        eprintln!("usage: on-terminal PROGRAM [ARGUMENT]...");
        return ExitCode::from(2);
    };
    let taken = rustix::process::setsid()
        .and_then(|_| rustix::process::ioctl_tiocsctty(rustix::stdio::stdin()));
    if let Err(error) = taken {
        eprintln!("on-terminal: {error}");
        return ExitCode::from(2);
    }
    // A test run in the background ignores these keys. A signal that is caught here has its usual
    // effect again in the program.
    for key in [signal_hook::consts::SIGINT, signal_hook::consts::SIGQUIT] {
        let caught = std::sync::Arc::default();
        if let Err(error) = signal_hook::flag::register(key, caught) {
            eprintln!("on-terminal: {error}");
            return ExitCode::from(2);
        }
    }
    let error = Command::new(program).args(words).exec();
    eprintln!("on-terminal: {error}");
    ExitCode::from(2)
}
