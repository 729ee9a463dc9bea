//! The options that Codex gets before its first turn.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use super::super::{Launch, Start};
use crate::sandbox::tree_around;
use crate::tools::Reach;

/// The sandbox that can write where the agent works.
const WRITES_HERE: &str = "workspace-write";

/// Codex's own tools for agents, goals, plans and questions, which no agent gets, as settings.
/// `--disable multi_agent` alone leaves them to some models.
const WITHHELD: [&str; 6] = [
    "agents.enabled=false",
    "features.multi_agent=false",
    "features.goals=false",
    "features.sleep_tool=false",
    "tools.update_plan.enabled=false",
    "tools.experimental_request_user_input.enabled=false",
];

/// Arguments in addition to the command's own.
pub(super) fn arguments(launch: &Launch) -> Vec<&'static str> {
    let mut arguments = vec!["app-server", "--disable", "plugins"];
    let mut set = |setting| arguments.extend(["-c", setting]);
    WITHHELD.into_iter().for_each(&mut set);
    let filter = launch.filter();
    if !filter.permits("WebSearch") && !filter.permits("WebFetch") {
        set("web_search=disabled");
    }
    if launch.hands_off() {
        // It reads files by commands, so this takes both.
        set("features.shell_tool=false");
        set("features.view_image=false");
    }
    arguments
}

/// The request that opens the conversation.
pub(super) fn opening(launch: &Launch) -> (&'static str, Value) {
    let (approval, sandbox) = permissions(launch);
    let mut params = json!({
        "cwd": launch.cwd,
        "approvalPolicy": approval,
        "sandbox": sandbox,
    });
    if let Some(model) = &launch.model {
        params["model"] = model.as_str().into();
    }
    if let Some(prompt) = &launch.system_prompt {
        params["baseInstructions"] = prompt.as_str().into();
    }
    let mut config = Map::new();
    if !launch.mcp_servers.is_empty() {
        config.insert("mcp_servers".into(), servers(launch).into());
    }
    if sandbox == WRITES_HERE {
        let own = own_git(&launch.cwd);
        let roots = launch.scratchpad().into_iter().chain(own.as_deref());
        let roots: Vec<&Path> = roots.collect();
        if !roots.is_empty() {
            let roots = json!({ "writable_roots": roots });
            config.insert("sandbox_workspace_write".into(), roots);
        }
    }
    if !config.is_empty() {
        params["config"] = config.into();
    }
    let method = match &launch.start {
        Start::New => return ("thread/start", params),
        Start::Resume { session } => {
            params["threadId"] = session.as_str().into();
            "thread/resume"
        }
        Start::Fork { session, .. } => {
            params["threadId"] = session.as_str().into();
            "thread/fork"
        }
    };
    // The history can be long, and we do not read it.
    params["excludeTurns"] = true.into();
    (method, params)
}

/// The `.git` that an agent has to itself in a worktree of ccb. Codex keeps a `.git` at the top
/// read-only unless it is named.
fn own_git(cwd: &Path) -> Option<PathBuf> {
    let tree = tree_around(cwd);
    let ours = tree.parent()?.ends_with(".claude/worktrees");
    let git = tree.join(".git");
    (ours && git.is_dir()).then_some(git)
}

/// The approval policy, and the access of its commands without asking.
fn permissions(launch: &Launch) -> (&'static str, &'static str) {
    match (launch.reach, launch.permission_mode.as_deref()) {
        // Only calls are allowed that need no question.
        (Reach::Reads, _) | (_, Some("dontAsk")) => ("never", "read-only"),
        (Reach::Runs, _) | (_, Some("plan")) => ("on-request", "read-only"),
        (Reach::Edits, Some("bypassPermissions")) => ("never", "danger-full-access"),
        (Reach::Edits, Some("acceptEdits")) => ("on-request", "workspace-write"),
        (Reach::Edits, _) => ("untrusted", "workspace-write"),
    }
}

/// The same for a turn of a thread that is open.
pub(super) fn turn_permissions(launch: &Launch) -> (&'static str, Value) {
    let (approval, sandbox) = permissions(launch);
    let policy = match sandbox {
        "danger-full-access" => json!({ "type": "dangerFullAccess" }),
        "read-only" => json!({ "type": "readOnly" }),
        _ => match launch.scratchpad() {
            Some(dir) => json!({ "type": "workspaceWrite", "writableRoots": [dir] }),
            None => json!({ "type": "workspaceWrite" }),
        },
    };
    (approval, policy)
}

/// It gives its servers only a few variables of its own environment, so they get all of it here.
fn servers(launch: &Launch) -> Map<String, Value> {
    let inherited = launch.env.iter().filter_map(|(name, value)| {
        let (name, value) = (name.to_str()?, value.to_str()?);
        Some((name.to_owned(), Value::from(value)))
    });
    let inherited: Map<String, Value> = inherited.collect();
    let servers = launch.mcp_servers.iter().map(|server| {
        let mut env = inherited.clone();
        for (name, value) in &server.env {
            env.insert(name.clone(), value.as_str().into());
        }
        let config = json!({ "command": server.command, "args": server.args, "env": env });
        (server.name.clone(), config)
    });
    servers.collect()
}

/// The orders that Codex cannot follow, in words. Limits are not among them: the host keeps them.
pub(super) fn not_possible(launch: &Launch) -> Option<String> {
    let filtered = launch.tools.is_some() || !launch.disallowed_tools.is_empty();
    let kept_to = match launch.reach {
        Reach::Edits => "",
        Reach::Runs | Reach::Reads => " (its sandbox is read-only)",
    };
    let tools = format!("a choice of tools{kept_to}");
    let ordered = [
        (filtered && !launch.hands_off(), tools.as_str()),
        (!launch.hooks.is_empty(), "hooks of its own"),
    ];
    let missing = ordered.iter().filter(|(ordered, _)| *ordered);
    let missing: Vec<&str> = missing.map(|(_, what)| *what).collect();
    let what = missing.join(", ");
    (!what.is_empty()).then(|| format!("[codex cannot be told: {what}]\n"))
}
