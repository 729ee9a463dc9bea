//! The items of a turn: what the model says and the tools it uses.

use std::collections::HashMap;

use serde_json::{Value, json};

use super::super::Event;
use super::super::translator::{Step, Steps};

/// Maximum tool uses of a turn that are remembered.
const USES: usize = 4096;

/// The known items of a turn.
#[derive(Debug, Default)]
pub(super) struct Items {
    /// The model's last text.
    pub text: String,
    uses: HashMap<String, Use>,
    /// The last tool of each MCP server that was begun.
    servers: HashMap<String, (String, Value)>,
}

/// A use of a tool.
#[derive(Debug, Clone)]
pub(super) struct Use {
    pub name: String,
    pub input: Value,
}

impl Items {
    /// Notes an item that has begun.
    pub(super) fn begun(&mut self, item: &Value, steps: &mut Steps) {
        let Some(Use { name, input }) = tool(item) else {
            return;
        };
        let id = item["id"].as_str().unwrap_or_default();
        if self.uses.len() >= USES {
            self.uses.clear();
            self.servers.clear();
        }
        if let Some(server) = item["server"].as_str() {
            let last = (name.clone(), input.clone());
            self.servers.insert(server.to_owned(), last);
        }
        let known = Use {
            name: name.clone(),
            input: input.clone(),
        };
        self.uses.insert(id.to_owned(), known);
        let id = id.to_owned();
        steps.push(Step::Event(Event::ToolUse { id, name, input }));
    }

    /// Notes an item that is done.
    pub(super) fn done(&mut self, item: &Value, steps: &mut Steps) {
        if item["type"] == "agentMessage" {
            let text = item["text"].as_str().unwrap_or_default();
            if !text.is_empty() {
                text.clone_into(&mut self.text);
                steps.push(Step::Event(Event::Text(text.to_owned())));
            }
            return;
        }
        if tool(item).is_none() {
            return;
        }
        let id = item["id"].as_str().unwrap_or_default();
        if self.uses.remove(id).is_none() {
            // It was done as soon as it began.
            self.begun(item, steps);
            self.uses.remove(id);
        }
        let status = item["status"].as_str().unwrap_or("completed");
        steps.push(Step::Event(Event::ToolResult {
            id: id.to_owned(),
            output: output(item),
            is_error: status != "completed" || !item["error"].is_null(),
        }));
    }

    /// The tool use with this `id`.
    pub(super) fn find(&self, id: &str) -> Option<&Use> {
        self.uses.get(id)
    }

    /// The tool of `server` that began last.
    pub(super) fn of_server(&self, server: &str) -> Option<&(String, Value)> {
        self.servers.get(server)
    }
}

/// The tool an item is a use of.
fn tool(item: &Value) -> Option<Use> {
    let (name, input) = match item["type"].as_str()? {
        "commandExecution" => {
            let input = json!({ "command": item["command"], "cwd": item["cwd"] });
            ("shell".to_owned(), input)
        }
        "fileChange" => {
            let input = json!({ "changes": item["changes"] });
            ("apply_patch".to_owned(), input)
        }
        "mcpToolCall" => {
            let part = |key: &str| item[key].as_str().unwrap_or("unknown");
            let name = format!("mcp__{}__{}", part("server"), part("tool"));
            (name, item["arguments"].clone())
        }
        "webSearch" => {
            let input = json!({ "query": item["query"] });
            ("web_search".to_owned(), input)
        }
        _ => return None,
    };
    Some(Use { name, input })
}

/// The answer of a tool, as text.
fn output(item: &Value) -> String {
    if let Some(text) = item["aggregatedOutput"].as_str() {
        return text.to_owned();
    }
    if let Some(error) = item["error"]["message"].as_str() {
        return error.to_owned();
    }
    let content = item["result"]["content"].as_array().into_iter().flatten();
    let texts = content.map(|block| match block["text"].as_str() {
        Some(text) => text.to_owned(),
        None => format!("[{}]", block["type"].as_str().unwrap_or("something")),
    });
    let texts: Vec<String> = texts.collect();
    if texts.is_empty() {
        let code = item["exitCode"].as_i64();
        return code.map_or_else(String::new, |code| format!("[exit code {code}]"));
    }
    texts.join("\n")
}
