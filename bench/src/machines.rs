//! Eight machines that work through one board in PostgreSQL, beside their ideal.
//!
//! Each machine has a home, a clone and connections of its own; all of them, the server and the git
//! remote are on this one. An agent is a command that takes a fixed time and changes a file, and its
//! commit is checked, sent to the remote and landed. The ideal is the commands' time alone.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use database::throw_away::Server;
use serde::Serialize;
use serde_json::json;

use crate::args::Options;
use crate::table::Table;
use crate::{Failure, check_interrupted, startup};

/// Time limit of a run, as a multiple of its ideal.
const LIMIT: u32 = 10;
const TEAM: &str = "bench";

/// One number of agents.
#[derive(Debug, Serialize)]
pub(crate) struct Sample {
    machines: usize,
    slots: usize,
    tasks: usize,
    task_s: u64,
    landed: bool,
    wall_s: f64,
    ideal_s: f64,
}

#[derive(Debug, Clone, Copy)]
struct Size {
    machines: usize,
    slots: usize,
    /// For each agent.
    tasks: usize,
    seconds: u64,
    lands: bool,
}

/// Measures with results that stay at the remote, and with results that land; returns nothing
/// without PostgreSQL.
pub(crate) fn run(options: &Options) -> Result<Vec<Sample>, Failure> {
    let binary = startup::binary_with(options, &["postgres"])?;
    let place = options.places.first().ok_or("no directory")?;
    let mut samples = Vec::new();
    for lands in [false, true] {
        let size = match options.quick {
            true => Size {
                machines: 2,
                slots: 2,
                tasks: 2,
                seconds: 2,
                lands,
            },
            false => Size {
                machines: 8,
                slots: 32,
                tasks: 2,
                seconds: 180,
                lands,
            },
        };
        check_interrupted()?;
        eprintln!("machines: {} × {}", size.machines, size.slots);
        let Some(wall) = measure(&binary, &place.scratch()?, size)? else {
            eprintln!("machines: PostgreSQL is not installed");
            break;
        };
        samples.push(Sample {
            machines: size.machines,
            slots: size.slots,
            tasks: size.machines * size.slots * size.tasks,
            task_s: size.seconds,
            landed: lands,
            wall_s: wall.as_secs_f64(),
            ideal_s: (size.seconds * size.tasks as u64) as f64,
        });
    }
    Ok(samples)
}

/// Prints the table.
pub(crate) fn print(samples: &[Sample]) {
    println!("## Many machines\n");
    let mut table = Table::new(
        1,
        [
            "machines",
            "agents each",
            "tasks",
            "s each",
            "results",
            "wall s",
            "ideal s",
            "of the ideal",
        ],
    );
    for sample in samples {
        table.row(vec![
            sample.machines.to_string(),
            sample.slots.to_string(),
            sample.tasks.to_string(),
            sample.task_s.to_string(),
            match sample.landed {
                true => "land".into(),
                false => "sent".into(),
            },
            format!("{:.1}", sample.wall_s),
            format!("{:.1}", sample.ideal_s),
            format!("{:.1} %", 100.0 * sample.ideal_s / sample.wall_s),
        ]);
    }
    println!("{table}");
}

/// Workers, which are ended if something goes wrong.
struct Workers(Vec<Child>);

impl Drop for Workers {
    fn drop(&mut self) {
        for worker in &mut self.0 {
            worker.kill().ok();
            worker.wait().ok();
        }
    }
}

fn measure(
    binary: &Path,
    dir: &tempfile::TempDir,
    size: Size,
) -> Result<Option<Duration>, Failure> {
    let Some(server) = Server::start_with(&["max_connections=2000"]) else {
        return Ok(None);
    };
    let remote = dir.path().join("remote.git");
    make_remote(dir.path(), &remote)?;
    let url = server.url("ccb");
    let ccb = |home: &Path| {
        let mut command = Command::new(binary);
        command
            .env_clear()
            .envs(std::env::var_os("PATH").map(|path| ("PATH", path)))
            .env("HOME", home)
            .env("CCB_HOME", home)
            .env("CCB_BOARD", &url)
            .current_dir(home)
            .args(["--team", TEAM])
            .stdin(Stdio::null());
        command
    };
    let lead = home(dir.path(), "lead")?;
    succeed(ccb(&lead).args(["board", "migrate"]))?;
    let rows: Vec<String> = (0..size.machines * size.slots * size.tasks)
        .map(|n| {
            let run = format!("sleep {} && echo {n} > task-{n}", size.seconds);
            json!({"subject": format!("task {n}"), "run": run, "verify": format!("test -f task-{n}")})
                .to_string()
        })
        .collect();
    let file = lead.join("tasks.jsonl");
    std::fs::write(&file, rows.join("\n"))?;
    succeed(ccb(&lead).args(["task", "create", "--from"]).arg(&file))?;
    let began = Instant::now();
    let mut workers = Workers(Vec::new());
    for n in 0..size.machines {
        let home = home(dir.path(), &format!("m{n}"))?;
        let mut command = ccb(&home);
        command.args(["worker", "--until-done", "--runtime", "shell", "--repo"]);
        command.arg(&remote);
        command.args([
            "--name",
            &format!("m{n}"),
            "--slots",
            &size.slots.to_string(),
        ]);
        if size.lands {
            command.args(["--into", "main"]);
        }
        let log = std::fs::File::create(home.join("worker.log"))?;
        workers
            .0
            .push(command.stdout(log.try_clone()?).stderr(log).spawn()?);
    }
    let limit = Duration::from_secs(size.seconds * size.tasks as u64) * LIMIT;
    for worker in &mut workers.0 {
        loop {
            check_interrupted()?;
            match worker.try_wait()? {
                Some(status) if status.success() => break,
                Some(status) => return Err(format!("a worker failed: {status}").into()),
                None if began.elapsed() > limit => return Err("it takes too long".into()),
                None => std::thread::sleep(Duration::from_millis(20)),
            }
        }
    }
    Ok(Some(began.elapsed()))
}

fn home(dir: &Path, name: &str) -> Result<PathBuf, Failure> {
    let home = dir.join(name);
    std::fs::create_dir(&home)?;
    // Any number of agents.
    let settings = json!({"agents": {"maxAgents": null}, "worktree": {"durable": false}});
    std::fs::write(home.join("ccb.json"), settings.to_string())?;
    let who = "[user]\nname = Bench\nemail = bench@localhost\n";
    std::fs::write(home.join(".gitconfig"), who)?;
    Ok(home)
}

fn make_remote(dir: &Path, remote: &Path) -> Result<(), Failure> {
    let seed = dir.join("seed");
    std::fs::create_dir(&seed)?;
    std::fs::write(seed.join("readme"), "one\n")?;
    let git = |args: &[&str]| {
        let mut command = Command::new("git");
        command.args([
            "-c",
            "user.name=Bench",
            "-c",
            "user.email=bench@localhost",
            "-C",
        ]);
        succeed(command.arg(&seed).args(args))
    };
    git(&["init", "-q", "-b", "main"])?;
    git(&["add", "."])?;
    git(&["commit", "-qm", "first"])?;
    let remote = remote.to_str().ok_or("a path that is not UTF-8")?;
    git(&["clone", "-q", "--bare", ".", remote])
}

fn succeed(command: &mut Command) -> Result<(), Failure> {
    let output = command.output()?;
    match output.status.success() {
        true => Ok(()),
        false => Err(format!("{command:?}: {output:?}").into()),
    }
}
