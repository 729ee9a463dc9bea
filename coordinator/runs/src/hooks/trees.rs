//! `WorktreeCreate` and `WorktreeRemove`: other means than git.

use serde_json::Value;
use store::{Category, Explain, Facts};
use swarm::hooks::{Hook, HookEvent, HookInput};
use worktrees::{Entry, Slug};

use super::{HookSource, not_trusted_words};

/// The hooks that make or remove worktrees.
#[derive(Debug)]
pub struct TreeHooks {
    source: HookSource,
    event: HookEvent,
    hooks: Vec<Hook>,
    input: HookInput,
}

/// The errors of hooks that make or remove worktrees.
#[derive(Debug, thiserror::Error)]
pub enum TreeHookError {
    /// The repository's hooks are not run unasked, and git cannot stand in for them.
    #[error("{0}")]
    NotTrusted(String),
    /// The hooks are unknown, because their settings cannot be read.
    #[error("{0}")]
    Unreadable(String),
}

impl Explain for TreeHookError {
    fn facts(&self) -> Facts {
        match self {
            Self::NotTrusted(_) => Facts::new(Category::Refused, "not_trusted")
                .hint("`ccb trust --show` shows what there is"),
            Self::Unreadable(_) => {
                Facts::new(Category::Invalid, "bad_settings").hint("mend that file first")
            }
        }
    }
}

impl HookSource {
    /// The hooks that make worktrees here; `None` if git makes them.
    pub fn create_tree(&self) -> Result<Option<TreeHooks>, TreeHookError> {
        self.trees(HookEvent::WorktreeCreate)
    }

    /// The hooks that remove worktrees that a hook made; `None` if there are none.
    pub fn remove_tree(&self) -> Result<Option<TreeHooks>, TreeHookError> {
        self.trees(HookEvent::WorktreeRemove)
    }

    fn trees(&self, event: HookEvent) -> Result<Option<TreeHooks>, TreeHookError> {
        let (around, chosen) = self.choose(event).map_err(TreeHookError::Unreadable)?;
        if chosen.run.is_empty() && !chosen.untrusted.is_empty() {
            let why = not_trusted_words(&chosen.untrusted);
            return Err(TreeHookError::NotTrusted(why));
        }
        Ok((!chosen.run.is_empty()).then(|| TreeHooks {
            input: self.input(&around),
            source: self.clone(),
            hooks: chosen.run,
            event,
        }))
    }
}

impl TreeHooks {
    /// Makes a worktree; says where it is.
    pub fn create(&self, slug: &Slug) -> Result<String, String> {
        let mut input = self.input.clone();
        input.more.insert("name".into(), slug.as_str().into());
        let outcome = self.source.run(self.event, self.hooks.clone(), input)?;
        match (outcome.block, outcome.worktree_path) {
            (Some((_, reason)), _) => Err(reason),
            (None, Some(path)) => path
                .to_str()
                .map(str::to_owned)
                .ok_or_else(|| "the path it gave is not valid UTF-8".into()),
            (None, None) => Err("it did not say where the worktree is".into()),
        }
    }

    /// Removes a worktree.
    pub fn remove(&self, entry: &Entry) -> Result<(), String> {
        let mut input = self.input.clone();
        let mut put = |key: &str, value: Value| input.more.insert(key.to_owned(), value);
        put("name", entry.name.clone().into());
        put("worktree_path", entry.path.clone().into());
        let outcome = self.source.run(self.event, self.hooks.clone(), input)?;
        match (outcome.block, outcome.failures.into_iter().next()) {
            (Some((_, reason)), _) => Err(reason),
            // It may still be there.
            (None, Some((_, why))) => Err(why),
            (None, None) => Ok(()),
        }
    }
}
