//! Append-only files of lines.
//!
//! A writer holds a lock. A crash can leave half a line at the end; the next writer cuts it
//! off before it appends, because that line was never acknowledged. Readers take no lock and
//! ignore an unfinished last line.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

use crate::atomic::{Durability, open_private};
use crate::error::{IoContext, Result};
use crate::fault::{self, pass, reached};

/// An append-only file of lines.
#[derive(Debug, Clone)]
pub struct LineLog {
    path: PathBuf,
}

/// Complete lines and where the next ones begin.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Lines {
    /// Each without its newline.
    pub lines: Vec<Vec<u8>>,
    /// Pass it to the next [`LineLog::read_from`].
    pub next_offset: u64,
}

impl LineLog {
    /// The log at `path`, which need not exist.
    pub fn new(path: PathBuf) -> Self {
        Self { path }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its length in bytes, 0 if there is none.
    pub fn len(&self) -> Result<u64> {
        match std::fs::metadata(&self.path) {
            Ok(meta) => Ok(meta.len()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(0),
            Err(error) => Err(error).context("read", &self.path),
        }
    }

    /// Whether there is nothing in it.
    pub fn is_empty(&self) -> Result<bool> {
        Ok(self.len()? == 0)
    }

    /// Appends `lines`, each of which must be free of newlines. The caller holds the lock.
    ///
    /// Returns what was cut off the end because a crash had torn it, and the new length.
    pub fn append(&self, lines: &[Vec<u8>], durability: Durability) -> Result<(Vec<u8>, u64)> {
        let path = &self.path;
        let mut file = open_private(path)?;
        let (torn, end) = cut_torn_tail(&mut file).context("repair", path)?;
        let mut bytes = Vec::with_capacity(lines.iter().map(|line| line.len() + 1).sum());
        for line in lines {
            debug_assert!(!line.contains(&b'\n'), "a line has no newline in it");
            bytes.extend_from_slice(line);
            bytes.push(b'\n');
        }
        if let Err(error) = write_at_end(&mut file, end, &bytes) {
            // Disk full half-way: take back what got there, so that nobody reads it later.
            drop(file.set_len(end));
            return Err(error).context("append to", path);
        }
        if durability == Durability::Full {
            file.sync_data().context("sync", path)?;
        }
        reached(fault::LOG_APPENDED);
        Ok((torn, end + bytes.len() as u64))
    }

    /// Reads the complete lines from `offset` on.
    pub fn read_from(&self, offset: u64) -> Result<Lines> {
        let mut file = match File::open(&self.path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(Lines {
                    lines: Vec::new(),
                    next_offset: offset,
                });
            }
            Err(error) => return Err(error).context("read", &self.path),
        };
        let mut bytes = Vec::new();
        file.seek(SeekFrom::Start(offset))
            .and_then(|_| file.read_to_end(&mut bytes))
            .context("read", &self.path)?;
        let complete = bytes
            .iter()
            .rposition(|b| *b == b'\n')
            .map_or(0, |last| last + 1);
        bytes.truncate(complete);
        let lines = bytes
            .split(|b| *b == b'\n')
            .filter(|line| !line.is_empty())
            .map(<[u8]>::to_vec)
            .collect();
        Ok(Lines {
            lines,
            next_offset: offset + complete as u64,
        })
    }
}

/// A log that one process reads and appends to again and again, under a lock.
///
/// Keeps the file open and remembers how far it was read, so that an append costs one write.
#[derive(Debug)]
pub struct LogTail {
    path: PathBuf,
    file: Option<File>,
    inode: u64,
    end: u64,
    torn: bool,
}

/// What was appended since the last look.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Fresh {
    /// Complete lines with their newlines.
    pub bytes: Vec<u8>,
    /// The file was replaced: what comes now does not continue what was read before.
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

    /// How far it was read, which is its end after [`Self::read_new`].
    pub fn end(&self) -> u64 {
        self.end
    }

    /// Reads what was appended since the last call.
    ///
    /// A log that was moved aside is read to its end before the new one is begun.
    pub fn read_new(&mut self) -> Result<Fresh> {
        let now = match std::fs::metadata(&self.path) {
            Ok(meta) => Some(meta),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(error).context("read", &self.path),
        };
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
        if self.torn {
            pass(fault::LOG_CUT).context("repair", path)?;
            file.set_len(self.end).context("repair", path)?;
            self.torn = false;
        }
        // In two halves only where a test can make the second one not happen.
        let half = if cfg!(feature = "fault-injection") {
            bytes.len() / 2
        } else {
            bytes.len()
        };
        let written = file
            .write_all_at(&bytes[..half], self.end)
            .and_then(|()| pass(fault::LOG_HALF))
            .and_then(|()| file.write_all_at(&bytes[half..], self.end + half as u64));
        if let Err(error) = written {
            drop(file.set_len(self.end));
            return Err(error).context("append to", path);
        }
        self.end += bytes.len() as u64;
        reached(fault::LOG_APPENDED);
        Ok(())
    }
}

/// The complete lines from `offset` on, and whether an unfinished one follows.
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

fn write_at_end(file: &mut File, end: u64, bytes: &[u8]) -> io::Result<()> {
    file.seek(SeekFrom::Start(end))?;
    let half = if cfg!(feature = "fault-injection") {
        bytes.len() / 2
    } else {
        bytes.len()
    };
    file.write_all(&bytes[..half])?;
    pass(fault::LOG_HALF)?;
    file.write_all(&bytes[half..])
}

/// Cuts off everything after the last newline; returns it and the new length.
fn cut_torn_tail(file: &mut File) -> io::Result<(Vec<u8>, u64)> {
    const STEP: u64 = 4096;
    let len = file.metadata()?.len();
    let mut start = len;
    let mut tail = Vec::new();
    loop {
        if let Some(last) = tail.iter().rposition(|b| *b == b'\n') {
            tail.drain(..=last);
            start += last as u64 + 1;
            break;
        }
        if start == 0 {
            break;
        }
        let from = start.saturating_sub(STEP);
        let mut block = vec![0; usize::try_from(start - from).unwrap_or(0)];
        file.seek(SeekFrom::Start(from))?;
        file.read_exact(&mut block)?;
        block.append(&mut tail);
        tail = block;
        start = from;
    }
    if !tail.is_empty() {
        pass(fault::LOG_CUT)?;
        file.set_len(start)?;
    }
    Ok((tail, start))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn append(log: &LineLog, text: &str) -> (Vec<u8>, u64) {
        log.append(&[text.as_bytes().to_vec()], Durability::Relaxed)
            .unwrap()
    }

    #[test]
    fn appends_and_reads_from_an_offset() {
        let dir = tempfile::tempdir().unwrap();
        let log = LineLog::new(dir.path().join("log"));
        assert_eq!(log.read_from(0).unwrap(), Lines::default());
        append(&log, "one");
        let first = log.read_from(0).unwrap();
        append(&log, "two");
        assert_eq!(
            log.read_from(first.next_offset).unwrap().lines,
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
        /// Wherever a crash cuts the file, complete lines survive, the torn one goes, and
        /// what is appended afterwards is whole.
        #[test]
        fn any_truncation_recovers(
            lines in prop::collection::vec("[a-z]{0,9000}", 1..6),
            cut in any::<prop::sample::Index>(),
        ) {
            let dir = tempfile::tempdir().unwrap();
            let log = LineLog::new(dir.path().join("log"));
            for line in &lines {
                append(&log, line);
            }
            let bytes = std::fs::read(log.path()).unwrap();
            let cut = cut.index(bytes.len() + 1);
            OpenOptions::new().write(true).open(log.path()).unwrap().set_len(cut as u64).unwrap();
            let whole: Vec<Vec<u8>> = log.read_from(0).unwrap().lines;
            let (torn, _) = append(&log, "after");
            let keep = bytes[..cut].iter().rposition(|b| *b == b'\n').map_or(0, |n| n + 1);
            prop_assert_eq!(&torn[..], &bytes[keep..cut]);
            let mut expected = whole;
            expected.push(b"after".to_vec());
            prop_assert_eq!(log.read_from(0).unwrap().lines, expected);
        }
    }
}
