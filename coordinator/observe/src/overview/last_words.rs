//! The last message, action or output of an agent.

use swarm::run::{Entry, Record, RunDir};

/// Bytes at the end of a transcript that are read.
const LOOKED_AT: u64 = 16 * 1024;
/// Maximum characters of the result.
const KEPT: usize = 200;

pub(super) struct LastWords {
    pub(super) text: String,
    /// The time it was written, RFC 3339.
    pub(super) at: String,
}

/// The last entry of a run's transcript that is worth a line.
pub(super) fn last_words(run: &RunDir) -> Option<LastWords> {
    let end = store::log::tail(&run.transcript_path(), LOOKED_AT).ok()?;
    let lines = end.lines().rev();
    let mut records = lines.filter_map(|line| serde_json::from_str::<Record>(line).ok());
    records.find_map(|record| {
        let text = words(&record.entry)?;
        Some(LastWords {
            text: text.chars().take(KEPT).collect(),
            at: record.ts,
        })
    })
}

fn words(entry: &Entry) -> Option<String> {
    let last_line = |text: &str| {
        let line = text.lines().rev().find(|line| !line.trim().is_empty());
        line.map(|line| line.trim().to_owned())
    };
    match entry {
        Entry::Text { text } | Entry::Output { text, .. } => last_line(text),
        Entry::ToolUse { name, .. } => Some(format!("uses {name}")),
        Entry::Permission { tool, .. } => Some(format!("asks to use {tool}")),
        Entry::Stalled { why } => Some(why.clone()),
        _ => None,
    }
}
