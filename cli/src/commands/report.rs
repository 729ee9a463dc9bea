use std::io::Write;
use std::path::{Path, PathBuf};

use clap::Args;
use observe::report::{self, Report, ReportState};
use serde_json::json;
use store::atomic::{self, Durability};
use store::{Category, Failure, counted};

use crate::context::Context;
use crate::cost::{saved_line, usage_line};
use crate::exit::Exit;
use crate::output::{BOLD, CYAN, DIM, GREEN, PLAIN, RED, YELLOW, clean_line};

/// Maximum number of remaining things that are named one by one.
const NAMED: usize = 10;

#[derive(Debug, Args)]
pub(crate) struct ReportArgs {
    /// A run that `ccb runs` lists, a team, or an agent [default: this team, else the last run]
    #[arg(value_name = "TEAM|RUN|AGENT")]
    what: Option<String>,
    /// Write it as one HTML file that needs nothing else; `-` prints it
    #[arg(long, value_name = "OUT")]
    html: Option<PathBuf>,
}

pub(crate) fn run(args: &ReportArgs, context: &mut Context) -> Result<Exit, Failure> {
    let report = report::find(args.what.as_deref(), context)?;
    let Some(out) = &args.html else {
        let json = serde_json::to_value(&report);
        let json = json.map_err(|error| Failure::internal(error.to_string()))?;
        let text = text(&report, &context.ccb());
        return context.out.done(|| json, || text);
    };
    let page = report::html(&report);
    if out == Path::new("-") {
        let mut stdout = std::io::stdout().lock();
        // A reader that closes the pipe early is no error.
        stdout.write_all(page.as_bytes()).ok();
        return Ok(Exit::Done);
    }
    let path = context.directory.join(out);
    write(&path, page.as_bytes())?;
    let shown = out.display().to_string();
    let json = json!({ "report": {"id": report.id, "html": path, "bytes": page.len()} });
    context.out.done(
        || json,
        || {
            format!(
                "{GREEN}✔{GREEN:#} the report of {} is in {}",
                clean_line(&report.id),
                clean_line(&shown)
            )
        },
    )
}

fn write(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    if path.is_dir() {
        let message = format!("{} is a directory", path.display());
        let hint = format!(
            "name a file: `--html {}`",
            path.join("report.html").display()
        );
        return Err(Failure::usage("bad_out", message).with_hint(hint));
    }
    let dir = path.parent().filter(|dir| dir.is_dir()).ok_or_else(|| {
        let message = format!("the directory of {} is not there", path.display());
        Failure::new(Category::NotFound, "no_directory", message)
            .with_hint("make it first, or name another place with --html")
    })?;
    Ok(atomic::replace_keeping_mode(
        dir,
        path,
        bytes,
        Durability::Relaxed,
    )?)
}

/// The style of a state.
pub(super) fn style_of(state: ReportState) -> anstyle::Style {
    match state {
        ReportState::Running => CYAN,
        ReportState::Done => GREEN,
        ReportState::Failed => RED,
        ReportState::Conflicts | ReportState::Stopped | ReportState::Interrupted => YELLOW,
        ReportState::Open => PLAIN,
    }
}

fn text(report: &Report, ccb: &str) -> String {
    let style = style_of(report.state);
    let totals = &report.totals;
    let mut lines = vec![format!(
        "{style}{}{style:#} {BOLD}{} {}{BOLD:#}: {}",
        report.state.mark(),
        report.kind.word(),
        clean_line(&report.team),
        clean_line(&report.words)
    )];
    if let Some(first) = report
        .title
        .lines()
        .next()
        .filter(|line| !line.trim().is_empty())
    {
        lines.push(format!("  {DIM}{}{DIM:#}", clean_line(first)));
    }
    let used = totals.usage();
    lines.push(format!(
        "  {}, {}, {}, {} landed, {} undone",
        duration(totals.duration_ms),
        counted(totals.agents, "agent"),
        counted(totals.failed_attempts, "failed attempt"),
        totals.landed,
        totals.undone
    ));
    let words = [usage_line(&used), saved_line(&used)];
    lines.extend(words.into_iter().flatten().map(|line| format!("  {line}")));
    for model in report.models.iter().filter(|model| model.cost_usd > 0.0) {
        lines.push(format!(
            "    {} ${:.2}",
            clean_line(&model.name),
            model.cost_usd
        ));
    }
    if report.timeline.critical_path.len() > 1 {
        let path = report.timeline.critical_path.iter();
        let path: Vec<String> = path
            .map(|step| format!("#{}", clean_line(&step.task)))
            .collect();
        lines.push(format!("  critical path: {}", path.join(" → ")));
    }
    if !report.left.is_empty() {
        lines.push(format!("{BOLD}Left{BOLD:#}"));
        for one in report.left.iter().take(NAMED) {
            lines.push(format!("  {}", clean_line(&one.what)));
            if !one.command.is_empty() {
                lines.push(format!("    {CYAN}{}{CYAN:#}", clean_line(&one.command)));
            }
        }
        if report.left.len() > NAMED {
            lines.push(format!(
                "  {DIM}and {} more{DIM:#}",
                report.left.len() - NAMED
            ));
        }
    }
    lines.push(format!(
        "{DIM}With tasks, diffs and a timeline: {ccb} report {} --html report.html{DIM:#}",
        clean_line(&report.id)
    ));
    lines.join("\n")
}

/// A duration in its two largest units.
pub(super) fn duration(ms: i64) -> String {
    let seconds = ms.max(0) / 1000;
    match (seconds / 3600, seconds / 60 % 60, seconds % 60) {
        (0, 0, s) => format!("{s} s"),
        (0, m, s) => format!("{m} min {s} s"),
        (h, m, _) => format!("{h} h {m} min"),
    }
}
