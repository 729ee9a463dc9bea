//! Plans and their inputs, from where the command line says.

use std::collections::BTreeSet;
use std::io::Read;
use std::path::{Path, PathBuf};

use coordinator::agent::definitions;
use coordinator::fanout::{Basis, FanoutError, Plan, PlanFile, PlannedTask, Shard, Source, expand};
use store::Failure;
use worktrees::patch;

use crate::context::Context;

/// A plan, made into tasks.
#[derive(Debug)]
pub(super) struct Ready {
    /// What it calls itself, or what its file is called.
    pub(super) name: String,
    /// The commit everything starts from.
    pub(super) base: String,
    pub(super) tasks: Vec<PlannedTask>,
    /// How many files have changes that no task will see, and how many git does not know.
    pub(super) unseen: (usize, usize),
}

/// Reads the plan and everything it needs. Nothing is run.
pub(super) fn ready(
    path: &Path,
    shard: Option<Shard>,
    allow_empty: bool,
    context: &Context,
) -> Result<Ready, Failure> {
    let from_stdin = path == Path::new("-");
    let (name, text) = if from_stdin {
        ("standard input".to_owned(), stdin()?)
    } else {
        let shown = path.to_string_lossy().into_owned();
        (shown.clone(), file(&context.directory.join(path), &shown)?)
    };
    let text = String::from_utf8(text)
        .map_err(|_| Failure::usage("bad_plan", format!("{name}: the plan is not valid UTF-8")))?;
    let plan = PlanFile::read(&name, &text)?;
    let directory = &context.directory;
    let top = patch::top(directory)?;
    let base = plan.plan.defaults.base.as_deref().unwrap_or("HEAD");
    let base = patch::resolve(&top, base)?;
    let source = Disk {
        top: &top,
        directory,
        base: &base,
        stdin_taken: from_stdin,
    };
    let basis = Basis {
        base: base.clone(),
        settings: agents_are(&plan.plan, context)?,
        allow_empty,
    };
    let mut tasks = expand(&plan, &source, &basis)?;
    if let Some(shard) = shard {
        tasks = shard.select(tasks);
    }
    let stem = path
        .file_stem()
        .map(|stem| stem.to_string_lossy().into_owned());
    let stem = stem
        .filter(|_| !from_stdin)
        .unwrap_or_else(|| "fanout".into());
    Ok(Ready {
        name: plan.plan.name.clone().unwrap_or(stem),
        unseen: patch::uncommitted(&top)?,
        base,
        tasks,
    })
}

/// What agents are like that the plan wants: proven work counts only for the same ones.
fn agents_are(plan: &Plan, context: &Context) -> Result<String, Failure> {
    let specs = plan.tasks.iter();
    let specs = specs.chain(plan.foreach.iter().map(|foreach| &foreach.task));
    let (mut types, mut runtimes) = (BTreeSet::new(), BTreeSet::new());
    let mut models = false;
    for spec in specs.filter(|spec| spec.prompt.is_some()) {
        models = true;
        types.insert(spec.agent.as_ref().or(plan.defaults.agent.as_ref()));
        runtimes.insert(spec.runtime.as_ref().or(plan.defaults.runtime.as_ref()));
    }
    if !models {
        return Ok(String::new());
    }
    let definitions = definitions::load(None, context)?;
    let mut text = format!(
        "{:?} {:?}",
        coordinator::env::var(coordinator::env::SUBAGENT_MODEL),
        context.agent_settings().default_runtime
    );
    for name in types {
        let name = name.map_or("general-purpose", String::as_str);
        // One that is not there is told about when its task begins.
        let found = definitions.get(name);
        let found = found.map(|found| format!("{:?}", found.definition));
        text.push_str(&format!("\n{name}: {}", found.unwrap_or_default()));
    }
    for name in runtimes.into_iter().flatten() {
        let runtime = context.runtimes().get(name);
        let runtime = runtime.map(|it| format!("{:?} {:?} {:?}", it.kind, it.command, it.args));
        text.push_str(&format!("\n{name}: {}", runtime.unwrap_or_default()));
    }
    Ok(text)
}

/// The repository and the disk.
struct Disk<'a> {
    top: &'a Path,
    directory: &'a Path,
    base: &'a str,
    stdin_taken: bool,
}

impl Source for Disk<'_> {
    fn files(&self, globs: &[String], except: &[String]) -> Result<Vec<PathBuf>, FanoutError> {
        if globs.is_empty() || globs.iter().any(|glob| glob.trim().is_empty()) {
            return Err(FanoutError::Input {
                what: "foreach, files".into(),
                why: "there is an empty pattern".into(),
            });
        }
        Ok(patch::files(self.top, self.base, globs, except)?)
    }

    fn read(&self, name: &str) -> Result<Vec<u8>, FanoutError> {
        let wrong = |why: String| FanoutError::Input {
            what: if name == "-" {
                "standard input".into()
            } else {
                name.to_owned()
            },
            why,
        };
        if name != "-" {
            let path = self.directory.join(name);
            return std::fs::read(path).map_err(|error| wrong(error.to_string()));
        }
        if self.stdin_taken {
            return Err(wrong(
                "the plan itself was read from it; give the input a file".into(),
            ));
        }
        stdin().map_err(|error| wrong(error.message().to_owned()))
    }
}

fn stdin() -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    let read = std::io::stdin().lock().read_to_end(&mut bytes);
    read.map_err(|error| Failure::failed("io", format!("standard input: {error}")))?;
    Ok(bytes)
}

fn file(path: &Path, shown: &str) -> Result<Vec<u8>, Failure> {
    std::fs::read(path).map_err(|error| {
        let missing = error.kind() == std::io::ErrorKind::NotFound;
        let message = match missing {
            true => format!("there is no plan {shown}"),
            false => format!("{shown}: {error}"),
        };
        let hint = "`ccb fanout init` writes an example".to_owned();
        Failure::usage("no_plan", message).with_hint(hint)
    })
}
