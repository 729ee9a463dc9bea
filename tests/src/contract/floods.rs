//! Output of every amount and kind.

use std::process::Command;

use swarm::runtime::{Event, Order, Stream, TurnStatus};

use super::bench::{Bench, LIMIT};
use super::{Act, Verdict, prompt};
use crate::wait::wait_until;

/// Set in the process that measures its memory.
const MEASURING: &str = "CCB_CONTRACT_MEASURING";

pub(super) fn errors_are_passed_on(bench: &Bench<'_>) -> Verdict {
    let acts = [Act::PrintError("something is odd\nvery odd")];
    let mut session = bench.launch(&prompt!(bench, &acts, "done"));
    assert_eq!(session.turn().status, TurnStatus::Completed);
    session.order(Order::Finish);
    session.end();
    let printed = session.printed(Stream::Stderr);
    let printed = String::from_utf8_lossy(&printed);
    assert!(printed.contains("something is odd\nvery odd"), "{printed}");
    Verdict::Passed
}

pub(super) fn garbage_is_passed_on(bench: &Bench<'_>) -> Verdict {
    let mut session = bench.launch(&prompt!(bench, &[Act::Garbage(500_000)], "done"));
    assert_eq!(session.turn().status, TurnStatus::Completed);
    session.order(Order::Finish);
    session.end();
    // No byte of it is lost, though it is not UTF-8.
    let printed = session.printed(Stream::Stdout).len();
    assert!(printed >= 500_000, "only {printed} bytes arrived");
    Verdict::Passed
}

pub(super) fn a_long_line_does_not_grow(bench: &Bench<'_>) -> Verdict {
    let prompt = prompt!(bench, &[Act::LongLine(100)], "done");
    in_a_process_of_its_own(|| {
        let before = peak_kib();
        let mut session = bench.launch(&prompt);
        let mut bytes = 0;
        loop {
            match session.event().expect("it goes on") {
                Event::Output { bytes: more, .. } => bytes += more.len(),
                Event::TurnEnded(turn) => {
                    assert_eq!(turn.status, TurnStatus::Completed);
                    break;
                }
                _ => {}
            }
        }
        assert!(bytes >= 100_000_000, "only {bytes} bytes arrived");
        let grown = peak_kib() - before;
        assert!(
            grown < bench.subject().growth_kib(),
            "it took {grown} KiB more"
        );
        session.order(Order::Finish);
        session.end();
    });
    Verdict::Passed
}

pub(super) fn much_output_waits_for_the_host(bench: &Bench<'_>) -> Verdict {
    let prompt = prompt!(bench, &[Act::LongLine(100)], "done");
    in_a_process_of_its_own(|| {
        let before = peak_kib();
        let mut session = bench.launch(&prompt);
        let [pid] = bench.running()[..] else {
            panic!("not exactly one program");
        };
        // The test takes no events: the program must come to a stop in the middle of it.
        let counters = format!("/proc/{}/io", pid.as_raw_nonzero());
        let (mut written, mut looks) = (0, 0);
        wait_until(LIMIT, "the program to stand still", || {
            assert!(
                !bench.running().is_empty(),
                "it printed all of it without a reader"
            );
            let now = std::fs::read_to_string(&counters).map_or(0, |text| bytes_written(&text));
            looks = if now == written { looks + 1 } else { 0 };
            written = now;
            written > 64 * 1024 && looks > 40
        });
        assert!(
            written < 100_000_000,
            "it printed all of it without a reader"
        );
        let grown = peak_kib() - before;
        assert!(
            grown < bench.subject().growth_kib(),
            "it took {grown} KiB more"
        );
        session.turn();
        session.order(Order::Finish);
        session.end();
    });
    Verdict::Passed
}

/// Runs `measure` in another process, in which no other test takes memory: this test again.
fn in_a_process_of_its_own(measure: impl FnOnce()) {
    if std::env::var_os(MEASURING).is_some() {
        return measure();
    }
    let test = std::thread::current().name().expect("a test").to_owned();
    let output = Command::new(std::env::current_exe().expect("this program"))
        .args([&test, "--exact", "--nocapture"])
        .env(MEASURING, "1")
        .output()
        .expect("it starts");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && said.contains("1 passed"),
        "{said}\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

/// Bytes that a process has written, by its counters.
fn bytes_written(counters: &str) -> u64 {
    let line = counters
        .lines()
        .find_map(|line| line.strip_prefix("wchar: "));
    line.and_then(|number| number.parse().ok()).unwrap_or(0)
}

/// The largest memory of this process so far, in KiB.
fn peak_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("a status");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let number = line.and_then(|line| line.split_whitespace().next());
    number
        .and_then(|number| number.parse().ok())
        .expect("a number")
}
