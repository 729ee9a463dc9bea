use std::io::{IsTerminal, Read};
use std::path::PathBuf;

use clap::Args;
use coordinator::run::{Isolation, LaunchPlan, Spawn};
use serde_json::json;
use store::name::Name;
use swarm::LEAD;
use swarm::run::RuntimeSpec;
use taskboard::Task;

use super::output::{self, Waiting};
use crate::commands::task::id;
use crate::commands::worktree::{NewTree, Wanted};
use crate::context::Context;
use crate::error::{CommandError, Exit};
use crate::output::{BOLD, DIM, GREEN, clean_line};

#[derive(Debug, Args)]
pub(crate) struct SpawnArgs {
    /// What it is to do; with the runtime `shell` a command; `-` reads it from stdin
    /// [default: the task's command]
    #[arg(allow_hyphen_values = true)]
    prompt: Option<String>,
    /// The agent's definition [default: general-purpose]
    #[arg(long = "type", value_name = "TYPE", conflicts_with = "fork")]
    agent_type: Option<String>,
    /// Continue the conversation of this agent
    #[arg(long, value_name = "PARENT")]
    fork: Option<String>,
    /// What runs it: shell, or one of `runtimes` in the settings
    #[arg(long, value_name = "NAME")]
    runtime: Option<String>,
    /// A name it can be addressed by; with --team it becomes a member of the team
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Do not wait for its result
    #[arg(long, visible_alias = "bg")]
    background: bool,
    /// Wait for its result however long that takes
    #[arg(long, conflicts_with = "background")]
    wait: bool,
    /// Let it work in a worktree of its own
    #[arg(long, value_name = "HOW")]
    isolation: Option<String>,
    /// Let it work in this directory [default: here]
    #[arg(long, value_name = "DIR", conflicts_with = "isolation")]
    cwd: Option<PathBuf>,
    /// The model it uses
    #[arg(long, value_name = "MODEL")]
    model: Option<String>,
    /// How it starts; only `plan`, and only for teammates
    #[arg(long, value_name = "MODE")]
    mode: Option<String>,
    /// Claim this task for it; its lease ends with the agent
    #[arg(long, value_name = "ID", allow_negative_numbers = true)]
    task: Option<String>,
    /// What it is to do in a few words [default: the prompt's beginning]
    #[arg(long, value_name = "TEXT")]
    description: Option<String>,
    /// Pass on this variable of your environment (may be repeated)
    #[arg(long = "env", value_name = "NAME[=VALUE]")]
    env: Vec<String>,
    #[command(flatten)]
    tree: NewTree,
}

pub(crate) fn run(args: &SpawnArgs, context: &mut Context) -> Result<Exit, CommandError> {
    let agents = context.agents()?;
    let spawn = request(args, context)?;
    let prompt = spawn.prompt.clone();
    let background = spawn.background || spawn.teammate;
    let launched = agents.spawn(Spawn {
        background,
        ..spawn
    })?;
    if !background {
        let limit = (!args.wait).then(|| context.auto_background()).flatten();
        let waiting = Waiting { limit, stop: true };
        return output::wait_and_print(&agents, launched, &waiting, context);
    }
    let answer = launched.to_json(&prompt);
    let meta = &launched.meta;
    context.out.answer(
        || json!({ "agent": answer }),
        || {
            let name = clean_line(meta.address());
            format!(
                "{GREEN}✔{GREEN:#} started {BOLD}{name}{BOLD:#} {}\n  {DIM}`ccb agent logs -f {name}` \
                 shows what it does, `ccb agent output {name}` waits for its result{DIM:#}",
                clean_line(&meta.description)
            )
        },
    )?;
    Ok(Exit::Done)
}

/// What flags, settings and the task say together.
fn request(args: &SpawnArgs, context: &Context) -> Result<Spawn, CommandError> {
    let task = match &args.task {
        Some(given) => Some(context.board().get(id(given)?)?),
        None => None,
    };
    let runtime = runtime(args, task.as_ref(), context)?;
    let prompt = prompt(args, &runtime, task.as_ref())?;
    let teammate = args.name.is_some() && context.team_is_explicit();
    let plan_mode = match args.mode.as_deref() {
        None => false,
        Some("plan") => true,
        Some(other) => {
            let message = format!("--mode {other:?}: only \"plan\" can be asked for");
            return Err(CommandError::usage("bad_mode", message)
                .with_hint("what an agent may do is part of its definition (permissionMode)"));
        }
    };
    if args.fork.is_some() {
        let message = format!("runtime {:?} cannot fork a conversation", runtime.name);
        return Err(CommandError::usage("cannot_fork", message));
    }
    let description = match (&args.description, &task) {
        (Some(text), _) => text.clone(),
        (None, Some(task)) => task.subject.clone(),
        (None, None) => prompt.trim_start().chars().take(60).collect(),
    };
    Ok(Spawn {
        prompt,
        description,
        agent_type: args.agent_type.clone().unwrap_or("general-purpose".into()),
        runtime,
        name: args
            .name
            .as_deref()
            .map(|name| Name::new("agent", name))
            .transpose()?,
        teammate,
        plan_mode,
        fork: false,
        model: args.model.clone(),
        permission_mode: None,
        isolation: isolation(args, context)?,
        task: task.map(|task| task.id),
        background: args.background,
        parent: parent(context)?,
        tool_use_id: None,
        plan: plan(args)?,
    })
}

/// Whoever is inside an agent started this one; everybody else stands in for the lead.
fn parent(context: &Context) -> Result<Name, CommandError> {
    match Context::own_run() {
        Some(_) => Ok(context.agent_name().clone()),
        None => Ok(Name::new("agent", LEAD)?),
    }
}

fn runtime(
    args: &SpawnArgs,
    task: Option<&Task>,
    context: &Context,
) -> Result<RuntimeSpec, CommandError> {
    let runs_command = args.prompt.is_none() && task.is_some_and(|t| t.run_command().is_some());
    match &args.runtime {
        Some(name) => context.runtime(name),
        None if runs_command => context.runtime("shell"),
        None => context.default_runtime(),
    }
}

fn prompt(
    args: &SpawnArgs,
    runtime: &RuntimeSpec,
    task: Option<&Task>,
) -> Result<String, CommandError> {
    let given = match args.prompt.as_deref() {
        Some("-") => Some(from_stdin()?),
        Some(text) => Some(text.to_owned()),
        None => None,
    };
    let shell = runtime.kind == "shell";
    let command = task.and_then(Task::run_command).map(str::to_owned);
    let prompt = match (given, command, task) {
        (Some(text), _, _) => text,
        (None, Some(command), _) => command,
        (None, None, Some(task)) if !shell => {
            format!("{}\n\n{}", task.subject, task.description)
        }
        (None, None, Some(task)) => {
            let message = format!("task {} has no command to run", task.id);
            return Err(CommandError::usage("no_prompt", message)
                .with_hint("give the command as PROMPT, or `ccb task update ID --run CMD`"));
        }
        (None, None, None) => {
            return Err(CommandError::usage("no_prompt", "say what it is to do")
                .with_hint("give a PROMPT, or --task ID of a task that has a command"));
        }
    };
    // A command that ends well is only done if the task's check says so, too.
    match task.and_then(Task::verify_command) {
        Some(verify) if shell => {
            let (run, check) = (quoted(&prompt), quoted(verify));
            Ok(format!("/bin/sh -c {run} && /bin/sh -c {check}"))
        }
        _ => Ok(prompt),
    }
}

/// `text` as one word of the shell.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

fn from_stdin() -> Result<String, CommandError> {
    let stdin = std::io::stdin();
    if stdin.is_terminal() {
        return Err(CommandError::usage(
            "no_prompt",
            "the prompt is to come from stdin, which is a terminal",
        ));
    }
    let mut text = String::new();
    stdin.lock().read_to_string(&mut text).map_err(|error| {
        CommandError::usage("no_prompt", format!("cannot read the prompt: {error}"))
    })?;
    Ok(text)
}

fn isolation(args: &SpawnArgs, context: &Context) -> Result<Isolation, CommandError> {
    match args.isolation.as_deref() {
        None => {
            let dir = match &args.cwd {
                Some(dir) => context.directory.join(dir),
                None => context.directory.clone(),
            };
            Ok(Isolation::Directory(dir))
        }
        Some("worktree") => {
            let Wanted { base, set_up } = args.tree.wanted(context)?;
            Ok(Isolation::Worktree { base, set_up })
        }
        Some("remote") => Err(CommandError::usage(
            "bad_isolation",
            "--isolation remote: agents run on this machine only",
        )
        .with_hint("use --isolation worktree")),
        Some(other) => {
            let message = format!("--isolation {other:?}: only \"worktree\" is known");
            Err(CommandError::usage("bad_isolation", message))
        }
    }
}

fn plan(args: &SpawnArgs) -> Result<LaunchPlan, CommandError> {
    let mut plan = LaunchPlan::default();
    for given in &args.env {
        match given.split_once('=') {
            Some(("", _)) => {
                let message = format!("--env {given:?}: a variable needs a name");
                return Err(CommandError::usage("bad_env", message));
            }
            Some((name, value)) => {
                plan.env.insert(name.to_owned(), value.to_owned());
            }
            None => plan.pass_env.push(given.clone()),
        }
    }
    Ok(plan)
}
