use std::path::PathBuf;
use std::process::{Command, Stdio};

use clap::Args;
use coordinator::actions::task::{completed_json, reported};
use project::workplace::hooks::BeforeDone;
use serde_json::json;
use store::Failure;
use store::clock::{Clock, SystemClock, rfc3339};
use swarm::run::CheckPlace;
use taskboard::{Completed, Hooks, Task, TaskResult, Veto};

use super::{id, join, line};
use crate::context::Context;
use crate::exit::Exit;
use crate::output::{CYAN, GREEN, YELLOW};

#[derive(Debug, Args)]
pub(crate) struct DoneArgs {
    /// The task's id
    #[arg(allow_negative_numbers = true)]
    id: String,
    /// The token the claim came with
    #[arg(long, value_name = "N")]
    token: Option<u64>,
    /// Run the task's check first; if it fails, the task stays as it is
    #[arg(long)]
    verify: bool,
    /// Even if somebody else owns it or a blocker is open
    #[arg(long)]
    force: bool,
}

pub(crate) fn run(args: &DoneArgs, context: &mut Context) -> Result<Exit, Failure> {
    let id = id(&args.id)?;
    let caller = context.caller(args.token, args.force);
    if let Some(note) = reported(id, context)? {
        let task = context.board().get(id)?;
        let completed = Completed {
            task,
            unblocked: Vec::new(),
            nudge: Some(note),
        };
        return answer(&completed, context);
    }
    if args.verify {
        // This fails if the task's file has another check than the one on record.
        context.board().check_of(&context.board().get(id)?)?;
    }
    let check = Check {
        directory: context.directory.clone(),
    };
    let asked = BeforeDone::new(context, args.verify.then_some(&check));
    match context.board().complete(id, &caller, asked.asked()) {
        Ok(completed) => answer(&completed, context),
        Err(taskboard::BoardError::Vetoed { reason }) if asked.check_failed() => Err(
            Failure::failed("verify_failed", format!("task {id} is not done: {reason}"))
                .with_hint("fix what the check found and try again"),
        ),
        Err(error) => Err(error.into()),
    }
}

/// The answer to completing a task, here and in `update --status completed`.
pub(super) fn answer(completed: &Completed, context: &mut Context) -> Result<Exit, Failure> {
    let json = || completed_json(completed);
    let next = context.out.command("task next");
    let text = || {
        let mut text = format!("{GREEN}✔{GREEN:#} {}", line(&completed.task));
        if !completed.unblocked.is_empty() {
            text.push_str(&format!("\n  now ready: {}", join(&completed.unblocked)));
        }
        match &completed.nudge {
            Some(nudge) => text.push_str(&format!("\n{YELLOW}!{YELLOW:#} {nudge}")),
            None => text.push_str(&format!("\n  next: {CYAN}{next}{CYAN:#}")),
        }
        text
    };
    context.out.done(json, text)
}

/// Runs the task's own check in a directory.
pub(crate) struct Check {
    pub(crate) directory: PathBuf,
}

impl Hooks for Check {
    fn before_complete(&self, task: &Task) -> Result<Option<TaskResult>, Veto> {
        let Some(command) = task.verify_command() else {
            let reason = "it has no check; give it one with `ccb task update --verify CMD`, or \
                leave out --verify";
            return Err(Veto::new(reason));
        };
        // The check's output goes to stderr: stdout is for the answer.
        let status = Command::new("sh")
            .args(["-c", command])
            .current_dir(&self.directory)
            .stdin(Stdio::null())
            .stdout(std::io::stderr())
            .status();
        match status {
            Ok(status) if status.success() => Ok(TaskResult::of(&json!({
                "verified": true,
                "command": command,
                "place": CheckPlace::InPlace.as_str(),
                "at": rfc3339(SystemClock.now_ms()),
            }))),
            Ok(status) => Err(Veto::new(format!(
                "the check `{command}` failed ({status})"
            ))),
            Err(error) => Err(Veto::new(format!("the check could not be run: {error}"))),
        }
    }
}
