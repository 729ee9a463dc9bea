//! The prompt of a coordinator: ccb's own, the user's, or the repository's.

use std::path::Path;

use crate::agent::{Role, USUAL_TYPE as WORKER, definitions};
use project::workplace::Workplace;
use store::Failure;
use swarm::run::RuntimeSpec;
use swarm::runtime::RuntimeKind;
use swarm::tools::{OWN_SERVER, ToolFilter, WORKING};
use swarm::trust::{COORDINATOR, Item, Places};

use super::Session;

/// ccb's own text.
const USUAL: &str = include_str!("coordinator.md");
/// The user's file, in the home.
const FILE: &str = "coordinator.md";
/// Maximum bytes of a file.
const MAX: usize = 256 * 1024;

/// The prompt for the coordinator of `session`, with everything filled in.
pub(super) fn text(session: &Session, runtime: &RuntimeSpec) -> Result<String, Failure> {
    let template = template(session.coordinator_prompt.as_deref(), &session.workplace)?;
    let scratchpad = session
        .workplace
        .home()
        .team(&session.team)
        .join("scratchpad");
    let prefix = prefix(runtime);
    let tools = Role::Coordinator.tools();
    let tools: Vec<String> = tools
        .iter()
        .map(|tool| format!("`{prefix}{tool}`"))
        .collect();
    let mut text = template
        .replace("{mates}", &session.record.mates.to_string())
        .replace("{scratchpad}", &scratchpad.to_string_lossy())
        .replace(
            "{into}",
            session.record.into.as_deref().unwrap_or("(no branch)"),
        )
        .replace("{worker_tools}", &worker_tools(session)?)
        .replace("{tools}", &tools.join(", "));
    for tool in Role::Coordinator.tools() {
        text = text.replace(&format!("{{{tool}}}"), &format!("{prefix}{tool}"));
    }
    Ok(text)
}

/// The flag's file, else the repository's if the user trusts it, else the user's, else ccb's.
fn template(given: Option<&Path>, workplace: &Workplace) -> Result<String, Failure> {
    if let Some(file) = given {
        let file = workplace.directory.join(file);
        return read(&file)?.ok_or_else(|| {
            let message = format!("{}: there is no such file", file.display());
            Failure::usage("no_such_file", message)
        });
    }
    if let Some(root) = workplace.main_tree()
        && let Some(text) = read(&root.join(COORDINATOR))?
    {
        let trusted = match (workplace.trust(), Item::coordinator(Places::one(root))) {
            (Some(trust), Some(item)) => trust.granted()?.contains(&item.id()),
            _ => false,
        };
        if !trusted {
            return Err(Failure::refused(
                "not_trusted",
                format!(
                    "{COORDINATOR} comes with the repository, and nobody is told what a \
                     repository says unasked"
                ),
            )
            .with_hint(
                "look at it and run `ccb trust`, or name another with --coordinator-prompt",
            ));
        }
        return Ok(text);
    }
    let own = read(&workplace.home().path().join(FILE))?;
    Ok(own.unwrap_or_else(|| USUAL.to_owned()))
}

fn read(file: &Path) -> Result<Option<String>, Failure> {
    let wrong = |why: &str| {
        let message = format!("{}: {why}", file.display());
        Failure::usage("bad_coordinator_prompt", message)
    };
    let Some(bytes) = store::atomic::read(file)? else {
        return Ok(None);
    };
    if bytes.len() > MAX {
        return Err(wrong("longer than 256 KiB"));
    }
    let text = String::from_utf8(bytes).map_err(|_| wrong("not valid UTF-8"))?;
    match text.trim().is_empty() {
        true => Err(wrong("it is empty")),
        false => Ok(Some(text)),
    }
}

/// The prefix that this runtime puts before the names of ccb's tools.
fn prefix(runtime: &RuntimeSpec) -> String {
    match (runtime.kind, runtime.name.as_str()) {
        (RuntimeKind::Lines, _) => String::new(),
        (_, "opencode") => format!("{OWN_SERVER}_"),
        _ => format!("mcp__{OWN_SERVER}__"),
    }
}

/// The workers' tools: those that the definition of a worker leaves it, and its servers.
fn worker_tools(session: &Session) -> Result<String, Failure> {
    if session.commands_only {
        return Ok("a shell: each is given commands, not words".into());
    }
    let types = definitions::load(None, &session.workplace)?;
    let definition = &types.get(WORKER)?.definition;
    let tools = ToolFilter::of(definition).apply(WORKING);
    let mut text = format!(
        "these tools, whatever its program calls them: {}",
        tools.join(", ")
    );
    let servers = definition.mcp_servers.iter().map(|server| server.name());
    let servers: Vec<&str> = servers.collect();
    if !servers.is_empty() {
        text += &format!("; those of the MCP servers {}", servers.join(", "));
    }
    Ok(text + "; a type that you name with `subagent_type` has those of its definition")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_names_every_tool_as_the_runtime_does() {
        for tool in Role::Coordinator.tools() {
            assert!(
                USUAL.contains(&format!("{{{tool}}}")),
                "{tool} is not explained"
            );
        }
        for (kind, name, expected) in [
            (RuntimeKind::Claude, "claude", "mcp__ccb__"),
            (RuntimeKind::Codex, "codex", "mcp__ccb__"),
            (RuntimeKind::Acp, "opencode", "ccb_"),
            (RuntimeKind::Lines, "mine", ""),
        ] {
            let spec = RuntimeSpec {
                kind,
                name: name.into(),
                ..RuntimeSpec::default()
            };
            assert_eq!(prefix(&spec), expected, "{kind}");
        }
    }

    #[test]
    fn the_text_says_what_the_engine_holds_it_to() {
        for word in [
            "Paths:",
            "Verify:",
            "<task-notification>",
            "based on your findings",
            "{mates}",
        ] {
            assert!(USUAL.contains(word), "{word}");
        }
    }
}
