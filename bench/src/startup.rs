//! `ccb task next` as a whole process, beside `true` (the cost of starting any process) and beside
//! a process that opens a SQLite database and claims one task. That one is also the last to close
//! the database, and SQLite then moves its log into it, which costs an fsync even where the claim
//! itself does not.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde::Serialize;

use crate::args::{ClaimOneArgs, Options};
use crate::designs::{Claimer, Design, ccb, sqlite};
use crate::environment::Place;
use crate::stats::Spread;
use crate::table::{Table, ms, thousands};
use crate::{Failure, check_interrupted, workload};

/// Board sizes.
const SIZES: [u64; 3] = [100, 1_000, 10_000];
/// Time limit of one cell.
const LIMIT: Duration = Duration::from_secs(60);

/// One cell.
#[derive(Debug, Serialize)]
pub(crate) struct Sample {
    place: String,
    tasks: u64,
    durable: bool,
    what: &'static str,
    p50_ms: f64,
    p99_ms: f64,
    runs: usize,
    #[serde(skip)]
    texts: [String; 2],
}

/// The process that opens SQLite and claims one.
pub(crate) fn claim_one(args: &ClaimOneArgs) -> Result<(), Failure> {
    let id = sqlite::Database::open(&args.board, args.durable)?.claim("starter")?;
    println!("{}", id.ok_or("nothing left")?);
    Ok(())
}

/// Measures every size in every place.
pub(crate) fn run(options: &Options) -> Result<Vec<Sample>, Failure> {
    let binary = binary(options)?;
    let runs = if options.quick { 30 } else { 200 };
    let mut samples = Vec::new();
    for place in &options.places {
        for durable in [true, false] {
            for tasks in SIZES {
                eprintln!("startup: {}, durable {durable}, {tasks} tasks", place.label);
                samples.extend(cell(place, &binary, tasks, durable, runs)?);
            }
        }
    }
    Ok(samples)
}

/// The ccb to start: the given one, or a newly built one.
pub(crate) fn binary(options: &Options) -> Result<PathBuf, Failure> {
    binary_with(options, &[])
}

/// The same, built with these features.
pub(crate) fn binary_with(options: &Options, features: &[&str]) -> Result<PathBuf, Failure> {
    match &options.ccb {
        Some(path) => Ok(path
            .canonicalize()
            .map_err(|error| format!("--ccb {}: {error}", path.display()))?),
        None => build(features),
    }
}

/// A ccb process of the team `bench` with a home of its own, and nothing of the caller's environment
/// but PATH.
pub(crate) fn ccb(binary: &Path, home: &Path) -> Command {
    let mut command = Command::new(binary);
    command
        .env_clear()
        .envs(std::env::var_os("PATH").map(|path| ("PATH", path)))
        .env("HOME", home)
        .args(["--team", "bench", "--json", "--home"])
        .arg(home)
        .stdin(Stdio::null());
    command
}

/// Builds ccb next to this binary. The directory is given, so that no setting moves it.
fn build(features: &[&str]) -> Result<PathBuf, Failure> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let this = std::env::current_exe()?;
    let target = this
        .parent()
        .and_then(Path::parent)
        .ok_or("no target directory")?;
    eprintln!("building ccb");
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let status = Command::new(cargo)
        .args([
            "build",
            "--release",
            "--quiet",
            "-p",
            "ccb-cli",
            "--features",
            &features.join(","),
            "--manifest-path",
        ])
        .arg(root.join("Cargo.toml"))
        .arg("--target-dir")
        .arg(target)
        .stdout(Stdio::null())
        .status()?;
    if !status.success() {
        return Err("ccb could not be built; name a binary with --ccb".into());
    }
    Ok(target.join("release/ccb"))
}

/// Both boards of a cell; made anew when they run dry.
struct Boards {
    ccb: tempfile::TempDir,
    sqlite: tempfile::TempDir,
    left: u64,
}

impl Boards {
    fn new(place: &Place, tasks: u64, durable: bool) -> Result<Self, Failure> {
        let boards = Self {
            ccb: place.scratch()?,
            sqlite: place.scratch()?,
            left: workload::claimable(tasks),
        };
        Design::Ccb.prepare(boards.ccb.path(), tasks)?;
        Design::Sqlite.prepare(boards.sqlite.path(), tasks)?;
        let settings = format!("{{\"taskboard\": {{\"durable\": {durable}}}}}\n");
        std::fs::write(boards.ccb.path().join("ccb.json"), settings)?;
        place.flush()?;
        Ok(boards)
    }
}

fn cell(
    place: &Place,
    binary: &Path,
    tasks: u64,
    durable: bool,
    runs: usize,
) -> Result<Vec<Sample>, Failure> {
    let this = std::env::current_exe()?;
    let mut boards = Boards::new(place, tasks, durable)?;
    let [mut floor, mut sqlite, mut ccb] = [const { Vec::new() }; 3];
    let started = Instant::now();
    while ccb.len() < runs && started.elapsed() < LIMIT {
        check_interrupted()?;
        if boards.left == 0 {
            boards = Boards::new(place, tasks, durable)?;
        }
        boards.left -= 1;
        floor.push(wall(Command::new("true"))?);
        let mut command = Command::new(&this);
        command
            .arg("claim-one")
            .arg("--board")
            .arg(boards.sqlite.path());
        if durable {
            command.arg("--durable");
        }
        sqlite.push(wall(command)?);
        let mut command = Command::new(binary);
        command.args(["--json", "--as", "starter", "--list", ccb::LIST, "--home"]);
        command.arg(boards.ccb.path()).args(["task", "next"]);
        // Not inside the repository, whose settings would count.
        command.current_dir(boards.ccb.path());
        ccb.push(wall(command)?);
    }
    let sample = |(what, times): (&'static str, Vec<Duration>)| {
        let spread = Spread::of(times);
        Sample {
            place: place.label.clone(),
            tasks,
            durable,
            what,
            p50_ms: spread.p50.as_secs_f64() * 1e3,
            p99_ms: spread.p99.as_secs_f64() * 1e3,
            runs: spread.count,
            texts: [ms(spread.p50), ms(spread.p99)],
        }
    };
    let rows = [
        ("true", floor),
        ("SQLite, claim one", sqlite),
        ("ccb task next", ccb),
    ];
    Ok(rows.into_iter().map(sample).collect())
}

/// From before the process is started until it is gone.
fn wall(mut command: Command) -> Result<Duration, Failure> {
    command.stdin(Stdio::null()).stdout(Stdio::null());
    let started = Instant::now();
    let status = command.status()?;
    let elapsed = started.elapsed();
    if !status.success() {
        let program = command.get_program().to_string_lossy();
        return Err(format!("{program} ended with {status}").into());
    }
    Ok(elapsed)
}

/// Prints one table per place.
pub(crate) fn print(options: &Options, samples: &[Sample]) {
    println!("## One claim as a whole process\n");
    println!("Wall time from before the process is started until it is gone. SQLite writes its");
    println!("log back (with fsync) when the last process closes the database: here every time.\n");
    for place in &options.places {
        println!("### {}\n", place.label);
        let mut table = Table::new(3, ["", "process", "tasks", "p50 ms", "p99 ms", "runs"]);
        for sample in samples.iter().filter(|s| s.place == place.label) {
            let [p50, p99] = sample.texts.clone();
            table.row(vec![
                if sample.durable {
                    "durable"
                } else {
                    "not durable"
                }
                .to_owned(),
                sample.what.to_owned(),
                thousands(sample.tasks),
                p50,
                p99,
                sample.runs.to_string(),
            ]);
        }
        println!("{table}");
    }
}
