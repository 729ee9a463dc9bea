use std::path::Path;
use std::time::Duration;

use clap::Args;
use coordinator::binding::Binder;
use serde_json::json;
use store::Failure;
use store::settings::{BaseRef, SetUpCommand};
use swarm::trust::Item;
use worktrees::{Base, CreateRequest, RemoveRequest, SetUp, Slug, Trees};

use super::{fill_behind, slug, to_json};
use crate::commands::task::{id, line};
use crate::context::Context;
use crate::exit::Exit;
use crate::hooks::{TreeMaker, TreeRemover};
use crate::output::{BOLD, DIM, GREEN, clean_line};

/// What a new tree is to be like.
#[derive(Debug, Default, Args)]
pub(crate) struct NewTree {
    /// Start from this branch, tag or commit [default: your HEAD, or worktree.baseRef]
    #[arg(long, value_name = "REF", allow_hyphen_values = true)]
    base: Option<String>,
    /// Check out only this path (may be repeated) [default: worktree.sparsePaths]
    #[arg(long, value_name = "PATH")]
    sparse: Vec<String>,
    #[command(flatten)]
    set_up: SetUpArgs,
}

#[derive(Debug, Default, Args)]
pub(crate) struct SetUpArgs {
    /// Run this command in the new worktree [default: worktree.setup]
    #[arg(long, value_name = "CMD", conflicts_with = "no_setup")]
    setup: Option<String>,
    /// Run no set-up command
    #[arg(long)]
    no_setup: bool,
}

#[derive(Debug, Args)]
pub(crate) struct CreateArgs {
    /// Its name; one is made up if you give none
    #[arg(allow_hyphen_values = true)]
    name: Option<String>,
    /// Bind this task to it, and start the task if it can start
    #[arg(long, value_name = "ID", allow_negative_numbers = true)]
    task: Option<String>,
    #[command(flatten)]
    new: NewTree,
}

pub(crate) fn run(args: &CreateArgs, context: &mut Context) -> Result<Exit, Failure> {
    let task = args.task.as_deref().map(id).transpose()?;
    let name = args.name.as_deref().map(slug).transpose()?;
    let trees = context.trees()?;
    let board = context.board();
    if let Some(task) = task {
        // Before anything is made for it.
        board.snapshot()?.require(task)?;
    }
    let directory = context.directory.clone();
    let maker = TreeMaker::new(context)?;
    let hook = maker.hook();
    let request = CreateRequest {
        agent: context.named_agent().map(str::to_owned),
        hook: hook.as_ref().map(|hook| hook as _),
        ..args.new.request(name, &directory, context)?
    };
    let mut created = trees.create(&request)?;
    let mut bound = None;
    if let Some(task) = task {
        let binder = Binder {
            board: &board,
            trees: &trees,
        };
        let slug = slug(&created.entry.name)?;
        match binder.bind(&slug, task, context.named_agent()) {
            Ok((entry, task)) => {
                created.entry = entry;
                bound = Some(task);
            }
            Err(error) => {
                // It was made for this task alone, and nobody has seen it yet.
                if created.created {
                    take_back(&slug, created.entry.hook_based, &trees, context)?;
                }
                return Err(error.into());
            }
        }
    }
    fill_behind(&created, context);
    for note in &created.notes {
        tracing::info!("{note}");
    }
    let json = || {
        let mut tree = to_json(&created.entry);
        tree["created"] = created.created.into();
        tree["durationMs"] = created.duration_ms.into();
        let mut answer = json!({ "worktree": tree });
        if let Some(task) = &bound {
            answer["task"] = task.to_json();
        }
        answer
    };
    let text = || {
        let verb = if created.created { "created" } else { "found" };
        let entry = &created.entry;
        let path = clean_line(&entry.path);
        let mut text = format!(
            "{GREEN}✔{GREEN:#} {verb} {BOLD}{}{BOLD:#} {path}",
            entry.name
        );
        if let (Some(branch), Some(base)) = (&entry.branch, &entry.base) {
            let base = base.get(..12).unwrap_or(base);
            text.push_str(&format!("\n  {DIM}branch {branch}, from {base}{DIM:#}"));
        }
        if let Some(task) = &bound {
            text.push_str(&format!("\n  {}", line(task)));
        }
        text
    };
    context.out.answer(json, text)?;
    Ok(Exit::Done)
}

/// Removes a tree that has just been made and nobody has seen.
fn take_back(
    slug: &Slug,
    hook_based: bool,
    trees: &Trees,
    context: &Context,
) -> Result<(), Failure> {
    let remover = TreeRemover::new(hook_based, context)?;
    let hook = remover.hook();
    let request = RemoveRequest {
        discard: hook_based,
        hook: hook.as_ref().map(|hook| hook as _),
        ..RemoveRequest::default()
    };
    trees.remove(slug, &request)?;
    Ok(())
}

/// What a new tree is to be like, all things considered.
#[derive(Debug)]
pub(crate) struct Wanted {
    pub(crate) base: Base,
    pub(crate) set_up: SetUp,
}

impl NewTree {
    /// What flags and settings say.
    pub(crate) fn wanted(&self, context: &Context) -> Result<Wanted, Failure> {
        let mut set_up = self.set_up.resolve(context)?;
        if !self.sparse.is_empty() {
            set_up.sparse_paths.clone_from(&self.sparse);
        }
        let base = base(self.base.as_ref(), context);
        Ok(Wanted { base, set_up })
    }

    /// What is to be made, all things considered.
    pub(crate) fn request<'a>(
        &self,
        name: Option<Slug>,
        directory: &'a Path,
        context: &Context,
    ) -> Result<CreateRequest<'a>, Failure> {
        let Wanted { base, set_up } = self.wanted(context)?;
        Ok(CreateRequest {
            base,
            set_up,
            ..CreateRequest::new(name, directory)
        })
    }
}

pub(super) fn base(given: Option<&String>, context: &Context) -> Base {
    match (given, context.worktree_settings().base_ref) {
        (Some(base), _) => Base::Given(base.clone()),
        (None, BaseRef::Head) => Base::Head,
        (None, BaseRef::Fresh) => Base::Fresh,
    }
}

impl SetUpArgs {
    /// What flags and settings say about new trees.
    pub(super) fn resolve(&self, context: &Context) -> Result<SetUp, Failure> {
        let settings = context.worktree_settings();
        let command = match (&self.setup, &settings.set_up) {
            _ if self.no_setup => None,
            (Some(command), _) => Some(command.clone()),
            (None, Some(setting)) if !may_run(setting, context)? => {
                return Err(not_trusted(setting, context));
            }
            (None, setting) => setting.as_ref().map(|setting| setting.command.clone()),
        };
        Ok(SetUp {
            sparse_paths: settings.sparse_paths.clone(),
            symlink_directories: settings.symlink_directories.clone(),
            copy_directories: settings.copy_directories.clone(),
            command,
            command_timeout: Duration::from_secs(600),
        })
    }
}

fn may_run(setting: &SetUpCommand, context: &Context) -> Result<bool, Failure> {
    context.may_use(&setting.file, |places| Item::set_up(setting, places))
}

fn not_trusted(setting: &SetUpCommand, context: &Context) -> Failure {
    let message = format!(
        "{} wants `{}` to be run in every new worktree, and what a repository brings along is \
         not run unasked",
        setting.file.display(),
        setting.command
    );
    Failure::refused("not_trusted", message).with_hint(format!(
            "look at it and run `ccb trust`, say so with --setup CMD, go without with --no-setup, or put it into {}",
            context.own_settings().display()
        ))
}
