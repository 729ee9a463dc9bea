use harness::model::{ModelServer, Role, Step, post, prompt};
use serde_json::{Value, json};

#[test]
fn responses_put_calls_where_the_tools_are() {
    let server = ModelServer::start();
    let steps = [Step::text("hi")
        .and_tool("echo", json!({ "a": 1 }))
        .and_tool("apply_patch", json!("text"))
        .and_tool("plain", json!({}))
        .usage(5, 6)];
    let body = json!({
        "stream": true,
        "tools": [
            { "type": "namespace", "name": "mcp__orch", "tools": [{ "name": "echo" }] },
            { "type": "custom", "name": "apply_patch" },
            { "type": "function", "name": "plain" },
        ],
        "input": [
            { "type": "message", "role": "user", "content": [
                { "type": "input_text", "text": prompt("Go", &[&[Step::text("x")], &steps[..]].concat()) },
            ] },
            // One answer in three items.
            { "type": "reasoning", "summary": [] },
            { "type": "message", "role": "assistant", "content": [{ "type": "output_text", "text": "said" }] },
            { "type": "function_call", "name": "plain", "arguments": "{}", "call_id": "c" },
            { "type": "function_call_output", "call_id": "c", "output": "out" },
        ],
    });
    let reply = post(&format!("{}/v1/responses", server.url()), &body).expect("an answer");
    let events = reply.events();
    let last = events.last().expect("an event");
    assert_eq!(last["type"], "response.completed");
    assert_eq!(last["response"]["usage"]["total_tokens"], 11);
    let output = &last["response"]["output"];
    assert_eq!(output[0]["content"][0]["text"], "hi");
    assert_eq!(output[1]["namespace"], "mcp__orch");
    assert_eq!(output[1]["name"], "echo");
    assert_eq!(output[2]["type"], "custom_tool_call");
    assert_eq!(output[2]["input"], "text");
    assert_eq!(output[3]["name"], "plain");
    assert!(output[3]["namespace"].is_null());
    let numbers: Vec<u64> = events
        .iter()
        .filter_map(|event| event["sequence_number"].as_u64())
        .collect();
    assert_eq!(numbers, (0..events.len() as u64).collect::<Vec<_>>());
    let done: Vec<&Value> = events
        .iter()
        .filter(|event| event["type"] == "response.output_item.done")
        .map(|event| &event["item"])
        .collect();
    assert_eq!(done.len(), 4);
    assert_eq!(
        server.requests()[0].tools,
        ["mcp__orch::echo", "apply_patch", "plain"]
    );
    assert_eq!(server.requests()[0].conversation.last(Role::Tool), "out");
}

#[test]
fn chat_completions_stream_text_and_calls() {
    let server = ModelServer::start();
    let steps = [Step::text("hi")
        .and_tool("t", json!({ "a": 1 }))
        .usage(5, 6)];
    let body = |stream: bool| {
        json!({
            "stream": stream,
            "tools": [{ "type": "function", "function": { "name": "t" } }],
            "messages": [
                { "role": "system", "content": "s" },
                { "role": "user", "content": prompt("Go", &steps) },
            ],
        })
    };
    let url = format!("{}/v1/chat/completions", server.url());
    let reply = post(&url, &body(true)).expect("an answer");
    assert!(reply.body.ends_with("data: [DONE]\n\n"), "{}", reply.body);
    let events = reply.events();
    let deltas: Vec<&Value> = events
        .iter()
        .map(|event| &event["choices"][0]["delta"])
        .collect();
    assert!(deltas.iter().any(|delta| delta["content"] == "hi"));
    let call = deltas
        .iter()
        .find_map(|delta| delta["tool_calls"].get(0))
        .expect("a call");
    assert_eq!(
        call["function"],
        json!({ "name": "t", "arguments": r#"{"a":1}"# })
    );
    assert!(
        events
            .iter()
            .any(|event| event["choices"][0]["finish_reason"] == "tool_calls")
    );
    assert_eq!(events.last().expect("one")["usage"]["total_tokens"], 11);
    let whole = post(&url, &body(false)).expect("an answer").json();
    assert_eq!(whole["choices"][0]["message"]["content"], "hi");
    assert_eq!(
        whole["choices"][0]["message"]["tool_calls"][0]["function"]["name"],
        "t"
    );
    assert_eq!(server.requests()[0].tools, ["t"]);
}

#[test]
fn gemini_streams_without_comments() {
    let server = ModelServer::start();
    let dir = tempfile::tempdir().expect("a directory");
    let go = dir.path().join("go");
    let step = Step::text("hi")
        .thinking("hm")
        .and_tool("t", json!({ "a": 1 }))
        .hang_until(&go);
    let body = json!({
        "tools": [{ "functionDeclarations": [{ "name": "t" }] }],
        "systemInstruction": { "parts": [{ "text": "s" }] },
        "contents": [
            { "role": "user", "parts": [{ "text": prompt("Go", &[Step::text("x"), step]) }] },
            { "role": "model", "parts": [{ "text": "said" }] },
            { "role": "user", "parts": [{ "functionResponse": { "name": "t", "response": { "output": "out" } } }] },
        ],
    });
    std::fs::write(&go, "").expect("a file");
    let base = format!("{}/v1beta/models/m", server.url());
    let reply = post(&format!("{base}:streamGenerateContent?alt=sse"), &body).expect("an answer");
    assert!(
        reply
            .body
            .lines()
            .all(|line| line.is_empty() || line.starts_with("data: "))
    );
    let events = reply.events();
    let last = events.last().expect("an event");
    assert_eq!(last["candidates"][0]["finishReason"], "STOP");
    assert_eq!(
        last["candidates"][0]["content"]["parts"][0]["functionCall"]["name"],
        "t"
    );
    let whole = post(&format!("{base}:generateContent"), &body)
        .expect("an answer")
        .json();
    let parts = whole["candidates"][0]["content"]["parts"]
        .as_array()
        .expect("parts");
    assert_eq!(parts.len(), 3);
    assert_eq!(server.requests()[0].conversation.last(Role::Tool), "out");
    let count = post(&format!("{base}:countTokens"), &json!({})).expect("an answer");
    assert_eq!(count.json()["totalTokens"], 1);
}
