//! An append-only file that many processes append to, each keeping it open.
//!
//! All of it happens under a lock the caller holds. A writer does not read the lines of others; it
//! looks at the file's length and, if that changed, at the end of the file. The file only ever
//! shrinks by being replaced whole, which an open handle notices by its link count.

use std::borrow::Cow;
use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;
use std::sync::Arc;

use crate::atomic::open_private;
use crate::error::{IoContext, Result};
use crate::log::write_at_end;

/// Bytes read at once at the end of the file; most lines are shorter.
const CHUNK: u64 = 2048;

/// A log that this process appends to again and again.
#[derive(Debug)]
pub struct SharedLog {
    path: Arc<Path>,
    file: Option<Arc<File>>,
    /// The offset at which the last complete line ends.
    end: u64,
    /// True if an unfinished line follows.
    torn: bool,
    /// The last bytes before `end`, as far as they were read.
    tail: Vec<u8>,
}

/// The change of the log since the last look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Look {
    /// Nothing.
    Same,
    /// Lines were added.
    Grown,
    /// The file was replaced, or is seen for the first time: start over.
    Restarted,
}

/// Makes appended lines survive a power cut; outlives the lock they were appended under.
#[derive(Debug, Clone)]
pub struct SyncHandle {
    path: Arc<Path>,
    file: Arc<File>,
}

impl SyncHandle {
    /// Waits until everything written so far is on the disk.
    pub fn sync(&self) -> Result<()> {
        self.file.sync_data().context("sync", &self.path)
    }
}

impl SharedLog {
    /// The log at `path`, which [`Self::look`] creates if needed.
    pub fn new(path: &Path) -> Self {
        Self {
            path: path.into(),
            file: None,
            end: 0,
            torn: false,
            tail: Vec::new(),
        }
    }

    /// Where the file is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The offset at which the last complete line ended at the last look or append.
    pub fn end(&self) -> u64 {
        self.end
    }

    /// Notices the lines of other writers. Must come first in every lock section.
    pub fn look(&mut self) -> Result<Look> {
        let known = match &self.file {
            Some(file) => {
                let meta = file.metadata().context("read", &self.path)?;
                (meta.nlink() > 0 && meta.len() >= self.end).then_some(meta)
            }
            None => None,
        };
        let (meta, restarted) = match known {
            Some(meta) => (meta, false),
            None => {
                let file = open_private(&self.path)?;
                let meta = file.metadata().context("read", &self.path)?;
                self.file = Some(Arc::new(file));
                self.end = 0;
                self.tail.clear();
                (meta, true)
            }
        };
        if !restarted && meta.len() == self.end {
            self.torn = false;
            return Ok(Look::Same);
        }
        let before = self.end;
        self.find_end(meta.len())?;
        Ok(match (restarted, self.end > before) {
            (true, _) => Look::Restarted,
            (false, true) => Look::Grown,
            (false, false) => Look::Same,
        })
    }

    /// Reads back from `len` until there is a newline, or the end known before.
    fn find_end(&mut self, len: u64) -> Result<()> {
        let mut size = CHUNK;
        loop {
            let start = len.saturating_sub(size).max(self.end);
            let bytes = self.read(start, len)?;
            if let Some(newline) = memchr::memrchr(b'\n', &bytes) {
                self.end = start + newline as u64 + 1;
                self.tail = bytes;
                self.tail.truncate(newline + 1);
                break;
            }
            if start == self.end {
                break;
            }
            size *= 8;
        }
        self.torn = self.end < len;
        Ok(())
    }

    /// Calls `wanted` with the complete lines, last one first, until it returns something.
    pub fn find_last<T>(&self, mut wanted: impl FnMut(&[u8]) -> Option<T>) -> Result<Option<T>> {
        let mut start = self.end - self.tail.len() as u64;
        // Most callers only want the last line, and it is in the tail.
        let mut bytes = Cow::Borrowed(&self.tail[..]);
        let mut length = bytes.len();
        loop {
            // The bytes before the first newline may be the rest of a longer line.
            while let Some(line) = last_whole_line(&bytes[..length], start == 0) {
                length = line.start;
                if !line.is_empty()
                    && let Some(found) = wanted(&bytes[line])
                {
                    return Ok(Some(found));
                }
            }
            if start == 0 {
                return Ok(None);
            }
            let more = start.saturating_sub((length as u64).max(CHUNK) * 4);
            let mut grown = self.read(more, start)?;
            grown.extend_from_slice(&bytes[..length]);
            length = grown.len();
            bytes = Cow::Owned(grown);
            start = more;
        }
    }

    /// The bytes from `start` to `end`, fewer if the file is shorter.
    pub fn read(&self, start: u64, end: u64) -> Result<Vec<u8>> {
        let Some(file) = &self.file else {
            return Ok(Vec::new());
        };
        let length = usize::try_from(end.saturating_sub(start)).unwrap_or(0);
        let mut bytes = vec![0; length];
        let mut filled = 0;
        while filled < length {
            match file.read_at(&mut bytes[filled..], start + filled as u64) {
                Ok(0) => break,
                Ok(count) => filled += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error).context("read", &self.path),
            }
        }
        bytes.truncate(filled);
        Ok(bytes)
    }

    /// Appends complete lines. [`Self::look`] was called under the same lock.
    pub fn append(&mut self, lines: &[u8]) -> Result<()> {
        let Some(file) = &self.file else {
            let error = io::Error::other("append without a look");
            return Err(error).context("append to", &self.path);
        };
        write_at_end(file, &self.path, self.end, self.torn, lines)?;
        self.torn = false;
        self.end += lines.len() as u64;
        self.tail.clear();
        Ok(())
    }

    /// A handle to sync the log later, outside the lock. `None` before the first look.
    pub fn sync_handle(&self) -> Option<SyncHandle> {
        self.file.as_ref().map(|file| SyncHandle {
            path: Arc::clone(&self.path),
            file: Arc::clone(file),
        })
    }

    /// Makes appended lines survive a power cut.
    pub fn sync(&self) -> Result<()> {
        self.sync_handle().map_or(Ok(()), |handle| handle.sync())
    }
}

/// The range of the last line of `bytes`, without its newline. `bytes` ends with a newline, and its
/// first line counts only if it is `whole`.
fn last_whole_line(bytes: &[u8], whole: bool) -> Option<std::ops::Range<usize>> {
    let newline = bytes.len().checked_sub(1)?;
    match memchr::memrchr(b'\n', &bytes[..newline]) {
        Some(previous) => Some(previous + 1..newline),
        None if whole => Some(0..newline),
        None => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::atomic::{Durability, replace};
    use proptest::prelude::*;
    use std::io::Write;

    fn last(log: &SharedLog) -> Option<String> {
        log.find_last(|line| Some(String::from_utf8_lossy(line).into_owned()))
            .unwrap()
    }

    #[test]
    fn two_writers_see_each_other_and_a_replaced_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        let (mut one, mut two) = (SharedLog::new(&path), SharedLog::new(&path));
        assert_eq!(one.look().unwrap(), Look::Restarted);
        assert_eq!(last(&one), None);
        one.append(b"a\n").unwrap();
        assert_eq!(one.look().unwrap(), Look::Same);
        assert_eq!(two.look().unwrap(), Look::Restarted);
        assert_eq!(last(&two).unwrap(), "a");
        two.append(b"b\nc\n").unwrap();
        assert_eq!(one.look().unwrap(), Look::Grown);
        assert_eq!(last(&one).unwrap(), "c");

        replace(dir.path(), &path, b"c\n", Durability::Relaxed).unwrap();
        assert_eq!(one.look().unwrap(), Look::Restarted);
        one.append(b"d\n").unwrap();
        assert_eq!(two.look().unwrap(), Look::Restarted);
        assert_eq!(std::fs::read(&path).unwrap(), b"c\nd\n");
    }

    #[test]
    fn a_torn_line_is_ignored_and_cut_off() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        let mut log = SharedLog::new(&path);
        log.look().unwrap();
        log.append(b"a\n").unwrap();
        let mut other = std::fs::OpenOptions::new()
            .append(true)
            .open(&path)
            .unwrap();
        other.write_all(b"tor").unwrap();
        assert_eq!(log.look().unwrap(), Look::Same);
        assert_eq!(last(&log).unwrap(), "a");
        log.append(b"b\n").unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"a\nb\n");
    }

    proptest! {
        /// Lines of any length come back last to first, however the file was left.
        #[test]
        fn lines_are_found_from_the_end(
            lines in prop::collection::vec("[a-z]{1,9000}", 0..8),
            torn in "[a-z]{0,6000}",
        ) {
            let dir = tempfile::tempdir().unwrap();
            let path = dir.path().join("log");
            let mut text: String = lines.iter().map(|line| format!("{line}\n")).collect();
            text.push_str(&torn);
            replace(dir.path(), &path, text.as_bytes(), Durability::Relaxed).unwrap();
            let mut log = SharedLog::new(&path);
            log.look().unwrap();
            let mut found = Vec::new();
            let none: Option<()> = log
                .find_last(|line| {
                    found.push(String::from_utf8(line.to_vec()).unwrap());
                    None
                })
                .unwrap();
            prop_assert!(none.is_none());
            found.reverse();
            prop_assert_eq!(&found, &lines);
            log.append(b"after\n").unwrap();
            prop_assert_eq!(last(&log).unwrap(), "after");
        }
    }
}
