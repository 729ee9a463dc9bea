//! ccb's own agent loop beside Claude Code and opencode, on a model that answers at once.
//!
//! `CCB_TEST_CLAUDE` and `CCB_TEST_OPENCODE` name the other programs, as for `tests/real`
//! (`tests/real/install.sh` installs them); a missing one is left out, and the table says so.

pub(crate) mod memory;
pub(crate) mod model;

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::RecvTimeoutError;
use std::time::{Duration, Instant};

use serde::Serialize;
use serde_json::json;

use self::model::{LAST_WORD, Model};
use crate::args::Options;
use crate::environment::Place;
use crate::stats::Spread;
use crate::table::{Table, ms, significant, thousands};
use crate::{Failure, check_interrupted, startup};

/// Number of files that the model reads before its last word.
const TURNS: usize = 20;
/// Time limit of one run, on a machine that does other work besides.
const LIMIT: Duration = Duration::from_secs(300);
/// Bytes of JSON that make up about one token.
const BYTES_PER_TOKEN: usize = 4;

/// The text of the table.
const ABOUT: &str = "\
A scripted model on loopback has {TURNS} files read, one per turn, and then says a word. *Turn*: from
the end of an answer until the next request has arrived, the tool included. *First token*: from
when the model has sent its word until the program has printed it. *Memory*: the program's share,
with all it has started, at the last request, the most of all runs. *First request*: from the start of
the program. *Fixed tokens*: a quarter of the bytes of system prompt, tools and messages of the first
request, whose prompt has 15 bytes.";

/// One program.
#[derive(Debug, Serialize)]
pub(crate) struct Sample {
    program: &'static str,
    /// The reason why it was left out.
    missing: Option<String>,
    turn_ms: [f64; 2],
    last_word_ms: f64,
    memory_mb: f64,
    first_request_ms: [f64; 2],
    fixed_bytes: usize,
    tool_bytes: usize,
    runs: usize,
    #[serde(skip)]
    texts: Vec<String>,
}

/// A program, the way to start it, and its protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Program {
    Native,
    Claude,
    Opencode,
}

impl Program {
    fn name(self) -> &'static str {
        match self {
            Self::Native => "ccb, native",
            Self::Claude => "Claude Code",
            Self::Opencode => "opencode",
        }
    }

    /// The tool that reads a file, and its argument for the file.
    fn tool(self) -> (&'static str, &'static str) {
        match self {
            Self::Native | Self::Claude => ("Read", "file_path"),
            Self::Opencode => ("read", "filePath"),
        }
    }

    /// The program to start; else the reason why there is none.
    fn find(self, ccb: &Path) -> Result<String, String> {
        let variable = match self {
            Self::Native => return Ok(ccb.to_string_lossy().into_owned()),
            Self::Claude => "CCB_TEST_CLAUDE",
            Self::Opencode => "CCB_TEST_OPENCODE",
        };
        let named = std::env::var(variable).ok();
        named
            .filter(|program| !program.is_empty())
            .ok_or_else(|| format!("{variable} is not set (tests/real/install.sh)"))
    }

    fn command(self, program: &str, dir: &Path, url: &str) -> Result<Command, Failure> {
        let mut command = Command::new(program);
        let home = dir.join("home");
        std::fs::create_dir_all(home.join("tmp"))?;
        command
            .env_clear()
            .envs(std::env::var_os("PATH").map(|path| ("PATH", path)))
            .env("HOME", &home)
            .env("TMPDIR", home.join("tmp"))
            .env("ANTHROPIC_API_KEY", "sk-ant-fake-000")
            .env("ANTHROPIC_BASE_URL", url)
            .current_dir(dir)
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        match self {
            Self::Native => {
                command
                    .arg("__native")
                    .env("CCB_HOME", home.join(".claude"))
                    .env("CLAUDE_CODE_TEAM_NAME", "bench")
                    .stdin(Stdio::piped());
            }
            Self::Claude => {
                let how = ["-p", "Read the files.", "--output-format", "stream-json"];
                command
                    .args(how)
                    .args(["--verbose", "--permission-mode", "bypassPermissions"])
                    .env("CLAUDE_CONFIG_DIR", home.join(".claude"))
                    .env("IS_SANDBOX", "1")
                    .env("DISABLE_TELEMETRY", "1")
                    .env("DISABLE_AUTOUPDATER", "1")
                    .env("DISABLE_ERROR_REPORTING", "1")
                    .env("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1")
                    .stdin(Stdio::null());
            }
            Self::Opencode => {
                let provider = json!({
                    "npm": "@ai-sdk/openai-compatible",
                    "options": {"baseURL": format!("{url}/v1"), "apiKey": "fake"},
                    "models": {"m": {"name": "m"}},
                });
                let config = json!({
                    "provider": {"fake": provider}, "model": "fake/m", "small_model": "fake/m",
                });
                let file = home.join("opencode.json");
                std::fs::write(&file, config.to_string())?;
                command
                    .args(["run", "--format", "json", "-m", "fake/m", "Read the files."])
                    .env("OPENCODE_CONFIG", file)
                    .env("OPENCODE_DISABLE_AUTOUPDATE", "1")
                    .env("OPENCODE_DISABLE_MODELS_FETCH", "1")
                    .env("OPENCODE_DISABLE_LSP_DOWNLOAD", "1")
                    .stdin(Stdio::null());
            }
        }
        Ok(command)
    }

    /// The first line of input for ccb's own loop.
    fn opening(self, program: &str, dir: &Path, url: &str) -> String {
        // The board and the mail, which every agent has.
        let own = json!({
            "name": "ccb", "command": program, "args": ["mcp", "--role", "teammate", "--as", "ann"],
        });
        let provider = json!({
            "name": "bench", "wire": "anthropic", "baseUrl": url, "model": "claude-m",
            "keyEnv": "ANTHROPIC_API_KEY",
        });
        let opening = json!({
            "type": "prompt", "text": "Read the files.", "cwd": dir, "scratch": dir.join("home/tmp"),
            "provider": provider, "permissionMode": "bypassPermissions", "reach": "edits",
            "mcpServers": [own], "onlyGivenServers": true, "trusted": false,
        });
        format!("{opening}\n")
    }
}

/// The results of one run.
struct Run {
    turns: Vec<Duration>,
    first_request: Duration,
    last_word: Duration,
    memory_kb: u64,
    fixed: usize,
    tools: usize,
}

/// Measures all programs, in turn.
pub(crate) fn run(options: &Options) -> Result<Vec<Sample>, Failure> {
    let ccb = startup::binary(options)?;
    let place = options.places.first().ok_or("no directory")?;
    let mut samples = Vec::new();
    for program in [Program::Native, Program::Claude, Program::Opencode] {
        let found = match program.find(&ccb) {
            Ok(found) => found,
            Err(why) => {
                eprintln!("native: {} is left out: {why}", program.name());
                samples.push(sample(program, Err(why)));
                continue;
            }
        };
        let runs = match (program, options.quick) {
            (Program::Native, true) => 10,
            (Program::Native, false) => 30,
            (_, true) => 2,
            (_, false) => 5,
        };
        eprintln!("native: {}, {runs} runs", program.name());
        let done = several(program, &found, runs, place)?;
        if let (Err(why), Program::Native) = (&done, program) {
            return Err(format!("{}: {why}", program.name()).into());
        }
        samples.push(sample(program, done));
    }
    Ok(samples)
}

/// Several runs of one program; an error if it did not get to the model's last word.
fn several(
    program: Program,
    path: &str,
    runs: usize,
    place: &Place,
) -> Result<Result<Vec<Run>, String>, Failure> {
    let mut done = Vec::new();
    // The first one fills caches and is not counted.
    for number in 0..=runs {
        check_interrupted()?;
        let dir = place.scratch()?;
        match once(program, path, dir.path()) {
            Ok(one) if number > 0 => done.push(one),
            Ok(_) => {}
            Err(error) => {
                eprintln!("native: {} is left out: {error}", program.name());
                return Ok(Err(error.to_string()));
            }
        }
    }
    Ok(Ok(done))
}

/// Starts the program once and follows it to its last word.
fn once(program: Program, path: &str, dir: &Path) -> Result<Run, Failure> {
    let dir = dir.canonicalize()?;
    for number in 0..TURNS {
        std::fs::write(dir.join(format!("f{number}.txt")), "one line\n")?;
    }
    let (model, url) = Model::start(TURNS, program.tool(), &dir.to_string_lossy())?;
    let mut command = program.command(path, &dir, &url)?;
    let started = Instant::now();
    let mut child = command.spawn()?;
    model.seen().pid = Some(child.id());
    let stdin = child.stdin.take();
    if let Some(mut stdin) = stdin.as_ref() {
        stdin.write_all(program.opening(path, &dir, &url).as_bytes())?;
    }
    let watched = i32::try_from(child.id())
        .ok()
        .and_then(rustix::process::Pid::from_raw);
    let (over, wait) = std::sync::mpsc::channel::<()>();
    let watchdog = std::thread::spawn(move || {
        if let (Err(RecvTimeoutError::Timeout), Some(pid)) = (wait.recv_timeout(LIMIT), watched) {
            // It is waited for below, so the id is still its own.
            rustix::process::kill_process(pid, rustix::process::Signal::KILL).ok();
        }
    });
    let heard = last_word(&mut child);
    drop(over);
    watchdog.join().ok();
    drop(stdin);
    // It has printed everything; its way out is not measured.
    if program != Program::Native {
        child.kill()?;
    }
    child.wait()?;
    let heard = heard?;
    let seen = model.seen();
    let (Some(first), Some(last)) = (seen.asked.first(), seen.asked.last()) else {
        return Err("it asked the model for nothing".into());
    };
    let pairs = seen.asked.windows(2);
    let turns = pairs.map(|pair| pair[1].arrived.saturating_duration_since(pair[0].answered));
    Ok(Run {
        turns: turns.collect(),
        first_request: first.arrived - started,
        last_word: heard.saturating_duration_since(last.answered),
        memory_kb: seen.memory_kb.unwrap_or(0),
        fixed: first.bytes,
        tools: first.tools,
    })
}

/// The time when the program printed the model's last word.
fn last_word(child: &mut Child) -> Result<Instant, Failure> {
    let stdout = child.stdout.take().ok_or("no output")?;
    let mut heard = None;
    for line in BufReader::new(stdout).lines() {
        let line = line?;
        if heard.is_none() && line.contains(LAST_WORD) {
            heard = Some(Instant::now());
            break;
        }
    }
    heard.ok_or_else(|| "it ended without the model's last word".into())
}

fn sample(program: Program, runs: Result<Vec<Run>, String>) -> Sample {
    let (runs, missing) = match runs {
        Ok(runs) => (runs, None),
        Err(why) => (Vec::new(), Some(why)),
    };
    let all = |of: fn(&Run) -> Duration| Spread::of(runs.iter().map(of).collect());
    let turns = Spread::of(runs.iter().flat_map(|run| run.turns.clone()).collect());
    let first = all(|run| run.first_request);
    let word = all(|run| run.last_word);
    let memory = runs.iter().map(|run| run.memory_kb).max().unwrap_or(0);
    let fixed = runs.first().map_or(0, |run| run.fixed);
    let tools = runs.first().map_or(0, |run| run.tools);
    let millis = |time: Duration| time.as_secs_f64() * 1e3;
    let texts = match &missing {
        Some(_) => vec!["–".to_owned(); 8],
        None => vec![
            ms(turns.p50),
            ms(turns.p99),
            ms(word.p50),
            significant(memory as f64 / 1024.0),
            ms(first.p50),
            thousands((fixed / BYTES_PER_TOKEN) as u64),
            thousands((tools / BYTES_PER_TOKEN) as u64),
            runs.len().to_string(),
        ],
    };
    Sample {
        program: program.name(),
        missing,
        turn_ms: [millis(turns.p50), millis(turns.p99)],
        last_word_ms: millis(word.p50),
        memory_mb: memory as f64 / 1024.0,
        first_request_ms: [millis(first.p50), millis(first.p99)],
        fixed_bytes: fixed,
        tool_bytes: tools,
        runs: runs.len(),
        texts,
    }
}

/// Prints one table.
pub(crate) fn print(samples: &[Sample]) {
    println!("## ccb's own agent loop\n");
    println!("{}\n", ABOUT.replace("{TURNS}", &TURNS.to_string()));
    let head = [
        "program",
        "turn p50 ms",
        "turn p99 ms",
        "first token p50 ms",
        "memory MB",
        "first request p50 ms",
        "fixed tokens",
        "of them tools",
        "runs",
    ];
    let mut table = Table::new(1, head);
    for sample in samples {
        let mut row = vec![sample.program.to_owned()];
        row.extend(sample.texts.iter().cloned());
        table.row(row);
    }
    println!("{table}");
    for sample in samples {
        if let Some(why) = &sample.missing {
            println!("{} was left out: {why}.\n", sample.program);
        }
    }
}
