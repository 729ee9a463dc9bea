//! Keeping the log short, and clean.
//!
//! The log only ever shrinks by being replaced whole. Acknowledged messages are written to
//! `archive-N.jsonl` first, N being the number of its first message: if a crash comes before
//! they are gone from the log, the next attempt writes the same archive again.

use std::path::PathBuf;

use serde_json::{Value, json};
use store::atomic::{self, Durability};
use store::clock::rfc3339;
use store::fault::reached;

use crate::error::Result;
use crate::fault;
use crate::files::inbox::FileInbox;
use crate::files::live::Live;
use crate::line::{self, Scan, Scanned};

/// Damaged lines are kept up to this many bytes.
const REJECTED_BYTES: usize = 1 << 20;

impl Live {
    /// Moves messages up to `acked` to an archive. The last message always stays: counting
    /// continues from its number.
    pub(crate) fn rotate(&mut self, inbox: &FileInbox, acked: u64) -> Result<()> {
        self.check_version()?;
        let bytes = self.log.read(0, self.log.end())?;
        let mut first = None;
        let mut kept_from = 0;
        let mut last_from = 0;
        let mut offset = 0;
        for line in bytes.split_inclusive(|b| *b == b'\n') {
            if let Some(head) = line::head(line.trim_ascii_end()) {
                first = first.or(Some(head.seq));
                last_from = offset;
                if head.seq <= acked {
                    kept_from = offset + line.len();
                }
            }
            offset += line.len();
        }
        let kept_from = kept_from.min(last_from);
        let (Some(first), true) = (first, kept_from > 0) else {
            return Ok(());
        };
        // Keeps the facts about the lines that are archived.
        self.list_marks(inbox)?;
        let limit = inbox.options.limits.remembered_ids;
        self.marks.shorten(&inbox.paths.tmp, limit)?;
        if inbox.durability() == Durability::Full {
            self.marks.sync()?;
        }
        let (tmp, durability) = (&inbox.paths.tmp, inbox.durability());
        let archive = inbox.paths.dir.join(format!("archive-{first}.jsonl"));
        atomic::replace(tmp, &archive, &bytes[..kept_from], durability)?;
        reached(fault::ARCHIVED);
        self.replace_log(&bytes[kept_from..], inbox)?;
        let archives = inbox.archives()?;
        let old = archives.len().saturating_sub(inbox.options.limits.archives);
        for (_, path) in &archives[..old] {
            atomic::remove(path)?;
        }
        Ok(())
    }

    /// Takes damaged lines out of the log and keeps them in `rejected.jsonl`. Returns how
    /// many there were.
    pub(crate) fn set_aside(&mut self, inbox: &FileInbox) -> Result<usize> {
        self.check_version()?;
        let bytes = self.log.read(0, self.log.end())?;
        let mut good = Vec::with_capacity(bytes.len());
        let mut bad = Vec::new();
        for scanned in Scan::new(&bytes, 0) {
            match scanned {
                Scanned::Good(line, _) => {
                    good.extend_from_slice(line);
                    good.push(b'\n');
                }
                Scanned::Bad(line, why) => bad.push((line, why)),
            }
        }
        if bad.is_empty() {
            return Ok(0);
        }
        let mut rejected = atomic::read(&inbox.paths.rejected)?.unwrap_or_default();
        if rejected.len() > REJECTED_BYTES {
            rejected.clear();
        }
        let at = rfc3339(inbox.now_ms());
        for (line, why) in &bad {
            tracing::warn!(inbox = %inbox.name(), %why, "a damaged line is set aside");
            let line = Value::from(String::from_utf8_lossy(line));
            // A process that died right afterwards may have set it aside before.
            let key = format!("\"line\":{line}");
            if memchr::memmem::find(&rejected, key.as_bytes()).is_none() {
                let entry = json!({"v": line::VERSION, "at": at, "why": why, "line": line});
                rejected.extend_from_slice(format!("{entry}\n").as_bytes());
            }
        }
        let (tmp, durability) = (&inbox.paths.tmp, inbox.durability());
        atomic::replace(tmp, &inbox.paths.rejected, &rejected, durability)?;
        reached(fault::SET_ASIDE);
        self.replace_log(&good, inbox)?;
        Ok(bad.len())
    }

    fn replace_log(&mut self, bytes: &[u8], inbox: &FileInbox) -> Result<()> {
        let (tmp, durability) = (&inbox.paths.tmp, inbox.durability());
        atomic::replace(tmp, &inbox.paths.log, bytes, durability)?;
        self.log.look()?;
        self.incarnation += 1;
        self.first_seq = None;
        Ok(())
    }
}

impl FileInbox {
    /// The archives by the number of their first message.
    pub(crate) fn archives(&self) -> Result<Vec<(u64, PathBuf)>> {
        let dir = &self.paths.dir;
        let archive = |name: String| {
            let number = name.strip_prefix("archive-")?.strip_suffix(".jsonl")?;
            Some((number.parse().ok()?, dir.join(&name)))
        };
        let names = store::tree::names_in(dir)?;
        let mut archives: Vec<_> = names.into_iter().filter_map(archive).collect();
        archives.sort_unstable();
        Ok(archives)
    }
}
