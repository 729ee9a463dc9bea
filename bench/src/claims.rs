//! Claims per second, the waits of the workers, and the fairness.

use std::collections::HashMap;
use std::time::Duration;

use serde::Serialize;

use crate::args::Options;
use crate::designs::Design;
use crate::environment::Place;
use crate::fleet::{self, Report};
use crate::stats::{jain, median_by_time, percentile};
use crate::{Failure, check_interrupted, workload};

/// One cell of the matrix, measured.
#[derive(Debug, Serialize)]
pub(crate) struct Outcome {
    pub(crate) place: String,
    pub(crate) tasks: u64,
    pub(crate) processes: u32,
    pub(crate) durable: bool,
    pub(crate) design: Design,
    pub(crate) rounds: u32,
    pub(crate) claims: u64,
    pub(crate) claims_per_second: f64,
    pub(crate) p50_ms: f64,
    pub(crate) p99_ms: f64,
    pub(crate) max_ms: f64,
    /// The wait of a worker at a random moment, also one that ends without a task.
    pub(crate) p50_by_time_ms: f64,
    /// Processor time of the claiming processes per claim, in microseconds.
    pub(crate) cpu_us: f64,
    /// The mean over the rounds.
    pub(crate) jain: f64,
    /// Workers without a single claim, the mean over the rounds.
    pub(crate) empty_handed: f64,
    pub(crate) failures: u64,
    pub(crate) first_failure: Option<String>,
    /// Tasks claimed twice, or owned by another than their claimer in the end.
    pub(crate) double: u64,
    /// True if time was up before the tasks were.
    pub(crate) cut: bool,
}

/// The sum of the rounds of one design.
#[derive(Default)]
struct Sum {
    cpu: u64,
    rounds: u32,
    time: Duration,
    /// Claims made in that time.
    timed: u64,
    waits: Vec<u64>,
    unfinished: Vec<u64>,
    longest: u64,
    jain: f64,
    empty_handed: u64,
    failures: u64,
    first_failure: Option<String>,
    double: u64,
    cut: bool,
}

/// Measures the whole matrix.
pub(crate) fn run(options: &Options) -> Result<Vec<Outcome>, Failure> {
    let mut outcomes = Vec::new();
    for place in &options.places {
        for &durable in &options.durable {
            for &tasks in &options.tasks {
                for &processes in &options.processes {
                    let sync = if durable { "durable" } else { "not durable" };
                    eprintln!(
                        "claims: {}, {sync}, {tasks} tasks, {processes} processes",
                        place.label
                    );
                    outcomes.extend(cell(options, place, tasks, processes, durable)?);
                }
            }
        }
    }
    Ok(outcomes)
}

/// All designs in turn, round by round, so that all meet the same weather.
fn cell(
    options: &Options,
    place: &Place,
    tasks: u64,
    processes: u32,
    durable: bool,
) -> Result<Vec<Outcome>, Failure> {
    let mut sums: Vec<(Design, Sum)> = options
        .designs
        .iter()
        .map(|design| (*design, Sum::default()))
        .collect();
    for _ in 0..options.rounds(tasks) {
        // A design that could not finish one board in time has shown its rate.
        for (design, sum) in sums.iter_mut().filter(|(_, sum)| !sum.cut) {
            check_interrupted()?;
            let board = place.scratch()?;
            design.prepare(board.path(), tasks)?;
            place.flush()?;
            let reports = fleet::run(*design, board.path(), durable, processes, options.limit)?;
            let double = count_double(&reports, &design.owners(board.path())?);
            sum.add(reports, double, options.limit);
            if !sum.cut && sum.failures == 0 {
                let all = u64::from(sum.rounds) * workload::claimable(tasks);
                check_all_claimed(*design, sum.waits.len() as u64, all)?;
            }
        }
    }
    let outcome = |(design, sum): (Design, Sum)| {
        sum.outcome(Outcome {
            place: place.label.clone(),
            tasks,
            processes,
            durable,
            design,
            ..Outcome::empty()
        })
    };
    Ok(sums.into_iter().map(outcome).collect())
}

/// A board that ran dry must have run dry for the right reason.
fn check_all_claimed(design: Design, claims: u64, all: u64) -> Result<(), Failure> {
    if claims < all {
        let name = design.label();
        return Err(format!("{name}: workers found nothing left after {claims} of {all}").into());
    }
    Ok(())
}

/// Claims of tasks that another worker claimed too, or owns now.
fn count_double(reports: &[Report], owners: &HashMap<u64, String>) -> u64 {
    let mut claimers: HashMap<u64, usize> = HashMap::new();
    let mut double = 0;
    for (n, report) in reports.iter().enumerate() {
        for id in &report.claimed {
            let again = claimers.insert(*id, n).is_some();
            let lost = owners.get(id) != Some(&fleet::agent(n));
            double += u64::from(again || lost);
        }
    }
    double
}

impl Sum {
    fn add(&mut self, reports: Vec<Report>, double: u64, limit: Duration) {
        let cut = reports.iter().any(|report| report.cut);
        // After the limit a board is left by one worker after the other; that is no rate.
        let counts: Vec<u64> = if cut {
            reports.iter().map(|report| report.in_time).collect()
        } else {
            reports.iter().map(|r| r.claimed.len() as u64).collect()
        };
        let last = reports.iter().map(|report| report.last).max().unwrap_or(0);
        self.rounds += 1;
        self.time += if cut {
            limit
        } else {
            Duration::from_nanos(last)
        };
        self.timed += counts.iter().sum::<u64>();
        self.jain += jain(&counts);
        self.empty_handed += counts.iter().filter(|count| **count == 0).count() as u64;
        self.double += double;
        self.cut |= cut;
        for report in reports {
            self.waits.extend(report.waits);
            self.unfinished.push(report.unfinished);
            self.longest = self.longest.max(report.longest);
            self.failures += report.failures;
            self.cpu += report.cpu;
            self.first_failure = self.first_failure.take().or(report.first_failure);
        }
    }

    fn outcome(mut self, cell: Outcome) -> Outcome {
        self.waits.sort_unstable();
        let ms = |nanos: u64| nanos as f64 / 1e6;
        let rounds = f64::from(self.rounds.max(1));
        let mut all = [&self.waits[..], &self.unfinished[..]].concat();
        all.sort_unstable();
        Outcome {
            rounds: self.rounds,
            claims: self.waits.len() as u64,
            claims_per_second: self.timed as f64 / self.time.as_secs_f64().max(1e-9),
            p50_ms: ms(percentile(&self.waits, 0.5)),
            p99_ms: ms(percentile(&self.waits, 0.99)),
            max_ms: ms(self.longest),
            p50_by_time_ms: ms(median_by_time(&all)),
            cpu_us: self.cpu as f64 / 1e3 / (self.waits.len() as f64).max(1.0),
            jain: self.jain / rounds,
            empty_handed: self.empty_handed as f64 / rounds,
            failures: self.failures,
            first_failure: self.first_failure,
            double: self.double,
            cut: self.cut,
            ..cell
        }
    }
}

impl Outcome {
    /// Nothing measured yet.
    fn empty() -> Self {
        Self {
            place: String::new(),
            tasks: 0,
            processes: 0,
            durable: false,
            design: Design::Ccb,
            rounds: 0,
            claims: 0,
            claims_per_second: 0.0,
            p50_ms: 0.0,
            p99_ms: 0.0,
            max_ms: 0.0,
            p50_by_time_ms: 0.0,
            cpu_us: 0.0,
            jain: 0.0,
            empty_handed: 0.0,
            failures: 0,
            first_failure: None,
            double: 0,
            cut: false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(claimed: &[u64]) -> Report {
        Report {
            claimed: claimed.to_vec(),
            waits: vec![1; claimed.len()],
            longest: 1,
            unfinished: 0,
            last: 1,
            in_time: 0,
            failures: 0,
            first_failure: None,
            cut: false,
            cpu: 0,
        }
    }

    #[test]
    fn double_claims_and_stolen_tasks_are_counted() {
        let owners: HashMap<u64, String> =
            [(1, "w0".into()), (2, "w1".into()), (3, "w1".into())].into();
        assert_eq!(count_double(&[report(&[1]), report(&[2, 3])], &owners), 0);
        // Task 2 is claimed twice (and one of the two lost it); task 3 is w1's by its file.
        assert_eq!(
            count_double(&[report(&[1, 2, 3]), report(&[2])], &owners),
            3
        );
    }
}
