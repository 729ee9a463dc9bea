//! A confined program of root has root's files and not root's powers: it types into no other
//! terminal, makes no devices, and reads no process outside.

use std::process::{Command, Output};

use harness::terminal::{Screen, Terminal};
use serde_json::json;

use crate::{CCB, ON_TERMINAL, PEER_PROBE};

/// True if there are powers to remove, and a kernel that confines; prints the reason if not.
fn is_tested() -> bool {
    let root = rustix::process::geteuid().is_root();
    let why = match swarm::sandbox::support() {
        Ok(()) if root => return true,
        Ok(()) => "only root has more than files".to_owned(),
        Err(why) => why,
    };
    eprintln!("not tested here: {why}");
    false
}

/// A program as it is, or confined to a directory.
fn program(confined_to: Option<&std::path::Path>, words: &[&str]) -> Command {
    let Some(dir) = confined_to else {
        let mut command = Command::new(words[0]);
        command.args(&words[1..]);
        return command;
    };
    let confinement = json!({ "write": [dir], "network": true });
    let mut command = Command::new(CCB);
    command.args(["__confined", &confinement.to_string()]);
    command.args(words);
    command
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// The name of the terminal that `tty` prints.
fn name(screen: &Screen) -> Option<String> {
    let rows = screen.rows();
    let row = rows.iter().find(|row| row.starts_with("/dev/pts/"))?;
    Some(row.trim().to_owned())
}

#[test]
fn a_confined_program_types_into_nobody_s_terminal() {
    if !is_tested() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    for (confined_to, answer) in [(None, "yes"), (Some(dir.path()), "no")] {
        let mut person = Command::new("sh");
        person.args(["-c", "tty; read answer; echo \"said $answer\""]);
        person.env("PATH", std::env::var_os("PATH").unwrap_or_default());
        let mut terminal = Terminal::start(ON_TERMINAL, &person, 80, 24);
        let screen = terminal.wait_for("its name", |screen| name(screen).is_some());
        let name = name(&screen).unwrap();
        let mut probe = program(confined_to, &[PEER_PROBE, "type", &name, "yes\n"]);
        let typed = probe.output().unwrap();
        assert_eq!(typed.status.success(), confined_to.is_none(), "{typed:?}");
        if confined_to.is_some() {
            terminal.type_keys("no\r");
        }
        terminal.wait_for_text(&format!("said {answer}"));
        assert_eq!(terminal.end().0, Some(0));
    }
}

#[test]
fn a_confined_program_makes_no_device_and_looks_into_no_process() {
    if !is_tested() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let other = format!("/proc/{}", std::process::id());
    let device = dir.path().join("device");
    // Also what it starts.
    let lines = [
        format!("mknod {} c 1 3", device.display()),
        format!("sh -c 'mknod {} b 8 0'", device.display()),
        format!("cat {other}/environ"),
        format!("head -c 1 {other}/auxv"),
    ];
    for (confined_to, worked) in [(None, "yes"), (Some(dir.path()), "no")] {
        for line in &lines {
            std::fs::remove_file(&device).ok();
            let line = format!("if {line} >/dev/null 2>&1; then echo yes; else echo no; fi");
            let ran = program(confined_to, &["sh", "-c", &line]).output().unwrap();
            assert_eq!(text(&ran).trim(), worked, "{line}: {ran:?}");
        }
    }
    // It writes and reads as root does, where it may.
    let line = "touch file && chown 1:1 file && chmod 0 file && echo more > file && mkfifo fifo";
    let mut honest = program(Some(dir.path()), &["sh", "-c", line]);
    let ran = honest.current_dir(dir.path()).output().unwrap();
    assert!(ran.status.success(), "{ran:?}");
}
