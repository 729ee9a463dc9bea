use clap::Args;
use coordinator::clean::{self, Cleaned, Left};
use serde_json::{Value, json};
use store::{Category, Failure};
use worktrees::Keeps;

use crate::ask::{self, Unattended};
use crate::context::Context;
use crate::exit::Exit;
use crate::output::{BOLD, CYAN, DIM, GREEN, RED, YELLOW, clean_line};

#[derive(Debug, Args)]
pub(crate) struct CleanArgs {
    /// Also work that has not landed, tasks that are not done, and the records of landings
    #[arg(long)]
    all: bool,
    /// Do not ask
    #[arg(long, short)]
    yes: bool,
    /// Only say what would go
    #[arg(long)]
    dry_run: bool,
}

pub(crate) fn run(args: &CleanArgs, context: &mut Context) -> Result<Exit, Failure> {
    let found = clean::survey(context)?;
    let going: Vec<&Left> = found.iter().filter(|one| one.goes(args.all)).collect();
    if args.dry_run || going.is_empty() {
        let json = json!({ "dryRun": true, "leftovers": rows(&found, args.all) });
        let text = list(&found, args.all);
        return context.out.done(|| json, || text);
    }
    if ask::is_attended(context) && !args.yes {
        context.out.note(&list(&found, args.all));
    }
    let what = match going.len() {
        1 => "this".to_owned(),
        count => format!("these {count}"),
    };
    let question = format!("Remove {what} for good?");
    ask::confirm(&question, args.yes, Unattended::Refuses, context)?;
    let mut rows = Vec::new();
    let (mut lines, mut failed, mut bytes) = (Vec::new(), false, 0);
    for one in &found {
        let done = clean::remove(one, args.all, context);
        let name = format!("{} {BOLD}{}{BOLD:#}", one.kind, clean_line(&one.name));
        let mut row = row(one, args.all);
        match done {
            Ok(Cleaned::Gone) => {
                bytes += one.bytes;
                row["removed"] = true.into();
                lines.push(format!("{GREEN}✔{GREEN:#} {name} is removed"));
            }
            Ok(Cleaned::Stays(why)) => {
                row["removed"] = false.into();
                row["stays"] = why.clone().into();
                lines.push(format!(
                    "{YELLOW}○{YELLOW:#} {name} stays: {}",
                    clean_line(&why)
                ));
            }
            Err(error) => {
                failed = true;
                row["removed"] = false.into();
                row["error"] = error.to_json()["error"].clone();
                let why = clean_line(error.message());
                lines.push(format!("{RED}✘{RED:#} {name} stays: {why}"));
            }
        }
        rows.push(row);
    }
    lines.push(format!("{DIM}{} are free{DIM:#}", size(bytes)));
    let json = json!({ "dryRun": false, "leftovers": rows, "bytes": bytes });
    context.out.answer(|| json, || lines.join("\n"))?;
    Ok(match failed {
        true => Exit::Not(Category::Failed),
        false => Exit::Done,
    })
}

fn rows(found: &[Left], all: bool) -> Vec<Value> {
    found.iter().map(|one| row(one, all)).collect()
}

fn row(one: &Left, all: bool) -> Value {
    let (keeps, why) = match &one.keeps {
        None => (None, None),
        Some(Keeps::InUse(why)) => (Some("in_use"), Some(why)),
        Some(Keeps::Work(why)) => (Some("work"), Some(why)),
    };
    json!({
        "kind": one.kind, "name": one.name, "about": one.about, "bytes": one.bytes,
        "goes": one.goes(all), "keeps": keeps, "why": why,
    })
}

fn list(found: &[Left], all: bool) -> String {
    if found.is_empty() {
        return "ccb has left nothing here".to_owned();
    }
    let line = |one: &Left| {
        let (kind, name, bytes) = (one.kind, clean_line(&one.name), size(one.bytes));
        let bytes = if one.bytes == 0 {
            String::new()
        } else {
            format!(" {DIM}{bytes}{DIM:#}")
        };
        let (mark, why) = match (&one.keeps, one.goes(all)) {
            (_, true) => (format!("{GREEN}✔{GREEN:#}"), format!("goes: {}", one.about)),
            (Some(Keeps::Work(why) | Keeps::InUse(why)), false) => (
                format!("{YELLOW}○{YELLOW:#}"),
                format!("stays: {}", clean_line(why)),
            ),
            (None, false) => (String::new(), String::new()),
        };
        let why = why.trim_end().trim_end_matches(':');
        format!("{mark} {kind} {BOLD}{name}{BOLD:#}{bytes} {why}")
    };
    let mut lines: Vec<String> = found.iter().map(line).collect();
    let bytes: u64 = found
        .iter()
        .filter(|one| one.goes(all))
        .map(|one| one.bytes)
        .sum();
    if found.iter().any(|one| one.goes(all)) {
        lines.push(format!("{} would be free", size(bytes)));
    }
    if !all
        && found
            .iter()
            .any(|one| matches!(one.keeps, Some(Keeps::Work(_))))
    {
        lines.push(format!(
            "{CYAN}ccb diff{CYAN:#} shows work that has not landed; {CYAN}ccb clean --all{CYAN:#} \
             removes that, too"
        ));
    }
    lines.join("\n")
}

/// A size in the largest fitting unit, such as `1.5 MB`.
fn size(bytes: u64) -> String {
    const UNITS: [&str; 4] = ["kB", "MB", "GB", "TB"];
    if bytes < 1000 {
        return format!("{bytes} B");
    }
    let mut tenths = bytes / 100;
    let mut unit = 0;
    while tenths >= 10_000 && unit + 1 < UNITS.len() {
        tenths /= 1000;
        unit += 1;
    }
    format!("{}.{} {}", tenths / 10, tenths % 10, UNITS[unit])
}

#[cfg(test)]
mod tests {
    use super::size;

    #[test]
    fn sizes_are_said_as_people_do() {
        for (bytes, said) in [
            (0, "0 B"),
            (999, "999 B"),
            (1000, "1.0 kB"),
            (999_999, "999.9 kB"),
            (1_234_567, "1.2 MB"),
            (5_000_000_000, "5.0 GB"),
        ] {
            assert_eq!(size(bytes), said);
        }
    }
}
