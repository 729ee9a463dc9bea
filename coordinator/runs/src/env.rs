//! The environment variables ccb reads, named once.

use std::path::PathBuf;

use swarm::starter::own_variable;

/// This very program, also if another file has taken its place since it was started.
pub const OWN_PROGRAM: &str = "/proc/self/exe";
/// The directory of all state, before `CLAUDE_CONFIG_DIR` and `~/.claude`.
pub const HOME: &str = "CCB_HOME";
/// Claude Code's own directory.
pub const CLAUDE_CONFIG_DIR: &str = "CLAUDE_CONFIG_DIR";
/// The database the board is in, perhaps with a password.
pub const BOARD: &str = "CCB_BOARD";
/// The task list to use.
pub const TASK_LIST: &str = "CLAUDE_CODE_TASK_LIST_ID";
/// The team of the list to use.
pub const TEAM: &str = "CLAUDE_CODE_TEAM_NAME";
/// The session of the list to use.
pub const SESSION: &str = "CLAUDE_CODE_SESSION_ID";
/// The name of the calling agent.
pub const AGENT: &str = "CCB_AGENT";
/// Set inside an agent the engine started: its identity is fixed.
pub const RUN_ID: &str = "CCB_RUN_ID";
/// The token of this start of the run: a resumed agent has another one.
pub const RUN_TOKEN: &str = "CCB_RUN_TOKEN";

/// Set inside a hook.
pub const HOOK: &str = swarm::hooks::IN_HOOK;
/// The model every agent uses, whatever it or its caller says.
pub const SUBAGENT_MODEL: &str = "CLAUDE_CODE_SUBAGENT_MODEL";

/// If set, agents that models start do not run in the background.
pub const NO_BACKGROUND: &str = "CLAUDE_CODE_DISABLE_BACKGROUND_TASKS";

/// If set, workers have Bash, Read and Edit alone.
pub const SIMPLE: &str = "CLAUDE_CODE_SIMPLE";

/// Sessions are led by a coordinator.
pub const COORDINATOR_MODE: &str = "CLAUDE_CODE_COORDINATOR_MODE";
/// Set if ccb runs on GitHub, which shows annotations.
pub const GITHUB_ACTIONS: &str = "GITHUB_ACTIONS";
/// The file whose content GitHub shows on the page of a job.
pub const GITHUB_STEP_SUMMARY: &str = "GITHUB_STEP_SUMMARY";

/// A variable's value; an empty one counts as unset.
pub fn var(name: &str) -> Option<String> {
    let value = own_variable(name)?.into_string().ok();
    value.filter(|value| !value.is_empty())
}

/// True if a variable says yes; Claude Code takes the same words for it.
pub fn is_set(name: &str) -> bool {
    var(name).is_some_and(|value| {
        let yes = ["1", "true", "yes", "on"];
        yes.contains(&value.trim().to_ascii_lowercase().as_str())
    })
}

/// A variable that names a path, which need not be text; an empty one counts as unset.
pub fn path(name: &str) -> Option<PathBuf> {
    own_variable(name)
        .filter(|value| !value.is_empty())
        .map(PathBuf::from)
}
