use clap::Args;
use serde_json::json;
use store::Failure;
use taskboard::TaskId;

use crate::context::Context;
use crate::exit::Exit;
use crate::output::{BOLD, CYAN, YELLOW, clean_line};

#[derive(Debug, Args)]
pub(crate) struct RejectArgs {
    /// The task
    task: TaskId,
    /// What the next attempt should do differently
    #[arg(long, short, value_name = "TEXT", allow_hyphen_values = true)]
    feedback: String,
}

pub(crate) fn run(args: &RejectArgs, context: &mut Context) -> Result<Exit, Failure> {
    let agents = context.agents()?;
    landing::settle(&agents)?;
    let rejected = landing::reject(args.task, &args.feedback, &agents)?;
    let flag = context.flag_for(context.board().name().as_str());
    let json = || {
        json!({
            "task": coordinator::actions::task::to_json(&rejected.task),
            "worktree": rejected.worktree,
            "directed": rejected.directed,
        })
    };
    let text = || {
        let (id, subject) = (rejected.task.id, clean_line(&rejected.task.subject));
        let mut text = format!("{YELLOW}○{YELLOW:#} {BOLD}#{id}{BOLD:#} {subject} was sent back");
        if let Some(name) = &rejected.worktree {
            text.push_str(&format!(
                "; its next attempt starts from the work in {name}"
            ));
        }
        text.push_str(&match rejected.directed {
            true => "\n  the running session gives it to an agent".to_owned(),
            false => format!(
                "\n  a session works on it: {CYAN}ccb {}{CYAN:#}",
                flag.trim_end()
            ),
        });
        text
    };
    context.out.done(json, text)
}
