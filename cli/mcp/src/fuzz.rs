//! Fuzz target: the lines that a client sends to the MCP server; see [`store::fuzz`].

use std::io::BufReader;

use coordinator::agent::Role;
use serde_json::{Map, Value};
use store::fuzz::Target;

use super::arguments::Arguments;
use super::lines::{Line, Lines, is_id};
use super::tool::Catalogue;
use super::transport::meaning;

/// The targets of the MCP server.
pub const TARGETS: &[Target] = &[("mcp_lines", mcp_lines)];

/// A client's lines, and the arguments of the tools it calls.
fn mcp_lines(data: &[u8]) {
    let Some((max, data)) = data.split_first() else {
        return;
    };
    let max = 16 * usize::from(*max);
    let mut lines = Lines::new(BufReader::with_capacity(7, data), max);
    let mut count = 0;
    while let Ok(Some(line)) = lines.next_line() {
        count += 1;
        match line {
            Line::Whole(line) => {
                assert!(line.len() <= max && !line.is_empty() && !line.contains(&b'\n'));
                if let Err(Some(refusal)) = meaning(&line) {
                    assert!(refusal.id.is_null() || is_id(&refusal.id));
                    assert!(refusal.why.len() <= line.len() + 1024);
                }
                arguments(&line);
            }
            Line::TooLong(id) => assert!(id.is_null() || is_id(&id)),
        }
    }
    assert!(count <= data.len());
}

/// The arguments of a call, checked against the schema of its tool.
fn arguments(line: &[u8]) {
    let Ok(message) = serde_json::from_slice::<Value>(line) else {
        return;
    };
    let params = &message["params"];
    let given = params["arguments"].as_object().cloned();
    let Ok(tools) = Catalogue::new(Role::Lead) else {
        return;
    };
    let Some(tool) = params["name"].as_str().and_then(|name| tools.get(name)) else {
        return;
    };
    let given: Map<String, Value> = given.unwrap_or_default();
    match Arguments::check(tool, given.clone()) {
        Ok(arguments) => {
            for name in given.keys() {
                drop((
                    arguments.text(name),
                    arguments.texts(name),
                    arguments.flag(name),
                ));
                assert!(arguments.objects(name).count() <= line.len());
            }
        }
        Err(error) => assert!(error.to_string().len() <= 4 * line.len() + 4096),
    }
}
