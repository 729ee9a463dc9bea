//! Whole directories: copied, measured and deleted, without ever leaving them.
//!
//! A symlink is an entry of its own here, never a way to somewhere else, and another file system
//! mounted inside is not entered. Each directory is checked by its descriptor before its entries
//! are deleted, so no other process can swap it for a link in between.

use std::ffi::{CStr, OsStr};
use std::fs::{File, Metadata};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags};

use crate::atomic::open_private;
use crate::error::{IoContext, Result};

const OPEN_DIR: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

/// The way the bytes were copied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Copied {
    /// The copy shares its bytes with the original until one of them changes (reflink).
    Shared,
    /// The bytes were copied one by one.
    Whole,
}

/// Deletes `path` and everything below it. Missing entries are fine, also if another process
/// deletes them at the same time.
///
/// Stops with an error where another file system is mounted inside; the entries before it are
/// deleted.
pub fn delete(path: &Path) -> Result<()> {
    let Some(meta) = std::fs::symlink_metadata(path).if_there("delete", path)? else {
        return Ok(());
    };
    let deleted = match meta.is_dir() {
        false => std::fs::remove_file(path),
        true => delete_dir(path, meta.dev()),
    };
    unless_gone(deleted).context("delete", path)
}

fn delete_dir(path: &Path, device: u64) -> io::Result<()> {
    let dir = open_dir(CWD, path.as_os_str())?;
    delete_entries(&dir, device)?;
    std::fs::remove_dir(path)
}

/// Turns the error of a missing entry into success.
fn unless_gone(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        result => result,
    }
}

/// Opens a directory, first making it accessible if its owner has no rights to it.
fn open_dir(parent: impl AsFd, name: &OsStr) -> io::Result<OwnedFd> {
    match rustix::fs::openat(parent.as_fd(), name, OPEN_DIR, Mode::empty()) {
        Err(rustix::io::Errno::ACCESS) => {
            // NOFOLLOW is not supported for chmod everywhere; a link cannot be shut, so what
            // answered EACCES is a directory.
            rustix::fs::chmodat(parent.as_fd(), name, Mode::RWXU, AtFlags::empty())?;
            Ok(rustix::fs::openat(parent, name, OPEN_DIR, Mode::empty())?)
        }
        result => Ok(result?),
    }
}

fn delete_entries(dir: &OwnedFd, device: u64) -> io::Result<()> {
    // Through std, whose types are the same on every platform.
    if File::from(dir.try_clone()?).metadata()?.dev() != device {
        return Err(io::Error::other("another file system is mounted inside"));
    }
    let writable = Mode::from_raw_mode(rustix::fs::fstat(dir)?.st_mode);
    if !writable.contains(Mode::RWXU) {
        rustix::fs::fchmod(dir, writable | Mode::RWXU)?;
    }
    for entry in Dir::read_from(dir)? {
        let entry = entry?;
        let name = entry.file_name();
        if !matches!(name.to_bytes(), b"." | b"..") {
            unless_gone(delete_entry(dir, name, device))?;
        }
    }
    Ok(())
}

fn delete_entry(dir: &OwnedFd, name: &CStr, device: u64) -> io::Result<()> {
    let stat = rustix::fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW)?;
    if FileType::from_raw_mode(stat.st_mode) == FileType::Directory {
        let inner = open_dir(dir, OsStr::from_bytes(name.to_bytes()))?;
        delete_entries(&inner, device)?;
        rustix::fs::unlinkat(dir, name, AtFlags::REMOVEDIR)?;
    } else {
        rustix::fs::unlinkat(dir, name, AtFlags::empty())?;
    }
    Ok(())
}

/// The entries of the directory, sorted; none if there is no such directory.
pub fn list(dir: &Path) -> Result<Vec<PathBuf>> {
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(dir)
        .if_there("list", dir)?
        .into_iter()
        .flatten()
    {
        paths.push(entry.context("list", dir)?.path());
    }
    paths.sort();
    Ok(paths)
}

/// The names of the directory's entries, sorted; none if there is no such directory. Leaves out
/// names that are not UTF-8: ccb makes none.
pub fn names_in(dir: &Path) -> Result<Vec<String>> {
    let name = |path: PathBuf| Some(path.file_name()?.to_str()?.to_owned());
    Ok(list(dir)?.into_iter().filter_map(name).collect())
}

/// Calls `visit` with every entry below `root` and its metadata, directories first.
///
/// Does not follow links. `visit` says whether to go into a directory.
pub fn walk(
    root: &Path,
    visit: &mut dyn FnMut(&Path, &Metadata) -> io::Result<bool>,
) -> Result<()> {
    for entry in std::fs::read_dir(root).context("list", root)? {
        let path = entry.context("list", root)?.path();
        let Some(meta) = std::fs::symlink_metadata(&path).if_there("read", &path)? else {
            // Deleted since by another process, which may do so.
            continue;
        };
        if visit(&path, &meta).context("read", &path)? && meta.is_dir() {
            walk(&path, visit)?;
        }
    }
    Ok(())
}

/// Total size of the files below `root`, in bytes.
pub fn size(root: &Path) -> Result<u64> {
    let mut total = 0;
    walk(root, &mut |_, meta| {
        total += if meta.is_dir() { 0 } else { meta.len() };
        Ok(true)
    })?;
    Ok(total)
}

/// Copies the directory `from` to `to`, which must not exist. Links stay links; sockets, pipes
/// and devices are left out. [`Copied::Shared`] if every file could be.
pub fn copy_dir(from: &Path, to: &Path) -> Result<Copied> {
    std::fs::create_dir(to).context("create", to)?;
    let mut copied = Copied::Shared;
    for entry in std::fs::read_dir(from).context("list", from)? {
        let entry = entry.context("list", from)?;
        let target = to.join(entry.file_name());
        let kind = entry.file_type().context("read", &entry.path())?;
        let how = if kind.is_dir() {
            copy_dir(&entry.path(), &target)?
        } else {
            copy_file(&entry.path(), &target)?
        };
        if how == Copied::Whole {
            copied = Copied::Whole;
        }
    }
    let mode = std::fs::metadata(from).context("read", from)?.permissions();
    std::fs::set_permissions(to, mode).context("copy", to)?;
    Ok(copied)
}

/// Copies a file or link to `to`, which must not exist, sharing the bytes where the file system
/// can.
pub fn copy_file(from: &Path, to: &Path) -> Result<Copied> {
    let meta = std::fs::symlink_metadata(from).context("read", from)?;
    if meta.is_symlink() {
        let target = std::fs::read_link(from).context("read", from)?;
        std::os::unix::fs::symlink(target, to).context("create", to)?;
        return Ok(Copied::Shared);
    }
    if !meta.is_file() {
        tracing::warn!(path = %from.display(), "not copied: neither a file nor a link");
        return Ok(Copied::Shared);
    }
    if std::fs::symlink_metadata(to).is_ok() {
        return Err(io::Error::from(io::ErrorKind::AlreadyExists)).context("create", to);
    }
    let source = File::open(from).context("read", from)?;
    let dest = open_private(to)?;
    let how = match rustix::fs::ioctl_ficlone(&dest, &source) {
        Ok(()) => Copied::Shared,
        // Another file system, or one that cannot: the usual case.
        Err(_) => {
            io::copy(&mut &source, &mut &dest).context("copy", to)?;
            Copied::Whole
        }
    };
    dest.set_permissions(meta.permissions())
        .context("copy", to)?;
    let times = std::fs::FileTimes::new().set_modified(meta.modified().context("read", from)?);
    // Build tools compare times; a copy as old as its original is not rebuilt.
    dest.set_times(times).context("copy", to)?;
    Ok(how)
}

/// The id of the file system `path` is on; not that of a link's target.
pub fn device(path: &Path) -> Result<u64> {
    Ok(std::fs::symlink_metadata(path).context("read", path)?.dev())
}

/// Sets when `path` was last changed to now, creating an empty file if there is none.
pub fn touch(path: &Path) -> Result<()> {
    use rustix::fs::{Timespec, Timestamps, UTIME_NOW};
    let file = open_private(path)?;
    let now = Timespec {
        tv_sec: 0,
        tv_nsec: UTIME_NOW,
    };
    let times = Timestamps {
        last_access: now,
        last_modification: now,
    };
    rustix::fs::futimens(&file, &times).context("touch", path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::atomic::{Durability, replace};
    use std::os::unix::fs::{PermissionsExt, symlink};

    fn write(path: &Path, text: &str) {
        let dir = path.parent().unwrap();
        replace(dir, path, text.as_bytes(), Durability::Relaxed).unwrap();
    }

    #[test]
    fn several_delete_one_tree_at_the_same_time() {
        let home = tempfile::tempdir().unwrap();
        for round in 0..20 {
            let root = home.path().join(round.to_string());
            for n in 0..40 {
                let dir = root.join(format!("{n}/deep"));
                std::fs::create_dir_all(dir.join("inner")).unwrap();
            }
            std::thread::scope(|scope| {
                let each = [(); 4].map(|()| scope.spawn(|| delete(&root)));
                for thread in each {
                    thread.join().unwrap().unwrap();
                }
            });
            assert!(!root.exists());
        }
    }

    #[test]
    fn deleting_follows_no_link_and_opens_shut_directories() {
        let dir = tempfile::tempdir().unwrap();
        let outside = dir.path().join("outside");
        std::fs::create_dir(&outside).unwrap();
        write(&outside.join("precious"), "x");
        let root = dir.path().join("root");
        std::fs::create_dir_all(root.join("a/shut")).unwrap();
        write(&root.join("a/shut/file"), "x");
        symlink(&outside, root.join("a/link")).unwrap();
        std::fs::set_permissions(root.join("a/shut"), std::fs::Permissions::from_mode(0o000))
            .unwrap();
        delete(&root).unwrap();
        assert!(!root.exists());
        assert!(outside.join("precious").exists());
        delete(&root).unwrap();
        let link = dir.path().join("link");
        symlink(&outside, &link).unwrap();
        delete(&link).unwrap();
        assert!(outside.join("precious").exists());
    }

    #[test]
    fn a_copy_is_the_same_and_replaces_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let from = dir.path().join("from");
        std::fs::create_dir_all(from.join("bin")).unwrap();
        write(&from.join("bin/tool"), "#!");
        std::fs::set_permissions(
            from.join("bin/tool"),
            std::fs::Permissions::from_mode(0o755),
        )
        .unwrap();
        symlink("bin/tool", from.join("link")).unwrap();
        let to = dir.path().join("to");
        copy_dir(&from, &to).unwrap();
        assert_eq!(std::fs::read(to.join("bin/tool")).unwrap(), b"#!");
        let meta = |root: &Path| std::fs::metadata(root.join("bin/tool")).unwrap();
        assert_eq!(meta(&to).permissions().mode() & 0o777, 0o755);
        assert_eq!(
            meta(&to).modified().unwrap(),
            meta(&from).modified().unwrap()
        );
        assert_eq!(
            std::fs::read_link(to.join("link")).unwrap(),
            Path::new("bin/tool")
        );
        assert_eq!(size(&to).unwrap(), 2 + 8);
        assert!(copy_dir(&from, &to).is_err());
        assert!(copy_file(&from.join("bin/tool"), &to.join("link")).is_err());
    }
}
