//! Which tools an agent gets.
//!
//! All there are, without the disallowed ones, and of these the allowed ones. An entry is a
//! tool's name, the start of one and `*` (`mcp__db__*`), an MCP server (`mcp__db`), or a rule
//! for some calls of a tool (`Bash(git *)`). A rule lets the tool in but does not shut it out:
//! which calls it means is for the runtime to say, so rules are passed on as they are.

use crate::definitions::{Definition, McpServer};

/// What an agent's definition says about tools.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ToolFilter {
    allowed: Option<Vec<String>>,
    disallowed: Vec<String>,
}

/// What an agent with a memory needs to use it.
const FOR_MEMORY: [&str; 3] = ["Read", "Write", "Edit"];

impl ToolFilter {
    /// The filter of `definition`. A memory adds the tools to use it, unless they are
    /// disallowed by name.
    pub fn of(definition: &Definition) -> Self {
        let mut allowed = definition.tools.clone();
        if let Some(allowed) = &mut allowed {
            if definition.memory.is_some() {
                let missing = FOR_MEMORY.iter().filter(|tool| !contains(allowed, tool));
                let missing: Vec<String> = missing.map(|tool| (*tool).to_owned()).collect();
                allowed.extend(missing);
            }
            // Whoever brings a server along means to use it.
            for server in &definition.mcp_servers {
                if let McpServer::Inline { name, .. } = server {
                    let all_of_it = format!("{}*", prefix_of(name));
                    if !allowed.contains(&all_of_it) {
                        allowed.push(all_of_it);
                    }
                }
            }
        }
        Self {
            allowed,
            disallowed: definition.disallowed_tools.clone(),
        }
    }

    /// The entries that are allowed, as given; `None` means everything.
    pub fn allowed(&self) -> Option<&[String]> {
        self.allowed.as_deref()
    }

    /// The entries that are not, as given.
    pub fn disallowed(&self) -> &[String] {
        &self.disallowed
    }

    /// Whether a tool of this name is left.
    pub fn permits(&self, tool: &str) -> bool {
        let whole = |entry: &&String| !is_rule(entry);
        let shut_out = self.disallowed.iter().filter(whole);
        let let_in = self.allowed.as_ref();
        !shut_out.into_iter().any(|entry| matches(entry, tool))
            && let_in.is_none_or(|list| list.iter().any(|entry| matches(entry, tool)))
    }

    /// Those of `all` that are left, in their order.
    pub fn apply<'a>(&self, all: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
        all.into_iter().filter(|tool| self.permits(tool)).collect()
    }
}

fn contains(list: &[String], tool: &str) -> bool {
    list.iter().any(|entry| entry == tool)
}

/// Whether `entry` is about some calls of a tool only.
fn is_rule(entry: &str) -> bool {
    entry.contains('(')
}

fn matches(entry: &str, tool: &str) -> bool {
    let entry = entry.split('(').next().unwrap_or(entry).trim();
    if let Some(start) = entry.strip_suffix('*') {
        return tool.starts_with(start);
    }
    // The tool that starts agents was called Task before.
    let same = |a: &str, b: &str| a == b || matches!((a, b), ("Task", "Agent") | ("Agent", "Task"));
    let is_server = entry.starts_with("mcp__") && entry.matches("__").count() == 1;
    same(entry, tool) || (is_server && tool.starts_with(&format!("{entry}__")))
}

/// What the names of all tools of an MCP server start with.
fn prefix_of(server: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    let name: String = server
        .chars()
        .map(|c| if plain(c) { c } else { '_' })
        .collect();
    format!("mcp__{name}__")
}

/// Those of the `required` MCP servers that none of `tools` belongs to.
pub fn missing_servers<'a>(required: &'a [String], tools: &[impl AsRef<str>]) -> Vec<&'a str> {
    let absent = |server: &&String| {
        let prefix = prefix_of(server);
        !tools.iter().any(|tool| tool.as_ref().starts_with(&prefix))
    };
    required.iter().filter(absent).map(String::as_str).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::definitions::{Definitions, Sources};
    use serde_json::{Value, json};

    const ALL: [&str; 9] = [
        "Agent",
        "Bash",
        "Edit",
        "Read",
        "Write",
        "mcp__db__get",
        "mcp__db__put",
        "mcp__dbx__get",
        "WebFetch",
    ];

    fn filter(keys: &Value) -> ToolFilter {
        let mut entry = json!({"description": "d", "prompt": "p"});
        for (key, value) in keys.as_object().unwrap() {
            entry[key] = value.clone();
        }
        let all = Definitions::load(&Sources {
            json: Some(json!({ "a": entry }).to_string()),
            ..Sources::default()
        });
        ToolFilter::of(&all.get("a").unwrap().definition)
    }

    fn left(keys: &Value) -> Vec<&'static str> {
        filter(keys).apply(ALL)
    }

    #[test]
    fn all_without_the_disallowed_and_of_these_the_allowed() {
        assert_eq!(left(&json!({})), ALL);
        assert_eq!(left(&json!({"tools": "*"})), ALL);
        assert_eq!(left(&json!({"tools": []})), [""; 0]);
        assert_eq!(
            left(&json!({"tools": "Read, Bash, Nonsense"})),
            ["Bash", "Read"]
        );
        let both = json!({"tools": "Read, Bash", "disallowedTools": "Bash"});
        assert_eq!(left(&both), ["Read"]);
        let denied = json!({"disallowedTools": "Edit, Write, Bash, mcp__db, Task"});
        assert_eq!(left(&denied), ["Read", "mcp__dbx__get", "WebFetch"]);
    }

    #[test]
    fn patterns_are_understood_and_kept_as_given() {
        assert_eq!(
            left(&json!({"tools": "mcp__db__*"})),
            ["mcp__db__get", "mcp__db__put"]
        );
        assert_eq!(
            left(&json!({"tools": "mcp__db"})),
            ["mcp__db__get", "mcp__db__put"]
        );
        let rules = json!({"tools": ["Bash(git *)"], "disallowedTools": ["Bash(git push *)"]});
        let filter = filter(&rules);
        assert_eq!(
            filter.apply(ALL),
            ["Bash"],
            "a rule does not shut a tool out"
        );
        assert_eq!(filter.allowed().unwrap(), ["Bash(git *)"]);
        assert_eq!(filter.disallowed(), ["Bash(git push *)"]);
    }

    #[test]
    fn a_memory_brings_the_tools_to_use_it() {
        let memory = json!({"tools": "Bash, Read", "memory": "user"});
        assert_eq!(left(&memory), ["Bash", "Edit", "Read", "Write"]);
        let denied = json!({"tools": "Bash", "memory": "user", "disallowedTools": "Write"});
        assert_eq!(left(&denied), ["Bash", "Edit", "Read"]);
        assert_eq!(left(&json!({"memory": "user"})), ALL);
    }

    #[test]
    fn a_server_that_is_brought_along_can_be_used() {
        let inline = json!({"tools": "Read", "mcpServers": [{"db": {"command": "x"}}]});
        assert_eq!(left(&inline), ["Read", "mcp__db__get", "mcp__db__put"]);
    }

    #[test]
    fn servers_without_tools_are_missing() {
        let required = ["db".to_owned(), "my server".into(), "d".into()];
        assert_eq!(missing_servers(&required, &ALL), ["my server", "d"]);
        let tools = ["mcp__my_server__x", "mcp__db__y", "mcp__d__z"];
        assert_eq!(missing_servers(&required, &tools), [""; 0]);
        assert_eq!(missing_servers(&[], &ALL), [""; 0]);
    }
}
