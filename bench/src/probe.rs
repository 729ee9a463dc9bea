//! A process that opens a board, does one operation, and prints the time and the memory it took:
//! both sides.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

use crate::args::ProbeArgs;
use crate::designs::{Claimer, Design, ccb, sqlite};
use crate::{Failure, check_interrupted};

/// The operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Operation {
    /// Read all tasks.
    List,
    /// Find those that can be claimed.
    Ready,
    /// Claim the best of those.
    Claim,
    /// Create one task.
    Create,
    /// Create a thousand tasks in one step.
    Batch,
}

/// Number of tasks that [`Operation::Batch`] creates.
pub(crate) const BATCH: usize = 1_000;

/// The results of a probe.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Found {
    /// From before the board was opened to the first answer; for operations that create tasks, the
    /// first time on an open board.
    pub(crate) first: Duration,
    /// Each further time on the same open board.
    pub(crate) later: Vec<Duration>,
    /// The largest resident memory of the process (VmHWM), in KiB.
    pub(crate) memory_kib: u64,
}

/// Starts a probe and waits for it. It stops after `repeat` times, or five seconds.
pub(crate) fn start(
    design: Design,
    board: &Path,
    durable: bool,
    operation: Operation,
    repeat: usize,
) -> Result<Found, Failure> {
    check_interrupted()?;
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["probe", "--design", design.word(), "--seconds", "5"]);
    command.arg("--operation").arg(operation.word());
    command.arg("--repeat").arg(repeat.to_string());
    command.arg("--board").arg(board);
    if durable {
        command.arg("--durable");
    }
    let output = command.stderr(Stdio::inherit()).output()?;
    if !output.status.success() {
        return Err(format!("a probe ended with {}", output.status).into());
    }
    Ok(serde_json::from_slice(&output.stdout)?)
}

/// The probe's side.
pub(crate) fn run(args: &ProbeArgs) -> Result<(), Failure> {
    let started = Instant::now();
    let mut board = Opened::new(args)?;
    if matches!(args.operation, Operation::Create | Operation::Batch) {
        board.warm_up()?;
    }
    let first = board.measure(args.operation, started)?;
    let mut later = Vec::new();
    while later.len() + 1 < args.repeat && started.elapsed() < Duration::from_secs(args.seconds) {
        later.push(board.measure(args.operation, Instant::now())?);
    }
    let found = Found {
        first,
        later,
        memory_kib: peak_memory_kib()?,
    };
    println!("{}", serde_json::to_string(&found)?);
    Ok(())
}

enum Opened {
    Ccb(Box<ccb::Worker>),
    Sqlite(sqlite::Database),
}

impl Opened {
    fn new(args: &ProbeArgs) -> Result<Self, Failure> {
        let (dir, durable) = (&args.board, args.durable);
        Ok(match args.design {
            Design::Ccb => Self::Ccb(ccb::Worker::open(dir, false, durable)?.into()),
            Design::CcbFlock => Self::Ccb(ccb::Worker::open(dir, true, durable)?.into()),
            Design::Sqlite => Self::Sqlite(sqlite::Database::open(dir, durable)?),
            Design::Seed => return Err("the plain design is measured by its claims only".into()),
        })
    }

    fn warm_up(&mut self) -> Result<(), Failure> {
        match self {
            Self::Ccb(board) => board.warm_up(),
            Self::Sqlite(database) => database.warm_up(),
        }
    }

    /// Does it once; the time since `started`.
    fn measure(&mut self, operation: Operation, started: Instant) -> Result<Duration, Failure> {
        let count = match (operation, self) {
            (Operation::List, Self::Ccb(board)) => board.list()?,
            (Operation::List, Self::Sqlite(database)) => database.list()?,
            (Operation::Ready, Self::Ccb(board)) => board.ready()?,
            (Operation::Ready, Self::Sqlite(database)) => database.ready()?,
            (Operation::Claim, Self::Ccb(board)) => usize::from(board.claim("probe")?.is_some()),
            (Operation::Claim, Self::Sqlite(database)) => {
                usize::from(database.claim("probe")?.is_some())
            }
            (Operation::Create, Self::Ccb(board)) => return board.create(1),
            (Operation::Create, Self::Sqlite(database)) => return database.create(1),
            (Operation::Batch, Self::Ccb(board)) => return board.create(BATCH),
            (Operation::Batch, Self::Sqlite(database)) => return database.create(BATCH),
        };
        let elapsed = started.elapsed();
        if count == 0 {
            return Err(format!("{} found nothing", operation.word()).into());
        }
        Ok(elapsed)
    }
}

impl Operation {
    /// Its name on the command line.
    fn word(self) -> &'static str {
        match self {
            Self::List => "list",
            Self::Ready => "ready",
            Self::Claim => "claim",
            Self::Create => "create",
            Self::Batch => "batch",
        }
    }
}

fn peak_memory_kib() -> Result<u64, Failure> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let number = line.and_then(|line| line.split_whitespace().next());
    Ok(number.ok_or("no VmHWM in /proc/self/status")?.parse()?)
}
