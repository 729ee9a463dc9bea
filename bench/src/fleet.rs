//! Many processes that begin at once, and those of them that claim from one board.
//!
//! The parent starts this binary again as `worker`s. Each opens the board, warms up and reports
//! that it is ready; then all get the same instant of the system-wide monotonic clock, sleep until
//! then, and claim until nothing is left or their time is up. Then each reports one line. The
//! processes of the mail part do the same with messages.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

use crate::args::WorkerArgs;
use crate::designs::Design;
use crate::{Failure, check_interrupted};

/// Time from the message with the start to that instant.
const HEAD_START: Duration = Duration::from_millis(50);
/// Time limit for opening and warming up, all workers together.
const OPENING: Duration = Duration::from_secs(180);
/// Time by which a worker may overrun its limit: it finishes its claim.
const OVERRUN: Duration = Duration::from_secs(60);

/// The results of one worker. Times in nanoseconds.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Report {
    /// The ids it claimed.
    pub(crate) claimed: Vec<u64>,
    /// For each of them the time from wanting a task to having it.
    pub(crate) waits: Vec<u64>,
    /// The longest wait for any answer, also "none left".
    pub(crate) longest: u64,
    /// The unanswered wait at its end.
    pub(crate) unfinished: u64,
    /// From the start to its last claim.
    pub(crate) last: u64,
    /// The number of claims finished within the limit.
    pub(crate) in_time: u64,
    /// Attempts that ended in an error.
    pub(crate) failures: u64,
    /// The first of those errors.
    pub(crate) first_failure: Option<String>,
    /// True if it stopped because its time was up.
    pub(crate) cut: bool,
    /// Processor time, its own and the kernel's on its behalf.
    pub(crate) cpu: u64,
}

/// The worker's side.
pub(crate) fn work(args: &WorkerArgs) -> Result<(), Failure> {
    let mut claimer = args.design.open(&args.board, args.durable)?;
    claimer.warm_up()?;
    let Some(start) = wait_for_start()? else {
        return Ok(()); // The parent is gone.
    };

    let limit = Duration::from_secs(args.seconds).as_nanos() as u64;
    let mut report = Report {
        claimed: Vec::new(),
        waits: Vec::new(),
        longest: 0,
        unfinished: 0,
        last: 0,
        in_time: 0,
        failures: 0,
        first_failure: None,
        cut: false,
        cpu: 0,
    };
    let cpu = read_clock(ClockId::ProcessCPUTime);
    let mut wanted = now();
    loop {
        let answer = claimer.claim(&args.agent);
        let time = now();
        report.longest = report.longest.max(time - wanted);
        match answer {
            Ok(Some(id)) => {
                report.claimed.push(id);
                report.waits.push(time - wanted);
                report.last = time - start;
                report.in_time += u64::from(report.last <= limit);
                wanted = now();
            }
            Ok(None) => break,
            Err(error) => {
                report.failures += 1;
                report.first_failure.get_or_insert(error.to_string());
            }
        }
        if now() - start > limit {
            report.cut = true;
            break;
        }
    }
    report.unfinished = now() - wanted;
    report.cpu = read_clock(ClockId::ProcessCPUTime) - cpu;
    println!("{}", serde_json::to_string(&report)?);
    Ok(())
}

/// Reports that this process is ready and sleeps until the given instant; `None` if there is no
/// parent.
pub(crate) fn wait_for_start() -> Result<Option<u64>, Failure> {
    println!("ready");
    let mut line = String::new();
    if std::io::stdin().lock().read_line(&mut line)? == 0 {
        return Ok(None);
    }
    let start: u64 = line.trim().parse()?;
    std::thread::sleep(Duration::from_nanos(start.saturating_sub(now())));
    Ok(Some(start))
}

/// Nanoseconds of a clock that is the same in all processes.
pub(crate) fn now() -> u64 {
    read_clock(ClockId::Monotonic)
}

fn read_clock(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// The name of worker number `n`.
pub(crate) fn agent(n: usize) -> String {
    format!("w{n}")
}

/// Processes that work at the same time; ended when this is dropped.
pub(crate) struct Fleet {
    children: Vec<Child>,
    lines: Receiver<(usize, Option<String>)>,
}

impl Drop for Fleet {
    fn drop(&mut self) {
        for child in &mut self.children {
            child.kill().ok();
            child.wait().ok();
        }
    }
}

/// Lets `processes` workers claim from the board in `board`; their reports, in order.
pub(crate) fn run(
    design: Design,
    board: &Path,
    durable: bool,
    processes: u32,
    limit: Duration,
) -> Result<Vec<Report>, Failure> {
    let command = |n| {
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["worker", "--design", design.word(), "--agent", &agent(n)]);
        command.arg("--seconds").arg(limit.as_secs().to_string());
        command.arg("--board").arg(board);
        if durable {
            command.arg("--durable");
        }
        Ok(command)
    };
    let commands: Result<Vec<Command>, Failure> = (0..processes as usize).map(command).collect();
    race(commands?, limit)
}

/// Runs processes that all begin at the same instant and take about `limit`; returns their reports,
/// in order.
pub(crate) fn race<T: for<'a> Deserialize<'a>>(
    commands: Vec<Command>,
    limit: Duration,
) -> Result<Vec<T>, Failure> {
    let mut fleet = Fleet::start(commands)?;
    fleet.begin()?;
    fleet.end(limit)
}

impl Fleet {
    pub(crate) fn start(commands: Vec<Command>) -> Result<Self, Failure> {
        let (sender, lines) = mpsc::channel();
        let mut fleet = Self {
            children: Vec::new(),
            lines,
        };
        for (n, mut command) in commands.into_iter().enumerate() {
            let mut child = command
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn()?;
            let stdout = child.stdout.take();
            fleet.children.push(child);
            let sender = sender.clone();
            std::thread::spawn(move || {
                let lines = stdout
                    .into_iter()
                    .flat_map(|out| BufReader::new(out).lines());
                for line in lines.map_while(Result::ok) {
                    sender.send((n, Some(line))).ok();
                }
                sender.send((n, None)).ok();
            });
        }
        Ok(fleet)
    }

    /// Waits until all are ready and lets them begin together.
    pub(crate) fn begin(&mut self) -> Result<(), Failure> {
        self.collect(OPENING)?;
        let start = now() + HEAD_START.as_nanos() as u64;
        for child in &mut self.children {
            let stdin = child.stdin.as_mut().ok_or("no stdin")?;
            stdin.write_all(format!("{start}\n").as_bytes())?;
        }
        Ok(())
    }

    /// Waits until all have reported and are gone.
    pub(crate) fn end<T: for<'a> Deserialize<'a>>(
        mut self,
        limit: Duration,
    ) -> Result<Vec<T>, Failure> {
        let reports = self.collect(limit + OVERRUN)?;
        for child in &mut self.children {
            child.wait()?;
        }
        reports
            .iter()
            .map(|line| Ok(serde_json::from_str(line)?))
            .collect()
    }

    /// The next line of every worker.
    fn collect(&mut self, limit: Duration) -> Result<Vec<String>, Failure> {
        let deadline = Instant::now() + limit;
        let mut found: Vec<Option<String>> = vec![None; self.children.len()];
        let mut missing = found.len();
        while missing > 0 {
            check_interrupted()?;
            match self.lines.recv_timeout(Duration::from_millis(200)) {
                Ok((n, Some(line))) => {
                    found[n] = Some(line);
                    missing -= 1;
                }
                // The end of one that has answered; the others have nothing more to send.
                Ok((n, None)) if found[n].is_some() => {}
                Ok((n, None)) => return Err(format!("worker {n} ended too early").into()),
                Err(RecvTimeoutError::Timeout) if Instant::now() < deadline => {}
                Err(_) => return Err(format!("{missing} workers did not answer in time").into()),
            }
        }
        Ok(found.into_iter().flatten().collect())
    }
}
