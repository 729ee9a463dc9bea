//! Fuzz targets: what services with models answer; see [`store::fuzz`].

use serde_json::Value;

use super::error::{Complaint, in_stream, of_status};
use super::retry::asked;
use super::sse::{Event, Events};
use super::wire::Reader;
use super::{Answer, Block, Format, Message, Provider, Role, Wire};

/// A stream of events, in two pieces or whole: the same events, and an answer that can be sent
/// again.
pub(crate) fn model_stream(data: &[u8]) {
    let Some((form, data)) = data.split_first() else {
        return;
    };
    let wire = match form % 3 {
        0 => Wire::Anthropic,
        1 => Wire::Chat,
        _ => Wire::Responses,
    };
    let middle = data.len() / 2;
    let whole = events(&[data]);
    let pieces = events(&[&data[..middle], &data[middle..]]);
    let short: Vec<&[u8]> = data.chunks(3).collect();
    assert_eq!(whole, pieces, "cut in the middle");
    assert_eq!(whole, events(&short), "in pieces of three bytes");
    let (provider, format) = (provider(wire), Format(wire));
    let mut reader = format.reader();
    for event in &whole {
        match reader.event(event, &provider) {
            Ok(false) => {}
            Ok(true) => break,
            Err(error) => {
                assert!(error.words().len() < 64 * 1024);
                return;
            }
        }
    }
    answered(reader, format);
}

fn events(pieces: &[&[u8]]) -> Vec<Event> {
    let (mut events, mut found) = (Events::default(), Vec::new());
    for piece in pieces {
        events.push(piece);
        while let Ok(Some(event)) = events.next() {
            found.push(event);
        }
    }
    found
}

fn answered(reader: Reader, format: Format) {
    let Some(answer) = reader.answer() else {
        return;
    };
    assert!(!answer.stop.as_str().is_empty());
    assert!(answer.tokens.all_input() >= answer.tokens.input);
    for block in &answer.blocks {
        if let Block::ToolUse { input, .. } = block {
            assert!(input.is_object(), "{input}");
        }
    }
    drop(answer.text());
    let Answer { blocks, .. } = answer;
    let message = Message {
        role: Role::Assistant,
        blocks,
    };
    let encoded = format.encode(&message);
    let body = format.body(b"{\"messages\":[", [&encoded].into_iter(), 1);
    let read: Result<Value, _> = serde_json::from_slice(&body);
    assert!(read.is_ok(), "{}", String::from_utf8_lossy(&body));
}

/// An error a service answers with.
pub(crate) fn model_error(data: &[u8]) {
    let (status, body) = data
        .split_first_chunk()
        .map_or((500, data), |(status, body)| {
            (u16::from_be_bytes(*status), body)
        });
    let provider = provider(Wire::Chat);
    let complaint = Complaint::read(body);
    let text = String::from_utf8_lossy(body);
    let wait = asked(Some(&text), None).or_else(|| asked(None, Some(&text)));
    for error in [
        of_status(status, &complaint, wait, &provider),
        in_stream(&complaint, &provider),
    ] {
        assert!(error.words().len() < 64 * 1024, "{}", error.words().len());
    }
}

fn provider(wire: Wire) -> Provider {
    Provider {
        name: "p".to_owned(),
        wire,
        base_url: "http://127.0.0.1:1/v1".to_owned(),
        key_env: None,
        bearer: false,
        headers: std::collections::BTreeMap::new(),
        header_env: std::collections::BTreeMap::new(),
        model: "m".to_owned(),
        context_window: None,
        max_output: None,
        prices: None,
        idle_timeout_ms: None,
    }
}
