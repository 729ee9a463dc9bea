//! Hooks, as commands and tools meet them.

use std::cell::Cell;

use coordinator::hooks::{BoardHooks, HookSource, TreeHooks};
use store::Failure;
use taskboard::{Hooks, Task, TaskResult, Veto};
use worktrees::{Entry, Slug};

use crate::context::Context;
use crate::env;

impl Context {
    /// Where hooks come from for what this command does.
    pub(crate) fn hooks(&self) -> HookSource {
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
pub(crate) fn in_hook() -> bool {
    env::var(env::HOOK).is_some()
}

/// Makes trees by other means than git, where a hook does.
pub(crate) struct TreeMaker(Option<TreeHooks>);

impl TreeMaker {
    pub(crate) fn new(context: &Context) -> Result<Self, Failure> {
        Ok(Self(context.hooks().create_tree()?))
    }

    /// For [`worktrees::CreateRequest::hook`].
    pub(crate) fn hook(&self) -> Option<impl Fn(&Slug) -> Result<String, String>> {
        let hooks = self.0.as_ref()?;
        Some(move |slug: &Slug| hooks.create(slug))
    }
}

/// Removes trees that a hook made.
pub(crate) struct TreeRemover(Option<TreeHooks>);

impl TreeRemover {
    /// Git's own trees need no hook, so one that is not trusted is no trouble for them.
    pub(crate) fn new(hook_based: bool, context: &Context) -> Result<Self, Failure> {
        match hook_based {
            true => Ok(Self(context.hooks().remove_tree()?)),
            false => Ok(Self(None)),
        }
    }

    /// For [`worktrees::RemoveRequest::hook`].
    pub(crate) fn hook(&self) -> Option<impl Fn(&Entry) -> Result<(), String>> {
        let hooks = self.0.as_ref()?;
        Some(move |entry: &Entry| hooks.remove(entry))
    }
}

/// Everybody who has a say before a task is completed: its hooks, then its own check.
pub(crate) struct BeforeDone<'a> {
    hooks: Option<BoardHooks>,
    check: Option<&'a dyn Hooks>,
    by_check: Cell<bool>,
}

impl<'a> BeforeDone<'a> {
    pub(crate) fn new(context: &Context, check: Option<&'a dyn Hooks>) -> Self {
        Self {
            hooks: context.hooks().before_complete(),
            check,
            by_check: Cell::new(false),
        }
    }

    /// None if there is nobody to ask.
    pub(crate) fn asked(&self) -> Option<&dyn Hooks> {
        let somebody = self.hooks.is_some() || self.check.is_some();
        somebody.then_some(self)
    }

    /// Whether the task's own check said no.
    pub(crate) fn check_failed(&self) -> bool {
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
pub(crate) fn before_create(context: &Context) -> Option<BoardHooks> {
    context.hooks().before_create()
}

/// As the board takes it.
pub(crate) fn asked(hooks: Option<&BoardHooks>) -> Option<&dyn Hooks> {
    hooks.map(|hooks| hooks as &dyn Hooks)
}
