//! The live view: what it costs to watch many agents that work.
//!
//! A process stands in for the agents: it has every run's lock, appends to every transcript
//! twenty times a second what real agents write (words, tool calls, results), and brings `meta.json`
//! up to date once a second. Beside it run, one after the other, a process that only looks
//! ([`observe::live`]) at the pace of a view, and `ccb top` on a pseudo-terminal of 160×50.
//! *CPU %* is of one core; *MB* the largest resident size; *key* the time from `?` to the drawing
//! that has the frame of the help in it, which no other drawing has.

use std::io::Read;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use observe::live::{Live, Woken};
use project::workplace::{Asked, Workplace};
use serde::{Deserialize, Serialize};
use serde_json::json;
use store::clock::{Clock, SystemClock, rfc3339};
use store::home::Home;
use store::lock::FileLock;
use store::name::Name;
use swarm::run::{Entry, Held, Meta, RunDir, RunState, Transcript};
use taskboard::{Board, BoardOptions, ClaimRequest, NewTask};

use crate::args::{Options, ViewArgs};
use crate::environment::Place;
use crate::stats::Spread;
use crate::table::Table;
use crate::{Failure, check_interrupted, startup};

const TEAM: &str = "busy";
/// Number of agents.
const AGENTS: usize = 200;
/// Writes of each of them, a second.
const UPDATES: u32 = 20;
/// Number of keys that are pressed; every other one is timed.
const KEYS: usize = 80;
/// The allowed cost of the view.
const AIM_CPU: u32 = 5;
const AIM_MB: u32 = 60;
const AIM_KEY: u32 = 50;

/// The cost of one watcher.
#[derive(Debug, Serialize)]
pub(crate) struct Sample {
    place: String,
    what: &'static str,
    agents: usize,
    updates_per_s: f64,
    cpu_percent: f64,
    mb: f64,
    /// Of looks, or of keys, in ms.
    p50_ms: f64,
    max_ms: f64,
}

/// The output of the process that only looks.
#[derive(Debug, Serialize, Deserialize)]
struct Looked {
    cpu_s: f64,
    wall_s: f64,
    mb: f64,
    looks_ms: Vec<f64>,
}

/// Measures both watchers in each place.
pub(crate) fn run(options: &Options) -> Result<Vec<Sample>, Failure> {
    let seconds = if options.quick { 5 } else { 20 };
    let mut samples = Vec::new();
    for place in &options.places {
        check_interrupted()?;
        eprintln!("view: {}, {AGENTS} agents", place.label);
        let scratch = place.scratch()?;
        samples.push(measure(place, scratch.path(), "look", seconds, |home| {
            looking(home, seconds)
        })?);
        let binary = startup::binary(options)?;
        let scratch = place.scratch()?;
        samples.push(measure(
            place,
            scratch.path(),
            "ccb top",
            seconds,
            |home| on_terminal(&binary, home, seconds),
        )?);
    }
    Ok(samples)
}

/// Prints the table.
pub(crate) fn print(options: &Options, samples: &[Sample]) {
    println!("## Watching\n");
    for place in &options.places {
        println!("### {}\n", place.label);
        println!(
            "Aims: under {AIM_CPU} % of a core, under {AIM_MB} MB, keys within {AIM_KEY} ms.\n"
        );
        let heads = [
            "what",
            "agents",
            "updates/s",
            "CPU %",
            "MB",
            "look or key p50 ms",
            "max ms",
        ];
        let mut table = Table::new(1, heads);
        for one in samples.iter().filter(|one| one.place == place.label) {
            table.row(vec![
                one.what.into(),
                one.agents.to_string(),
                format!("{:.0}", one.updates_per_s),
                format!("{:.1}", one.cpu_percent),
                format!("{:.1}", one.mb),
                format!("{:.1}", one.p50_ms),
                format!("{:.1}", one.max_ms),
            ]);
        }
        println!("{table}");
    }
}

fn measure(
    place: &Place,
    home: &Path,
    what: &'static str,
    seconds: u64,
    watch: impl FnOnce(&Path) -> Result<Looked, Failure>,
) -> Result<Sample, Failure> {
    let mut agents = Agents::start(home, seconds + 30)?;
    let before = agents.written()?;
    let begun = Instant::now();
    let looked = watch(home);
    let updates = (agents.written()? - before) as f64 / begun.elapsed().as_secs_f64();
    agents.end();
    let looked = looked?;
    let times = looked.looks_ms.iter();
    let times = times.map(|ms| Duration::from_secs_f64(ms / 1_000.0));
    let spread = Spread::of(times.collect());
    Ok(Sample {
        place: place.label.clone(),
        what,
        agents: AGENTS,
        updates_per_s: updates,
        cpu_percent: looked.cpu_s / looked.wall_s * 100.0,
        mb: looked.mb,
        p50_ms: spread.p50.as_secs_f64() * 1_000.0,
        max_ms: looked.looks_ms.iter().copied().fold(0.0, f64::max),
    })
}

/// The process that stands in for the agents.
struct Agents {
    child: Child,
    home: PathBuf,
}

impl Agents {
    fn start(home: &Path, seconds: u64) -> Result<Self, Failure> {
        let child = Command::new(std::env::current_exe()?)
            .arg("view-agents")
            .arg("--home")
            .arg(home)
            .arg("--seconds")
            .arg(seconds.to_string())
            .stdin(Stdio::null())
            .spawn()?;
        let agents = Self {
            child,
            home: home.to_owned(),
        };
        let deadline = Instant::now() + Duration::from_secs(60);
        while !home.join("ready").exists() {
            if Instant::now() > deadline {
                return Err("the agents did not begin".into());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(agents)
    }

    /// The number of lines they have written, by the length of their transcripts.
    fn written(&mut self) -> Result<u64, Failure> {
        let mut lines = 0;
        for run in std::fs::read_dir(self.home.join("teams").join(TEAM).join("runs"))? {
            let log = run?.path().join("transcript.jsonl");
            lines += std::fs::metadata(log).map_or(0, |meta| meta.len()) / LINE;
        }
        Ok(lines)
    }

    fn end(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

impl Drop for Agents {
    fn drop(&mut self) {
        self.end();
    }
}

/// Approximate length of a line of theirs, in bytes.
const LINE: u64 = 152;

/// Stands in for the agents until its time is up or it is killed.
pub(crate) fn agents(args: &ViewArgs) -> Result<(), Failure> {
    let home = Home::new(args.home.clone())?;
    let team = Name::new("team", TEAM)?;
    let board = Board::new(&home, team.clone(), BoardOptions::default());
    let runs = home.team(&team).join("runs");
    let tasks: Vec<NewTask> = (0..AGENTS)
        .map(|n| NewTask {
            subject: format!("Make part {n} of the test suite pass"),
            active_form: Some(format!("Making part {n} of the test suite pass")),
            ..NewTask::default()
        })
        .collect();
    let mut all: Vec<(RunDir, Meta, Transcript, Held)> = Vec::new();
    for (n, task) in board.create(&tasks, None)?.iter().enumerate() {
        let name = format!("mate-{n}");
        board.claim(task.id, &ClaimRequest::new(&name))?;
        let now = rfc3339(SystemClock.now_ms());
        let meta = Meta {
            agent_id: format!("a{n:08x}"),
            life: 1,
            name: Some(name),
            team: TEAM.into(),
            list: TEAM.into(),
            parent: "team-lead".into(),
            agent_type: "general-purpose".into(),
            description: format!("part {n}"),
            task_id: Some(task.id.to_string()),
            state: RunState::Running,
            created_at: now.clone(),
            started_at: now,
            ..Meta::default()
        };
        let run = RunDir::new(&runs, &meta.agent_id);
        let held = run.create(&meta, "make it pass")?;
        let log = Transcript::open(&run, 1, u64::MAX);
        all.push((run, meta, log, held));
    }
    let engine = home.team(&team).join(".ccb");
    store::home::create_private_dir(&engine)?;
    let _engine = FileLock::try_exclusive(&engine.join("engine.lock"))?;
    std::fs::write(args.home.join("ready"), "")?;
    let begun = Instant::now();
    for round in 0_u32.. {
        let due = begun + Duration::from_secs(1) / UPDATES * round;
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
        if begun.elapsed() > Duration::from_secs(args.seconds) {
            break;
        }
        for (n, (run, meta, log, _)) in all.iter_mut().enumerate() {
            log.add(entry(round, n))?;
            if (round as usize + n) % UPDATES as usize == 0 {
                meta.usage.input_tokens += 4_000;
                meta.usage.output_tokens += 300;
                run.write_meta(meta)?;
            }
        }
    }
    Ok(())
}

fn entry(round: u32, agent: usize) -> Entry {
    let id = format!("toolu_{agent}_{}", round / 4);
    match round % 4 {
        0 => Entry::Text {
            text: format!("Next I look at what part {round} of the suite says about the parser."),
        },
        1 => Entry::ToolUse {
            id: format!("toolu_{agent}_{}", round / 4),
            name: "Bash".into(),
            input: json!({ "command": format!("cargo test -p part-{round} -- --nocapture") }),
        },
        2 => Entry::ToolResult {
            id,
            output: "running 3 tests\ntest one ... ok\ntest two ... ok\ntest three".into(),
            error: false,
        },
        _ => Entry::Text {
            text: format!("The test {round} passes now; the next one fails for another reason."),
        },
    }
}

/// A process that looks at the pace of a view.
fn looking(home: &Path, seconds: u64) -> Result<Looked, Failure> {
    let output = Command::new(std::env::current_exe()?)
        .arg("view-looker")
        .arg("--home")
        .arg(home)
        .arg("--seconds")
        .arg(seconds.to_string())
        .stderr(Stdio::inherit())
        .output()?;
    Ok(serde_json::from_slice(&output.stdout)?)
}

/// Looks until its time is up, and prints the cost.
pub(crate) fn look(args: &ViewArgs) -> Result<(), Failure> {
    let workplace = Workplace::open(&Asked {
        team: Some(TEAM.into()),
        home: Some(args.home.clone()),
        directory: Some(args.home.clone()),
        ..Asked::default()
    })
    .map_err(|error| error.in_a_line())?;
    let mut live = Live::open(&workplace).map_err(|error| error.in_a_line())?;
    let mut waiter = live.waiter();
    let mut looks_ms = Vec::new();
    // The first look reads everything that is there; it is made once.
    live.look(SystemClock.now_ms());
    let (begun, cpu) = (Instant::now(), cpu_of("self")?);
    while begun.elapsed() < Duration::from_secs(args.seconds) {
        if waiter.wait(Duration::from_secs(1)) == Woken::Look {
            let look = Instant::now();
            let scene = live.look(SystemClock.now_ms());
            looks_ms.push(look.elapsed().as_secs_f64() * 1_000.0);
            if scene
                .teams
                .iter()
                .map(|team| team.agents.len())
                .sum::<usize>()
                != AGENTS
            {
                return Err("not all agents are seen".into());
            }
        }
    }
    let looked = Looked {
        cpu_s: cpu_of("self")? - cpu,
        wall_s: begun.elapsed().as_secs_f64(),
        mb: mb_of("self")?,
        looks_ms,
    };
    println!("{}", serde_json::to_string(&looked)?);
    Ok(())
}

/// `ccb top` on a pseudo-terminal, and keys that are pressed there.
fn on_terminal(binary: &Path, home: &Path, seconds: u64) -> Result<Looked, Failure> {
    let (master, terminal) = pseudo_terminal()?;
    let mut child = Command::new(binary)
        .args(["--team", TEAM, "top"])
        .arg("--home")
        .arg(home)
        .current_dir(home)
        .env("TERM", "xterm-256color")
        .stdin(terminal.try_clone()?)
        .stdout(terminal.try_clone()?)
        .stderr(terminal)
        .spawn()?;
    let drawn = drawn(std::fs::File::from(master.try_clone()?));
    let looked = press(&master, &drawn, &child.id().to_string(), seconds);
    child.kill().ok();
    child.wait()?;
    looked
}

fn press(
    master: &OwnedFd,
    drawn: &Receiver<Drawn>,
    pid: &str,
    seconds: u64,
) -> Result<Looked, Failure> {
    let first = drawn.recv_timeout(Duration::from_secs(20));
    first.map_err(|_| "ccb top draws nothing")?;
    std::thread::sleep(Duration::from_secs(1));
    let (begun, cpu) = (Instant::now(), cpu_of(pid)?);
    let pause = Duration::from_secs(seconds) / u32::try_from(KEYS).unwrap_or(1);
    let mut keys_ms = Vec::new();
    for n in 0..KEYS {
        std::thread::sleep(pause);
        let pressed = Instant::now();
        rustix::io::write(master, b"?")?;
        if n % 2 == 1 {
            // The help is closed again.
            continue;
        }
        loop {
            let drawing = drawn.recv_timeout(Duration::from_secs(5));
            let drawing = drawing.map_err(|_| "a key is not answered")?;
            // Changes by the agents are drawn as well.
            if drawing.framed && drawing.at > pressed {
                let took = drawing.at.saturating_duration_since(pressed);
                keys_ms.push(took.as_secs_f64() * 1_000.0);
                break;
            }
        }
    }
    Ok(Looked {
        cpu_s: cpu_of(pid)? - cpu,
        wall_s: begun.elapsed().as_secs_f64(),
        mb: mb_of(pid)?,
        looks_ms: keys_ms,
    })
}

/// A part of the view's output.
struct Drawn {
    at: Instant,
    /// True if it has the corner of a frame in it.
    framed: bool,
}

/// The drawings of the view, unchanged.
fn drawn(mut master: std::fs::File) -> Receiver<Drawn> {
    const CORNER: &[u8] = "┌".as_bytes();
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        let mut bytes = [0; 65_536];
        // A glyph may come in two parts.
        let mut kept = 0;
        while let Ok(count) = master.read(&mut bytes[kept..]) {
            let all = kept + count;
            let framed = bytes[..all]
                .windows(CORNER.len())
                .any(|part| part == CORNER);
            let at = Instant::now();
            if count == 0 || sender.send(Drawn { at, framed }).is_err() {
                break;
            }
            kept = if framed { 0 } else { all.min(CORNER.len() - 1) };
            bytes.copy_within(all - kept..all, 0);
        }
    });
    receiver
}

fn pseudo_terminal() -> Result<(OwnedFd, OwnedFd), Failure> {
    use rustix::fs::{Mode, OFlags};
    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY)?;
    grantpt(&master)?;
    unlockpt(&master)?;
    let name = ptsname(&master, Vec::new())?;
    let terminal = rustix::fs::open(&*name, OFlags::RDWR | OFlags::NOCTTY, Mode::empty())?;
    let size = rustix::termios::Winsize {
        ws_row: 50,
        ws_col: 160,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    rustix::termios::tcsetwinsize(master.as_fd(), size)?;
    Ok((master, terminal))
}

/// Seconds of processor time a process has used, its threads included.
fn cpu_of(pid: &str) -> Result<f64, Failure> {
    let mut nanoseconds = 0_u64;
    for task in std::fs::read_dir(format!("/proc/{pid}/task"))? {
        let path = task?.path().join("schedstat");
        let text = std::fs::read_to_string(path).unwrap_or_default();
        let used: u64 = text
            .split(' ')
            .next()
            .and_then(|word| word.parse().ok())
            .unwrap_or(0);
        nanoseconds += used;
    }
    Ok(nanoseconds as f64 / 1e9)
}

/// The largest resident size of a process so far.
fn mb_of(pid: &str) -> Result<f64, Failure> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kb = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<f64>().ok());
    Ok(kb.ok_or("VmHWM is missing")? / 1_024.0)
}
