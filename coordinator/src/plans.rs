//! Plans: reading them with all their inputs, and running each with a team of its own.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use director::Interrupted;
use fanout::{
    Basis, CheckSpec, Checkout, Equipment, Events, Expanded, FanoutError, Plan, PlanFile,
    PlannedTask, Report, RunOptions, Selection, Shard, Source, TaskReport, Timings, WholeCheck,
    expand,
};
use observe::report;
use project::workplace::Workplace;
use runs::env;
use store::Failure;
use store::name::Name;
use uuid::Uuid;
use worktrees::patch;

use crate::agent::{PlanCrew, Role, TaskCrew, definitions};

/// Reads standard input to its end.
pub type Stdin = fn() -> std::io::Result<Vec<u8>>;

/// The selection of a plan's tasks.
#[derive(Debug, Default)]
pub struct Wanted {
    /// The selection by ids.
    pub selection: Selection,
    /// The part of the selected tasks.
    pub shard: Option<Shard>,
    /// The sources of task durations: reports of earlier runs, or `home` for the durations that
    /// this home recorded.
    pub timings: Vec<PathBuf>,
    /// True if a `foreach` may match nothing.
    pub allow_empty: bool,
}

/// A plan, made into tasks.
#[derive(Debug)]
pub struct Ready {
    /// Its file; `-` is standard input.
    path: PathBuf,
    /// The part of the plan that this is.
    shard: Option<Shard>,
    /// The plan's own name, or that of its file.
    pub name: String,
    /// The commit everything starts from.
    pub base: String,
    /// Its tasks.
    pub tasks: Vec<PlannedTask>,
    /// The plan's check for landing results.
    check: Option<CheckSpec>,
    /// Environment variables for every agent and check.
    env: BTreeMap<String, String>,
    /// Number of failed tasks that keep their worktrees.
    pub keep_failed: usize,
    /// The numbers of changed and of untracked files that no task will see.
    pub unseen: (usize, usize),
    /// The things that were left out of the plan, with reasons.
    pub notes: Vec<String>,
    /// Identifies the way the plan was cut into parts.
    pub cut: Option<String>,
}

/// Reads the plan and all its inputs. Runs nothing.
pub fn ready(
    path: &Path,
    wanted: &Wanted,
    stdin: Stdin,
    workplace: &Workplace,
) -> Result<Ready, Failure> {
    let from_stdin = path == Path::new("-");
    let (name, text) = if from_stdin {
        ("standard input".to_owned(), read_stdin(stdin)?)
    } else {
        let shown = path.to_string_lossy().into_owned();
        (
            shown.clone(),
            file(&workplace.directory.join(path), &shown)?,
        )
    };
    let text = String::from_utf8(text)
        .map_err(|_| Failure::usage("bad_plan", format!("{name}: the plan is not valid UTF-8")))?;
    let plan = PlanFile::read(&name, &text)?;
    let directory = &workplace.directory;
    let top = patch::top(directory)?;
    let base = plan.plan.defaults.base.as_deref().unwrap_or("HEAD");
    let base = patch::resolve(&top, base)?;
    let source = Disk {
        top: &top,
        directory,
        base: &base,
        stdin: (!from_stdin).then_some(stdin),
        checkout: Checkout::new(&top, directory),
    };
    let (settings, agents) = agents_are(&plan.plan, workplace)?;
    let runtimes = workplace.runtimes().keys().cloned();
    let runtimes = runtimes.chain(swarm::runtime::built_in().map(str::to_owned));
    let basis = Basis {
        base: base.clone(),
        settings,
        allow_empty: wanted.allow_empty,
        runtimes: Some(runtimes.collect()),
        agents,
    };
    let Expanded { tasks, mut notes } = expand(&plan, &source, &basis)?;
    let (mut tasks, chosen) = wanted.selection.apply(tasks)?;
    notes.extend(chosen);
    let mut cut = None;
    if let Some(shard) = wanted.shard {
        let timings = timings(&wanted.timings, &record(path, workplace), directory)?;
        let part = shard.select(tasks, &timings);
        (tasks, cut) = (part.tasks, Some(part.cut));
    }
    let stem = path
        .file_stem()
        .map(|stem| stem.to_string_lossy().into_owned());
    let stem = stem
        .filter(|_| !from_stdin)
        .unwrap_or_else(|| "fanout".into());
    Ok(Ready {
        path: path.to_owned(),
        shard: wanted.shard,
        name: plan.plan.name.clone().unwrap_or(stem),
        unseen: patch::uncommitted(&top)?,
        check: plan.plan.check.clone(),
        env: plan.plan.defaults.env.clone(),
        keep_failed: plan.plan.keep_failed.unwrap_or(fanout::KEEP_FAILED),
        base,
        tasks,
        notes,
        cut,
    })
}

impl Ready {
    /// The check for landing results: `command`, or the plan's.
    pub fn whole_check(&self, command: Option<&str>) -> Option<WholeCheck> {
        let command = command.map(|command| CheckSpec::Command(command.to_owned()));
        let spec = command.or_else(|| self.check.clone())?;
        Some(WholeCheck {
            spec,
            env: self.env.clone(),
        })
    }
}

/// The task durations from all sources; later sources have precedence.
fn timings(named: &[PathBuf], record: &Path, directory: &Path) -> Result<Timings, Failure> {
    let mut all = Timings::default();
    for name in named {
        match name.as_os_str() == "home" {
            // The first run has no record.
            true if !record.exists() => {}
            true => all.extend(Timings::read(record)?),
            false => all.extend(Timings::read(&directory.join(name))?),
        }
    }
    Ok(all)
}

/// The file in which the home keeps the durations of a plan's tasks: the same for all parts of it.
fn record(path: &Path, workplace: &Workplace) -> PathBuf {
    let place = workplace.directory.join(path);
    let place = place.canonicalize().unwrap_or(place);
    let top = patch::top(&workplace.directory).unwrap_or_default();
    // Another clone of the same repository has the same name, and the plan in the same place.
    let inside = place.strip_prefix(&top);
    let named = inside.map(|path| Path::new(top.file_name().unwrap_or_default()).join(path));
    let place = named.unwrap_or_else(|_| place.clone());
    let id = Uuid::new_v5(&Uuid::NAMESPACE_URL, place.as_os_str().as_encoded_bytes());
    let dir = workplace.home().ours().join("timings");
    dir.join(format!("{}.json", id.simple()))
}

/// Adds the durations of a run to the home's record.
fn remember(report: &Report, path: &Path) -> Result<(), Failure> {
    let Some(dir) = path.parent() else {
        return Ok(());
    };
    store::home::create_private_dir(dir)?;
    let mut whole = report.clone();
    let ran = |task: &TaskReport| task.attempts > 0;
    whole.tasks.retain(ran);
    let before = store::atomic::read(path)?;
    let before = before.and_then(|bytes| serde_json::from_slice::<Report>(&bytes).ok());
    let known: BTreeSet<String> = whole.tasks.iter().map(|task| task.id.clone()).collect();
    let others = before.into_iter().flat_map(|report| report.tasks);
    let others = others.filter(|task| !known.contains(&task.id));
    whole.tasks.extend(others);
    // Only the fields that are needed.
    whole.tasks = whole.tasks.into_iter().map(only_time).collect();
    whole.notes.clear();
    let bytes = serde_json::to_vec(&whole).unwrap_or_default();
    let durability = store::atomic::Durability::Relaxed;
    Ok(store::atomic::replace(dir, path, &bytes, durability)?)
}

fn only_time(task: TaskReport) -> TaskReport {
    TaskReport {
        id: task.id,
        attempts: task.attempts,
        duration_ms: task.duration_ms,
        ..TaskReport::default()
    }
}

/// The settings of the plan's agents: proven work counts only for the same ones. Also returns the
/// agent types, if the plan uses any.
fn agents_are(
    plan: &Plan,
    workplace: &Workplace,
) -> Result<(String, Option<Vec<String>>), Failure> {
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
        return Ok((String::new(), None));
    }
    let definitions = definitions::load(None, workplace)?;
    let mut text = format!(
        "{:?} {:?}",
        env::var(env::SUBAGENT_MODEL),
        workplace.agent_settings().default_runtime
    );
    for name in types {
        let name = name.map_or("general-purpose", String::as_str);
        // An unknown type is reported when its tasks are made.
        let found = definitions.get(name);
        let found = found.map(|found| format!("{:?}", found.definition));
        text.push_str(&format!("\n{name}: {}", found.unwrap_or_default()));
    }
    for name in runtimes.into_iter().flatten() {
        let runtime = workplace.runtimes().get(name);
        let runtime = runtime.map(|it| format!("{:?} {:?} {:?}", it.kind, it.command, it.args));
        text.push_str(&format!("\n{name}: {}", runtime.unwrap_or_default()));
    }
    let known = definitions
        .iter()
        .map(|found| found.definition.name.to_string());
    Ok((text, Some(known.collect())))
}

/// The repository and the disk.
struct Disk<'a> {
    top: &'a Path,
    directory: &'a Path,
    base: &'a str,
    /// None if the plan itself was read from it.
    stdin: Option<Stdin>,
    checkout: Checkout,
}

impl Source for Disk<'_> {
    fn files(&self, globs: &[String], except: &[String]) -> Result<Vec<PathBuf>, FanoutError> {
        Ok(patch::files(self.top, self.base, globs, except)?)
    }

    fn contents(&self) -> Result<Vec<(String, String)>, FanoutError> {
        Ok(patch::contents(self.top, self.base)?)
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
            return std::fs::read(path).map_err(|error| {
                wrong(match error.kind() {
                    std::io::ErrorKind::NotFound => "there is no such file".into(),
                    _ => error.to_string(),
                })
            });
        }
        let Some(stdin) = self.stdin else {
            let why = "the plan itself was read from it; give the input a file";
            return Err(wrong(why.into()));
        };
        read_stdin(stdin).map_err(|error| wrong(error.message().to_owned()))
    }

    fn checkout(&self) -> &Checkout {
        &self.checkout
    }
}

fn read_stdin(stdin: Stdin) -> Result<Vec<u8>, Failure> {
    stdin().map_err(|error| Failure::failed("io", format!("standard input: {error}")))
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

impl Ready {
    /// The plan's own team: the same for the same plan in the same repository, whatever its present
    /// content.
    pub fn team(&self, workplace: &Workplace) -> Result<Name, Failure> {
        let explicit = workplace.team_is_explicit();
        if let Some(named) = workplace.named_team().filter(|_| explicit) {
            return Ok(Name::new("team", named)?);
        }
        let place = workplace.directory.join(&self.path);
        let place = place.canonicalize().unwrap_or(place);
        let shard = self.shard.map(|shard| shard.to_string());
        // On a board that several machines share, the same plan is one plan on all of them.
        let shared = workplace.shared_repository();
        let top = patch::top(&workplace.directory).unwrap_or_default();
        let place = match &shared {
            Some(_) => place.strip_prefix(&top).map_or(place.clone(), Into::into),
            None => place,
        };
        let repository = shared.or_else(|| workplace.common_dir().map(str::to_owned));
        let whole = [
            repository.as_deref().unwrap_or_default(),
            &place.to_string_lossy(),
            &self.name,
            &shard.unwrap_or_default(),
        ]
        .join("\0");
        let id = Uuid::new_v5(&Uuid::NAMESPACE_URL, whole.as_bytes());
        let start: String = format!("fanout-{}", self.name).chars().take(48).collect();
        Ok(Name::derived(&start, &id.simple().to_string()[..8]))
    }

    /// Runs it in this team to its end and returns the report.
    pub fn run(
        &self,
        options: &RunOptions,
        team: &Name,
        interrupted: Interrupted,
        events: &mut dyn Events,
        workplace: &Workplace,
    ) -> Result<Report, Failure> {
        let workplace = workplace.in_team(team);
        workplace.check_shared()?;
        let (_, set_up) = workplace.usual_tree()?;
        let isolated = |task: &PlannedTask| task.isolation == fanout::TaskIsolation::Worktree;
        if self.tasks.iter().any(isolated) {
            let instead = "give the plan's tasks `isolation: none`";
            workplace.check_isolation(None, instead)?;
        }
        let tasks = self.tasks.iter();
        let crew = PlanCrew {
            tasks: tasks.map(|task| (task.key.clone(), task.clone())).collect(),
            budget_usd: options.budget_usd,
            crew: TaskCrew {
                definitions: definitions::load(None, &workplace)?,
                runtime: None,
                model: None,
                permission_mode: None,
                set_up: set_up.clone(),
                // Their work shows in their worktrees: they have no one to talk to.
                role: Role::Worker,
                env: Vec::new(),
                workplace: workplace.clone(),
            },
        };
        let directory = workplace.directory.clone();
        let equipment = Equipment {
            agents: workplace.agents()?,
            crew: Box::new(crew),
            set_up,
            top: patch::top(&directory)?,
            secrets: workplace.secrets(),
            finds: Box::new(move |tool| is_there(tool, &directory)),
            interrupted,
            page: page_and_history(&workplace)?,
        };
        let report = fanout::run(&self.tasks, options, equipment, events)?;
        if let Err(error) = remember(&report, &record(&self.path, &workplace)) {
            tracing::warn!(error = error.message(), "how long tasks took is not kept");
        }
        Ok(report)
    }
}

/// Makes the page of a plan's report, and keeps its content for `ccb runs`.
fn page_and_history(workplace: &Workplace) -> Result<fanout::Page, Failure> {
    let (agents, workplace) = (workplace.agents()?, workplace.clone());
    Ok(Box::new(move |plan, dir| {
        let whole = report::of_plan(plan, dir, Some(&agents), &workplace.secrets());
        if let Err(error) = report::history::keep(&whole, &workplace) {
            tracing::warn!(error = error.message(), "`ccb runs` will not list this run");
        }
        report::html(&whole)
    }))
}

/// True if a shell in `directory` would find this program.
pub fn is_there(tool: &str, directory: &Path) -> bool {
    if tool.contains('/') {
        return directory.join(tool).exists();
    }
    let paths = env::path("PATH").unwrap_or_default();
    std::env::split_paths(&paths).any(|dir| dir.join(tool).is_file())
}
