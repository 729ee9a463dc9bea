//! What a new working tree is to be like: what was asked for, else the settings.

use std::time::Duration;

use store::settings::{BaseRef, SetUpCommand};
use store::{Category, Failure};
use swarm::trust::Item;
use worktrees::{Base, SetUp};

use super::Workplace;

/// How long a set-up command may take.
const SET_UP_TIMEOUT: Duration = Duration::from_secs(600);

/// What was asked for.
#[derive(Debug, Clone, Default)]
pub struct TreeWish {
    /// The branch, tag or commit to start from.
    pub base: Option<String>,
    /// Only these paths are checked out; none means what the settings say.
    pub sparse: Vec<String>,
    /// What is run in it.
    pub set_up: SetUpWish,
}

/// What is run in a new tree.
#[derive(Debug, Clone, Default)]
pub enum SetUpWish {
    /// What the settings say.
    #[default]
    Usual,
    /// This command.
    Command(String),
    /// Nothing.
    Nothing,
}

impl Workplace {
    /// What a new tree starts from, and what it gets besides its files, all things considered.
    pub fn new_tree(&self, wish: &TreeWish) -> Result<(Base, SetUp), Failure> {
        let mut set_up = self.set_up(&wish.set_up)?;
        if !wish.sparse.is_empty() {
            set_up.sparse_paths.clone_from(&wish.sparse);
        }
        Ok((self.tree_base(wish.base.as_deref()), set_up))
    }

    /// The same when nothing but the settings says so.
    pub fn usual_tree(&self) -> Result<(Base, SetUp), Failure> {
        self.new_tree(&TreeWish::default())
    }

    /// Refuses where agents cannot have worktrees in which they could work as in the main one:
    /// outside of a repository, in a bare one, in a submodule, before the first commit, and where
    /// submodules would stay empty. `set_up` may fill those; it is none where the work has to
    /// land, because a worktree with other repositories inside cannot. `instead` says how to go
    /// on without.
    pub fn check_isolation(&self, set_up: Option<&SetUp>, instead: &str) -> Result<(), Failure> {
        let refused = |kind: &'static str, why: String, hint: &str| {
            let message = format!("agents cannot have worktrees of their own here: {why}");
            Err(Failure::usage(kind, message).with_hint(format!("{hint}{instead}")))
        };
        let trees = match self.trees() {
            Ok(trees) => trees,
            Err(error) if error.category() == Category::Invalid => {
                let hint = match error.hint() {
                    Some(hint) => format!("{hint}; or "),
                    None => String::new(),
                };
                return refused(error.kind(), error.message().to_owned(), &hint);
            }
            Err(error) => return Err(error),
        };
        if trees.resolve("HEAD").is_err() {
            let why = "the repository has no commit yet".to_owned();
            return refused("no_commit", why, "make a first commit; or ");
        }
        let command = set_up.and_then(|set_up| set_up.command.as_deref());
        let filled = command.is_some_and(|command| command.contains("submodule"));
        if filled || self.hooks().create_tree()?.is_some() {
            return Ok(());
        }
        let submodules = trees.submodules()?;
        match submodules.first() {
            None => Ok(()),
            Some(first) => {
                let more = match submodules.len() {
                    1 => String::new(),
                    count => format!(" and {} more", count - 1),
                };
                let why = format!("its submodules ({first}{more}) would be empty in them");
                let hint = match set_up {
                    Some(_) => {
                        "let the setting `worktree.setup` run `git submodule update --init`; or "
                    }
                    None => "",
                };
                refused("submodules", why, hint)
            }
        }
    }

    /// What a new tree starts from.
    pub fn tree_base(&self, given: Option<&str>) -> Base {
        match (given, self.worktree_settings().base_ref) {
            (Some(base), _) => Base::Given(base.to_owned()),
            (None, BaseRef::Head) => Base::Head,
            (None, BaseRef::Fresh) => Base::Fresh,
        }
    }

    /// What a new tree gets besides its files.
    pub fn set_up(&self, wish: &SetUpWish) -> Result<SetUp, Failure> {
        let settings = self.worktree_settings();
        let command = match (wish, &settings.set_up) {
            (SetUpWish::Nothing, _) => None,
            (SetUpWish::Command(command), _) => Some(command.clone()),
            (SetUpWish::Usual, Some(setting)) if !may_run(setting, self)? => {
                return Err(not_trusted(setting, self));
            }
            (SetUpWish::Usual, setting) => setting.as_ref().map(|it| it.command.clone()),
        };
        Ok(SetUp {
            sparse_paths: settings.sparse_paths.clone(),
            symlink_directories: settings.symlink_directories.clone(),
            copy_directories: settings.copy_directories.clone(),
            command,
            command_timeout: SET_UP_TIMEOUT,
        })
    }
}

fn may_run(setting: &SetUpCommand, workplace: &Workplace) -> Result<bool, Failure> {
    workplace.may_use(&setting.file, |places| Item::set_up(setting, places))
}

fn not_trusted(setting: &SetUpCommand, workplace: &Workplace) -> Failure {
    let message = format!(
        "{} wants `{}` to be run in every new worktree, and what a repository brings along is \
         not run unasked",
        setting.file.display(),
        setting.command
    );
    Failure::refused("not_trusted", message).with_hint(format!(
            "look at it and run `ccb trust`, say so with --setup CMD, go without with --no-setup, or put it into {}",
            workplace.own_settings().display()
        ))
}
