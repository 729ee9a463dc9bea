//! Forks of a native agent: the part of their first request that is their parent's, the part of
//! that in the cache, the time until it is sent, and the cost beside a fresh agent.

// The cache of the tests' scripted model, so that both count alike.
#[path = "../../../tests/src/model/cache.rs"]
#[expect(dead_code, unreachable_pub, reason = "not all of it is needed here")]
mod cache;
mod model;
mod wire;

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use serde::Serialize;

use self::model::{Asked, Model};
use crate::args::Options;
use crate::environment::Place;
use crate::stats::Spread;
use crate::table::{Table, ms, thousands};
use crate::{Failure, check_interrupted, startup};

/// Files that the parent reads, and the length of each: 100,000 tokens together.
const FILES: usize = 10;
const FILE: usize = 40 * 1024;
/// Numbers of forks in one answer.
const FORKS: [usize; 3] = [1, 5, 8];
/// Time limit of one run.
const LIMIT: Duration = Duration::from_secs(120);
/// US dollars for a million tokens of Claude Sonnet: read, written to the cache, read from it.
const PRICES: [f64; 3] = [3.0, 3.75, 0.3];

/// A number of forks at once.
#[derive(Debug, Serialize)]
pub(crate) struct Sample {
    forks: usize,
    runs: usize,
    /// Tokens of the parent's last request.
    parent_tokens: u64,
    /// The least share of the parent's bytes that a fork's request begins with.
    identical: f64,
    /// The least share of the parent's tokens that a fork read from the cache.
    from_cache: f64,
    /// Tokens that are not the parent's, the most of all forks.
    own_tokens: u64,
    /// From the end of the answer with the calls until a fork's request is there.
    first_request_ms: [f64; 2],
    /// The cost of a fork's first request, and the cost of informing a fresh agent as well.
    usd: [f64; 2],
    #[serde(skip)]
    spread: Spread,
}

/// One run.
struct Run {
    parent: Asked,
    forks: Vec<Asked>,
    /// The cost of the parent's knowledge.
    learned: f64,
}

/// Measures every number of forks.
pub(crate) fn run(options: &Options) -> Result<Vec<Sample>, Failure> {
    let ccb = startup::binary(options)?;
    let place = options.places.first().ok_or("no directory")?;
    let runs = if options.quick { 3 } else { 20 };
    let mut samples = Vec::new();
    for forks in FORKS {
        eprintln!("forks: {forks} at once, {runs} runs");
        let mut done = Vec::new();
        // The first one fills caches and is not counted.
        for number in 0..=runs {
            check_interrupted()?;
            let run = once(&ccb, place, forks)?;
            if number > 0 {
                done.push(run);
            }
        }
        samples.push(sample(forks, &done));
    }
    Ok(samples)
}

fn once(ccb: &Path, place: &Place, forks: usize) -> Result<Run, Failure> {
    let dir = place.scratch()?;
    let (home, repo) = (dir.path().join("home"), dir.path().join("repo"));
    std::fs::create_dir_all(&home)?;
    std::fs::create_dir_all(&repo)?;
    let init = Command::new("git")
        .args(["init", "-q"])
        .current_dir(&repo)
        .status()?;
    if !init.success() {
        return Err("git init failed".into());
    }
    for number in 0..FILES {
        let line = format!("File {number}: something that is worth knowing about it.\n");
        std::fs::write(
            repo.join(format!("f{number}.txt")),
            line.repeat(FILE / line.len()),
        )?;
    }
    let (model, url) = Model::start(FILES, forks)?;
    let mut command = startup::ccb(ccb, &home);
    let output = command
        .args(["agent", "spawn", "--runtime", "native", "--background"])
        .arg("Read the files, then fork.")
        .env("ANTHROPIC_API_KEY", "sk-ant-fake-000")
        .env("ANTHROPIC_BASE_URL", url)
        .current_dir(&repo)
        .stderr(Stdio::inherit())
        .output()?;
    let started: serde_json::Value = serde_json::from_slice(&output.stdout)?;
    let id = started["agent"]["agentId"]
        .as_str()
        .ok_or("it did not start")?;
    let asked = model.wait(LIMIT);
    // Its end is not measured; everything has to be over before the directory is removed.
    let mut wait = startup::ccb(ccb, &home);
    wait.args(["agent", "output", id]).current_dir(&repo);
    wait.stdout(Stdio::null()).status()?;
    let asked = asked.ok_or("not every fork asked the model")?;
    let (forks, parents): (Vec<Asked>, Vec<Asked>) = asked.into_iter().partition(|one| one.fork);
    let mut parents: Vec<Asked> = parents
        .into_iter()
        .filter(|one| one.turn <= FILES)
        .collect();
    let learned = parents.iter().map(cost).sum();
    let parent = parents.pop().ok_or("the parent asked for nothing")?;
    let first = |one: &Asked| one.turn == parent.turn + 1;
    let forks = forks.into_iter().filter(first).collect();
    Ok(Run {
        parent,
        forks,
        learned,
    })
}

/// The cost of a request's input.
fn cost(asked: &Asked) -> f64 {
    let uncached = asked
        .tokens()
        .saturating_sub(asked.cached.read + asked.cached.write);
    let parts = [uncached, asked.cached.write, asked.cached.read];
    let sum: f64 = parts
        .iter()
        .zip(PRICES)
        .map(|(count, price)| *count as f64 * price)
        .sum();
    sum / 1e6
}

fn sample(forks: usize, runs: &[Run]) -> Sample {
    let pairs = || {
        runs.iter()
            .flat_map(|run| run.forks.iter().map(move |fork| (&run.parent, fork)))
    };
    let least = |of: fn(&Asked, &Asked) -> f64| {
        pairs()
            .map(|(parent, fork)| of(parent, fork))
            .fold(1.0, f64::min)
    };
    let waits = pairs().filter_map(|(parent, fork)| {
        Some(fork.arrived.saturating_duration_since(parent.answered?))
    });
    let spread = Spread::of(waits.collect());
    let millis = |time: Duration| time.as_secs_f64() * 1e3;
    let count = pairs().count().max(1) as f64;
    let own = pairs().map(|(_, fork)| fork.tokens().saturating_sub(fork.cached.read));
    Sample {
        forks,
        runs: runs.len(),
        parent_tokens: runs.first().map_or(0, |run| run.parent.tokens()),
        identical: least(|parent, fork| share(same(&parent.body, &fork.body), known(&parent.body))),
        from_cache: least(|parent, fork| {
            share(fork.cached.read as usize, parent.tokens() as usize)
        }),
        own_tokens: own.max().unwrap_or(0),
        first_request_ms: [millis(spread.p50), millis(spread.p99)],
        usd: [
            pairs().map(|(_, fork)| cost(fork)).sum::<f64>() / count,
            runs.iter().map(|run| run.learned).sum::<f64>() / runs.len().max(1) as f64,
        ],
        spread,
    }
}

fn share(part: usize, whole: usize) -> f64 {
    (part as f64 / whole.max(1) as f64).min(1.0)
}

/// The length of the common beginning of two requests, in bytes.
fn same(one: &[u8], two: &[u8]) -> usize {
    one.iter().zip(two).take_while(|(a, b)| a == b).count()
}

/// The length of a request without the closing brackets of its lists.
fn known(body: &[u8]) -> usize {
    body.len()
        - body
            .iter()
            .rev()
            .take_while(|byte| b"]}".contains(byte))
            .count()
}

/// Prints one table.
pub(crate) fn print(samples: &[Sample]) {
    println!("## Forks\n");
    println!(
        "A parent reads {FILES} files and then makes forks in one answer. *Identical*: the share of"
    );
    println!(
        "the bytes of the parent's last request with which a fork's first request begins, the"
    );
    println!(
        "least of all forks. *From cache*: the share of its tokens that the fork reads from the"
    );
    println!(
        "cache, counted as the service counts. *Own*: tokens of a fork that it does not. *First"
    );
    println!(
        "request*: from the end of the answer with the calls until the fork's request has arrived."
    );
    println!(
        "*Fork $*: what the input of a fork's first request costs; *fresh $*: what the parent paid"
    );
    println!("to know as much (Claude Sonnet's prices).\n");
    let head = [
        "forks at once",
        "parent tokens",
        "identical %",
        "from cache %",
        "own tokens",
        "first request p50 ms",
        "first request p99 ms",
        "fork $",
        "fresh $",
        "runs",
    ];
    let mut table = Table::new(0, head);
    for sample in samples {
        table.row(vec![
            sample.forks.to_string(),
            thousands(sample.parent_tokens),
            format!("{:.2}", sample.identical * 100.0),
            format!("{:.2}", sample.from_cache * 100.0),
            thousands(sample.own_tokens),
            ms(sample.spread.p50),
            ms(sample.spread.p99),
            format!("{:.4}", sample.usd[0]),
            format!("{:.4}", sample.usd[1]),
            sample.runs.to_string(),
        ]);
    }
    println!("{table}");
}
