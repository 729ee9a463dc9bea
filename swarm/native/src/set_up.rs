//! Making an agent of what its host says.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::pin::pin;
use std::sync::Arc;

use serde_json::{Value, json};
use store::fault::hasten;
use swarm::definitions::PermissionMode;
use swarm::environment;
use swarm::process::Processes;
use swarm::provider::Providers;
use swarm::runtime::McpServer;
use swarm::sandbox::tree_around;

use super::Opening;
use super::agent::{Agent, Kept};
use super::context::Context;
use super::conversation::{Conversation, Prefix};
use super::early::Early;
use super::journal::Entry;
use super::limits::Limits;
use super::link::{Heard, Inbox, Outbox};
use super::mcp::{Mcp, McpOptions, users_servers};
use super::model::{
    Client, Fixed, Format, KEY_VARIABLES, Model, Provider, Rates, context_window, max_output,
    secret_filter, variable,
};
use super::permission::{PermissionOptions, Permissions, RuleSources, Rules};
use super::protocol::Say;
use super::sleep::SLEEPS_AFTER;
use super::tools::{Seen, Tool, ToolSpec, Toolbox, ToolboxOptions};
use super::{Options, system};

/// The reason why there is no agent, in words for people.
pub(super) type NoAgent = String;

/// The service that has the model: the one that was found for it, else what the variables say.
fn provider(opening: &Opening, env: &[(OsString, OsString)]) -> Result<Provider, NoAgent> {
    if let Some(provider) = &opening.provider {
        return Ok(provider.clone());
    }
    let var = |name: &str| variable(env, name);
    let providers = Providers {
        configured: std::collections::BTreeMap::new(),
        default: None,
        env: &var,
    };
    let found = providers.resolve(opening.model.as_deref());
    let found = found.map_err(|error| {
        format!(
            "{error}. Set ANTHROPIC_API_KEY or OPENAI_API_KEY, or name a service under `providers` \
             in ccb.json. Check with: ccb doctor --probe"
        )
    })?;
    Ok(found.provider)
}

/// Refuses an agent whose limit on cost could not hold.
fn check_limit(opening: &Opening, provider: &Provider, known: bool) -> Result<(), NoAgent> {
    match opening.max_cost_usd.filter(|_| !known) {
        None => Ok(()),
        Some(most) => Err(format!(
            "the limit of ${most:.2} cannot hold: the price of the model {:?} at {} is not known. Set \
             `modelPrices` or `prices` of the provider in ccb.json (docs/native.md), or limit tokens \
             instead (--max-tokens)",
            provider.model, provider.name
        )),
    }
}

/// The agent; it has said that it is up.
pub(super) async fn set_up(
    opening: &Opening,
    options: &Options,
    out: Outbox,
    mut inbox: Inbox,
    kept: Option<Kept>,
) -> Result<Agent, NoAgent> {
    let provider = provider(opening, &options.env)?;
    let rates = Rates::of(&provider);
    check_limit(opening, &provider, rates.is_some())?;
    let slept = kept.is_some();
    let kept = kept.unwrap_or_default();
    let mut conversation = converse(opening, &provider, slept)?;
    let words = |error: super::journal::JournalError| error.to_string();
    if !slept {
        let ready = Say::Ready {
            session: conversation.session(),
            model: provider.model.clone(),
        };
        out.say(&ready).await.map_err(|_| "nobody listens")?;
    }
    let together = options.together.as_ref();
    let limits = Limits {
        turns: opening.max_turns,
        cost_usd: opening.max_cost_usd,
        context: room(&provider),
        bytes: together.and_then(|together| together.max_bytes),
    };
    let env = options.env.clone();
    let model: Arc<dyn Model> = Arc::new(Client::new(provider.clone(), env, together.cloned()));
    let copied = prefix_of_copy(opening, &conversation);
    // Without a text it waits for one.
    let told = !opening.text.is_empty();
    let say = |conversation: &mut Conversation| conversation.say(&opening.text, None);
    let mut early = None;
    if let Some(prefix) = &copied {
        say(&mut conversation).map_err(words)?;
        let (head, _) = heads(prefix, &provider, opening.effort.as_deref());
        early = Early::ask(Arc::clone(&model), &conversation, &head, &limits, &out);
    }
    let hidden = hidden(&provider);
    let (mcp, mode) = servers(opening, options, &hidden, &mut inbox).await?;
    let context = system::context(opening, &options.env);
    let system = context.prompt(opening.system.as_deref());
    let seen = &kept.seen;
    let mut tools = toolbox(opening, options, &hidden, mcp.tools(), context, seen);
    let prefix = prefix(&conversation, system, &mut tools, slept);
    let (head, plain_head) = heads(&prefix, &provider, opening.effort.as_deref());
    conversation.begins_with(prefix).map_err(words)?;
    let tools = Arc::new(tools);
    if told && copied.is_none() {
        say(&mut conversation).map_err(words)?;
    }
    let mut agent = Agent {
        out,
        inbox,
        conversation,
        permissions: permissions(opening, &tools, &options.env),
        tools,
        head,
        plain_head,
        rates,
        limits,
        secrets: secret_filter(&provider, &options.env),
        spent: kept.spent,
        seen: kept.seen,
        model,
        early,
        mcp: Some(mcp),
        rested: !told,
        sleeps_after: together.map(|_| hasten(SLEEPS_AFTER)),
    };
    if let Some(mode) = mode.or(kept.mode) {
        let halted = |_| "nobody listens".to_owned();
        agent.set_mode(&mode).await.map_err(halted)?;
    }
    Ok(agent)
}

/// The beginning of the requests of a copy that has a message and can begin at once.
fn prefix_of_copy(opening: &Opening, conversation: &Conversation) -> Option<Prefix> {
    let told = !opening.text.is_empty() && opening.required_servers.is_empty();
    let begins = told && conversation.is_fork();
    conversation.prefix().filter(|_| begins).cloned()
}

/// The beginning of requests: the system prompt and the tools. A copy has its original's, byte for
/// byte, even if its own differ; an agent that slept has the one it had before.
fn prefix(conversation: &Conversation, system: String, tools: &mut Toolbox, slept: bool) -> Prefix {
    let known = conversation.prefix();
    if let Some(known) = known.filter(|_| conversation.is_fork() || slept) {
        tools.offer(known.tools.iter().map(spec));
        return known.clone();
    }
    let specs = tools.specs();
    let offered = specs.iter().map(|tool| {
        json!({ "name": tool.name, "description": tool.description, "inputSchema": tool.input_schema })
    });
    Prefix {
        system,
        tools: offered.collect(),
        plain: known.is_some_and(|known| known.plain),
    }
}

/// A tool as the conversation's file has it.
fn spec(tool: &Value) -> ToolSpec {
    let text = |key: &str| tool[key].as_str().unwrap_or_default().to_owned();
    ToolSpec {
        name: text("name"),
        description: text("description"),
        input_schema: tool["inputSchema"].clone(),
        reads_only: false,
    }
}

/// The beginning of every request, and the same for a model that turns out not to know how to
/// think harder.
fn heads(prefix: &Prefix, provider: &Provider, effort: Option<&str>) -> (Vec<u8>, Option<Vec<u8>>) {
    let specs: Vec<ToolSpec> = prefix.tools.iter().map(spec).collect();
    let head = |effort| {
        Format(provider.wire).head(&Fixed {
            provider,
            system: &prefix.system,
            tools: &specs,
            effort,
        })
    };
    match effort {
        Some(_) if !prefix.plain => (head(effort), Some(head(None))),
        _ => (head(None), None),
    }
}

/// Starts the agent's servers, and listens meanwhile; returns the last order about its mode.
async fn servers(
    opening: &Opening,
    options: &Options,
    hidden: &[String],
    inbox: &mut Inbox,
) -> Result<(Mcp, Option<String>), NoAgent> {
    let mut servers = opening.mcp_servers.clone();
    if !opening.only_given_servers {
        let (users, wrong) = users_servers(&opening.cwd, &options.env, opening.trusted);
        for why in wrong {
            tracing::warn!("an MCP server is left out: {why}");
        }
        let known = |server: &McpServer| servers.iter().any(|own| own.name == server.name);
        let users: Vec<McpServer> = users.into_iter().filter(|one| !known(one)).collect();
        servers.extend(users);
    }
    if servers.is_empty() && opening.required_servers.is_empty() {
        return Ok((Mcp::default(), None));
    }
    let processes = match &options.processes {
        Some(processes) => processes.clone(),
        None => Processes::own().map_err(|error| format!("no servers: {error}"))?,
    };
    let how = McpOptions {
        servers: &servers,
        required: &opening.required_servers,
        cwd: &opening.cwd,
        env: &options.env,
        withheld: hidden,
        processes: &processes,
    };
    let mut connecting = pin!(Mcp::connect(how, options.ports.connect_own.as_ref()));
    let mut mode = None;
    let mcp = loop {
        let heard = tokio::select! {
            connected = &mut connecting => break connected?,
            heard = inbox.hear() => heard,
        };
        match heard {
            Heard::Stop => return Err("it was stopped before it began".to_owned()),
            Heard::Mode(ordered) => mode = Some(ordered),
            _ => {}
        }
    };
    for absent in mcp.absent() {
        tracing::warn!("{absent}");
    }
    Ok((mcp, mode))
}

fn converse(opening: &Opening, provider: &Provider, slept: bool) -> Result<Conversation, NoAgent> {
    let dir = opening.records.as_ref().unwrap_or(&opening.scratch);
    let format = Format(provider.wire);
    let conversation = match &opening.session {
        Some(session) if opening.fork => Conversation::fork(session, opening.fork_at, dir, format),
        Some(session) => Conversation::open(session, dir, format),
        None => Conversation::create(dir, format),
    };
    let words = |error: super::journal::JournalError| error.to_string();
    let mut conversation = conversation.map_err(words)?;
    if slept {
        return Ok(conversation);
    }
    let session = Entry::Session {
        v: 1,
        cwd: opening.cwd.clone(),
        model: provider.model.clone(),
        provider: provider.name.clone(),
        fork_of: opening.session.clone().filter(|_| opening.fork),
    };
    conversation.happened(session).map_err(words)?;
    conversation.settle().map_err(words)?;
    Ok(conversation)
}

/// The variables that hold keys: nothing that the agent starts gets them.
fn hidden(provider: &Provider) -> Vec<String> {
    let all = provider.secret_variables().chain(KEY_VARIABLES);
    all.map(str::to_owned).collect()
}

fn toolbox(
    opening: &Opening,
    options: &Options,
    hidden: &[String],
    mut extra: Vec<Arc<dyn Tool>>,
    context: Context,
    seen: &Seen,
) -> Toolbox {
    let shown = |name: &OsStr| !hidden.iter().any(|hidden| name == OsStr::new(hidden));
    let env = options.env.iter().filter(|(name, _)| shown(name)).cloned();
    let env = environment::for_commands(env, &opening.pass_env);
    let scratchpad = variable(&options.env, "CCB_SCRATCHPAD").map(PathBuf::from);
    let rules = rules(opening, &options.env);
    for warning in &rules.warnings {
        tracing::warn!("{warning}");
    }
    let options = ToolboxOptions {
        processes: options.processes.clone(),
        cwd: opening.cwd.clone(),
        filter: opening.filter(),
        reach: opening.reach,
        env,
        tmp: opening.scratch.clone(),
        scratchpad,
        also_write: opening.also_write.clone(),
        also_read: context.skill_dirs(&tree_around(&opening.cwd)),
        sandbox: opening.sandbox.clone(),
        rules,
        seen: seen.clone(),
        ..ToolboxOptions::default()
    };
    extra.extend(context.skill_tool());
    let toolbox = Toolbox::telling(&options, extra, Some(context.found_below()));
    toolbox.set_mode(mode(opening));
    if let (Some(_), Err(why)) = (&opening.sandbox, toolbox.confined()) {
        tracing::warn!("{why}");
    }
    toolbox
}

fn mode(opening: &Opening) -> PermissionMode {
    let mode = opening.permission_mode.as_deref();
    let mode = mode.and_then(PermissionMode::of_agent);
    mode.unwrap_or_default()
}

/// The rules about tools in the settings files of Claude Code.
fn rules(opening: &Opening, env: &[(OsString, OsString)]) -> Rules {
    let path = |name| variable(env, name).map(PathBuf::from);
    Rules::load(&RuleSources {
        home: path("CCB_HOME"),
        tree: tree_around(&opening.cwd),
        cwd: opening.cwd.clone(),
        user: path("HOME"),
        trusted: opening.trusted,
    })
}

fn permissions(opening: &Opening, tools: &Toolbox, env: &[(OsString, OsString)]) -> Permissions {
    Permissions::new(PermissionOptions {
        mode: mode(opening),
        reach: opening.reach,
        filter: opening.filter(),
        cwd: opening.cwd.clone(),
        confined: tools.confined().is_ok(),
        network: opening.sandbox.as_ref().is_none_or(|it| it.network),
        rules: rules(opening, env),
    })
}

/// Maximum tokens of a conversation before it is made shorter.
fn room(provider: &Provider) -> u64 {
    let window = context_window(provider);
    let for_answer = max_output(provider).min(window / 4);
    window.saturating_sub(for_answer).saturating_mul(9) / 10
}
