//! Combines a request for an agent with its definition and the settings.
//!
//! The command line and the `Agent` tool have different forms of requests; from here on they are
//! the same.

use std::path::PathBuf;

use project::workplace::Workplace;
use runs::env;
use runs::identity::Standing;
use runs::{DefinedHooks, LaunchPlan, MadeBy, Prove, Spawn, WorksIn};
use store::Failure;
use store::agent_id::LEAD;
use store::name::Name;
use store::settings::AgentLimits;
use swarm::definitions::{self, Definition, Definitions, Found, PermissionMode};
use swarm::memory;
use swarm::run::{FileRules, RuntimeSpec};
use swarm::runtime::{McpServer, RuntimeKind};
use swarm::tools::{OWN_SERVER, ToolFilter};
use swarm::trust::Item;
use taskboard::Task;
use uuid::Uuid;
use worktrees::{Base, SetUp};

use super::bounds::{Bounds, Share, own_tools};
use super::definition_keys;
use super::fork::{fork_plan, forked};
use super::models::{known_model, model};
use super::providers::put_provider;
use super::role::Role;
use super::runtimes::runtime;
use super::sandbox;

/// The agent type if a request names none.
const GENERAL: &str = "general-purpose";
/// Agent types outside of a team, which get none of its tools.
const ALONE: &[&str] = &["Explore", "Plan", "worker"];

/// A request for an agent.
#[derive(Debug, Clone, Default)]
pub struct Wish {
    /// The work.
    pub prompt: Option<String>,
    /// The work in a few words.
    pub description: Option<String>,
    /// The agent type.
    pub agent_type: Option<String>,
    /// The agent it is to be a copy of.
    pub fork: Option<String>,
    /// The last line of that agent's conversation that the copy knows.
    pub fork_at: Option<Uuid>,
    /// The runtime.
    pub runtime: Option<String>,
    /// The address.
    pub name: Option<String>,
    /// True if it becomes a member of the team.
    pub teammate: bool,
    /// The role that decides its tools of ccb.
    pub role: Role,
    /// True if its plan must be approved first.
    pub plan_mode: bool,
    /// True if the caller does not wait for it.
    pub background: bool,
    /// The worktree of its own; `None` if it gets none.
    pub worktree: Option<(Base, SetUp)>,
    /// The directory of its work.
    pub cwd: Option<PathBuf>,
    /// Its model.
    pub model: Option<String>,
    /// The permission mode; `None` leaves it to its definition.
    pub permission_mode: Option<PermissionMode>,
    /// True if the call comes from a coordinator, which does not choose models.
    pub coordinator: bool,
    /// The task it is for.
    pub task: Option<Task>,
    /// The id of the tool call with the request.
    pub tool_use_id: Option<String>,
    /// Variables it gets or inherits.
    pub env: Vec<String>,
    /// Its limits.
    pub limits: AgentLimits,
}

/// Combines everything into a spawn.
pub fn describe(
    wish: &Wish,
    definitions: &Definitions,
    workplace: &Workplace,
) -> Result<Spawn, Failure> {
    let agent_type = wish.agent_type.as_deref().unwrap_or(GENERAL);
    let found = definitions.get(agent_type)?;
    let definition = &found.definition;
    let parent_run = wish
        .fork
        .as_deref()
        .map(|of| forked(of, wish, workplace))
        .transpose()?;
    let runtime = match &parent_run {
        Some(parent) => parent.meta.runtime.clone(),
        None => runtime(wish, definition, workplace)?,
    };
    let bounds = Bounds::of_caller(workplace)?;
    bounds.check_runtime(&runtime)?;
    let shell = !runtime.kind.has_model();
    let prompt = prompt(wish, definition, shell)?;
    let description = match (&wish.description, &wish.task) {
        (Some(text), _) => text.clone(),
        (None, Some(task)) => task.subject.clone(),
        (None, None) => prompt.trim_start().chars().take(60).collect(),
    };
    let name = wish.name.as_deref();
    let name = name.map(|name| Name::new("agent", name)).transpose()?;
    let mut plan = match &parent_run {
        Some(parent) => fork_plan(parent, wish, workplace)?,
        None => plan(wish, found, shell, workplace)?,
    };
    let share = match &parent_run {
        Some(parent) => {
            let tools = ToolFilter::new(plan.tools.clone(), plan.disallowed_tools.clone());
            let mode = parent.meta.permission_mode.as_deref().unwrap_or_default();
            bounds.share(&tools, PermissionMode::of_agent(mode).unwrap_or_default())
        }
        None => own_share(&bounds, wish, definition, &runtime, &mut plan)?,
    };
    share.put_into(&mut plan);
    plan.sandbox = sandbox::of(&runtime, workplace)?;
    let (model, dropped_model) = match (&parent_run, runtime.kind) {
        (Some(parent), _) => (parent.meta.model.clone(), None),
        (None, RuntimeKind::Native) => {
            let model = model(wish, definition, workplace);
            put_provider(model, &runtime, &mut plan, workplace)?
        }
        (None, _) => known_model(model(wish, definition, workplace), &runtime, workplace),
    };
    Ok(Spawn {
        id: None,
        description,
        agent_type: definition.name.to_string(),
        name,
        teammate: wish.teammate,
        lead: wish.role.leads(),
        plan_mode: wish.plan_mode,
        fork: parent_run.is_some(),
        model,
        dropped_model,
        permission_mode: Some(share.mode.as_str().to_owned()),
        isolation: match (&parent_run, &wish.worktree, &wish.cwd) {
            // A copy works in the directory of its original, if that still exists.
            (Some(parent), None, None) if parent.meta.cwd.is_dir() => {
                WorksIn::Directory(parent.meta.cwd.clone())
            }
            _ => isolation(wish, definition, workplace)?,
        },
        task: wish.task.as_ref().map(|task| task.id),
        background: wish.background
            || wish.teammate
            || (definition.background && !env::is_set(env::NO_BACKGROUND)),
        parent: parent(workplace)?,
        tool_use_id: wish.tool_use_id.clone(),
        plan,
        runtime,
        prompt,
    })
}

/// The agent's share of its definition's tools and mode, and of ccb's tools.
fn own_share(
    bounds: &Bounds,
    wish: &Wish,
    definition: &Definition,
    runtime: &RuntimeSpec,
    plan: &mut LaunchPlan,
) -> Result<Share, Failure> {
    let tools = ToolFilter::of(definition);
    let mut share = bounds.share(&tools, permission_mode(wish, definition, runtime));
    if wish.plan_mode {
        let after = wish.permission_mode.unwrap_or(definition.permission_mode);
        let after = bounds.share(&tools, after).mode;
        let works = after != PermissionMode::Plan;
        plan.mode_before_plan = works.then(|| after.as_str().to_owned());
    }
    if wish.role == Role::Coordinator {
        // No tools of its own that read, edit or run; the agents it starts have them.
        let given = bounds.share(&tools, definition.permission_mode);
        plan.grants = Some(given.to_grants());
        let ours = ToolFilter::new(Some(vec![format!("mcp__{OWN_SERVER}")]), Vec::new());
        share = bounds.share(&ours.within(&tools), share.mode);
    }
    let alone = ALONE.contains(&definition.name.as_str()) || wish.role == Role::Worker;
    let shell = !runtime.kind.has_model();
    if !alone && !shell && !own_tools(wish.role, &share.tools).is_empty() {
        plan.mcp_servers.insert(0, own_server(wish.role)?);
    }
    Ok(share)
}

/// The permission mode. A coordinator has no tools that would ask; if a program cannot be limited
/// to them, it runs read-only, and its permission requests are refused.
fn permission_mode(wish: &Wish, definition: &Definition, runtime: &RuntimeSpec) -> PermissionMode {
    match (wish.plan_mode, wish.role) {
        (true, _) => PermissionMode::Plan,
        (false, Role::Coordinator) => match runtime.kind {
            RuntimeKind::Codex => PermissionMode::Plan,
            // In their plan modes some programs also lose the tools of ccb.
            RuntimeKind::Acp if !can_be_held(runtime) => PermissionMode::Plan,
            _ => PermissionMode::Ask,
        },
        (false, _) => wish.permission_mode.unwrap_or(definition.permission_mode),
    }
}

/// True if the program can be kept from its own tools.
fn can_be_held(runtime: &RuntimeSpec) -> bool {
    let path = swarm::starter::own_variable("PATH").unwrap_or_default();
    let found = runtime.find(&path);
    found.is_ok_and(|runtime| runtime.abilities().read_only)
}

/// The limits: those of the request, else those of the settings. An agent cannot give another one
/// more than the settings do.
pub(super) fn limits(wish: &Wish, turns: Option<u32>, workplace: &Workplace) -> AgentLimits {
    let settings = workplace.settings().limits.agent;
    let definition = AgentLimits {
        turns,
        ..AgentLimits::default()
    };
    match workplace.run() {
        Some(_) => wish.limits.or(definition).and(settings),
        None => wish.limits.or(definition.and(settings)),
    }
}

/// The parent: the agent that the caller runs inside, else the lead.
fn parent(workplace: &Workplace) -> Result<Name, Failure> {
    match workplace.run() {
        Some(_) => Ok(workplace.agent_name().clone()),
        None => Ok(Name::new("agent", LEAD)?),
    }
}

fn prompt(wish: &Wish, definition: &Definition, shell: bool) -> Result<String, Failure> {
    let task = wish.task.as_ref();
    let command = task.and_then(Task::run_command).map(str::to_owned);
    let prompt = match (wish.prompt.clone(), command, task) {
        (Some(text), _, _) => text,
        (None, Some(command), _) => command,
        (None, None, Some(task)) if !shell => {
            format!("{}\n\n{}", task.subject, task.description)
        }
        (None, None, Some(task)) => {
            let message = format!("task {} has no command to run", task.id);
            return Err(Failure::usage("no_prompt", message)
                .with_hint("give the command as PROMPT, or `ccb task update ID --run CMD`"));
        }
        (None, None, None) => {
            return Err(Failure::usage("no_prompt", "say what it is to do")
                .with_hint("give a PROMPT, or --task ID of a task that has a command"));
        }
    };
    Ok(match &definition.initial_prompt {
        Some(first) if !shell => format!("{first}\n\n{prompt}"),
        _ => prompt,
    })
}

fn isolation(
    wish: &Wish,
    definition: &Definition,
    workplace: &Workplace,
) -> Result<WorksIn, Failure> {
    if let Some((base, set_up)) = &wish.worktree {
        let (base, set_up) = (base.clone(), set_up.clone());
        return Ok(WorksIn::Worktree {
            base,
            set_up,
            made_by: MadeBy::Starter,
        });
    }
    match (&wish.cwd, definition.isolation) {
        (Some(dir), _) => Ok(WorksIn::Directory(workplace.directory.join(dir))),
        (None, Some(definitions::Isolation::Worktree)) => {
            let (base, set_up) = workplace.usual_tree()?;
            let instead = "use a definition without `isolation: worktree`";
            workplace.check_isolation(Some(&set_up), instead)?;
            Ok(WorksIn::Worktree {
                base,
                set_up,
                made_by: MadeBy::Starter,
            })
        }
        (None, None) => Ok(WorksIn::Directory(workplace.directory.clone())),
    }
}

fn plan(
    wish: &Wish,
    found: &Found,
    shell: bool,
    workplace: &Workplace,
) -> Result<LaunchPlan, Failure> {
    let definition = &found.definition;
    let settings = workplace.agent_settings();
    let mut plan = LaunchPlan {
        color: definition.color.clone(),
        redact_env: settings.redact.clone(),
        role: Some(standing(wish, definition)),
        worker: wish.role == Role::Worker,
        only_given_servers: !settings.user_mcp_servers,
        // Its task's check decides when it is done, too.
        prove: proof(wish, workplace)?,
        ..LaunchPlan::default()
    };
    for setting in &settings.env {
        // A repository does not get the user's environment by asking for it.
        if workplace.may_use(&setting.file, |_| Item::environment(setting))? {
            plan.pass_env.push(setting.pattern.clone());
        }
    }
    for given in &wish.env {
        match given.split_once('=') {
            Some(("", _)) => {
                let message = format!("--env {given:?}: a variable needs a name");
                return Err(Failure::usage("bad_env", message));
            }
            Some((name, value)) => {
                plan.env.insert(name.to_owned(), value.to_owned());
            }
            None => plan.pass_env.push(given.clone()),
        }
    }
    let turns = definition.max_turns.filter(|_| !shell);
    plan.limit(&limits(wish, turns, workplace));
    plan.hooks = (!definition.hooks.is_empty()).then(|| DefinedHooks {
        source: found.source.clone(),
        events: definition.hooks.clone(),
    });
    plan.config_of = definition_keys::config_of(workplace);
    if shell {
        return Ok(plan);
    }
    plan.system_prompt = Some(system_prompt(definition, &mut plan, workplace));
    plan.effort = definition.effort.map(|effort| effort.to_string());
    definition_keys::apply(found, &mut plan, workplace)?;
    Ok(plan)
}

/// The required proof of its task.
pub(super) fn proof(wish: &Wish, workplace: &Workplace) -> Result<Option<Prove>, Failure> {
    let Some(task) = &wish.task else {
        return Ok(None);
    };
    let check = workplace.board().check_of(task)?;
    Ok(check.map(|verify| Prove {
        verify: Some(verify),
        files: FileRules {
            paths: task.paths(),
            protect: workplace.settings().worktree.protect.clone(),
        },
        ..Prove::default()
    }))
}

/// The role in its team: the requested one, but no more than its type has tools for.
fn standing(wish: &Wish, definition: &Definition) -> Standing {
    match wish.role {
        Role::Lead => Standing::Lead,
        Role::Coordinator => Standing::Coordinator,
        Role::Teammate if !ALONE.contains(&definition.name.as_str()) => Standing::Teammate,
        Role::Teammate | Role::Worker => Standing::Worker,
    }
}

/// The definition's prompt, and the agent's memory.
fn system_prompt(definition: &Definition, plan: &mut LaunchPlan, workplace: &Workplace) -> String {
    let mut prompt = definition.prompt.clone();
    let home = workplace.home().path();
    let dir = definition
        .memory
        .and_then(|scope| memory::directory(&definition.name, scope, home, workplace.main_tree()));
    if let (Some(scope), Some(dir)) = (definition.memory, dir) {
        match memory::read(&dir) {
            Ok(content) => {
                let notes = memory::prompt(scope, &dir, &content);
                prompt = format!("{prompt}\n\n{notes}");
                if let Err(error) = store::home::create_dir(&dir) {
                    tracing::warn!(%error, "the agent's memory cannot be written");
                }
                plan.also_write.push(dir);
            }
            Err(error) => tracing::warn!(%error, "the agent's memory cannot be read"),
        }
    }
    prompt
}

/// The board and the mail, as tools.
fn own_server(role: Role) -> Result<McpServer, Failure> {
    let program = std::env::current_exe()
        .map_err(|error| Failure::failed("io", format!("cannot tell where ccb is: {error}")))?;
    Ok(McpServer {
        name: OWN_SERVER.into(),
        command: program.to_string_lossy().into_owned(),
        args: vec!["mcp".into(), "--role".into(), role.as_str().into()],
        ..McpServer::default()
    })
}
