use std::time::Duration;

use clap::Args;
use coordinator::actions::task as actions;
use serde_json::{Value, json};
use store::StoreError;
use store::duration::DurationFormat;
use store::{Category, Explain, Failure};
use taskboard::{BoardError, ClaimRequest, Claimed, LeaseTerm, Next, Nothing, Refusal, TaskId};

use super::{id, join, line};
use crate::context::Context;
use crate::exit::Exit;
use crate::output::{GREEN, YELLOW};

#[derive(Debug, Args)]
pub(crate) struct ClaimArgs {
    /// The task's id
    #[arg(allow_negative_numbers = true)]
    id: String,
    #[command(flatten)]
    terms: Terms,
}

#[derive(Debug, Args)]
pub(crate) struct NextArgs {
    #[command(flatten)]
    terms: Terms,
}

const LEASE: DurationFormat = DurationFormat::SECONDS
    .at_least(Duration::from_secs(1))
    .at_most(Duration::from_secs(u32::MAX as u64));

#[derive(Debug, Args)]
struct Terms {
    /// Refuse if the agent has other unfinished work
    #[arg(long)]
    check_busy: bool,
    /// Give the task back after this time, such as 90s or 10m, unless it is claimed again
    #[arg(long, value_name = "TIME", value_parser = |text: &str| LEASE.read(text))]
    lease: Option<Duration>,
}

impl Terms {
    fn request(&self, context: &Context) -> ClaimRequest {
        ClaimRequest {
            agent: context.agent().to_owned(),
            check_busy: self.check_busy,
            lease: match (self.lease, context.run()) {
                (Some(time), _) => {
                    let ms = i64::try_from(time.as_millis()).unwrap_or(i64::MAX);
                    Some(LeaseTerm::Milliseconds(ms))
                }
                // A claim of our agent ends when the agent has died.
                (None, Some(run)) => Some(context.lease_of(run)),
                (None, None) => None,
            },
        }
    }
}

pub(crate) fn claim(args: &ClaimArgs, context: &mut Context) -> Result<Exit, Failure> {
    let id = id(&args.id)?;
    let request = args.terms.request(context);
    match context.board().claim(id, &request) {
        Ok(claimed) => won(&claimed, context),
        Err(error) => refuse(error, context),
    }
}

pub(crate) fn next(args: &NextArgs, context: &mut Context) -> Result<Exit, Failure> {
    let request = args.terms.request(context);
    match context.board().claim_next(&request) {
        Ok(Next::Claimed(claimed)) => won(&claimed, context),
        Ok(Next::Nothing(why)) => {
            let graph = context.out.command("task graph");
            let text = || match why {
                Nothing::AllDone => format!("{GREEN}✔{GREEN:#} everything is done"),
                Nothing::NothingReady => {
                    "no task is ready: the others are claimed, blocked or parked".into()
                }
                Nothing::Cycle => format!(
                    "{YELLOW}⚠{YELLOW:#} the tasks that are left wait for each other; see: {graph}"
                ),
            };
            context
                .out
                .answer(|| lost(why.as_str(), &Value::Null, &[], &[]), text)?;
            Ok(Exit::Not(Category::NotFound))
        }
        Ok(Next::Busy(with)) => {
            let agent = request.agent;
            let text = || format!("{YELLOW}!{YELLOW:#} {agent} is busy with {}", join(&with));
            context
                .out
                .answer(|| lost("agent_busy", &Value::Null, &[], &with), text)?;
            Ok(Exit::Not(Category::Refused))
        }
        Err(error) => refuse(error, context),
    }
}

fn won(claimed: &Claimed, context: &mut Context) -> Result<Exit, Failure> {
    let Claimed { task, token } = claimed;
    let json = || json!({"claimed": true, "task": actions::to_json(task), "token": token});
    let text = || {
        let token = token
            .map(|token| format!(", token {token}"))
            .unwrap_or_default();
        format!("{GREEN}✔{GREEN:#} claimed {}{token}", line(task))
    };
    context.out.done(json, text)
}

/// A refusal is an answer under `--json`, and an error for people.
fn refuse(error: BoardError, context: &mut Context) -> Result<Exit, Failure> {
    let answer = match &error {
        BoardError::NotFound { .. } => Some(lost(error.kind(), &Value::Null, &[], &[])),
        BoardError::Corrupt { .. } | BoardError::Store(StoreError::LockTimeout { .. }) => {
            let mut answer = lost(error.kind(), &Value::Null, &[], &[]);
            answer["message"] = error.to_string().into();
            Some(answer)
        }
        BoardError::Refused { task, reason } => {
            let (blocked_by, busy_with): (&[TaskId], &[TaskId]) = match reason {
                Refusal::Blocked { by } => (by, &[]),
                Refusal::AgentBusy { with, .. } => (&[], with),
                _ => (&[], &[]),
            };
            Some(lost(
                reason.kind(),
                &actions::to_json(task),
                blocked_by,
                busy_with,
            ))
        }
        _ => None,
    };
    let error = Failure::from(error);
    match answer {
        Some(answer) if context.out.is_json() => {
            context.out.json(&answer)?;
            Ok(Exit::from(&error))
        }
        _ => Err(error),
    }
}

fn lost(reason: &str, task: &Value, blocked_by: &[TaskId], busy_with: &[TaskId]) -> Value {
    json!({
        "claimed": false,
        "reason": reason,
        "task": task,
        "blockedBy": blocked_by,
        "busyWith": busy_with,
    })
}
