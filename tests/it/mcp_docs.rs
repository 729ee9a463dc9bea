//! The documentation's entries for a client's configuration work.

use std::path::Path;

use harness::{McpClient, TestHome};
use serde_json::Value;

use crate::CCB;

fn document() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/mcp.md");
    std::fs::read_to_string(path).unwrap()
}

/// The blocks of code in this language.
fn blocks(document: &str, language: &str) -> Vec<String> {
    let fence = format!("```{language}\n");
    let mut rest = document;
    let mut blocks = Vec::new();
    while let Some((_, after)) = rest.split_once(&fence) {
        let (block, after) = after.split_once("```").expect("a closed block");
        blocks.push(block.to_owned());
        rest = after;
    }
    blocks
}

/// Every command line in a value: a `command` with `args`, or one that is a list.
fn commands(value: &Value, found: &mut Vec<Vec<String>>) {
    let words = |value: &Value| -> Vec<String> {
        let list = value.as_array().into_iter().flatten();
        list.map(|word| word.as_str().unwrap().to_owned()).collect()
    };
    match (&value["command"], &value["args"]) {
        (Value::String(program), args) => {
            let mut all = vec![program.clone()];
            all.extend(words(args));
            found.push(all);
        }
        (list @ Value::Array(_), _) => found.push(words(list)),
        _ => {}
    }
    for inner in value.as_object().into_iter().flat_map(|map| map.values()) {
        if inner.is_object() {
            commands(inner, found);
        }
    }
}

/// The servers that a client would start, from all examples.
fn servers() -> Vec<Vec<String>> {
    let document = document();
    let mut found = Vec::new();
    for block in blocks(&document, "json") {
        let value: Value = serde_json::from_str(&block).unwrap_or_else(|e| panic!("{e}: {block}"));
        commands(&value, &mut found);
    }
    for block in blocks(&document, "toml") {
        let key = |name: &str| {
            let line = block
                .lines()
                .find_map(|line| line.strip_prefix(&format!("{name} = ")));
            serde_json::from_str::<Value>(line.unwrap()).unwrap()
        };
        commands(
            &serde_json::json!({"command": key("command"), "args": key("args")}),
            &mut found,
        );
    }
    for line in blocks(&document, "console")
        .iter()
        .flat_map(|block| block.lines())
    {
        // After the name of the server, and `--` where the client wants one.
        let (_, server) = line.split_once(" mcp add ccb ").expect("adds a server");
        let server = server.strip_prefix("-- ").unwrap_or(server);
        found.push(server.split_whitespace().map(str::to_owned).collect());
    }
    found
}

#[test]
fn every_example_starts_a_server() {
    let home = TestHome::in_memory(CCB).with_list("fixers");
    home.ok(&["team", "create", "fixers"]);
    let servers = servers();
    assert_eq!(servers.len(), 9, "{servers:?}");
    for words in servers {
        assert_eq!(words[0], "ccb");
        let args: Vec<&str> = words[1..].iter().map(String::as_str).collect();
        let mut client = McpClient::connect(home.command_without_list(&args));
        let tools = client.tools();
        assert!(
            tools.contains(&"TaskUpdate".to_owned()),
            "{words:?}: {tools:?}"
        );
        assert_eq!(client.finish().code, Some(0));
    }
    let members = home.ok(&["team", "show", "fixers"])["team"]["members"].clone();
    let names: Vec<&str> = members
        .as_array()
        .unwrap()
        .iter()
        .map(|m| m["name"].as_str().unwrap())
        .collect();
    assert_eq!(
        names,
        ["team-lead", "gemini", "opencode", "cursor", "zed", "codex"]
    );
}

/// A tool of the same name in Claude Code would be called instead of ccb's.
#[test]
fn the_deny_list_names_every_tool_of_the_lead() {
    let home = TestHome::in_memory(CCB);
    let mut client = McpClient::connect(home.command(&["mcp", "--role", "lead"]));
    let settings = blocks(&document(), "json")
        .into_iter()
        .find(|block| block.contains("deny"));
    let settings: Value = serde_json::from_str(&settings.unwrap()).unwrap();
    let denied = settings["permissions"]["deny"].as_array().unwrap();
    // It warns about names that are not its own.
    let ours_alone = "Worktrees";
    for tool in client.tools().into_iter().filter(|tool| tool != ours_alone) {
        assert!(denied.iter().any(|name| *name == tool.as_str()), "{tool}");
    }
}
