//! Lock *directories*, as other tools take them on the same files.
//!
//! Such a tool locks `f` by making the directory `f.lock`, keeps its mtime fresh while it holds it,
//! and takes over one that is ten seconds old. Nothing releases it when its holder is killed, so
//! ours must be recognisable: each is made under a temporary name, written to a record, and only
//! then published under its real name. Callers hold a [file lock](crate::lock) around all of this,
//! so a caller that finds a record when it takes the file lock knows that the recorded holder is
//! dead, and removes its directories at once.
//!
//! The mtime of a directory says if it is stale, as with those tools. A directory dated in the
//! future never gets old that way: it is watched instead, and stale if nothing has touched it for
//! as long by a clock that cannot be set. The start of that watch is recorded, so that commands
//! that wait for a shorter time find out together.
//!
//! A directory is ours if its inode *and* its exact mtime are the recorded ones: inode numbers are
//! reused at once, and no other tool sets an mtime with our nanoseconds.

use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{CWD, Timespec, Timestamps};
use uuid::Uuid;

use crate::atomic::{rename_new, unique_name};
use crate::clock::{Clock, monotonic_ns};
use crate::error::{IoContext, Result};
use crate::fault::{self, pass, reached};

/// Age of the mtime from which a directory has no owner.
pub const STALE_AFTER: Duration = Duration::from_secs(10);

/// Some tools set an mtime up to a second ahead; it is in the past soon enough.
const AHEAD_MS: i64 = 2000;

/// Takes lock directories for one list.
#[derive(Debug)]
pub struct LockDirs {
    tmp_dir: PathBuf,
    record: PathBuf,
    /// Directories dated in the future, with the start of their watch.
    watched: PathBuf,
}

/// The outcome of an attempt to take lock directories.
#[derive(Debug)]
pub enum Take {
    /// All of them are held.
    Held(HeldDirs),
    /// Another process holds one; none is held.
    Busy {
        /// The one in the way.
        path: PathBuf,
        /// Time since its holder last touched it.
        age: Duration,
    },
}

/// Lock directories held by this process; released when dropped.
#[derive(Debug)]
pub struct HeldDirs {
    held: Vec<Identity>,
    record: PathBuf,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Identity {
    path: PathBuf,
    inode: u64,
    mtime: (i64, i64),
}

impl LockDirs {
    /// Temporary directories are made in `tmp_dir`; `record` lists what is held.
    pub fn new(tmp_dir: PathBuf, record: PathBuf) -> Self {
        let watched = record.with_extension("watched");
        Self {
            tmp_dir,
            record,
            watched,
        }
    }

    /// Removes what a holder that died left behind. The caller holds the file lock.
    pub fn sweep(&self) -> Result<usize> {
        let bytes = std::fs::read(&self.record).if_there("read", &self.record)?;
        let Some(bytes) = bytes.filter(|bytes| !bytes.is_empty()) else {
            return Ok(0);
        };
        let text = String::from_utf8_lossy(&bytes);
        let mut removed = 0;
        for identity in text.lines().filter_map(Identity::parse) {
            if Identity::of(&identity.path)?.as_ref() == Some(&identity) {
                remove_dir(&identity.path)?;
                removed += 1;
            }
        }
        clear(&self.record)?;
        Ok(removed)
    }

    /// Takes all of `paths`, in the order given, or none. Does not wait.
    pub fn take(&self, paths: &[PathBuf], clock: &dyn Clock) -> Result<Take> {
        let mut held = HeldDirs {
            held: Vec::new(),
            record: self.record.clone(),
        };
        for path in paths {
            let mut tries = 0;
            while !self.take_one(path, &mut held)? {
                tries += 1;
                let found = Identity::of(path)?;
                let age = match &found {
                    Some(found) => self.age(found, clock.now_ms())?,
                    None => Duration::ZERO,
                };
                if tries > 3 || (found.is_some() && age < STALE_AFTER) {
                    return Ok(Take::Busy {
                        path: path.clone(),
                        age,
                    });
                }
                // Stale, or released in between.
                if let Some(stale) = &found {
                    self.take_over(stale)?;
                }
            }
        }
        Ok(Take::Held(held))
    }

    /// Time since a process last touched it, as far as that can be known.
    fn age(&self, found: &Identity, now_ms: i64) -> Result<Duration> {
        let ahead = found.mtime_ms().saturating_sub(now_ms);
        if ahead <= AHEAD_MS {
            return Ok(found.age(now_ms));
        }
        let now = monotonic_ns();
        let (line, path) = (found.line(), &self.watched);
        let known = crate::atomic::read(path)?.unwrap_or_default();
        let known = String::from_utf8_lossy(&known).into_owned();
        let since = known.lines().find_map(|known| {
            let (since, identity) = known.split_once(' ')?;
            let since: i64 = since.parse().ok()?;
            // A time in the future is from before the machine was started.
            (identity == line.trim_end() && since <= now).then_some(since)
        });
        match since {
            Some(since) => Ok(Duration::from_nanos((now - since).unsigned_abs())),
            None => {
                // Those that are gone, or were touched since, are not watched any more.
                let others = known.lines().filter(|known| {
                    let identity = known.split_once(' ').map(|(_, identity)| identity);
                    let identity = identity.and_then(Identity::parse);
                    identity.is_some_and(|identity| {
                        identity.path != found.path
                            && Identity::of(&identity.path).is_ok_and(|it| it == Some(identity))
                    })
                });
                let mut text: String = others.map(|line| format!("{line}\n")).collect();
                text.push_str(&format!("{now} {line}"));
                crate::atomic::replace(
                    &self.tmp_dir,
                    path,
                    text.as_bytes(),
                    crate::atomic::Durability::Relaxed,
                )?;
                Ok(Duration::ZERO)
            }
        }
    }

    fn take_one(&self, path: &Path, held: &mut HeldDirs) -> Result<bool> {
        let made = self.tmp_dir.join(unique_name());
        std::fs::DirBuilder::new()
            .mode(0o700)
            .create(&made)
            .context("create", &made)?;
        let identity = match self.publish(&made, path) {
            Ok(Some(identity)) => identity,
            other => {
                drop(std::fs::remove_dir(&made));
                return other.map(|_| false);
            }
        };
        held.held.push(identity);
        reached(fault::LOCKDIR_TAKEN);
        Ok(true)
    }

    /// Stamps and records the directory `made`, then gives it the name `path`.
    fn publish(&self, made: &Path, path: &Path) -> Result<Option<Identity>> {
        stamp(made)?;
        let mut identity = Identity::of(made)?
            .ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))
            .context("lock", made)?;
        path.clone_into(&mut identity.path);
        let mut record = std::fs::OpenOptions::new()
            .create(true)
            .append(true)
            .mode(0o600)
            .open(&self.record)
            .context("open", &self.record)?;
        record
            .write_all(identity.line().as_bytes())
            .context("write", &self.record)?;
        pass(fault::LOCKDIR_RECORDED).context("lock", path)?;
        Ok(rename_new(made, path)?.then_some(identity))
    }

    /// Moves a stale directory aside and removes it if it still is the one judged stale.
    ///
    /// Removing it by name could remove the lock of another process that took it over a moment ago.
    fn take_over(&self, stale: &Identity) -> Result<()> {
        let aside = self.tmp_dir.join(unique_name());
        match crate::atomic::rename(&stale.path, &aside) {
            Ok(()) => {}
            Err(_) if !stale.path.exists() => return Ok(()),
            Err(error) => return Err(error),
        }
        let moved = Identity::of(&aside)?;
        if moved.is_some_and(|m| (m.inode, m.mtime) == (stale.inode, stale.mtime)) {
            tracing::info!(path = %stale.path.display(), "took over a stale lock directory");
            return remove_dir(&aside);
        }
        if !rename_new(&aside, &stale.path)? {
            remove_dir(&aside)?;
        }
        Ok(())
    }
}

impl HeldDirs {
    /// True if no other process has taken any of them over; checked right before a change.
    pub fn still_ours(&self) -> Result<bool> {
        for identity in &self.held {
            if Identity::of(&identity.path)?.as_ref() != Some(identity) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Releases them all.
    pub fn release(mut self) -> Result<()> {
        self.release_all()
    }

    fn release_all(&mut self) -> Result<()> {
        if self.held.is_empty() {
            return Ok(());
        }
        for identity in std::mem::take(&mut self.held).iter().rev() {
            if Identity::of(&identity.path)?.as_ref() == Some(identity) {
                remove_dir(&identity.path)?;
            }
            reached(fault::LOCKDIR_RELEASED);
        }
        clear(&self.record)
    }
}

impl Drop for HeldDirs {
    fn drop(&mut self) {
        if let Err(error) = self.release_all() {
            tracing::warn!(%error, "lock directory not released; the next command removes it");
        }
    }
}

impl Identity {
    fn of(path: &Path) -> Result<Option<Self>> {
        let meta = std::fs::symlink_metadata(path).if_there("read", path)?;
        Ok(meta.map(|meta| Self {
            path: path.to_owned(),
            inode: meta.ino(),
            mtime: (meta.mtime(), meta.mtime_nsec()),
        }))
    }

    fn line(&self) -> String {
        let (seconds, nanos) = self.mtime;
        format!("{} {seconds} {nanos} {}\n", self.inode, self.path.display())
    }

    fn parse(line: &str) -> Option<Self> {
        let mut parts = line.splitn(4, ' ');
        let inode = parts.next()?.parse().ok()?;
        let mtime = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
        Some(Self {
            path: parts.next()?.into(),
            inode,
            mtime,
        })
    }

    fn mtime_ms(&self) -> i64 {
        self.mtime
            .0
            .saturating_mul(1000)
            .saturating_add(self.mtime.1 / 1_000_000)
    }

    /// Zero for an mtime in the future.
    fn age(&self, now_ms: i64) -> Duration {
        let age = now_ms.saturating_sub(self.mtime_ms());
        Duration::from_millis(age.try_into().unwrap_or(0))
    }
}

/// Gives the directory an mtime of now with nanoseconds that no other tool would set.
fn stamp(dir: &Path) -> Result<()> {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Realtime);
    let odd = i64::from(Uuid::new_v4().as_fields().0 % 999_983) + 1;
    let time = Timespec {
        tv_sec: now.tv_sec,
        tv_nsec: now.tv_nsec / 1_000_000 * 1_000_000 + odd,
    };
    let times = Timestamps {
        last_access: time,
        last_modification: time,
    };
    let flags = rustix::fs::AtFlags::SYMLINK_NOFOLLOW;
    rustix::fs::utimensat(CWD, dir, &times, flags).context("lock", dir)
}

fn remove_dir(path: &Path) -> Result<()> {
    std::fs::remove_dir(path).if_there("remove", path)?;
    Ok(())
}

fn clear(record: &Path) -> Result<()> {
    let file = std::fs::OpenOptions::new().write(true).open(record);
    file.and_then(|file| file.set_len(0))
        .context("clear", record)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::SystemClock;

    fn fixture() -> (tempfile::TempDir, LockDirs, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("tmp")).unwrap();
        let dirs = LockDirs::new(dir.path().join("tmp"), dir.path().join("held"));
        let lock = dir.path().join("1.json.lock");
        (dir, dirs, lock)
    }

    fn set_age(path: &Path, seconds: i64) {
        let now = rustix::time::clock_gettime(rustix::time::ClockId::Realtime);
        let time = Timespec {
            tv_sec: now.tv_sec - seconds,
            tv_nsec: 0,
        };
        let times = Timestamps {
            last_access: time,
            last_modification: time,
        };
        rustix::fs::utimensat(CWD, path, &times, rustix::fs::AtFlags::empty()).unwrap();
    }

    #[test]
    fn takes_and_releases() {
        let (dir, dirs, lock) = fixture();
        let Take::Held(held) = dirs
            .take(std::slice::from_ref(&lock), &SystemClock)
            .unwrap()
        else {
            panic!("no other process is here")
        };
        assert!(lock.is_dir() && held.still_ours().unwrap());
        let busy = dirs
            .take(std::slice::from_ref(&lock), &SystemClock)
            .unwrap();
        assert!(matches!(busy, Take::Busy { .. }));
        held.release().unwrap();
        assert!(!lock.exists());
        assert_eq!(
            std::fs::read_dir(dir.path().join("tmp")).unwrap().count(),
            0
        );
    }

    #[test]
    fn all_or_none() {
        let (dir, dirs, lock) = fixture();
        let other = dir.path().join("2.json.lock");
        std::fs::create_dir(&other).unwrap();
        let take = dirs
            .take(&[lock.clone(), other.clone()], &SystemClock)
            .unwrap();
        assert!(matches!(take, Take::Busy { path, .. } if path == other));
        assert!(!lock.exists() && other.exists());
    }

    #[test]
    fn a_stale_one_is_taken_over_and_a_future_one_is_not() {
        let (_dir, dirs, lock) = fixture();
        std::fs::create_dir(&lock).unwrap();
        set_age(&lock, -1);
        let take = dirs
            .take(std::slice::from_ref(&lock), &SystemClock)
            .unwrap();
        assert!(matches!(take, Take::Busy { .. }));
        set_age(&lock, 11);
        let take = dirs
            .take(std::slice::from_ref(&lock), &SystemClock)
            .unwrap();
        assert!(matches!(take, Take::Held(_)));
    }

    #[test]
    fn sweep_removes_a_dead_holders_directory_but_not_a_strangers() {
        let (_dir, dirs, lock) = fixture();
        let Take::Held(mut held) = dirs
            .take(std::slice::from_ref(&lock), &SystemClock)
            .unwrap()
        else {
            panic!("free")
        };
        held.held.clear(); // As if the process had died: nothing is released.
        drop(held);
        assert_eq!(dirs.sweep().unwrap(), 1);
        assert!(!lock.exists());

        // Ours again, but another tool took it over (same name, perhaps the same inode).
        let Take::Held(mut held) = dirs
            .take(std::slice::from_ref(&lock), &SystemClock)
            .unwrap()
        else {
            panic!("free")
        };
        std::fs::remove_dir(&lock).unwrap();
        std::fs::create_dir(&lock).unwrap();
        assert!(!held.still_ours().unwrap());
        held.held.clear();
        drop(held);
        assert_eq!(dirs.sweep().unwrap(), 0);
        assert!(lock.exists(), "a stranger's lock is left alone");
    }

    #[test]
    fn one_from_the_future_is_watched_and_then_taken_over() {
        let (dir, dirs, lock) = fixture();
        std::fs::create_dir(&lock).unwrap();
        set_age(&lock, -1_000_000);
        let take = |dirs: &LockDirs| dirs.take(std::slice::from_ref(&lock), &SystemClock);
        assert!(matches!(take(&dirs).unwrap(), Take::Busy { .. }));
        // As if another process had seen it first eleven seconds ago.
        let watched = dir.path().join("held.watched");
        let backdate = || {
            let text = std::fs::read_to_string(&watched).unwrap();
            let (since, rest) = text.split_once(' ').unwrap();
            let since: i64 = since.parse().unwrap();
            let earlier = since - 11_000_000_000;
            let text = format!("{earlier} {rest}");
            let durability = crate::atomic::Durability::Relaxed;
            crate::atomic::replace(dir.path(), &watched, text.as_bytes(), durability).unwrap();
        };
        backdate();
        // Its holder lives: it touched it, wherever its clock is.
        set_age(&lock, -1_000_005);
        let another = LockDirs::new(dir.path().join("tmp"), dir.path().join("held"));
        assert!(matches!(take(&another).unwrap(), Take::Busy { .. }));
        assert!(matches!(take(&another).unwrap(), Take::Busy { .. }));
        backdate();
        assert!(matches!(take(&another).unwrap(), Take::Held(_)));
    }
}
