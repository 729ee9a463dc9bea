//! The board in PostgreSQL beside the bare query, two job queues and ccb's files: claims a second,
//! waits and fairness, and how soon a created task is seen.
//!
//! The server is a throw-away one with `synchronous_commit` and `fsync` on, in the directory for
//! temporary files. ccb and the bare query are worked by the same processes through the same
//! client. *Bare* is `UPDATE … WHERE id = (SELECT … FOR UPDATE SKIP LOCKED)` on a table with a
//! partial index, without history, dependencies or leases. The job queues are measured as a whole
//! by their own workers, which claim and complete, so they stand beside *ccb, and completes*.

mod peers;
mod site;
mod wake;
mod worker;

use std::time::Duration;

use serde::Serialize;

use crate::args::Options;
use crate::designs::Design;
use crate::fleet;
use crate::stats::{jain, percentile};
use crate::table::{Table, significant, thousands};
use crate::{Failure, check_interrupted, workload};

use peers::Peer;
use site::Site;
pub(crate) use worker::{What, work};

/// One cell, measured.
#[derive(Debug, Serialize)]
pub(crate) struct Sample {
    design: &'static str,
    workers: u32,
    tasks: u64,
    per_second: f64,
    p50_ms: Option<f64>,
    p99_ms: Option<f64>,
    jain: Option<f64>,
    failures: u64,
    first_failure: Option<String>,
}

/// All results of the part.
#[derive(Debug, Serialize)]
pub(crate) struct Samples {
    server: String,
    cells: Vec<Sample>,
    /// Claims a second in the first and in the last quarter of a longer time.
    sustained: Vec<(&'static str, f64, f64)>,
    peers: Vec<Sample>,
    missing: Vec<&'static str>,
    wake: Option<wake::Wake>,
}

/// Rounds of a cell; the designs take turns.
const ROUNDS: u32 = 2;
const DESIGNS: [What; 2] = [What::Bare, What::Ccb];

/// Measures all of it; `None` without PostgreSQL.
pub(crate) fn run(options: &Options) -> Result<Option<Samples>, Failure> {
    let Some(site) = Site::start()? else {
        return Ok(None);
    };
    let quick = options.quick;
    let (sizes, workers): (&[u64], &[u32]) = match quick {
        true => (&[1_000, 100_000], &[8, 32]),
        false => (&[1_000, 10_000, 100_000, 1_000_000], &[1, 8, 32, 256]),
    };
    let time = Duration::from_millis(if quick { 1_000 } else { 1_500 });
    let mut samples = Samples {
        server: site.version()?,
        cells: Vec::new(),
        sustained: Vec::new(),
        peers: Vec::new(),
        missing: Vec::new(),
        wake: None,
    };
    for &tasks in sizes {
        for &count in workers {
            eprintln!("postgres: {tasks} tasks, {count} workers");
            samples.cells.extend(cell(&site, tasks, count, time)?);
            if tasks <= 10_000 {
                samples.cells.push(files(&site, tasks, count, time)?);
            }
        }
        if tasks == *sizes.last().unwrap_or(&0) {
            eprintln!("postgres: a longer time");
            let time = Duration::from_secs(if quick { 4 } else { 16 });
            for what in DESIGNS {
                let reports = site.race(what, tasks, 32, time)?;
                let (first, last) = worker::ends(&reports, time);
                samples.sustained.push((what.label(), first, last));
            }
        }
        site.clear()?;
    }
    eprintln!("postgres: wake-up");
    samples.wake = Some(wake::measure(&site, if quick { 60 } else { 300 })?);
    let pairs: &[(u64, u32)] = match quick {
        true => &[(2_000, 8)],
        // graphile-worker takes many minutes to be given 100,000 jobs.
        false => &[(10_000, 8), (10_000, 32)],
    };
    for peer in Peer::ALL {
        if !peer.is_there() {
            samples.missing.push(peer.label());
            continue;
        }
        for &(tasks, count) in pairs {
            check_interrupted()?;
            eprintln!("postgres: {}, {tasks} tasks, {count} workers", peer.label());
            samples
                .peers
                .push(peer.measure(&site, tasks, count, 2 * time)?);
        }
    }
    for &(tasks, count) in pairs {
        let reports = site.race(What::CcbCompletes, tasks, count, 2 * time)?;
        let sample = worker::sample(What::CcbCompletes, tasks, count, &reports);
        samples.peers.push(sample);
        site.clear()?;
    }
    Ok(Some(samples))
}

/// The bare query and ccb in turn.
fn cell(site: &Site, tasks: u64, count: u32, time: Duration) -> Result<Vec<Sample>, Failure> {
    let mut reports = [Vec::new(), Vec::new()];
    for _ in 0..ROUNDS {
        for (what, all) in DESIGNS.into_iter().zip(&mut reports) {
            check_interrupted()?;
            all.extend(site.race(what, tasks, count, time)?);
        }
    }
    let both = DESIGNS.into_iter().zip(&reports);
    Ok(both
        .map(|(what, all)| worker::sample(what, tasks, count, all))
        .collect())
}

/// The same number of processes on files on the same disk, with the same durability as the
/// database.
fn files(site: &Site, tasks: u64, count: u32, time: Duration) -> Result<Sample, Failure> {
    let dir = site.scratch()?;
    Design::Ccb.prepare(dir.path(), tasks)?;
    // Whole seconds; an empty board ends earlier.
    let limit = Duration::from_secs(time.as_secs().max(1));
    let reports = fleet::run(Design::Ccb, dir.path(), true, count, limit)?;
    let counts: Vec<u64> = reports.iter().map(|r| r.claimed.len() as u64).collect();
    let mut waits: Vec<u64> = reports.iter().flat_map(|r| r.waits.clone()).collect();
    waits.sort_unstable();
    let last = reports.iter().map(|report| report.last).max().unwrap_or(0);
    let claims: u64 = counts.iter().sum();
    debug_assert!(claims <= workload::claimable(tasks));
    Ok(Sample {
        design: "ccb in files",
        workers: count,
        tasks,
        per_second: claims as f64 / (last as f64 / 1e9).max(1e-9),
        p50_ms: Some(percentile(&waits, 0.5) as f64 / 1e6),
        p99_ms: Some(percentile(&waits, 0.99) as f64 / 1e6),
        jain: Some(jain(&counts)),
        failures: reports.iter().map(|report| report.failures).sum(),
        first_failure: reports.into_iter().find_map(|report| report.first_failure),
    })
}

/// The tables.
pub(crate) fn print(samples: Option<&Samples>) {
    println!("\n## PostgreSQL\n");
    let Some(samples) = samples else {
        println!("PostgreSQL is not installed, so nothing was measured.");
        return;
    };
    println!("{}\n\n### Claims\n", samples.server);
    let mut table = Table::new(
        1,
        [
            "design", "tasks", "workers", "claims/s", "× bare", "p50 ms", "p99 ms", "Jain",
        ],
    );
    for sample in &samples.cells {
        let bare = samples.cells.iter().find(|other| {
            other.design == What::Bare.label()
                && (other.tasks, other.workers) == (sample.tasks, sample.workers)
        });
        let ratio = bare.map(|bare| sample.per_second / bare.per_second.max(1e-9));
        table.row(row(sample, ratio));
    }
    println!("{table}\n### A longer time at 32 workers\n");
    let mut table = Table::new(1, ["design", "claims/s, first quarter", "last quarter"]);
    for (design, first, last) in &samples.sustained {
        table.row(vec![
            (*design).into(),
            significant(*first),
            significant(*last),
        ]);
    }
    println!("{table}\n### Claimed and completed\n");
    let mut table = Table::new(
        1,
        [
            "design", "tasks", "workers", "tasks/s", "× bare", "p50 ms", "p99 ms", "Jain",
        ],
    );
    for sample in &samples.peers {
        table.row(row(sample, None));
    }
    println!("{table}");
    for name in &samples.missing {
        println!("{name}: not installed (bench/peers/install.sh installs it)\n");
    }
    if let Some(wake) = &samples.wake {
        wake.print();
    }
    let failed = samples.cells.iter().chain(&samples.peers);
    for sample in failed.filter(|sample| sample.failures > 0) {
        println!(
            "{} with {} workers: {} failures, the first: {}\n",
            sample.design,
            sample.workers,
            sample.failures,
            sample.first_failure.as_deref().unwrap_or("unknown")
        );
    }
}

fn row(sample: &Sample, ratio: Option<f64>) -> Vec<String> {
    let or_dash = |value: Option<f64>| value.map_or_else(|| "–".into(), significant);
    vec![
        sample.design.into(),
        thousands(sample.tasks),
        sample.workers.to_string(),
        significant(sample.per_second),
        ratio.map_or_else(|| "–".into(), |ratio| format!("{ratio:.2}")),
        or_dash(sample.p50_ms),
        or_dash(sample.p99_ms),
        sample
            .jain
            .map_or_else(|| "–".into(), |jain| format!("{jain:.2}")),
    ]
}
