//! The starts of agents.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;

use swarm::process::Ending;
use swarm::runtime::{Event, LaunchError, Order, Start, TurnStatus};

use super::bench::{Bench, LIMIT, touch};
use super::{Act, Verdict, prompt, skip};
use crate::wait::wait_until;

pub(super) fn it_starts_first_and_ends_last(bench: &Bench<'_>) -> Verdict {
    let prompt = prompt!(bench, &[Act::Say("hello")], "well done");
    let mut session = bench.launch(&prompt);
    let turn = session.turn();
    assert_eq!(turn.status, TurnStatus::Completed, "{}", session.summary());
    assert!(turn.text.contains("well done"), "{turn:?}");
    assert_eq!(turn.error, None);
    session.order(Order::Finish);
    assert_eq!(session.end(), Ending::Exited(0), "{}", session.summary());
    assert!(matches!(
        session
            .log
            .iter()
            .find(|event| !matches!(event, Event::Output { .. })),
        Some(Event::Started { .. })
    ));
    assert_eq!(session.turns(), 1);
    assert!(bench.running().is_empty());
    Verdict::Passed
}

pub(super) fn a_missing_program_is_an_error(bench: &Bench<'_>) -> Verdict {
    let runtime = bench.subject().without_program();
    match bench.start_with(&*runtime, bench.launch_of("hello")) {
        Err(LaunchError::Program { program, .. }) => assert!(!program.is_empty()),
        other => panic!("{other:?}"),
    }
    assert!(bench.running().is_empty());
    Verdict::Passed
}

pub(super) fn a_missing_directory_is_an_error(bench: &Bench<'_>) -> Verdict {
    let mut launch = bench.launch_of("hello");
    launch.cwd = bench.path("not there");
    match bench.start(launch) {
        // The message must name the directory as missing, not the program.
        Err(error) => assert!(error.to_string().contains("not there"), "{error}"),
        Ok(session) => panic!("{session:?}"),
    }
    assert!(bench.running().is_empty());
    Verdict::Passed
}

/// The reason why some properties cannot be checked.
const THREAD: &str = "it has no program of its own";

pub(super) fn the_environment_is_what_was_given(bench: &Bench<'_>) -> Verdict {
    if !bench.subject().has_program() {
        return Verdict::Skipped(THREAD.into());
    }
    let (busy, go) = (bench.path("busy"), bench.path("go"));
    let acts = [Act::Touch(&busy), Act::BusyUntil(&go)];
    let mut session = bench.launch(&prompt!(bench, &acts, "done"));
    session.wait_file(&busy);
    let [pid] = bench.running()[..] else {
        panic!("not exactly one program: {:?}", bench.running());
    };
    let path = format!("/proc/{}/environ", pid.as_raw_nonzero());
    let hides = |name: &OsString| bench.subject().hides(&name.to_string_lossy());
    let mut given: BTreeMap<_, _> = bench.environment().into_iter().collect();
    let closed = given.keys().any(hides);
    given.retain(|name, _| !hides(name));
    match std::fs::read(path) {
        Ok(bytes) => {
            let mut seen = variables(&bytes);
            seen.retain(|name, _| {
                given.contains_key(name) || !bench.subject().adds(&name.to_string_lossy())
            });
            assert_eq!(seen, given);
        }
        // Only root can look.
        Err(error) => assert!(closed, "its environment: {error}"),
    }
    touch(&go);
    session.turn();
    session.order(Order::Finish);
    session.end();
    Verdict::Passed
}

/// The variables in `/proc/PID/environ`.
fn variables(bytes: &[u8]) -> BTreeMap<OsString, OsString> {
    let entries = bytes.split(|&byte| byte == 0);
    let entries = entries.filter(|entry| !entry.is_empty());
    let text = |bytes: &[u8]| OsString::from_vec(bytes.to_vec());
    let entries = entries.map(|entry| {
        let at = entry.iter().position(|&byte| byte == b'=');
        let at = at.expect("a value");
        (text(&entry[..at]), text(&entry[at + 1..]))
    });
    entries.collect()
}

pub(super) fn it_works_where_it_was_told(bench: &Bench<'_>) -> Verdict {
    if !bench.subject().has_program() {
        return Verdict::Skipped(THREAD.into());
    }
    let (busy, go) = (bench.path("busy"), bench.path("go"));
    let acts = [Act::Touch(&busy), Act::BusyUntil(&go)];
    let mut session = bench.launch(&prompt!(bench, &acts, "done"));
    session.wait_file(&busy);
    let [pid] = bench.running()[..] else {
        panic!("not exactly one program: {:?}", bench.running());
    };
    let cwd = std::fs::read_link(format!("/proc/{}/cwd", pid.as_raw_nonzero()));
    assert_eq!(cwd.expect("a directory"), bench.cwd());
    touch(&go);
    session.turn();
    session.order(Order::Finish);
    session.end();
    Verdict::Passed
}

pub(super) fn a_long_prompt_arrives(bench: &Bench<'_>) -> Verdict {
    let prompt = prompt!(bench, &[], "read it all");
    // Longer than an argument may be, and than a pipe holds.
    let prompt = bench.subject().padded(&prompt, 300_000);
    let mut session = bench.launch(&prompt);
    let turn = session.turn();
    assert_eq!(turn.status, TurnStatus::Completed, "{turn:?}");
    assert!(turn.text.contains("read it all"), "{turn:?}");
    session.order(Order::Finish);
    session.end();
    Verdict::Passed
}

pub(super) fn many_run_at_once(bench: &Bench<'_>) -> Verdict {
    let go = bench.path("go");
    let mut sessions = Vec::new();
    for n in 0..8 {
        let prompt = prompt!(bench, &[Act::BusyUntil(&go)], &format!("result {n}."));
        sessions.push(bench.launch(&prompt));
    }
    bench.assert_running(8);
    touch(&go);
    for (n, session) in sessions.iter_mut().enumerate() {
        let turn = session.turn();
        assert!(turn.text.contains(&format!("result {n}.")), "{turn:?}");
        session.order(Order::Finish);
    }
    for session in &mut sessions {
        session.end();
    }
    wait_until(LIMIT, "all to be gone", || bench.running().is_empty());
    Verdict::Passed
}

pub(super) fn a_session_goes_on(bench: &Bench<'_>) -> Verdict {
    if !bench.runtime().abilities().resume {
        return skip("it cannot resume");
    }
    let first = prompt!(bench, &[Act::Say("remember the heron")], "first");
    let mut session = bench.launch(&first);
    session.turn();
    let id = session.session();
    session.order(Order::Finish);
    session.end();
    let second = prompt!(bench, &[], "second");
    let mut again = bench.resume(id.as_deref().unwrap_or_default(), &second);
    let turn = again.turn();
    assert!(turn.text.contains("second"), "{turn:?}");
    assert_eq!(again.session(), id);
    again.order(Order::Finish);
    again.end();
    Verdict::Passed
}

pub(super) fn a_session_is_copied(bench: &Bench<'_>) -> Verdict {
    let prompt = prompt!(bench, &[], "done");
    if !bench.runtime().abilities().fork {
        // It must refuse what it cannot do, not do it differently.
        let mut launch = bench.launch_of(&prompt);
        let session = "x".to_owned();
        launch.start = Start::Fork { session, at: None };
        let refused = bench.start(launch);
        assert!(
            matches!(refused, Err(LaunchError::Unsupported(_))),
            "{refused:?}"
        );
        assert!(bench.running().is_empty());
        return skip("it cannot fork");
    }
    let mut parent = bench.launch(&prompt);
    parent.turn();
    let session = parent.session().expect("a session that can be copied");
    parent.order(Order::Finish);
    parent.end();
    let mut launch = bench.launch_of(&prompt);
    launch.start = Start::Fork {
        session: session.clone(),
        at: None,
    };
    let mut child = bench.start(launch).expect("it starts");
    assert_eq!(child.turn().status, TurnStatus::Completed);
    assert_ne!(child.session().expect("a session"), session);
    child.order(Order::Finish);
    child.end();
    Verdict::Passed
}
