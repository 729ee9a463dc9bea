//! Commands that run at certain moments and may influence what happens.
//!
//! They are read from `hooks` in Claude Code's settings files (the user's, the repository's, the
//! repository's local one) and from agents' definitions. Those that came with a repository run only
//! if the user trusts them; the caller knows if that is so. `ccb` called from a hook runs no hooks
//! ([`IN_HOOK`]).
//!
//! The answers of a hook:
//!
//! * exit code 0: go ahead. JSON on its output may say more, see [`Answer`].
//! * exit code 2: no, for the reason on stderr, whatever its output says.
//! * any other code: go ahead, but the hook has an error, which is reported.
//! * no answer (time-out, killed, not started): no where that is a veto ([`HookEvent::is_veto`]),
//!   else go ahead and report.

mod answer;
mod config;
mod event;
pub(crate) mod fuzz;
mod job;
mod loop_guard;
mod matcher;
mod run;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

pub use answer::{Answer, Outcome};
pub use config::{DEFAULT_TIMEOUT, Hook, HookProblem, Origin};
pub use event::{HookEvent, HookInput};
pub use job::{Done, Job, work};
pub use loop_guard::{BLOCKS_IN_A_ROW, LoopGuard};
pub use run::{Late, Runner};

use crate::definitions::{Found, Source};

/// The variable that tells a `ccb` that it was called from a hook.
pub const IN_HOOK: &str = "CCB_HOOK";

/// The settings files with hooks.
#[derive(Debug, Clone, Default)]
pub struct HookFiles {
    /// `<home>/settings.json`.
    pub user: Option<PathBuf>,
    /// `<repository>/.claude/settings.json`.
    pub project: Option<PathBuf>,
    /// `<repository>/.claude/settings.local.json`.
    pub local: Option<PathBuf>,
}

/// All hooks there are.
#[derive(Debug, Clone, Default)]
pub struct Hooks {
    /// In the order of their levels.
    pub all: Vec<Hook>,
    /// The entries in place of hooks that are none.
    pub problems: Vec<HookProblem>,
}

/// The hooks for one event.
#[derive(Debug, Default)]
pub struct Selection<'a> {
    /// The hooks to run.
    pub run: Vec<&'a Hook>,
    /// The hooks that would run if the user trusted them.
    pub untrusted: Vec<&'a Hook>,
}

impl Hooks {
    /// Reads the files that are there.
    pub fn load(files: &HookFiles) -> Self {
        let mut hooks = Self::default();
        hooks.read(files.user.as_deref(), Origin::User);
        hooks.read(files.project.as_deref(), Origin::Project);
        hooks.read(files.local.as_deref(), Origin::Local);
        hooks
    }

    fn read(&mut self, path: Option<&Path>, origin: fn(PathBuf) -> Origin) {
        if let Some(path) = path {
            config::read_file(path, origin, &mut self.all, &mut self.problems);
        }
    }

    /// These and those of an agent's definition, which count as long as the agent lives.
    pub fn with_agent(&self, found: &Found) -> Self {
        let definition = &found.definition;
        self.with_agent_hooks(definition.name.as_str(), &found.source, &definition.hooks)
    }

    /// The same from what the definition says under `hooks`.
    pub fn with_agent_hooks(
        &self,
        name: &str,
        source: &Source,
        events: &Map<String, Value>,
    ) -> Self {
        let mut hooks = self.clone();
        let origin = Origin::Agent {
            name: name.to_owned(),
            source: source.clone(),
        };
        config::read_agent(&origin, events, &mut hooks.all, &mut hooks.problems);
        hooks
    }

    /// The hooks for `event`. Matchers compare `agent_type`, where the event has one.
    ///
    /// The same command on several levels runs once, as the last one says. Hooks that are not
    /// trusted do not count in that: a repository must not be able to replace a hook of the user by
    /// one that is not run.
    pub fn select(
        &self,
        event: HookEvent,
        agent_type: Option<&str>,
        is_trusted: impl Fn(&Hook) -> bool,
    ) -> Selection<'_> {
        let mut selection = Selection::default();
        for hook in self.all.iter().filter(|hook| hook.event == event) {
            if agent_type.is_some_and(|name| !hook.matcher.matches(name)) {
                continue;
            }
            if hook.origin.is_repository() && !is_trusted(hook) {
                selection.untrusted.push(hook);
                continue;
            }
            let same = |other: &&Hook| other.command == hook.command && other.shell == hook.shell;
            selection.run.retain(|other| !same(other));
            selection.run.push(hook);
        }
        selection
    }

    /// A file that could not be read, so that it is unknown if it has a hook for a veto. Only the
    /// user's counts: the others are not trusted as they are now.
    pub fn unreadable(&self) -> Option<&HookProblem> {
        let whole = |problem: &&HookProblem| {
            problem.whole_file && matches!(problem.origin, Origin::User(_))
        };
        self.problems.iter().find(whole)
    }
}
