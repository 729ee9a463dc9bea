use clap::Args;
use observe::report::history::{self, Summary};
use serde_json::json;
use store::Failure;
use term::table::{Cell, render};

use super::report::{duration, style_of};
use crate::context::Context;
use crate::exit::Exit;
use crate::output::{BOLD, DIM, PLAIN, age, terminal_width};

#[derive(Debug, Args)]
pub(crate) struct RunsArgs {
    /// Runs of every repository, not only of this one
    #[arg(long)]
    all: bool,
    /// How many, the latest first; 0 for all
    #[arg(long, short = 'n', value_name = "N", default_value_t = 20)]
    limit: usize,
}

/// Lists finished sessions and plans.
pub(crate) fn run(args: &RunsArgs, context: &mut Context) -> Result<Exit, Failure> {
    let mut found = match args.all {
        true => history::everywhere(context),
        false => history::list(context)?,
    };
    let total = found.len();
    if args.limit > 0 {
        found.truncate(args.limit);
    }
    let json = json!({ "runs": found, "total": total });
    let text = text(&found, total, context.settings().history.days);
    context.out.done(|| json, || text)
}

fn text(found: &[Summary], total: usize, days: u32) -> String {
    if found.is_empty() {
        return "No session or plan has ended here.\n\
                `ccb status` shows what runs; `ccb runs --all` lists other repositories' runs."
            .into();
    }
    let rows: Vec<[Cell; 8]> = found.iter().map(row).collect();
    let heads = [
        "RUN", "", "ENDED", "TOOK", "TASKS", "LANDED", "COST", "ABOUT",
    ];
    let mut text = render(heads, &rows, 7, terminal_width());
    if total > found.len() {
        text.push_str(&format!(
            "\n{DIM}{} more: ccb runs -n 0{DIM:#}",
            total - found.len()
        ));
    }
    text.push_str(&format!(
        "\n{DIM}Kept for {days} days. One of them: ccb report RUN [--html report.html]{DIM:#}"
    ));
    text
}

fn row(one: &Summary) -> [Cell; 8] {
    let totals = &one.totals;
    let ended = one.ended_at.as_deref().unwrap_or(&one.started_at);
    let landed = match (totals.landed, totals.undone) {
        (landed, 0) => landed.to_string(),
        (landed, undone) => format!("{landed}, {undone} undone"),
    };
    let cost = match totals.cost_usd {
        usd if usd > 0.0 => format!("${usd:.2}"),
        _ => String::new(),
    };
    let about = match one.title.is_empty() {
        true => &one.words,
        false => &one.title,
    };
    [
        Cell::new(&one.id, BOLD),
        Cell::new(one.state.mark(), style_of(one.state)),
        Cell::new(format!("{} ago", age(ended)), PLAIN),
        Cell::new(duration(totals.duration_ms), PLAIN),
        Cell::new(format!("{}/{}", totals.done, totals.tasks), PLAIN),
        Cell::new(landed, PLAIN),
        Cell::new(cost, PLAIN),
        Cell::new(about, DIM),
    ]
}
