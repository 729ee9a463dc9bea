//! The cost of durable work: sealing, landing and removing worktrees with `worktree.durable` and
//! without.
//!
//! Every round does both, one after the other, in the same repository, so that a disk that is slow
//! at the moment is slow for both.

use std::path::Path;
use std::time::{Duration, Instant};

use serde::Serialize;
use store::atomic::Durability;
use worktrees::{CreateRequest, MergeRequest, RemoveRequest, Slug, TreeOptions, Trees};

use crate::args::Options;
use crate::environment::Place;
use crate::repository::Repository;
use crate::stats::Spread;
use crate::table::{Table, ms};
use crate::{Failure, check_interrupted};

/// Files in the repository, and files that each piece of work adds.
const FILES: u64 = 1_000;
const CHANGED: usize = 3;
/// Number of worktrees sealed at once, as by hosts that end at the same time.
const AT_ONCE: usize = 8;

/// One line of the table.
#[derive(Debug, Serialize)]
pub(crate) struct Sample {
    place: String,
    what: &'static str,
    not_durable_ms: f64,
    durable_ms: f64,
    runs: usize,
    #[serde(skip)]
    texts: [String; 2],
}

#[derive(Debug, Default)]
struct Times {
    seal: Vec<Duration>,
    land: Vec<Duration>,
    remove: Vec<Duration>,
    at_once: Vec<Duration>,
}

/// Measures in every place.
pub(crate) fn run(options: &Options) -> Result<Vec<Sample>, Failure> {
    let rounds = if options.quick { 5 } else { 30 };
    let mut samples = Vec::new();
    for place in &options.places {
        eprintln!("landing: {}", place.label);
        samples.extend(measure(place, rounds)?);
    }
    Ok(samples)
}

fn measure(place: &Place, rounds: usize) -> Result<Vec<Sample>, Failure> {
    let repository = Repository::generate(place.scratch()?, FILES)?;
    let mut times = [Times::default(), Times::default()];
    for round in 0..rounds {
        for (durable, times) in times.iter_mut().enumerate() {
            check_interrupted()?;
            place.flush()?;
            let options = TreeOptions {
                durability: Durability::of(durable == 1),
                ..TreeOptions::default()
            };
            let trees = Trees::discover(&repository.main, options)?;
            one_round(
                &trees,
                &repository.main,
                &format!("{round}-{durable}"),
                times,
            )?;
        }
    }
    let [without, with] = times;
    let rows = [
        ("seal one piece of work", without.seal, with.seal),
        ("8 sealed at once, all", without.at_once, with.at_once),
        ("land one", without.land, with.land),
        ("remove its worktree", without.remove, with.remove),
    ];
    let sample = |(what, without, with): (&'static str, Vec<Duration>, Vec<Duration>)| {
        let runs = with.len();
        let (without, with) = (Spread::of(without), Spread::of(with));
        let text = |spread: &Spread| format!("{} ({})", ms(spread.p50), ms(spread.p99));
        Sample {
            place: place.label.clone(),
            what,
            not_durable_ms: without.p50.as_secs_f64() * 1000.0,
            durable_ms: with.p50.as_secs_f64() * 1000.0,
            runs,
            texts: [text(&without), text(&with)],
        }
    };
    Ok(rows.into_iter().map(sample).collect())
}

fn one_round(trees: &Trees, main: &Path, name: &str, times: &mut Times) -> Result<(), Failure> {
    let slug = work(trees, main, &format!("one-{name}"))?;
    timed(&mut times.seal, || {
        Ok(trees.seal(&slug, "work").map(drop)?)
    })?;
    timed(&mut times.land, || {
        Ok(trees.merge(&slug, &MergeRequest::default()).map(drop)?)
    })?;
    timed(&mut times.remove, || {
        Ok(trees.remove(&slug, &RemoveRequest::default()).map(drop)?)
    })?;
    let many: Result<Vec<Slug>, Failure> = (0..AT_ONCE)
        .map(|number| work(trees, main, &format!("many-{name}-{number}")))
        .collect();
    let many = many?;
    timed(&mut times.at_once, || {
        std::thread::scope(|scope| {
            let seal = |slug| scope.spawn(move || trees.seal(slug, "work").map(drop));
            let threads: Vec<_> = many.iter().map(seal).collect();
            threads
                .into_iter()
                .try_for_each(|thread| match thread.join() {
                    Ok(sealed) => Ok(sealed?),
                    Err(_) => Err("a thread panicked".into()),
                })
        })
    })?;
    let discard = RemoveRequest {
        discard: true,
        ..RemoveRequest::default()
    };
    for slug in &many {
        trees.remove(slug, &discard)?;
    }
    Ok(())
}

/// A worktree of an agent's with uncommitted work in it.
fn work(trees: &Trees, main: &Path, name: &str) -> Result<Slug, Failure> {
    let slug = Slug::new(name)?;
    let mut request = CreateRequest::new(Some(slug.clone()), main);
    request.agent = Some(name.to_owned());
    let created = trees.create(&request)?;
    for number in 0..CHANGED {
        let path = created.entry.path().join(format!("new-{name}-{number}"));
        std::fs::write(path, format!("{name} {number}\n").repeat(100))?;
    }
    Ok(slug)
}

fn timed(
    times: &mut Vec<Duration>,
    work: impl FnOnce() -> Result<(), Failure>,
) -> Result<(), Failure> {
    let started = Instant::now();
    work()?;
    times.push(started.elapsed());
    Ok(())
}

/// Prints the table.
pub(crate) fn print(options: &Options, samples: &[Sample]) {
    println!("## Landing, on the disk or not\n");
    for place in &options.places {
        println!("### {}\n", place.label);
        let mut table = Table::new(
            1,
            [
                "",
                "not durable, ms p50 (p99)",
                "durable, ms p50 (p99)",
                "times",
            ],
        );
        for sample in samples.iter().filter(|sample| sample.place == place.label) {
            let [without, with] = sample.texts.clone();
            table.row(vec![
                sample.what.to_owned(),
                without,
                with,
                format!("{:.2}", sample.durable_ms / sample.not_durable_ms),
            ]);
        }
        println!("{table}");
    }
}
