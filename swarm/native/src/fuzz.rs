//! Fuzz targets: what models, their services and pages say, and what is kept of it; see
//! [`store::fuzz`].

use std::path::Path;

use serde_json::{Value, json};
use store::fuzz::Target;
use swarm::tools::ToolFilter;

use super::conversation::Conversation;
use super::journal;
use super::model::fuzz::{model_error, model_stream};
use super::model::{Format, MARKED, Wire};
use super::permission::{Decision, PermissionOptions, Permissions};
use super::protocol::Told;
use super::tools::{MAX_RESULT, bounded, plain_text};

/// The targets of this crate.
pub const TARGETS: &[Target] = &[
    ("host_lines", host_lines),
    ("model_stream", model_stream),
    ("model_error", model_error),
    ("conversation", conversation),
    ("permission", permission),
    ("web_page", web_page),
];

/// The file of a conversation, from which requests are made.
fn conversation(data: &[u8]) {
    let Some((form, data)) = data.split_first() else {
        return;
    };
    let Ok((entries, _)) = journal::read(data, Path::new("c.jsonl")) else {
        return;
    };
    let format = Format(match form % 3 {
        0 => Wire::Anthropic,
        1 => Wire::Chat,
        _ => Wire::Responses,
    });
    let said = Conversation::of_entries(entries, format);
    let body = said.request(b"{\"messages\":[", Some("go on"));
    let read: Result<Value, _> = serde_json::from_slice(&body);
    assert!(read.is_ok(), "{}", String::from_utf8_lossy(&body));
    assert!(said.task().len() <= data.len() && MARKED > 0);
    assert!(said.unanswered_bytes() <= body.len());
}

/// A rule of settings, and a call that is held against it: a command line, a path or an address.
/// A rule that denies never allows anything.
fn permission(data: &[u8]) {
    let (rule, call) = store::fuzz::halves(data);
    let rule = String::from_utf8_lossy(rule).into_owned();
    let call = String::from_utf8_lossy(call);
    let decide = |filter: ToolFilter, tool: &str, input: &Value| {
        let options = PermissionOptions {
            filter,
            cwd: "/r".into(),
            ..PermissionOptions::default()
        };
        Permissions::new(options).decide(tool, input)
    };
    let calls = [
        ("Bash", json!({ "command": call })),
        ("Edit", json!({ "file_path": call })),
        ("Read", json!({ "file_path": call })),
        ("WebFetch", json!({ "url": call })),
    ];
    for (tool, input) in calls {
        let plain = decide(ToolFilter::default(), tool, &input);
        let denying = ToolFilter::new(None, vec![rule.clone()]);
        let denied = decide(denying, tool, &input);
        assert!(denied != Decision::Allow || plain == Decision::Allow);
        let allowing = ToolFilter::new(Some(vec![tool.to_owned(), rule.clone()]), Vec::new());
        let allowed = decide(allowing, tool, &input);
        assert!(plain != Decision::Allow || allowed == Decision::Allow);
        let both = ToolFilter::new(Some(vec![rule.clone()]), vec![rule.clone()]);
        let both = decide(both, tool, &input);
        assert!(both != Decision::Allow || denied == Decision::Allow);
    }
}

/// A page from the network, and a long result.
fn web_page(data: &[u8]) {
    let page = String::from_utf8_lossy(data);
    let text = plain_text(&page);
    assert!(text.len() <= 2 * page.len() + 1, "{} bytes", text.len());
    assert!(bounded(text).len() <= MAX_RESULT + 100);
}

/// Reads lines from the host as our own loop does.
fn host_lines(data: &[u8]) {
    for line in data.split(|byte| *byte == b'\n') {
        let told = serde_json::from_slice::<Told>(line);
        assert!(
            told.is_err() || line.contains(&b'{') || line.contains(&b'"') || line.contains(&b'[')
        );
    }
}
