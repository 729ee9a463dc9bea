//! The claims as tables and as CSV.

use std::fmt::Write;

use crate::args::Options;
use crate::claims::Outcome;
use crate::designs::Design;
use crate::table::{Table, significant, thousands};

/// Prints one table per directory and durability.
pub(crate) fn print(options: &Options, outcomes: &[Outcome]) {
    println!("## Claims\n");
    for place in &options.places {
        for &durable in &options.durable {
            let sync = if durable { "durable" } else { "not durable" };
            println!("### {}, {sync}\n", place.label);
            let here: Vec<&Outcome> = outcomes
                .iter()
                .filter(|o| o.place == place.label && o.durable == durable)
                .collect();
            println!("{}", table(&here));
        }
    }
    let double: u64 = outcomes.iter().map(|o| o.double).sum();
    let claims: u64 = outcomes.iter().map(|o| o.claims).sum();
    println!(
        "{} claims in all, {double} of them double.",
        thousands(claims)
    );
    for design in Design::ALL {
        let first = outcomes
            .iter()
            .filter(|o| o.design == design)
            .find_map(|o| o.first_failure.as_deref());
        if let Some(text) = first {
            println!("A failure of {}: {text}", design.label());
        }
    }
    if outcomes.iter().any(|o| o.cut) {
        println!(
            "\\* stopped after {} s with tasks left.",
            options.limit.as_secs()
        );
    }
    println!();
}

fn table(outcomes: &[&Outcome]) -> Table {
    let head = [
        "tasks",
        "processes",
        "design",
        "claims/s",
        "× SQLite",
        "p50 ms",
        "p99 ms",
        "max ms",
        "p50 by time",
        "CPU µs",
        "Jain",
        "empty-handed",
        "failures",
        "double",
    ];
    let mut table = Table::new(3, head);
    for outcome in outcomes {
        let beside = outcomes.iter().find(|o| {
            let (there, here) = ((o.tasks, o.processes), (outcome.tasks, outcome.processes));
            o.design == Design::Sqlite && there == here
        });
        let ratio = beside.map_or("–".into(), |o| {
            significant(outcome.claims_per_second / o.claims_per_second.max(1e-9))
        });
        let star = if outcome.cut { "\\*" } else { "" };
        table.row(vec![
            thousands(outcome.tasks),
            outcome.processes.to_string(),
            outcome.design.label().to_owned(),
            format!("{}{star}", significant(outcome.claims_per_second)),
            ratio,
            significant(outcome.p50_ms),
            significant(outcome.p99_ms),
            significant(outcome.max_ms),
            significant(outcome.p50_by_time_ms),
            significant(outcome.cpu_us),
            format!("{:.2}", outcome.jain),
            format!("{:.1}", outcome.empty_handed),
            outcome.failures.to_string(),
            outcome.double.to_string(),
        ]);
    }
    table
}

/// One line per cell.
pub(crate) fn csv(outcomes: &[Outcome]) -> String {
    let mut text = String::from(
        "place,tasks,processes,durable,design,rounds,claims,claims_per_second,p50_ms,p99_ms,\
         max_ms,p50_by_time_ms,cpu_us,jain,empty_handed,failures,double,cut\n",
    );
    for o in outcomes {
        writeln!(
            text,
            "\"{}\",{},{},{},{},{},{},{:.2},{:.4},{:.4},{:.4},{:.4},{:.2},{:.4},{:.2},{},{},{}",
            o.place.replace('"', "\"\""),
            o.tasks,
            o.processes,
            o.durable,
            o.design.word(),
            o.rounds,
            o.claims,
            o.claims_per_second,
            o.p50_ms,
            o.p99_ms,
            o.max_ms,
            o.p50_by_time_ms,
            o.cpu_us,
            o.jain,
            o.empty_handed,
            o.failures,
            o.double,
            o.cut,
        )
        .ok();
    }
    text
}
