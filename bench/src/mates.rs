//! Agents on ccb's own loop that share one process, beside those with processes of their own.
//!
//! *Idle*: teammates that have had one long answer and wait for mail. All of their processes count:
//! guards, hosts, loops; the minimum within twenty seconds, because they need some to come to rest.
//! A page that several processes use counts in part for each (Pss).
//!
//! *At work*: a session whose model takes a fixed time for each answer. The ideal is the model's
//! time alone; the time over it is the cost of the engine, git and the loops.

use std::io::{self, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::Serialize;
use serde_json::{Value, json};

use crate::args::Options;
use crate::environment::Place;
use crate::native::memory;
use crate::native::model::{answered, anthropic_events, request, say};
use crate::table::Table;
use crate::{Failure, check_interrupted, startup};

/// Time limit of any step.
const LIMIT: Duration = Duration::from_secs(1800);
/// Time for which idle agents are watched.
const SETTLE: Duration = Duration::from_secs(20);
/// Length of each idle agent's conversation, in bytes.
const CONVERSATION: usize = 100 * 1024;
/// Model requests per task.
const REQUESTS: usize = 5;

/// One way to run them.
#[derive(Debug, Serialize)]
pub(crate) struct Sample {
    mates_in: &'static str,
    idle: usize,
    idle_processes: usize,
    idle_mb: f64,
    mates: usize,
    tasks: usize,
    wall_s: f64,
    ideal_s: f64,
}

/// The amount of work.
#[derive(Debug, Clone, Copy)]
struct Size {
    idle: usize,
    mates: usize,
    /// For each of them.
    tasks: usize,
    answer: Duration,
}

/// Measures both ways.
pub(crate) fn run(options: &Options) -> Result<Vec<Sample>, Failure> {
    let binary = startup::binary(options)?;
    let place = options.places.first().ok_or("no directory")?;
    let size = match options.quick {
        true => Size {
            idle: 10,
            mates: 4,
            tasks: 2,
            answer: Duration::from_millis(200),
        },
        false => Size {
            idle: 200,
            mates: 20,
            tasks: 10,
            answer: Duration::from_secs(2),
        },
    };
    let mut samples = Vec::new();
    for mates_in in ["process", "own"] {
        check_interrupted()?;
        eprintln!("mates: {} idle, in {mates_in}", size.idle);
        let (idle_processes, idle_mb) = idle(&binary, place, mates_in, size.idle)?;
        check_interrupted()?;
        eprintln!("mates: {} at work, in {mates_in}", size.mates);
        let wall = work(&binary, place, mates_in, size)?;
        let ideal = size.answer.as_secs_f64() * (REQUESTS * size.tasks) as f64;
        samples.push(Sample {
            mates_in,
            idle: size.idle,
            idle_processes,
            idle_mb,
            mates: size.mates,
            tasks: size.mates * size.tasks,
            wall_s: wall.as_secs_f64(),
            ideal_s: ideal,
        });
    }
    Ok(samples)
}

/// Prints the table.
pub(crate) fn print(samples: &[Sample]) {
    println!("## Agents in one process\n");
    let mut table = Table::new(
        1,
        [
            "--mates-in",
            "idle agents",
            "processes",
            "MB in all",
            "mates",
            "tasks",
            "wall s",
            "ideal s",
            "of the ideal",
        ],
    );
    for sample in samples {
        table.row(vec![
            sample.mates_in.to_owned(),
            sample.idle.to_string(),
            sample.idle_processes.to_string(),
            format!("{:.1}", sample.idle_mb),
            sample.mates.to_string(),
            sample.tasks.to_string(),
            format!("{:.1}", sample.wall_s),
            format!("{:.1}", sample.ideal_s),
            format!("{:.1} %", 100.0 * sample.ideal_s / sample.wall_s),
        ]);
    }
    println!("{table}");
}

struct Setting {
    binary: PathBuf,
    home: PathBuf,
    repo: PathBuf,
    url: String,
    /// Deleted at the end.
    _dir: tempfile::TempDir,
}

impl Setting {
    fn new(binary: &PathBuf, place: &Place, mates_in: &str, url: String) -> Result<Self, Failure> {
        let dir = place.scratch()?;
        let (home, repo) = (dir.path().join("home"), dir.path().join("repo"));
        std::fs::create_dir(&home)?;
        std::fs::create_dir(&repo)?;
        let settings = json!({ "agents": { "maxAgents": null, "matesIn": mates_in } });
        std::fs::write(home.join("ccb.json"), settings.to_string())?;
        std::fs::write(repo.join("file"), "content\n")?;
        let steps: [&[&str]; 5] = [
            &["init", "-q", "-b", "main"],
            &["config", "user.name", "bench"],
            &["config", "user.email", "bench@localhost"],
            &["add", "."],
            &["commit", "-q", "-m", "first"],
        ];
        for step in steps {
            let done = Command::new("git").args(step).current_dir(&repo).status()?;
            if !done.success() {
                return Err("git cannot make a repository".into());
            }
        }
        let setting = Self {
            binary: binary.clone(),
            home,
            repo,
            url,
            _dir: dir,
        };
        setting.ok(&["team", "create", "bench"])?;
        Ok(setting)
    }

    fn ccb(&self, args: &[&str]) -> Command {
        let mut command = startup::ccb(&self.binary, &self.home);
        command
            .env("ANTHROPIC_API_KEY", "sk-ant-fake-000")
            .env("ANTHROPIC_BASE_URL", &self.url)
            .args(args)
            .current_dir(&self.repo)
            .stdout(Stdio::null());
        command
    }

    fn ok(&self, args: &[&str]) -> Result<(), Failure> {
        match self.ccb(args).status()?.success() {
            true => Ok(()),
            false => Err(format!("{args:?} failed").into()),
        }
    }

    /// Every process of ours that has to do with this home.
    fn processes(&self) -> Vec<u32> {
        let home = self.home.to_string_lossy().into_owned();
        let mut found = Vec::new();
        for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
            let Some(pid) = entry
                .file_name()
                .to_str()
                .and_then(|name| name.parse().ok())
            else {
                continue;
            };
            let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
            let line = String::from_utf8_lossy(&line);
            let stat = std::fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
            // A loop of its own names no directory; its host does.
            let parent = stat
                .rsplit_once(')')
                .and_then(|(_, after)| after.split_whitespace().nth(1)?.parse::<u32>().ok());
            if line.contains("\0__") && (line.contains(&home) || line.contains("__native")) {
                found.push((pid, parent, line.contains(&home)));
            }
        }
        let named: Vec<u32> = found.iter().filter(|one| one.2).map(|one| one.0).collect();
        let ours = |one: &(u32, Option<u32>, bool)| {
            one.2 || one.1.is_some_and(|parent| named.contains(&parent))
        };
        found
            .iter()
            .filter(|one| ours(one))
            .map(|one| one.0)
            .collect()
    }

    /// The number of runs in this state.
    fn in_state(&self, state: &str) -> usize {
        let runs = std::fs::read_dir(self.home.join("teams/bench/runs"));
        let metas = runs.into_iter().flatten().flatten().filter_map(|entry| {
            let text = std::fs::read(entry.path().join("meta.json")).ok()?;
            serde_json::from_slice::<Value>(&text).ok()
        });
        metas.filter(|meta| meta["state"] == state).count()
    }
}

/// The number of processes and the memory of idle agents.
fn idle(
    binary: &PathBuf,
    place: &Place,
    mates_in: &str,
    count: usize,
) -> Result<(usize, f64), Failure> {
    let url = serve(
        |_| say(&"words ".repeat(CONVERSATION / 6), 0, false),
        Duration::ZERO,
    )?;
    let setting = Setting::new(binary, place, mates_in, url)?;
    let how = [
        "agent",
        "spawn",
        "--runtime",
        "native",
        "--background",
        "--name",
    ];
    for number in 0..count {
        check_interrupted()?;
        let name = format!("mate-{number}");
        setting.ok(&[&how[..], &[name.as_str(), "Wait."]].concat())?;
    }
    let limit = Instant::now() + LIMIT;
    while setting.in_state("idle") < count {
        check_interrupted()?;
        if Instant::now() > limit {
            return Err("they do not come to rest".into());
        }
        std::thread::sleep(Duration::from_millis(200));
    }
    // Those that share a process fall asleep after some seconds.
    let limit = Instant::now() + SETTLE;
    let mut least = u64::MAX;
    while Instant::now() < limit {
        check_interrupted()?;
        std::thread::sleep(Duration::from_secs(2));
        let processes = setting.processes();
        let kilobytes = processes.iter().filter_map(|pid| memory::share(*pid));
        least = least.min(kilobytes.sum());
    }
    let processes = setting.processes();
    for pid in &processes {
        let pid = i32::try_from(*pid)
            .ok()
            .and_then(rustix::process::Pid::from_raw);
        if let Some(pid) = pid {
            rustix::process::kill_process(pid, rustix::process::Signal::KILL).ok();
        }
    }
    Ok((processes.len(), least as f64 / 1024.0))
}

/// The duration of a session.
fn work(binary: &PathBuf, place: &Place, mates_in: &str, size: Size) -> Result<Duration, Failure> {
    let url = serve(
        |body| match answered(body) {
            last if last + 1 >= REQUESTS => say("done", last, false),
            number => {
                let file = format!("f{number}-{}.txt", subject(body));
                let input = json!({ "file_path": file, "content": "x\n" }).to_string();
                let id = format!("call_{number}");
                let block = json!({"type": "tool_use", "id": id, "name": "Write", "input": {}});
                let delta = json!({"type": "input_json_delta", "partial_json": input});
                anthropic_events(number, &block, &delta, "tool_use")
            }
        },
        size.answer,
    )?;
    let setting = Setting::new(binary, place, mates_in, url)?;
    let mut rows = String::new();
    for number in 0..size.mates * size.tasks {
        let row = json!({ "subject": format!("n{number}"), "description": format!("<n{number}>") });
        rows.push_str(&format!("{row}\n"));
    }
    let file = setting.home.join("tasks.jsonl");
    std::fs::write(&file, rows)?;
    setting.ok(&["task", "create", "--from", &file.to_string_lossy()])?;
    let mates = size.mates.to_string();
    let before = Instant::now();
    setting.ok(&[
        "--runtime",
        "native",
        "--lead",
        "me",
        "--merge",
        "auto",
        "--mates",
        &mates,
    ])?;
    Ok(before.elapsed())
}

/// The task that a conversation is about.
fn subject(body: &Value) -> String {
    let text = body["messages"][0].to_string();
    let found = text
        .split_once("<n")
        .and_then(|(_, after)| after.split_once('>'));
    found.map_or("0", |(number, _)| number).to_owned()
}

/// A model on loopback that answers each request by `answer`, after `wait`.
fn serve(
    answer: impl Fn(&Value) -> String + Send + Sync + 'static,
    wait: Duration,
) -> io::Result<String> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let url = format!("http://{}", listener.local_addr()?);
    let answer = Arc::new(answer);
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let answer = Arc::clone(&answer);
            std::thread::spawn(move || talk(stream, &*answer, wait).ok());
        }
    });
    Ok(url)
}

fn talk(stream: TcpStream, answer: &dyn Fn(&Value) -> String, wait: Duration) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut output = stream.try_clone()?;
    let mut input = BufReader::new(stream);
    while let Some((_, body)) = request(&mut input)? {
        let arrived = Instant::now();
        let body: Value = serde_json::from_slice(&body).unwrap_or_default();
        let events = answer(&body);
        std::thread::sleep(wait.saturating_sub(arrived.elapsed()));
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\
                    transfer-encoding: chunked\r\n\r\n";
        let chunk = format!("{head}{:x}\r\n{events}\r\n0\r\n\r\n", events.len());
        output.write_all(chunk.as_bytes())?;
        output.flush()?;
    }
    Ok(())
}
