//! The limits of an agent's rights: those of its definition, and never more than its starter has.

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

/// The tools a teammate needs: to report on its task, and to answer.
const NEEDED: [&str; 2] = ["TaskUpdate", "SendMessage"];

/// The widest rights that can be given.
#[derive(Debug, Default)]
pub struct Bounds {
    tools: ToolFilter,
    /// `None` means any mode.
    mode: Option<PermissionMode>,
    /// True if the starter's program asks before it does more.
    asks: bool,
    /// The runtime of the starter.
    runtime: Option<String>,
}

/// An agent's tools and mode, within the bounds.
#[derive(Debug)]
pub struct Share {
    /// Its tools.
    pub tools: ToolFilter,
    /// The reach of the tools.
    pub reach: Reach,
    /// The mode: actions allowed without asking.
    pub mode: PermissionMode,
    /// The widest mode that a later request can set.
    most: Option<PermissionMode>,
}

impl Bounds {
    /// The bounds of the caller: an agent gives others the rights it has itself, a person any. An
    /// agent whose rights cannot be read gives none.
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
            // An agent that only delegates gives more than it has itself.
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

    /// The part of `tools` and `mode` that is within the bounds.
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

    /// Refuses a program that does not ask for permission, if the starter has to ask or may not run
    /// commands.
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
    /// Writes the share into the launch plan, for the agent's program, its server, and the agents
    /// it starts.
    pub fn put_into(&self, plan: &mut LaunchPlan) {
        plan.tools = self.tools.allowed().map(<[String]>::to_vec);
        plan.disallowed_tools = self.tools.disallowed().to_vec();
        plan.reach = self.reach;
        plan.most_mode = self.most.map(|mode| mode.as_str().to_owned());
    }

    /// The same as grants: the rights that an agent without tools of its own can give.
    pub fn to_grants(&self) -> Grants {
        Grants {
            tools: self.tools.allowed().map(<[String]>::to_vec),
            disallowed_tools: self.tools.disallowed().to_vec(),
            mode: Some(self.mode.as_str().to_owned()),
        }
    }
}

/// True if a program of this kind runs without asking for permission.
fn runs_unasked(runtime: &RuntimeSpec) -> bool {
    matches!(runtime.kind, RuntimeKind::Shell | RuntimeKind::Lines)
}

/// The tools of ccb that the filter leaves a role.
pub fn own_tools(role: Role, filter: &ToolFilter) -> Vec<&'static str> {
    let all = role.tools().into_iter();
    all.filter(|tool| filter.permits_own(tool)).collect()
}

/// The tools a teammate with this filter lacks, in words.
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

/// The parts that an agent about to start will lack, in words: tools of a teammate, its model,
/// hooks of its definition.
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

/// The hooks of its definition that will not run: their events happen only inside Claude Code.
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

/// An agent that does not lead adds no member to its team, and no agent it starts has the name of a
/// member: mail to that member would reach the agent.
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
