use std::time::Duration;

use harness::model::{
    HttpReply, ModelOptions, ModelServer, Outcome, Role, Step, get, post, prompt, script,
};
use harness::wait_until;
use serde_json::{Value, json};

const LIMIT: Duration = Duration::from_secs(20);

/// Asks as a program that speaks Anthropic's protocol does.
fn messages(server: &ModelServer, messages: Value, stream: bool) -> HttpReply {
    let body = json!({
        "model": "m",
        "stream": stream,
        "tools": [{ "name": "Bash" }],
        "messages": messages,
    });
    post(&format!("{}/v1/messages", server.url()), &body).expect("an answer")
}

fn user(text: &str) -> Value {
    json!({ "role": "user", "content": [{ "type": "text", "text": text }] })
}

fn tool_result(text: &str) -> Value {
    json!({ "role": "user", "content": [
        { "type": "tool_result", "tool_use_id": "x", "content": [{ "type": "text", "text": text }] },
    ] })
}

fn assistant() -> Value {
    json!({ "role": "assistant", "content": [{ "type": "text", "text": "said" }] })
}

/// The text of an answer in one piece.
fn text_of(reply: &HttpReply) -> String {
    let json = reply.json();
    let blocks = json["content"].as_array().expect("blocks").iter();
    blocks.filter_map(|block| block["text"].as_str()).collect()
}

#[test]
fn the_step_is_the_number_of_answers_since_the_script() {
    let server = ModelServer::start();
    let first = prompt("Go.", &[Step::text("one"), Step::text("two {{last}}")]);
    let ask = |turns: Value| text_of(&messages(&server, turns, false));
    assert_eq!(ask(json!([user(&first)])), "one");
    let turns = json!([user(&first), assistant(), tool_result("42")]);
    assert_eq!(ask(turns), "two 42");
    // A message without a script continues the current one, one with a script starts a new one.
    let turns = json!([user(&first), assistant(), user("also this")]);
    assert_eq!(ask(turns), "two ");
    let second = prompt("Now:", &[Step::text("new: {{user}}")]);
    let turns = json!([user(&first), assistant(), user(&second)]);
    assert!(ask(turns).starts_with("new: Now:"));
    let turns = json!([user(&first), assistant(), assistant(), user("more")]);
    assert_eq!(ask(turns), "script is over: more");
    assert_eq!(ask(json!([user("hello")])), "no script: hello");
}

#[test]
fn scripts_nest_and_survive_quoting() {
    let server = ModelServer::start();
    let inner = prompt("inner", &[Step::text("inner {{last}}")]);
    let outer = prompt("outer", &[Step::tool("Agent", json!({ "prompt": inner }))]);
    let reply = messages(&server, json!([user(&outer)]), false).json();
    assert_eq!(reply["content"][0]["input"]["prompt"], inner);
    assert_eq!(reply["stop_reason"], "tool_use");
    let quoted = script(&[Step::text("quoted")]).replace('"', "\\\"");
    let reply = messages(&server, json!([user(&quoted)]), false);
    assert_eq!(text_of(&reply), "quoted");
}

#[test]
fn a_wrong_script_is_refused_with_the_reason() {
    let server = ModelServer::start();
    let wrong = r#"<<SCRIPT [{"txet":"hi"}]"#;
    let reply = messages(&server, json!([user(wrong)]), true);
    assert_eq!(reply.status, 400);
    let message = reply.json()["error"]["message"].to_string();
    assert!(message.contains("txet"), "{message}");
    assert_eq!(server.settled()[0].outcome, Some(Outcome::Refused(400)));
}

#[test]
fn words_are_replaced_in_texts_and_inputs() {
    let server = ModelServer::start();
    let step = Step::tool(
        "T",
        json!({ "deep": [{ "id": "{{after:id: }}" }], "n": "{{n}}" }),
    );
    let step = step.and_text("{{after:nowhere}} {{unknown}}");
    let turns = json!([
        user(&prompt("Go", &[Step::text("x"), step])),
        assistant(),
        tool_result("id: 7, ok")
    ]);
    let reply = messages(&server, turns, false).json();
    assert_eq!(
        reply["content"][1]["input"],
        json!({ "deep": [{ "id": "7" }], "n": "1" })
    );
    assert_eq!(reply["content"][0]["text"], "nothing {{unknown}}");
}

#[test]
fn anthropic_streams_every_kind_of_block() {
    let server = ModelServer::start();
    let step = Step::text("a few words")
        .thinking("hm")
        .and_tool("A", json!({ "x": 1 }))
        .and_tool("B", json!({}))
        .usage(100, 7);
    let step = Step {
        slow: Some(0.001),
        ..step
    };
    let reply = messages(&server, json!([user(&prompt("Go", &[step]))]), true);
    let events = reply.events();
    let of_type = |kind: &str| -> Vec<&Value> {
        events
            .iter()
            .filter(|event| event["type"] == kind)
            .collect()
    };
    let kinds: Vec<&str> = of_type("content_block_start")
        .iter()
        .map(|event| event["content_block"]["type"].as_str().expect("a type"))
        .collect();
    assert_eq!(kinds, ["thinking", "text", "tool_use", "tool_use"]);
    let deltas = of_type("content_block_delta");
    let text: Vec<&str> = deltas
        .iter()
        .filter_map(|event| event["delta"]["text"].as_str())
        .collect();
    assert_eq!(text, ["a ", "few ", "words"]);
    let input: Vec<&str> = deltas
        .iter()
        .filter_map(|event| event["delta"]["partial_json"].as_str())
        .collect();
    assert_eq!(input, [r#"{"x":1}"#, "{}"]);
    assert_eq!(
        of_type("message_start")[0]["message"]["usage"]["input_tokens"],
        100
    );
    let end = of_type("message_delta")[0];
    assert_eq!(end["usage"]["output_tokens"], 7);
    assert_eq!(end["delta"]["stop_reason"], "tool_use");
    assert_eq!(events.last().expect("an event")["type"], "message_stop");
    assert!(!reply.broken);
}

#[test]
fn errors_happen_as_often_as_the_script_says() {
    let server = ModelServer::start();
    let step = Step::http(429).retry_after(3).times(2).and_text("at last");
    let turns = || json!([user(&prompt("Go", std::slice::from_ref(&step)))]);
    for _ in 0..2 {
        let reply = messages(&server, turns(), true);
        assert_eq!(reply.status, 429);
        assert_eq!(reply.header("retry-after"), Some("3"));
        assert_eq!(reply.json()["error"]["type"], "rate_limit_error");
    }
    assert_eq!(text_of(&messages(&server, turns(), false)), "at last");
    // Tries of another client are counted apart.
    let turns = json!([user(&prompt("Other", std::slice::from_ref(&step)))]);
    assert_eq!(messages(&server, turns, true).status, 429);
}

#[test]
fn a_stream_breaks_off_where_the_script_says() {
    let server = ModelServer::start();
    let step = Step::text("half").drop_stream().times(1);
    let turns = || json!([user(&prompt("Go", std::slice::from_ref(&step)))]);
    let reply = messages(&server, turns(), true);
    assert!(reply.broken, "{reply:?}");
    assert!(reply.body.contains("half") && !reply.body.contains("message_stop"));
    let reply = messages(&server, turns(), true);
    assert!(!reply.broken && reply.body.contains("message_stop"));
    let step = Step::text("half").stream_error("overloaded_error");
    let reply = messages(&server, json!([user(&prompt("Go", &[step]))]), true);
    assert_eq!(
        reply.events().last().expect("an event")["error"]["type"],
        "overloaded_error"
    );
    assert!(reply.broken);
    let outcomes: Vec<_> = server
        .settled()
        .iter()
        .map(|request| request.outcome)
        .collect();
    let cut = Some(Outcome::Cut);
    assert_eq!(outcomes, [cut, Some(Outcome::Answered), cut]);
}

#[test]
fn it_waits_for_files_and_notices_who_left() {
    let server = ModelServer::start();
    let dir = tempfile::tempdir().expect("a directory");
    let (before, within) = (dir.path().join("before"), dir.path().join("within"));
    let step = Step::text("done").wait_for(&before).hang_until(&within);
    let body = json!({
        "tools": [{ "name": "Bash" }],
        "stream": true,
        "messages": [user(&prompt("Go", &[step]))],
    });
    let url = format!("{}/v1/messages", server.url());
    let asking = std::thread::spawn(move || post(&url, &body).expect("an answer"));
    server.wait_for(LIMIT, "the request", |requests| requests.len() == 1);
    std::fs::write(&before, "").expect("a file");
    assert_eq!(server.requests()[0].outcome, None);
    std::fs::write(&within, "").expect("a file");
    assert!(asking.join().expect("an answer").body.contains("done"));

    // A client gives up on one that never answers.
    let body = json!({
        "tools": [{ "name": "Bash" }],
        "stream": true,
        "messages": [user(&prompt("Go", &[Step::text("never").hang()]))],
    })
    .to_string();
    let mut stream =
        std::net::TcpStream::connect(("127.0.0.1", server.port())).expect("a connection");
    let head = format!(
        "POST /v1/messages HTTP/1.1\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    std::io::Write::write_all(&mut stream, (head + &body).as_bytes()).expect("sent");
    server.wait_for(LIMIT, "the request", |requests| requests.len() == 2);
    drop(stream);
    server.wait_for(LIMIT, "the asker's leaving to be seen", |requests| {
        requests[1].outcome == Some(Outcome::AskerGone)
    });
}

#[test]
fn requests_without_tools_are_not_part_of_the_script() {
    let server = ModelServer::start();
    let ask = |server: &ModelServer, system: &str| {
        let body = json!({
            "system": system,
            "messages": [user(&prompt("Go", &[Step::text("scripted")]))],
        });
        text_of(&post(&format!("{}/v1/messages", server.url()), &body).expect("an answer"))
    };
    assert_eq!(ask(&server, ""), "Scripted");
    let title: Value = serde_json::from_str(&ask(&server, "Make a title, as JSON.")).expect("JSON");
    assert!(title["title"].is_string());
    assert!(server.scripted().is_empty());
    let server = ModelServer::with(ModelOptions {
        scripts_without_tools: true,
        ..ModelOptions::default()
    })
    .expect("a server");
    assert_eq!(ask(&server, ""), "scripted");
}

#[test]
fn what_was_asked_is_kept_in_memory_and_on_disk() {
    let dir = tempfile::tempdir().expect("a directory");
    let server = ModelServer::with(ModelOptions {
        log_dir: Some(dir.path().join("log")),
        ..ModelOptions::default()
    })
    .expect("a server");
    let turns = json!([
        user(&prompt("Go", &[Step::text("x")])),
        assistant(),
        tool_result("out")
    ]);
    messages(&server, turns, true);
    let url = server.url();
    let count = post(
        &format!("{url}/v1/messages/count_tokens"),
        &json!({ "a": 1 }),
    )
    .expect("one");
    assert_eq!(count.json()["input_tokens"], 1);
    assert_eq!(
        get(&format!("{url}/v1/models")).expect("one").json()["data"][0]["id"],
        "fake"
    );
    assert_eq!(get(&format!("{url}/nothing")).expect("one").status, 404);
    let requests = server.settled();
    assert_eq!(requests.len(), 4);
    assert_eq!(requests[0].tools, ["Bash"]);
    assert_eq!(requests[0].conversation.last(Role::Tool), "out");
    assert_eq!(requests[0].step_number, Some(1));
    assert_eq!(requests[3].outcome, Some(Outcome::Refused(404)));
    let saved = std::fs::read(dir.path().join("log/0001-anthropic.json")).expect("a file");
    let saved: Value = serde_json::from_slice(&saved).expect("JSON");
    assert_eq!(saved["tools"], json!(["Bash"]));
    assert!(dir.path().join("log/0004-other.json").is_file());
}

#[test]
fn many_connections_are_served_at_once() {
    let server = ModelServer::start();
    let dir = tempfile::tempdir().expect("a directory");
    let go = dir.path().join("go");
    let askers: Vec<_> = (0..32)
        .map(|n| {
            let url = format!("{}/v1/messages", server.url());
            let step = Step::text(format!("answer {n}")).hang_until(&go);
            let body = json!({
                "stream": true,
                "tools": [{ "name": "t" }],
                "messages": [user(&prompt("Go", &[step]))],
            });
            std::thread::spawn(move || post(&url, &body).expect("an answer").body)
        })
        .collect();
    server.wait_for(LIMIT, "all to ask", |requests| requests.len() == 32);
    std::fs::write(&go, "").expect("a file");
    for (n, asker) in askers.into_iter().enumerate() {
        let body = asker.join().expect("an answer");
        assert!(body.contains(&format!("\"answer {n}\"")), "{body}");
    }
}

#[test]
fn a_server_that_is_dropped_lets_go_of_everyone() {
    let server = ModelServer::start();
    let url = server.url();
    let asking = std::thread::spawn({
        let url = format!("{url}/v1/messages");
        let body = json!({
            "stream": true,
            "tools": [{ "name": "t" }],
            "messages": [user(&prompt("Go", &[Step::text("x").hang()]))],
        });
        move || post(&url, &body)
    });
    server.wait_for(LIMIT, "the request", |requests| requests.len() == 1);
    drop(server);
    wait_until(LIMIT, "the asker to be let go", || asking.is_finished());
    assert!(get(&format!("{url}/v1/models")).is_err());
}
