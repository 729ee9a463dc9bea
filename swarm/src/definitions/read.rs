//! From keys and values, whether YAML or JSON, to a checked definition.

use serde_json::{Map, Value};
use store::name::Name;

use super::definition::{Definition, Effort, Isolation, McpServer, MemoryScope, PermissionMode};
use super::front_matter::{line_of, split};

/// What is wrong with a definition, and where.
#[derive(Debug, PartialEq)]
pub(super) struct Mistake {
    /// The line of the file, if there is one to point at.
    pub(super) line: Option<usize>,
    /// Whose definition it was going to be, if it says.
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
    "skills",
    "tools",
];

/// Reads a Markdown file; `None` if it is not a definition.
pub(super) fn markdown(text: &str) -> Result<Option<Definition>, Mistake> {
    let read = read_markdown(text);
    read.map_err(|mistake| Mistake {
        name: said_name(text),
        ..mistake
    })
}

fn read_markdown(text: &str) -> Result<Option<Definition>, Mistake> {
    if let Some(at) = text.find('\0') {
        let line = text[..at].matches('\n').count() + 1;
        return Err(Mistake::at(line, "it contains a NUL byte"));
    }
    let Some(document) = split(text)? else {
        return Ok(None);
    };
    let fields = Fields(&document.fields);
    let read = || {
        fields.check_keys(KEYS)?;
        let (name, body) = (fields.name()?, document.body.trim());
        fields.definition(name, body, "the text below the front matter")
    };
    read().map(Some).map_err(|wrong| Mistake {
        line: line_of(&wrong.key, document.yaml),
        ..Mistake::whole(wrong.why)
    })
}

/// The name a definition gives itself, found without reading the rest.
fn said_name(text: &str) -> Option<String> {
    let mut lines = text.lines().take(100);
    let name = lines.find_map(|line| line.strip_prefix("name:"))?;
    let name = name.trim().trim_matches(['"', '\'']);
    Name::new("agent", name).ok().map(|name| name.to_string())
}

/// Reads one entry of the JSON form, where the name is the key and the body is `prompt`.
pub(super) fn json(name: &str, value: &Value) -> Result<Definition, Mistake> {
    let Value::Object(map) = value else {
        return Err(Mistake::whole("it must be an object"));
    };
    let name = Name::new("agent", name).map_err(|error| Mistake::whole(error.to_string()))?;
    let others = KEYS.iter().copied().filter(|key| *key != "name");
    let keys: Vec<&str> = others.chain(["prompt"]).collect();
    let fields = Fields(map);
    let read = || {
        fields.check_keys(&keys)?;
        let prompt = fields.text("prompt")?.unwrap_or_default();
        fields.definition(name, prompt, "\"prompt\"")
    };
    read().map_err(|wrong| Mistake::whole(wrong.why))
}

/// What is wrong with one key.
struct Wrong {
    key: String,
    why: String,
}

type Read<T> = Result<T, Wrong>;

struct Fields<'a>(&'a Map<String, Value>);

impl Fields<'_> {
    fn wrong<T>(&self, key: &str, why: impl Into<String>) -> Read<T> {
        Err(Wrong {
            key: key.to_owned(),
            why: why.into(),
        })
    }

    /// `null` means absent.
    fn get(&self, key: &str) -> Option<&Value> {
        self.0.get(key).filter(|value| !value.is_null())
    }

    fn check_keys(&self, known: &[&str]) -> Read<()> {
        let Some(key) = self.0.keys().find(|key| !known.contains(&key.as_str())) else {
            return Ok(());
        };
        let tail = store::nearest(key, known.iter().copied()).map_or_else(
            || format!("; known are {}", known.join(", ")),
            |near| format!("; did you mean \"{near}\"?"),
        );
        self.wrong(key, format!("unknown key \"{key}\"{tail}"))
    }

    fn name(&self) -> Read<Name> {
        let Some(name) = self.text("name")? else {
            return self.wrong("name", "\"name\" is missing");
        };
        Name::new("agent", name).or_else(|error| self.wrong("name", error.to_string()))
    }

    fn definition(&self, name: Name, prompt: &str, prompt_is: &str) -> Read<Definition> {
        let Some(description) = self.text("description")? else {
            return self.wrong("description", "\"description\" is missing: when to use it");
        };
        if prompt.is_empty() {
            // It would replace the default prompt with nothing.
            return self.wrong("prompt", format!("it has no prompt: {prompt_is} is empty"));
        }
        let tools = self.names("tools")?;
        let tools = tools.filter(|list| !list.iter().any(|tool| tool == "*"));
        Ok(Definition {
            name,
            description: description.to_owned(),
            prompt: prompt.to_owned(),
            tools,
            disallowed_tools: self.names("disallowedTools")?.unwrap_or_default(),
            model: self.model()?,
            effort: self.effort()?,
            permission_mode: self.permission_mode()?,
            max_turns: self.max_turns()?,
            background: self.background()?,
            isolation: self.isolation()?,
            memory: self.memory()?,
            mcp_servers: self.mcp_servers()?,
            required_mcp_servers: self.names("requiredMcpServers")?.unwrap_or_default(),
            hooks: self.hooks()?,
            skills: self.names("skills")?.unwrap_or_default(),
            initial_prompt: self.text("initialPrompt")?.map(str::to_owned),
            color: self.color()?,
        })
    }

    /// Text that says something.
    fn text(&self, key: &str) -> Read<Option<&str>> {
        match self.get(key) {
            None => Ok(None),
            Some(Value::String(text)) if text.contains('\0') => {
                self.wrong(key, format!("\"{key}\" contains a NUL byte"))
            }
            Some(Value::String(text)) if !text.trim().is_empty() => Ok(Some(text.trim())),
            Some(Value::String(_)) => self.wrong(key, format!("\"{key}\" is empty")),
            Some(_) => self.wrong(key, format!("\"{key}\" must be text")),
        }
    }

    /// One of a few words.
    fn word<T: Copy>(
        &self,
        key: &str,
        all: &[T],
        as_str: fn(T) -> &'static str,
    ) -> Read<Option<T>> {
        let Some(word) = self.text(key)? else {
            return Ok(None);
        };
        if let Some(found) = all.iter().find(|one| as_str(**one) == word) {
            return Ok(Some(*found));
        }
        let words: Vec<&str> = all.iter().map(|one| as_str(*one)).collect();
        let words = words.join(", ");
        self.wrong(
            key,
            format!("\"{key}\" is {word:?}; it must be one of {words}"),
        )
    }

    /// A list, or text with commas.
    fn names(&self, key: &str) -> Read<Option<Vec<String>>> {
        let list: Option<Vec<String>> = match self.get(key) {
            None => return Ok(None),
            Some(Value::String(text)) => Some(split_list(text)),
            Some(Value::Array(list)) => list
                .iter()
                .map(|one| one.as_str().map(|text| text.trim().to_owned()))
                .collect(),
            Some(_) => None,
        };
        let Some(list) = list else {
            let why = format!("\"{key}\" must be a list of names, or names with commas between");
            return self.wrong(key, why);
        };
        match list.iter().find(|name| !is_plain(name)) {
            None => Ok(Some(list)),
            Some(bad) => self.wrong(key, format!("\"{key}\": {bad:?} is not a name")),
        }
    }

    fn model(&self) -> Read<Option<String>> {
        let Some(model) = self.text("model")? else {
            return Ok(None);
        };
        if model != "inherit" && model.eq_ignore_ascii_case("inherit") {
            return self.wrong("model", "write \"inherit\" in lower case");
        }
        if !is_plain(model) || model.contains(char::is_whitespace) {
            return self.wrong("model", format!("{model:?} is not a model's name"));
        }
        Ok(Some(model.to_owned()))
    }

    fn effort(&self) -> Read<Option<Effort>> {
        let Some(value) = self.get("effort") else {
            return Ok(None);
        };
        match Effort::read(value) {
            Some(effort) => Ok(Some(effort)),
            None => self.wrong("effort", "\"effort\" must be low, medium, high or a number"),
        }
    }

    fn permission_mode(&self) -> Read<PermissionMode> {
        let mode = self.word(
            "permissionMode",
            &PermissionMode::ALL,
            PermissionMode::as_str,
        )?;
        Ok(mode.unwrap_or_default())
    }

    fn memory(&self) -> Read<Option<MemoryScope>> {
        self.word("memory", &MemoryScope::ALL, MemoryScope::as_str)
    }

    fn max_turns(&self) -> Read<Option<u32>> {
        let number = match self.get("maxTurns") {
            None => return Ok(None),
            Some(Value::String(text)) => text.parse().ok(),
            Some(value) => value.as_u64().and_then(|number| u32::try_from(number).ok()),
        };
        match number {
            Some(number) if number > 0 => Ok(Some(number)),
            _ => self.wrong("maxTurns", "\"maxTurns\" must be a whole number above 0"),
        }
    }

    fn background(&self) -> Read<bool> {
        match self.get("background") {
            None => Ok(false),
            Some(Value::Bool(background)) => Ok(*background),
            Some(Value::String(text)) if text == "true" => Ok(true),
            Some(Value::String(text)) if text == "false" => Ok(false),
            Some(_) => self.wrong("background", "\"background\" must be true or false"),
        }
    }

    fn isolation(&self) -> Read<Option<Isolation>> {
        match self.text("isolation")? {
            None => Ok(None),
            Some("worktree") => Ok(Some(Isolation::Worktree)),
            Some("remote") => self.wrong(
                "isolation",
                "\"isolation: remote\" is not supported: ccb runs agents on this machine; use \"worktree\"",
            ),
            Some(other) => {
                let why = format!("\"isolation\" is {other:?}; it must be \"worktree\"");
                self.wrong("isolation", why)
            }
        }
    }

    /// Names, and objects of configurations by name.
    fn mcp_servers(&self) -> Read<Vec<McpServer>> {
        let mut servers = Vec::new();
        match self.get("mcpServers") {
            None => {}
            Some(Value::String(text)) => {
                servers.extend(split_list(text).into_iter().map(McpServer::Named));
            }
            Some(Value::Object(map)) => inline_servers(map, &mut servers)?,
            Some(Value::Array(list)) => {
                for one in list {
                    match one {
                        Value::String(name) => servers.push(McpServer::Named(name.clone())),
                        Value::Object(map) => inline_servers(map, &mut servers)?,
                        _ => {
                            return Err(bad_server(
                                "each must be a name, or a name with a configuration",
                            ));
                        }
                    }
                }
            }
            Some(_) => return Err(bad_server("it must be a list")),
        }
        for (n, server) in servers.iter().enumerate() {
            let name = server.name();
            if !is_plain(name) || name.contains("__") {
                return Err(bad_server(&format!("{name:?} cannot be a server's name")));
            }
            if servers[..n].iter().any(|other| other.name() == name) {
                return Err(bad_server(&format!("{name:?} is there twice")));
            }
        }
        Ok(servers)
    }

    fn hooks(&self) -> Read<Map<String, Value>> {
        match self.get("hooks") {
            None => Ok(Map::new()),
            Some(Value::Object(hooks)) if hooks.values().all(Value::is_array) => Ok(hooks.clone()),
            Some(_) => self.wrong(
                "hooks",
                "\"hooks\" must give a list of hooks for each event",
            ),
        }
    }

    /// Any word: a colour nobody knows is shown as none, which is no reason to refuse an agent.
    fn color(&self) -> Read<Option<String>> {
        let color = self.text("color")?;
        let word = |text: &str| {
            text.chars()
                .all(|c| c.is_ascii_alphanumeric() || "#-_".contains(c))
        };
        match color {
            Some(text) if !word(text) || text.len() > 32 => {
                self.wrong("color", format!("{text:?} is not a colour"))
            }
            _ => Ok(color.map(str::to_owned)),
        }
    }
}

fn bad_server(why: &str) -> Wrong {
    Wrong {
        key: "mcpServers".into(),
        why: format!("\"mcpServers\": {why}"),
    }
}

fn inline_servers(map: &Map<String, Value>, servers: &mut Vec<McpServer>) -> Read<()> {
    for (name, config) in map {
        let Value::Object(config) = config else {
            return Err(bad_server(&format!(
                "the configuration of {name:?} must be an object"
            )));
        };
        servers.push(McpServer::Inline {
            name: name.clone(),
            config: config.clone(),
        });
    }
    Ok(())
}

/// Fit to be one word of a command line, and not to be taken for an option.
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
