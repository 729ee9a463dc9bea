//! The guard of teammates that share a process takes runs only from its own team's processes: the
//! programs it starts are not confined.

use std::fs::File;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;
use std::process::Command;

use harness::NativeTeam;
use harness::model::{Step, prompt};
use harness::runs::LONG;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketType};
use serde_json::json;
use swarm::process::{receive, send};
use swarm::run::HandedRun;

use crate::PEER_PROBE;
use crate::mates::{await_nothing_left, team};

/// An agent in a process with others, which waits for a file.
fn waiting(team: &NativeTeam, gate: &Path) -> String {
    let order = prompt("Wait.", &[Step::text("done").wait_for(gate)]);
    let how = ["agent", "spawn", "--runtime", "native", "--background"];
    let started = team.ok(&[&how[..], &[order.as_str()]].concat());
    started["agent"]["agentId"].as_str().unwrap().to_owned()
}

/// The answer to a client that connects and sends nothing.
fn knock(socket: &Path) -> String {
    let mut probe = Command::new(PEER_PROBE);
    let output = probe.arg("knock").arg(socket).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

fn connect(socket: &Path) -> OwnedFd {
    let dir = File::open(socket.parent().unwrap()).unwrap();
    let path = format!("/proc/self/fd/{}/mates.sock", dir.as_raw_fd());
    let connected = rustix::net::socket(AddressFamily::UNIX, SocketType::SEQPACKET, None).unwrap();
    rustix::net::connect(&connected, &SocketAddrUnix::new(path).unwrap()).unwrap();
    connected
}

#[test]
fn an_agent_s_process_hands_no_run_to_the_guard_of_the_mates() {
    let team = team(&json!({}));
    let gate = team.home.path().join("gate");
    let id = waiting(&team, &gate);
    let socket = team.home.team_dir().join(".ccb/mates.sock");
    harness::wait_until(LONG, "the guard", || socket.exists());
    assert_eq!(knock(&socket), "open");
    let said = team.home.path().join("said");
    let line = format!(
        "{PEER_PROBE} knock {} > {}",
        socket.display(),
        said.display()
    );
    let spawn = ["agent", "spawn", "--runtime", "shell", "--wait", &line];
    assert_eq!(team.ok(&spawn)["agent"]["status"], "completed");
    let said = std::fs::read_to_string(said).unwrap();
    assert_eq!(said.trim(), "closed");
    assert_eq!(knock(&socket), "open");
    std::fs::write(&gate, "").unwrap();
    team.home.await_settled(&id);
    assert_eq!(team.home.run_exit(&id).unwrap()["status"], "completed");
    await_nothing_left(&team);
}

#[test]
fn nonsense_does_not_end_the_guard_and_runs_of_other_places_are_not_taken() {
    let team = team(&json!({}));
    let gate = team.home.path().join("gate");
    let id = waiting(&team, &gate);
    let socket = team.home.team_dir().join(".ccb/mates.sock");
    harness::wait_until(LONG, "the guard", || socket.exists());
    let caller = connect(&socket);
    send(&caller, b"nonsense", &[]).unwrap();
    assert!(receive(&caller).unwrap().is_none(), "it hangs up");
    // A forged run, as whole as any.
    let real = team.home.team_dir().join("runs").join(&id);
    let made_up = tempfile::tempdir().unwrap();
    let dir = made_up.path().join("teams/board/runs").join(&id);
    std::fs::create_dir_all(&dir).unwrap();
    for name in ["meta.json", "prompt"] {
        std::fs::copy(real.join(name), dir.join(name)).unwrap();
    }
    let alive = dir.join("alive.lock");
    let handed = HandedRun {
        dir,
        alive: File::create(alive).unwrap().into(),
        environment: swarm::starter::hand_over(&[]).unwrap().into(),
    };
    let caller = connect(&socket);
    handed.send(&caller).unwrap();
    assert_eq!(receive(&caller).unwrap().expect("an answer").bytes, b"no");
    assert_eq!(knock(&socket), "open");
    drop(caller);
    std::fs::write(&gate, "").unwrap();
    team.home.await_settled(&id);
    assert_eq!(team.home.run_exit(&id).unwrap()["status"], "completed");
    await_nothing_left(&team);
}
