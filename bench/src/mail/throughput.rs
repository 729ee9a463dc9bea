//! Messages a second, by writers and size of the inbox.

use std::path::Path;
use std::time::Duration;

use serde::Serialize;

use super::{MailDesign, Written, durable_word, process};
use crate::args::{MailArgs, Options};
use crate::environment::Place;
use crate::fleet::{agent, race};
use crate::stats::percentile;
use crate::table::{Table, significant, thousands};
use crate::{Failure, check_interrupted};

/// Messages in the inbox before the writers begin.
const SIZES: [u64; 3] = [0, 1_000, 10_000];
const INBOX: &str = "reader";

/// One cell of the matrix, measured.
#[derive(Debug, Serialize)]
pub(crate) struct Sample {
    place: String,
    durable: bool,
    size: u64,
    writers: u32,
    design: MailDesign,
    /// The median of the rounds.
    per_second: f64,
    /// The lowest and the highest of them.
    range: [f64; 2],
    p50_ms: f64,
    p99_ms: f64,
    max_ms: f64,
    /// Rates of ccb over those of the array, round by round; their median.
    times_array: Option<f64>,
    failures: u64,
    first_failure: Option<String>,
    lost: i64,
}

/// One round of one design.
struct Round {
    per_second: f64,
    waits: Vec<u64>,
    longest: u64,
    failures: u64,
    first_failure: Option<String>,
    lost: i64,
}

/// Measures the whole matrix.
pub(crate) fn run(options: &Options) -> Result<Vec<Sample>, Failure> {
    let mut samples = Vec::new();
    for place in &options.places {
        for durable in [true, false] {
            for size in SIZES {
                for &writers in &options.processes {
                    let sync = durable_word(durable);
                    let at = &place.label;
                    eprintln!("mail: {at}, {sync}, {size} messages, {writers} writers");
                    samples.extend(cell(options, place, durable, size, writers)?);
                }
            }
        }
    }
    Ok(samples)
}

/// Both designs in turn, round by round, so that both meet the same weather.
fn cell(
    options: &Options,
    place: &Place,
    durable: bool,
    size: u64,
    writers: u32,
) -> Result<Vec<Sample>, Failure> {
    let mut rounds: Vec<Vec<Round>> = MailDesign::ALL.iter().map(|_| Vec::new()).collect();
    for _ in 0..options.mail_rounds() {
        for (design, rounds) in MailDesign::ALL.into_iter().zip(&mut rounds) {
            check_interrupted()?;
            let dir = place.scratch()?;
            design.fill(dir.path(), INBOX, size, false)?;
            place.flush()?;
            rounds.push(round(
                design,
                dir.path(),
                durable,
                (size, writers),
                options.limit,
            )?);
        }
    }
    let ratios = rounds[0].iter().zip(&rounds[1]);
    let ratios = ratios.map(|(ccb, array)| ccb.per_second / array.per_second);
    let times_array = median(ratios.collect());
    let sample = |(design, rounds): (MailDesign, Vec<Round>)| {
        let rates: Vec<f64> = rounds.iter().map(|round| round.per_second).collect();
        let mut waits: Vec<u64> = rounds
            .iter()
            .flat_map(|round| round.waits.clone())
            .collect();
        waits.sort_unstable();
        let in_ms = |nanos: u64| nanos as f64 / 1e6;
        Sample {
            place: place.label.clone(),
            durable,
            size,
            writers,
            design,
            range: [
                rates.iter().copied().fold(f64::INFINITY, f64::min),
                rates.iter().copied().fold(0.0, f64::max),
            ],
            per_second: median(rates),
            p50_ms: in_ms(percentile(&waits, 0.5)),
            p99_ms: in_ms(percentile(&waits, 0.99)),
            max_ms: in_ms(rounds.iter().map(|round| round.longest).max().unwrap_or(0)),
            times_array: (design == MailDesign::Ccb).then_some(times_array),
            failures: rounds.iter().map(|round| round.failures).sum(),
            first_failure: rounds.iter().find_map(|round| round.first_failure.clone()),
            lost: rounds.iter().map(|round| round.lost).sum(),
        }
    };
    Ok(MailDesign::ALL
        .into_iter()
        .zip(rounds)
        .map(sample)
        .collect())
}

fn round(
    design: MailDesign,
    dir: &Path,
    durable: bool,
    (size, writers): (u64, u32),
    limit: Duration,
) -> Result<Round, Failure> {
    let args = MailArgs {
        design,
        dir: dir.to_owned(),
        inbox: INBOX.into(),
        durable,
        millis: limit.as_millis() as u64,
    };
    let writer = |n: u32| {
        let mut command = process("mail-writer", &args)?;
        command.arg("--from").arg(agent(n as usize));
        Ok(command)
    };
    let commands: Result<Vec<_>, Failure> = (0..writers).map(writer).collect();
    let reports: Vec<Written> = race(commands?, limit)?;
    let sum = |field: fn(&Written) -> u64| reports.iter().map(field).sum::<u64>();
    let found = design.count(dir, INBOX)?;
    Ok(Round {
        per_second: sum(|report| report.in_time) as f64 / limit.as_secs_f64(),
        longest: reports
            .iter()
            .map(|report| report.longest)
            .max()
            .unwrap_or(0),
        failures: sum(|report| report.failures),
        first_failure: reports
            .iter()
            .find_map(|report| report.first_failure.clone()),
        lost: (size + sum(|report| report.sent)).cast_signed() - found.cast_signed(),
        waits: reports
            .into_iter()
            .flat_map(|report| report.waits)
            .collect(),
    })
}

/// The median; 0 if there are no values.
fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}

/// Prints one table per place.
pub(crate) fn print(options: &Options, samples: &[Sample]) {
    println!("## Mail: messages a second\n");
    for place in &options.places {
        println!("### {}\n", place.label);
        let head = [
            "",
            "in the inbox",
            "writers",
            "design",
            "messages/s",
            "lowest",
            "highest",
            "× array",
            "p50 ms",
            "p99 ms",
            "max ms",
            "failures",
            "lost",
        ];
        let mut table = Table::new(4, head);
        for sample in samples.iter().filter(|s| s.place == place.label) {
            let times = sample.times_array.map(significant);
            table.row(vec![
                durable_word(sample.durable),
                thousands(sample.size),
                sample.writers.to_string(),
                sample.design.label().to_owned(),
                significant(sample.per_second),
                significant(sample.range[0]),
                significant(sample.range[1]),
                times.unwrap_or_default(),
                significant(sample.p50_ms),
                significant(sample.p99_ms),
                significant(sample.max_ms),
                sample.failures.to_string(),
                sample.lost.to_string(),
            ]);
        }
        println!("{table}");
        for sample in samples.iter().filter(|s| s.place == place.label) {
            if let Some(failure) = &sample.first_failure {
                println!(
                    "{}, {} writers: {failure}\n",
                    sample.design.label(),
                    sample.writers
                );
            }
        }
    }
}
