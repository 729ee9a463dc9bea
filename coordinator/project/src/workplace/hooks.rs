//! Hooks, as commands and tools meet them.

use std::cell::Cell;

use runs::env;
use runs::hooks::{BoardHooks, HookSource, TreeHooks};
use store::Failure;
use taskboard::{Hooks, Task, TaskResult, Veto};
use worktrees::Entry;

use super::Workplace;

impl Workplace {
    /// Where hooks come from for what this command does.
    pub fn hooks(&self) -> HookSource {
        let team = self.team().map(|team| team.to_string());
        HookSource {
            home: self.home().clone(),
            directory: self.directory.clone(),
            session: Self::session_id(),
            team: team.unwrap_or_else(|_| self.board().name().to_string()),
            agent: self.agent().to_owned(),
            run: self.run().map(str::to_owned),
            lock_timeout: self.settings().lock_timeout,
            in_hook: in_hook(),
            starter: self.starter(),
        }
    }
}

/// Whether this command was called from a hook.
pub fn in_hook() -> bool {
    env::var(env::HOOK).is_some()
}

/// Removes trees that a hook made.
#[derive(Debug)]
pub struct TreeRemover(Option<TreeHooks>);

impl TreeRemover {
    /// Git's own trees need no hook, so one that is not trusted is no trouble for them.
    pub fn new(hook_based: bool, workplace: &Workplace) -> Result<Self, Failure> {
        match hook_based {
            true => Ok(Self(workplace.hooks().remove_tree()?)),
            false => Ok(Self(None)),
        }
    }

    /// For [`worktrees::RemoveRequest::hook`].
    pub fn hook(&self) -> Option<impl Fn(&Entry) -> Result<(), String>> {
        let hooks = self.0.as_ref()?;
        Some(move |entry: &Entry| hooks.remove(entry))
    }
}

/// Everybody who has a say before a task is completed: its hooks, then its own check.
pub struct BeforeDone<'a> {
    hooks: Option<BoardHooks>,
    check: Option<&'a dyn Hooks>,
    by_check: Cell<bool>,
}

impl<'a> BeforeDone<'a> {
    /// The hooks of this place, and `check`.
    pub fn new(workplace: &Workplace, check: Option<&'a dyn Hooks>) -> Self {
        Self {
            hooks: workplace.hooks().before_complete(),
            check,
            by_check: Cell::new(false),
        }
    }

    /// None if there is nobody to ask.
    pub fn asked(&self) -> Option<&dyn Hooks> {
        let somebody = self.hooks.is_some() || self.check.is_some();
        somebody.then_some(self)
    }

    /// Whether the task's own check said no.
    pub fn check_failed(&self) -> bool {
        self.by_check.get()
    }
}

impl Hooks for BeforeDone<'_> {
    fn before_complete(&self, task: &Task) -> Result<Option<TaskResult>, Veto> {
        if let Some(hooks) = &self.hooks {
            hooks.before_complete(task)?;
        }
        match self.check {
            Some(check) => check
                .before_complete(task)
                .inspect_err(|_| self.by_check.set(true)),
            None => Ok(None),
        }
    }
}

/// Those who have a say before a task is created.
pub fn before_create(workplace: &Workplace) -> Option<BoardHooks> {
    workplace.hooks().before_create()
}

/// As the board takes it.
pub fn asked(hooks: Option<&BoardHooks>) -> Option<&dyn Hooks> {
    hooks.map(|hooks| hooks as &dyn Hooks)
}

impl std::fmt::Debug for BeforeDone<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BeforeDone").finish_non_exhaustive()
    }
}
