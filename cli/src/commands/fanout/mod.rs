//! `ccb fanout …`.

mod apply;
mod init;
mod merge_reports;
mod run;
pub(crate) mod view;

use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;

use clap::{Args, Subcommand};
use coordinator::session::Verdict;
use fanout::{Outcome, Report, TaskReport, markdown, schema};
use runs::env;
use store::Failure;

use crate::context::Context;
use crate::exit::Exit;
use crate::output::{BOLD, DIM, GREEN, RED, YELLOW, clean_line, failure_lines};

/// Run a plan: many tasks, many agents, every result proven, one report.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct FanoutArgs {
    #[command(subcommand)]
    command: Option<FanoutCommand>,
    #[command(flatten)]
    run: run::RunArgs,
}

/// The subcommands of `ccb fanout`.
#[derive(Debug, Subcommand)]
enum FanoutCommand {
    /// Run a plan; `ccb fanout PLAN` is the same
    Run(Box<run::RunArgs>),
    /// Write an example plan that runs here
    Init(init::InitArgs),
    /// Apply the patches of results to this repository: all of them, or nothing changes
    Apply(apply::ApplyArgs),
    /// Make one report of several parts of a plan
    MergeReports(merge_reports::MergeArgs),
    /// Print the JSON Schema of plans
    Schema,
}

pub(crate) fn run(args: &FanoutArgs, context: &mut Context) -> Result<Exit, Failure> {
    match &args.command {
        None => told(run::run(&args.run, context)),
        Some(FanoutCommand::Run(args)) => told(run::run(args, context)),
        Some(FanoutCommand::Init(args)) => init::run(args, context),
        Some(FanoutCommand::Apply(args)) => apply::run(args, context),
        Some(FanoutCommand::MergeReports(args)) => merge_reports::run(args, context),
        Some(FanoutCommand::Schema) => {
            let text = serde_json::to_string_pretty(&schema());
            let text = text.map_err(|error| Failure::internal(error.to_string()))?;
            context.out.text(&text)?;
            Ok(Exit::Done)
        }
    }
}

/// Reports a plan that did not begin on the job's page as well.
fn told(ended: Result<Exit, Failure>) -> Result<Exit, Failure> {
    if let Err(error) = &ended {
        let quoted = |text: &str| text.replace('\n', "\n> ").replace('`', "'");
        let mut text = format!(
            "# ccb fanout: the plan was not run\n\n> ❌ {}\n",
            quoted(error.message())
        );
        if let Some(hint) = error.hint() {
            text.push_str(&format!(">\n> {}\n", quoted(hint)));
        }
        add_to_summary(&text);
        view::annotate(error.message());
    }
    ended
}

/// Maximum failed tasks shown in full, and in one line each.
const DETAILED: usize = 10;
const NAMED: usize = 50;

/// A report in a few lines. `out` is the directory of its results.
fn summary(report: &Report, out: &Path) -> String {
    let (style, mark) = match report.verdict {
        Verdict::Done => (GREEN, "✔"),
        Verdict::Conflicts => (YELLOW, "⚠"),
        _ => (RED, "✘"),
    };
    let mut text = format!(
        "{style}{mark}{style:#} {BOLD}{}{BOLD:#}: {}",
        clean_line(&report.name),
        report.done_text()
    );
    let tasks = report.tasks.iter();
    let bad: Vec<&TaskReport> = tasks.filter(|task| !task.outcome.is_success()).collect();
    for (at, task) in bad.iter().take(NAMED).enumerate() {
        let style = match task.outcome.mark() {
            "✘" => RED,
            "○" => DIM,
            _ => YELLOW,
        };
        let (mark, id) = (task.outcome.mark(), clean_line(&task.id));
        let words = match at < DETAILED {
            true => failure(report, task, out).replace('\n', "\n  "),
            false => clean_line(&task.headline()),
        };
        text.push_str(&format!("\n  {style}{mark}{style:#} {id}: {words}"));
    }
    if bad.len() > NAMED {
        let (more, file) = (bad.len() - NAMED, out.join("report.md"));
        let file = clean_line(&file.to_string_lossy());
        text.push_str(&format!("\n  {DIM}… and {more} more, see {file}{DIM:#}"));
    }
    if let Some(broken) = &report.broken {
        let broken = failure_lines(broken, None, None).replace('\n', "\n  ");
        text.push_str(&format!("\n  {RED}✘{RED:#} {broken}"));
    }
    text.push_str(&format!("\n  {DIM}{}{DIM:#}", report.counts_text()));
    text
}

/// The reason why a task did not succeed, and what to do about it.
fn failure(report: &Report, task: &TaskReport, out: &Path) -> String {
    if matches!(task.outcome, Outcome::Skipped { .. }) {
        return clean_line(&task.headline());
    }
    let log = task.log().map(|file| out.join(file));
    let again = report.again_for(task).filter(|_| task.resolve.is_empty());
    let again = again.map(|again| clean_line(&again));
    let log = log.filter(|_| task.resolve.is_empty());
    let mut text = failure_lines(&task.failure(), log.as_deref(), again.as_deref());
    if let Some(path) = &task.worktree {
        text.push_str(&format!("\n  {DIM}worktree:{DIM:#} {}", clean_line(path)));
    }
    for (at, step) in task.resolve.iter().enumerate() {
        let name = if at == 0 { "resolve:" } else { "then:" };
        text.push_str(&format!("\n  {DIM}{name:<8}{DIM:#} {}", clean_line(step)));
    }
    text
}

/// Adds a report to the job's page, if there is one.
fn step_summary(report: &Report) {
    // The file is GitHub's, other steps write to it too, and it may hold a mebibyte per step.
    let mut text = markdown(report);
    if text.len() > 1_000_000 {
        text = format!(
            "{}\n\nThe report is too long for this page.\n",
            summary_line(report)
        );
    }
    add_to_summary(&text);
}

/// Adds text to the job's page.
fn add_to_summary(text: &str) {
    let Some(path) = env::path(env::GITHUB_STEP_SUMMARY) else {
        return;
    };
    // The file exists, and ccb only appends to it.
    let file = OpenOptions::new().append(true).open(path);
    if let Err(error) = file.and_then(|mut file| file.write_all(text.as_bytes())) {
        tracing::warn!(%error, "the step summary was not written");
    }
}

fn summary_line(report: &Report) -> String {
    format!("# {}: {:?}", report.name, report.verdict)
}
