//! Agents that are copies of others.

use std::path::Path;

use native::{ForkPoint, fork_point};
use project::workplace::Workplace;
use runs::LaunchPlan;
use runs::identity::Standing;
use store::Failure;
use swarm::fork::may_fork;
use swarm::run::Meta;
use swarm::runtime::RuntimeKind;
use uuid::Uuid;

use super::describe::{Wish, limits, proof};
use super::role::Role;

/// An agent that is to be copied.
#[derive(Debug)]
pub(super) struct Original {
    pub meta: Meta,
    /// The id of its conversation.
    session: String,
    /// The last line of it that the copy knows, if lines have ids.
    at: Option<Uuid>,
}

/// The agent to copy, if it can be copied, and the part the copy will know. That is fixed here,
/// because the original continues while the copy starts.
pub(super) fn forked(of: &str, wish: &Wish, workplace: &Workplace) -> Result<Original, Failure> {
    let agents = workplace.agents()?;
    let meta = agents.find(of)?;
    let run = agents.run(&meta.agent_id);
    // A copy makes no copies.
    if let Some(own) = workplace.run() {
        let own = agents.run(own);
        let own_meta = own.meta()?;
        if let Err(error) = may_fork(own_meta.fork, &own.prompt()?) {
            return Err(refused(&error, "do it yourself"));
        }
        if Standing::of(&own_meta) == Standing::Coordinator {
            let message = "a coordinator makes no copies, of itself or of others";
            return Err(refused(
                &message,
                "start a worker and tell it everything it needs to know",
            ));
        }
    }
    if let Err(error) = may_fork(meta.fork, &run.prompt()?) {
        return Err(refused(&error, "fork the agent it is a copy of"));
    }
    if Standing::of(&meta) == Standing::Coordinator {
        let message = format!("{of} is a coordinator, of which no copies are made");
        let hint = "start a new agent with --type and tell it what it needs to know";
        return Err(refused(&message, hint));
    }
    let path = swarm::starter::own_variable("PATH").unwrap_or_default();
    let spec = &meta.runtime;
    let can = spec
        .find(&path)
        .is_ok_and(|runtime| runtime.abilities().fork);
    if !can {
        let message = format!(
            "the runtime {:?} of {of} cannot copy a conversation",
            spec.name
        );
        let hint = "start a new agent with --type and tell it what it needs to know";
        return Err(refused(&message, hint));
    }
    let native = spec.kind == RuntimeKind::Native;
    if wish.fork_at.is_some() && !native {
        let message = format!(
            "--at: the runtime {:?} of {of} copies whole conversations only",
            spec.name
        );
        return Err(refused(&message, "leave out --at"));
    }
    // An agent that was killed early may not have recorded the place of its conversation.
    let usual = run.path().join("conversation.jsonl");
    let usual = || (native && usual.is_file()).then(|| usual.to_string_lossy().into_owned());
    let Some(session) = meta.session.clone().or_else(usual) else {
        let message = format!("{of} has no conversation yet that could be copied");
        return Err(refused(&message, "wait until it has begun"));
    };
    let at = match native {
        true => Some(leaves_at(&session, run.path(), wish, &meta, workplace)?),
        false => None,
    };
    Ok(Original { meta, session, at })
}

/// The point where the copy leaves its original: the requested one, the message with the tool call,
/// or the end.
fn leaves_at(
    session: &str,
    dir: &Path,
    wish: &Wish,
    meta: &Meta,
    workplace: &Workplace,
) -> Result<Uuid, Failure> {
    let itself = workplace.run() == Some(meta.agent_id.as_str());
    let point = match (wish.fork_at, &wish.tool_use_id) {
        (Some(line), _) => ForkPoint::Line(line),
        (None, Some(call)) if itself => ForkPoint::Call(call.clone()),
        (None, _) => ForkPoint::Newest,
    };
    let found = fork_point(session, dir, &point);
    found.map_err(|why| refused(&why, "ccb agent show names the file of its conversation"))
}

fn refused(why: &dyn std::fmt::Display, hint: &str) -> Failure {
    Failure::usage("cannot_fork", why.to_string()).with_hint(hint)
}

/// A copy gets exactly the prompt of its original, so that its requests begin with the same bytes.
pub(super) fn fork_plan(
    original: &Original,
    wish: &Wish,
    workplace: &Workplace,
) -> Result<LaunchPlan, Failure> {
    let parent = &original.meta;
    let mut plan = LaunchPlan {
        fork_of: Some(original.session.clone()),
        fork_at: original.at,
        fork_from: Some(parent.cwd.clone()),
        // The original's proof does not apply to the copy.
        prove: proof(wish, workplace)?,
        ..parent.launch.clone()
    };
    let turns = plan.max_turns;
    plan.limit(&limits(wish, turns, workplace));
    let standing = Standing::of(parent);
    plan.role = Some(standing);
    if standing.leads() {
        // A team has one lead: a copy of it takes part like any other agent.
        plan.role = Some(Standing::Teammate);
        let own = plan.mcp_servers.iter_mut().filter(|it| it.name == "ccb");
        for arg in own.flat_map(|server| &mut server.args) {
            if arg == Role::Lead.as_str() || arg == Role::Coordinator.as_str() {
                *arg = Role::Teammate.as_str().to_owned();
            }
        }
    }
    Ok(plan)
}
