//! Withholds an agent's own tools, for each program in its own way.
//!
//! The protocol has no word for it. opencode takes rules from its environment, gemini a policy
//! file, qwen a list of names. An unknown program can only get a text that forbids them.

use std::path::PathBuf;

use serde_json::{Map, Value, json};
use store::atomic::{self, Durability};

use super::super::{Launch, LaunchError};
use crate::tools::{OWN_SERVER, Reach, ToolFilter};

/// The way to withhold a program's tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Withhold {
    /// There is no way.
    Nothing,
    /// By the rules in `OPENCODE_PERMISSION`; a tool that is denied is not offered.
    Rules,
    /// By `--admin-policy FILE`, which counts for more than the user's own.
    Policy,
    /// By `--exclude-tools NAMES`.
    Excluded,
}

/// Claude Code's name of a tool, and opencode's, gemini's and qwen's names for the same.
struct Alike(
    &'static str,
    &'static [&'static str],
    &'static [&'static str],
    &'static [&'static str],
);

const ALIKE: [Alike; 9] = [
    Alike(
        "Read",
        &["read", "list"],
        &["read_file", "read_many_files", "list_directory"],
        &["read_file", "read_many_files", "list_directory"],
    ),
    Alike("Edit", &["edit"], &["replace"], &["edit"]),
    Alike("Write", &["edit"], &["write_file"], &["write_file"]),
    Alike(
        "Bash",
        &["bash"],
        &[
            "run_shell_command",
            "list_background_processes",
            "read_background_output",
        ],
        &["run_shell_command"],
    ),
    Alike("Grep", &["grep"], &["grep_search"], &["grep_search"]),
    Alike("Glob", &["glob"], &["glob"], &["glob"]),
    Alike("WebFetch", &["webfetch"], &["web_fetch"], &["web_fetch"]),
    Alike(
        "WebSearch",
        &["websearch", "codesearch"],
        &["google_web_search"],
        &["web_search"],
    ),
    Alike("Skill", &["skill"], &["activate_skill"], &["skill"]),
];

/// Tools for agents, tasks, messages, plans, questions and schedules, which no agent gets.
const OPENCODE: [&str; 6] = [
    "plan_enter",
    "plan_exit",
    "question",
    "task",
    "todoread",
    "todowrite",
];
const GEMINI: [&str; 13] = [
    "ask_user",
    "complete_task",
    "enter_plan_mode",
    "exit_plan_mode",
    "invoke_agent",
    "tracker_add_dependency",
    "tracker_create_task",
    "tracker_get_task",
    "tracker_list_tasks",
    "tracker_update_task",
    "tracker_visualize",
    "update_topic",
    "write_todos",
];
const QWEN: [&str; 12] = [
    "agent",
    "ask_user_question",
    "cron_create",
    "cron_delete",
    "cron_list",
    "exit_plan_mode",
    "monitor",
    "send_message",
    "task",
    "task_stop",
    "todo_write",
    "tool_search",
];

/// True if the program keeps a tool of this name. Commands are withheld from one that only reads,
/// whatever its definition says about some of them: these programs cannot tell which commands read.
fn keeps(launch: &Launch, filter: &ToolFilter, tool: &str) -> bool {
    let command = tool == "Bash";
    filter.permits(tool) && !(command && launch.reach == Reach::Reads)
}

/// The program's names of what is withheld, sorted.
fn withheld(
    launch: &Launch,
    always: &[&'static str],
    theirs: fn(&Alike) -> &'static [&'static str],
) -> Vec<String> {
    let filter = launch.filter();
    let kept = ALIKE.iter().filter(|alike| keeps(launch, &filter, alike.0));
    let kept: Vec<&str> = kept.flat_map(theirs).copied().collect();
    let all = ALIKE.iter().flat_map(theirs).copied();
    let mut names: Vec<String> = all
        .filter(|name| !kept.contains(name))
        .chain(always.iter().copied())
        .map(str::to_owned)
        .collect();
    names.sort();
    names.dedup();
    names
}

/// The tools of MCP servers that `entries` name, in the form `server` + `between` + `tool`; all
/// of a server is `*`.
fn of_servers(entries: &[String], before: &str, between: &str) -> Vec<String> {
    let named = entries.iter().filter_map(|entry| {
        let (server, tool) = match entry.strip_prefix("mcp__")?.split_once("__") {
            Some((server, tool)) => (server, tool),
            None => (entry.strip_prefix("mcp__")?, "*"),
        };
        Some(format!("{before}{server}{between}{tool}"))
    });
    named.collect()
}

/// Arguments that withhold tools, and the policy they name.
pub(super) fn arguments(launch: &Launch, how: Withhold) -> Result<Vec<String>, LaunchError> {
    match how {
        Withhold::Nothing | Withhold::Rules => Ok(Vec::new()),
        Withhold::Policy => {
            let file = policy(launch)?;
            Ok(vec![
                "--admin-policy".into(),
                file.to_string_lossy().into_owned(),
            ])
        }
        Withhold::Excluded => {
            let names = withheld(launch, &QWEN, |alike| alike.3);
            Ok(vec!["--exclude-tools".into(), names.join(",")])
        }
    }
}

/// gemini's policy: these tools are not offered, and a call of one is denied.
fn policy(launch: &Launch) -> Result<PathBuf, LaunchError> {
    let mut names = withheld(launch, &GEMINI, |alike| alike.2);
    names.extend(of_servers(&launch.disallowed_tools, "mcp_", "_"));
    let rule = format!(
        "[[rule]]\ntoolName = {}\ndecision = \"deny\"\npriority = 999\n",
        json!(names)
    );
    let file = launch.scratch.join("policy.toml");
    atomic::replace(&launch.scratch, &file, rule.as_bytes(), Durability::Relaxed)?;
    Ok(file)
}

/// opencode's rules: the calls it may make without asking (it allows everything by default), and
/// those it may not make at all.
pub(super) fn rules(launch: &Launch) -> Value {
    let (edit, rest) = match launch.permission_mode.as_deref() {
        Some("bypassPermissions") => ("allow", "allow"),
        Some("acceptEdits") => ("allow", "ask"),
        Some("plan") => ("deny", "ask"),
        Some("dontAsk") => ("deny", "deny"),
        _ => ("ask", "ask"),
    };
    let mut rules = Map::new();
    let mut set = |name: &str, what: &str| {
        rules.insert(name.to_owned(), what.into());
    };
    let filter = launch.filter();
    if let Some(allowed) = filter.allowed() {
        // All other tools, also of servers in the user's configuration.
        set("*", "deny");
        for alike in &ALIKE {
            alike.1.iter().for_each(|name| set(name, "allow"));
        }
        of_servers(allowed, "", "_")
            .iter()
            .for_each(|name| set(name, "allow"));
    }
    set("edit", edit);
    for name in ["bash", "webfetch", "external_directory"] {
        set(name, rest);
    }
    if launch.has_own_tools() {
        set(&format!("{OWN_SERVER}_*"), "allow");
    }
    for name in withheld(launch, &OPENCODE, |alike| alike.1) {
        set(&name, "deny");
    }
    of_servers(filter.disallowed(), "", "_")
        .iter()
        .for_each(|name| set(name, "deny"));
    rules.into()
}

/// The rules that are in the environment already, and ours: of both the stricter. Ours come last,
/// because opencode goes by the last rule that fits.
pub(super) fn merged(theirs: Option<&str>, ours: Value) -> Value {
    let theirs: Option<Value> = theirs.and_then(|text| serde_json::from_str(text).ok());
    let (Value::Object(rules), Some(Value::Object(theirs))) = (&ours, theirs) else {
        return ours;
    };
    let width = |rule: &Value| match rule.as_str() {
        Some("deny") => 0,
        // Or patterns with an answer each.
        Some("ask") | None => 1,
        Some(_) => 2,
    };
    let only_theirs = theirs.iter().filter(|(name, _)| !rules.contains_key(*name));
    let mut all: Map<String, Value> = only_theirs
        .map(|(name, rule)| (name.clone(), rule.clone()))
        .collect();
    for (name, own) in rules {
        let theirs = theirs.get(name).or_else(|| theirs.get("*"));
        let stricter = theirs.filter(|rule| width(rule) < width(own));
        all.insert(name.clone(), stricter.unwrap_or(own).clone());
    }
    all.into()
}
