//! A process with some workers that claim until the time is up.

use std::time::Duration;

use clap::ValueEnum;
use database::{Database, Secrets, Settings, Type};
use serde::{Deserialize, Serialize};
use taskboard::{Board, Caller, ClaimRequest, Next};

use super::Sample;
use super::site::{WARM, board};
use crate::Failure;
use crate::args::PostgresWorkerArgs;
use crate::fleet::{now, wait_for_start};
use crate::stats::{jain, percentile};

/// The work of a worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum What {
    /// The query alone.
    Bare,
    /// Claims from ccb's board.
    Ccb,
    /// Claims, and completes what it claimed.
    CcbCompletes,
}

impl What {
    pub(super) fn label(self) -> &'static str {
        match self {
            Self::Bare => "bare SKIP LOCKED",
            Self::Ccb => "ccb",
            Self::CcbCompletes => "ccb, and completes",
        }
    }

    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Bare => "bare",
            Self::Ccb => "ccb",
            Self::CcbCompletes => "ccb-completes",
        }
    }
}

/// The results of one worker. Times in nanoseconds.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct One {
    waits: Vec<u64>,
    /// Claims by quarters of the time.
    quarters: [u64; 4],
    /// From the start to its last claim.
    last: u64,
    failure: Option<String>,
}

/// The results of the workers of a process.
pub(crate) type Report = Vec<One>;

/// The process's side.
pub(crate) fn work(args: &PostgresWorkerArgs) -> Result<(), Failure> {
    let settings = Settings::parse(&args.url, &Secrets::default())?;
    let claimers: Result<Vec<Claimer>, Failure> = (0..args.threads)
        .map(|n| {
            // Each with its own connection, as workers on other machines have.
            let database = Database::new(settings.clone());
            let board = board(&database, &args.home, &args.list)?;
            let claimer = Claimer {
                agent: format!("w{}", args.first + n),
                what: args.what,
                database,
                board,
            };
            claimer.warm_up(&args.home)?;
            Ok(claimer)
        })
        .collect();
    let claimers = claimers?;
    let Some(start) = wait_for_start()? else {
        return Ok(());
    };
    let time = Duration::from_millis(args.millis).as_nanos() as u64;
    let report: Report = std::thread::scope(|scope| {
        let all: Vec<_> = claimers
            .iter()
            .map(|claimer| scope.spawn(move || claimer.run(start, time)))
            .collect();
        all.into_iter()
            .map(|one| one.join().unwrap_or_default())
            .collect()
    });
    println!("{}", serde_json::to_string(&report)?);
    Ok(())
}

struct Claimer {
    agent: String,
    what: What,
    database: Database,
    board: Board,
}

impl Claimer {
    /// Takes the steps that a worker has long taken when it has worked for a while.
    fn warm_up(&self, home: &std::path::Path) -> Result<(), Failure> {
        self.database.about()?;
        if self.what != What::Bare {
            let board = board(&self.database, home, WARM)?;
            board.claim_next(&ClaimRequest::new(&self.agent))?;
            self.board.exists();
        }
        Ok(())
    }

    fn run(&self, start: u64, time: u64) -> One {
        let mut one = One::default();
        loop {
            let wanted = now();
            if wanted >= start + time {
                return one;
            }
            match self.claim() {
                Ok(true) => {
                    let done = now();
                    one.waits.push(done - wanted);
                    one.last = done - start;
                    let quarter = 4 * one.last / time;
                    one.quarters[usize::try_from(quarter).unwrap_or(3).min(3)] += 1;
                }
                Ok(false) => return one,
                Err(error) => {
                    one.failure = Some(error.to_string());
                    return one;
                }
            }
        }
    }

    /// True if there was a task.
    fn claim(&self) -> Result<bool, Failure> {
        if self.what == What::Bare {
            let rows = self.database.read(|session| {
                session.query(
                    "UPDATE @.bare SET done = true, owner = $1 WHERE id = (SELECT id FROM @.bare \
                     WHERE NOT done ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED) RETURNING id, body",
                    &[(&self.agent, Type::TEXT)],
                )
            })?;
            return Ok(!rows.is_empty());
        }
        let next = self.board.claim_next(&ClaimRequest::new(&self.agent))?;
        let Next::Claimed(claimed) = next else {
            return Ok(false);
        };
        if self.what == What::CcbCompletes {
            let caller = Caller::new(&self.agent);
            self.board.complete(claimed.task.id, &caller, None)?;
        }
        Ok(true)
    }
}

/// The sum of the workers of all rounds. A round is over with the last claim of any of them.
pub(super) fn sample(what: What, tasks: u64, count: u32, reports: &[Report]) -> Sample {
    let all: Vec<&One> = reports.iter().flatten().collect();
    let (mut time, mut fair, mut rounds) = (0, 0.0, 0.0);
    for round in all.chunks(count as usize) {
        time += round.iter().map(|one| one.last).max().unwrap_or(0);
        let counts: Vec<u64> = round.iter().map(|one| one.waits.len() as u64).collect();
        fair += jain(&counts);
        rounds += 1.0;
    }
    let mut waits: Vec<u64> = all.iter().flat_map(|one| one.waits.clone()).collect();
    waits.sort_unstable();
    let failures = all.iter().filter(|one| one.failure.is_some()).count() as u64;
    Sample {
        design: what.label(),
        workers: count,
        tasks,
        per_second: waits.len() as f64 / (time as f64 / 1e9).max(1e-9),
        p50_ms: Some(percentile(&waits, 0.5) as f64 / 1e6),
        p99_ms: Some(percentile(&waits, 0.99) as f64 / 1e6),
        jain: Some(fair / f64::max(rounds, 1.0)),
        failures,
        first_failure: all.iter().find_map(|one| one.failure.clone()),
    }
}

/// Claims a second in the first and in the last quarter of `time`.
pub(super) fn ends(reports: &[Report], time: Duration) -> (f64, f64) {
    let rate = |n: usize| {
        let claims: u64 = reports.iter().flatten().map(|one| one.quarters[n]).sum();
        4.0 * claims as f64 / time.as_secs_f64()
    };
    (rate(0), rate(3))
}
