//! Runs: the cost of supervising an agent, beside starting the same command plainly.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde::Serialize;
use serde_json::Value;

use crate::args::Options;
use crate::environment::Place;
use crate::stats::Spread;
use crate::table::{Table, ms};
use crate::{Failure, check_interrupted, startup};

/// Number of commands at once.
const PARALLEL: usize = 8;
/// Number of idle agents.
const IDLE: usize = 50;
/// Time limit of any step.
const LIMIT: Duration = Duration::from_secs(120);

/// One line of the table.
#[derive(Debug, Serialize)]
pub(crate) struct Sample {
    place: String,
    what: &'static str,
    value: String,
    beside: String,
}

/// Measures everything in every place.
pub(crate) fn run(options: &Options) -> Result<Vec<Sample>, Failure> {
    let binary = startup::binary(options)?;
    let mut samples = Vec::new();
    for place in &options.places {
        eprintln!("agents: {}", place.label);
        let home = place.scratch()?;
        let bench = Bench {
            binary: binary.clone(),
            home: home.path().to_owned(),
        };
        let mut add = |what, value: String, beside: String| {
            samples.push(Sample {
                place: place.label.clone(),
                what,
                value,
                beside,
            });
        };
        let rounds = if options.quick { 20 } else { 100 };
        let (ours, plain) = bench.start(place, rounds)?;
        add(
            "start to the command's first instruction, p50 ms",
            ms(ours.p50),
            ms(plain.p50),
        );
        add(
            "start to the command's first instruction, p99 ms",
            ms(ours.p99),
            ms(plain.p99),
        );
        let whole = bench.whole(rounds)?;
        add(
            "foreground run from start to result, p50 ms",
            ms(whole.p50),
            String::new(),
        );
        for which in ["pid", "host", "guard", "both"] {
            let noticed = bench.notice(which, 10)?;
            let what = match which {
                "pid" => "agent killed until its parent is notified, p50 ms",
                "host" => "host killed until everything is settled, p50 ms",
                "guard" => "guard killed until everything is settled, p50 ms",
                _ => "both killed until one who waits has the outcome, p50 ms",
            };
            add(what, ms(noticed.p50), String::new());
        }
        let count = if options.quick { 50 } else { 200 };
        let (ours, plain) = bench.many(place, count)?;
        add(
            "many commands, 8 at once, with tasks: ms each",
            ms(ours),
            ms(plain),
        );
        if let Some((syncs, renames)) = bench.writes()? {
            add(
                "syncs per run with a task",
                syncs.to_string(),
                String::new(),
            );
            add(
                "renames per run with a task",
                renames.to_string(),
                String::new(),
            );
        }
        let (rss, pss, cpu) = bench.idle(options.quick)?;
        add(
            "guard and host resident, MB per run",
            format!("{rss:.1}"),
            String::new(),
        );
        add(
            "guard and host, their share of memory, MB per run",
            format!("{pss:.1}"),
            String::new(),
        );
        add(
            "CPU of 50 idle runs, % of a core",
            format!("{cpu:.2}"),
            String::new(),
        );
    }
    Ok(samples)
}

/// Prints the table.
pub(crate) fn print(options: &Options, samples: &[Sample]) {
    println!("## Agents\n");
    for place in &options.places {
        println!("### {}\n", place.label);
        let mut table = Table::new(1, ["what", "ccb", "plain"]);
        for sample in samples.iter().filter(|sample| sample.place == place.label) {
            table.row(vec![
                sample.what.to_owned(),
                sample.value.clone(),
                sample.beside.clone(),
            ]);
        }
        println!("{table}");
    }
}

struct Bench {
    binary: PathBuf,
    home: PathBuf,
}

impl Bench {
    fn ccb(&self, args: &[&str]) -> Command {
        let mut command = startup::ccb(&self.binary, &self.home);
        command.args(args).current_dir(&self.home);
        command
    }

    fn answer(&self, args: &[&str]) -> Result<Value, Failure> {
        let output = self.ccb(args).stderr(Stdio::inherit()).output()?;
        serde_json::from_slice(&output.stdout).map_err(|error| format!("{args:?}: {error}").into())
    }

    /// From before the start until the command runs: with ccb, and with a shell alone.
    fn start(&self, place: &Place, rounds: usize) -> Result<(Spread, Spread), Failure> {
        let stamp = place.scratch()?;
        let file = stamp.path().join("at");
        let command = format!("date +%s%N > {}", file.display());
        let (mut ours, mut plain) = (Vec::new(), Vec::new());
        for _ in 0..rounds {
            check_interrupted()?;
            let before = now_ns();
            Command::new("/bin/sh").args(["-c", &command]).status()?;
            plain.push(since(before, &file)?);
            let before = now_ns();
            self.ccb(&[
                "agent",
                "spawn",
                "--runtime",
                "shell",
                "--background",
                &command,
            ])
            .stdout(Stdio::null())
            .status()?;
            wait(|| file.exists())?;
            self.settled()?;
            ours.push(since(before, &file)?);
        }
        Ok((Spread::of(ours), Spread::of(plain)))
    }

    fn whole(&self, rounds: usize) -> Result<Spread, Failure> {
        let mut times = Vec::new();
        for _ in 0..rounds {
            check_interrupted()?;
            let before = Instant::now();
            self.ccb(&["agent", "spawn", "--runtime", "shell", "true"])
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .status()?;
            times.push(before.elapsed());
        }
        Ok(Spread::of(times))
    }

    /// Time until a death is noticed.
    fn notice(&self, which: &str, rounds: usize) -> Result<Spread, Failure> {
        let mut times = Vec::new();
        for _ in 0..rounds {
            check_interrupted()?;
            let id = self.background("sleep 600")?;
            let meta = self.meta(&id)?;
            let pid = |of: &str| match of {
                "pid" => meta["pid"].as_i64(),
                other => meta[other]["pid"].as_i64(),
            };
            let waiting = match which {
                "both" => {
                    let mut command = self.ccb(&["agent", "output", &id, "--timeout", "60000"]);
                    let child = command.stdout(Stdio::null()).spawn()?;
                    wait(|| self.run(&id).join("waiters.lock").exists())?;
                    Some(child)
                }
                _ => None,
            };
            let before = Instant::now();
            let victims: &[&str] = if which == "both" {
                &["host", "guard"]
            } else {
                &[which]
            };
            for victim in victims {
                let pid = pid(victim).ok_or("no process")?.to_string();
                Command::new("kill").args(["-9", &pid]).status()?;
            }
            match waiting {
                Some(mut child) => drop(child.wait()?),
                None => wait(|| !self.runs().join(".active").join(&id).exists())?,
            }
            times.push(before.elapsed());
        }
        Ok(Spread::of(times))
    }

    /// Many short commands, with a task each, beside the same commands from `xargs`.
    fn many(&self, place: &Place, count: usize) -> Result<(Duration, Duration), Failure> {
        for n in 0..count {
            let subject = format!("job {n}");
            let args = ["task", "create", &subject, "--run", "echo done"];
            self.ccb(&args).stdout(Stdio::null()).status()?;
        }
        place.flush()?;
        let parallel = PARALLEL.to_string();
        let run = |program: &Path, arguments: &[&str]| -> Result<Duration, Failure> {
            let numbers: Vec<String> = (1..=count).map(|n| n.to_string()).collect();
            let list = self.home.join("numbers");
            std::fs::write(&list, numbers.join("\n"))?;
            let mut command = Command::new("xargs");
            command
                .args(["-P", &parallel, "-I", "{}"])
                .arg(program)
                .args(arguments);
            command
                .env_clear()
                .envs(std::env::var_os("PATH").map(|path| ("PATH", path)));
            command.env("HOME", &self.home).current_dir(&self.home);
            command.stdin(std::fs::File::open(&list)?);
            let before = Instant::now();
            let status = command
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .status()?;
            if !status.success() {
                return Err(format!("{program:?} {arguments:?}: {status}").into());
            }
            Ok(before.elapsed() / u32::try_from(count).unwrap_or(1))
        };
        let plain = run(Path::new("/bin/sh"), &["-c", "echo done"])?;
        let home = self.home.to_string_lossy().into_owned();
        let spawn = [
            "--team", "bench", "--home", &home, "agent", "spawn", "--task", "{}",
        ];
        let ours = run(&self.binary, &spawn)?;
        self.settled()?;
        let done = self.answer(&["task", "list", "--status", "completed"])?;
        let done = done["tasks"].as_array().map_or(0, Vec::len);
        if done < count {
            return Err(format!("only {done} of {count} tasks are completed").into());
        }
        Ok((ours, plain))
    }

    /// The writes of one run with a task, if the system reports them.
    fn writes(&self) -> Result<Option<(usize, usize)>, Failure> {
        let task = self.answer(&["task", "create", "one more", "--run", "true"])?;
        let id = task["task"]["id"].as_str().unwrap_or_default().to_owned();
        let log = self.home.join("calls");
        let inner = self.ccb(&["agent", "spawn", "--task", &id]);
        let mut command = Command::new("strace");
        command.args([
            "-f",
            "-qq",
            "-e",
            "trace=fsync,fdatasync,rename,renameat,renameat2",
            "-o",
        ]);
        command
            .arg(&log)
            .arg(inner.get_program())
            .args(inner.get_args());
        command
            .current_dir(&self.home)
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        command.env("HOME", &self.home);
        if !command.status().is_ok_and(|status| status.success()) {
            eprintln!("agents: no strace, so writes are not counted");
            return Ok(None);
        }
        self.settled()?;
        let text = std::fs::read_to_string(&log)?;
        let calls = |name: &str| text.lines().filter(|line| line.contains(name)).count();
        Ok(Some((calls("sync("), calls("rename"))))
    }

    /// Memory and processor time of runs that wait.
    fn idle(&self, quick: bool) -> Result<(f64, f64, f64), Failure> {
        let ids: Vec<String> = (0..IDLE)
            .map(|_| self.background("sleep 600"))
            .collect::<Result<_, _>>()?;
        let mut pids = Vec::new();
        for id in &ids {
            let meta = self.meta(id)?;
            pids.extend([meta["host"]["pid"].as_i64(), meta["guard"]["pid"].as_i64()]);
        }
        let pids: Vec<i64> = pids.into_iter().flatten().collect();
        let sum = |key: &str| -> f64 {
            let of = |pid: &i64| {
                let text = std::fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).ok()?;
                let line = text.lines().find(|line| line.starts_with(key))?.to_owned();
                line.split_ascii_whitespace().nth(1)?.parse::<f64>().ok()
            };
            pids.iter().filter_map(of).sum::<f64>() / 1024.0 / IDLE as f64
        };
        let (rss, pss) = (sum("Rss:"), sum("Pss:"));
        let seconds = if quick { 5 } else { 30 };
        let (before, started) = (ticks(&pids), Instant::now());
        while started.elapsed() < Duration::from_secs(seconds) {
            check_interrupted()?;
            std::thread::sleep(Duration::from_millis(100));
        }
        let used = (ticks(&pids) - before) / 100.0;
        let cpu = used / started.elapsed().as_secs_f64() * 100.0;
        for id in &ids {
            self.ccb(&["agent", "stop", id, "--grace", "100"])
                .stdout(Stdio::null())
                .status()?;
        }
        self.settled()?;
        Ok((rss, pss, cpu))
    }

    fn background(&self, command: &str) -> Result<String, Failure> {
        let args = [
            "agent",
            "spawn",
            "--runtime",
            "shell",
            "--background",
            command,
        ];
        let answer = self.answer(&args)?;
        let id = answer["agent"]["agentId"]
            .as_str()
            .ok_or("no agent")?
            .to_owned();
        wait(|| self.meta(&id).is_ok_and(|meta| meta["state"] == "running"))?;
        Ok(id)
    }

    fn runs(&self) -> PathBuf {
        self.home.join("teams/bench/runs")
    }

    fn run(&self, id: &str) -> PathBuf {
        self.runs().join(id)
    }

    fn meta(&self, id: &str) -> Result<Value, Failure> {
        Ok(serde_json::from_slice(&std::fs::read(
            self.run(id).join("meta.json"),
        )?)?)
    }

    /// Waits until every run is settled.
    fn settled(&self) -> Result<(), Failure> {
        let active = self.runs().join(".active");
        wait(|| std::fs::read_dir(&active).map_or(0, Iterator::count) == 0)
    }
}

fn wait(mut condition: impl FnMut() -> bool) -> Result<(), Failure> {
    let started = Instant::now();
    while !condition() {
        check_interrupted()?;
        if started.elapsed() > LIMIT {
            return Err("waited too long".into());
        }
        std::thread::sleep(Duration::from_micros(200));
    }
    Ok(())
}

/// Processor time of processes, in hundredths of a second.
fn ticks(pids: &[i64]) -> f64 {
    let of = |pid: &i64| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let fields: Vec<f64> = stat
            .rsplit_once(')')?
            .1
            .split_ascii_whitespace()
            .map(|field| field.parse().unwrap_or(0.0))
            .collect();
        Some(fields.get(11)? + fields.get(12)?)
    };
    pids.iter().filter_map(of).sum()
}

fn now_ns() -> u128 {
    std::time::UNIX_EPOCH
        .elapsed()
        .unwrap_or_default()
        .as_nanos()
}

/// The time from `before` to the time in the file; removes the file.
fn since(before: u128, file: &Path) -> Result<Duration, Failure> {
    let mut text = String::new();
    wait(|| {
        text = std::fs::read_to_string(file).unwrap_or_default();
        text.ends_with('\n')
    })?;
    std::fs::remove_file(file)?;
    let at: u128 = text.trim().parse()?;
    Ok(Duration::from_nanos(u64::try_from(
        at.saturating_sub(before),
    )?))
}
