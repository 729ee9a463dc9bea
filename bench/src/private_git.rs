//! The cost of an agent's own `.git`: putting it in place, and sealing its work, in worktrees of
//! 200 and 20,000 files.
//!
//! The alternative, the worktree's ordinary `.git`, is measured in the same rounds.

use std::path::Path;
use std::time::{Duration, Instant};

use serde::Serialize;
use store::atomic::Durability;
use worktrees::{CreateRequest, RemoveRequest, Slug, TreeOptions, Trees};

use crate::args::Options;
use crate::environment::Place;
use crate::repository::{Repository, git, run as run_git};
use crate::stats::Spread;
use crate::table::{Table, ms};
use crate::{Failure, check_interrupted};

const FILES: [u64; 2] = [200, 20_000];
/// Files that each agent changes, and commits that a committing one makes.
const CHANGED: usize = 3;
const COMMITS: usize = 3;

/// One line of the table.
#[derive(Debug, Serialize)]
pub(crate) struct Sample {
    place: String,
    files: u64,
    what: &'static str,
    ordinary_ms: f64,
    own_ms: f64,
    runs: usize,
    #[serde(skip)]
    texts: [String; 2],
}

#[derive(Debug, Default)]
struct Times {
    hold: Vec<Duration>,
    seal: Vec<Duration>,
    seal_commits: Vec<Duration>,
}

/// Measures in every place.
pub(crate) fn run(options: &Options) -> Result<Vec<Sample>, Failure> {
    let rounds = if options.quick { 7 } else { 30 };
    let mut samples = Vec::new();
    for place in &options.places {
        for files in FILES {
            eprintln!("an agent's own .git: {}, {files} files", place.label);
            samples.extend(measure(place, files, rounds)?);
        }
    }
    Ok(samples)
}

fn measure(place: &Place, files: u64, rounds: usize) -> Result<Vec<Sample>, Failure> {
    let repository = Repository::generate(place.scratch()?, files)?;
    let options = TreeOptions {
        durability: Durability::Relaxed,
        ..TreeOptions::default()
    };
    let trees = Trees::discover(&repository.main, options)?;
    let mut times = [Times::default(), Times::default()];
    for round in 0..rounds {
        for (own, times) in times.iter_mut().enumerate() {
            check_interrupted()?;
            for commits in [0, COMMITS] {
                let name = format!("w-{round}-{own}-{commits}");
                one_round(&trees, &repository.main, &name, own == 1, commits, times)?;
            }
        }
    }
    let [ordinary, own] = times;
    let rows = [
        ("take the worktree for an agent", ordinary.hold, own.hold),
        ("seal files that are not committed", ordinary.seal, own.seal),
        (
            "seal three commits and files",
            ordinary.seal_commits,
            own.seal_commits,
        ),
    ];
    let sample = |(what, ordinary, own): (&'static str, Vec<Duration>, Vec<Duration>)| {
        let runs = own.len();
        let (ordinary, own) = (Spread::of(ordinary), Spread::of(own));
        let text = |spread: &Spread| format!("{} ({})", ms(spread.p50), ms(spread.p99));
        Sample {
            place: place.label.clone(),
            files,
            what,
            ordinary_ms: ordinary.p50.as_secs_f64() * 1000.0,
            own_ms: own.p50.as_secs_f64() * 1000.0,
            runs,
            texts: [text(&ordinary), text(&own)],
        }
    };
    Ok(rows.into_iter().map(sample).collect())
}

fn one_round(
    trees: &Trees,
    main: &Path,
    name: &str,
    own: bool,
    commits: usize,
    times: &mut Times,
) -> Result<(), Failure> {
    let slug = Slug::new(name)?;
    let mut request = CreateRequest::new(Some(slug.clone()), main);
    request.agent = Some(name.to_owned());
    let tree = trees.create(&request)?.entry.path().to_owned();
    let started = Instant::now();
    let mut lease = trees.hold(&slug)?;
    if own && let Some(why) = trees.enter(&slug, &mut lease)? {
        return Err(why.into());
    }
    times.hold.push(started.elapsed());
    for commit in 0..commits {
        std::fs::write(tree.join(format!("committed-{commit}")), name)?;
        run_git(git(&tree, &["add", "-A"]))?;
        run_git(git(
            &tree,
            &[
                "-c",
                "user.name=a",
                "-c",
                "user.email=a@a",
                "commit",
                "-q",
                "-m",
                "work",
            ],
        ))?;
    }
    for number in 0..CHANGED {
        std::fs::write(tree.join(format!("new-{number}")), name.repeat(100))?;
    }
    let started = Instant::now();
    trees.leave(&slug, Some(&mut lease))?;
    trees.seal(&slug, "work")?;
    match commits {
        0 => times.seal.push(started.elapsed()),
        _ => times.seal_commits.push(started.elapsed()),
    }
    drop(lease);
    let discard = RemoveRequest {
        discard: true,
        ..RemoveRequest::default()
    };
    trees.remove(&slug, &discard)?;
    Ok(())
}

/// Prints the table.
pub(crate) fn print(options: &Options, samples: &[Sample]) {
    println!("## An agent's own .git\n");
    for place in &options.places {
        println!("### {}\n", place.label);
        let head = [
            "",
            "files",
            "ordinary, ms p50 (p99)",
            "own, ms p50 (p99)",
            "more, ms",
            "times",
        ];
        let mut table = Table::new(1, head);
        for sample in samples.iter().filter(|sample| sample.place == place.label) {
            let [ordinary, own] = sample.texts.clone();
            table.row(vec![
                sample.what.to_owned(),
                sample.files.to_string(),
                ordinary,
                own,
                format!("{:.1}", sample.own_ms - sample.ordinary_ms),
                format!("{:.2}", sample.own_ms / sample.ordinary_ms),
            ]);
        }
        println!("{table}");
    }
}
