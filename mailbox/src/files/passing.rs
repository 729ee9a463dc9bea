//! A team's messages as they pass, read from the logs.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use store::follow::Follower;

use crate::error::Result;
use crate::line::read_line;
use crate::message::Message;
use crate::passing::Passes;

/// Bytes that are read from the end of a log that is there already.
const TAIL: u64 = 64 * 1024;
/// Bytes that one look reads of a log at most; a longer line is passed over.
const AT_ONCE: usize = 1 << 20;

/// The logs of all inboxes of a team, and that of its broadcasts.
#[derive(Debug)]
pub(super) struct FilePassing {
    inboxes: PathBuf,
    logs: BTreeMap<PathBuf, Follower>,
}

impl FilePassing {
    /// The mail of the team in `dir`.
    pub(super) fn new(dir: &Path) -> Self {
        let broadcasts = dir.join("broadcast.jsonl");
        let logs = BTreeMap::from([(broadcasts.clone(), Follower::tail(broadcasts, TAIL))]);
        Self {
            inboxes: dir.join("inboxes"),
            logs,
        }
    }
}

impl Passes for FilePassing {
    /// A message that cannot be read now is read at the next look.
    fn look(&mut self) -> Result<Vec<Message>> {
        for inbox in store::tree::list(&self.inboxes).unwrap_or_default() {
            // Other tools keep a file beside ccb's directory.
            let log = inbox.join("log.jsonl");
            if !self.logs.contains_key(&log) && log.is_file() {
                self.logs.insert(log.clone(), Follower::tail(log, TAIL));
            }
        }
        let mut new = Vec::new();
        for (path, log) in &mut self.logs {
            let own_copies = path.starts_with(&self.inboxes);
            let Ok(appended) = log.read(AT_ONCE) else {
                continue;
            };
            let lines = appended.bytes.split(|byte| *byte == b'\n');
            let messages = lines.filter_map(read_line);
            // A broadcast is there once, and not once for each of its recipients.
            new.extend(messages.filter(|one| !own_copies || one.broadcast.is_none()));
        }
        Ok(new)
    }
}
