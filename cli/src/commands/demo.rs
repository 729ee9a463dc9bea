//! A small scripted session: several processes work off one board.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output as ProcessOutput, Stdio};
use std::sync::mpsc::{self, Sender};

use clap::Args;
use serde_json::Value;

use crate::context::Context;
use crate::error::{CommandError, Exit};
use crate::output::{BOLD, CYAN, DIM, GREEN, YELLOW};

#[derive(Debug, Args)]
pub(crate) struct DemoArgs {
    /// How many workers claim tasks at once
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u8).range(1..=32))]
    workers: u8,
    /// Keep the board afterwards, to look at it
    #[arg(long)]
    keep: bool,
}

/// A release of a small product: what has to be done, and in what order.
const PLAN: &[(&str, &str, &[&str])] = &[
    ("spec", "Agree on the file format", &[]),
    ("parser", "Write the parser", &["spec"]),
    ("writer", "Write the writer", &["spec"]),
    ("cli", "Write the command line", &["parser", "writer"]),
    ("fuzz", "Fuzz the parser", &["parser"]),
    (
        "bench",
        "Measure reading and writing",
        &["parser", "writer"],
    ),
    ("docs-format", "Document the format", &["spec"]),
    ("docs-cli", "Document the commands", &["cli"]),
    ("examples", "Write three examples", &["cli"]),
    ("packaging", "Build packages", &["cli"]),
    (
        "verify",
        "Verify the release on a clean machine",
        &["packaging", "docs-cli", "fuzz"],
    ),
    (
        "announce",
        "Write the announcement",
        &["verify", "bench", "docs-format", "examples"],
    ),
];

const LIST: &str = "demo";

/// What a worker has to tell.
enum Report {
    Claimed {
        worker: String,
        id: String,
        subject: String,
    },
    Done {
        worker: String,
        id: String,
        unblocked: Vec<String>,
    },
    Failed(CommandError),
}

pub(crate) fn run(args: &DemoArgs, context: &mut Context) -> Result<Exit, CommandError> {
    let failed = |error: std::io::Error| CommandError::failed("io", format!("demo: {error}"));
    let scratch = tempfile::Builder::new()
        .prefix("ccb-demo-")
        .tempdir()
        .map_err(failed)?;
    let ccb = Ccb {
        binary: std::env::current_exe().map_err(failed)?,
        home: scratch.path().to_owned(),
    };
    say(
        context,
        &format!("{BOLD}A board with {} tasks{BOLD:#}", PLAN.len()),
    )?;
    write_plan(&ccb)?;
    say(context, &ccb.text(&["task", "graph"])?)?;

    let workers = args.workers;
    say(
        context,
        &format!("\n{BOLD}{workers} workers, each a chain of real processes{BOLD:#}"),
    )?;
    say(
        context,
        &format!("{DIM}`ccb task next --as W`, then `ccb task done ID --as W`{DIM:#}"),
    )?;
    let owners = work(&ccb, workers, context)?;

    say(context, &format!("\n{BOLD}The board afterwards{BOLD:#}"))?;
    say(context, &ccb.text(&["task", "list"])?)?;
    let claims: usize = owners.values().map(Vec::len).sum();
    let exact = claims == PLAN.len() && owners.values().all(|who| who.len() == 1);
    if !exact {
        return Err(CommandError::internal(format!(
            "a task was not claimed exactly once: {owners:?}"
        )));
    }
    say(
        context,
        &format!("\n{GREEN}✔{GREEN:#} {claims} tasks, each claimed exactly once"),
    )?;
    if args.keep {
        let path = scratch.keep();
        let home = path.display();
        say(
            context,
            &format!("\nThe board is in {home}. Look at it with"),
        )?;
        for verb in ["list", "graph", "show 4", "watch --since 0 --no-follow"] {
            say(
                context,
                &format!("  {CYAN}ccb --home {home} --list {LIST} task {verb}{CYAN:#}"),
            )?;
        }
    } else {
        say(
            context,
            &format!("{DIM}Run it with --keep to look at the board yourself.{DIM:#}"),
        )?;
    }
    if context.out.is_json() {
        context
            .out
            .json(&serde_json::json!({"tasks": PLAN.len(), "claims": owners}))?;
    }
    Ok(Exit::Done)
}

fn say(context: &mut Context, text: &str) -> Result<(), CommandError> {
    if context.out.is_json() {
        Ok(())
    } else {
        context.out.text(text)
    }
}

fn write_plan(ccb: &Ccb) -> Result<(), CommandError> {
    let rows: Vec<String> = PLAN
        .iter()
        .map(|(key, subject, after)| {
            serde_json::json!({"key": key, "subject": subject, "blockedBy": after}).to_string()
        })
        .collect();
    let file = ccb.home.join("plan.jsonl");
    store::atomic::replace(
        &ccb.home,
        &file,
        rows.join("\n").as_bytes(),
        store::atomic::Durability::Relaxed,
    )?;
    ccb.json(&["task", "create", "--from", &file.to_string_lossy()])
        .map(drop)
}

/// Lets the workers loose and shows what they do; returns who claimed which task.
fn work(
    ccb: &Ccb,
    workers: u8,
    context: &mut Context,
) -> Result<BTreeMap<String, Vec<String>>, CommandError> {
    let mut owners: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let (sender, reports) = mpsc::channel();
    std::thread::scope(|scope| {
        for n in 1..=workers {
            let sender = sender.clone();
            scope.spawn(move || {
                let worker = format!("worker-{n}");
                if let Err(error) = work_off(ccb, &worker, &sender) {
                    sender.send(Report::Failed(error)).ok();
                }
            });
        }
        drop(sender);
        for report in reports {
            match report {
                Report::Claimed {
                    worker,
                    id,
                    subject,
                } => {
                    say(
                        context,
                        &format!("  {YELLOW}●{YELLOW:#} {worker} claimed {id}: {subject}"),
                    )?;
                    owners.entry(id).or_default().push(worker);
                }
                Report::Done {
                    worker,
                    id,
                    unblocked,
                } => {
                    let ready = if unblocked.is_empty() {
                        String::new()
                    } else {
                        format!(" {DIM}→ ready: {}{DIM:#}", unblocked.join(", "))
                    };
                    say(
                        context,
                        &format!("  {GREEN}✔{GREEN:#} {worker} completed {id}{ready}"),
                    )?;
                }
                Report::Failed(error) => return Err(error),
            }
        }
        Ok(owners)
    })
}

/// One worker: claims, completes, and goes on until everything is done.
fn work_off(ccb: &Ccb, worker: &str, reports: &Sender<Report>) -> Result<(), CommandError> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let mut since = 0;
    loop {
        let answer = ccb.json(&["task", "next", "--as", worker])?;
        if answer["claimed"] == Value::Bool(true) {
            let id = text(&answer["task"]["id"]);
            let subject = text(&answer["task"]["subject"]);
            let worker = worker.to_owned();
            reports
                .send(Report::Claimed {
                    worker: worker.clone(),
                    id: id.clone(),
                    subject,
                })
                .ok();
            let done = ccb.json(&["task", "done", &id, "--as", &worker])?;
            let unblocked = done["unblocked"]
                .as_array()
                .into_iter()
                .flatten()
                .map(text)
                .collect();
            reports
                .send(Report::Done {
                    worker,
                    id,
                    unblocked,
                })
                .ok();
        } else if answer["reason"] == "nothing_ready" {
            // Sleeps until somebody changes the board.
            since = ccb.next_change(since)?;
        } else {
            return Ok(());
        }
    }
}

/// Starts `ccb` processes on the demo's board.
struct Ccb {
    binary: PathBuf,
    home: PathBuf,
}

impl Ccb {
    fn run(&self, args: &[&str], more: &[&str]) -> Result<ProcessOutput, CommandError> {
        Command::new(&self.binary)
            .args(["--home".as_ref(), self.home.as_os_str()])
            .args(["--list", LIST])
            .args(more)
            .args(args)
            .current_dir(Path::new(&self.home))
            .stdin(Stdio::null())
            .output()
            .map_err(|error| CommandError::failed("io", format!("cannot start ccb: {error}")))
    }

    fn text(&self, args: &[&str]) -> Result<String, CommandError> {
        let output = self.run(args, &[])?;
        Ok(String::from_utf8_lossy(&output.stdout)
            .trim_end()
            .to_owned())
    }

    /// The first JSON document of the answer, whatever the exit code.
    fn json(&self, args: &[&str]) -> Result<Value, CommandError> {
        let output = self.run(args, &["--json"])?;
        let text = String::from_utf8_lossy(&output.stdout);
        let answer: Option<Value> = text
            .lines()
            .next()
            .and_then(|line| serde_json::from_str(line).ok());
        match answer {
            Some(answer) if answer.get("error").is_none() => Ok(answer),
            _ => {
                let stderr = String::from_utf8_lossy(&output.stderr);
                let message = format!("`ccb {}` failed: {text}{stderr}", args.join(" "));
                Err(CommandError::failed("demo", message))
            }
        }
    }

    /// Waits for a change after number `since` and returns the number of the last one seen.
    fn next_change(&self, since: u64) -> Result<u64, CommandError> {
        let since = since.to_string();
        let change = self.json(&["task", "watch", "--since", &since, "--count", "1"])?;
        Ok(change["seq"].as_u64().unwrap_or_default())
    }
}
