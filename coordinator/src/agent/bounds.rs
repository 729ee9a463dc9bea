//! How much an agent may be given: what its definition leaves it, and never more than whoever
//! starts it has.

use project::rights::{not_for, not_yours};
use project::workplace::Workplace;
use runs::{Grants, LaunchPlan, Spawn};
use store::Failure;
use swarm::definitions::PermissionMode;
use swarm::run::{Meta, RunError, RuntimeSpec};
use swarm::runtime::RuntimeKind;
use swarm::tools::{Reach, ToolFilter};

use super::definition_keys::is_inside_program;
use super::describe::Wish;
use crate::actions::recipients;
use crate::agent::Role;

/// What a teammate cannot do without: to say how far its task is, and to answer.
const NEEDED: [&str; 2] = ["TaskUpdate", "SendMessage"];

/// The most that can be given.
#[derive(Debug, Default)]
pub struct Bounds {
    tools: ToolFilter,
    /// None: any.
    mode: Option<PermissionMode>,
    /// Whoever starts the agent has a program that asks before it does more.
    asks: bool,
    /// What runs whoever starts the agent.
    runtime: Option<String>,
}

/// An agent's tools and mode, within the bounds.
#[derive(Debug)]
pub struct Share {
    /// Its tools.
    pub tools: ToolFilter,
    /// How far they go.
    pub reach: Reach,
    /// What it may do without asking.
    pub mode: PermissionMode,
    /// No order makes the mode wider than this.
    most: Option<PermissionMode>,
}

impl Bounds {
    /// Of whoever asks: an agent gives others what it has itself, a person anything.
    /// One of which nobody can read what it has gives nothing.
    pub fn of_caller(workplace: &Workplace) -> Result<Self, Failure> {
        let Some(id) = workplace.run() else {
            return Ok(Self::default());
        };
        match workplace.agents()?.run(id).meta() {
            Err(RunError::NotFound { .. }) => Ok(Self::default()),
            meta => Ok(Self::of(&meta?)),
        }
    }

    fn of(meta: &Meta) -> Self {
        let plan = meta.launch.clone();
        let mode = |word: Option<&str>| PermissionMode::of_agent(word.unwrap_or_default());
        match plan.grants {
            // One that only delegates gives more than it has itself.
            Some(grants) => Self {
                tools: ToolFilter::new(grants.tools, grants.disallowed_tools),
                mode: mode(grants.mode.as_deref()),
                asks: false,
                runtime: None,
            },
            None => Self {
                tools: ToolFilter::new(plan.tools, plan.disallowed_tools),
                mode: mode(meta.permission_mode.as_deref()),
                asks: !runs_unasked(&meta.runtime),
                runtime: Some(meta.runtime.name.clone()),
            },
        }
    }

    /// What is left of `tools` and `mode`.
    pub fn share(&self, tools: &ToolFilter, mode: PermissionMode) -> Share {
        let tools = tools.within(&self.tools);
        let reach = tools.reach();
        let most = match (reach.is_read_only(), self.mode) {
            (true, Some(mode)) => Some(mode.at_most(PermissionMode::Ask)),
            (true, None) => Some(PermissionMode::Ask),
            (false, most) => most,
        };
        Share {
            mode: most.map_or(mode, |most| mode.at_most(most)),
            most,
            tools,
            reach,
        }
    }

    /// Refuses a program that asks nobody to one that has to ask, or that may not run commands.
    pub fn check_runtime(&self, runtime: &RuntimeSpec) -> Result<(), Failure> {
        let same = self.runtime.as_ref() == Some(&runtime.name) && runtime.kind.has_model();
        if !runs_unasked(runtime) || same {
            return Ok(());
        }
        let free = self.mode.is_none_or(|mode| mode == PermissionMode::Bypass);
        let why = if !self.tools.permits_any_command() {
            "whoever starts it may not run commands itself"
        } else if self.asks && !free {
            "whoever starts it has to ask before it runs one"
        } else {
            return Ok(());
        };
        Err(Failure::refused(
            "wider_than_parent",
            format!(
                "the runtime {:?} runs commands without asking, and {why}",
                runtime.name
            ),
        )
        .with_hint("leave --runtime out, or have the lead start it"))
    }
}

impl Share {
    /// Writes it down, for the agent's program, for its server, and for those it starts.
    pub fn put_into(&self, plan: &mut LaunchPlan) {
        plan.tools = self.tools.allowed().map(<[String]>::to_vec);
        plan.disallowed_tools = self.tools.disallowed().to_vec();
        plan.reach = self.reach;
        plan.most_mode = self.most.map(|mode| mode.as_str().to_owned());
    }

    /// The same, as what an agent gives that has none of it itself.
    pub fn to_grants(&self) -> Grants {
        Grants {
            tools: self.tools.allowed().map(<[String]>::to_vec),
            disallowed_tools: self.tools.disallowed().to_vec(),
            mode: Some(self.mode.as_str().to_owned()),
        }
    }
}

/// Whether a program of this kind does what it is told without asking anybody.
fn runs_unasked(runtime: &RuntimeSpec) -> bool {
    matches!(runtime.kind, RuntimeKind::Shell | RuntimeKind::Lines)
}

/// Those of our tools that the filter leaves a role.
pub fn own_tools(role: Role, filter: &ToolFilter) -> Vec<&'static str> {
    let all = role.tools().into_iter();
    all.filter(|tool| filter.permits_own(tool)).collect()
}

/// What a teammate with these tools misses, in words.
pub fn missing_as_teammate(filter: &ToolFilter) -> Option<String> {
    let missing = NEEDED.iter().filter(|tool| !filter.permits_own(tool));
    let missing: Vec<&str> = missing.copied().collect();
    (!missing.is_empty()).then(|| {
        format!(
            "its definition leaves a teammate without {}; add them to its `tools`, or mcp__ccb \
             for all of ccb's",
            missing.join(" and ")
        )
    })
}

/// What an agent that is about to be started will not have, in words: tools of a teammate, its
/// model, hooks of its definition.
pub fn warning(spawn: &Spawn) -> Option<String> {
    let plan = &spawn.plan;
    let filter = ToolFilter::new(plan.tools.clone(), plan.disallowed_tools.clone());
    let model = spawn.runtime.kind.has_model();
    let missing = missing_as_teammate(&filter).filter(|_| spawn.teammate && model);
    let missing = missing.map(|missing| format!("{}: {missing}", spawn.agent_type));
    let dropped = spawn.dropped_model.as_ref().map(|model| {
        let runtime = &spawn.runtime.name;
        format!(
            "{runtime} does not know the model {model:?} and takes its own; the setting \
             agents.models.{runtime}.{model} names another"
        )
    });
    let all = [missing, dropped, hooks_that_do_not_run(spawn)];
    let all: Vec<String> = all.into_iter().flatten().collect();
    (!all.is_empty()).then(|| all.join("; "))
}

/// Which hooks of its definition will not run: their events happen inside Claude Code alone.
fn hooks_that_do_not_run(spawn: &Spawn) -> Option<String> {
    let hooks = spawn.plan.hooks.as_ref()?;
    if spawn.runtime.kind == RuntimeKind::Claude {
        return None;
    }
    let events = hooks.events.keys().map(String::as_str);
    let inside: Vec<&str> = events.filter(|event| is_inside_program(event)).collect();
    (!inside.is_empty()).then(|| {
        format!(
            "{}: the {} hooks of its definition do not run, because {} does not tell of such \
             events",
            spawn.agent_type,
            inside.join(" and "),
            spawn.runtime.name
        )
    })
}

/// An agent that does not lead adds nobody to its team, and nobody it starts has the name of a
/// member: mail to that one would be its mail.
pub fn may_name(wish: &Wish, workplace: &Workplace) -> Result<(), Failure> {
    let Some(name) = wish.name.as_deref().filter(|_| !workplace.who().decides()) else {
        return Ok(());
    };
    if wish.teammate {
        return Err(not_for(workplace, "adding members to the team", true));
    }
    let members = recipients::members(workplace)?;
    let taken = |member: &recipients::Member| member.name.as_str().eq_ignore_ascii_case(name);
    match members.iter().any(taken) {
        true => Err(not_yours(
            format!("{name} is a member of the team; an agent you start needs another name"),
            "give another --name, or none",
        )),
        false => Ok(()),
    }
}
