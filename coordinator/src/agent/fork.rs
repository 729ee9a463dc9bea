//! Agents that are copies of others.

use store::Failure;
use swarm::fork::may_fork;
use swarm::run::Meta;

use super::describe::{Wish, limits};
use super::role::Role;
use crate::identity::Standing;
use crate::run::LaunchPlan;
use crate::workplace::Workplace;

/// The agent that is to be copied, if it can be.
pub(super) fn forked(of: &str, workplace: &Workplace) -> Result<Meta, Failure> {
    let agents = workplace.agents()?;
    let parent = agents.find(of)?;
    let refused = |message: String, hint: &str| {
        let error = Failure::usage("cannot_fork", message);
        Err(error.with_hint(hint))
    };
    // Whoever is a copy makes none, of whomever.
    if let Some(run) = workplace.run() {
        let own = agents.run(run);
        if let Err(error) = may_fork(own.meta()?.fork, &own.prompt()?) {
            return refused(error.to_string(), "do it yourself");
        }
    }
    let prompt = agents.run(&parent.agent_id).prompt()?;
    if let Err(error) = may_fork(parent.fork, &prompt) {
        return refused(error.to_string(), "fork the agent it is a copy of");
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let spec = &parent.runtime;
    let can = spec
        .find(&path)
        .is_ok_and(|runtime| runtime.abilities().fork);
    if !can {
        let message = format!(
            "the runtime {:?} of {of} cannot copy a conversation",
            spec.name
        );
        return refused(
            message,
            "start a new agent with --type and tell it what it needs to know",
        );
    }
    if parent.session.is_none() {
        let message = format!("{of} has no conversation yet that could be copied");
        return refused(message, "wait until it has begun");
    }
    Ok(parent)
}

/// A copy is told exactly what its original was told, so that its requests begin with the same
/// bytes.
pub(super) fn fork_plan(parent: &Meta, wish: &Wish, workplace: &Workplace) -> LaunchPlan {
    let mut plan = LaunchPlan {
        fork_of: parent.session.clone(),
        fork_from: Some(parent.cwd.clone()),
        ..parent.launch.clone()
    };
    let turns = plan.max_turns;
    plan.limit(&limits(wish, turns, workplace));
    let standing = Standing::of(parent);
    plan.role = Some(standing);
    if standing.leads() {
        // A team has one lead: a copy of it takes part like any other.
        plan.role = Some(Standing::Teammate);
        let own = plan.mcp_servers.iter_mut().filter(|it| it.name == "ccb");
        for arg in own.flat_map(|server| &mut server.args) {
            if arg == Role::Lead.as_str() || arg == Role::Coordinator.as_str() {
                *arg = Role::Teammate.as_str().to_owned();
            }
        }
    }
    plan
}
