//! The forms of requests and answers.

use serde_json::json;

use super::sse::Event;
use super::*;
use crate::tools::ToolSpec;

const WIRES: [Wire; 3] = [Wire::Anthropic, Wire::Chat, Wire::Responses];

fn provider(wire: Wire) -> Provider {
    Provider {
        name: "p".into(),
        wire,
        base_url: "http://user:secret@host:1/v1?key=secret".into(),
        model: "m".into(),
        ..Provider::default()
    }
}

fn spec() -> ToolSpec {
    ToolSpec {
        name: "Read".into(),
        description: "Reads.".into(),
        input_schema: json!({"type": "object", "properties": {"b": {}, "a": {}}}),
        reads_only: true,
    }
}

fn user(text: &str) -> Message {
    Message {
        role: Role::User,
        blocks: vec![Block::text(text)],
    }
}

fn conversation() -> Vec<Message> {
    let call = |id: &str| Block::ToolUse {
        id: id.into(),
        name: "Read".into(),
        input: json!({"path": "a\"b"}),
    };
    let result = |id: &str, is_error| Block::ToolResult {
        id: id.into(),
        text: "was da steht: ü".into(),
        is_error,
    };
    let thought = |wire| Block::Opaque {
        wire,
        json: json!({"type": "thinking", "signature": "s"}),
    };
    vec![
        user("do it"),
        Message {
            role: Role::Assistant,
            blocks: vec![
                thought(Wire::Anthropic),
                Block::text("I look."),
                call("1"),
                call("2"),
            ],
        },
        Message {
            role: Role::User,
            blocks: vec![result("1", false), result("2", true), Block::text("hurry")],
        },
        Message {
            role: Role::Assistant,
            blocks: vec![Block::text(" "), thought(Wire::Responses)],
        },
        user("more"),
    ]
}

fn body(wire: Wire, messages: &[Message]) -> Vec<u8> {
    let provider = provider(wire);
    let tools = [spec()];
    let format = Format(wire);
    let head = format.head(&Fixed {
        provider: &provider,
        system: "be good",
        tools: &tools,
        effort: None,
    });
    let all: Vec<Encoded> = messages.iter().map(|said| format.encode(said)).collect();
    format.body(&head, all.iter(), MARKED)
}

#[test]
fn every_request_is_json_and_begins_like_the_one_before() {
    for wire in WIRES {
        let all = conversation();
        for count in 1..=all.len() {
            let bytes = body(wire, &all[..count]);
            let json: Value = serde_json::from_slice(&bytes).unwrap();
            assert_eq!(json["model"], "m");
            assert_eq!(json["stream"], true);
            assert_eq!(bytes, body(wire, &all[..count]), "the same bytes each time");
            if wire != Wire::Anthropic && count > 1 {
                // These bodies have no marks, so everything but the end was sent before.
                let before = body(wire, &all[..count - 1]);
                assert!(bytes.starts_with(&before[..before.len() - 2]), "{wire}");
            }
        }
    }
}

#[test]
fn anthropic_is_told_what_to_keep() {
    let all = conversation();
    let json: Value = serde_json::from_slice(&body(Wire::Anthropic, &all)).unwrap();
    let marked = |value: &Value| !value["cache_control"].is_null();
    assert!(marked(&json["system"][0]));
    let messages = json["messages"].as_array().unwrap();
    let marks: Vec<Vec<bool>> = messages
        .iter()
        .map(|said| {
            said["content"]
                .as_array()
                .unwrap()
                .iter()
                .map(marked)
                .collect()
        })
        .collect();
    // The last block of the two newest things that were said to the model, and no other.
    assert_eq!(
        marks,
        [
            vec![false],
            vec![false; 4],
            vec![false, false, true],
            vec![false],
            vec![true],
        ]
    );
    // Without the marks it is what was sent before, so that it is found in the cache.
    let text = |count: usize| {
        let text = String::from_utf8(body(Wire::Anthropic, &all[..count])).unwrap();
        text.replace(r#","cache_control":{"type":"ephemeral"}"#, "")
    };
    let before = text(3);
    assert!(text(5).starts_with(&before[..before.len() - 2]));
    assert_eq!(messages[2]["content"][1]["is_error"], true);
    assert_eq!(messages[3]["content"][0]["text"], "(nothing)");
}

#[test]
fn openais_forms_have_what_they_need() {
    let json: Value = serde_json::from_slice(&body(Wire::Chat, &conversation())).unwrap();
    let roles: Vec<&str> = json["messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|said| said["role"].as_str().unwrap())
        .collect();
    let expected = [
        "system",
        "user",
        "assistant",
        "tool",
        "tool",
        "user",
        "assistant",
        "user",
    ];
    assert_eq!(roles, expected);
    let call = &json["messages"][2]["tool_calls"][1];
    assert_eq!(call["function"]["arguments"], r#"{"path":"a\"b"}"#);
    assert_eq!(json["tools"][0]["function"]["name"], "Read");
    let json: Value = serde_json::from_slice(&body(Wire::Responses, &conversation())).unwrap();
    let kinds: Vec<&str> = json["input"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| item["type"].as_str().unwrap())
        .collect();
    let expected = [
        "message",
        "message",
        "function_call",
        "function_call",
        "function_call_output",
        "function_call_output",
        "message",
        "thinking",
        "message",
    ];
    assert_eq!(kinds, expected);
    assert_eq!(json["instructions"], "be good");
    assert_eq!(json["store"], false);
}

fn read(wire: Wire, events: &[Value]) -> Result<Option<Answer>, ModelError> {
    let provider = provider(wire);
    let mut reader = Format(wire).reader();
    for event in events {
        let data = match event {
            Value::String(text) => text.clone().into_bytes(),
            json => json.to_string().into_bytes(),
        };
        let name = String::new();
        reader.event(&Event { name, data }, &provider)?;
    }
    Ok(reader.answer())
}

#[test]
fn a_stream_that_breaks_off_is_no_answer() {
    let start = json!({"type": "message_start", "message": {"usage": {"input_tokens": 3}}});
    let block = json!({"type": "content_block_start", "index": 0, "content_block": {"type": "tool_use", "id": "t", "name": "Bash", "input": {}}});
    let delta = json!({"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": "{\"comm"}});
    assert_eq!(read(Wire::Anthropic, &[start, block, delta]), Ok(None));
    let delta = json!({"choices": [{"delta": {"content": "x"}}]});
    assert_eq!(read(Wire::Chat, std::slice::from_ref(&delta)), Ok(None));
    assert!(
        read(Wire::Chat, &[delta, json!("[DONE]")])
            .unwrap()
            .is_some()
    );
    let item = json!({"type": "response.output_item.done", "item": {"type": "message"}});
    assert_eq!(read(Wire::Responses, &[item]), Ok(None));
    for wire in WIRES {
        assert!(read(wire, &[json!("not json")]).is_err(), "{wire}");
    }
}

#[test]
fn calls_are_put_together_however_they_are_numbered() {
    let chunk = |call: Value| json!({"choices": [{"delta": {"tool_calls": [call]}}]});
    let end = json!({"choices": [{"delta": {}, "finish_reason": "tool_calls"}]});
    let named = |answer: &Answer| -> Vec<(String, String, Value)> {
        let calls = answer.blocks.iter().filter_map(|block| match block {
            Block::ToolUse { id, name, input } => Some((id.clone(), name.clone(), input.clone())),
            _ => None,
        });
        calls.collect()
    };
    let part = |index: Value, id: Value, name: Value, arguments: &str| {
        chunk(json!({"index": index, "id": id, "function": {"name": name, "arguments": arguments}}))
    };
    let none = Value::Null;
    // As OpenAI does it: numbered, the id only once.
    let usual = [
        part(json!(0), json!("a"), json!("X"), "{\"n\""),
        part(json!(0), none.clone(), none.clone(), ":1}"),
        part(json!(1), json!("b"), json!("Y"), "{}"),
    ];
    // All of them 0, or none numbered at all.
    let zeros = [
        part(json!(0), json!("a"), json!("X"), "{\"n\":1}"),
        part(json!(0), json!("b"), json!("Y"), "{}"),
    ];
    let unnumbered = [
        part(none.clone(), json!("a"), json!("X"), "{\"n\":1}"),
        part(none.clone(), json!("b"), json!("Y"), "{}"),
    ];
    let expected = vec![
        ("a".to_owned(), "X".to_owned(), json!({"n": 1})),
        ("b".to_owned(), "Y".to_owned(), json!({})),
    ];
    for events in [&usual[..], &zeros[..], &unnumbered[..]] {
        let mut events = events.to_vec();
        events.push(end.clone());
        let answer = read(Wire::Chat, &events).unwrap().unwrap();
        assert_eq!(named(&answer), expected);
        assert_eq!(answer.stop, Stop::Tools);
    }
}

#[test]
fn input_that_is_no_object_is_told_apart() {
    for (text, wrong) in [
        ("{\"a\":1}", false),
        ("", false),
        ("{\"a\":", true),
        ("[1]", true),
        ("null", true),
    ] {
        let item = json!({"type": "function_call", "call_id": "c", "name": "N", "arguments": text});
        let done = json!({"type": "response.output_item.done", "item": item});
        let end = json!({"type": "response.completed", "response": {"usage": {"input_tokens": 9, "input_tokens_details": {"cached_tokens": 4}, "output_tokens": 2}}});
        let answer = read(Wire::Responses, &[done, end]).unwrap().unwrap();
        assert_eq!(!answer.malformed.is_empty(), wrong, "{text:?}");
        assert!(matches!(&answer.blocks[0], Block::ToolUse { input, .. } if input.is_object()));
        assert_eq!((answer.tokens.input, answer.tokens.cache_read), (5, 4));
    }
}

#[test]
fn addresses_are_completed_and_shown_without_secrets() {
    let url = |wire, base: &str| {
        let base_url = base.to_owned();
        super::provider::url(&Provider {
            base_url,
            ..provider(wire)
        })
    };
    let messages = "http://h/v1/messages";
    assert_eq!(url(Wire::Anthropic, "http://h"), messages);
    assert_eq!(url(Wire::Anthropic, "http://h/v1/"), messages);
    assert_eq!(
        url(Wire::Anthropic, "http://h/proxy"),
        "http://h/proxy/v1/messages"
    );
    assert_eq!(
        url(Wire::Chat, "http://h:1"),
        "http://h:1/v1/chat/completions"
    );
    assert_eq!(
        url(Wire::Chat, "http://h/api/v1"),
        "http://h/api/v1/chat/completions"
    );
    assert_eq!(
        url(Wire::Responses, "https://h/v1"),
        "https://h/v1/responses"
    );
    let shown = super::error::place("https://me:secret@h:8/v1/x?key=secret#a");
    assert_eq!(shown, "https://h:8/v1/x");
}

#[test]
fn refusals_are_told_apart() {
    use super::error::{Complaint, of_status};
    let provider = provider(Wire::Chat);
    let of = |status: u16, body: Value| {
        let complaint = Complaint::read(body.to_string().as_bytes());
        of_status(status, &complaint, None, &provider)
    };
    let error = |kind: &str, message: &str| json!({"error": {"type": kind, "message": message}});
    let busy = |error: &ModelError| matches!(error, ModelError::Passing { busy: true, .. });
    assert!(busy(&of(429, error("rate_limit_error", "slow down"))));
    assert!(busy(&of(529, error("overloaded_error", "x"))));
    assert!(matches!(
        of(503, json!("x")),
        ModelError::Passing { busy: false, .. }
    ));
    for (status, kind, message) in [
        (429, "insufficient_quota", "You exceeded your current quota"),
        (
            400,
            "invalid_request_error",
            "Your credit balance is too low",
        ),
        (402, "", "pay"),
        (403, "billing_error", "x"),
    ] {
        let found = of(status, error(kind, message));
        assert!(
            matches!(found, ModelError::Quota { .. }),
            "{message}: {found:?}"
        );
    }
    for (status, message) in [
        (400, "prompt is too long: 210000 tokens > 200000 maximum"),
        (400, "This model's maximum context length is 8192 tokens"),
        (413, "x"),
    ] {
        let found = of(status, error("invalid_request_error", message));
        assert!(
            matches!(found, ModelError::TooMuch { .. }),
            "{message}: {found:?}"
        );
    }
    let option = of(400, error("x", "reasoning_effort is not supported"));
    assert!(matches!(option, ModelError::Option { .. }));
    for status in [400, 401, 403, 404, 302] {
        let found = of(status, error("x", "no\n\u{1b}[31mway"));
        let ModelError::Refused { words } = &found else {
            panic!("{status}: {found:?}");
        };
        assert!(
            words.contains(&status.to_string()) && !words.contains('\u{1b}'),
            "{words}"
        );
        assert!(!words.contains("secret"), "{words}");
    }
}
