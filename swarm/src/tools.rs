//! The tools that an agent gets.
//!
//! All there are, without the disallowed ones, and of these the allowed ones. An entry is a tool's
//! name, the start of one and `*` (`mcp__db__*`), an MCP server (`mcp__db`), or a rule for some
//! calls of a tool (`Bash(git *)`). A rule lets the tool in but does not shut it out: the runtime
//! decides which calls it means, so rules are passed on as they are.
//!
//! The names are Claude Code's on every runtime. Ours are among them, with or without the prefix of
//! our server (`Agent`, `mcp__ccb__Agent`).

use crate::definitions::{Definition, McpServer};

/// The name of the MCP server that offers the board, mail and agents. Its tools need no
/// permission. A program's own tools for the same purposes are withheld from every agent, also
/// from one that gets none of ours: what it did with them would be on no board.
pub const OWN_SERVER: &str = "ccb";

/// The tools that an agent's definition allows and denies.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ToolFilter {
    allowed: Option<Vec<String>>,
    disallowed: Vec<String>,
}

store::words! {
    /// The access of an agent's tools to the files it works on.
    #[derive(Default)]
    pub enum Reach {
        /// It has a tool that edits.
        #[default]
        Edits = "edits",
        /// It has none, but its `tools` name `Bash`: it runs commands, and each that does more than
        /// read needs a question. Nothing may have changed in its worktree when it ends.
        Runs = "runs",
        /// It reads. Calls that would write are withheld or refused, and nothing may have changed
        /// when it ends.
        Reads = "reads",
    }
}

impl Reach {
    /// True if it may not change files.
    pub fn is_read_only(self) -> bool {
        self != Self::Edits
    }
}

/// Tools that edit files.
pub const EDITING: [&str; 3] = ["Edit", "NotebookEdit", "Write"];
/// Claude Code's tools for work on files, commands and the web: all an agent can get of its own.
/// Its tools for tasks, agents, messages, worktrees, plans, questions and schedules are not among
/// them (`KillShell` is another name for its `TaskStop`), nor is whatever a later version adds:
/// with both present the model takes its own, and work happens outside the board.
pub const WORKING: [&str; 10] = [
    "Bash",
    "Edit",
    "Glob",
    "Grep",
    "NotebookEdit",
    "Read",
    SKILL,
    "WebFetch",
    "WebSearch",
    "Write",
];
/// The tool that reads instructions. It does no work by itself.
pub const SKILL: &str = "Skill";
/// The tool that runs commands.
pub const SHELL: &str = "Bash";

/// The tools that an agent needs to use a memory.
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
            // A definition that contains a server means to use it.
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

    /// A filter of these entries.
    pub fn new(allowed: Option<Vec<String>>, disallowed: Vec<String>) -> Self {
        let everything = |list: &Vec<String>| list.iter().any(|entry| entry == "*");
        Self {
            allowed: allowed.filter(|list| !everything(list)),
            disallowed,
        }
    }

    /// The tools that both let through. Of two rules for one tool only an identical one is left:
    /// the calls that two different ones have in common cannot be computed.
    #[must_use]
    pub fn within(&self, outer: &Self) -> Self {
        let allowed = match (&self.allowed, &outer.allowed) {
            (Some(own), Some(outer)) => {
                let mut both: Vec<String> = Vec::new();
                for (one, other) in own.iter().flat_map(|a| outer.iter().map(move |b| (a, b))) {
                    if let Some(entry) = meet(one, other).filter(|entry| !contains(&both, entry)) {
                        both.push(entry.to_owned());
                    }
                }
                Some(both)
            }
            (one, other) => one.clone().or_else(|| other.clone()),
        };
        let mut disallowed = self.disallowed.clone();
        let more = outer.disallowed.iter();
        let more: Vec<&String> = more.filter(|entry| !contains(&disallowed, entry)).collect();
        disallowed.extend(more.into_iter().cloned());
        Self {
            allowed,
            disallowed,
        }
    }

    /// True if one of our own tools is left, by its name without a prefix.
    pub fn permits_own(&self, tool: &str) -> bool {
        let prefixed = format!("mcp__{OWN_SERVER}__{tool}");
        let named = |entry: &String| matches(entry, tool) || matches(entry, &prefixed);
        let mut shut_out = self.disallowed.iter().filter(|entry| !is_rule(entry));
        let let_in = self.allowed.as_ref();
        !shut_out.any(named) && let_in.is_none_or(|list| list.iter().any(named))
    }

    /// The access of the remaining tools.
    pub fn reach(&self) -> Reach {
        let edits = EDITING.iter().any(|tool| self.permits(tool));
        let named = |list: &Vec<String>| list.iter().any(|entry| plain_shell(entry));
        match (edits, &self.allowed) {
            (true, _) => Reach::Edits,
            (false, Some(list)) if named(list) && self.permits(SHELL) => Reach::Runs,
            (false, _) => Reach::Reads,
        }
    }

    /// True if any command may be run, as far as tools go.
    pub fn permits_any_command(&self) -> bool {
        let named = |list: &Vec<String>| list.iter().any(|entry| plain_shell(entry));
        let rule = |entry: &String| is_rule(entry) && matches(entry, SHELL);
        self.permits(SHELL)
            && self.allowed.as_ref().is_none_or(named)
            && !self.disallowed.iter().any(rule)
    }

    /// The entries that are allowed, as given; `None` means everything.
    pub fn allowed(&self) -> Option<&[String]> {
        self.allowed.as_deref()
    }

    /// The entries that are not, as given.
    pub fn disallowed(&self) -> &[String] {
        &self.disallowed
    }

    /// True if a tool of this name is left.
    pub fn permits(&self, tool: &str) -> bool {
        let whole = |entry: &&String| !is_rule(entry);
        let shut_out = self.disallowed.iter().filter(whole);
        let let_in = self.allowed.as_ref();
        !shut_out.into_iter().any(|entry| matches(entry, tool))
            && let_in.is_none_or(|list| list.iter().any(|entry| matches(entry, tool)))
    }

    /// The remaining tools of `all`, in their order.
    pub fn apply<'a>(&self, all: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
        all.into_iter().filter(|tool| self.permits(tool)).collect()
    }
}

fn contains(list: &[String], tool: &str) -> bool {
    list.iter().any(|entry| entry == tool)
}

/// True if `entry` allows every command.
fn plain_shell(entry: &str) -> bool {
    matches!(entry.trim(), "Bash" | "Bash(*)" | "Bash(:*)")
}

/// The entry that stands for what two have in common.
fn meet<'a>(one: &'a str, other: &'a str) -> Option<&'a str> {
    match (is_rule(one), is_rule(other)) {
        (true, true) => (one == other).then_some(one),
        (true, false) => matches(other, tool_of(one)).then_some(one),
        (false, true) => matches(one, tool_of(other)).then_some(other),
        (false, false) if matches(other, one) || covers(other, one) => Some(one),
        (false, false) if matches(one, other) || covers(one, other) => Some(other),
        (false, false) => None,
    }
}

/// True if one entry for several tools contains another one.
fn covers(outer: &str, inner: &str) -> bool {
    let start = inner.strip_suffix('*').unwrap_or(inner);
    let is_server = is_server(inner) && !inner.ends_with('*');
    let start = if is_server {
        format!("{start}__")
    } else {
        start.to_owned()
    };
    (inner.ends_with('*') || is_server) && matches(outer, &start)
}

fn is_server(entry: &str) -> bool {
    entry.starts_with("mcp__") && entry.matches("__").count() == 1
}

/// The tool a rule is about.
fn tool_of(entry: &str) -> &str {
    entry.split('(').next().unwrap_or(entry).trim()
}

/// True if `entry` is about some calls of a tool only.
fn is_rule(entry: &str) -> bool {
    entry.contains('(')
}

fn matches(entry: &str, tool: &str) -> bool {
    let entry = tool_of(entry);
    if let Some(start) = entry.strip_suffix('*') {
        return tool.starts_with(start);
    }
    // The tool that starts agents was called Task before.
    let same = |a: &str, b: &str| a == b || matches!((a, b), ("Task", "Agent") | ("Agent", "Task"));
    same(entry, tool) || (is_server(entry) && tool.starts_with(&format!("{entry}__")))
}

/// The beginning of the names of all tools of an MCP server.
fn prefix_of(server: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    let name: String = server
        .chars()
        .map(|c| if plain(c) { c } else { '_' })
        .collect();
    format!("mcp__{name}__")
}

/// The `required` MCP servers to which none of `tools` belongs.
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
    fn ours_are_covered_with_and_without_their_prefix() {
        let has = |keys: &Value, tool: &str| filter(keys).permits_own(tool);
        assert!(has(&json!({}), "Agent"));
        assert!(has(&json!({"tools": "*"}), "SendMessage"));
        assert!(!has(&json!({"tools": []}), "TaskList"));
        assert!(!has(&json!({"tools": "Read, Edit"}), "TaskList"));
        for name in ["TaskList", "mcp__ccb__TaskList", "mcp__ccb", "mcp__ccb__*"] {
            assert!(has(&json!({"tools": ["Read", name]}), "TaskList"), "{name}");
            assert!(
                !has(&json!({"disallowedTools": [name]}), "TaskList"),
                "{name}"
            );
        }
        assert!(!has(&json!({"disallowedTools": "Task"}), "Agent"));
        assert!(has(&json!({"disallowedTools": "Agent"}), "SendMessage"));
        assert!(!has(&json!({"tools": "mcp__ccb__Agent"}), "SendMessage"));
    }

    #[test]
    fn what_is_inside_another_filter_is_never_more() {
        let both = |own: &Value, outer: &Value| filter(own).within(&filter(outer));
        let all = json!({});
        assert_eq!(both(&all, &all).apply(ALL), ALL);
        let read = json!({"tools": "Read"});
        assert_eq!(both(&all, &read).apply(ALL), ["Read"]);
        assert_eq!(both(&read, &all).apply(ALL), ["Read"]);
        let more = json!({"tools": "Read, Write, Bash"});
        assert_eq!(both(&more, &read).apply(ALL), ["Read"]);
        let none = json!({"tools": []});
        assert_eq!(both(&more, &none).apply(ALL), [""; 0]);
        let server = json!({"tools": "mcp__db"});
        let one = json!({"tools": "mcp__db__get, Bash"});
        assert_eq!(both(&one, &server).apply(ALL), ["mcp__db__get"]);
        assert_eq!(both(&server, &one).apply(ALL), ["mcp__db__get"]);
        let star = json!({"tools": "mcp__db__*"});
        assert_eq!(both(&server, &star).apply(ALL), left(&star));
        let denied = json!({"disallowedTools": "Bash"});
        assert_eq!(both(&more, &denied).apply(ALL), ["Read", "Write"]);
        let diff = json!({"tools": "Bash(git diff *)"});
        let log = json!({"tools": "Bash(git log *)"});
        assert_eq!(both(&diff, &more).allowed().unwrap(), ["Bash(git diff *)"]);
        assert_eq!(both(&more, &diff).allowed().unwrap(), ["Bash(git diff *)"]);
        assert_eq!(both(&diff, &diff).allowed().unwrap(), ["Bash(git diff *)"]);
        assert_eq!(both(&diff, &log).allowed().unwrap(), [""; 0]);
    }

    #[test]
    fn a_type_without_a_writing_tool_only_reads() {
        let reach = |keys: &Value| filter(keys).reach();
        assert_eq!(reach(&json!({})), Reach::Edits);
        assert_eq!(reach(&json!({"tools": "Read, NotebookEdit"})), Reach::Edits);
        let no_edits = "Edit, Write, NotebookEdit";
        assert_eq!(reach(&json!({"disallowedTools": no_edits})), Reach::Reads);
        let some = json!({"tools": "Read, Bash(git diff *)"});
        assert_eq!(reach(&some), Reach::Reads);
        assert_eq!(reach(&json!({"tools": "Read, Bash"})), Reach::Runs);
        assert_eq!(reach(&json!({"tools": []})), Reach::Reads);
        let memory = json!({"tools": "Read", "memory": "user"});
        assert_eq!(reach(&memory), Reach::Edits);
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
