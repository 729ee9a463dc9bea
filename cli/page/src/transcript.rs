//! The transcript of one agent for one browser.

use std::collections::HashMap;
use std::time::Duration;

use hyper::body::Bytes;
use observe::live::{Happened, TranscriptEntry, TranscriptReader};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::http::event;

/// Minimum time between two updates.
const PACE: Duration = Duration::from_millis(400);
/// Number of readings without news before the browser gets a sign of life.
const QUIET: u32 = 30;

/// Sends all that is kept, then the news. A browser that comes back gets all of it again, marked as
/// such.
pub(super) fn follow(mut reader: TranscriptReader) -> mpsc::Receiver<Bytes> {
    let (to, from) = mpsc::channel(2);
    tokio::spawn(async move {
        // The sent JSON of each entry that can still change.
        let mut sent: HashMap<u64, String> = HashMap::new();
        let (mut first, mut quiet) = (true, 0);
        loop {
            let read = tokio::task::spawn_blocking(move || {
                let new = reader.poll();
                (reader, new)
            });
            let Ok((back, new)) = read.await else { return };
            reader = back;
            if new || first {
                let bytes = event(None, &update(&reader, &mut sent, first).to_string());
                (first, quiet) = (false, 0);
                if to.send(bytes).await.is_err() {
                    return;
                }
            }
            quiet += 1;
            if quiet > QUIET {
                quiet = 0;
                if to
                    .send(Bytes::from_static(b": still here\n\n"))
                    .await
                    .is_err()
                {
                    return;
                }
            }
            tokio::select! {
                () = tokio::time::sleep(PACE) => {}
                () = to.closed() => return,
            }
        }
    });
    from
}

/// The new and changed entries.
fn update(reader: &TranscriptReader, sent: &mut HashMap<u64, String>, first: bool) -> Value {
    let entries = reader.entries();
    let oldest = entries.front().map_or(0, |entry| entry.number);
    sent.retain(|number, _| *number >= oldest);
    let mut new = Vec::new();
    for entry in entries {
        let json = shown(entry);
        let text = json.to_string();
        if sent.get(&entry.number) != Some(&text) {
            new.push(json);
            sent.insert(entry.number, text);
        }
    }
    json!({
        "reset": first,
        "entries": new,
        "oldest": oldest,
        "earlier": reader.has_earlier(),
        "trouble": reader.trouble(),
    })
}

fn shown(entry: &TranscriptEntry) -> Value {
    let mut json = match &entry.what {
        Happened::Told { text, fork } => json!({"what": "told", "text": text, "fork": fork}),
        Happened::Said { text } => json!({"what": "said", "text": text}),
        Happened::Printed { text, error } => {
            json!({"what": "printed", "text": text, "error": error})
        }
        Happened::Tool {
            name,
            input,
            result,
            ..
        } => json!({
            "what": "tool", "name": name, "text": input,
            "result": result.as_ref().map(|result| json!({
                "ok": result.ok, "first": result.first, "lines": result.lines, "bytes": result.bytes,
            })),
        }),
        Happened::Received { text } => json!({"what": "received", "text": text}),
        Happened::Asked { tool, input } => json!({"what": "asked", "name": tool, "text": input}),
        Happened::Answered { allow, why } => {
            json!({"what": "answered", "ok": allow, "text": why})
        }
        Happened::Stalled { why } => json!({"what": "stalled", "text": why}),
        Happened::TurnEnded { status, error } => {
            json!({"what": "turn", "name": status, "text": error})
        }
        Happened::Note { text } => json!({"what": "note", "text": text}),
    };
    json["n"] = entry.number.into();
    json["at"] = entry.at_ms.into();
    json
}
