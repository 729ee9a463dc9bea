use std::io::{IsTerminal, Read};
use std::path::PathBuf;

use super::limits::LimitArgs;
use clap::Args;
use coordinator::agent::bounds;
use coordinator::agent::definitions;
use coordinator::agent::{self, Wish};
use serde_json::json;
use store::Failure;
use swarm::definitions::PermissionMode;
use uuid::Uuid;

use super::output;
use crate::args::permission_mode;
use crate::commands::task::id;
use crate::commands::worktree::NewTree;
use crate::context::Context;
use crate::exit::Exit;
use crate::output::{BOLD, DIM, GREEN, clean_line};

#[derive(Debug, Args)]
pub(crate) struct SpawnArgs {
    /// What to do; for the runtime `shell` a command; `-` reads stdin
    /// [default: the task's command]
    #[arg(allow_hyphen_values = true)]
    prompt: Option<String>,
    /// The agent's definition [default: general-purpose]
    #[arg(long = "type", value_name = "TYPE", conflicts_with = "fork")]
    agent_type: Option<String>,
    /// Copy this agent with its conversation, running or not; the copy works in the background
    /// unless --wait is given
    #[arg(long, value_name = "PARENT", conflicts_with_all = ["runtime", "model", "permission_mode"])]
    fork: Option<String>,
    /// With --fork: copy the conversation up to this line of the agent's conversation.jsonl
    /// [default: all of it]
    #[arg(long, value_name = "UUID", requires = "fork")]
    at: Option<Uuid>,
    /// What runs it: shell, native (ccb itself), claude, codex, opencode, gemini, qwen, or one of
    /// `runtimes` in the settings [default: that of the agent that asks, else
    /// agents.defaultRuntime, else the first that is installed, else native if a key is set]
    #[arg(long, value_name = "NAME")]
    runtime: Option<String>,
    /// A name it can be addressed by; with --team it becomes a member of the team
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Do not wait for its result
    #[arg(long, visible_alias = "bg")]
    background: bool,
    /// Wait for its result, however long it takes; for a teammate until it is idle
    #[arg(long, conflicts_with = "background")]
    wait: bool,
    /// `worktree`: run it in a worktree of its own
    #[arg(long, value_name = "HOW")]
    isolation: Option<String>,
    /// Run it in this directory [default: here; with --fork where the parent works]
    #[arg(long, value_name = "DIR", conflicts_with = "isolation")]
    cwd: Option<PathBuf>,
    /// The model it uses
    #[arg(long, value_name = "MODEL")]
    model: Option<String>,
    /// What it may do without asking, with --mode plan once its plan is approved [default: what
    /// its definition says]
    #[arg(long, value_name = "MODE", value_parser = permission_mode())]
    permission_mode: Option<PermissionMode>,
    /// How it starts; only `plan`, and only for teammates
    #[arg(long, value_name = "MODE")]
    mode: Option<String>,
    /// Claim this task for it; its lease ends with the agent
    #[arg(long, value_name = "ID", allow_negative_numbers = true)]
    task: Option<String>,
    /// A short description [default: the beginning of the prompt]
    #[arg(long, value_name = "TEXT")]
    description: Option<String>,
    /// Pass this variable of your environment, or set it; can be repeated
    #[arg(long = "env", value_name = "NAME[=VALUE]")]
    env: Vec<String>,
    #[command(flatten)]
    limits: LimitArgs,
    #[command(flatten)]
    tree: NewTree,
}

pub(crate) fn run(
    args: &SpawnArgs,
    types: Option<&str>,
    context: &mut Context,
) -> Result<Exit, Failure> {
    let definitions = definitions::load(types, context)?;
    let wish = wish(args, context)?;
    bounds::may_name(&wish, context)?;
    let spawn = agent::describe(&wish, &definitions, context)?;
    if let Some(warning) = bounds::warning(&spawn) {
        tracing::warn!("{warning}");
    }
    if let Some(model) = &args.model
        && !spawn.runtime.kind.has_model()
    {
        let runtime = &spawn.runtime.name;
        let message = format!("runtime {runtime:?} runs commands and has no model {model:?}");
        return Err(Failure::usage("no_model", message)
            .with_hint("leave out --model, or name a runtime with a model: --runtime claude"));
    }
    let agents = context.agents()?;
    let launched = agents.spawn_when_possible(&spawn, |error| {
        context.out.note(&clean_line(&error.to_string()));
    })?;
    if args.wait && spawn.background {
        return output::wait_until_idle(&agents, &launched.meta, context);
    }
    if !spawn.background {
        let limit = (!args.wait).then(|| context.agent_settings().auto_background);
        return output::wait_and_print(&agents, launched, limit, context);
    }
    let answer = launched.to_json(&spawn.prompt);
    let meta = &launched.meta;
    let name = clean_line(meta.address());
    let [logs, output] = ["logs -f", "output"].map(|what| {
        let command = format!("agent {what} {name}");
        context.out.command(&command)
    });
    context.out.done(
        || json!({ "agent": answer }),
        || {
            format!(
                "{GREEN}✔{GREEN:#} started {BOLD}{name}{BOLD:#} {}\n  {DIM}follow it: {logs}\n  \
                 wait for its result: {output}{DIM:#}",
                clean_line(&meta.description)
            )
        },
    )
}

fn wish(args: &SpawnArgs, context: &Context) -> Result<Wish, Failure> {
    let plan_mode = match args.mode.as_deref() {
        None => false,
        Some("plan") => true,
        Some(other) => {
            let message = format!("--mode {other:?}: only \"plan\" can be asked for");
            return Err(Failure::usage("bad_mode", message)
                .with_hint("what an agent may do is part of its definition (permissionMode)"));
        }
    };
    Ok(Wish {
        prompt: match args.prompt.as_deref() {
            Some("-") => Some(from_stdin()?),
            other => other.map(str::to_owned),
        },
        description: args.description.clone(),
        agent_type: args.agent_type.clone(),
        fork: args.fork.clone(),
        fork_at: args.at,
        runtime: args.runtime.clone(),
        name: args.name.clone(),
        teammate: args.name.is_some() && context.team_is_explicit(),
        plan_mode,
        // The copied agent continues, and so does the agent that copies it.
        background: args.background || (args.fork.is_some() && !args.wait),
        worktree: worktree(args, context)?,
        cwd: args.cwd.clone(),
        model: args.model.clone(),
        permission_mode: args.permission_mode,
        task: match &args.task {
            Some(given) => Some(context.board().get(id(given)?)?),
            None => None,
        },
        env: args.env.clone(),
        limits: args.limits.limits(),
        ..Wish::default()
    })
}

fn from_stdin() -> Result<String, Failure> {
    let stdin = std::io::stdin();
    if stdin.is_terminal() {
        return Err(Failure::usage(
            "no_prompt",
            "the prompt is to come from stdin, which is a terminal",
        ));
    }
    let mut text = String::new();
    stdin
        .lock()
        .read_to_string(&mut text)
        .map_err(|error| Failure::usage("no_prompt", format!("cannot read the prompt: {error}")))?;
    Ok(text)
}

type Tree = (worktrees::Base, worktrees::SetUp);

fn worktree(args: &SpawnArgs, context: &Context) -> Result<Option<Tree>, Failure> {
    match args.isolation.as_deref() {
        None => Ok(None),
        Some("worktree") => {
            let (base, set_up) = context.new_tree(&args.tree.wish())?;
            let instead = "leave out --isolation: it works in this directory";
            context.check_isolation(Some(&set_up), instead)?;
            Ok(Some((base, set_up)))
        }
        Some("remote") => Err(Failure::usage(
            "bad_isolation",
            "--isolation remote: agents run on this machine only",
        )
        .with_hint("use --isolation worktree")),
        Some(other) => {
            let message = format!("--isolation {other:?}: only \"worktree\" is known");
            Err(Failure::usage("bad_isolation", message))
        }
    }
}
