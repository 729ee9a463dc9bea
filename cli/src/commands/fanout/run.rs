use std::io::Read;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::{Args, ValueEnum};
use coordinator::plans::{Ready, Wanted, is_there, ready};
use fanout::{Land, Preview, RunOptions, Selection, Shard, Span, shell_word};
use serde_json::json;
use store::{Failure, counted};
use term::table::{self, Cell};
use worktrees::patch;

use super::view;
use crate::context::Context;
use crate::exit::Exit;
use crate::output::{BOLD, DIM, YELLOW, clean_line, short_commit, terminal_width};
use crate::signals::Signals;
use crate::telemetry;

#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// The plan, YAML or JSON; `-` is standard input
    plan: Option<PathBuf>,
    /// How many tasks run at once [default: as many as there are processors, 2 to 16]
    #[arg(short, long, value_name = "N", value_parser = at_least_one)]
    jobs: Option<usize>,
    /// Start nothing new after this many failures
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    max_failures: Option<usize>,
    /// Run this many tasks first, and the rest only if they all succeed
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    canary: Option<usize>,
    /// What happens with proven results: patches only, a branch per group, or one branch with all
    #[arg(long, value_enum, value_name = "HOW", default_value_t = LandArg::None)]
    land: LandArg,
    /// The branch results are merged into [default: ccb/NAME of the plan]
    #[arg(long, value_name = "BRANCH")]
    into: Option<String>,
    /// A command that has to pass on what lands, besides the checks of the tasks
    #[arg(long, value_name = "CMD")]
    check: Option<String>,
    /// Nobody is there to answer: no prompts, nothing of the repository runs untrusted, no push
    #[arg(long)]
    ci: bool,
    /// Where the results go
    #[arg(long, value_name = "DIR", default_value = "ccb-out")]
    out: PathBuf,
    /// Only this part of the plan, such as 2/8
    #[arg(long, value_name = "I/N", value_parser = shard)]
    shard: Option<Shard>,
    /// Cut shards so that they take about the same time, by the report of an earlier run (or
    /// `home`: what this home has seen); the same for all shards
    #[arg(long, value_name = "REPORT", requires = "shard")]
    timings: Vec<PathBuf>,
    /// Only tasks with this id, or with one that matches this pattern (`*`, `?`), and what they
    /// depend on; can be repeated
    #[arg(long, value_name = "ID")]
    only: Vec<String>,
    /// But not these, nor what depends on them; can be repeated
    #[arg(long, value_name = "ID")]
    skip: Vec<String>,
    /// So many of the tasks, the same ones every time
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    sample: Option<usize>,
    /// At most so many of the tasks, the first ones
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    limit: Option<usize>,
    /// All of it may take so long: 90s, 10m, 1h30m
    #[arg(long, value_name = "TIME", value_parser = |text: &str| Span::FORMAT.read(text))]
    deadline: Option<Duration>,
    /// All of it may cost so many US dollars
    #[arg(long, value_name = "USD", value_parser = money)]
    budget: Option<f64>,
    /// Show the tasks, their order and what they cost at worst; run nothing
    #[arg(long)]
    dry_run: bool,
    /// Land also if --check fails on the results, where it already fails without them
    #[arg(long)]
    allow_red_base: bool,
    /// A foreach that finds nothing is fine
    #[arg(long)]
    allow_empty: bool,
    /// Do again what an earlier run has proven
    #[arg(long)]
    fresh: bool,
    /// Do not name results and board: they are about to be deleted
    #[arg(long, hide = true)]
    nameless: bool,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum LandArg {
    None,
    Branch,
    Merge,
}

fn at_least_one(text: &str) -> Result<usize, String> {
    let number = text.parse().ok().filter(|number| *number >= 1);
    number.ok_or_else(|| "a number from 1 on".into())
}

fn shard(text: &str) -> Result<Shard, String> {
    Shard::parse(text).ok_or_else(|| "which part of how many, such as 2/8".into())
}

fn money(text: &str) -> Result<f64, String> {
    let usd = text.trim_start_matches('$').parse::<f64>().ok();
    let usd = usd.filter(|usd| usd.is_finite() && *usd > 0.0);
    usd.ok_or_else(|| "an amount of US dollars, such as 2.50".into())
}

pub(super) fn run(args: &RunArgs, context: &mut Context) -> Result<Exit, Failure> {
    let Some(path) = &args.plan else {
        let error = Failure::usage("usage", "say which plan to run");
        return Err(error.with_hint("`ccb fanout init` writes an example; then `ccb fanout FILE`"));
    };
    let ready = ready(path, &args.wanted(), read_stdin, context)?;
    if args.dry_run {
        return dry_run(ready, context);
    }
    let signals = Signals::catch()?;
    let options = args.options(&ready, context)?;
    let team = ready.team(context)?;
    let mut view = view::choose(args.ci, args.nameless, context);
    let interrupted = Arc::new(move || signals.take());
    let mut telemetry = telemetry::OfPlan::new(context, |text| context.out.clone().note(text));
    let report = ready.run(
        &options,
        &team,
        interrupted,
        &mut telemetry.events(&mut view),
        context,
    );
    let verdict = report.as_ref().ok().map(|report| report.verdict);
    telemetry.finish(verdict, |text| context.out.note(text));
    let report = report?;
    // The terminal is restored before anything else is printed.
    drop(view);
    super::step_summary(&report);
    let out = options.out.to_string_lossy();
    context.out.answer(
        || json!({"event": "end", "report": report, "out": out, "team": team.as_str()}),
        || {
            let mut text = super::summary(&report, &options.out);
            if let Some(landed) = &report.landed {
                let branch = clean_line(&landed.branch);
                text.push_str(&format!("\n  {DIM}landed on {branch}{DIM:#}"));
            }
            if args.nameless {
                return text;
            }
            text.push_str(&format!("\n  {DIM}results: {}{DIM:#}", clean_line(&out)));
            let board = view::board_command(team.as_str());
            text.push_str(&format!("\n  {DIM}board:   {board}{DIM:#}"));
            text
        },
    )?;
    Ok(report.verdict.into())
}

impl RunArgs {
    fn wanted(&self) -> Wanted {
        Wanted {
            selection: Selection {
                only: self.only.clone(),
                skip: self.skip.clone(),
                sample: self.sample,
                limit: self.limit,
            },
            shard: self.shard,
            timings: self.timings.clone(),
            allow_empty: self.allow_empty,
        }
    }

    fn options(&self, ready: &Ready, context: &Context) -> Result<RunOptions, Failure> {
        let processors = std::thread::available_parallelism().map_or(2, usize::from);
        if self.into.is_some() && !matches!(self.land, LandArg::Merge) {
            let error = Failure::usage("usage", "--into belongs to --land merge");
            return Err(error.with_hint("add --land merge"));
        }
        let mut notes = ready.notes.clone();
        notes.extend(unseen(ready));
        if !patch::has_identity(&context.directory) {
            notes.push(
                "git does not know who commits here: commits are by ccb <ccb@localhost>; \
                 `git config user.name` and `user.email` set it"
                    .into(),
            );
        }
        Ok(RunOptions {
            name: ready.name.clone(),
            base: ready.base.clone(),
            jobs: self.jobs.unwrap_or_else(|| processors.clamp(2, 16)),
            max_failures: self.max_failures,
            canary: self.canary,
            land: match self.land {
                LandArg::None => Land::None,
                LandArg::Branch => Land::Branch,
                LandArg::Merge => Land::Merge,
            },
            into: self.into.clone(),
            check: ready.whole_check(self.check.as_deref()),
            allow_red_base: self.allow_red_base,
            out: context.directory.join(&self.out),
            shard: self.shard,
            cut: ready.cut.clone(),
            deadline: self.deadline,
            budget_usd: self.budget,
            fresh: self.fresh,
            keep_failed: ready.keep_failed,
            again: Some(again()),
            notes,
        })
    }
}

/// The command as the user typed it.
fn again() -> String {
    let quoted = |word: std::ffi::OsString| shell_word(&word.to_string_lossy());
    let words = std::env::args_os().skip(1).map(quoted);
    std::iter::once("ccb".to_owned())
        .chain(words)
        .collect::<Vec<_>>()
        .join(" ")
}

fn read_stdin() -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    std::io::stdin().lock().read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// A warning about uncommitted changes, which no worktree contains. This surprises people.
fn unseen(ready: &Ready) -> Option<String> {
    let (changed, unknown) = ready.unseen;
    if changed == 0 && unknown == 0 {
        return None;
    }
    let base = short_commit(&ready.base);
    let files = match (changed, unknown) {
        (changed, 0) => counted(changed, "changed file"),
        (0, unknown) => counted(unknown, "new file"),
        (changed, unknown) => {
            let new = counted(unknown, "new file");
            format!("{} and {new}", counted(changed, "changed file"))
        }
    };
    Some(format!(
        "not committed: {files}. Tasks start from {base} and do not see them"
    ))
}

fn dry_run(ready: Ready, context: &mut Context) -> Result<Exit, Failure> {
    let directory = context.directory.clone();
    let finds = |tool: &str| is_there(tool, &directory);
    let mut notes = ready.notes.clone();
    notes.extend(unseen(&ready));
    let mut preview = Preview::new(&ready.base, ready.tasks, &finds);
    preview.warnings.extend(notes);
    context.out.done(
        || {
            let mut json = preview.to_json();
            json["name"] = ready.name.clone().into();
            if let Some(cut) = &ready.cut {
                json["cut"] = cut.clone().into();
            }
            json
        },
        || words(&preview),
    )
}

fn words(preview: &Preview) -> String {
    let plain = crate::output::PLAIN;
    let row = |task: &fanout::PlannedTask| {
        let level = preview
            .levels
            .iter()
            .position(|level| level.contains(&task.id));
        [
            Cell::new(
                level
                    .map(|level| (level + 1).to_string())
                    .unwrap_or_default(),
                DIM,
            ),
            Cell::new(&task.id, BOLD),
            Cell::new(&task.subject, plain),
            Cell::new(task.depends_on.join(" "), DIM),
            Cell::new(task.runtime.as_deref().unwrap_or("default"), plain),
            Cell::new(task.verify.as_deref().unwrap_or(""), plain),
        ]
    };
    let rows: Vec<_> = preview.tasks.iter().map(row).collect();
    let heads = ["LEVEL", "TASK", "SUBJECT", "AFTER", "RUNTIME", "VERIFY"];
    let mut text = match rows.is_empty() {
        true => "no tasks".to_owned(),
        false => table::render(heads, &rows, 2, terminal_width()),
    };
    let worst = &preview.worst;
    text.push_str(&format!(
        "\n\n{} tasks in {} levels, the longest chain has {}: {}",
        preview.tasks.len(),
        preview.levels.len(),
        preview.critical_path.len(),
        clean_line(&preview.critical_path.join(" → ")),
    ));
    text.push_str(&format!("\nat worst {} attempts", worst.attempts));
    if worst.usd > 0.0 {
        text.push_str(&format!(", ${:.2}", worst.usd));
    }
    if worst.tokens > 0 {
        text.push_str(&format!(", {} tokens", worst.tokens));
    }
    if worst.unlimited > 0 {
        text.push_str(&format!(
            ", and {} tasks for agents without a budget",
            worst.unlimited
        ));
    }
    for warning in &preview.warnings {
        text.push_str(&format!(
            "\n{YELLOW}warning:{YELLOW:#} {}",
            clean_line(warning)
        ));
    }
    text
}
