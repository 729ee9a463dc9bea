//! From a plan and its inputs to tasks.
//!
//! The same plan, inputs and base always give the same tasks, ids and keys, in the same order.
//! The id and key of a task follow from the thing it is about, not from its place in a list.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use store::Explain;
use store::name::Name;

use super::error::FanoutError;
use super::items::{self, Item, Source};
use super::plan::{Foreach, TaskIsolation, TaskSpec};
use super::read::PlanFile;
use super::task::{PlannedTask, Work, graph, sha256};
use super::template::{self, Values, Wrong};

/// As many tasks as a plan may have.
pub const MOST_TASKS: usize = 100_000;
const MOST_RETRIES: u32 = 20;

/// What the tasks depend on besides the plan.
#[derive(Debug, Clone, Default)]
pub struct Basis {
    /// The commit everything starts from, by its full name.
    pub base: String,
    /// Whatever else of the agents' settings changes what they do, as text of any kind.
    pub settings: String,
    /// A `foreach` that finds nothing is fine.
    pub allow_empty: bool,
}

/// All tasks of `file`.
pub fn expand(
    file: &PlanFile,
    source: &dyn Source,
    basis: &Basis,
) -> Result<Vec<PlannedTask>, FanoutError> {
    let plan = &file.plan;
    if plan.tasks.is_empty() && plan.foreach.is_empty() {
        return Err(FanoutError::Empty {
            place: file.name.clone(),
        });
    }
    let mut expansion = Expansion {
        file,
        tasks: Vec::new(),
        ids: HashMap::new(),
        groups: BTreeMap::new(),
    };
    for task in &plan.tasks {
        expansion.one(task)?;
    }
    let mut stdin_used = false;
    for (at, foreach) in plan.foreach.iter().enumerate() {
        let uses_stdin = reads_stdin(foreach);
        if uses_stdin && stdin_used {
            let why = "standard input can be read by one foreach only".into();
            return Err(file.wrong_at(None, why, Some("give the others a file".into())));
        }
        stdin_used |= uses_stdin;
        expansion.each(at, foreach, source, basis.allow_empty)?;
    }
    expansion.connect()?;
    let mut tasks = expansion.tasks;
    give_keys(&mut tasks, basis);
    Ok(tasks)
}

fn reads_stdin(foreach: &Foreach) -> bool {
    let lists = [&foreach.junit, &foreach.sarif];
    let lists = lists.into_iter().flatten().flat_map(|texts| &texts.0);
    lists
        .chain(&foreach.lines)
        .chain(&foreach.jsonl)
        .any(|name| name == "-")
}

/// Keys build on keys, so those of dependencies come first.
fn give_keys(tasks: &mut [PlannedTask], basis: &Basis) {
    let graph = graph(tasks);
    for at in graph.order() {
        let key = {
            let before = graph.before[at].iter();
            let mut before: Vec<&str> = before.map(|on| tasks[*on].key.as_str()).collect();
            tasks[at].content_key(&basis.base, &basis.settings, &mut before)
        };
        tasks[at].key = key;
    }
}

struct Expansion<'p> {
    file: &'p PlanFile,
    tasks: Vec<PlannedTask>,
    /// By lower case.
    ids: HashMap<String, usize>,
    /// The tasks of each `foreach` that has an id.
    groups: BTreeMap<String, Vec<String>>,
}

impl Expansion<'_> {
    /// A task that stands in the plan as it is.
    fn one(&mut self, spec: &TaskSpec) -> Result<(), FanoutError> {
        let Some(id) = &spec.id else {
            let named = spec.subject.as_deref().unwrap_or("");
            let why = format!("a task has no id ({named:?})");
            return Err(self.file.wrong("subject", named, 0, why));
        };
        let task = self.task(id, spec, None)?;
        self.add(task)
    }

    fn each(
        &mut self,
        at: usize,
        foreach: &Foreach,
        source: &dyn Source,
        allow_empty: bool,
    ) -> Result<(), FanoutError> {
        let file = self.file;
        let (found, what) = things(file, at, foreach, source)?;
        if found.is_empty() && !allow_empty {
            return Err(FanoutError::NothingMatched { what });
        }
        if let Some(group) = &foreach.id {
            self.check_name(group)?;
            if self.ids.contains_key(&group.to_lowercase()) || self.groups.contains_key(group) {
                let why = format!("the id {group:?} is there twice");
                return Err(file.wrong("id", group, 1, why));
            }
            self.groups.insert(group.clone(), Vec::new());
        }
        // The same thing twice is numbered, whatever lies between.
        let mut seen: HashMap<String, usize> = HashMap::new();
        for mut item in found {
            let print = item_print(&item);
            let again = seen.entry(print.clone()).or_insert(0);
            *again += 1;
            let index = self.tasks.len() + 1;
            item.values.insert("index".into(), index.to_string());
            let id = match &foreach.task.id {
                Some(id) => self.filled("id", template::text(id, &item.values))?,
                None => own_id(foreach.id.as_deref(), &item.label, &print, *again),
            };
            let task = self.task(&id, &foreach.task, Some((foreach, &item)))?;
            self.add(task)?;
            if let Some(group) = &foreach.id {
                self.groups.entry(group.clone()).or_default().push(id);
            }
        }
        Ok(())
    }

    fn check_name(&self, id: &str) -> Result<(), FanoutError> {
        Name::new("task", id).map(|_| ()).map_err(|error| {
            let line = self.file.line_with("id", id, 0);
            self.file.wrong_at(line, error.to_string(), error.hint())
        })
    }

    fn filled(&self, key: &str, text: Result<String, Wrong>) -> Result<String, FanoutError> {
        text.map_err(|wrong| {
            self.file
                .wrong_at(None, format!("foreach, {key}: {}", wrong.why), wrong.hint)
        })
    }

    /// Everything but its key and what it waits for, which is still as written.
    fn task(
        &self,
        id: &str,
        spec: &TaskSpec,
        of: Option<(&Foreach, &Item)>,
    ) -> Result<PlannedTask, FanoutError> {
        self.check_name(id)?;
        let defaults = &self.file.plan.defaults;
        let text = |key: &str, given: &str| match of {
            None => Ok(given.to_owned()),
            Some((_, item)) => self.filled(key, template::text(given, &item.values)),
        };
        let command = |key: &str, given: &str| match of {
            None => Ok(given.to_owned()),
            Some((_, item)) => self.filled(key, template::command(given, &item.values)),
        };
        let texts = |key: &str, given: &[String]| {
            given
                .iter()
                .map(|one| text(key, one))
                .collect::<Result<Vec<_>, _>>()
        };
        let work = match (&spec.prompt, &spec.run) {
            (Some(prompt), None) => Work::Prompt(text("prompt", prompt)?),
            (None, Some(run)) => Work::Run(command("run", run)?),
            (None, None) => return Err(self.about(id, "has neither `prompt` nor `run`")),
            (Some(_), Some(_)) => return Err(self.about(id, "has both `prompt` and `run`")),
        };
        let (Work::Prompt(said) | Work::Run(said)) = &work;
        if said.trim().is_empty() {
            return Err(self.about(id, "says nothing to do: its `prompt` or `run` is empty"));
        }
        let subject = match (&spec.subject, of) {
            (Some(subject), _) => text("subject", subject)?,
            (None, Some((_, item))) => item.label.clone(),
            (None, None) => id.to_owned(),
        };
        let verify = match (&spec.verify, &defaults.verify) {
            (Some(own), _) => Some(command("verify", own)?),
            (None, Some(common)) => Some(command("verify", common)?),
            (None, None) => None,
        };
        let mut env = defaults.env.clone();
        for (name, value) in &spec.env {
            env.insert(name.clone(), text("env", value)?);
        }
        self.check_env(id, &env)?;
        let retries = spec.retries.or(defaults.retries).unwrap_or(1);
        if retries > MOST_RETRIES {
            let why = format!("wants {retries} retries, at most {MOST_RETRIES} are allowed");
            return Err(self.about(id, &why));
        }
        let budget = spec.budget.or(defaults.budget).unwrap_or_default();
        if budget.usd.is_some_and(|usd| !usd.is_finite() || usd < 0.0) {
            return Err(self.about(id, "has a budget that is not an amount of money"));
        }
        let timeout = spec.timeout.or(defaults.timeout).map(|span| span.0);
        Ok(PlannedTask {
            id: id.to_owned(),
            subject: one_line(&subject),
            runtime: self.runtime(id, spec, &work)?,
            work,
            depends_on: texts("dependsOn", &spec.depends_on.0)?,
            paths: texts("paths", &spec.paths.0)?,
            verify: verify.filter(|verify| !verify.trim().is_empty()),
            agent: spec.agent.clone().or_else(|| defaults.agent.clone()),
            model: spec.model.clone().or_else(|| defaults.model.clone()),
            priority: spec.priority.unwrap_or(0),
            env,
            attempts: retries + 1,
            timeout,
            budget,
            isolation: spec
                .isolation
                .or(defaults.isolation)
                .unwrap_or(TaskIsolation::Worktree),
            group: of.and_then(|(foreach, _)| foreach.id.clone()),
            origin: of.and_then(|(_, item)| item.origin.clone()),
            key: String::new(),
        })
    }

    /// A command is run by a shell, and a shell understands nothing else.
    fn runtime(
        &self,
        id: &str,
        spec: &TaskSpec,
        work: &Work,
    ) -> Result<Option<String>, FanoutError> {
        let common = self.file.plan.defaults.runtime.as_deref();
        match work {
            Work::Run(_) => match spec.runtime.as_deref() {
                None | Some("shell") => Ok(Some("shell".into())),
                Some(other) => {
                    let why = format!("has `run`, which the runtime {other:?} does not do");
                    Err(self.about(id, &why))
                }
            },
            Work::Prompt(_) => match spec.runtime.as_deref().or(common) {
                Some("shell") => Err(self.about(
                    id,
                    "has a `prompt`, which the runtime \"shell\" does not understand",
                )),
                other => Ok(other.map(str::to_owned)),
            },
        }
    }

    fn check_env(&self, id: &str, env: &BTreeMap<String, String>) -> Result<(), FanoutError> {
        let bad = |(name, value): &(&String, &String)| {
            name.is_empty() || name.contains(['=', '\0']) || value.contains('\0')
        };
        match env.iter().find(bad) {
            None => Ok(()),
            Some((name, _)) => Err(self.about(
                id,
                &format!("has an environment variable {name:?} that cannot be"),
            )),
        }
    }

    fn about(&self, id: &str, why: &str) -> FanoutError {
        self.file.wrong("id", id, 0, format!("task {id:?} {why}"))
    }

    fn add(&mut self, task: PlannedTask) -> Result<(), FanoutError> {
        if self.tasks.len() >= MOST_TASKS {
            let why = format!("the plan has more than {MOST_TASKS} tasks");
            return Err(self
                .file
                .wrong_at(None, why, Some("split it, or use --shard".into())));
        }
        let place = self.tasks.len();
        if let Some(first) = self.ids.insert(task.id.to_lowercase(), place) {
            let (id, other) = (&task.id, &self.tasks[first].id);
            let why = if id == other {
                format!("the id {id:?} is there twice")
            } else {
                format!("the ids {other:?} and {id:?} differ in case only")
            };
            let nth = usize::from(id == other);
            return Err(self.file.wrong("id", id, nth, why));
        }
        if self.groups.contains_key(&task.id) {
            let why = format!("the id {:?} is a foreach's and a task's", task.id);
            return Err(self.file.wrong("id", &task.id, 0, why));
        }
        self.tasks.push(task);
        Ok(())
    }

    /// Groups become their tasks; what is unknown or goes in circles is told.
    fn connect(&mut self) -> Result<(), FanoutError> {
        let known: BTreeSet<String> = self.tasks.iter().map(|task| task.id.clone()).collect();
        for at in 0..self.tasks.len() {
            let mut all = BTreeSet::new();
            for on in std::mem::take(&mut self.tasks[at].depends_on) {
                if let Some(group) = self.groups.get(&on) {
                    all.extend(group.iter().cloned());
                } else if known.contains(&on) {
                    all.insert(on);
                } else {
                    let id = &self.tasks[at].id;
                    let names = known.iter().chain(self.groups.keys()).map(String::as_str);
                    let hint =
                        store::nearest(&on, names).map(|near| format!("did you mean {near:?}?"));
                    let why = format!("task {id:?} depends on {on:?}, which is not in the plan");
                    let line = self.file.line_with("dependsOn", &on, 0);
                    return Err(self.file.wrong_at(line, why, hint));
                }
            }
            self.tasks[at].depends_on = all.into_iter().collect();
        }
        let graph = graph(&self.tasks);
        let Some(cycle) = graph.cycle() else {
            return Ok(());
        };
        let names = cycle.iter().chain(cycle.first());
        let names: Vec<&str> = names.map(|at| self.tasks[*at].id.as_str()).collect();
        let why = format!("tasks wait for each other: {}", names.join(" → "));
        let hint = "take one of these out of its task's dependsOn".to_owned();
        let line = self.file.line_with("id", names[0], 0);
        Err(self.file.wrong_at(line, why, Some(hint)))
    }
}

/// What the `foreach` is over, and in words what it looked for.
fn things(
    file: &PlanFile,
    at: usize,
    foreach: &Foreach,
    source: &dyn Source,
) -> Result<(Vec<Item>, String), FanoutError> {
    let name = match &foreach.id {
        Some(id) => format!("foreach {id:?}"),
        None => format!("foreach number {}", at + 1),
    };
    let given = [
        foreach.files.is_some(),
        foreach.lines.is_some(),
        foreach.jsonl.is_some(),
        foreach.junit.is_some(),
        foreach.sarif.is_some(),
    ];
    if given.iter().filter(|given| **given).count() != 1 {
        let why = format!("{name} needs exactly one of files, lines, jsonl, junit and sarif");
        return Err(file.wrong_at(None, why, None));
    }
    if !foreach.exclude.0.is_empty() && foreach.files.is_none() {
        let why = format!("{name}: `exclude` goes with `files` only");
        return Err(file.wrong_at(None, why, None));
    }
    let reports = |names: &[String], read: fn(&str, &[u8]) -> Result<Vec<Item>, FanoutError>| {
        let mut all = Vec::new();
        for name in names {
            all.extend(read(shown(name), &source.read(name)?)?);
        }
        Ok::<_, FanoutError>(all)
    };
    if let Some(globs) = &foreach.files {
        let mut paths = source.files(&globs.0, &foreach.exclude.0)?;
        paths.sort();
        paths.dedup();
        let what = format!(
            "{name}: no file of the base commit matches {}",
            globs.0.join(", ")
        );
        return Ok((items::files(paths)?, what));
    }
    if let Some(lines) = &foreach.lines {
        let found = items::lines(shown(lines), &source.read(lines)?)?;
        return Ok((found, format!("{name}: {} has no line", shown(lines))));
    }
    if let Some(lines) = &foreach.jsonl {
        let found = items::jsonl(shown(lines), &source.read(lines)?)?;
        return Ok((found, format!("{name}: {} has no line", shown(lines))));
    }
    if let Some(names) = &foreach.junit {
        let what = format!("{name}: no test failed in {}", names.0.join(", "));
        return Ok((reports(&names.0, items::junit)?, what));
    }
    let names = foreach.sarif.clone().unwrap_or_default();
    let what = format!("{name}: there is no finding in {}", names.0.join(", "));
    Ok((reports(&names.0, items::sarif)?, what))
}

fn shown(name: &str) -> &str {
    if name == "-" { "standard input" } else { name }
}

/// What tells one thing from another.
fn item_print(item: &Item) -> String {
    let values: Values = item.values.clone();
    sha256(
        serde_json::json!([item.label, values])
            .to_string()
            .as_bytes(),
    )
}

/// An id for a thing: what of its name is usable, and enough of its hash to be its own.
fn own_id(group: Option<&str>, label: &str, print: &str, again: usize) -> String {
    let usable = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    let text: String = label
        .chars()
        .map(|c| if usable(c) { c } else { '-' })
        .collect();
    let text = text.replace("..", "-");
    let start: String = match group {
        Some(group) => format!("{group}-{text}"),
        None => text,
    };
    let mut end = format!("-{}", &print[..8]);
    if again > 1 {
        end.push_str(&format!("-{again}"));
    }
    let start = start.trim_start_matches(|c: char| !c.is_ascii_alphanumeric());
    let room = 64 - end.len();
    let start: String = start.chars().take(room).collect();
    let start = start.trim_end_matches(['.', '-', '_']);
    if start.is_empty() {
        format!("task{end}")
    } else {
        format!("{start}{end}")
    }
}

fn one_line(text: &str) -> String {
    // What a tool found may be quoted with whatever was in the file.
    let apart = |c: char| c.is_whitespace() || c.is_control();
    let words: Vec<&str> = text.split(apart).filter(|word| !word.is_empty()).collect();
    words.join(" ")
}
