//! `ccb fanout …`.

mod apply;
mod init;
mod merge_reports;
mod run;
mod view;

use std::fs::OpenOptions;
use std::io::Write;

use clap::{Args, Subcommand};
use coordinator::env;
use coordinator::fanout::{Report, Verdict, markdown, schema};
use store::Failure;

use crate::context::Context;
use crate::exit::Exit;
use crate::output::{BOLD, DIM, GREEN, RED, YELLOW, clean_line};

/// Run a plan: many tasks, many agents, every result proven, one report.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct FanoutArgs {
    #[command(subcommand)]
    command: Option<FanoutCommand>,
    #[command(flatten)]
    run: run::RunArgs,
}

/// What can be done with plans and their results.
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

/// A plan that did not even begin is told on the page of the job, too.
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

/// A report in a few lines.
fn summary(report: &Report) -> String {
    let (style, mark) = match report.verdict {
        Verdict::Done => (GREEN, "✔"),
        Verdict::Conflicts => (YELLOW, "!"),
        _ => (RED, "✘"),
    };
    let mut text = format!(
        "{style}{mark}{style:#} {BOLD}{}{BOLD:#}: {}",
        clean_line(&report.name),
        report.done_text()
    );
    for task in report
        .tasks
        .iter()
        .filter(|task| !task.outcome.is_success())
        .take(50)
    {
        let (id, words) = (clean_line(&task.id), clean_line(&task.words()));
        text.push_str(&format!("\n  {RED}✘{RED:#} {id}: {words}"));
    }
    if let Some(broken) = &report.broken {
        text.push_str(&format!("\n  {RED}✘{RED:#} {}", clean_line(broken)));
    }
    text.push_str(&format!("\n  {DIM}{}{DIM:#}", report.counts_text()));
    text
}

/// Puts a report on the page of the job, where there is one.
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

/// Adds to the page of the job.
fn add_to_summary(text: &str) {
    let Some(path) = env::path(env::GITHUB_STEP_SUMMARY) else {
        return;
    };
    // It is there already, and is only added to.
    let file = OpenOptions::new().append(true).open(path);
    if let Err(error) = file.and_then(|mut file| file.write_all(text.as_bytes())) {
        tracing::warn!(%error, "the step summary was not written");
    }
}

fn summary_line(report: &Report) -> String {
    format!("# {}: {:?}", report.name, report.verdict)
}
