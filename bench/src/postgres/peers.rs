//! Two job queues on the same server, worked by their own workers.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use serde::Deserialize;

use super::Sample;
use super::site::Site;
use crate::Failure;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Peer {
    Graphile,
    Procrastinate,
}

/// The output of a peer's script at its end.
#[derive(Deserialize)]
struct Said {
    jobs: u64,
    seconds: f64,
    version: String,
}

impl Peer {
    pub(super) const ALL: [Self; 2] = [Self::Graphile, Self::Procrastinate];

    pub(super) fn label(self) -> &'static str {
        match self {
            Self::Graphile => "graphile-worker",
            Self::Procrastinate => "procrastinate",
        }
    }

    /// The directory into which `bench/peers/install.sh` puts them.
    fn place() -> PathBuf {
        let named = std::env::var_os("CCB_BENCH_PEERS").map(PathBuf::from);
        named.unwrap_or_else(|| std::env::temp_dir().join("ccb-bench-peers"))
    }

    fn program(self) -> PathBuf {
        match self {
            Self::Graphile => Self::place().join("graphile.mjs"),
            Self::Procrastinate => Self::place().join("venv/bin/python"),
        }
    }

    pub(super) fn is_there(self) -> bool {
        self.program().exists()
    }

    /// Puts `tasks` jobs in, and lets one process with this many workers at once work on them.
    pub(super) fn measure(
        self,
        site: &Site,
        tasks: u64,
        workers: u32,
        time: Duration,
    ) -> Result<Sample, Failure> {
        let mut command = match self {
            Self::Graphile => {
                let mut command = Command::new("node");
                command.arg(self.program());
                command
            }
            Self::Procrastinate => {
                let mut command = Command::new(self.program());
                let script =
                    Path::new(env!("CARGO_MANIFEST_DIR")).join("peers/procrastinate_bench.py");
                command.arg(script);
                command
            }
        };
        let port = site.server.port();
        let url = format!("postgres://ccb@127.0.0.1:{port}/postgres");
        command.args([url, tasks.to_string(), workers.to_string()]);
        command.arg(time.as_secs_f64().to_string());
        let output = command.stdin(Stdio::null()).output()?;
        let last = String::from_utf8_lossy(&output.stdout);
        let last = last.lines().last().unwrap_or_default().to_owned();
        let said = serde_json::from_str::<Said>(&last);
        let (per_second, failure) = match said {
            Ok(said) => {
                eprintln!("postgres: {} {}", self.label(), said.version);
                (said.jobs as f64 / said.seconds.max(1e-9), None)
            }
            Err(_) => {
                let words = String::from_utf8_lossy(&output.stderr);
                let words = words.lines().last().unwrap_or("it said nothing");
                (0.0, Some(words.to_owned()))
            }
        };
        Ok(Sample {
            design: self.label(),
            workers,
            tasks,
            per_second,
            p50_ms: None,
            p99_ms: None,
            jain: None,
            failures: u64::from(failure.is_some()),
            first_failure: failure,
        })
    }
}
