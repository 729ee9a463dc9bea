//! `ccb demo`: a repository with real defects, repaired by agents that need no model.

mod sample;

use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output as Ended, Stdio};
use std::time::{Duration, Instant};

use clap::Args;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use store::Failure;
use store::atomic::{self, Durability};

use crate::context::Context;
use crate::exit::Exit;
use crate::output::{BOLD, CYAN, DIM, GREEN, YELLOW};

/// The team of the demo's plan.
const TEAM: &str = "demo";
/// The branch that the work lands on.
const BRANCH: &str = "ccb/demo";
/// Number of times the demo kills the coordinator.
const KILLS: usize = 3;
/// Maximum wait for an agent that is worth killing.
const PATIENCE: Duration = Duration::from_secs(20);

#[derive(Debug, Args)]
pub(crate) struct DemoArgs {
    /// Keep the repository, the board and the results, to look at them
    #[arg(long)]
    keep: bool,
    /// Run slowly, for watching; on a terminal in the live view
    #[arg(long)]
    slow: bool,
    /// Kill agents and the coordinator on the way; it still ends green
    #[arg(long)]
    chaos: bool,
}

pub(crate) fn run(args: &DemoArgs, context: &mut Context) -> Result<Exit, Failure> {
    let began = Instant::now();
    let scratch = tempfile::Builder::new()
        .prefix("ccb-demo-")
        .tempdir()
        .map_err(broken)?;
    let root = scratch.path().canonicalize().map_err(broken)?;
    let demo = Demo {
        binary: std::env::current_exe().map_err(broken)?,
        repo: root.join("repo"),
        home: root.join("home"),
        root,
        quiet: context.out.is_json(),
        keep: args.keep,
    };
    say(context, format!("{BOLD}A repository with defects{BOLD:#}"))?;
    demo.make_repository(args.slow || args.chaos)?;
    let red = demo.checks(&demo.repo)?;
    let count = red.lines().filter(|line| line.starts_with("red:")).count();
    say(
        context,
        format!("{DIM}{}\n{count} checks fail{DIM:#}", red.trim_end()),
    )?;
    say(
        context,
        format!(
            "\n{BOLD}A plan: a task for each, in parallel worktrees, proven by its check{BOLD:#}\n\
             {DIM}ccb fanout plan.yaml -j 4 --land merge --check 'sh check.sh'{DIM:#}"
        ),
    )?;
    let mut kills = 0;
    if args.chaos {
        kills = demo.chaos(context)?;
    }
    let watched = args.slow && !args.chaos && !demo.quiet && std::io::stdout().is_terminal();
    let succeeded = match watched {
        true => demo.watch(context)?,
        false => demo.fanout()?.wait().map_err(broken)?.success(),
    };
    if !succeeded {
        let kept = scratch.keep();
        let message = format!("the plan did not succeed; look at {}", kept.display());
        return Err(Failure::failed("demo", message));
    }
    prove(&demo, context)?;
    let seconds = began.elapsed().as_secs_f64();
    let words = match kills {
        0 => String::new(),
        kills => format!(", although {kills} processes were killed on the way"),
    };
    say(
        context,
        format!("\n{GREEN}✔{GREEN:#} {count} defects repaired in {seconds:.1} s{words}"),
    )?;
    let report = demo.report()?;
    match args.keep {
        true => {
            let _kept = scratch.keep();
            show(&demo, context)?;
        }
        false => say(context, format!("{DIM}--keep lets you look around{DIM:#}"))?,
    }
    if demo.quiet {
        let root = args.keep.then(|| demo.root.to_string_lossy().into_owned());
        context.out.json(&json!({"demo": {
            "defects": count, "green": true, "kills": kills, "counts": report["counts"], "kept": root,
        }}))?;
    }
    Ok(Exit::Done)
}

/// Runs every check on a clone of the branch that the work landed on.
fn prove(demo: &Demo, context: &mut Context) -> Result<(), Failure> {
    say(
        context,
        format!("\n{BOLD}The proof: every check on the branch it landed on{BOLD:#}"),
    )?;
    let proof = demo.root.join("proof");
    let clone = proof.to_string_lossy();
    demo.git(&["clone", "--quiet", "--branch", BRANCH, ".", &clone])?;
    let green = demo.checks(&proof)?;
    let what = format!("git clone --branch {BRANCH} . proof && cd proof && sh check.sh");
    say(context, format!("{DIM}{what}{DIM:#}\n{}", green.trim_end()))?;
    if !green.contains("all green") {
        let message = format!("the branch is not green:\n{green}");
        return Err(Failure::failed("demo", message));
    }
    Ok(())
}

/// Prints the paths and commands for looking at the result.
fn show(demo: &Demo, context: &mut Context) -> Result<(), Failure> {
    let (home, repo) = (demo.home.display(), demo.repo.display());
    let ccb = format!("ccb --home {home} -C {repo} --team {TEAM}");
    let out = demo.repo.join("ccb-out");
    for (what, command) in [
        ("the report", format!("cat {}/report.md", out.display())),
        ("the board", format!("{ccb} task list")),
        ("the graph", format!("{ccb} task graph")),
        ("the agents", format!("{ccb} agent list")),
        (
            "a transcript",
            format!("cat {}/transcripts/slug.jsonl", out.display()),
        ),
        ("the worktrees", format!("{ccb} worktree list")),
        (
            "the branch",
            format!("git -C {repo} log --graph --oneline {BRANCH}"),
        ),
        (
            "once more, from what is proven",
            format!("{ccb} fanout plan.yaml --land merge"),
        ),
    ] {
        say(context, format!("  {what}: {CYAN}{command}{CYAN:#}"))?;
    }
    Ok(())
}

fn say(context: &mut Context, text: impl AsRef<str>) -> Result<(), Failure> {
    match context.out.is_json() {
        true => Ok(()),
        false => context.out.text(text.as_ref()),
    }
}

#[expect(clippy::needless_pass_by_value, reason = "as `map_err` hands it over")]
fn broken(error: std::io::Error) -> Failure {
    Failure::failed("io", format!("demo: {error}"))
}

struct Demo {
    binary: PathBuf,
    root: PathBuf,
    repo: PathBuf,
    home: PathBuf,
    /// True if only the last line is printed.
    quiet: bool,
    /// True if the demo's directory is kept.
    keep: bool,
}

impl Demo {
    fn make_repository(&self, slow: bool) -> Result<(), Failure> {
        let pause = if slow { "2" } else { "0.3" };
        let plan = sample::PLAN.replace("@PAUSE@", pause);
        let files = sample::FILES.iter().copied();
        for (name, text) in files.chain([("plan.yaml", plan.as_str())]) {
            let path = self.repo.join(name);
            let dir = path.parent().unwrap_or(&self.repo);
            std::fs::create_dir_all(dir).map_err(broken)?;
            atomic::replace(&self.root, &path, text.as_bytes(), Durability::Relaxed)?;
        }
        self.git(&["init", "--quiet", "--initial-branch=main"])?;
        self.git(&["config", "user.name", "ccb demo"])?;
        self.git(&["config", "user.email", "demo@localhost"])?;
        self.git(&["add", "--all"])?;
        self.git(&["commit", "--quiet", "--message=A small shop with defects"])?;
        Ok(())
    }

    fn git(&self, args: &[&str]) -> Result<String, Failure> {
        let ended = self.command(Path::new("git"), args).output();
        let ended = ended.map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => {
                Failure::failed("git_failed", "ccb needs git, which is not in your PATH")
                    .with_hint("install git, or add its directory to PATH")
            }
            _ => broken(error),
        })?;
        if !ended.status.success() {
            let why = String::from_utf8_lossy(&ended.stderr).into_owned();
            let message = format!("git {}: {}", args.join(" "), why.trim_end());
            return Err(Failure::failed("demo", message));
        }
        Ok(String::from_utf8_lossy(&ended.stdout).into_owned())
    }

    /// The output of all checks, passed or not.
    fn checks(&self, dir: &Path) -> Result<String, Failure> {
        let ended: Ended = self
            .command(Path::new("sh"), &["check.sh"])
            .current_dir(dir)
            .output()
            .map_err(broken)?;
        Ok(String::from_utf8_lossy(&ended.stdout).into_owned())
    }

    /// A command in the repository, without the environment that `ccb` was called in.
    fn command(&self, program: &Path, args: &[&str]) -> Command {
        let mut command = Command::new(program);
        for (name, _) in std::env::vars_os() {
            let name = name.to_string_lossy().into_owned();
            let ours = ["GIT_", "CCB_", "CLAUDE_"];
            if ours.iter().any(|start| name.starts_with(start)) {
                command.env_remove(name);
            }
        }
        command
            .args(args)
            .current_dir(&self.repo)
            .stdin(Stdio::null());
        command
    }

    fn ccb(&self, args: &[&str]) -> Command {
        let mut command = self.command(&self.binary, &[]);
        command
            .args(["--home".as_ref(), self.home.as_os_str()])
            .args(["--team", TEAM])
            .args(args);
        command
    }

    /// Runs the plan beside the live view; true if it succeeded. If the person leaves the view
    /// early, the command waits for the plan.
    fn watch(&self, context: &mut Context) -> Result<bool, Failure> {
        say(context, "Leave the view with q; the proof follows.")?;
        let log = self.root.join("plan.log");
        let file = || atomic::open_private(&log).map(Stdio::from);
        let mut plan = self.plan();
        let mut plan = plan
            .stdout(file()?)
            .stderr(file()?)
            .spawn()
            .map_err(broken)?;
        let viewed = self.ccb(&["top"]).stdin(Stdio::inherit()).status();
        if !viewed.is_ok_and(|status| status.success()) {
            say(
                context,
                "The live view did not start; waiting for the plan.",
            )?;
        } else if matches!(plan.try_wait(), Ok(None)) {
            say(context, "The plan is not done yet; waiting for it.")?;
        }
        let ended = plan.wait().map_err(broken)?;
        let said = atomic::read(&log)?.unwrap_or_default();
        say(context, String::from_utf8_lossy(&said).trim_end())?;
        Ok(ended.success())
    }

    fn fanout(&self) -> Result<Child, Failure> {
        let mut command = self.plan();
        if self.quiet {
            command.stdout(Stdio::null()).stderr(Stdio::null());
        }
        command.spawn().map_err(broken)
    }

    fn plan(&self) -> Command {
        // The line names nothing that is about to be deleted.
        let nameless: &[&str] = if self.keep { &[] } else { &["--nameless"] };
        let plan = [
            "fanout",
            "plan.yaml",
            "-j",
            "4",
            "--land",
            "merge",
            "--check",
            "sh check.sh",
        ];
        self.ccb(&[&plan, nameless].concat())
    }

    fn report(&self) -> Result<Value, Failure> {
        let path = self.repo.join("ccb-out/report.json");
        let bytes = atomic::read(&path)?.unwrap_or_default();
        serde_json::from_slice(&bytes)
            .map_err(|error| Failure::failed("demo", format!("the report: {error}")))
    }

    /// Starts the plan and kills it several times; returns the number of killed processes.
    fn chaos(&self, context: &mut Context) -> Result<usize, Failure> {
        let mut killed = 0;
        let mut seen: Vec<String> = Vec::new();
        for round in 0..KILLS {
            let mut coordinator = self.fanout()?;
            let victim = self.await_victim(&mut coordinator, 2 * round, &mut seen);
            if let Some(agent) = &victim {
                // The kill hits the host, so that the agent is lost, or the agent itself, so that
                // it fails.
                let which = if round % 2 == 0 { "host" } else { "pid" };
                killed += usize::from(kill_one(agent, which));
            }
            killed += 1;
            coordinator.kill().map_err(broken)?;
            coordinator.wait().map_err(broken)?;
            let text = format!(
                "{YELLOW}✘{YELLOW:#} the coordinator was killed (SIGKILL){}; starting it again",
                victim.map_or("", |_| ", and an agent")
            );
            say(context, text)?;
        }
        Ok(killed)
    }

    /// Waits until `done` agents have completed, then returns a running agent whose task is not in
    /// `seen`.
    fn await_victim(
        &self,
        coordinator: &mut Child,
        done: usize,
        seen: &mut Vec<String>,
    ) -> Option<Value> {
        let began = Instant::now();
        while began.elapsed() < PATIENCE && matches!(coordinator.try_wait(), Ok(None)) {
            let agents = self.agents();
            let in_state = |state: &str| {
                let state = state.to_owned();
                agents.iter().filter(move |agent| agent["state"] == state)
            };
            if in_state("completed").count() < done {
                std::thread::sleep(Duration::from_millis(100));
                continue;
            }
            for agent in in_state("running").filter(|agent| agent["pid"].is_i64()) {
                let task = agent["taskId"].as_str().unwrap_or_default().to_owned();
                if !seen.contains(&task) {
                    seen.push(task);
                    return Some(agent.clone());
                }
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        None
    }

    fn agents(&self) -> Vec<Value> {
        let dir = self.home.join("teams").join(TEAM).join("runs");
        let runs = std::fs::read_dir(dir).into_iter().flatten().flatten();
        let metas = runs.filter_map(|run| {
            let bytes = atomic::read(&run.path().join("meta.json")).ok()??;
            serde_json::from_slice::<Value>(&bytes).ok()
        });
        metas.collect()
    }
}

fn kill_one(agent: &Value, which: &str) -> bool {
    let pid = match which {
        "pid" => agent["pid"].as_i64(),
        other => agent[other]["pid"].as_i64(),
    };
    let pid = pid.and_then(|pid| Pid::from_raw(i32::try_from(pid).ok()?));
    pid.is_some_and(|pid| kill_process(pid, Signal::KILL).is_ok())
}
