//! `EnterPlanMode` and `ExitPlanMode`.

use coordinator::actions::plan_mode;
use mailbox::AllowedPrompt;
use project::workplace::Workplace;
use serde_json::{Value, json};
use store::Failure;

use super::answer::Answer;
use super::arguments::Arguments;
use super::membership::Membership;

pub(super) fn enter(context: &Workplace) -> Result<Answer, Failure> {
    plan_mode::enter(context)?;
    let text = "You are in plan mode. Look around, but change nothing; when you know what to do, \
                hand the plan in with ExitPlanMode.";
    Ok(Answer::new(text, json!({"mode": "plan"})))
}

pub(super) fn exit(
    arguments: &Arguments,
    context: &Workplace,
    member: &Membership,
) -> Result<Answer, Failure> {
    if member.plans() != Some(true) {
        return Err(Failure::refused(
            "not_in_plan_mode",
            format!("{} is not in plan mode", context.agent()),
        )
        .with_hint("there is nothing to approve: continue the work"));
    }
    let plan = arguments.text("plan");
    if plan.trim().is_empty() {
        return Err(Failure::usage("invalid", "the plan is empty"));
    }
    let allowed = arguments.objects("allowedPrompts").map(|allowed| {
        let text = |key: &str| allowed.get(key).and_then(Value::as_str).unwrap_or_default();
        AllowedPrompt {
            tool: text("tool").to_owned(),
            prompt: text("prompt").trim().to_owned(),
        }
    });
    let allowed: Vec<AllowedPrompt> = allowed.collect();
    if allowed.iter().any(|allowed| allowed.prompt.is_empty()) {
        let error = Failure::usage("invalid", "an allowed prompt is empty");
        return Err(error.with_hint("say how the command begins, e.g. \"cargo test\""));
    }
    let request = plan_mode::hand_in(plan, allowed, context)?;
    let text = format!(
        "The plan is with the lead (request {}). Change nothing until the answer comes as a \
         message; if it is a no, revise the plan and call ExitPlanMode again. The lead may edit \
         the plan: then the answer has the text to follow.",
        request.id
    );
    let json = json!({
        "awaitingLeaderApproval": true,
        "requestId": request.id,
        "request": request.to_json(),
    });
    Ok(Answer::new(text, json))
}
