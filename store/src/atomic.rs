//! Files that are replaced whole, or not at all.
//!
//! The steps are: temporary file, write, fsync, rename, fsync the directory. Leaving out the
//! first fsync can lose the old content as well as the new one after a power cut; leaving out
//! the second can lose an acknowledged change. The steps are separate calls ([`Staged`])
//! because callers do the slow ones before they take a lock.

use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{CWD, OFlags, RenameFlags};
use uuid::Uuid;

use crate::error::{IoContext, Result};
use crate::fault::{self, pass, reached};

/// The part of a change that must survive a power cut before it is acknowledged. Greater is safer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Durability {
    /// Leave it to the operating system: after a power cut the file may be empty, old content
    /// and new both gone. Only for data that can be rebuilt.
    Relaxed,
    /// fsync the file, not its directory: the last change may be lost, but the file is the
    /// old one or the new one. For what cannot be rebuilt and is not acknowledged.
    Ordered,
    /// fsync the file and its directory: what was acknowledged survives.
    #[default]
    Full,
}

impl Durability {
    /// As a setting says it.
    pub fn of(durable: bool) -> Self {
        match durable {
            true => Self::Full,
            false => Self::Relaxed,
        }
    }
}

/// Cheap evidence that a file is still the one that was read.
///
/// Equal stamps do not prove equal content (clocks are coarse, inode numbers are reused); different
/// ones prove that something happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stamp {
    /// When the content last changed, in nanoseconds since the epoch.
    pub mtime_ns: i64,
    /// Its length in bytes.
    pub size: u64,
}

impl Stamp {
    /// The stamp in a file's metadata.
    pub fn of(meta: &Metadata) -> Self {
        let mtime_ns = meta
            .mtime()
            .wrapping_mul(1_000_000_000)
            .wrapping_add(meta.mtime_nsec());
        Self {
            mtime_ns,
            size: meta.len(),
        }
    }
}

/// A complete file under a temporary name. Removed again unless it is published or kept.
#[derive(Debug)]
pub struct Staged {
    path: PathBuf,
    stamp: Stamp,
    armed: bool,
}

impl Staged {
    /// Writes `bytes` to a new temporary file in `tmp_dir`.
    pub fn write(tmp_dir: &Path, bytes: &[u8], durability: Durability) -> Result<Self> {
        let path = tmp_dir.join(unique_name());
        let mut file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&path)
            .context("create", &path)?;
        // From here on a failure removes the file.
        let mut staged = Self {
            path,
            stamp: Stamp::default(),
            armed: true,
        };
        let path = &staged.path;
        pass(fault::STAGE_OPENED).context("write", path)?;
        file.write_all(bytes).context("write", path)?;
        pass(fault::STAGE_WRITTEN).context("write", path)?;
        if durability != Durability::Relaxed {
            file.sync_data().context("sync", path)?;
        }
        pass(fault::STAGE_SYNCED).context("sync", path)?;
        staged.stamp = Stamp::of(&file.metadata().context("read", path)?);
        Ok(staged)
    }

    /// Takes over a file that was staged earlier, perhaps by another process, and
    /// [kept](Self::keep).
    pub fn adopt(path: PathBuf, stamp: Stamp) -> Self {
        Self {
            path,
            stamp,
            armed: false,
        }
    }

    /// Leaves the file in place when this value is dropped: its name was recorded somewhere.
    pub fn keep(&mut self) {
        self.armed = false;
    }

    /// Its stamp, which publishing does not change.
    pub fn stamp(&self) -> Stamp {
        self.stamp
    }

    /// Its name in the temporary directory.
    pub fn name(&self) -> String {
        self.path
            .file_name()
            .map(|name| name.to_string_lossy().into_owned())
            .unwrap_or_default()
    }

    /// Moves the file over `dest`, replacing what is there.
    pub fn replace(mut self, dest: &Path) -> Result<()> {
        rename(&self.path, dest)?;
        self.armed = false;
        reached(fault::PUBLISH_REPLACED);
        Ok(())
    }

    /// Moves the file to `dest` unless something is there already; true if it did.
    pub fn create(mut self, dest: &Path) -> Result<bool> {
        if !rename_new(&self.path, dest)? {
            return Ok(false);
        }
        self.armed = false;
        reached(fault::PUBLISH_CREATED);
        Ok(true)
    }
}

impl Drop for Staged {
    fn drop(&mut self) {
        if self.armed
            && let Err(error) = std::fs::remove_file(&self.path)
        {
            tracing::debug!(path = %self.path.display(), %error, "temporary file left behind");
        }
    }
}

/// A file name that no other process uses.
pub(crate) fn unique_name() -> String {
    static PROCESS: LazyLock<String> = LazyLock::new(|| Uuid::new_v4().simple().to_string());
    static COUNT: AtomicU64 = AtomicU64::new(0);
    // A forked child would share the prefix; its process id differs.
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    format!("{}-{}-{count}", *PROCESS, std::process::id())
}

/// Writes many temporary files. All of them are on the disk afterwards, by one sync of the
/// file system where that is cheaper than one per file.
pub fn stage_many(
    tmp_dir: &Path,
    files: &[Vec<u8>],
    durability: Durability,
) -> Result<Vec<Staged>> {
    let together = files.len() > 16 && durability != Durability::Relaxed;
    let each = if together {
        Durability::Relaxed
    } else {
        durability
    };
    let staged: Result<Vec<Staged>> = files
        .iter()
        .map(|bytes| Staged::write(tmp_dir, bytes, each))
        .collect();
    let staged = staged?;
    if together {
        sync_file_system(tmp_dir, durability)?;
    }
    Ok(staged)
}

/// Writes everything to the disk that any process has changed on the file system of `path`, files
/// and names alike, before it returns.
///
/// For the writes of other programs: git syncs neither the names of refs nor the files of a
/// worktree, and no caller can list what it touched.
pub fn sync_file_system(path: &Path, durability: Durability) -> Result<()> {
    pass(fault::FILE_SYSTEM_SYNC).context("sync", path)?;
    if durability == Durability::Relaxed {
        return Ok(());
    }
    let dir = File::open(path).context("open", path)?;
    rustix::fs::syncfs(dir).context("sync", path)
}

/// Moves a finished file that another program wrote over `dest`.
pub fn publish(path: &Path, dest: &Path, durability: Durability) -> Result<()> {
    if durability != Durability::Relaxed {
        File::open(path)
            .and_then(|file| file.sync_all())
            .context("sync", path)?;
    }
    rename(path, dest)?;
    sync_parent(dest, durability)
}

/// Replaces `dest` with `bytes` in all five steps.
pub fn replace(tmp_dir: &Path, dest: &Path, bytes: &[u8], durability: Durability) -> Result<()> {
    Staged::write(tmp_dir, bytes, durability)?.replace(dest)?;
    sync_parent(dest, durability)
}

/// [`replace`]s a file that is not ours alone, keeping its mode.
pub fn replace_keeping_mode(
    tmp_dir: &Path,
    dest: &Path,
    bytes: &[u8],
    durability: Durability,
) -> Result<()> {
    let staged = Staged::write(tmp_dir, bytes, durability)?;
    let mode = match std::fs::metadata(dest) {
        Ok(meta) => meta.permissions(),
        Err(_) => std::os::unix::fs::PermissionsExt::from_mode(0o644),
    };
    std::fs::set_permissions(&staged.path, mode).context("replace", dest)?;
    staged.replace(dest)?;
    sync_parent(dest, durability)
}

/// Removes `path`; a missing file is fine. True if it was there.
pub fn remove(path: &Path) -> Result<bool> {
    let removed = std::fs::remove_file(path).if_there("remove", path)?;
    if removed.is_some() {
        reached(fault::REMOVED);
    }
    Ok(removed.is_some())
}

/// Moves `path`, a file or a whole directory, into `trash` under an unused name; true if it was
/// there.
///
/// Open handles keep the moved file; new readers find none.
pub fn set_aside(path: &Path, trash: &Path) -> Result<bool> {
    // A symlink is moved, never followed.
    if path.symlink_metadata().is_err() {
        return Ok(false);
    }
    rename(path, &trash.join(unique_name()))?;
    Ok(true)
}

/// Renames an unreadable file to a name beside it that says so; returns that name.
pub fn set_unreadable_aside(path: &Path) -> Result<PathBuf> {
    let mut number = 0;
    loop {
        let mut aside = path.as_os_str().to_owned();
        aside.push(format!(".unreadable-{number}"));
        let aside = PathBuf::from(aside);
        if rename_new(path, &aside)? {
            sync_parent(path, Durability::Full)?;
            return Ok(aside);
        }
        number += 1;
    }
}

/// Makes the names in the directory of `path` survive a power cut.
pub fn sync_parent(path: &Path, durability: Durability) -> Result<()> {
    match path.parent() {
        Some(dir) => sync_dir(dir, durability),
        None => Ok(()),
    }
}

/// Makes the names in `dir` survive a power cut.
pub fn sync_dir(dir: &Path, durability: Durability) -> Result<()> {
    pass(fault::DIR_SYNC).context("sync", dir)?;
    if durability == Durability::Full {
        File::open(dir)
            .and_then(|dir| dir.sync_all())
            .context("sync", dir)?;
    }
    Ok(())
}

/// Renames `from` to `to`, replacing it.
#[expect(clippy::disallowed_methods, reason = "the one place that renames")]
pub fn rename(from: &Path, to: &Path) -> Result<()> {
    std::fs::rename(from, to).context("replace", to)
}

/// Exchanges the entries at `one` and at `other`, of whatever kind. If the file system cannot do
/// that in one step, `other` is missing for a moment, and its content is at `one` with `.aside`
/// added.
pub fn exchange(one: &Path, other: &Path) -> Result<()> {
    match rustix::fs::renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE) {
        Ok(()) => Ok(()),
        Err(rustix::io::Errno::INVAL | rustix::io::Errno::NOSYS) => {
            let mut aside = one.as_os_str().to_owned();
            aside.push(".aside");
            let aside = PathBuf::from(aside);
            rename(other, &aside)?;
            rename(one, other)?;
            rename(&aside, one)
        }
        Err(errno) => Err(errno).context("exchange", other),
    }
}

/// Writes everything `from` has into the new file at `to`, readable by this user alone.
pub fn write_stream(to: &Path, from: &mut impl Read) -> Result<u64> {
    let mut file = open_private(to)?;
    io::copy(from, &mut file).context("write", to)
}

/// Renames `from` to `to` unless `to` exists; true if it did.
pub fn rename_new(from: &Path, to: &Path) -> Result<bool> {
    match rustix::fs::renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
        Ok(()) => Ok(true),
        Err(rustix::io::Errno::EXIST) => Ok(false),
        // Some network and user-space file systems lack the flag. A hard link never replaces
        // either, but it does not work on directories; there the caller sees the error.
        Err(rustix::io::Errno::INVAL | rustix::io::Errno::NOSYS) => {
            match std::fs::hard_link(from, to) {
                Ok(()) => {
                    std::fs::remove_file(from).context("remove", from)?;
                    Ok(true)
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
                Err(error) => Err(error).context("create", to),
            }
        }
        Err(errno) => Err(errno).context("create", to),
    }
}

/// Opens a file for reading and writing in place, creating it, readable by this user alone.
///
/// For locks, logs and tables of fixed-length lines; everything else is replaced whole.
pub fn open_private(path: &Path) -> Result<File> {
    let mut options = OpenOptions::new();
    options
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600);
    open_quietly(&mut options, path, OFlags::empty()).context("open", path)
}

/// Opens a file so that reading it does not update its access time.
pub(crate) fn open_quietly(
    options: &mut OpenOptions,
    path: &Path,
    flags: OFlags,
) -> io::Result<File> {
    // Updating the access time is a write, which may have to wait for the disk.
    let quiet = (flags | OFlags::NOATIME).bits().cast_signed();
    match options.custom_flags(quiet).open(path) {
        // Only the owner may open so.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            options.custom_flags(flags.bits().cast_signed()).open(path)
        }
        other => other,
    }
}

/// Reads a regular file, `None` if there is none.
///
/// Never follows a symlink in the last component and never blocks on a FIFO that another program
/// put where a file is expected.
pub fn read(path: &Path) -> Result<Option<Vec<u8>>> {
    Ok(read_stamped(path)?.map(|(bytes, _)| bytes))
}

/// The largest file that is read whole, in bytes. Other programs can write files that ccb reads,
/// and a sparse file of any length takes no room on the disk.
const LARGEST: u64 = 1 << 30;

/// [`read`]s a file together with its stamp.
pub fn read_stamped(path: &Path) -> Result<Option<(Vec<u8>, Stamp)>> {
    Ok(read_open(path)?.map(|(_, bytes, stamp)| (bytes, stamp)))
}

/// [`read`]s a file and leaves it open. While it is open, replacing it does not have to delete its
/// content.
pub fn open_and_read(path: &Path) -> Result<Option<(File, Vec<u8>)>> {
    Ok(read_open(path)?.map(|(file, bytes, _)| (file, bytes)))
}

fn read_open(path: &Path) -> Result<Option<(File, Vec<u8>, Stamp)>> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let file = open_quietly(OpenOptions::new().read(true), path, flags);
    let Some(mut file) = file.if_there("read", path)? else {
        return Ok(None);
    };
    let meta = file.metadata().context("read", path)?;
    if !meta.is_file() {
        let error = io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file");
        return Err(error).context("read", path);
    }
    if meta.len() > LARGEST {
        let error = io::Error::new(io::ErrorKind::FileTooLarge, "it is larger than 1 GiB");
        return Err(error).context("read", path);
    }
    // One byte more than the file's length, so that a short read proves the end.
    let mut bytes = vec![0; usize::try_from(meta.len()).unwrap_or(0) + 1];
    let mut filled = 0;
    loop {
        match file.read(&mut bytes[filled..]).context("read", path)? {
            0 => break,
            count => filled += count,
        }
        if filled < bytes.len() {
            break;
        }
        bytes.resize(bytes.len() * 2, 0);
    }
    bytes.truncate(filled);
    Ok(Some((file, bytes, Stamp::of(&meta))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::StoreError;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_file_that_is_said_to_be_endless_is_refused_at_once() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.json");
        let file = std::fs::File::create_new(&path).unwrap();
        file.set_len(1 << 42).unwrap();
        let StoreError::Io { source, .. } = read(&path).unwrap_err() else {
            panic!("not an I/O error");
        };
        assert_eq!(source.to_string(), "it is larger than 1 GiB");
        file.set_len(3).unwrap();
        assert_eq!(read(&path).unwrap().unwrap(), [0; 3]);
    }

    #[test]
    fn replace_leaves_one_private_file_and_no_temporary() {
        let dir = tempfile::tempdir().unwrap();
        let dest = dir.path().join("x.json");
        replace(dir.path(), &dest, b"one", Durability::Full).unwrap();
        replace(dir.path(), &dest, b"two", Durability::Full).unwrap();
        assert_eq!(read(&dest).unwrap().unwrap(), b"two");
        assert_eq!(
            std::fs::metadata(&dest).unwrap().permissions().mode() & 0o777,
            0o600
        );
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn create_never_replaces() {
        let dir = tempfile::tempdir().unwrap();
        let dest = dir.path().join("x.json");
        let stage = |bytes| Staged::write(dir.path(), bytes, Durability::Relaxed).unwrap();
        assert!(stage(b"one").create(&dest).unwrap());
        assert!(!stage(b"two").create(&dest).unwrap());
        assert_eq!(read(&dest).unwrap().unwrap(), b"one");
        assert_eq!(
            std::fs::read_dir(dir.path()).unwrap().count(),
            1,
            "the loser cleaned up"
        );
    }

    #[test]
    fn a_tree_is_set_aside_whole_and_links_are_not_followed() {
        let dir = tempfile::tempdir().unwrap();
        let (trash, tree) = (dir.path().join("trash"), dir.path().join("tree"));
        let elsewhere = dir.path().join("elsewhere");
        for made in [&trash, &tree, &tree.join("sub"), &elsewhere] {
            std::fs::create_dir(made).unwrap();
        }
        std::os::unix::fs::symlink(&elsewhere, tree.join("link")).unwrap();
        assert!(set_aside(&tree, &trash).unwrap());
        assert!(!set_aside(&tree, &trash).unwrap(), "it is gone");
        assert_eq!(std::fs::read_dir(&trash).unwrap().count(), 1);
        crate::tree::delete(&trash).unwrap();
        crate::tree::delete(&trash).unwrap();
        assert!(!trash.exists());
        assert!(elsewhere.exists());
    }

    #[test]
    fn an_unreadable_file_is_kept_under_a_name_of_its_own() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.json");
        for content in [b"one", b"two"] {
            replace(dir.path(), &path, content, Durability::Ordered).unwrap();
            let aside = set_unreadable_aside(&path).unwrap();
            assert_eq!(read(&aside).unwrap().unwrap(), content);
            assert!(!path.exists());
        }
        assert!(set_unreadable_aside(&path).is_err(), "there is none");
        sync_file_system(dir.path(), Durability::Full).unwrap();
        sync_file_system(&path, Durability::Relaxed).unwrap();
        assert!(sync_file_system(&path, Durability::Full).is_err());
    }

    #[test]
    fn read_refuses_links_directories_and_fifos() {
        let dir = tempfile::tempdir().unwrap();
        let link = dir.path().join("link");
        std::os::unix::fs::symlink("/etc/passwd", &link).unwrap();
        assert!(read(&link).is_err());
        assert!(read(dir.path()).is_err());
        let fifo = dir.path().join("fifo");
        rustix::fs::mkfifoat(CWD, &fifo, rustix::fs::Mode::RWXU).unwrap();
        assert!(read(&fifo).is_err(), "and does not hang");
        assert!(read(&dir.path().join("none")).unwrap().is_none());
    }
}
