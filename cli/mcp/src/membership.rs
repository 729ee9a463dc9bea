//! The client at the other end: its role, its team, and whether its run is still valid.

use std::sync::{Arc, Mutex, PoisonError};

use store::Failure;
use store::name::Name;
use swarm::run::RunError;
use team::{NewMember, TeamError};

use coordinator::actions::plan_mode::plans;
use coordinator::actions::team::directory;
use coordinator::agent::Role;
use project::workplace::Workplace;
use runs::Outside;
use runs::env;

/// One client's membership. Its identity is fixed; its team can change if it leads one.
#[derive(Debug)]
pub(crate) struct Membership {
    pub(crate) role: Role,
    context: Mutex<Arc<Workplace>>,
    /// Holds the claims of a client that ccb did not start.
    outside: Mutex<Option<Outside>>,
}

impl Membership {
    /// The member of `role`, as far as the context identifies it.
    pub(crate) fn new(role: Role, mut context: Workplace) -> Result<Self, Failure> {
        if context.named_agent().is_none() {
            match role {
                Role::Teammate => {
                    let message = "nobody said which teammate this is";
                    let error = Failure::usage("no_agent", message);
                    return Err(
                        error.with_hint("give its name: `ccb mcp --role teammate --as NAME`")
                    );
                }
                _ if role.leads() => context.act_as(Name::new("agent", store::agent_id::LEAD)?),
                _ => {}
            }
        }
        Ok(Self {
            role,
            context: Mutex::new(Arc::new(context)),
            outside: Mutex::default(),
        })
    }

    /// The client's current context.
    pub(crate) fn context(&self) -> Arc<Workplace> {
        Arc::clone(&self.context.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Sets the team that the client leads from now on.
    pub(crate) fn take_team(&self, team: &Name) {
        self.change(|context| context.lead(team));
    }

    /// The client leads no team any more.
    pub(crate) fn drop_team(&self) {
        self.change(|context| context.lead_none());
    }

    fn change(&self, change: impl FnOnce(&mut Workplace)) {
        let mut context = self.context.lock().unwrap_or_else(PoisonError::into_inner);
        change(Arc::make_mut(&mut context));
    }

    /// Adds a teammate to its team's roster, if there is a team and the roster lacks it; others
    /// write to it by its name. Others see that it runs because its inbox has a reader.
    pub(crate) fn join(&self) -> Result<(), Failure> {
        let context = self.context();
        if self.role != Role::Teammate || context.run().is_some() {
            return Ok(());
        }
        // First releases the claims of a dead agent of this name.
        context.settle_dead_runs();
        let outside = context.agents()?.join_outside(context.agent_name())?;
        self.change(|context| context.hold_claims_for(outside.id()));
        *self.outside.lock().unwrap_or_else(PoisonError::into_inner) = Some(outside);
        let team = context.team_named(context.team()?);
        let known = match team.enter() {
            Ok(roster) => roster.member(context.agent()).is_some(),
            Err(TeamError::NotFound { .. }) => true,
            Err(error) => return Err(error.into()),
        };
        if known {
            return Ok(());
        }
        let new = NewMember {
            cwd: Some(directory(&context)?),
            backend_type: "external".into(),
            ..NewMember::new(context.agent_name().clone())
        };
        match team.join(&new) {
            // Another agent of that name was faster, which has the same result.
            Ok(_) | Err(TeamError::AlreadyMember { .. }) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// The client has left: its unfinished tasks are released.
    pub(crate) fn leave(&self) {
        let mut outside = self.outside.lock().unwrap_or_else(PoisonError::into_inner);
        *outside = None;
    }

    /// True if its plan needs an approval; `None` if it is not a member of its team, so that no
    /// lead would approve one.
    pub(crate) fn plans(&self) -> Option<bool> {
        if self.role != Role::Teammate {
            return None;
        }
        let context = self.context();
        let roster = context
            .team()
            .ok()
            .map(|team| context.team_named(team).roster());
        let Some(Ok(roster)) = roster else {
            return None;
        };
        roster.member(context.agent()).map(plans)
    }

    /// Refuses a client whose run has ended: other agents may have its tasks by now.
    pub(crate) fn check_run(&self) -> Result<(), Failure> {
        let context = self.context();
        let Some(run) = context.run() else {
            return Ok(());
        };
        let lost = |why: &str| {
            Failure::refused(
                "lease_lost",
                format!("run {run} {why}; what it does no longer counts"),
            )
            .with_hint("stop: its tasks may be somebody else's by now")
        };
        let dir = context.agents()?.run(run);
        let meta = match dir.meta() {
            Ok(meta) => meta,
            Err(RunError::NotFound { .. }) => return Err(lost("is unknown")),
            Err(error) => return Err(error.into()),
        };
        if !dir.is_alive()? || dir.exit(meta.life)?.is_some() {
            return Err(lost("has ended"));
        }
        if let Some(given) = env::var(env::RUN_TOKEN)
            && meta.token.map(|token| token.to_string()) != Some(given)
        {
            return Err(lost("goes on without this process"));
        }
        Ok(())
    }
}
