//! `Agent`, `TaskStop` and `TaskOutput`: their arguments and the text of their answers.

use std::path::PathBuf;
use std::time::Duration;

use coordinator::agent::service::{AgentOutput, AgentResult, AgentService, Spawned, Wait};
use coordinator::agent::{Role, Wish};
use project::workplace::Workplace;
use runs::Listed;
use runs::env;
use serde_json::{Value, json};
use store::agent_id::AgentId;
use store::{Category, Failure};
use taskboard::TaskId;

use super::answer::Answer;
use super::arguments::Arguments;

/// The type of an agent that is a copy of the caller.
const FORK: &str = "fork";
/// Maximum number of agents that an error names.
const SHOWN: usize = 8;
/// Default wait of `TaskOutput`, in ms.
const TIMEOUT_MS: u64 = 30_000;

pub(super) fn spawn(
    arguments: &Arguments,
    tool_use_id: Option<String>,
    role: Role,
    context: &Workplace,
    service: &dyn AgentService,
    wait: &Wait,
) -> Result<Answer, Failure> {
    let wish = Wish {
        tool_use_id,
        ..wish(arguments, role, context)?
    };
    let spawned = service.spawn(&wish, context, wait)?;
    let mut answer = Answer::new(words(&spawned), spawned.to_json());
    if let AgentResult::Completed {
        agent_id: Some(id), ..
    } = &spawned.result
    {
        answer = answer.printed_by(&format!("ccb agent output {id}"));
    }
    Ok(Answer {
        receipt: spawned.receipt,
        ..answer
    })
}

/// The wished agent, if the role allows it and the arguments make sense.
fn wish(arguments: &Arguments, role: Role, context: &Workplace) -> Result<Wish, Failure> {
    let refused = |message: String, hint: &str| {
        Err(Failure::usage("invalid_arguments", message).with_hint(hint))
    };
    for name in ["description", "prompt"] {
        if arguments.text(name).trim().is_empty() {
            return refused(
                format!("Agent: {name:?} is empty"),
                "say what the agent is to do; it knows nothing else",
            );
        }
    }
    let worktree = match arguments.optional("isolation").as_deref() {
        None => false,
        Some("worktree") => true,
        Some("remote") => {
            return refused(
                "Agent: isolation \"remote\" is not supported".into(),
                "use \"worktree\": everything runs on this machine",
            );
        }
        Some(other) => {
            return refused(
                format!("Agent: \"isolation\" cannot be {other:?}"),
                "it takes worktree",
            );
        }
    };
    let cwd = arguments.optional("cwd");
    if worktree && cwd.is_some() {
        return refused(
            "Agent: cwd and isolation exclude each other".into(),
            "a worktree of its own is where the agent works: leave one of them out",
        );
    }
    let name = arguments.optional("name");
    let teammate = is_teammate(arguments, name.as_deref(), role, context)?;
    let plan_mode = arguments.optional("mode").is_some();
    if plan_mode && !teammate {
        return refused(
            "Agent: mode \"plan\" is for teammates".into(),
            "give it a name in your team, or leave mode out",
        );
    }
    let agent_type = arguments.optional("subagent_type");
    let fork = is_fork(agent_type.as_deref(), name.as_deref(), role, context)?;
    Ok(Wish {
        description: Some(arguments.text("description")),
        prompt: Some(arguments.text("prompt")),
        agent_type: agent_type.filter(|_| !fork),
        fork: context.run().filter(|_| fork).map(str::to_owned),
        model: arguments.optional("model"),
        // A coordinator continues while others work, and so does an agent that is copied.
        background: role == Role::Coordinator
            || fork
            || (arguments.flag("run_in_background") == Some(true)
                && !env::is_set(env::NO_BACKGROUND)),
        name,
        teammate,
        plan_mode,
        worktree: worktree.then(|| isolated(context)).transpose()?,
        cwd: cwd.map(PathBuf::from),
        coordinator: role == Role::Coordinator,
        ..Wish::default()
    })
}

/// The agent's own worktree, where that is possible.
fn isolated(context: &Workplace) -> Result<(worktrees::Base, worktrees::SetUp), Failure> {
    let (base, set_up) = context.usual_tree()?;
    // Outside of a repository, creating the worktree reports the error.
    if context.common_dir().is_some() {
        let instead = "leave out isolation: it works in the session's directory";
        context.check_isolation(Some(&set_up), instead)?;
    }
    Ok((base, set_up))
}

/// True if the agent is a copy of the caller: if the arguments say so, or they say nothing and the
/// settings do.
fn is_fork(
    subagent_type: Option<&str>,
    name: Option<&str>,
    role: Role,
    context: &Workplace,
) -> Result<bool, Failure> {
    let refused = |message: &str, hint: &str| {
        Err(Failure::usage("cannot_fork", message.to_owned()).with_hint(hint))
    };
    match subagent_type {
        Some(FORK) => {}
        None if context.agent_settings().fork_by_default => {
            let can = context.run().is_some() && role != Role::Coordinator && name.is_none();
            return Ok(can);
        }
        _ => return Ok(false),
    }
    if role == Role::Coordinator {
        return refused(
            "Agent: a coordinator makes no copies of itself",
            "start a worker and tell it everything it needs to know",
        );
    }
    if name.is_some() {
        return refused("Agent: a copy has no name of its own", "leave name out");
    }
    if context.run().is_none() {
        return refused(
            "Agent: only an agent that ccb runs can be copied",
            "name another subagent_type and tell it what it needs to know",
        );
    }
    Ok(true)
}

/// True if a new agent becomes a member of the session's own team: if it gets a name.
fn is_teammate(
    arguments: &Arguments,
    name: Option<&str>,
    role: Role,
    context: &Workplace,
) -> Result<bool, Failure> {
    if role == Role::Coordinator {
        // Workers are in no team; a name is an address.
        return Ok(false);
    }
    let given = arguments.optional("team_name");
    let own = context.named_team().map(str::to_owned);
    match (name, given) {
        (None, Some(_)) => {
            let message = "Agent: \"team_name\" without \"name\"";
            let error = Failure::usage("invalid_arguments", message);
            Err(error.with_hint("a teammate needs a name; leave team_name out for another agent"))
        }
        (_, Some(given)) if own.as_ref() != Some(&given) => Err(Failure::refused(
            "other_team",
            match own {
                Some(own) => format!("this session's team is {own}, not {given}"),
                None => format!("this session is not in team {given}"),
            },
        )
        .with_hint(match role {
            Role::Lead => "TeamCreate makes a team; a session has one",
            _ => "leave team_name out",
        })),
        (name, _) => Ok(name.is_some() && own.is_some()),
    }
}

fn words(spawned: &Spawned) -> String {
    let text = match &spawned.result {
        AgentResult::Completed {
            status,
            content,
            agent_id,
            usage,
            worktree,
        } => {
            let mut text = match content.trim() {
                "" => "(The agent ended without saying anything.)".to_owned(),
                content => content.to_owned(),
            };
            if *status != "completed" {
                text = format!("The agent did not do it ({status}).\n{text}");
            }
            if let Some(id) = agent_id {
                text.push_str(&format!("\nagentId: {id} (SendMessage resumes it)"));
            }
            if let Some((path, branch)) = worktree {
                let branch = branch.as_deref().unwrap_or("none");
                text.push_str(&format!(
                    "\nworktree with its changes: {path}, branch {branch}"
                ));
            }
            if let Some(usage) = usage {
                text.push_str(&format!(
                    "\n<usage>total_tokens: {}, tool_uses: {}, duration_ms: {}</usage>",
                    usage.total_tokens, usage.tool_uses, usage.duration_ms
                ));
            }
            text
        }
        AgentResult::AsyncLaunched {
            agent_id,
            output_file,
            ..
        } => format!(
            "Agent {agent_id} works in the background; a <task-notification> tells you when it \
                 ends. Go on with something else and do not guess its result. Its output so far: \
                 {output_file}"
        ),
        AgentResult::TeammateSpawned {
            teammate_id,
            name,
            team_name,
        } => format!(
            "{name} is in team {team_name} now (teammate_id: {teammate_id}). It takes tasks from \
                 the board and answers SendMessage."
        ),
    };
    match &spawned.note {
        Some(note) => format!("{text}\n{note}"),
        None => text,
    }
}

pub(super) fn stop(
    arguments: &Arguments,
    role: Role,
    context: &Workplace,
    service: &dyn AgentService,
) -> Result<Answer, Failure> {
    let id = agent_id(arguments, role, context, service)?;
    let stopped = service.stop(&id, context)?;
    let text = format!("Stopped agent {id} ({}).", stopped.description);
    let json = json!({
        "message": text,
        "task_id": id,
        "task_type": "local_agent",
        "agent": to_json(&id, &stopped),
    });
    Ok(Answer::new(text, json))
}

pub(super) fn output(
    arguments: &Arguments,
    role: Role,
    context: &Workplace,
    service: &dyn AgentService,
    wait: &Wait,
) -> Result<Answer, Failure> {
    let id = agent_id(arguments, role, context, service)?;
    let block = arguments.flag("block").unwrap_or(true);
    let timeout = arguments.number("timeout").unwrap_or(TIMEOUT_MS);
    let timeout_ms = Duration::from_millis(timeout);
    let (output, receipt) = service.output(&id, block, timeout_ms, context, wait)?;
    let retrieval = match (output.ended, block) {
        (true, _) => "success",
        (false, true) => "timeout",
        (false, false) => "not_ready",
    };
    let state = match retrieval {
        "timeout" => format!("{}, not done after {timeout} ms", output.status),
        _ => output.status.clone(),
    };
    let said = match output.output.trim() {
        "" => "(nothing yet)",
        said => said,
    };
    let text = format!("Agent {id} ({}): {state}\n{said}", output.description);
    let json = json!({"retrieval_status": retrieval, "task": to_json(&id, &output)});
    let answer = Answer::new(text, json).printed_by(&format!("ccb agent output {id}"));
    Ok(Answer { receipt, ..answer })
}

fn to_json(id: &str, output: &AgentOutput) -> Value {
    json!({
        "task_id": id,
        "task_type": "local_agent",
        "status": output.status,
        "description": output.description,
        "output": output.output,
    })
}

/// The id or name of an agent: not of a task, and for a teammate one of its own agents.
fn agent_id(
    arguments: &Arguments,
    role: Role,
    context: &Workplace,
    service: &dyn AgentService,
) -> Result<String, Failure> {
    let given = arguments.optional("task_id");
    // Claude Code's older name for the argument.
    let Some(id) = given.or_else(|| arguments.optional("shell_id")) else {
        let error = Failure::usage("invalid_arguments", "the argument \"task_id\" is missing");
        return Err(error.with_hint(shown(context, service)?));
    };
    if id.trim_start_matches('#').parse::<TaskId>().is_ok() {
        return Err(Failure::new(
            Category::Invalid,
            "board_task",
            format!("{id} is a task on the board, and this is about agents"),
        )
        .with_hint(format!(
            "{}; TaskUpdate changes tasks on the board",
            shown(context, service)?
        )));
    }
    let team = context.team()?;
    let address = AgentId::name_in(&id, team.as_str());
    let own = |listed: &Listed| {
        let name = listed.meta.name.as_deref();
        listed.meta.agent_id == id || name.is_some_and(|name| name.eq_ignore_ascii_case(address))
    };
    if role == Role::Teammate && !service.agents(context)?.iter().any(own) {
        return Err(
            Failure::refused("not_yours", format!("{id} is not an agent you started"))
                .with_hint(shown(context, service)?),
        );
    }
    Ok(id)
}

/// The agents in a few words: the running ones, else the latest.
fn shown(context: &Workplace, service: &dyn AgentService) -> Result<String, Failure> {
    let agents = service.agents(context)?;
    let alive: Vec<&Listed> = agents.iter().filter(|listed| listed.alive).collect();
    let chosen = match alive.is_empty() {
        true => agents.iter().collect(),
        false => alive,
    };
    let address = |listed: &&Listed| match &listed.meta.name {
        Some(name) => format!("{} ({name})", listed.meta.agent_id),
        None => listed.meta.agent_id.clone(),
    };
    let names: Vec<String> = chosen.iter().rev().take(SHOWN).map(address).collect();
    Ok(match names.is_empty() {
        true => "there are no agents of yours".to_owned(),
        false => format!("your agents: {}", names.join(", ")),
    })
}
