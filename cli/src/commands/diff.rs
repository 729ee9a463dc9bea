use std::process::ExitStatus;

use clap::Args;
use landing::{Changed, Comparison};
use serde_json::{Value, json};
use store::Failure;
use worktrees::{Trees, patch};

use crate::context::Context;
use crate::exit::Exit;
use crate::output::{BOLD, CYAN, DIM, clean_line};

/// The signal that ends git when its pager or another reader closes the pipe.
const SIGPIPE: i32 = 13;

#[derive(Debug, Args)]
pub(crate) struct DiffArgs {
    /// A task, an agent, or a worktree [default: the one that has changes which have not landed]
    #[arg(value_name = "TASK|AGENT|WORKTREE")]
    what: Option<String>,
    /// Only how many lines changed in each file
    #[arg(long, conflicts_with = "name_only")]
    stat: bool,
    /// Only the names of the files
    #[arg(long)]
    name_only: bool,
}

pub(crate) fn run(args: &DiffArgs, context: &mut Context) -> Result<Exit, Failure> {
    let what = match &args.what {
        Some(what) => what.clone(),
        None => match landing::here(&context.agents()?)? {
            Some(here) => here,
            None => match &landing::changed(&context.agents()?)?[..] {
                [] => {
                    let json = || json!({ "candidates": [] });
                    return context
                        .out
                        .done(json, || "no changes that have not landed".into());
                }
                [only] => only.worktree.clone(),
                several => return choose(several, context),
            },
        },
    };
    let found = landing::compare(&what, &context.agents()?)?;
    let trees = context.trees()?;
    if context.out.is_json() {
        let json = answer(&found, &trees)?;
        context.out.json(&json)?;
        return Ok(Exit::Done);
    }
    let mut git = trees.diff_command(&found.base, &found.to.id);
    if args.stat {
        git.arg("--stat");
    }
    if args.name_only {
        git.arg("--name-only");
    }
    let ended = git
        .arg("--")
        .status()
        .map_err(|error| Failure::failed("git_failed", format!("cannot run git: {error}")))?;
    Ok(exit_of(ended))
}

fn exit_of(ended: ExitStatus) -> Exit {
    use std::os::unix::process::ExitStatusExt;
    let quit = ended.signal() == Some(SIGPIPE) || ended.code() == Some(128 + SIGPIPE);
    match ended.success() || quit {
        true => Exit::Done,
        false => Exit::Not(store::Category::Failed),
    }
}

fn answer(found: &Comparison, trees: &Trees) -> Result<Value, Failure> {
    let files = trees.stat(&found.base, &found.to.id)?;
    let file = |stat: &patch::FileStat| json!({"path": stat.path, "added": stat.added, "deleted": stat.deleted});
    let sum = |of: fn(&patch::FileStat) -> Option<u64>| files.iter().filter_map(of).sum::<u64>();
    Ok(json!({
        "task": found.task,
        "subject": found.subject,
        "worktree": found.worktree,
        "base": found.base,
        "to": found.to.id,
        "uncommitted": found.to.uncommitted,
        "files": files.iter().map(file).collect::<Vec<_>>(),
        "added": sum(|stat| stat.added),
        "deleted": sum(|stat| stat.deleted),
    }))
}

/// Lists the several that have changes, with the command for each.
fn choose(several: &[Changed], context: &mut Context) -> Result<Exit, Failure> {
    let row = |one: &Changed| {
        json!({
            "task": one.task.as_ref().map(|(_, id)| id),
            "list": one.task.as_ref().map(|(list, _)| list),
            "worktree": one.worktree,
            "subject": one.subject,
            "changes": one.changes,
            "done": one.done,
            "command": command(one, context),
        })
    };
    let json = json!({ "candidates": several.iter().map(row).collect::<Vec<_>>() });
    let line = |one: &Changed| {
        let (subject, changes) = (clean_line(&one.subject), clean_line(&one.changes));
        let about = match &one.task {
            Some((list, id)) => format!("{BOLD}#{id}{BOLD:#} {DIM}{list}{DIM:#} {subject}"),
            None => format!("{BOLD}{}{BOLD:#} {subject}", one.worktree),
        };
        format!(
            "{about} ({changes})\n  {CYAN}{}{CYAN:#}",
            command(one, context)
        )
    };
    let mut lines: Vec<String> = several.iter().map(line).collect();
    lines.insert(
        0,
        format!("{} have changes that have not landed:", several.len()),
    );
    context.out.done(|| json, || lines.join("\n"))
}

fn command(one: &Changed, context: &Context) -> String {
    match &one.task {
        Some((list, id)) if one.done => format!("ccb {}diff {id}", context.flag_for(list)),
        _ => format!("ccb diff {}", one.worktree),
    }
}
