//! Team sessions: the time for a board with many teammates, beside the ideal.
//!
//! Chains of tasks, one chain per teammate, each task a `sleep`: the time over the ideal (the
//! length of a chain) is the cost of the engine and the programs it starts. *xargs* is the same
//! number of the same commands, as many at once, without dependencies, tasks, supervision or
//! results.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde::Serialize;
use serde_json::{Value, json};
use store::clock::parse_rfc3339;

use crate::args::Options;
use crate::environment::Place;
use crate::stats::Spread;
use crate::table::Table;
use crate::{Failure, check_interrupted, startup};

/// Number of tasks in a chain.
const CHAIN: usize = 10;
/// Duration of each task.
const TASK: Duration = Duration::from_secs(1);

/// One session.
#[derive(Debug, Serialize)]
pub(crate) struct Sample {
    place: String,
    mates: usize,
    tasks: usize,
    trees: bool,
    wall_s: f64,
    ideal_s: f64,
    xargs_s: f64,
    /// Of a core, the director alone.
    engine_cpu_percent: f64,
    /// The director's largest size.
    engine_mb: f64,
    latency_p50_ms: f64,
    latency_p99_ms: f64,
}

/// Measures sessions of several sizes.
pub(crate) fn run(options: &Options) -> Result<Vec<Sample>, Failure> {
    let binary = startup::binary(options)?;
    let sizes: &[(usize, bool)] = if options.quick {
        &[(10, false), (10, true)]
    } else {
        &[
            (10, false),
            (50, false),
            (200, false),
            (10, true),
            (50, true),
        ]
    };
    let mut samples = Vec::new();
    for place in &options.places {
        for (mates, trees) in sizes {
            check_interrupted()?;
            eprintln!("sessions: {}, {mates} mates", place.label);
            samples.push(session(&binary, place, *mates, *trees)?);
        }
    }
    Ok(samples)
}

/// Prints the table.
pub(crate) fn print(options: &Options, samples: &[Sample]) {
    println!("## Team sessions\n");
    for place in &options.places {
        println!("### {}\n", place.label);
        let mut table = Table::new(
            0,
            [
                "mates",
                "tasks",
                "worktrees",
                "wall s",
                "ideal s",
                "of the ideal",
                "xargs s",
                "engine CPU %",
                "engine MB",
                "done to dependent p50 ms",
                "p99 ms",
            ],
        );
        for sample in samples.iter().filter(|sample| sample.place == place.label) {
            table.row(vec![
                sample.mates.to_string(),
                sample.tasks.to_string(),
                if sample.trees { "yes" } else { "no" }.into(),
                format!("{:.2}", sample.wall_s),
                format!("{:.2}", sample.ideal_s),
                format!("{:.0} %", 100.0 * sample.ideal_s / sample.wall_s),
                format!("{:.2}", sample.xargs_s),
                format!("{:.1}", sample.engine_cpu_percent),
                format!("{:.0}", sample.engine_mb),
                format!("{:.0}", sample.latency_p50_ms),
                format!("{:.0}", sample.latency_p99_ms),
            ]);
        }
        println!("{table}");
    }
}

fn session(binary: &Path, place: &Place, mates: usize, trees: bool) -> Result<Sample, Failure> {
    let scratch = place.scratch()?;
    let (home, repo) = (scratch.path().join("home"), scratch.path().join("repo"));
    std::fs::create_dir(&repo)?;
    let setting = Setting {
        binary: binary.to_owned(),
        home,
        repo,
    };
    setting.prepare(mates)?;
    let xargs_s = setting.xargs(mates)?;
    let count = mates.to_string();
    let mut args = vec!["--runtime", "shell", "--mates", &count];
    if !trees {
        args.push("--no-worktrees");
    }
    let before = Instant::now();
    let mut child = setting
        .ccb(&args)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    let (mut ticks, mut kilobytes) = (0, 0);
    let status = loop {
        if let Some((used, size)) = of_process(child.id()) {
            (ticks, kilobytes) = (used.max(ticks), size.max(kilobytes));
        }
        match child.try_wait()? {
            Some(status) => break status,
            None => std::thread::sleep(Duration::from_millis(20)),
        }
    };
    let wall = before.elapsed();
    if !status.success() {
        return Err(format!("the session ended with {status}").into());
    }
    let latency = setting.latencies(mates)?;
    Ok(Sample {
        place: place.label.clone(),
        mates,
        tasks: mates * CHAIN,
        trees,
        wall_s: wall.as_secs_f64(),
        ideal_s: TASK.as_secs_f64() * CHAIN as f64,
        xargs_s,
        // The kernel counts in hundredths of a second.
        engine_cpu_percent: ticks as f64 / wall.as_secs_f64(),
        engine_mb: kilobytes as f64 / 1024.0,
        latency_p50_ms: latency.p50.as_secs_f64() * 1000.0,
        latency_p99_ms: latency.p99.as_secs_f64() * 1000.0,
    })
}

struct Setting {
    binary: PathBuf,
    home: PathBuf,
    repo: PathBuf,
}

impl Setting {
    fn ccb(&self, args: &[&str]) -> Command {
        let mut command = startup::ccb(&self.binary, &self.home);
        command.args(args).current_dir(&self.repo);
        command
    }

    fn prepare(&self, mates: usize) -> Result<(), Failure> {
        std::fs::create_dir(&self.home)?;
        std::fs::write(
            self.home.join("ccb.json"),
            r#"{"agents":{"maxAgents":null}}"#,
        )?;
        std::fs::write(self.repo.join("file"), "content\n")?;
        let who = ["-c", "user.name=bench", "-c", "user.email=bench@localhost"];
        let steps: [&[&str]; 3] = [
            &["init", "-q", "-b", "main"],
            &["add", "."],
            &["commit", "-q", "-m", "first"],
        ];
        for step in steps {
            let done = Command::new("git")
                .args(who)
                .args(step)
                .current_dir(&self.repo)
                .status()?;
            if !done.success() {
                return Err("git cannot make a repository".into());
            }
        }
        let mut rows = String::new();
        for chain in 0..mates {
            for link in 0..CHAIN {
                let mut row = json!({
                    "key": format!("c{chain}l{link}"),
                    "subject": format!("c{chain}l{link}"),
                    "run": format!("sleep {}", TASK.as_secs_f64()),
                });
                if link > 0 {
                    row["blockedBy"] = json!([format!("c{chain}l{}", link - 1)]);
                }
                rows.push_str(&format!("{row}\n"));
            }
        }
        let file = self.home.join("tasks.jsonl");
        std::fs::write(&file, rows)?;
        let from = file.to_string_lossy().into_owned();
        for args in [
            &["team", "create", "bench"][..],
            &["task", "create", "--from", &from],
        ] {
            let done = self.ccb(args).stdout(Stdio::null()).status()?;
            if !done.success() {
                return Err(format!("{args:?} failed").into());
            }
        }
        Ok(())
    }

    /// The same commands, as many at once, with nothing around them.
    fn xargs(&self, mates: usize) -> Result<f64, Failure> {
        let script = format!(
            "seq {} | xargs -P {mates} -I{{}} sh -c 'sleep {}'",
            mates * CHAIN,
            TASK.as_secs_f64()
        );
        let before = Instant::now();
        Command::new("sh").args(["-c", &script]).status()?;
        Ok(before.elapsed().as_secs_f64())
    }

    /// From the end of each task to the start of the one that waited for it.
    fn latencies(&self, mates: usize) -> Result<Spread, Failure> {
        let runs = self.home.join("teams/bench/runs");
        let mut began = std::collections::HashMap::new();
        let mut ended = std::collections::HashMap::new();
        for entry in std::fs::read_dir(&runs)? {
            let dir = entry?.path();
            let read = |name: &str| -> Option<Value> {
                let text = std::fs::read(dir.join(name)).ok()?;
                serde_json::from_slice(&text).ok()
            };
            let (Some(meta), Some(exit)) = (read("meta.json"), read("exit.json")) else {
                continue;
            };
            let at = |value: &Value| value.as_str().and_then(parse_rfc3339);
            let what = meta["description"].as_str().unwrap_or_default().to_owned();
            began.insert(what.clone(), at(&meta["createdAt"]));
            ended.insert(what, at(&exit["endedAt"]));
        }
        let mut waits = Vec::new();
        for chain in 0..mates {
            for link in 1..CHAIN {
                let before = ended
                    .get(&format!("c{chain}l{}", link - 1))
                    .copied()
                    .flatten();
                let after = began.get(&format!("c{chain}l{link}")).copied().flatten();
                if let (Some(before), Some(after)) = (before, after) {
                    let wait = u64::try_from(after - before).unwrap_or(0);
                    waits.push(Duration::from_millis(wait));
                }
            }
        }
        Ok(Spread::of(waits))
    }
}

/// The processor time of a process, in ticks, and its largest size, in KB.
fn of_process(pid: u32) -> Option<(u64, u64)> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let fields: Vec<&str> = stat.rsplit(')').next()?.split_whitespace().collect();
    let ticks = |n: usize| fields.get(n)?.parse::<u64>().ok();
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let peak = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))?;
    let peak = peak.split_whitespace().next()?.parse().ok()?;
    Some((ticks(11)? + ticks(12)?, peak))
}
