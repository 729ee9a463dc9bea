//! Answers one request.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::cache::{self, Cached, Leaves, MOST_MARKS};
use super::conversation::Conversation;
use super::http::{Connection, Request};
use super::record::{Outcome, Recorded};
use super::server::Shared;
use super::step::{Chosen, Step, choose};
use super::stream::Emit;
use super::wire::{Answer, Wire, fresh};

/// Poll interval for the end of a wait.
const LOOK: Duration = Duration::from_millis(5);
/// Interval of pings to a waiting client.
const PING: Duration = Duration::from_secs(1);

/// Answers; true if the connection can be used again.
pub(super) fn answer(connection: &mut Connection, request: Request, shared: &Shared) -> bool {
    let Some((wire, stream)) = wire_of(&request) else {
        return beside(connection, request, shared);
    };
    let body: Value = match serde_json::from_slice(&request.body) {
        Ok(body) => body,
        Err(error) => {
            let encoding = request.header("content-encoding").unwrap_or("none");
            let why = format!("the body is not JSON (content-encoding: {encoding}): {error}");
            let body = wire.error(400, &why);
            return refuse(connection, 400, &body, None).is_ok();
        }
    };
    let arrived = Instant::now();
    let found = cache::marks(&body);
    if wire == Wire::Anthropic && found > MOST_MARKS {
        let why = format!(
            "A maximum of {MOST_MARKS} blocks with cache_control may be provided. Found {found}."
        );
        return refuse(connection, 400, &wire.error(400, &why), None).is_ok();
    }
    let conversation = wire.read(&body);
    let (cached, leaves) = shared.cached(wire, &body);
    let stream = stream.unwrap_or(body["stream"] == true);
    let mut chosen = Err(String::new());
    let number = shared.record(|number| {
        let tools = wire.tools(&body);
        chosen = if tools.is_empty() && !shared.options.scripts_without_tools {
            Ok(side_answer(&conversation))
        } else {
            choose(&conversation, number)
        };
        let chosen = chosen.as_ref().ok();
        Recorded {
            number,
            path: request.path.clone(),
            headers: request.headers.clone(),
            body: body.clone(),
            raw: request.body.as_slice().into(),
            arrived,
            cached,
            wire: Some(wire),
            conversation: conversation.clone(),
            tools,
            step: chosen.map(|chosen| chosen.step.clone()),
            step_number: chosen.and_then(|chosen| chosen.number),
            outcome: None,
        }
    });
    let outcome = match &mut chosen {
        Ok(chosen) => {
            let key = key(wire, &body, &conversation, chosen);
            if chosen
                .step
                .times
                .is_some_and(|times| shared.try_number(key) > times)
            {
                chosen.step.http = None;
                chosen.step.drop = false;
                chosen.step.stream_error = None;
            }
            let answer = Answer {
                step: &chosen.step,
                body: &body,
                tokens: request.body.len() as u64 / 4,
                cached,
            };
            play(connection, wire, &answer, stream, shared, leaves).unwrap_or(Outcome::AskerGone)
        }
        Err(why) => {
            refuse(connection, 400, &wire.error(400, why), None).ok();
            Outcome::Refused(400)
        }
    };
    shared.settle(number, outcome);
    !matches!(outcome, Outcome::Cut | Outcome::AskerGone)
}

/// The protocol, if the request is one for the model.
fn wire_of(request: &Request) -> Option<(Wire, Option<bool>)> {
    Wire::of(&request.path).filter(|_| request.method == "POST")
}

/// Answers every request that is not for the model.
fn beside(connection: &mut Connection, request: Request, shared: &Shared) -> bool {
    let count = (request.body.len() as u64 / 4).max(1);
    let (status, body) = match request.path.as_str() {
        path if path.ends_with("/count_tokens") => (200, json!({ "input_tokens": count })),
        path if path.ends_with(":countTokens") => (200, json!({ "totalTokens": count })),
        path if path.ends_with("/models") => {
            let model = json!({ "id": "fake", "object": "model", "type": "model" });
            (
                200,
                json!({ "object": "list", "data": [model], "models": [], "has_more": false }),
            )
        }
        _ if request.method == "HEAD" => (200, Value::Null),
        path => (
            404,
            Wire::Anthropic.error(404, &format!("there is no {path} here")),
        ),
    };
    let number = shared.record(|number| Recorded {
        number,
        path: request.path,
        headers: request.headers,
        body: serde_json::from_slice(&request.body).unwrap_or_default(),
        raw: request.body.as_slice().into(),
        arrived: Instant::now(),
        cached: Cached::default(),
        wire: None,
        conversation: Conversation::default(),
        tools: Vec::new(),
        step: None,
        step_number: None,
        outcome: None,
    });
    let bytes = if request.method == "HEAD" {
        Vec::new()
    } else {
        body.to_string().into_bytes()
    };
    let sent = connection.answer(status, &[], &bytes);
    let outcome = match (&sent, status) {
        (Err(_), _) => Outcome::AskerGone,
        (Ok(()), 200) => Outcome::Answered,
        (Ok(()), status) => Outcome::Refused(status),
    };
    shared.settle(number, outcome);
    sent.is_ok()
}

/// The answer to a request that is not part of the conversation.
fn side_answer(conversation: &Conversation) -> Chosen {
    let wants_title = conversation.was_told("title") && conversation.was_told("JSON");
    let text = if wants_title {
        json!({ "title": "Scripted", "branch": "scripted", "isNewTopic": true }).to_string()
    } else {
        "Scripted".to_owned()
    };
    Chosen {
        step: Step::text(text),
        number: None,
    }
}

/// A key for the conversation and the place in it, so that tries can be counted.
fn key(wire: Wire, body: &Value, conversation: &Conversation, chosen: &Chosen) -> u64 {
    let mut hasher = DefaultHasher::new();
    wire.hash(&mut hasher);
    body["metadata"]["user_id"].as_str().hash(&mut hasher);
    body["prompt_cache_key"].as_str().hash(&mut hasher);
    for turn in &conversation.turns {
        turn.text.hash(&mut hasher);
    }
    chosen.number.hash(&mut hasher);
    hasher.finish()
}

fn refuse(
    connection: &mut Connection,
    status: u16,
    body: &Value,
    retry_after: Option<u64>,
) -> io::Result<()> {
    let mut headers = vec![("request-id", fresh("req_"))];
    headers.extend(retry_after.map(|seconds| ("retry-after", seconds.to_string())));
    connection.answer(status, &headers, body.to_string().as_bytes())
}

fn play(
    connection: &mut Connection,
    wire: Wire,
    answer: &Answer<'_>,
    stream: bool,
    shared: &Shared,
    leaves: Leaves,
) -> io::Result<Outcome> {
    let step = answer.step;
    if let Some(seconds) = step.sleep {
        let until = Instant::now() + Duration::from_secs_f64(seconds);
        wait(connection, shared, None, || Instant::now() >= until)?;
    }
    if let Some(file) = &step.wait_for {
        wait(connection, shared, None, || file.exists())?;
    }
    if let Some(status) = step.http {
        let made = || wire.error(status, &format!("scripted error {status}"));
        let body = step.body.clone().unwrap_or_else(made);
        refuse(connection, status, &body, step.retry_after)?;
        return Ok(Outcome::Refused(status));
    }
    shared.keep(leaves);
    if !stream {
        hang(connection, step, None, shared)?;
        if step.drop {
            connection.cut();
            return Ok(Outcome::Cut);
        }
        let body = wire.whole(answer).to_string();
        let id = ("request-id", fresh("req_"));
        connection.answer(200, &[id], body.as_bytes())?;
        return Ok(Outcome::Answered);
    }
    if step.buffered {
        hang(connection, step, None, shared)?;
        let events = wire.stream(answer).into_iter();
        let all: String = events.filter_map(|emit| emit.text()).collect();
        connection.answer(200, &[], all.as_bytes())?;
        return Ok(Outcome::Answered);
    }
    connection.begin_stream()?;
    for emit in wire.stream(answer) {
        match emit {
            Emit::Event { .. } => connection.piece(&emit.text().unwrap_or_default())?,
            Emit::Hang { ping } => hang(connection, step, ping, shared)?,
            Emit::Pause => {
                let until = step.slow.map(Duration::from_secs_f64);
                let until = Instant::now() + until.unwrap_or_default();
                wait(connection, shared, None, || Instant::now() >= until)?;
            }
            Emit::Cut => {
                connection.cut();
                return Ok(Outcome::Cut);
            }
        }
    }
    connection.end_stream()?;
    Ok(Outcome::Answered)
}

fn hang(
    connection: &mut Connection,
    step: &Step,
    ping: Option<&str>,
    shared: &Shared,
) -> io::Result<()> {
    let over = |file: &Path| file.exists();
    match &step.hang_until {
        Some(file) => wait(connection, shared, ping, || over(file)),
        None if step.hang => wait(connection, shared, ping, || false),
        None => Ok(()),
    }
}

/// Waits until `over`; fails if the client goes away or the server stops.
fn wait(
    connection: &mut Connection,
    shared: &Shared,
    ping: Option<&str>,
    over: impl Fn() -> bool,
) -> io::Result<()> {
    let mut next_ping = Instant::now() + PING;
    while !over() {
        if shared.is_stopping() || connection.is_gone() {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        if Instant::now() >= next_ping {
            if let Some(ping) = ping {
                connection.piece(ping)?;
            }
            next_ping += PING;
        }
        thread::park_timeout(LOOK);
    }
    Ok(())
}
