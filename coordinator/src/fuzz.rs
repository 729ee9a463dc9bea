//! The fuzz targets of this crate; see [`store::fuzz`].

use observe::live::{Act, changes};
use observe::report::{escape, moment};
use runs::failure_text::FailureText;
use runs::file_rules;
use runs::fleet::FleetState;
use runs::session_file::TeamSession;
use serde_json::Value;
use store::fuzz::{Target, assert_is_one_plain_line};

/// The targets of this crate.
pub const TARGETS: &[Target] = &[
    ("plan", fanout::fuzz::plan),
    ("findings", fanout::fuzz::findings),
    ("plan_report", fanout::fuzz::report),
    ("diff", diff),
    ("page_text", page_text),
    ("session_records", session_records),
    ("transcript_lines", transcript_lines),
];

/// A diff of an agent's work for a terminal, and patterns matched with its paths.
fn diff(data: &[u8]) {
    let lines = changes::lines(data);
    for line in &lines {
        assert_is_one_plain_line(line);
        assert!(line.chars().count() <= changes::LINE * 4 + 1);
    }
    let (pattern, path) = store::fuzz::halves(data);
    let (pattern, path) = (
        String::from_utf8_lossy(pattern),
        String::from_utf8_lossy(path),
    );
    file_rules::matches(&pattern, &path);
    let said = FailureText::of(&String::from_utf8_lossy(data));
    assert!(!said.what.contains('\n') && said.printed.len() <= 8);
}

/// Text in a page: no part of it is markup.
fn page_text(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let shown = escape(&text);
    assert!(!shown.contains(['<', '>', '"', '\'']), "{shown}");
    store::fuzz::assert_steers_no_terminal(&shown);
    assert!(shown.len() <= 12 * text.len() + 16, "{} bytes", shown.len());
    for (at, _) in shown.match_indices('&') {
        let known = ["&amp;", "&lt;", "&gt;", "&quot;", "&#39;"];
        assert!(known.iter().any(|entity| shown[at..].starts_with(entity)));
    }
}

/// The records of sessions and fleets, and the requests of a page.
fn session_records(data: &[u8]) {
    if let Ok(fleet) = serde_json::from_slice::<FleetState>(data) {
        let json = serde_json::to_value(&fleet).unwrap_or(Value::Null);
        assert_eq!(serde_json::from_value(json).ok(), Some(fleet));
    }
    if let Ok(session) = serde_json::from_slice::<TeamSession>(data) {
        let json = serde_json::to_value(&session).unwrap_or(Value::Null);
        assert_eq!(serde_json::from_value(json).ok(), Some(session));
    }
    drop(serde_json::from_slice::<Act>(data));
}

/// A transcript as reports and telemetry read it, without parsing every line.
fn transcript_lines(data: &[u8]) {
    #[cfg(feature = "telemetry")]
    let (mut calls, mut number) = (crate::telemetry::Calls::default(), 0);
    for line in data.split(|byte| *byte == b'\n') {
        if let Some(moment) = moment(line) {
            assert!(!moment.ts.contains('"') && !moment.kind.contains('"'));
        }
        #[cfg(feature = "telemetry")]
        if let Some(call) = calls.take(line) {
            number += 1;
            assert!(call.number == number && call.from_ms <= call.to_ms);
            assert!(call.model.as_deref() == calls.model());
        }
    }
}
