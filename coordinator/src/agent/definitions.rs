//! Finds the agent types for a command.

use std::path::{Path, PathBuf};

use project::workplace::Workplace;
use runs::env;
use store::Failure;
use swarm::definitions::{Definitions, Found, Problem, Source, Sources};

use super::workers::USUAL_TYPE;

/// The directory for definitions of this machine's administrator; the one that Claude Code uses.
const MANAGED: &str = if cfg!(target_os = "macos") {
    "/Library/Application Support/ClaudeCode/.claude/agents"
} else {
    "/etc/claude-code/.claude/agents"
};

/// The tools of a worker in simple mode.
const SIMPLE_TOOLS: [&str; 3] = ["Bash", "Read", "Edit"];

/// All agent types. A mistake in the argument is an error; mistakes in files are in the result.
pub fn load(agents: Option<&str>, workplace: &Workplace) -> Result<Definitions, Failure> {
    let sources = Sources {
        managed: Some(MANAGED.into()),
        json: agents.map(str::to_owned),
        project: project_directories(workplace),
        user: Some(workplace.home().agents()),
        deny: workplace.agent_settings().deny.clone(),
    };
    let mut definitions = Definitions::load(&sources);
    if env::is_set(env::SIMPLE) {
        simplify(&mut definitions);
    }
    let typed = |problem: &&Problem| problem.source == Source::Flag && !problem.ignored_key;
    match definitions.problems.iter().find(typed) {
        Some(problem) => {
            let error = Failure::usage("bad_definition", problem.to_string());
            Err(error.with_hint(
                r#"for example --agents '{"reviewer": {"description": "reviews code", "prompt": "You review code."}}'"#,
            ))
        }
        None => Ok(definitions),
    }
}

/// Limits the built-in worker to the tools of Claude Code's simple mode. A definition that a person
/// wrote in its place is not changed.
fn simplify(definitions: &mut Definitions) {
    let ours = |found: &&mut Found| {
        found.source == Source::BuiltIn && found.definition.name.as_str() == USUAL_TYPE
    };
    for worker in definitions.found.iter_mut().filter(ours) {
        worker.definition.tools = Some(SIMPLE_TOOLS.map(str::to_owned).to_vec());
    }
}

/// From here up to the root of this worktree. A linked worktree without definitions of its own
/// (they may not be committed) has those of the main worktree.
fn project_directories(workplace: &Workplace) -> Vec<PathBuf> {
    let here = &workplace.directory;
    let here = here.canonicalize().unwrap_or_else(|_| here.clone());
    let root = here.ancestors().find(|dir| dir.join(".git").exists());
    let mut dirs = Sources::project_directories(&here, root);
    let has_own = |root: &Path| root.join(".claude/agents").is_dir();
    if let (Some(root), Some(main)) = (root, workplace.main_tree())
        && root != main
        && !has_own(root)
    {
        dirs.push(main.join(".claude/agents"));
    }
    dirs
}
