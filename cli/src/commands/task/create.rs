use std::io::Read;
use std::path::Path;

use clap::Args;
use coordinator::actions::task as actions;
use project::workplace::hooks;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use store::Failure;
use taskboard::{BoardError, NewTask, Reference, TaskFacts};

use super::{ids, join, line};
use crate::context::Context;
use crate::exit::Exit;
use crate::output::GREEN;

#[derive(Debug, Args)]
pub(crate) struct CreateArgs {
    /// What to do, in one line
    #[arg(required_unless_present = "from", conflicts_with = "from")]
    subject: Option<String>,
    /// The details; `-` reads them from standard input
    #[arg(short, long, conflicts_with = "from")]
    description: Option<String>,
    /// The subject as an activity ("Fixing the build")
    #[arg(long, value_name = "TEXT", conflicts_with = "from")]
    active_form: Option<String>,
    /// A task it waits for
    #[arg(long, value_name = "ID", conflicts_with = "from")]
    blocked_by: Vec<String>,
    /// A task that waits for it
    #[arg(long, value_name = "ID", conflicts_with = "from")]
    blocks: Vec<String>,
    #[command(flatten)]
    ours: OurMetadata,
    /// Create one task per line of this JSONL file, all or none; `-` is standard input
    #[arg(
        long,
        value_name = "FILE",
        long_help = "Create one task per line of this JSONL file, all or none; `-` is standard \
            input. A row has `subject` and, if wanted, `description`, `activeForm`, `blockedBy`, \
            `blocks`, `priority`, `run`, `verify`, `agent`, `paths`, `needs`, `metadata` and `key`. Other \
            rows can name the key in `blockedBy` and `blocks`."
    )]
    from: Option<String>,
}

/// The properties of a task besides its text.
#[derive(Debug, Args)]
pub(super) struct OurMetadata {
    /// Higher goes first [default: 0]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    priority: Option<i64>,
    /// The command that does the task
    #[arg(long, value_name = "CMD")]
    run: Option<String>,
    /// The check: a command that must succeed; empty removes it
    #[arg(long, value_name = "CMD")]
    verify: Option<String>,
    /// Files it may change, such as 'src/**'; can be repeated. Tasks whose paths overlap do not run
    /// at the same time, and a result that changes other files does not count
    #[arg(long, value_name = "PATTERN")]
    paths: Vec<String>,
    /// A label that a worker must have to do the task, such as gpu or os=linux; can be repeated
    #[arg(long, value_name = "LABEL")]
    needs: Vec<String>,
    /// Metadata; the value is JSON, `null` removes the key
    #[arg(long = "meta", value_name = "KEY=JSON")]
    metadata: Vec<String>,
}

impl OurMetadata {
    pub(super) fn to_map(&self) -> Result<Map<String, Value>, Failure> {
        let mut map = Map::new();
        for text in &self.metadata {
            let bad = |why: &str| {
                Failure::usage("invalid", format!("--meta {text:?}: {why}"))
                    .with_hint("for example --meta 'area=\"parser\"' or --meta tries=3")
            };
            let (key, value) = text.split_once('=').ok_or_else(|| bad("there is no ="))?;
            if key.is_empty() {
                return Err(bad("the key is empty"));
            }
            let value = serde_json::from_str(value)
                .map_err(|error| bad(&format!("the value is not JSON ({error})")))?;
            map.insert(key.to_owned(), value);
        }
        let not_empty = |verify: String| (!verify.is_empty()).then_some(verify);
        let facts = TaskFacts {
            priority: self.priority,
            run: self.run.clone(),
            verify: self.verify.clone().map(not_empty),
            paths: (!self.paths.is_empty()).then(|| {
                let paths = self.paths.iter().filter(|path| !path.is_empty());
                paths.cloned().collect()
            }),
            needs: (!self.needs.is_empty()).then(|| {
                let needs = self.needs.iter().filter(|label| !label.is_empty());
                needs.cloned().collect()
            }),
            ..TaskFacts::default()
        };
        facts.put_into(&mut map);
        Ok(map)
    }
}

/// A line of `--from`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Row {
    key: Option<String>,
    subject: String,
    #[serde(default)]
    description: String,
    active_form: Option<String>,
    #[serde(default)]
    blocked_by: Vec<String>,
    #[serde(default)]
    blocks: Vec<String>,
    priority: Option<i64>,
    run: Option<String>,
    verify: Option<String>,
    agent: Option<String>,
    paths: Option<Vec<String>>,
    needs: Option<Vec<String>>,
    #[serde(default)]
    metadata: Map<String, Value>,
}

impl Row {
    fn into_task(self, keys: &[String]) -> NewTask {
        // A key of the batch takes precedence over an id that looks the same.
        let reference = |text: String| match text.parse() {
            Ok(id) if !keys.contains(&text) => Reference::Id(id),
            _ => Reference::Key(text),
        };
        let mut metadata = self.metadata;
        let facts = TaskFacts {
            priority: self.priority,
            run: self.run,
            verify: self.verify.map(Some),
            agent: self.agent,
            paths: self.paths,
            needs: self.needs,
        };
        facts.put_into(&mut metadata);
        NewTask {
            key: self.key,
            subject: self.subject,
            description: self.description,
            active_form: self.active_form,
            blocked_by: self.blocked_by.into_iter().map(reference).collect(),
            blocks: self.blocks.into_iter().map(reference).collect(),
            metadata,
        }
    }
}

pub(crate) fn run(args: &CreateArgs, context: &mut Context) -> Result<Exit, Failure> {
    let board = context.board();
    if let Some(from) = &args.from {
        let batch = read_rows(from, &context.directory)?;
        let hooks = hooks::before_create(context);
        let tasks = board.create(&batch, hooks::asked(hooks.as_ref()))?;
        let json = || {
            let tasks: Vec<Value> = tasks.iter().map(actions::to_json).collect();
            json!({ "tasks": tasks })
        };
        let ids: Vec<_> = tasks.iter().map(|task| task.id).collect();
        let text = || match (ids.first(), ids.last()) {
            (Some(first), Some(last)) if ids.len() > 8 => {
                format!(
                    "{GREEN}✔{GREEN:#} created {} tasks, {first} to {last}",
                    ids.len()
                )
            }
            (Some(_), _) => format!("{GREEN}✔{GREEN:#} created {}", join(&ids)),
            _ => "nothing to create: there are no rows".into(),
        };
        return context.out.done(json, text);
    }
    let references = |texts: &[String]| -> Result<Vec<Reference>, BoardError> {
        Ok(ids(texts)?.into_iter().map(Reference::Id).collect())
    };
    let new = NewTask {
        key: None,
        subject: args.subject.clone().unwrap_or_default(),
        description: description(args.description.as_deref())?.unwrap_or_default(),
        active_form: args.active_form.clone(),
        blocked_by: references(&args.blocked_by)?,
        blocks: references(&args.blocks)?,
        metadata: args.ours.to_map()?,
    };
    let task = actions::create(new, context)?;
    let text = || format!("{GREEN}✔{GREEN:#} created {}", line(&task));
    let json = || json!({ "task": actions::to_json(&task) });
    context.out.done(json, text)
}

/// A description given on the command line, or on standard input.
pub(super) fn description(given: Option<&str>) -> Result<Option<String>, Failure> {
    match given {
        Some("-") => read_stdin().map(Some),
        other => Ok(other.map(str::to_owned)),
    }
}

fn read_stdin() -> Result<String, Failure> {
    let mut bytes = Vec::new();
    std::io::stdin()
        .read_to_end(&mut bytes)
        .map_err(|error| Failure::failed("io", format!("cannot read stdin: {error}")))?;
    String::from_utf8(bytes)
        .map_err(|_| Failure::usage("invalid", "standard input is not valid UTF-8"))
}

fn read_rows(from: &str, directory: &Path) -> Result<Vec<NewTask>, Failure> {
    let text = if from == "-" {
        read_stdin()?
    } else {
        std::fs::read_to_string(directory.join(from))
            .map_err(|error| Failure::usage("io", format!("cannot read {from}: {error}")))?
    };
    let bad = |n: usize, why: &dyn std::fmt::Display| {
        Failure::usage("invalid", format!("{from}, line {}: {why}", n + 1))
            .with_hint("`ccb task create --help` lists what a row can have")
    };
    let mut rows: Vec<(usize, Row)> = Vec::new();
    for (n, line) in text
        .lines()
        .enumerate()
        .filter(|(_, line)| !line.trim().is_empty())
    {
        rows.push((
            n,
            serde_json::from_str(line).map_err(|error| bad(n, &error))?,
        ));
    }
    let keys: Vec<String> = rows.iter().filter_map(|(_, row)| row.key.clone()).collect();
    let mut batch = Vec::with_capacity(rows.len());
    for (n, row) in rows {
        let task = row.into_task(&keys);
        task.check().map_err(|error| bad(n, &error))?;
        batch.push(task);
    }
    Ok(batch)
}
