use clap::Args;
use serde_json::{Value, json};
use store::{Category, Failure};

use crate::context::Context;
use crate::exit::Exit;
use crate::output::{GREEN, YELLOW, clean_line};

#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {
    /// Repair what can be repaired without losing anything
    #[arg(long)]
    fix: bool,
}

/// Exit 0 if nothing is left to do, 1 if something is.
pub(crate) fn run(args: &DoctorArgs, context: &mut Context) -> Result<Exit, Failure> {
    let board = context.board();
    let fix = context.out.command("doctor --fix");
    let findings = coordinator::doctor_of_all(context, args.fix)?;
    let left = findings
        .iter()
        .filter(|finding| finding.fixed.is_none())
        .count();
    let json = || {
        let findings: Vec<Value> = findings
            .iter()
            .map(|f| json!({"kind": f.kind, "message": f.message, "fixed": f.fixed}))
            .collect();
        json!({"list": board.name().as_str(), "findings": findings, "left": left})
    };
    let text = || {
        if findings.is_empty() {
            return format!(
                "{GREEN}✔{GREEN:#} the task list {:?} and its team are sound",
                board.name().as_str()
            );
        }
        let mut lines: Vec<String> = Vec::new();
        for finding in &findings {
            let message = clean_line(&finding.message);
            lines.push(match &finding.fixed {
                Some(fixed) => format!("{GREEN}✔{GREEN:#} {message}: {}", clean_line(fixed)),
                None => format!("{YELLOW}!{YELLOW:#} {message}"),
            });
        }
        if left > 0 && !args.fix {
            lines.push(format!("Repair what can be repaired: {fix}"));
        }
        lines.join("\n")
    };
    context.out.answer(json, text)?;
    Ok(if left == 0 {
        Exit::Done
    } else {
        Exit::Not(Category::Failed)
    })
}
