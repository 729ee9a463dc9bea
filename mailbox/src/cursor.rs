//! The position up to which an inbox is read.
//!
//! Written by the one process that holds the inbox's reader lease, never synced: the position
//! survives the death of that process, and after a power cut it may be old. Then messages are
//! handed over again.

use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use store::StoreError;
use store::atomic::{self, Durability, Staged};

use crate::error::{MailError, Result};
use crate::line::{MAX_SEQ, VERSION};
use crate::ranges::Ranges;

/// Stands for all numbers there are, where the cursor was lost.
const EVERYTHING: u64 = u64::MAX - 1;

/// The content of `cursor.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Cursor {
    v: u64,
    /// Every message up to this one is acknowledged.
    pub(crate) acked: u64,
    /// Acknowledged messages above that.
    pub(crate) acked_also: Ranges,
    /// Messages above it that a reader has got. Recorded before they are handed over, so that a
    /// second time is recognised.
    pub(crate) handed_over: Ranges,
    /// Messages above it that the reader said it passed on.
    pub(crate) delivered: Ranges,
    /// Number of messages that expired before they were read.
    pub(crate) expired: u64,
}

impl Default for Cursor {
    fn default() -> Self {
        Self {
            v: VERSION,
            acked: 0,
            acked_also: Ranges::default(),
            handed_over: Ranges::default(),
            delivered: Ranges::default(),
            expired: 0,
        }
    }
}

impl Cursor {
    /// Reads it, whatever its version.
    ///
    /// One that does not parse was lost in a power cut, or damaged by hand. Starting over
    /// hands everything in the log over again, which is better than nothing of it.
    pub(crate) fn load(path: &Path) -> Result<Self> {
        let Some(bytes) = atomic::read(path)? else {
            return Ok(Self::default());
        };
        Ok(Self::parse(&bytes).unwrap_or_else(|| {
            tracing::warn!(path = %path.display(), "unreadable, starting over");
            Self::lost()
        }))
    }

    /// Reads what [`Self::to_text`] wrote; `None` if it is something else.
    pub(crate) fn parse(bytes: &[u8]) -> Option<Self> {
        let cursor: Option<Self> = serde_json::from_slice(bytes).ok();
        cursor.filter(|cursor| cursor.highest() <= MAX_SEQ)
    }

    /// The cursor in place of an unreadable one: any message may have been handed over.
    pub(crate) fn lost() -> Self {
        Self {
            handed_over: Ranges::from(vec![(1, EVERYTHING)]),
            ..Self::default()
        }
    }

    pub(crate) fn to_text(&self) -> Result<String> {
        let value = serde_json::to_value(self)
            .map_err(|error| MailError::invalid("cursor", error.to_string()))?;
        Ok(value.to_string())
    }

    pub(crate) fn save(&self, tmp: &Path, path: &Path) -> Result<()> {
        StoreError::check_version(path, self.v, VERSION)?;
        let text = self.to_text()? + "\n";
        replace(tmp, path, text.as_bytes(), Durability::Relaxed)
    }

    /// The highest number it knows to have existed.
    pub(crate) fn highest(&self) -> u64 {
        let handed = Some(self.handed_over.max()).filter(|max| *max != EVERYTHING);
        self.acked
            .max(self.acked_also.max())
            .max(handed.unwrap_or(0))
    }

    pub(crate) fn is_acked(&self, seq: u64) -> bool {
        seq <= self.acked || self.acked_also.contains(seq)
    }

    /// Moves the mark; what is below it need not be listed.
    pub(crate) fn advance(&mut self, mark: u64) {
        self.acked = self.acked.max(mark);
        for ranges in [
            &mut self.acked_also,
            &mut self.handed_over,
            &mut self.delivered,
        ] {
            ranges.forget_up_to(self.acked);
        }
    }
}

/// Replaces a file. If only the last step fails, the new content is there, and
/// [`MailError::NotDurable`] says so.
pub(crate) fn replace(tmp: &Path, path: &Path, bytes: &[u8], durability: Durability) -> Result<()> {
    Staged::write(tmp, bytes, durability)?.replace(path)?;
    match durability {
        Durability::Full => {
            atomic::sync_parent(path, durability).map_err(|source| MailError::NotDurable { source })
        }
        Durability::Ordered | Durability::Relaxed => Ok(()),
    }
}

/// Fails if `value` has a version that this ccb does not write.
pub(crate) fn check_version(value: &Value, path: &Path) -> Result<()> {
    let found = value.get("v").and_then(Value::as_u64).unwrap_or(VERSION);
    Ok(StoreError::check_version(path, found, VERSION)?)
}
