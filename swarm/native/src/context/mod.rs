//! The context an agent gets besides its own prompt: where it is, the instructions of the user and
//! of the project, and the skills there are.
//!
//! Instructions are `CLAUDE.md` and `AGENTS.md`: the user's own, those from the top of the worktree
//! down to where the agent works, and those of a directory below when a file there is first read.
//! Files of the repository import only files of the repository.

mod instructions;
mod skills;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use instructions::Instructions;
pub use skills::{Skill, SkillTool};

use super::tools::{FoundBelow, Tool};

/// The prompt of an agent that has none of its own.
const USUAL: &str = "\
You are an agent that carries out one task on its own, with the tools you have. Nobody answers \
questions while you work.

- Look before you change: search, then read what matters.
- Follow what the code around you does. Change no more than the task needs.
- Call tools that do not depend on each other at the same time.
- Check your work by running it. If a check fails, find out why.
- End with a short report: what you did, what came of it, what you could not check.";

/// The directories and files around an agent.
#[derive(Debug, Clone, Default)]
pub struct Surroundings {
    /// Its working directory.
    pub cwd: PathBuf,
    /// The worktree that is in.
    pub tree: PathBuf,
    /// The user's directory of agents' things, with `CLAUDE.md` and `skills/` in it.
    pub home: Option<PathBuf>,
    /// The user's home directory.
    pub user: Option<PathBuf>,
    /// For temporary files.
    pub tmp: PathBuf,
    /// The notes its team shares.
    pub scratchpad: Option<PathBuf>,
    /// The day, as `2026-01-31`.
    pub today: String,
    /// True if the agent's commands are confined to the worktree.
    pub confined: bool,
}

/// The instructions and skills that were found around an agent.
#[derive(Debug)]
pub struct Context {
    text: String,
    skills: Vec<Skill>,
    instructions: Instructions,
}

impl Context {
    /// Looks around.
    pub fn gather(around: &Surroundings) -> Self {
        let mut instructions = Instructions::new(around);
        let mut text = places(around);
        text.push_str(&instructions.at_start());
        Self {
            text,
            skills: skills::find(around),
            instructions,
        }
    }

    /// The system prompt: the agent's own, or the usual one, and what was found.
    pub fn prompt(&self, own: Option<&str>) -> String {
        let own = own.unwrap_or(USUAL).trim_end();
        format!("{own}\n\n{}", self.text)
    }

    /// The tool that loads skills, if there are any.
    pub fn skill_tool(&self) -> Option<Arc<dyn Tool>> {
        let any = !self.skills.is_empty();
        any.then(|| Arc::new(SkillTool::new(self.skills.clone())) as Arc<dyn Tool>)
    }

    /// Directories of skills outside the worktree, which the agent may read.
    pub fn skill_dirs(&self, tree: &Path) -> Vec<PathBuf> {
        let dirs = self.skills.iter().map(|skill| skill.dir.clone());
        dirs.filter(|dir| !dir.starts_with(tree)).collect()
    }

    /// Tells the instructions of directories below, each once, when a file there is read.
    pub fn found_below(self) -> FoundBelow {
        let mut instructions = self.instructions;
        Box::new(move |dir| instructions.below(dir))
    }
}

fn places(around: &Surroundings) -> String {
    let mut text = format!(
        "# Where you are\n\n- Working directory: {}\n",
        around.cwd.display()
    );
    if around.tree != around.cwd {
        text.push_str(&format!(
            "- It is inside the worktree {}\n",
            around.tree.display()
        ));
    }
    text.push_str(&format!("- Temporary files: {}\n", around.tmp.display()));
    if let Some(notes) = &around.scratchpad {
        text.push_str(&format!("- Notes your team shares: {}\n", notes.display()));
    }
    if around.confined {
        text.push_str("- Commands can write only there; file tools reach only there.\n");
    }
    text.push_str(&format!("- Linux; today is {}\n", around.today));
    text
}
