//! The files of mail.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use harness::TestHome;

use crate::{CCB, MAIL_WORKER};

#[test]
fn everything_is_private() {
    use std::os::unix::fs::PermissionsExt;
    let home = TestHome::in_memory(CCB);
    home.team(&["team-lead", "Bob", "carol"]);
    home.ok(&["mail", "send", "*", "hi"]);
    home.ok(&["mail", "read", "--as", "bob"]);
    let args = ["worker", "ask", "bob", "team-lead", "a plan"];
    let asked = harness::mail_command(&home, MAIL_WORKER, &args).status();
    assert!(asked.unwrap().success());
    let mut waiting = vec![
        home.team_dir().join("inboxes"),
        home.team_dir().join("requests"),
    ];
    let mut seen = 0;
    while let Some(path) = waiting.pop() {
        let meta = path.symlink_metadata().unwrap();
        let expected = if meta.is_dir() { 0o700 } else { 0o600 };
        assert_eq!(
            meta.permissions().mode() & 0o777,
            expected,
            "{}",
            path.display()
        );
        seen += 1;
        if meta.is_dir() {
            waiting.extend(std::fs::read_dir(&path).unwrap().map(|e| e.unwrap().path()));
        }
    }
    assert!(seen > 20, "{seen}");
}

/// The sender and the receiver both die; afterwards the notification is there once.
#[test]
fn a_notification_survives_the_death_of_both_sides() {
    let home = TestHome::in_memory(CCB);
    let crash = |point: &str| {
        let output = harness::mail_command(&home, MAIL_WORKER, &["worker", "notify", "run-1"])
            .env("CCB_FAULT", format!("crash:{point}:1"))
            .output()
            .unwrap();
        assert!(!output.status.success(), "{output:?}");
    };
    // Half written, then written but not yet acknowledged to its sender.
    crash("log.half");
    crash("mail.sync");
    let worker = |args: &[&str]| {
        let mut command = harness::mail_command(&home, MAIL_WORKER, args);
        command.stdout(Stdio::piped()).spawn().unwrap()
    };
    let mut reader = worker(&["worker", "read", "team-lead", "7"]);
    let mut lines = BufReader::new(reader.stdout.take().expect("piped")).lines();
    let line = lines.next().expect("a line").expect("text");
    assert!(
        line.starts_with("H 1 ") && line.contains(" worker "),
        "{line}"
    );
    reader.kill().unwrap();
    reader.wait().unwrap();
    let told_again = worker(&["worker", "notify", "run-1"]);
    let output = told_again.wait_with_output().unwrap();
    assert_eq!(output.stdout, b"already there\n");
    let inbox = home.ok(&["mail", "inbox", "--all", "--as", "team-lead"]);
    assert_eq!(inbox["messages"].as_array().unwrap().len(), 1, "{inbox}");
}
