//! The point where a copy leaves its original. It is computed when a copy is requested, because the
//! original writes on.

use std::path::Path;

use store::log;
use swarm::fork::{ForkError, TAG};
use uuid::Uuid;

use super::journal::{JournalError, Named, find};

/// The point where a copy leaves its original.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ForkPoint {
    /// All of it.
    Newest,
    /// Up to this line of its conversation.
    Line(Uuid),
    /// Up to the answer in which the model makes this call. Calls of one answer have one point,
    /// whichever of them have results already.
    Call(String),
}

/// The line at which a copy of the conversation `session` leaves it. `dir` is searched for the file
/// if it was moved. The error is in words for people.
pub fn fork_point(session: &str, dir: &Path, point: &ForkPoint) -> Result<Uuid, String> {
    look(session, dir, point).map_err(|error| error.to_string())
}

fn look(session: &str, dir: &Path, point: &ForkPoint) -> Result<Uuid, JournalError> {
    let path = find(session, dir)?;
    let lines = log::read_from(&path, 0)?.lines;
    let names = lines.iter().enumerate().rev().map(|(at, line)| {
        let named = serde_json::from_slice::<Named>(line);
        let named = named.map_err(|error| JournalError::Damaged {
            path: path.display().to_string(),
            number: at + 1,
            why: error.to_string(),
        });
        named.map(|named| (named, line))
    });
    let mut found = None;
    for line in names {
        let (named, line) = line?;
        // Copies of copies are refused before anything is started for them.
        if named.kind == "session" && says(line, "\"forkOf\":\"")
            || named.kind == "user" && says(line, &format!("\"text\":\"<{TAG}>"))
        {
            return Err(ForkError::ForkOfFork.into());
        }
        let is_it = match point {
            ForkPoint::Newest => true,
            ForkPoint::Line(wanted) => named.uuid == *wanted,
            ForkPoint::Call(id) => {
                named.kind == "assistant" && says(line, &format!("\"id\":{}", quoted(id)))
            }
        };
        if is_it && found.is_none() {
            found = Some(named.uuid);
        }
    }
    found.ok_or_else(|| match point {
        ForkPoint::Line(at) => JournalError::NoSuchLine {
            path: path.display().to_string(),
            at: *at,
        },
        ForkPoint::Newest | ForkPoint::Call(_) => ForkError::NoSession.into(),
    })
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

fn says(line: &[u8], words: &str) -> bool {
    memchr::memmem::find(line, words.as_bytes()).is_some()
}
