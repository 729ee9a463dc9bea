use std::time::Duration;

use clap::Args;
use coordinator::actions::land::{LandRequest, land};
use landing::{Everything, LandReport, Landed, Unlanded};
use serde_json::{Value, json};
use store::duration::DurationFormat;
use store::{Category, Failure};
use taskboard::{TaskId, Unchecked};
use worktrees::MergeStrategy;

use crate::args::merge_strategy;
use crate::ask;
use crate::context::Context;
use crate::exit::Exit;
use crate::output::{BOLD, CYAN, DIM, GREEN, RED, YELLOW, clean_line, quoted, short_commit};
use crate::signals::Signals;

/// Maximum number of lines shown of a failed check.
const SHOWN_LINES: usize = 10;

#[derive(Debug, Args)]
pub(crate) struct LandArgs {
    /// The tasks
    #[arg(
        value_name = "TASK",
        required_unless_present = "all",
        conflicts_with = "all"
    )]
    tasks: Vec<TaskId>,
    /// Everything on this list that is done, checked and has not landed, except what was undone.
    /// At a terminal ccb asks about unchecked work
    #[arg(long)]
    all: bool,
    /// With --all: also unchecked work, which nothing proves
    #[arg(long, requires = "all")]
    unchecked: bool,
    /// The branch to land on [default: the session's, else the one the main worktree is on]
    #[arg(long, value_name = "BRANCH", allow_hyphen_values = true)]
    into: Option<String>,
    /// What the branch gets: the commits and a merge, one commit, or the commits made again
    /// [default: the session's, else worktree.mergeStrategy]
    #[arg(long, value_name = "HOW", value_parser = merge_strategy())]
    strategy: Option<MergeStrategy>,
    /// A command that must succeed on the merged result, besides the task's own check
    /// [default: the session's --verify]
    #[arg(long, value_name = "CMD")]
    check: Option<String>,
    /// Stop a check after this time [default: the session's, else 30m]
    #[arg(long, value_name = "TIME", value_parser = |text: &str| DurationFormat::SECONDS.read(text))]
    check_timeout: Option<Duration>,
    /// Say what would happen; runs no check and moves nothing
    #[arg(long)]
    dry_run: bool,
}

pub(crate) fn run(args: &LandArgs, context: &mut Context) -> Result<Exit, Failure> {
    landing::settle(&context.agents()?)?;
    let (tasks, left) = match args.all {
        false => (args.tasks.clone(), Everything::default()),
        true => chosen(args, context)?,
    };
    let request = LandRequest {
        into: args.into.clone(),
        strategy: args.strategy,
        check: args.check.clone(),
        check_timeout: args.check_timeout,
        dry_run: args.dry_run,
        ..LandRequest::default()
    };
    let signals = Signals::catch()?;
    let is_json = context.out.is_json();
    let mut out = context.out.clone();
    let shown = context.clone();
    let mut printed = Ok(());
    let reports = land(
        &tasks,
        &request,
        &context.workplace,
        &signals.stop,
        &mut |report| {
            if !is_json && printed.is_ok() {
                printed = out.text(&words(report, args.dry_run, &shown));
            }
        },
    )?;
    printed?;
    if is_json {
        let rows: Vec<Value> = reports.iter().map(|one| row(one, args.dry_run)).collect();
        let mut json = json!({ "landings": rows });
        if !left.unchecked.is_empty() {
            json["unchecked"] = json!(left.unchecked);
            json["leftWithThem"] =
                json!(left.builds_on_it.iter().map(|it| it.0).collect::<Vec<_>>());
        }
        context.out.json(&json)?;
    } else if reports.is_empty() && left.unchecked.is_empty() {
        context.out.text(&nothing(context)?)?;
    }
    if !left.unchecked.is_empty() && !is_json {
        context.out.text(&left_words(&left, context))?;
    }
    Ok(signals.came().unwrap_or_else(|| exit_of(&reports)))
}

/// The tasks that `--all` lands, and those it leaves because no check proves them and no person
/// said yes.
fn chosen(args: &LandArgs, context: &Context) -> Result<(Vec<TaskId>, Everything), Failure> {
    let all = landing::everything(&context.agents()?)?;
    let mut tasks = all.checked.clone();
    if all.unchecked.is_empty() {
        return Ok((tasks, all));
    }
    let question = || {
        let (mark, words) = (Unchecked::MARK, clean_line(&all.unchecked_words()));
        format!("{YELLOW}{mark}{YELLOW:#}: {words}\nLand the unchecked work, too?")
    };
    if args.unchecked || (!args.dry_run && ask::is_yes(&question(), context)?) {
        tasks.extend(all.rest());
        return Ok((tasks, Everything::default()));
    }
    Ok((tasks, all))
}

/// The work that `--all` left, and the command that lands it.
fn left_words(left: &Everything, context: &Context) -> String {
    let (mark, words) = (Unchecked::MARK, clean_line(&left.unchecked_words()));
    let builds = left.builds_on_it.iter();
    let builds: String = builds
        .map(|(task, on)| format!("\n  #{task} is left, too: it builds on #{on}"))
        .collect();
    let flag = context.flag_for(context.board().name().as_str());
    format!(
        "{YELLOW}{mark}{YELLOW:#}, not landed: {words}{builds}\n  land it with: \
         {CYAN}ccb {flag}land --all --unchecked{CYAN:#}"
    )
}

/// Says that nothing on this list waits to land, and names the lists where something does.
fn nothing(context: &Context) -> Result<String, Failure> {
    let mut text = "nothing is done that has not landed".to_owned();
    for work in landing::candidates_everywhere(&context.agents()?)? {
        let Unlanded { list, task, .. } = &work;
        let subject = clean_line(&work.subject);
        let flag = context.flag_for(list);
        text.push_str(&format!(
            "\n  {list} #{task} {subject}: {CYAN}ccb {flag}land {task}{CYAN:#}"
        ));
    }
    Ok(text)
}

fn exit_of(reports: &[LandReport]) -> Exit {
    let is = |wanted: fn(&Landed) -> bool| reports.iter().any(|one| wanted(&one.outcome));
    if is(|outcome| matches!(outcome, Landed::Rejected { .. })) {
        Exit::Not(Category::Failed)
    } else if is(|outcome| matches!(outcome, Landed::Conflict(..) | Landed::Left(_))) {
        Exit::Not(Category::Conflict)
    } else if is(|outcome| matches!(outcome, Landed::Hindered(_))) {
        Exit::Not(Category::TimedOut)
    } else {
        Exit::Done
    }
}

fn row(report: &LandReport, dry_run: bool) -> Value {
    let work = &report.work;
    let mut row = json!({
        "task": work.task, "list": work.list, "subject": work.subject,
        "worktree": work.worktree, "into": report.into, "strategy": report.strategy,
        "checked": work.unchecked.is_none(),
    });
    let (word, more) = match &report.outcome {
        Landed::At(moved) => (
            if dry_run { "would_land" } else { "landed" },
            json!({
                "before": moved.before, "after": moved.after, "commits": moved.commits,
                "checkout": moved.checkout.as_ref().map(|path| path.to_string_lossy()),
                "log": moved.log.as_ref().map(|path| path.to_string_lossy()),
            }),
        ),
        Landed::Nothing => ("nothing_to_do", json!({})),
        Landed::Conflict(files, became) => (
            "conflict",
            json!({ "files": files, "conflictTask": became }),
        ),
        Landed::Rejected { why, check, log } => (
            "check_failed",
            json!({ "why": why, "check": check, "log": log.to_string_lossy() }),
        ),
        Landed::Left(why) => ("not_landed", json!({ "why": why })),
        Landed::Hindered(why) => ("hindered", json!({ "why": why })),
    };
    row["outcome"] = word.into();
    if let (Some(row), Value::Object(more)) = (row.as_object_mut(), more) {
        row.extend(more);
    }
    row
}

fn words(report: &LandReport, dry_run: bool, context: &Context) -> String {
    let work = &report.work;
    let (id, subject) = (work.task, clean_line(&work.subject));
    let into = clean_line(&report.into);
    let flag = context.flag_for(&work.list);
    let name = format!("{BOLD}#{id}{BOLD:#} {subject}");
    let failed = format!("{RED}✘{RED:#} {name} did not land");
    let doubt = match &work.unchecked {
        None => String::new(),
        Some(why) => format!(
            " {YELLOW}{}{YELLOW:#}: {}",
            Unchecked::MARK,
            clean_line(why)
        ),
    };
    match &report.outcome {
        Landed::At(moved) if dry_run => {
            let commits = store::counted(moved.commits, "commit");
            format!("{name} would land on {into}: {commits}, no conflict{doubt}")
        }
        Landed::At(moved) => {
            let (after, commits) = (
                short_commit(&moved.after),
                store::counted(moved.commits, "commit"),
            );
            format!(
                "{GREEN}⇥{GREEN:#} {name} is on {BOLD}{into}{BOLD:#} {after} {DIM}({commits}){DIM:#}{doubt}"
            )
        }
        Landed::Nothing => format!("{name}: {into} has everything already"),
        Landed::Conflict(files, _) => {
            let by = rivals_of(work, files, context);
            let files = clean_line(&files.join(", "));
            let tree = path_of(work, context);
            format!(
                "{failed}: {into} has changed the same lines of {files}{by}\n  \
                 resolve it in its worktree, then land it again:\n    \
                 {CYAN}cd {tree} && git merge {into}{CYAN:#}\n    \
                 {CYAN}ccb {flag}land {id}{CYAN:#}"
            )
        }
        Landed::Rejected { why, log, .. } => {
            let lines: Vec<&str> = why.lines().collect();
            let (first, rest) = lines.split_first().unwrap_or((&"its check failed", &[]));
            let last = &rest[rest.len().saturating_sub(SHOWN_LINES)..];
            let mut text = format!("{failed}: {}", clean_line(first.trim_end_matches(':')));
            if !last.is_empty() {
                text.push_str(&format!("\n{}", quoted(&last.join("\n"))));
            }
            let log = clean_line(&log.to_string_lossy());
            text.push_str(&format!(
                "\n  all of its output: {log}\n  send it back with: \
                 {CYAN}ccb {flag}reject {id} --feedback TEXT{CYAN:#}"
            ));
            text
        }
        Landed::Left(why) | Landed::Hindered(why) => {
            format!(
                "{failed}: {}\n  try again with: {CYAN}ccb {flag}land {id}{CYAN:#}",
                crate::output::hanging(why)
            )
        }
    }
}

/// The agents whose work conflicts with this, as the end of a sentence.
fn rivals_of(work: &Unlanded, files: &[String], context: &Context) -> String {
    let (Some(base), Ok(trees)) = (&work.base, context.trees()) else {
        return String::new();
    };
    match landing::rivals(files, base, &work.list, &trees).as_slice() {
        [] => String::new(),
        rivals => format!(", by {}", clean_line(&rivals.join(", "))),
    }
}

fn path_of(work: &Unlanded, context: &Context) -> String {
    let entry = worktrees::Slug::new(&work.worktree)
        .ok()
        .and_then(|slug| context.trees().ok()?.get(&slug).ok());
    let Some(entry) = entry else {
        return work.worktree.clone();
    };
    let short = entry.path().strip_prefix(&context.directory);
    let path = short.unwrap_or(entry.path()).to_string_lossy();
    clean_line(&path)
}
