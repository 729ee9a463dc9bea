//! From a plan and its inputs to tasks.
//!
//! The same plan, inputs and base always give the same tasks, ids and keys, in the same order.
//! The id and key of a task follow from the thing it is about, not from its place in a list.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use runs::file_rules::matches;

use super::error::FanoutError;
use super::items::{Item, Source};
use super::lines::Step;
use super::maker::{Maker, Place};
use super::paths::Checkout;
use super::plan::{Foreach, TaskSpec};
use super::protect;
use super::read::PlanFile;
use super::select::{any_matches, few};
use super::task::{PlannedTask, graph, sha256};
use super::things::Loop;

/// Maximum number of tasks of a plan.
pub const MOST_TASKS: usize = 100_000;

/// The facts besides the plan that the tasks depend on.
#[derive(Debug, Clone, Default)]
pub struct Basis {
    /// The commit everything starts from, by its full name.
    pub base: String,
    /// All other settings of the agents that change their work, as text of any kind.
    pub settings: String,
    /// True if a `foreach` may match nothing.
    pub allow_empty: bool,
    /// The available runtimes; `None` if unknown.
    pub runtimes: Option<Vec<String>>,
    /// The available agent types; `None` if unknown.
    pub agents: Option<Vec<String>>,
}

/// The tasks of a plan, and notes for every reader.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Expanded {
    /// The tasks, in the order of the plan.
    pub tasks: Vec<PlannedTask>,
    /// The things that were left out, with reasons.
    pub notes: Vec<String>,
}

/// All tasks of `file`.
pub fn expand(
    file: &PlanFile,
    source: &dyn Source,
    basis: &Basis,
) -> Result<Expanded, FanoutError> {
    let plan = &file.plan;
    if plan.tasks.is_empty() && plan.foreach.is_empty() {
        return Err(FanoutError::Empty {
            place: file.name.clone(),
        });
    }
    let mut expansion = Expansion {
        file,
        basis,
        checkout: source.checkout(),
        tasks: Vec::new(),
        places: Vec::new(),
        ids: HashMap::new(),
        groups: BTreeMap::new(),
        notes: Vec::new(),
    };
    for (at, task) in plan.tasks.iter().enumerate() {
        expansion.one(at, task)?;
    }
    let mut stdin_used = false;
    for (at, foreach) in plan.foreach.iter().enumerate() {
        let uses_stdin = reads_stdin(foreach);
        if uses_stdin && stdin_used {
            let why = "standard input can be read by one foreach only".into();
            let line = file.line(&[Step::Key("foreach"), Step::At(at)]);
            return Err(file.wrong_at(line, why, Some("give the others a file".into())));
        }
        stdin_used |= uses_stdin;
        expansion.each(at, foreach, source)?;
    }
    expansion.connect()?;
    let Expansion {
        mut tasks, notes, ..
    } = expansion;
    protect::add(&mut tasks, &plan.protect.0, source)?;
    give_keys(&mut tasks, basis, source)?;
    Ok(Expanded { tasks, notes })
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
fn give_keys(
    tasks: &mut [PlannedTask],
    basis: &Basis,
    source: &dyn Source,
) -> Result<(), FanoutError> {
    let files = match tasks.iter().any(PlannedTask::has_inputs) {
        true => source.contents()?,
        false => Vec::new(),
    };
    let graph = graph(tasks);
    for at in graph.order() {
        let task = &tasks[at];
        let base = match task.has_inputs() {
            true => inputs_key(&task.inputs, &files),
            false => basis.base.clone(),
        };
        let before = graph.before[at].iter();
        let mut before: Vec<&str> = before.map(|on| tasks[*on].key.as_str()).collect();
        tasks[at].key = task.content_key(&base, &basis.settings, &mut before);
    }
    Ok(())
}

/// A hash of the base commit's files that match these patterns.
fn inputs_key(patterns: &[String], files: &[(String, String)]) -> String {
    let is_input =
        |(path, _): &&(String, String)| patterns.iter().any(|pattern| matches(pattern, path));
    let found: Vec<_> = files.iter().filter(is_input).collect();
    let content = serde_json::json!(["inputs", patterns, found]);
    sha256(content.to_string().as_bytes())
}

struct Expansion<'p> {
    file: &'p PlanFile,
    basis: &'p Basis,
    checkout: &'p Checkout,
    tasks: Vec<PlannedTask>,
    /// The place in the plan that each task comes from.
    places: Vec<Place>,
    /// By the id in lower case.
    ids: HashMap<String, usize>,
    /// The tasks of each `foreach` that has an id.
    groups: BTreeMap<String, Vec<String>>,
    notes: Vec<String>,
}

impl<'p> Expansion<'p> {
    fn maker(&self, place: Place, spec: &'p TaskSpec, foreach: Option<&'p Foreach>) -> Maker<'p> {
        Maker {
            file: self.file,
            basis: self.basis,
            checkout: self.checkout,
            place,
            spec,
            foreach,
        }
    }

    /// A task that stands in the plan as it is.
    fn one(&mut self, at: usize, spec: &'p TaskSpec) -> Result<(), FanoutError> {
        let place = Place::Task(at);
        let Some(id) = &spec.id else {
            let named = spec.subject.as_deref().unwrap_or("");
            let why = format!("a task has no id ({named:?})");
            return Err(self.file.wrong(&place.steps("subject"), why));
        };
        let task = self.maker(place, spec, None).task(id, None)?;
        self.add(task, place)
    }

    fn each(
        &mut self,
        at: usize,
        foreach: &'p Foreach,
        source: &dyn Source,
    ) -> Result<(), FanoutError> {
        let all = Loop {
            file: self.file,
            at,
            foreach,
            source,
        };
        for (key, number) in [("sample", foreach.sample), ("limit", foreach.limit)] {
            if number == Some(0) {
                return Err(all.wrong(key, &format!(": `{key}` must be at least 1")));
            }
        }
        let things = all.things(self.tasks.len() + 1)?;
        if things.items.is_empty() && !self.basis.allow_empty {
            return Err(FanoutError::NothingMatched { what: things.what });
        }
        self.notes.extend(things.notes);
        self.begin_group(at, foreach)?;
        let place = Place::Foreach(at);
        let maker = self.maker(place, &foreach.task, Some(foreach));
        let (found, named) = (things.items.len(), with_ids(things.items, &maker, foreach)?);
        let chosen = choose(named, foreach);
        if chosen.len() < found {
            let note = format!(
                "{}: {} of {found} items were chosen",
                all.name(),
                chosen.len()
            );
            self.notes.push(note);
        }
        if chosen.is_empty() && !self.basis.allow_empty {
            let what = format!("{}: `only` and `skip` leave nothing", all.name());
            return Err(FanoutError::NothingMatched { what });
        }
        for (id, item) in chosen {
            let task = maker.task(&id, Some(&item))?;
            self.add(task, place)?;
            if let Some(group) = &foreach.id {
                self.groups.entry(group.clone()).or_default().push(id);
            }
        }
        Ok(())
    }

    /// Checks that no other task or group has the id of a `foreach`.
    fn begin_group(&mut self, at: usize, foreach: &Foreach) -> Result<(), FanoutError> {
        let Some(group) = &foreach.id else {
            return Ok(());
        };
        let line = || {
            let steps = [Step::Key("foreach"), Step::At(at), Step::Key("id")];
            self.file.line(&steps)
        };
        if let Err(error) = store::name::Name::new("task", group) {
            let hint = store::Explain::hint(&error);
            return Err(self.file.wrong_at(line(), error.to_string(), hint));
        }
        if self.ids.contains_key(&group.to_lowercase()) || self.groups.contains_key(group) {
            let why = format!("the id {group:?} is there twice");
            return Err(self.file.wrong_at(line(), why, None));
        }
        self.groups.insert(group.clone(), Vec::new());
        Ok(())
    }

    fn add(&mut self, task: PlannedTask, place: Place) -> Result<(), FanoutError> {
        if self.tasks.len() >= MOST_TASKS {
            let why = format!("the plan has more than {MOST_TASKS} tasks");
            return Err(self
                .file
                .wrong_at(None, why, Some("split it, or use --shard".into())));
        }
        let at = self.tasks.len();
        if let Some(first) = self.ids.insert(task.id.to_lowercase(), at) {
            let (id, other) = (&task.id, &self.tasks[first].id);
            let why = if id == other {
                format!("the id {id:?} is there twice")
            } else {
                format!("the ids {other:?} and {id:?} differ in case only")
            };
            return Err(self.file.wrong(&place.steps("id"), why));
        }
        if self.groups.contains_key(&task.id) {
            let why = format!("the id {:?} is a foreach's and a task's", task.id);
            return Err(self.file.wrong(&place.steps("id"), why));
        }
        self.tasks.push(task);
        self.places.push(place);
        Ok(())
    }

    /// Replaces groups by their tasks; reports unknown names and cycles.
    fn connect(&mut self) -> Result<(), FanoutError> {
        let known: BTreeSet<String> = self.tasks.iter().map(|task| task.id.clone()).collect();
        for at in 0..self.tasks.len() {
            let mut all = BTreeSet::new();
            let given = std::mem::take(&mut self.tasks[at].depends_on);
            for (nth, on) in given.into_iter().enumerate() {
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
                    let mut steps = self.places[at].steps("dependsOn");
                    steps.push(Step::At(nth));
                    return Err(self.file.wrong_at(self.file.line(&steps), why, hint));
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
        let first = self.places[cycle[0]];
        let line = self.file.line(&first.steps("id"));
        Err(self.file.wrong_at(line, why, Some(hint)))
    }
}

/// The things with the ids of their tasks.
fn with_ids(
    items: Vec<Item>,
    maker: &Maker<'_>,
    foreach: &Foreach,
) -> Result<Vec<(String, Item)>, FanoutError> {
    // Equal things are numbered, even if they are not adjacent.
    let mut seen: HashMap<String, usize> = HashMap::new();
    let mut named = Vec::with_capacity(items.len());
    for mut item in items {
        let print = item.print();
        let again = seen.entry(print.clone()).or_insert(0);
        *again += 1;
        let (count, findings) = (item.members.len().max(1), item.findings());
        let more = [("count", count.to_string()), ("findings", findings)];
        for (name, value) in more {
            // The thing's own values have precedence.
            item.values.entry(name.to_owned()).or_insert(value);
        }
        let id = match maker.own_id(&item)? {
            Some(id) => id,
            None => own_id(foreach.id.as_deref(), &item.label, &print, *again),
        };
        named.push((id, item));
    }
    Ok(named)
}

/// The things that the `foreach` selects.
fn choose(named: Vec<(String, Item)>, foreach: &Foreach) -> Vec<(String, Item)> {
    let (only, skip) = (&foreach.only.0, &foreach.skip.0);
    let wanted = |(id, _): &(String, Item)| {
        (only.is_empty() || any_matches(only, id)) && !any_matches(skip, id)
    };
    let wanted: Vec<(String, Item)> = named.into_iter().filter(wanted).collect();
    let print = |(id, _): &(String, Item)| sha256(id.as_bytes());
    few(wanted, foreach.sample, foreach.limit, print)
}

/// An id for a thing: the usable part of its name, and enough of its hash to be unique.
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
