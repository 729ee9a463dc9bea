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

/// Something that is not as it should be, on the board or among the trees.
struct Found {
    kind: &'static str,
    message: String,
    fixed: Option<String>,
}

/// Exit 0 if nothing is left to do, 1 if something is.
pub(crate) fn run(args: &DoctorArgs, context: &mut Context) -> Result<Exit, Failure> {
    let board = context.board();
    let mut findings: Vec<Found> = Vec::new();
    for finding in board.doctor(args.fix)? {
        findings.push(Found {
            kind: finding.kind.as_str(),
            message: finding.message,
            fixed: finding.fixed,
        });
    }
    // Runs, roster, requests, and whether all of them agree come after what they stand on.
    // Outside of a repository there are no trees to look at.
    if let Ok(trees) = context.trees() {
        for finding in trees.doctor(args.fix)? {
            findings.push(Found {
                kind: finding.kind,
                message: format!("worktree {}: {}", finding.name, finding.message),
                fixed: finding.fixed,
            });
        }
    }
    for finding in coordinator::doctor(&context.agents_to_repair()?, args.fix)? {
        findings.push(Found {
            kind: finding.kind,
            message: finding.message,
            fixed: finding.fixed,
        });
    }
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
            lines.push("`ccb doctor --fix` repairs what can be repaired.".into());
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
