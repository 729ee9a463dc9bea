//! Makes a new worktree's files look a little older than its index.
//!
//! git trusts the times in its index only for files that are older than the index itself, in whole
//! seconds; it reads all others again at every `status` and whenever it writes the index. In a
//! worktree that was checked out within a second, that is every file, every time, until the index
//! is refreshed later. So ccb dates the files of a new worktree back by a second, and writes the
//! new times into the index. A later write to one of them gives it a time that differs.
//!
//! Only an index of the plain form is changed, and only the times in it: if anything about it or
//! about a file is unexpected, it is left as git wrote it, which is slower and as right.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::fs::{AtFlags, Stat, Timespec, Timestamps, UTIME_OMIT, statat, utimensat};
use sha1::{Digest, Sha1};
use store::atomic::{self, Durability};
use store::{IoContext, StoreError};

/// The shift, in seconds. The index is written after the files, so this is enough; and the less it
/// is, the smaller the chance that a file seems older than a product that was built from another
/// version of it in a directory worktrees share.
const BACKDATE_SECONDS: i64 = 1;

/// The parts of an index entry, in bytes from its beginning.
const CTIME: usize = 0;
const MTIME: usize = 8;
const INODE: usize = 20;
const MODE: usize = 24;
const OWNER: usize = 28;
const GROUP: usize = 32;
const SIZE: usize = 36;
const FLAGS: usize = 60;
const NAME: usize = 62;
/// Length of a checksum.
const CHECKSUM_LENGTH: usize = 20;

/// Dates the files of a worktree back that is not in use yet. True if it did.
pub(crate) fn backdate_files(tree: &Path, admin: &Path, tmp: &Path) -> Result<bool, StoreError> {
    let index = admin.join("index");
    let mut bytes = atomic::read(&index)?.unwrap_or_default();
    let Some(entries) = entries(&bytes) else {
        return Ok(false);
    };
    let dated = File::open(tree).and_then(|dir| {
        let mut entries = entries.into_iter();
        entries.try_for_each(|entry| backdate_file(&dir, &mut bytes[entry]))
    });
    dated.context("date back the files of", tree)?;
    let end = bytes.len() - CHECKSUM_LENGTH;
    let sum = Sha1::digest(&bytes[..end]);
    bytes[end..].copy_from_slice(&sum);
    atomic::replace_keeping_mode(tmp, &index, &bytes, Durability::Relaxed)?;
    Ok(true)
}

/// The ranges of the entries, if this is an index of the plain form.
fn entries(bytes: &[u8]) -> Option<Vec<std::ops::Range<usize>>> {
    let end = bytes.len().checked_sub(CHECKSUM_LENGTH)?;
    if bytes.get(..4)? != b"DIRC" || !matches!(number(bytes, 4)?, 2 | 3) {
        return None;
    }
    // Another kind of object name has another length; and an index may have no checksum.
    if Sha1::digest(&bytes[..end]).as_slice() != &bytes[end..] {
        return None;
    }
    let mut found = Vec::new();
    let mut at = 12;
    for _ in 0..number(bytes, 8)? {
        let flags = u16::from_be_bytes(bytes.get(at + FLAGS..at + NAME)?.try_into().ok()?);
        let (conflict, extended) = (flags & 0x3000 != 0, flags & 0x4000 != 0);
        if conflict || extended {
            return None;
        }
        let name = &bytes.get(at + NAME..end)?;
        let length = name.iter().position(|byte| *byte == 0)?;
        found.push(at..at + NAME + length);
        // At least one zero byte, up to a multiple of eight.
        at += (NAME + length + 8) & !7;
    }
    while at < end {
        // Parts of it are in another file, or directories stand for their files.
        if matches!(bytes.get(at..at + 4)?, b"link" | b"sdir") {
            return None;
        }
        at += 8 + usize::try_from(number(bytes, at + 4)?).ok()?;
    }
    (at == end).then_some(found)
}

/// True if the index, of the plain form, tells git to ignore changes of any file; `None` if it is
/// of another form, or damaged.
pub(crate) fn assumes_unchanged(bytes: &[u8]) -> Option<bool> {
    let entries = entries(bytes)?;
    let assumed = |entry: &std::ops::Range<usize>| bytes[entry.start + FLAGS] & 0x80 != 0;
    Some(entries.iter().any(assumed))
}

/// An index of the plain form.
#[derive(Debug)]
pub(crate) struct PlainIndex {
    bytes: Vec<u8>,
    entries: Vec<std::ops::Range<usize>>,
}

impl PlainIndex {
    /// Reads an index; `None` if it is of another form, or damaged.
    pub(crate) fn parse(bytes: Vec<u8>) -> Option<Self> {
        let entries = entries(&bytes)?;
        Some(Self { bytes, entries })
    }

    /// The entries of all files.
    pub(crate) fn files(&self) -> impl Iterator<Item = IndexEntry<'_>> {
        let entries = self.entries.iter();
        entries.map(|range| IndexEntry(&self.bytes[range.clone()]))
    }
}

/// The entry of one file.
#[derive(Debug, Clone, Copy)]
pub(crate) struct IndexEntry<'a>(&'a [u8]);

impl<'a> IndexEntry<'a> {
    /// The path from the top of the worktree.
    pub(crate) fn name(self) -> &'a [u8] {
        &self.0[NAME..]
    }

    /// True if the file is still the one git saw. False if git must ignore changes of it, or if it is
    /// neither a file nor a link.
    pub(crate) fn is_as_in(self, now: &Stat) -> bool {
        let same = |at: usize, value: [u8; 4]| self.0[at..at + 4] == value;
        let mode = match now.st_mode & 0o170_000 {
            0o100_000 if now.st_mode & 0o100 != 0 => 0o100_755_u32,
            0o100_000 => 0o100_644,
            0o120_000 => 0o120_000,
            _ => return false,
        };
        let looked_at = self.0[FLAGS] & 0x80 == 0;
        looked_at
            && is_as_checked_out(now, self.0)
            && same(CTIME, low_bytes(now.st_ctime))
            && same(CTIME + 4, low_bytes(now.st_ctime_nsec))
            && same(INODE, low_bytes(now.st_ino))
            && same(OWNER, low_bytes(now.st_uid))
            && same(GROUP, low_bytes(now.st_gid))
            && same(MODE, mode.to_be_bytes())
    }
}

fn number(bytes: &[u8], at: usize) -> Option<u32> {
    let four = bytes.get(at..at + 4)?.try_into().ok()?;
    Some(u32::from_be_bytes(four))
}

/// Dates one file back if it matches its entry, and writes the new times into the entry.
fn backdate_file(dir: &File, entry: &mut [u8]) -> io::Result<()> {
    let file_type = number(entry, MODE).unwrap_or(0) & 0o170_000;
    if !matches!(file_type, 0o100_000 | 0o120_000) {
        return Ok(());
    }
    let path = OsStr::from_bytes(&entry[NAME..]).to_owned();
    let now = match stat(dir, &path) {
        Ok(now) if is_as_checked_out(&now, entry) => now,
        _ => return Ok(()),
    };
    let times = Timestamps {
        last_access: Timespec {
            tv_sec: 0,
            tv_nsec: UTIME_OMIT,
        },
        last_modification: Timespec {
            tv_sec: now.st_mtime - BACKDATE_SECONDS,
            tv_nsec: i64::try_from(now.st_mtime_nsec).unwrap_or(0),
        },
    };
    utimensat(dir.as_fd(), &path, &times, AtFlags::SYMLINK_NOFOLLOW)?;
    let now = stat(dir, &path)?;
    for (at, seconds, nanoseconds) in [
        (CTIME, now.st_ctime, now.st_ctime_nsec),
        (MTIME, now.st_mtime, now.st_mtime_nsec),
    ] {
        // The index has room for 32 bits of each.
        entry[at..at + 4].copy_from_slice(&low_bytes(seconds));
        entry[at + 4..at + 8].copy_from_slice(&low_bytes(nanoseconds));
    }
    Ok(())
}

fn stat(dir: &File, path: &OsStr) -> rustix::io::Result<Stat> {
    statat(dir.as_fd(), path, AtFlags::SYMLINK_NOFOLLOW)
}

/// True if the file is as git checked it out.
fn is_as_checked_out(now: &Stat, entry: &[u8]) -> bool {
    let same = |at: usize, value: [u8; 4]| entry[at..at + 4] == value;
    same(MTIME, low_bytes(now.st_mtime))
        && same(MTIME + 4, low_bytes(now.st_mtime_nsec))
        && same(SIZE, low_bytes(now.st_size))
}

/// The lower 32 bits, as the index has them.
fn low_bytes(value: impl TryInto<i64>) -> [u8; 4] {
    let value = value.try_into().unwrap_or(0);
    let [.., a, b, c, d] = value.to_be_bytes();
    [a, b, c, d]
}
