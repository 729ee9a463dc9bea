use std::time::Duration;

use clap::Args;
use coordinator::actions::land::undo;
use landing::{ListedLanding, UndoReport, UndoRequest};
use serde_json::{Value, json};
use store::Failure;
use store::duration::DurationFormat;
use worktrees::{Landing, UndoneBy};

use crate::ask::{self, Unattended};
use crate::context::Context;
use crate::exit::Exit;
use crate::output::{BOLD, CYAN, DIM, GREEN, age, clean_line, short_commit};
use crate::signals::Signals;

#[derive(Debug, Args)]
pub(crate) struct UndoArgs {
    /// A landing (L7), a task, or a worktree [default: the last landing, after asking]
    #[arg(value_name = "TASK|LANDING")]
    what: Option<String>,
    /// Show what has landed
    #[arg(long, conflicts_with_all = ["what", "dry_run"])]
    show: bool,
    /// A command that must succeed on a revert before it lands
    #[arg(long, value_name = "CMD")]
    check: Option<String>,
    /// Stop the check after this time [default: the session's, else 30m]
    #[arg(long, value_name = "TIME", value_parser = |text: &str| DurationFormat::SECONDS.read(text))]
    check_timeout: Option<Duration>,
    /// Say what would happen; moves nothing
    #[arg(long)]
    dry_run: bool,
    /// Do not ask
    #[arg(long, short)]
    yes: bool,
}

pub(crate) fn run(args: &UndoArgs, context: &mut Context) -> Result<Exit, Failure> {
    if args.show {
        return show(context);
    }
    let found = landing::find(args.what.as_deref(), &context.agents()?)?;
    if args.what.is_none() && !args.dry_run {
        let question = format!(
            "Undo {}?",
            name_of(&found.landing, found.subject.as_deref())
        );
        ask::confirm(&question, args.yes, Unattended::Refuses, context)?;
    }
    let request = UndoRequest {
        check: args.check.clone(),
        check_timeout: args.check_timeout,
        dry_run: args.dry_run,
    };
    let signals = Signals::catch()?;
    let report = match undo(&found.landing, &request, context, &signals.stop) {
        Ok(report) => report,
        Err(error) => {
            return match signals.came() {
                Some(exit) => Ok(exit),
                None => Err(error),
            };
        }
    };
    let json = || json!({ "undo": answer(&report, args.dry_run) });
    let text = words(&report, args.dry_run, context);
    context.out.done(json, || text)
}

fn answer(report: &UndoReport, dry_run: bool) -> Value {
    let taken = &report.taken;
    json!({
        "landing": to_json(&taken.landing),
        "how": taken.by.as_str(),
        "why": taken.why,
        "before": taken.before,
        "after": taken.after,
        "checkout": taken.checkout.as_ref().map(|path| path.to_string_lossy()),
        "log": taken.log.as_ref().map(|path| path.to_string_lossy()),
        "check": report.check,
        "worktree": report.worktree.as_ref().map(|entry| &entry.name),
        "dryRun": dry_run,
    })
}

fn to_json(landing: &Landing) -> Value {
    let mut json = json!(landing);
    json["name"] = format!("L{}", landing.id).into();
    json
}

fn words(report: &UndoReport, dry_run: bool, context: &Context) -> String {
    let taken = &report.taken;
    let landing = &taken.landing;
    let name = name_of(landing, report.subject.as_deref());
    let into = clean_line(&landing.into);
    let (before, after) = (short_commit(&taken.before), short_commit(&taken.after));
    let how = match (taken.by, &taken.why) {
        (UndoneBy::MovingBack, _) => format!("{into} goes back"),
        (_, Some(why)) => format!("a revert commit on {into}, because {}", clean_line(why)),
        (_, None) => format!("a revert commit on {into}"),
    };
    if dry_run {
        let mut text = format!("would undo {name}: {how}");
        if let (UndoneBy::Reverting, Some(check)) = (taken.by, &report.check) {
            text.push_str(&format!("\n  after this check: {}", clean_line(check)));
        }
        return text;
    }
    let mut text =
        format!("{GREEN}✔{GREEN:#} undid {name}: {how}\n  {DIM}{into} {before} → {after}{DIM:#}");
    if let Some((list, id)) = &report.task {
        let flag = context.flag_for(list);
        if report.worktree.is_some() {
            text.push_str(&format!(
                "\n  land it again: {CYAN}ccb {flag}land {id}{CYAN:#}"
            ));
        }
        text.push_str(&format!(
            "\n  send it back:  {CYAN}ccb {flag}reject {id} --feedback TEXT{CYAN:#}"
        ));
    }
    text
}

fn name_of(landing: &Landing, subject: Option<&str>) -> String {
    let what = match (&landing.task, subject) {
        (Some(task), Some(subject)) => format!("{task} {}", clean_line(subject)),
        (Some(task), None) => task.clone(),
        (None, _) => landing.worktree.clone(),
    };
    let into = clean_line(&landing.into);
    format!("{BOLD}L{}{BOLD:#} ({what}) on {into}", landing.id)
}

fn show(context: &mut Context) -> Result<Exit, Failure> {
    let all = landing::landings(&context.agents()?)?;
    let row = |one: &ListedLanding| {
        let mut row = to_json(&one.landing);
        row["subject"] = json!(one.subject);
        row["gone"] = one.gone.into();
        row
    };
    let json = || json!({ "landings": all.iter().map(row).collect::<Vec<_>>() });
    let text = || {
        if all.is_empty() {
            return "nothing has landed yet".to_owned();
        }
        let line = |one: &ListedLanding| {
            let landing = &one.landing;
            let stand = match &landing.undone {
                Some(undone) if undone.by == UndoneBy::Reverting => "⊘ reverted",
                Some(_) => "⊘ undone",
                None if one.gone => "⊘ no longer there",
                None => "⇥ landed",
            };
            let (commit, ago) = (short_commit(&landing.commit), age(&landing.at));
            let name = name_of(landing, one.subject.as_deref());
            format!("{stand} {name} {DIM}{commit} {ago} ago{DIM:#}")
        };
        all.iter().map(line).collect::<Vec<_>>().join("\n")
    };
    context.out.done(json, text)
}
