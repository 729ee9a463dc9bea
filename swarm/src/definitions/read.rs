//! From keys and values of YAML or JSON to a checked definition.

use serde_json::{Map, Value};
use store::fields::{FieldError, Fields, Read};
use store::name::Name;

use super::definition::{Definition, Effort, Isolation, McpServer, MemoryScope, PermissionMode};
use super::front_matter::{line_of, split};

/// An error in a definition, and its place.
#[derive(Debug, PartialEq)]
pub(super) struct Mistake {
    /// The line of the file, if there is one to point at.
    pub(super) line: Option<usize>,
    /// The name in the definition, if it has one.
    pub(super) name: Option<String>,
    pub(super) why: String,
}

impl Mistake {
    /// About no line in particular.
    pub(super) fn whole(why: impl Into<String>) -> Self {
        Self {
            line: None,
            name: None,
            why: why.into(),
        }
    }

    pub(super) fn at(line: usize, why: impl Into<String>) -> Self {
        Self {
            line: Some(line),
            ..Self::whole(why)
        }
    }
}

/// Every key of a definition.
const KEYS: &[&str] = &[
    "background",
    "color",
    "description",
    "disallowedTools",
    "effort",
    "hooks",
    "initialPrompt",
    "isolation",
    "maxTurns",
    "mcpServers",
    "memory",
    "model",
    "name",
    "permissionMode",
    "requiredMcpServers",
    "runtime",
    "skills",
    "tools",
];

/// Keys that limit an agent. A key that is written almost like them is not ignored: the agent could
/// do more than its author wanted.
const LIMITS: &[&str] = &[
    "disallowedTools",
    "isolation",
    "maxTurns",
    "permissionMode",
    "tools",
];

/// A definition, and keys of it that mean nothing here.
#[derive(Debug, PartialEq)]
pub(super) struct Reading {
    pub(super) definition: Definition,
    pub(super) ignored: Vec<Mistake>,
}

/// Reads a Markdown file; `None` if it is not a definition.
pub(super) fn markdown(text: &str) -> Result<Option<Reading>, Mistake> {
    let read = read_markdown(text);
    read.map_err(|mistake| Mistake {
        name: said_name(text),
        ..mistake
    })
}

fn read_markdown(text: &str) -> Result<Option<Reading>, Mistake> {
    if let Some(at) = text.find('\0') {
        let line = text[..at].matches('\n').count() + 1;
        return Err(Mistake::at(line, "it contains a NUL byte"));
    }
    let Some(document) = split(text)? else {
        return Ok(None);
    };
    let fields = Fields::new(&document.fields);
    let read = || {
        let (name, body) = (name(&fields)?, document.body.trim());
        definition(&fields, name, body, "the text below the front matter")
    };
    let mistake = |wrong: FieldError| Mistake {
        line: line_of(&wrong.key, document.yaml),
        ..Mistake::whole(wrong.why)
    };
    with_unknown(&fields, KEYS, read).map_or_else(
        |wrong| Err(mistake(wrong)),
        |(definition, ignored)| {
            Ok(Some(Reading {
                definition,
                ignored: ignored.into_iter().map(mistake).collect(),
            }))
        },
    )
}

/// The result, with the keys that are ignored. An unknown key is the mistake if it looks like one
/// that limits the agent, or if it may be why the rest cannot be read.
fn with_unknown(
    fields: &Fields<'_>,
    keys: &[&str],
    read: impl FnOnce() -> Read<Definition>,
) -> Read<(Definition, Vec<FieldError>)> {
    let mut unknown = fields.unknown_keys(keys);
    let limits = |wrong: &FieldError| {
        let near = store::nearest(&wrong.key, keys.iter().copied());
        near.is_some_and(|near| LIMITS.contains(&near))
    };
    if let Some(at) = unknown.iter().position(limits) {
        return Err(unknown.swap_remove(at));
    }
    match read() {
        Ok(definition) => Ok((definition, unknown)),
        Err(wrong) => {
            let meant = |one: &FieldError| store::nearest(&one.key, keys.iter().copied()).is_some();
            Err(unknown.into_iter().find(meant).unwrap_or(wrong))
        }
    }
}

/// The name a definition gives itself, found without reading the rest.
fn said_name(text: &str) -> Option<String> {
    let mut lines = text.lines().take(100);
    let name = lines.find_map(|line| line.strip_prefix("name:"))?;
    let name = name.trim().trim_matches(['"', '\'']);
    Name::new("agent", name).ok().map(|name| name.to_string())
}

/// Reads one entry of the JSON form, where the name is the key and the body is `prompt`.
pub(super) fn json(name: &str, value: &Value) -> Result<Reading, Mistake> {
    let Value::Object(map) = value else {
        return Err(Mistake::whole("it must be an object"));
    };
    let name = Name::new("agent", name).map_err(|error| Mistake::whole(error.to_string()))?;
    let others = KEYS.iter().copied().filter(|key| *key != "name");
    let keys: Vec<&str> = others.chain(["prompt"]).collect();
    let fields = Fields::new(map);
    let read = || {
        let prompt = fields.text("prompt")?.unwrap_or_default();
        definition(&fields, name, prompt, "\"prompt\"")
    };
    let mistake = |wrong: FieldError| Mistake::whole(wrong.why);
    let (definition, ignored) = with_unknown(&fields, &keys, read).map_err(mistake)?;
    Ok(Reading {
        definition,
        ignored: ignored.into_iter().map(mistake).collect(),
    })
}

fn name(fields: &Fields<'_>) -> Read<Name> {
    let Some(name) = fields.text("name")? else {
        return Err(fields.wrong("name", "\"name\" is missing"));
    };
    Name::new("agent", name).map_err(|error| fields.wrong("name", error.to_string()))
}

fn definition(fields: &Fields<'_>, name: Name, prompt: &str, prompt_is: &str) -> Read<Definition> {
    let Some(description) = fields.text("description")? else {
        let why = "\"description\" is missing: when to use it";
        return Err(fields.wrong("description", why));
    };
    if prompt.is_empty() {
        // It would replace the default prompt with nothing.
        let why = format!("it has no prompt: {prompt_is} is empty");
        return Err(fields.wrong("prompt", why));
    }
    let tools = names(fields, "tools")?;
    let modes = PermissionMode::ALL;
    let mode = fields.word("permissionMode", modes, PermissionMode::as_str)?;
    let effort = "low, medium, high or a number";
    Ok(Definition {
        name,
        description: description.to_owned(),
        prompt: prompt.to_owned(),
        tools: tools.filter(|list| !list.iter().any(|tool| tool == "*")),
        disallowed_tools: names(fields, "disallowedTools")?.unwrap_or_default(),
        model: model(fields)?,
        effort: fields.read("effort", effort, Effort::read)?,
        runtime: fields.text("runtime")?.map(str::to_owned),
        permission_mode: mode.unwrap_or_default(),
        max_turns: fields.read("maxTurns", "a whole number above 0", above_zero)?,
        background: fields.read("background", "true or false", is_true)? == Some(true),
        isolation: isolation(fields)?,
        memory: fields.word("memory", MemoryScope::ALL, MemoryScope::as_str)?,
        mcp_servers: mcp_servers(fields)?,
        required_mcp_servers: names(fields, "requiredMcpServers")?.unwrap_or_default(),
        hooks: hooks(fields)?,
        skills: names(fields, "skills")?.unwrap_or_default(),
        initial_prompt: fields.text("initialPrompt")?.map(str::to_owned),
        color: color(fields)?,
    })
}

/// A number, which YAML may have as text.
fn above_zero(value: &Value) -> Option<u32> {
    let number = match value {
        Value::String(text) => text.parse().ok(),
        value => value.as_u64().and_then(|number| number.try_into().ok()),
    };
    number.filter(|number| *number > 0)
}

/// A truth value, which YAML may have as text.
fn is_true(value: &Value) -> Option<bool> {
    match value {
        Value::String(text) => text.parse().ok(),
        value => value.as_bool(),
    }
}

/// A list, or text with commas.
fn names(fields: &Fields<'_>, key: &str) -> Read<Option<Vec<String>>> {
    let what = "a list of names, or names with commas between";
    let list: Option<Vec<String>> = fields.read(key, what, |value| match value {
        Value::String(text) => Some(split_list(text)),
        value => {
            let texts = value.as_array()?.iter();
            texts
                .map(|one| Some(one.as_str()?.trim().to_owned()))
                .collect()
        }
    })?;
    match list.iter().flatten().find(|name| !is_plain(name)) {
        None => Ok(list),
        Some(bad) => Err(fields.wrong(key, format!("\"{key}\": {bad:?} is not a name"))),
    }
}

fn model(fields: &Fields<'_>) -> Read<Option<String>> {
    let Some(model) = fields.text("model")? else {
        return Ok(None);
    };
    if model != "inherit" && model.eq_ignore_ascii_case("inherit") {
        return Err(fields.wrong("model", "write \"inherit\" in lower case"));
    }
    if !is_plain(model) || model.contains(char::is_whitespace) {
        return Err(fields.wrong("model", format!("{model:?} is not a model's name")));
    }
    Ok(Some(model.to_owned()))
}

fn isolation(fields: &Fields<'_>) -> Read<Option<Isolation>> {
    let why = match fields.text("isolation")? {
        None => return Ok(None),
        Some("worktree") => return Ok(Some(Isolation::Worktree)),
        Some("remote") => "\"isolation: remote\" is not supported: ccb runs agents on this \
                           machine; use \"worktree\""
            .to_owned(),
        Some(other) => format!("\"isolation\" is {other:?}; it must be \"worktree\""),
    };
    Err(fields.wrong("isolation", why))
}

/// Names, and objects of configurations by name.
fn mcp_servers(fields: &Fields<'_>) -> Read<Vec<McpServer>> {
    let wrong = |why: String| fields.wrong("mcpServers", format!("\"mcpServers\": {why}"));
    let mut servers = Vec::new();
    let inline = |map: &Map<String, Value>, servers: &mut Vec<McpServer>| {
        for (name, config) in map {
            let Value::Object(config) = config else {
                let why = format!("the configuration of {name:?} must be an object");
                return Err(wrong(why));
            };
            servers.push(McpServer::Inline {
                name: name.clone(),
                config: config.clone(),
            });
        }
        Ok(())
    };
    match fields.value("mcpServers") {
        None => {}
        Some(Value::String(text)) => {
            servers.extend(split_list(text).into_iter().map(McpServer::Named));
        }
        Some(Value::Object(map)) => inline(map, &mut servers)?,
        Some(Value::Array(list)) => {
            for one in list {
                match one {
                    Value::String(name) => servers.push(McpServer::Named(name.clone())),
                    Value::Object(map) => inline(map, &mut servers)?,
                    _ => {
                        let why = "each must be a name, or a name with a configuration";
                        return Err(wrong(why.into()));
                    }
                }
            }
        }
        Some(_) => return Err(wrong("it must be a list".into())),
    }
    for (n, server) in servers.iter().enumerate() {
        let name = server.name();
        if !is_plain(name) || name.contains("__") {
            return Err(wrong(format!("{name:?} cannot be a server's name")));
        }
        if servers[..n].iter().any(|other| other.name() == name) {
            return Err(wrong(format!("{name:?} is there twice")));
        }
    }
    Ok(servers)
}

fn hooks(fields: &Fields<'_>) -> Read<Map<String, Value>> {
    match fields.value("hooks") {
        None => Ok(Map::new()),
        Some(Value::Object(hooks)) if hooks.values().all(Value::is_array) => Ok(hooks.clone()),
        Some(_) => {
            let why = "\"hooks\" must give a list of hooks for each event";
            Err(fields.wrong("hooks", why))
        }
    }
}

/// Any word: an unknown colour is shown as none, which is no reason to refuse an agent.
fn color(fields: &Fields<'_>) -> Read<Option<String>> {
    let color = fields.text("color")?;
    let word = |c: char| c.is_ascii_alphanumeric() || "#-_".contains(c);
    match color {
        Some(text) if !text.chars().all(word) || text.len() > 32 => {
            Err(fields.wrong("color", format!("{text:?} is not a colour")))
        }
        _ => Ok(color.map(str::to_owned)),
    }
}

/// True if the text can be one word of a command line, and cannot be taken for an option.
fn is_plain(text: &str) -> bool {
    !text.is_empty() && !text.starts_with('-') && !text.chars().any(char::is_control)
}

/// The parts between commas that are not inside parentheses: `Bash(a, b), Read` are two.
fn split_list(text: &str) -> Vec<String> {
    let mut depth = 0_usize;
    let parts = text.split(|c: char| {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        c == ',' && depth == 0
    });
    parts
        .map(str::trim)
        .filter(|part| !part.is_empty())
        .map(str::to_owned)
        .collect()
}
