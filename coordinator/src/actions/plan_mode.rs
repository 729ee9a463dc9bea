//! Planning before working: a member begins to plan, hands its plan in, and continues with the
//! approved plan.
//!
//! A plan is also a file in the team's `plans/`, which the approver can edit first.

use std::path::{Path, PathBuf};

use mailbox::{AllowedPrompt, DEFAULT_DEADLINE, Mode, Plan, Question, Request};
use project::workplace::Workplace;
use store::Failure;
use store::agent_id::LEAD;
use store::atomic::{self, Durability, Staged};
use store::home::create_private_dir;
use swarm::definitions::PermissionMode;
use team::{Member, TeamError};

use super::mail;

/// The mode in which a member may only plan.
const PLAN_MODE: &str = "plan";

/// True if a member needs approval of its plan before it may do anything.
pub fn plans(member: &Member) -> bool {
    match member.mode.as_deref() {
        Some(mode) => mode == PLAN_MODE,
        None => member.plan_mode_required,
    }
}

/// Sets the caller to plan mode. For an agent that ccb runs, the host tells its program.
pub fn enter(workplace: &Workplace) -> Result<(), Failure> {
    let team = workplace.team_named(workplace.team()?);
    let roster = team.enter()?;
    let own = workplace.agent_name();
    let member = roster.member(own.as_str()).ok_or_else(|| {
        let message = format!("{own} is not a member of its team, so nobody approves its plans");
        Failure::refused("not_a_member", message)
    })?;
    if plans(member) {
        let error = Failure::refused("already_planning", format!("{own} is in plan mode already"));
        return Err(error.with_hint("hand the plan in with ExitPlanMode"));
    }
    team.set_mode(own.as_str(), PLAN_MODE)?;
    if workplace.run().is_none() {
        return Ok(());
    }
    let mode = Mode {
        mode: PLAN_MODE.to_owned(),
    };
    let mailbox = workplace.mailbox()?;
    let asked = mailbox.ask(own, own, Question::Mode(mode), DEFAULT_DEADLINE);
    if asked.is_err() {
        end(own.as_str(), workplace)?;
    }
    asked.map(drop).map_err(Failure::from)
}

/// Writes the caller's plan down and asks the lead to approve it.
pub fn hand_in(
    plan: String,
    allowed_prompts: Vec<AllowedPrompt>,
    workplace: &Workplace,
) -> Result<Request, Failure> {
    let plan = Plan {
        plan,
        plan_file_path: None,
        allowed_prompts,
    };
    // Neither the file nor the request contains secrets.
    let question = workplace.mailbox()?.without_secrets(Question::Plan(plan))?;
    let Question::Plan(mut plan) = question else {
        return Err(Failure::internal("a plan is a plan"));
    };
    let path = write(&plan.plan, workplace)?;
    plan.plan_file_path = Some(path.to_string_lossy().into_owned());
    let asked = mail::ask(LEAD, Question::Plan(plan), workplace);
    if asked.is_err() {
        atomic::remove(&path)?;
    }
    asked
}

fn directory(workplace: &Workplace) -> Result<PathBuf, Failure> {
    Ok(workplace.home().team(&workplace.team()?).join("plans"))
}

/// Writes a plan to a new file.
fn write(plan: &str, workplace: &Workplace) -> Result<PathBuf, Failure> {
    let dir = directory(workplace)?;
    let tmp = dir.join("tmp");
    create_private_dir(&tmp)?;
    let own = workplace.agent();
    for number in 1_u32.. {
        let path = dir.join(format!("{own}-{number}.md"));
        if path.symlink_metadata().is_ok() {
            continue;
        }
        let staged = Staged::write(&tmp, plan.as_bytes(), Durability::Relaxed)?;
        if staged.create(&path)? {
            return Ok(path);
        }
    }
    Err(Failure::internal("there are too many plans"))
}

/// The content of the plan's file, if it differs from the plan that was handed in.
pub(super) fn edited(request: &Request, workplace: &Workplace) -> Result<Option<String>, Failure> {
    let Question::Plan(plan) = &request.question else {
        return Ok(None);
    };
    let path = plan.plan_file_path.as_deref().map(Path::new);
    // Only files that were written for plans are read as plans.
    let ours = |path: &&Path| path.parent() == directory(workplace).ok().as_deref();
    let Some(path) = path.filter(ours) else {
        return Ok(None);
    };
    let Some(bytes) = atomic::read(path)? else {
        return Ok(None);
    };
    let unusable = |why: &str| {
        let error = Failure::usage("invalid", format!("{}: {why}", path.display()));
        error.with_hint("correct the file, delete it to approve the plan as it was, or reject it")
    };
    let text = String::from_utf8(bytes).map_err(|_| unusable("the plan is not UTF-8"))?;
    if text.trim().is_empty() {
        return Err(unusable("the plan is empty"));
    }
    // An editor ends the last line.
    let same = text.trim_end() == plan.plan.trim_end();
    Ok((!same).then_some(text))
}

/// Ends plan mode after an approval: the member gets its earlier mode back.
pub(super) fn end(member: &str, workplace: &Workplace) -> Result<(), Failure> {
    let team = workplace.team_named(workplace.team()?);
    let roster = match team.enter() {
        Ok(roster) => roster,
        Err(TeamError::NotFound { .. }) => return Ok(()),
        Err(error) => return Err(error.into()),
    };
    if let Some(found) = roster.member(member).filter(|member| plans(member)) {
        let usual = PermissionMode::default().as_str();
        let mode = found.mode_before_plan.as_deref().unwrap_or(usual);
        team.set_mode(member, mode)?;
    }
    Ok(())
}
