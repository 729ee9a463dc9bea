//! An MCP server whose tools, named by its arguments, answer with their name and the marker of
//! the agent they were started for.

use std::io::{BufRead, Write};

use serde_json::{Value, json};

fn main() {
    let tools: Vec<String> = std::env::args().skip(1).collect();
    for line in std::io::stdin().lock().lines() {
        let Ok(line) = line else {
            return;
        };
        let Ok(message) = serde_json::from_str::<Value>(&line) else {
            continue;
        };
        // A message without an id expects no answer.
        let Some(id) = message.get("id") else {
            continue;
        };
        let answer = match answer(&message, &tools) {
            Ok(result) => json!({ "jsonrpc": "2.0", "id": id, "result": result }),
            Err(error) => json!({ "jsonrpc": "2.0", "id": id, "error": error }),
        };
        let mut out = std::io::stdout().lock();
        if writeln!(out, "{answer}")
            .and_then(|()| out.flush())
            .is_err()
        {
            return;
        }
    }
}

fn answer(message: &Value, tools: &[String]) -> Result<Value, Value> {
    let params = &message["params"];
    match message["method"].as_str().unwrap_or_default() {
        "initialize" => Ok(json!({
            "protocolVersion": params["protocolVersion"],
            "capabilities": { "tools": {} },
            "serverInfo": { "name": "fake", "version": "1" },
        })),
        "tools/list" => {
            let tools: Vec<Value> = tools
                .iter()
                .map(|name| {
                    let input = json!({ "type": "object", "properties": {} });
                    json!({ "name": name, "description": "Says its name.", "inputSchema": input })
                })
                .collect();
            Ok(json!({ "tools": tools }))
        }
        "tools/call" => {
            let run = std::env::var("CCB_RUN_ID").unwrap_or_default();
            let text = format!("ours: {} for {run}", params["name"].as_str().unwrap_or("?"));
            Ok(json!({ "content": [{ "type": "text", "text": text }] }))
        }
        _ => Err(json!({ "code": -32601, "message": "not here" })),
    }
}
