//! The fuzz targets of this crate; see [`store::fuzz`].

use std::sync::Arc;

use serde_json::Value;
use store::fuzz::Target;

use crate::definitions::fuzz as definitions;
use crate::hooks::fuzz as hooks;
use crate::redact::{Redactor, Secrets};
use crate::run::{Exit, Meta, Record};
use crate::runtime::fuzz as runtime;
use crate::starter;

/// The targets of this crate.
pub const TARGETS: &[Target] = &[
    ("claude_lines", runtime::claude_lines),
    ("codex_lines", runtime::codex_lines),
    ("acp_lines", runtime::acp_lines),
    ("agent_lines", runtime::agent_lines),
    ("pipe_lines", runtime::pipe_lines),
    ("definition", definitions::definition),
    ("hook_settings", hooks::hook_settings),
    ("hook_answer", hooks::hook_answer),
    ("redaction", redaction),
    ("run_records", run_records),
];

/// A value that must not be shown, and one that is the beginning of another.
const SECRETS: [&str; 3] = [
    "hunter2-hunter2",
    "hunter2-hunter2-and-more",
    "pa\"ss\\word",
];

/// Output with secrets in it: in pieces the same as whole, and none of the values is left.
fn redaction(data: &[u8]) {
    let secrets = Arc::new(Secrets::new(SECRETS));
    let redact = |pieces: &mut dyn Iterator<Item = &[u8]>| {
        let (mut redactor, mut out) = (Redactor::new(Arc::clone(&secrets)), Vec::new());
        pieces.for_each(|piece| redactor.push(piece, &mut out));
        redactor.finish(&mut out);
        assert_eq!(redactor.held(), 0);
        out
    };
    let whole = redact(&mut std::iter::once(data));
    let (first, rest) = data.split_at(data.len() / 2);
    assert!(
        whole == redact(&mut [first, rest].into_iter()),
        "cut in the middle"
    );
    assert!(whole == redact(&mut data.chunks(1)), "byte by byte");
    for secret in SECRETS {
        let left = memchr::memmem::find(&whole, secret.as_bytes());
        assert!(left.is_none(), "{:?}", String::from_utf8_lossy(&whole));
    }
    assert!(whole.len() <= 8 * data.len() + 64, "{} bytes", whole.len());
    let text = String::from_utf8_lossy(data);
    let shown = secrets.redacted(&text);
    assert!(shown.is_none_or(|shown| shown == secrets.redact(&text)));
}

/// The stored files of a run: its description, end and transcript; and the data that its guard
/// gets.
fn run_records(data: &[u8]) {
    if let Ok(meta) = serde_json::from_slice::<Meta>(data) {
        let json = serde_json::to_value(&meta).unwrap_or(Value::Null);
        let again = serde_json::from_value::<Meta>(json.clone()).ok();
        assert_eq!(
            again.and_then(|again| serde_json::to_value(again).ok()),
            Some(json)
        );
    }
    if let Ok(exit) = serde_json::from_slice::<Exit>(data) {
        let json = serde_json::to_value(&exit).unwrap_or(Value::Null);
        assert_eq!(serde_json::from_value(json).ok(), Some(exit));
    }
    for line in data.split(|byte| *byte == b'\n') {
        if let Ok(record) = serde_json::from_slice::<Record>(line) {
            assert!(serde_json::to_value(record).is_ok());
        }
    }
    let given = starter::parse(data).unwrap_or_default();
    assert!(given.iter().all(|(name, _)| !name.is_empty()));
}
