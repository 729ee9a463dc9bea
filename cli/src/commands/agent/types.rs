use std::path::Path;

use clap::Args;
use coordinator::agent::bounds;
use coordinator::agent::definitions;
use serde_json::{Value, json};
use store::{Category, Failure};
use swarm::definitions::{Definition, Definitions, Found, Source};
use swarm::tools::ToolFilter;
use term::table::{self, Cell};

use crate::context::Context;
use crate::exit::Exit;
use crate::output::{BOLD, DIM, PLAIN, RED, clean_line, quoted, terminal_width};

#[derive(Debug, Args)]
pub(crate) struct TypesArgs {
    /// Show only this type, with its prompt
    name: Option<String>,
    /// Fail (exit 2) if a definition is left out or has unknown keys
    #[arg(long)]
    strict: bool,
}

pub(crate) fn run(
    args: &TypesArgs,
    agents: Option<&str>,
    context: &mut Context,
) -> Result<Exit, Failure> {
    let all = definitions::load(agents, context)?;
    let here = context.directory.clone();
    match &args.name {
        Some(name) => {
            let found = all.get(name)?;
            let json = || json!({ "type": one_as_json(found, &all, true) });
            context.out.answer(json, || one_as_text(found, &here))?;
        }
        None => {
            let json = || as_json(&all);
            context.out.answer(json, || as_text(&all, &here))?;
        }
    }
    if !context.out.is_json() {
        for problem in &all.problems {
            context.out.warn(problem);
        }
    }
    let failed = args.strict && !all.problems.is_empty();
    Ok(if failed {
        Exit::Not(Category::Invalid)
    } else {
        Exit::Done
    })
}

fn as_json(all: &Definitions) -> Value {
    let (counting, hidden): (Vec<&Found>, Vec<&Found>) = all
        .found
        .iter()
        .partition(|found| found.overridden_by.is_none());
    let each = |found: Vec<&Found>| -> Vec<Value> {
        let found = found.into_iter();
        found.map(|one| one_as_json(one, all, false)).collect()
    };
    json!({
        "types": each(counting),
        "overridden": each(hidden),
        "problems": all.problems.iter().map(|problem| problem.to_json()).collect::<Vec<_>>(),
    })
}

fn one_as_json(found: &Found, all: &Definitions, prompt: bool) -> Value {
    let mut value = found.definition.to_json();
    if let (Some(map), false) = (value.as_object_mut(), prompt) {
        map.remove("prompt");
    }
    value["source"] = found.source.as_str().into();
    if let Some(file) = found.source.file() {
        value["file"] = file.to_string_lossy().into();
    }
    value["overrides"] = found.overrides.iter().map(source_as_json).collect();
    if let Some(by) = &found.overridden_by {
        value["overriddenBy"] = source_as_json(by);
    }
    value["denied"] = all.is_denied(found.definition.name.as_str()).into();
    value["needsTrust"] = needs_trust(found).into();
    let filter = ToolFilter::of(&found.definition);
    value["readOnly"] = filter.reach().is_read_only().into();
    if let Some(missing) = bounds::missing_as_teammate(&filter) {
        value["asTeammate"] = missing.into();
    }
    value
}

fn source_as_json(source: &Source) -> Value {
    match source.file() {
        Some(file) => json!({"source": source.as_str(), "file": file.to_string_lossy()}),
        None => json!({ "source": source.as_str() }),
    }
}

/// True if the definition is part of a repository and would run something outside the agent.
fn needs_trust(found: &Found) -> bool {
    found.source.is_repository() && found.definition.runs_code()
}

fn as_text(all: &Definitions, here: &Path) -> String {
    let rows: Vec<[Cell; 6]> = all.iter().map(|found| row(found, all, here)).collect();
    let heads = ["TYPE", "MODEL", "TOOLS", "FROM", "OVERRIDES", "DESCRIPTION"];
    table::render(heads, &rows, 5, terminal_width())
}

fn row(found: &Found, all: &Definitions, here: &Path) -> [Cell; 6] {
    let definition = &found.definition;
    let name = definition.name.as_str();
    let name = match all.is_denied(name) {
        true => Cell::new(format!("{name} (denied)"), RED),
        false => Cell::new(name, BOLD),
    };
    let overrides: Vec<&str> = found.overrides.iter().map(Source::as_str).collect();
    [
        name,
        Cell::new(definition.model.as_deref().unwrap_or("inherit"), PLAIN),
        Cell::new(tools(definition), PLAIN),
        Cell::new(from(&found.source, here), DIM),
        Cell::new(overrides.join(", "), DIM),
        Cell::new(start_of(&definition.description), PLAIN),
    ]
}

/// The tools of a definition, in a few words.
fn tools(definition: &Definition) -> String {
    let denied = definition.disallowed_tools.len();
    match (&definition.tools, denied) {
        (None, 0) => "all".into(),
        (None, _) => format!("all but {denied}"),
        (Some(list), 0) => list.len().to_string(),
        (Some(list), _) => format!("{} less {denied}", list.len()),
    }
}

/// The first sentence of a description, cut to the width: some descriptions hold whole
/// conversations.
fn start_of(description: &str) -> String {
    const MOST: usize = 100;
    let line = description.lines().next().unwrap_or_default();
    let sentence = line.split_inclusive(". ").next().unwrap_or(line).trim_end();
    if sentence.chars().count() <= MOST {
        return sentence.to_owned();
    }
    let cut: String = sentence.chars().take(MOST - 1).collect();
    format!("{}…", cut.trim_end())
}

fn from(source: &Source, here: &Path) -> String {
    match source.file() {
        Some(file) => {
            let short = file.strip_prefix(here).unwrap_or(file);
            format!("{} {}", source.as_str(), short.display())
        }
        None => source.to_string(),
    }
}

fn one_as_text(found: &Found, here: &Path) -> String {
    let Value::Object(fields) = found.definition.to_json() else {
        return String::new();
    };
    let mut lines = vec![format!("{BOLD}{}{BOLD:#}", found.definition.name)];
    let mut line = |key: &str, text: &str| {
        lines.push(format!("  {DIM}{key:<20}{DIM:#}{}", clean_line(text)));
    };
    line("from", &from(&found.source, here));
    for hidden in &found.overrides {
        line("overrides", &from(hidden, here));
    }
    if needs_trust(found) {
        line(
            "note",
            "its hooks and MCP servers come with the repository and need your trust",
        );
    }
    for (key, value) in &fields {
        match value {
            _ if key == "name" || key == "prompt" => {}
            Value::String(text) => line(key, text),
            Value::Array(list) if list.iter().all(Value::is_string) => {
                let names: Vec<&str> = list.iter().filter_map(Value::as_str).collect();
                let none = "(none)".to_owned();
                line(
                    key,
                    &if names.is_empty() {
                        none
                    } else {
                        names.join(", ")
                    },
                );
            }
            other => line(key, &other.to_string()),
        }
    }
    lines.push(String::new());
    lines.push(quoted(&found.definition.prompt));
    lines.join("\n")
}
