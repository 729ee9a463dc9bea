//! A signal that ends ccb first ends the programs ccb has started, and their children.

use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::Duration;

use harness::{Workplace, wait_until};
use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use serde_json::json;

use crate::CCB;

const LIMIT: Duration = Duration::from_secs(20);

/// A script that records its process id and keeps running. With `deaf` it ignores signals that ask
/// it to end.
fn helper(dir: &Path, deaf: bool) -> (PathBuf, PathBuf) {
    let (script, noted) = (dir.join("helper.sh"), dir.join("helper.pid"));
    let trap = if deaf { "trap '' TERM INT HUP\n" } else { "" };
    let text = format!(
        "#!/bin/sh\n{trap}echo $$ > '{0}.new' && mv '{0}.new' '{0}'\nwhile :; do sleep 0.05; done\n",
        noted.display()
    );
    std::fs::write(&script, text).unwrap();
    (script, noted)
}

fn is_alive(pid: i32) -> bool {
    let zombie = || {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        stat.rsplit_once(") ")
            .is_none_or(|(_, rest)| rest.starts_with('Z'))
    };
    Pid::from_raw(pid).is_some_and(|pid| test_kill_process(pid).is_ok()) && !zombie()
}

fn noted(file: &Path) -> i32 {
    wait_until(LIMIT, "the helper to start", || file.exists());
    std::fs::read_to_string(file)
        .unwrap()
        .trim()
        .parse()
        .unwrap()
}

fn signal(child: &Child, signal: Signal) {
    let pid = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    kill_process(pid, signal).unwrap();
}

fn start(at: &Workplace, args: &[&str]) -> Child {
    let mut command = at.command(args);
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command.spawn().unwrap()
}

/// Sends the signal while the helper runs; ccb ends by it, and the helper has ended by then.
fn ends_with_ccb(mut ccb: Child, pid: i32, by: Signal) {
    // The trap works: the helper runs until a signal ends it.
    assert!(is_alive(pid));
    signal(&ccb, by);
    let mut ended = None;
    wait_until(LIMIT, "ccb to end", || {
        ended = ccb.try_wait().unwrap();
        ended.is_some()
    });
    use std::os::unix::process::ExitStatusExt;
    assert_eq!(ended.and_then(|ended| ended.signal()), Some(by.as_raw()));
    wait_until(Duration::from_millis(500), "the helper to end", || {
        !is_alive(pid)
    });
}

#[test]
fn a_remotes_helper_ends_with_the_command_that_fetches() {
    for (by, deaf) in [
        (Signal::TERM, false),
        (Signal::INT, false),
        (Signal::TERM, true),
    ] {
        let at = Workplace::new(CCB);
        at.home
            .settings(&json!({"worktree": {"baseRef": "fresh"}}).to_string());
        let (script, file) = helper(at.home.path(), deaf);
        let url = format!("ext::sh {} %S", script.display());
        at.repo.git(&["config", "remote.origin.url", &url]);
        at.repo.git(&["config", "protocol.ext.allow", "always"]);
        let ccb = start(&at, &["worktree", "create", "one"]);
        ends_with_ccb(ccb, noted(&file), by);
        // The repository is unchanged, and the next command can begin.
        at.repo.git(&["config", "--unset", "remote.origin.url"]);
        at.home.settings("{}");
        at.ok(&["worktree", "create", "one"]);
    }
}

#[test]
fn a_set_up_ends_with_the_command_that_runs_it() {
    let at = Workplace::new(CCB);
    let (script, file) = helper(at.home.path(), false);
    let setup = format!("sh {}", script.display());
    let ccb = start(&at, &["worktree", "create", "one", "--setup", &setup]);
    ends_with_ccb(ccb, noted(&file), Signal::TERM);
}
