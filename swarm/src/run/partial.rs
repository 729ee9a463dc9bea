//! The partial result of a run whose host could not record its end.

use super::exit::{By, Exit, ExitStatus};
use super::meta::Meta;
use super::run_dir::RunDir;
use super::transcript::{self, Entry, Record};
use crate::runtime::{TurnEnd, TurnStatus};

/// Bytes at the end of the transcript that are read.
const TAIL: u64 = 256 * 1024;
/// The same for the end of the last turn: no byte of a text takes more than six in JSON, and after it
/// come only notes.
const TURN_TAIL: u64 = 6 * transcript::MAX_TEXT as u64 + TAIL;
/// Maximum bytes of text that are passed on.
const MAX_TEXT: usize = 16 * 1024;

/// The end of a life as far as its files tell.
pub(super) fn exit(run: &RunDir, meta: &Meta, status: ExitStatus, error: String, by: By) -> Exit {
    Exit {
        result: partial_text(run, meta.life),
        usage: meta.usage.since(&meta.used_before),
        ..Exit::now(meta, status, Some(error), by)
    }
}

/// The end of the last thing it said or printed in this life.
pub(super) fn partial_text(run: &RunDir, life: u32) -> Option<String> {
    let text = last_text(run, life, TAIL)?;
    let start = text.ceil_char_boundary(text.len().saturating_sub(MAX_TEXT));
    Some(text[start..].to_owned())
}

/// How the last turn of this life ended.
pub(super) fn last_turn(run: &RunDir, life: u32) -> Option<TurnEnd> {
    let end = store::log::tail(&run.transcript_path(), TURN_TAIL).ok()?;
    let records = end.lines().rev();
    let records = records.filter_map(|line| serde_json::from_str::<Record>(line).ok());
    let mut ends = records.filter_map(|record| match record.entry {
        Entry::TurnEnded {
            status,
            text,
            error,
        } if record.life == life => Some((status, text, error)),
        _ => None,
    });
    let (status, text, error) = ends.next()?;
    Some(TurnEnd {
        status: TurnStatus::parse(&status)?,
        text,
        error,
    })
}

/// The last thing it said or printed in this life, if the last `tail` bytes of its transcript say.
pub(super) fn last_text(run: &RunDir, life: u32, tail: u64) -> Option<String> {
    let end = store::log::tail(&run.transcript_path(), tail).ok()?;
    let records = end.lines();
    let records = records.filter_map(|line| serde_json::from_str::<Record>(line).ok());
    let (mut said, mut printed) = (String::new(), String::new());
    for record in records.filter(|record| record.life == life) {
        match record.entry {
            Entry::Text { text } => said = text,
            Entry::TurnEnded { text, .. } if !text.is_empty() => said = text,
            Entry::Output { text, .. } => printed.push_str(&text),
            _ => {}
        }
    }
    let text = if said.is_empty() { printed } else { said };
    let text = text.trim_end();
    (!text.is_empty()).then(|| text.to_owned())
}
