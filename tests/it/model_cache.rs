//! The scripted model counts the content of its cache as the services do.

use harness::model::{Cached, ModelOptions, ModelServer, post};
use serde_json::{Value, json};

fn server() -> ModelServer {
    let options = ModelOptions {
        scripts_without_tools: true,
        ..ModelOptions::default()
    };
    ModelServer::with(options).unwrap()
}

fn message(words: &str, marked: bool) -> Value {
    let mut block = json!({ "type": "text", "text": words });
    if marked {
        block["cache_control"] = json!({ "type": "ephemeral" });
    }
    json!({ "role": "user", "content": [block] })
}

fn asked(messages: &[Value]) -> Value {
    json!({ "model": "m", "messages": messages })
}

/// The cached part of a request; the answer says the same.
fn ask(server: &ModelServer, path: &str, body: &Value) -> Cached {
    let reply = post(&format!("{}/v1/{path}", server.url()), body).unwrap();
    let said = reply.json()["usage"].clone();
    let cached = server.requests().pop().unwrap().cached;
    let [read, write] = match path {
        "messages" => [
            &said["cache_read_input_tokens"],
            &said["cache_creation_input_tokens"],
        ],
        _ => [
            &said["prompt_tokens_details"]["cached_tokens"],
            &Value::Null,
        ],
    };
    assert_eq!(read, cached.read, "{said}");
    assert_eq!(write.as_u64().unwrap_or(0), cached.write, "{said}");
    cached
}

#[test]
fn what_was_marked_is_read_by_whoever_begins_with_it() {
    let server = server();
    let ask = |body: &Value| ask(&server, "messages", body);
    let long = "x".repeat(8000);
    let wrote = ask(&asked(&[message(&long, true)]));
    assert!(wrote.read == 0 && wrote.write > 2000, "{wrote:?}");
    // The mark itself is no part of the comparison.
    let more = asked(&[message(&long, false), message("more", true)]);
    let read = ask(&more);
    assert_eq!(read.read, wrote.write);
    assert!(read.write > 0 && read.write < 20, "{read:?}");
    // Without a mark nothing is searched; another beginning is not there.
    let unmarked = asked(&[message(&long, false)]);
    assert_eq!(ask(&unmarked), Cached::default());
    let other = asked(&[message("y", false), message(&long, true)]);
    assert_eq!(ask(&other).read, 0);
    let mut model = more.clone();
    model["model"] = "n".into();
    assert_eq!(ask(&model).read, 0);
}

#[test]
fn short_and_far_beginnings_are_not_found() {
    let server = server();
    let ask = |body: &Value| ask(&server, "messages", body);
    let short = asked(&[message("short", true)]);
    ask(&short);
    assert_eq!(ask(&short), Cached::default());
    let long = "x".repeat(8000);
    ask(&asked(&[message(&long, true)]));
    let mut messages = vec![message(&long, false)];
    messages.extend((0..20).map(|n| message(&n.to_string(), false)));
    let far = [&messages[..], &[message("end", true)]].concat();
    assert_eq!(ask(&asked(&far)).read, 0);
    let near = [&messages[..20], &[message("end", true)]].concat();
    assert!(ask(&asked(&near)).read > 2000);
}

#[test]
fn pieces_are_kept_without_marks() {
    let server = server();
    let ask = |body: &Value| ask(&server, "chat/completions", body);
    let long = "x".repeat(9000);
    let first = message(&long, false);
    assert_eq!(ask(&asked(std::slice::from_ref(&first))), Cached::default());
    let read = ask(&asked(&[first, message("a", false)]));
    assert!(read.read >= 2048 && read.read % 128 == 0, "{read:?}");
    let short = asked(&[message("short", false)]);
    ask(&short);
    assert_eq!(ask(&short).read, 0);
}

#[test]
fn more_than_four_marks_are_refused() {
    let server = server();
    let marked: Vec<Value> = (0..5).map(|n| message(&n.to_string(), true)).collect();
    let url = format!("{}/v1/messages", server.url());
    assert_eq!(post(&url, &asked(&marked[..4])).unwrap().status, 200);
    let reply = post(&url, &asked(&marked)).unwrap();
    assert_eq!(reply.status, 400, "{reply:?}");
    assert!(reply.body.contains("maximum of 4"), "{reply:?}");
}
