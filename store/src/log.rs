//! Append-only files of lines.
//!
//! A writer holds a lock. A crash can leave half a line at the end; the next writer cuts it
//! off before it appends, because that line was never acknowledged. Readers take no lock and
//! ignore an unfinished last line.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

use crate::atomic::open_private;
use crate::error::{IoContext, Result};
use crate::fault::{self, pass, reached};

/// Complete lines and the offset of the next ones.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Lines {
    /// Each without its newline.
    pub lines: Vec<Vec<u8>>,
    /// The offset to pass to the next [`read_from`].
    pub next_offset: u64,
}

/// The last `limit` bytes of a text file, from the beginning of a line if there is one. Empty if
/// there is no file.
pub fn tail(path: &Path, limit: u64) -> Result<String> {
    let Some(mut file) = File::open(path).if_there("read", path)? else {
        return Ok(String::new());
    };
    let mut bytes = Vec::new();
    let read = file.seek(SeekFrom::End(0)).and_then(|end| {
        let start = end.saturating_sub(limit);
        file.seek(SeekFrom::Start(start))?;
        file.take(limit).read_to_end(&mut bytes)?;
        Ok(start > 0)
    });
    let cut = read.context("read", path)?;
    let text = String::from_utf8_lossy(&bytes).into_owned();
    Ok(match text.split_once('\n') {
        Some((_, rest)) if cut && !rest.is_empty() => rest.to_owned(),
        _ => text,
    })
}

/// Reads the complete lines of the log at `path` from `offset` on; none if there is no log.
pub fn read_from(path: &Path, offset: u64) -> Result<Lines> {
    let bytes = match File::open(path).if_there("read", path)? {
        Some(file) => read_lines(&file, offset).context("read", path)?.0,
        None => Vec::new(),
    };
    let lines = bytes.split(|b| *b == b'\n').filter(|line| !line.is_empty());
    Ok(Lines {
        lines: lines.map(<[u8]>::to_vec).collect(),
        next_offset: offset + bytes.len() as u64,
    })
}

/// A log that one process reads and appends to again and again, under a lock.
///
/// Keeps the file open and remembers the offset up to which it was read, so that an append costs
/// one write.
#[derive(Debug)]
pub struct LogTail {
    path: PathBuf,
    file: Option<File>,
    inode: u64,
    end: u64,
    torn: bool,
}

/// The lines appended since the last look.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Fresh {
    /// Complete lines with their newlines.
    pub bytes: Vec<u8>,
    /// True if the file was replaced: these bytes do not continue what was read before.
    pub restarted: bool,
}

impl LogTail {
    /// The log at `path`, to be read from `offset` on.
    pub fn new(path: PathBuf, offset: u64) -> Self {
        Self {
            path,
            file: None,
            inode: 0,
            end: offset,
            torn: false,
        }
    }

    /// The offset up to which it was read, which is its end after [`Self::read_new`].
    pub fn end(&self) -> u64 {
        self.end
    }

    /// Bytes appended since the last look, as far as the open file tells.
    pub fn behind(&self) -> u64 {
        let meta = self.file.as_ref().and_then(|file| file.metadata().ok());
        meta.map_or(0, |meta| meta.len().saturating_sub(self.end))
    }

    /// Reads the lines appended since the last call.
    ///
    /// A log that was moved aside is read to its end before the new one is begun.
    pub fn read_new(&mut self) -> Result<Fresh> {
        let now = std::fs::metadata(&self.path).if_there("read", &self.path)?;
        let mut fresh = Fresh::default();
        let same = now.as_ref().is_some_and(|meta| meta.ino() == self.inode);
        if let (Some(file), Some(meta), true) = (&self.file, &now, same) {
            if meta.len() == self.end {
                self.torn = false;
                return Ok(fresh);
            }
            if meta.len() > self.end {
                (fresh.bytes, self.torn) =
                    read_lines(file, self.end).context("read", &self.path)?;
                self.end += fresh.bytes.len() as u64;
                return Ok(fresh);
            }
        }
        if let Some(file) = self.file.take()
            && !same
        {
            (fresh.bytes, _) = read_lines(&file, self.end).context("read", &self.path)?;
            self.end = 0;
        }
        let Some(meta) = now else {
            fresh.restarted = self.end > 0;
            self.end = 0;
            return Ok(fresh);
        };
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .open(&self.path)
            .context("open", &self.path)?;
        if meta.len() < self.end {
            fresh.restarted = true;
            self.end = 0;
        }
        let (more, torn) = read_lines(&file, self.end).context("read", &self.path)?;
        self.end += more.len() as u64;
        self.torn = torn;
        self.inode = meta.ino();
        self.file = Some(file);
        fresh.bytes.extend(more);
        Ok(fresh)
    }

    /// Appends complete lines. [`Self::read_new`] was called under the same lock.
    pub fn append(&mut self, bytes: &[u8]) -> Result<()> {
        let path = &self.path;
        if self.file.is_none() {
            let file = open_private(path)?;
            self.inode = file.metadata().context("open", path)?.ino();
            self.file = Some(file);
        }
        let Some(file) = &self.file else {
            return Ok(());
        };
        write_at_end(file, path, self.end, self.torn, bytes)?;
        self.torn = false;
        self.end += bytes.len() as u64;
        Ok(())
    }

    /// Waits until the appended lines are on the disk.
    pub fn sync(&self) -> Result<()> {
        match &self.file {
            Some(file) => file.sync_data().context("sync", &self.path),
            None => Ok(()),
        }
    }
}

/// Writes complete lines at `end`. If the log is `torn`, first cuts off the half line that a crash
/// left there. After an error the file ends where it did.
pub(crate) fn write_at_end(
    file: &File,
    path: &Path,
    end: u64,
    torn: bool,
    bytes: &[u8],
) -> Result<()> {
    if torn {
        pass(fault::LOG_CUT).context("repair", path)?;
        file.set_len(end).context("repair", path)?;
    }
    // In two halves only where a test can prevent the second one.
    let half = if cfg!(feature = "fault-injection") {
        bytes.len() / 2
    } else {
        bytes.len()
    };
    let written = file
        .write_all_at(&bytes[..half], end)
        .and_then(|()| pass(fault::LOG_HALF))
        .and_then(|()| file.write_all_at(&bytes[half..], end + half as u64));
    if let Err(error) = written {
        drop(file.set_len(end));
        return Err(error).context("append to", path);
    }
    reached(fault::LOG_APPENDED);
    Ok(())
}

/// The complete lines from `offset` on; true if an unfinished one follows.
fn read_lines(file: &File, offset: u64) -> io::Result<(Vec<u8>, bool)> {
    let len = file.metadata()?.len().saturating_sub(offset);
    let mut bytes = vec![0; usize::try_from(len).unwrap_or(0)];
    let mut filled = 0;
    while filled < bytes.len() {
        match file.read_at(&mut bytes[filled..], offset + filled as u64)? {
            0 => break,
            count => filled += count,
        }
    }
    bytes.truncate(filled);
    let complete = bytes
        .iter()
        .rposition(|b| *b == b'\n')
        .map_or(0, |last| last + 1);
    let torn = complete < bytes.len();
    bytes.truncate(complete);
    Ok((bytes, torn))
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;
    use proptest::prelude::*;

    /// Appends as a process does that has just got the lock.
    fn append(path: &Path, text: &str) {
        let mut log = LogTail::new(path.to_owned(), 0);
        log.read_new().unwrap();
        log.append(format!("{text}\n").as_bytes()).unwrap();
    }

    #[test]
    fn appends_and_reads_from_an_offset() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        assert_eq!(read_from(&path, 0).unwrap(), Lines::default());
        append(&path, "one");
        let first = read_from(&path, 0).unwrap();
        append(&path, "two");
        assert_eq!(
            read_from(&path, first.next_offset).unwrap().lines,
            vec![b"two".to_vec()]
        );
    }

    #[test]
    fn a_tail_follows_appends_rotation_and_loss() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        let mut writer = LogTail::new(path.clone(), 0);
        let mut reader = LogTail::new(path.clone(), 0);
        assert_eq!(reader.read_new().unwrap(), Fresh::default());
        writer.read_new().unwrap();
        writer.append(b"one\n").unwrap();
        assert_eq!(reader.read_new().unwrap().bytes, b"one\n");

        // Torn by a crash: invisible, and cut off by the next append.
        OpenOptions::new()
            .append(true)
            .open(&path)
            .unwrap()
            .write_all(b"tor")
            .unwrap();
        assert_eq!(reader.read_new().unwrap(), Fresh::default());
        writer.read_new().unwrap();
        writer.append(b"two\n").unwrap();
        writer.append(b"three\n").unwrap();
        crate::atomic::rename(&path, &dir.path().join("old")).unwrap();
        writer.read_new().unwrap();
        writer.append(b"four\n").unwrap();
        let fresh = reader.read_new().unwrap();
        assert_eq!(
            String::from_utf8(fresh.bytes).unwrap(),
            "two\nthree\nfour\n"
        );
        assert!(!fresh.restarted);

        OpenOptions::new()
            .write(true)
            .open(&path)
            .unwrap()
            .set_len(0)
            .unwrap();
        assert!(reader.read_new().unwrap().restarted);
        assert_eq!(reader.end(), 0);
    }

    proptest! {
        /// Wherever a crash cuts the file, complete lines survive, the torn one is cut off, and
        /// later appends are whole.
        #[test]
        fn any_truncation_recovers(
            lines in prop::collection::vec("[a-z]{1,9000}", 1..6),
            cut in any::<prop::sample::Index>(),
        ) {
            let dir = tempfile::tempdir().unwrap();
            let path = dir.path().join("log");
            for line in &lines {
                append(&path, line);
            }
            let bytes = std::fs::read(&path).unwrap();
            let cut = cut.index(bytes.len() + 1);
            OpenOptions::new().write(true).open(&path).unwrap().set_len(cut as u64).unwrap();
            let whole = bytes[..cut].iter().filter(|b| **b == b'\n').count();
            append(&path, "after");
            let mut expected: Vec<Vec<u8>> =
                lines[..whole].iter().map(|line| line.clone().into_bytes()).collect();
            expected.push(b"after".to_vec());
            prop_assert_eq!(read_from(&path, 0).unwrap().lines, expected);
        }
    }
}
