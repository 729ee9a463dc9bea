//! The parts of a definition besides its prompt: MCP servers, skills, hooks of the program's own, a
//! configuration of its own.

use std::path::{Path, PathBuf};

use project::workplace::Workplace;
use runs::LaunchPlan;
use runs::env;
use serde_json::{Map, Value};
use store::Failure;
use store::settings::ConfigHome;
use swarm::definitions::{Definition, Found, McpServer as Asked};
use swarm::hooks::HookEvent;
use swarm::runtime::McpServer;
use swarm::tools::OWN_SERVER;
use swarm::trust::{Item, Places, SERVERS, Servers, servers_of};

/// Maximum bytes of a skill.
const MAX_SKILL: usize = 256 * 1024;

/// Adds all parts to the launch plan.
pub(super) fn apply(
    found: &Found,
    plan: &mut LaunchPlan,
    workplace: &Workplace,
) -> Result<(), Failure> {
    let definition = &found.definition;
    for asked in &definition.mcp_servers {
        let server = match asked {
            Asked::Named(name) => named(name, workplace)?,
            Asked::Inline { name, config } => {
                let item = |places: Places<'_>| Item::agent_server(found, asked, places);
                check_trust(found, item, workplace)?;
                server(name, config)?
            }
        };
        add(server, plan);
    }
    for name in &definition.required_mcp_servers {
        let there = plan.mcp_servers.iter().any(|server| server.name == *name);
        if !there && name != OWN_SERVER {
            add(named(name, workplace)?, plan);
        }
    }
    plan.required_servers
        .clone_from(&definition.required_mcp_servers);
    let mut hooks = definition.hooks.clone();
    hooks.retain(|event, _| is_inside_program(event));
    if !hooks.is_empty() {
        check_trust(found, |places| Item::agent_hooks(found, places), workplace)?;
        plan.runtime_hooks = hooks;
    }
    if let Some(prompt) = &mut plan.system_prompt {
        prompt.push_str(&skills(definition, workplace)?);
    }
    Ok(())
}

/// True if a hook's event happens inside the agent's program, so that only the program can run the
/// hook. `Stop` of a definition is the agent's own end, which ccb sees.
pub(super) fn is_inside_program(event: &str) -> bool {
    event != "Stop" && HookEvent::parse(event).is_none()
}

/// The separate configuration of the agent's program; `None` if it has none.
pub(super) fn config_of(workplace: &Workplace) -> Option<String> {
    let own = workplace.settings().config_home == ConfigHome::Own;
    own.then(String::new)
}

fn add(server: McpServer, plan: &mut LaunchPlan) {
    // The engine's own server cannot be replaced.
    if server.name != OWN_SERVER {
        plan.mcp_servers.retain(|other| other.name != server.name);
        plan.mcp_servers.push(server);
    }
}

/// Refuses a part that came with the repository and is not trusted.
fn check_trust(
    found: &Found,
    item: impl FnOnce(Places<'_>) -> Option<Item>,
    workplace: &Workplace,
) -> Result<(), Failure> {
    if !found.source.is_repository() {
        return Ok(());
    }
    let (Some(trust), Some(root)) = (workplace.trust(), workplace.main_tree()) else {
        return Err(not_trusted(&found.definition.name.to_string()));
    };
    let granted = trust.granted()?;
    match item(Places::one(root)) {
        Some(item) if !granted.contains(&item.id()) => Err(not_trusted(&format!(
            "{} {:?}",
            item.kind.as_str(),
            item.name
        ))),
        _ => Ok(()),
    }
}

fn not_trusted(what: &str) -> Failure {
    Failure::refused(
        "not_trusted",
        format!(
            "{what} comes with the repository, and what a repository brings along is not run \
             unasked"
        ),
    )
    .with_hint("look at it with `ccb trust --show` and run `ccb trust`")
}

/// A server that is configured elsewhere: in the repository, or by the user for Claude Code.
fn named(name: &str, workplace: &Workplace) -> Result<McpServer, Failure> {
    let mut known = vec![OWN_SERVER.to_owned()];
    if let Some(root) = workplace.main_tree() {
        let file = root.join(SERVERS);
        for (found, config) in read(&file)? {
            if found == name {
                let item = |places: Places<'_>| Item::server(name, &config, places);
                if !workplace.may_use(&file, item)? {
                    return Err(not_trusted(&format!("MCP server {name:?}")));
                }
                return server(name, &config);
            }
            known.push(found);
        }
    }
    for file in user_files(workplace) {
        for (found, config) in read(&file)? {
            if found == name {
                return server(name, &config);
            }
            known.push(found);
        }
    }
    let hint = store::did_you_mean(
        name,
        known.iter().map(String::as_str),
        format!("{SERVERS} in the repository names servers, as does ~/.claude.json"),
    );
    let message = format!("there is no MCP server {name:?}");
    Err(Failure::usage("unknown_mcp_server", message).with_hint(hint))
}

/// The files in which Claude Code keeps the user's servers.
fn user_files(workplace: &Workplace) -> Vec<PathBuf> {
    let beside = workplace.home().path().join(".claude.json");
    let home = env::path("HOME").map(|home| home.join(".claude.json"));
    let home = home.filter(|file| *file != beside);
    [Some(beside), home].into_iter().flatten().collect()
}

fn read(file: &Path) -> Result<Servers, Failure> {
    servers_of(file).map_err(|why| Failure::usage("bad_settings", why))
}

/// A server in the form for runtimes.
fn server(name: &str, config: &Map<String, Value>) -> Result<McpServer, Failure> {
    McpServer::from_config(name, config).map_err(|why| {
        let message = format!("MCP server {name:?}: {why}");
        Failure::usage("bad_mcp_server", message)
    })
}

/// The skills the agent starts with, to be added to its prompt.
fn skills(definition: &Definition, workplace: &Workplace) -> Result<String, Failure> {
    let mut dirs = vec![workplace.home().path().join("skills")];
    if let Some(root) = workplace.main_tree() {
        dirs.insert(0, root.join(".claude/skills"));
    }
    let mut all = String::new();
    for name in &definition.skills {
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
        let file = dirs
            .iter()
            .map(|dir| dir.join(name).join("SKILL.md"))
            .find(|file| name.chars().all(plain) && file.is_file());
        let Some(file) = file else {
            return Err(unknown_skill(name, &dirs));
        };
        let wrong = |why: &dyn std::fmt::Display| {
            Failure::usage("bad_skill", format!("{}: {why}", file.display()))
        };
        let bytes = store::atomic::read(&file).map_err(|error| wrong(&error))?;
        let bytes = bytes.unwrap_or_default();
        if bytes.len() > MAX_SKILL {
            return Err(wrong(&"it is longer than 256 KiB"));
        }
        let text = String::from_utf8(bytes).map_err(|_| wrong(&"it is not valid UTF-8"))?;
        let dir = file.parent().unwrap_or(&file).display();
        let body = without_front_matter(&text);
        all.push_str(&format!(
            "\n\n# Skill: {name}\n\n(Its files are in {dir})\n\n{body}"
        ));
    }
    Ok(all)
}

fn unknown_skill(name: &str, dirs: &[PathBuf]) -> Failure {
    let entries = dirs.iter().filter_map(|dir| std::fs::read_dir(dir).ok());
    let known: Vec<String> = entries
        .flat_map(|entries| entries.flatten())
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    let message = format!("there is no skill {name:?}");
    let hint = store::did_you_mean(
        name,
        known.iter().map(String::as_str),
        "skills are `.claude/skills/NAME/SKILL.md`, or `skills/` in ccb's home",
    );
    Failure::usage("unknown_skill", message).with_hint(hint)
}

/// The text after the lines between the first two `---`.
fn without_front_matter(text: &str) -> &str {
    let Some(rest) = text.strip_prefix("---\n") else {
        return text.trim();
    };
    match rest.split_once("\n---") {
        Some((_, body)) => body.trim_start_matches('-').trim(),
        None => text.trim(),
    }
}
