//! The command line, and what it means.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::Failure;
use crate::designs::Design;
use crate::environment::Place;
use crate::mail::MailDesign;
use crate::postgres::What;
use crate::probe::Operation;

/// Measures ccb's task board and mail beside SQLite and the plain designs they replace, and its
/// worktrees beside plain git.
#[derive(Debug, Parser)]
#[command(name = "ccb-bench", disable_help_subcommand = true)]
pub(crate) struct Cli {
    /// A smaller matrix that takes a few minutes
    #[arg(long)]
    quick: bool,
    /// Measure only this (may be given several times)
    #[arg(long, value_name = "PART")]
    only: Vec<Part>,
    /// Measure in this directory (may be given several times) [default: /dev/shm and $TMPDIR]
    #[arg(long = "dir", value_name = "DIR")]
    dirs: Vec<PathBuf>,
    /// Longest time one design may take for one board of claims or one inbox [default: 3, quick: 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=600))]
    seconds: Option<u64>,
    /// Boards per cell of claims, in turn with the other designs [default: 10, 4, 2 by size]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: Option<u32>,
    /// Board sizes of the claims, as in 100,1000
    #[arg(long, value_name = "N,…", value_delimiter = ',',
          value_parser = clap::value_parser!(u64).range(10..=1_000_000))]
    tasks: Vec<u64>,
    /// Numbers of processes that claim or send at once, as in 1,8
    #[arg(long, value_name = "N,…", value_delimiter = ',',
          value_parser = clap::value_parser!(u32).range(1..=512))]
    processes: Vec<u32>,
    /// Board sizes of the scaling part, as in 1000,100000
    #[arg(long, value_name = "N,…", value_delimiter = ',',
          value_parser = clap::value_parser!(u64).range(10..=1_000_000))]
    sizes: Vec<u64>,
    /// Sizes of the repositories of the worktrees part, as in 1000,20000
    #[arg(long, value_name = "N,…", value_delimiter = ',',
          value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    files: Vec<u64>,
    /// Compare only these designs of claims, as in ccb,sqlite
    #[arg(long, value_name = "DESIGN,…", value_delimiter = ',')]
    designs: Vec<Design>,
    /// Measure claims only with or without fsync
    #[arg(long, value_name = "true|false")]
    durable: Option<bool>,
    /// Write the numbers as JSON, and the claims as CSV and SVG too, into this directory
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// The ccb binary to start [default: build it]
    #[arg(long, value_name = "PATH")]
    ccb: Option<PathBuf>,
    #[command(subcommand)]
    pub(crate) inner: Option<Inner>,
}

/// The parts of the benchmark.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Part {
    /// Claims per second, waits and fairness
    Claims,
    /// Create, list, ready, opening and memory by board size
    Scaling,
    /// `ccb task next` as a whole process
    Startup,
    /// Messages per second, and how long until the reader has one
    Mail,
    /// Worktrees beside plain git, by the number of files
    Worktrees,
    /// Sealing, landing and removing worktrees, on the disk or not
    Landing,
    /// The cost of an agent's own .git
    PrivateGit,
    /// Runs of agents beside plain commands
    Agents,
    /// The MCP server: its start, a thousand calls, its memory
    Mcp,
    /// Whole team sessions beside their ideal
    Sessions,
    /// Plans of many small tasks beside shell scripts
    Fanout,
    /// Watching two hundred agents at work
    View,
    /// ccb's own agent loop beside Claude Code and opencode
    Native,
    /// Forks of native agents: the shared part, the delay, the cost
    Forks,
    /// Agents on that loop that share one process, beside those with processes of their own
    Mates,
    /// The board in PostgreSQL beside the bare query, job queues and files
    Postgres,
    /// Eight machines that work through one board in PostgreSQL
    Machines,
}

/// The inner commands with which the benchmark starts itself.
#[derive(Debug, Subcommand)]
pub(crate) enum Inner {
    #[command(hide = true)]
    Worker(WorkerArgs),
    #[command(hide = true)]
    Probe(ProbeArgs),
    #[command(hide = true)]
    ClaimOne(ClaimOneArgs),
    #[command(hide = true)]
    MailWriter(MailWriterArgs),
    #[command(hide = true)]
    MailReader(MailArgs),
    #[command(hide = true)]
    ViewAgents(ViewArgs),
    #[command(hide = true)]
    ViewLooker(ViewArgs),
    #[command(hide = true)]
    PostgresWorker(PostgresWorkerArgs),
}

/// A process of the PostgreSQL part, with some workers.
#[derive(Debug, Args)]
pub(crate) struct PostgresWorkerArgs {
    #[arg(long)]
    pub(crate) url: String,
    #[arg(long)]
    pub(crate) list: String,
    #[arg(long)]
    pub(crate) what: What,
    #[arg(long)]
    pub(crate) threads: u32,
    /// The number of its first worker.
    #[arg(long)]
    pub(crate) first: u32,
    #[arg(long)]
    pub(crate) millis: u64,
    #[arg(long)]
    pub(crate) home: PathBuf,
}

/// A process that claims until nothing is left.
#[derive(Debug, Args)]
pub(crate) struct WorkerArgs {
    #[arg(long)]
    pub(crate) design: Design,
    #[arg(long)]
    pub(crate) board: PathBuf,
    #[arg(long)]
    pub(crate) durable: bool,
    #[arg(long)]
    pub(crate) agent: String,
    #[arg(long)]
    pub(crate) seconds: u64,
}

/// A process that opens a board, does one operation several times, and prints the times.
#[derive(Debug, Args)]
pub(crate) struct ProbeArgs {
    #[arg(long)]
    pub(crate) design: Design,
    #[arg(long)]
    pub(crate) board: PathBuf,
    #[arg(long)]
    pub(crate) durable: bool,
    #[arg(long)]
    pub(crate) operation: Operation,
    #[arg(long)]
    pub(crate) repeat: usize,
    #[arg(long)]
    pub(crate) seconds: u64,
}

/// A process that opens a SQLite database and claims one task.
#[derive(Debug, Args)]
pub(crate) struct ClaimOneArgs {
    #[arg(long)]
    pub(crate) board: PathBuf,
    #[arg(long)]
    pub(crate) durable: bool,
}

/// The inbox of a process of the mail part.
#[derive(Debug, Args)]
pub(crate) struct MailArgs {
    #[arg(long)]
    pub(crate) design: MailDesign,
    #[arg(long)]
    pub(crate) dir: PathBuf,
    #[arg(long)]
    pub(crate) inbox: String,
    #[arg(long)]
    pub(crate) durable: bool,
    #[arg(long)]
    pub(crate) millis: u64,
}

/// A process that sends messages until its time is up.
#[derive(Debug, Args)]
pub(crate) struct MailWriterArgs {
    #[command(flatten)]
    pub(crate) mail: MailArgs,
    #[arg(long)]
    pub(crate) from: String,
    /// The pause between two messages, in microseconds.
    #[arg(long, default_value_t = 0)]
    pub(crate) pause: u64,
}

/// A process of the view part: agents, or a watcher.
#[derive(Debug, Args)]
pub(crate) struct ViewArgs {
    #[arg(long)]
    pub(crate) home: PathBuf,
    #[arg(long)]
    pub(crate) seconds: u64,
}

/// The command line with all defaults.
#[derive(Debug)]
pub(crate) struct Options {
    parts: Vec<Part>,
    rounds: Option<u32>,
    pub(crate) quick: bool,
    pub(crate) places: Vec<Place>,
    pub(crate) limit: Duration,
    pub(crate) tasks: Vec<u64>,
    pub(crate) processes: Vec<u32>,
    pub(crate) sizes: Vec<u64>,
    pub(crate) files: Vec<u64>,
    pub(crate) designs: Vec<Design>,
    pub(crate) durable: Vec<bool>,
    out: Option<PathBuf>,
    pub(crate) ccb: Option<PathBuf>,
}

impl Options {
    pub(crate) fn new(cli: Cli) -> Result<Self, Failure> {
        let quick = cli.quick;
        let or = |given: Vec<u64>, full: &[u64], short: &[u64]| match (given.is_empty(), quick) {
            (false, _) => given,
            (true, false) => full.to_vec(),
            (true, true) => short.to_vec(),
        };
        let processes = match (cli.processes.is_empty(), quick) {
            (false, _) => cli.processes,
            (true, false) => vec![1, 8, 32],
            (true, true) => vec![8],
        };
        let dirs = if cli.dirs.is_empty() {
            default_dirs()
        } else {
            cli.dirs
        };
        if let Some(out) = &cli.out {
            std::fs::create_dir_all(out)
                .map_err(|error| format!("--out {}: {error}", out.display()))?;
        }
        Ok(Self {
            parts: cli.only,
            rounds: cli.rounds,
            quick,
            places: Place::all(&dirs)?,
            limit: Duration::from_secs(cli.seconds.unwrap_or(if quick { 1 } else { 3 })),
            tasks: or(cli.tasks, &[100, 1_000, 10_000], &[100, 1_000, 10_000]),
            processes,
            sizes: or(cli.sizes, &[1_000, 10_000, 100_000], &[1_000, 10_000]),
            files: or(cli.files, &[1_000, 20_000, 100_000], &[1_000, 20_000]),
            designs: if cli.designs.is_empty() {
                Design::ALL.to_vec()
            } else {
                cli.designs
            },
            durable: cli.durable.map_or(vec![true, false], |only| vec![only]),
            out: cli.out,
            ccb: cli.ccb,
        })
    }

    pub(crate) fn wants(&self, part: Part) -> bool {
        self.parts.is_empty() || self.parts.contains(&part)
    }

    /// Writes a file of results, if they are wanted.
    pub(crate) fn save(
        &self,
        name: &str,
        content: impl FnOnce() -> Result<String, Failure>,
    ) -> Result<(), Failure> {
        match &self.out {
            Some(out) => Ok(std::fs::write(out.join(name), content()?)?),
            None => Ok(()),
        }
    }

    /// Number of inboxes that are written to per cell of the mail part.
    pub(crate) fn mail_rounds(&self) -> u32 {
        self.rounds.unwrap_or(if self.quick { 1 } else { 3 })
    }

    /// Number of boards of this size that are claimed per cell: small ones are empty in a moment.
    pub(crate) fn rounds(&self, tasks: u64) -> u32 {
        let by_size = match (tasks, self.quick) {
            (..=200, false) => 10,
            (..=2_000, false) => 4,
            (_, false) => 2,
            (..=200, true) => 3,
            (_, true) => 1,
        };
        self.rounds.unwrap_or(by_size)
    }
}

/// tmpfs, if there is one, and the directory for temporary files.
fn default_dirs() -> Vec<PathBuf> {
    let shm = PathBuf::from("/dev/shm");
    let temp = std::env::temp_dir();
    if shm.is_dir() && shm != temp {
        vec![shm, temp]
    } else {
        vec![temp]
    }
}
