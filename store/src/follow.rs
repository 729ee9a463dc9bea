//! Reads a log that other processes write, as it grows.
//!
//! For readers only: takes no lock, opens for reading alone, and never holds more than the limit it
//! was given, however long the log or a line of it is.

use std::fs::{File, Metadata};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

use crate::error::{IoContext, Result};

/// Bytes read at once while skipping a line that is too long to be kept.
const CHUNK: usize = 64 * 1024;

/// Follows the complete lines of a log.
#[derive(Debug)]
pub struct Follower {
    path: PathBuf,
    /// The inode of the file that was read last; 0 before the first.
    inode: u64,
    /// The offset up to which it was read.
    end: u64,
    /// Its length at the last look.
    seen: u64,
    /// Bytes skipped so far of a line that is too long; 0 if there is none.
    too_long: u64,
    /// Start of the first read, in bytes before the end of the file; `None` for its beginning.
    tail: Option<u64>,
}

/// The lines appended since the last look.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Appended {
    /// Complete lines with their newlines.
    pub bytes: Vec<u8>,
    /// True if the file was cut or replaced: these bytes do not continue what was read before.
    pub restarted: bool,
    /// The lengths of lines that were too long to be kept, and came before `bytes`.
    pub too_long: Vec<u64>,
    /// True if more can be read at once.
    pub more: bool,
}

impl Follower {
    /// The log at `path`, from its beginning.
    pub fn new(path: PathBuf) -> Self {
        Self {
            path,
            inode: 0,
            end: 0,
            seen: 0,
            too_long: 0,
            tail: None,
        }
    }

    /// The same, but of the existing lines only those within the last `bytes`.
    pub fn tail(path: PathBuf, bytes: u64) -> Self {
        Self {
            tail: Some(bytes),
            ..Self::new(path)
        }
    }

    /// The file that is followed.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The offset up to which it was read.
    pub fn end(&self) -> u64 {
        self.end
    }

    /// Reads the lines appended since the last call, at most `limit` bytes. A longer line is left
    /// out and its length returned. Costs one look at the file's length if nothing was appended. A
    /// missing file counts as empty.
    pub fn read(&mut self, limit: usize) -> Result<Appended> {
        let path = self.path.clone();
        let now = std::fs::metadata(&path).if_there("read", &path)?;
        let mut appended = Appended::default();
        let Some(now) = now else {
            appended.restarted = self.forget();
            return Ok(appended);
        };
        if self.is_another(&now) {
            appended.restarted = self.forget();
            self.inode = now.ino();
        }
        if now.len() == self.seen {
            return Ok(appended);
        }
        let Some(file) = File::open(&path).if_there("read", &path)? else {
            return Ok(appended);
        };
        self.read_file(&file, now.len(), limit, &mut appended)
            .context("read", &path)?;
        Ok(appended)
    }

    fn is_another(&self, now: &Metadata) -> bool {
        now.ino() != self.inode || now.len() < self.seen
    }

    /// Starts over; true if something had been read.
    fn forget(&mut self) -> bool {
        let had = self.inode != 0;
        self.inode = 0;
        (self.end, self.seen, self.too_long) = (0, 0, 0);
        if had {
            self.tail = None;
        }
        had
    }

    fn read_file(
        &mut self,
        file: &File,
        len: u64,
        limit: usize,
        appended: &mut Appended,
    ) -> io::Result<()> {
        if let Some(tail) = self.tail.take() {
            self.end = len.saturating_sub(tail);
            if self.end > 0 {
                // The line that begins before is not wanted: it is skipped without a word.
                self.end -= 1;
                self.skip(file, limit.max(CHUNK))?;
            }
        }
        if self.too_long > 0 {
            self.skip(file, limit.max(CHUNK))?
                .into_iter()
                .for_each(|long| appended.too_long.push(long));
            appended.more = self.end < len;
            if self.too_long > 0 {
                self.seen = self.end;
                return Ok(());
            }
        }
        let mut bytes = read_at(file, self.end, limit)?;
        match bytes.iter().rposition(|byte| *byte == b'\n') {
            Some(last) => bytes.truncate(last + 1),
            None if bytes.len() == limit => {
                self.too_long = bytes.len() as u64;
                self.end += bytes.len() as u64;
                (self.seen, appended.more) = (self.end, true);
                return Ok(());
            }
            // Half a line.
            None => bytes.clear(),
        }
        let filled = bytes.len() as u64;
        self.end += filled;
        appended.more = filled > 0 && self.end + (limit as u64 - filled) <= len;
        self.seen = if appended.more { self.end } else { len };
        appended.bytes = bytes;
        Ok(())
    }

    /// Skips the rest of the current line, reading at most `most` bytes; returns the line's length
    /// if its end was found.
    fn skip(&mut self, file: &File, most: usize) -> io::Result<Option<u64>> {
        let mut looked = 0;
        while looked < most {
            let bytes = read_at(file, self.end, CHUNK)?;
            if bytes.is_empty() {
                break;
            }
            let newline = memchr::memchr(b'\n', &bytes);
            let passed = newline.map_or(bytes.len(), |at| at + 1) as u64;
            self.end += passed;
            if newline.is_some() {
                let long = self.too_long + passed - 1;
                self.too_long = 0;
                return Ok(Some(long));
            }
            self.too_long += passed;
            looked += bytes.len();
        }
        Ok(None)
    }
}

fn read_at(file: &File, offset: u64, limit: usize) -> io::Result<Vec<u8>> {
    let len = file.metadata()?.len().saturating_sub(offset);
    let len = usize::try_from(len).unwrap_or(usize::MAX).min(limit);
    let mut bytes = vec![0; len];
    let mut filled = 0;
    while filled < bytes.len() {
        match file.read_at(&mut bytes[filled..], offset + filled as u64) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    bytes.truncate(filled);
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn append(path: &Path, text: &str) {
        let mut file = crate::atomic::open_private(path).unwrap();
        std::io::Seek::seek(&mut file, io::SeekFrom::End(0)).unwrap();
        file.write_all(text.as_bytes()).unwrap();
    }

    fn text(appended: &Appended) -> &str {
        std::str::from_utf8(&appended.bytes).unwrap()
    }

    #[test]
    fn complete_lines_come_once_and_half_a_line_when_it_is_whole() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        let mut log = Follower::new(path.clone());
        assert_eq!(log.read(100).unwrap(), Appended::default());
        append(&path, "one\ntw");
        assert_eq!(text(&log.read(100).unwrap()), "one\n");
        assert_eq!(log.read(100).unwrap(), Appended::default());
        append(&path, "o\n");
        assert_eq!(text(&log.read(100).unwrap()), "two\n");
    }

    #[test]
    fn no_more_is_read_than_asked_for() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        append(&path, &"0123456\n".repeat(10));
        let mut log = Follower::new(path.clone());
        let mut found = String::new();
        let mut calls = 0;
        loop {
            let next = log.read(20).unwrap();
            found.push_str(text(&next));
            calls += 1;
            if !next.more {
                break;
            }
        }
        assert_eq!(found, "0123456\n".repeat(10));
        assert_eq!(calls, 5);
    }

    #[test]
    fn a_line_that_is_too_long_is_told_of_and_left_out() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        let long = "x".repeat(300_000);
        append(&path, &format!("one\n{long}\ntwo\n"));
        let mut log = Follower::new(path.clone());
        let (mut found, mut too_long) = (String::new(), Vec::new());
        for _ in 0..20 {
            let next = log.read(1000).unwrap();
            found.push_str(text(&next));
            too_long.extend(next.too_long);
        }
        assert_eq!((found.as_str(), too_long), ("one\ntwo\n", vec![300_000]));
        // One that is still being written.
        append(&path, &"y".repeat(2_500));
        for _ in 0..5 {
            assert_eq!(text(&log.read(1000).unwrap()), "");
        }
        append(&path, "\nthree\n");
        let next = log.read(1000).unwrap();
        assert_eq!(
            (next.too_long.as_slice(), text(&next)),
            (&[2_500][..], "three\n")
        );
    }

    #[test]
    fn a_file_that_is_cut_replaced_or_gone_begins_anew() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        append(&path, "one\ntwo\n");
        let mut log = Follower::new(path.clone());
        log.read(100).unwrap();
        crate::atomic::open_private(&path)
            .unwrap()
            .set_len(4)
            .unwrap();
        let next = log.read(100).unwrap();
        assert_eq!((text(&next), next.restarted), ("one\n", true));
        append(&dir.path().join("new"), "other\n");
        crate::atomic::rename(&dir.path().join("new"), &path).unwrap();
        let next = log.read(100).unwrap();
        assert_eq!((text(&next), next.restarted), ("other\n", true));
        crate::atomic::remove(&path).unwrap();
        assert!(log.read(100).unwrap().restarted);
        assert_eq!(log.read(100).unwrap(), Appended::default());
    }

    #[test]
    fn of_what_was_there_the_last_lines_are_enough() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        append(&path, &"0123456\n".repeat(100));
        for (tail, lines) in [(0, 0), (8, 1), (12, 1), (16, 2), (10_000, 100)] {
            let mut log = Follower::tail(path.clone(), tail);
            let next = log.read(10_000).unwrap();
            assert_eq!(text(&next).lines().count(), lines, "{tail}");
            assert_eq!(next.too_long, Vec::<u64>::new());
        }
        let mut log = Follower::tail(path.clone(), 8);
        log.read(100).unwrap();
        append(&path, "new\n");
        assert_eq!(text(&log.read(100).unwrap()), "new\n");
    }
}
