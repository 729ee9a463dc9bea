//! Files below a directory, and nothing outside it, whatever links, `..` or others' renames say.
//!
//! Every path is resolved by the kernel from the directory's descriptor (`openat2` with
//! `RESOLVE_BENEATH`). Where the kernel does not have that call, each part of the path is opened on
//! its own, and links are refused. Writing is a rename beside the old file, so that neither a
//! reader nor another name of the same file (a hard link) sees half of it.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

use crate::atomic::unique_name;

/// Maximum of resolutions of a path while parts of it are being renamed.
const TRIES: usize = 64;
/// Maximum of links that the last part of a written path may lead over.
const MAX_LINKS: usize = 16;

/// A directory that no path leads out of.
#[derive(Debug)]
pub struct Root {
    dir: OwnedFd,
    path: PathBuf,
}

impl Root {
    /// Opens `path`, which must be a directory; links on the way to it are followed.
    pub fn open(path: &Path) -> io::Result<Self> {
        let path = std::fs::canonicalize(path)?;
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let dir = rustix::fs::open(&path, flags, Mode::empty())?;
        Ok(Self { dir, path })
    }

    /// Its path without links, as it was when it was opened.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Opens a file or directory for reading. Does not wait for the other end of a FIFO.
    pub fn read(&self, below: &Path) -> io::Result<File> {
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY;
        Ok(File::from(self.resolve(below, flags)?))
    }

    /// Finds something without opening it; its metadata are those of the end of any links.
    pub fn find(&self, below: &Path) -> io::Result<File> {
        Ok(File::from(self.resolve(below, OFlags::PATH)?))
    }

    /// The place of an open file below this directory now, without links; `None` if it has left it.
    pub fn place_of(&self, file: &impl AsRawFd) -> Option<PathBuf> {
        let link = format!("/proc/self/fd/{}", file.as_raw_fd());
        let real = std::fs::read_link(link).ok()?;
        real.strip_prefix(&self.path).ok().map(Path::to_owned)
    }

    /// The target of a write to `below`: the directory it is in, and its name there. Missing
    /// directories are made if `make_dirs`. A link at the end is followed as far as it stays
    /// inside.
    pub fn target(&self, below: &Path, make_dirs: bool) -> io::Result<Target> {
        let mut below = below.to_owned();
        for _ in 0..MAX_LINKS {
            let Some(name) = below.file_name().map(OsStr::to_owned) else {
                return Err(io::Error::from(Errno::ISDIR));
            };
            let above = below.parent().unwrap_or(Path::new("")).to_owned();
            let dir = self.dir_for(&above, make_dirs)?;
            match rustix::fs::readlinkat(&dir, &name, Vec::new()) {
                Ok(link) => below = above.join(OsStr::from_bytes(link.to_bytes())),
                Err(Errno::INVAL | Errno::NOENT) => {
                    let above = self.place_of(&dir).ok_or_else(outside)?;
                    return Ok(Target { dir, above, name });
                }
                Err(error) => return Err(error.into()),
            }
        }
        Err(Errno::LOOP.into())
    }

    /// The directory at `below`, made if it is not there.
    fn dir_for(&self, below: &Path, make: bool) -> io::Result<OwnedFd> {
        let flags = OFlags::PATH | OFlags::DIRECTORY;
        match self.resolve(below, flags) {
            Err(error) if make && error.kind() == io::ErrorKind::NotFound => {}
            result => return result,
        }
        let (Some(above), Some(name)) = (below.parent(), below.file_name()) else {
            return Err(io::Error::from(Errno::NOENT));
        };
        let dir = self.dir_for(above, make)?;
        match rustix::fs::mkdirat(&dir, name, Mode::from_raw_mode(0o777)) {
            Ok(()) | Err(Errno::EXIST) => self.resolve(below, flags),
            Err(error) => Err(error.into()),
        }
    }

    fn resolve(&self, below: &Path, flags: OFlags) -> io::Result<OwnedFd> {
        let below = match below.as_os_str().is_empty() {
            true => Path::new("."),
            false => below,
        };
        let flags = flags | OFlags::CLOEXEC;
        let how = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
        for _ in 0..TRIES {
            match rustix::fs::openat2(&self.dir, below, flags, Mode::empty(), how) {
                Ok(file) => return Ok(file),
                // Something was renamed while the kernel followed a `..`.
                Err(Errno::AGAIN | Errno::INTR) => {}
                // An old kernel, or a container that does not know the call.
                Err(Errno::NOSYS | Errno::PERM) => return self.step_by_step(below, flags),
                Err(Errno::XDEV) => return Err(outside()),
                Err(error) => return Err(error.into()),
            }
        }
        Err(io::Error::from(Errno::AGAIN))
    }

    /// Without the kernel's help: no links, and `..` only as far as the path itself went down.
    fn step_by_step(&self, below: &Path, flags: OFlags) -> io::Result<OwnedFd> {
        let mut names: Vec<&OsStr> = Vec::new();
        for part in below.components() {
            match part {
                Component::Normal(name) => names.push(name),
                Component::CurDir => {}
                Component::ParentDir if names.pop().is_some() => {}
                _ => return Err(outside()),
            }
        }
        let step = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let open = |dir: &OwnedFd, name: &OsStr, flags: OFlags| {
            rustix::fs::openat(dir, name, flags | OFlags::NOFOLLOW, Mode::empty())
        };
        let mut dir = open(&self.dir, OsStr::new("."), step)?;
        let Some(last) = names.pop() else {
            return Ok(open(&dir, OsStr::new("."), flags)?);
        };
        for name in names {
            dir = open(&dir, name, step)?;
        }
        let file = open(&dir, last, flags)?;
        // With `PATH` a link itself is opened.
        match FileType::from_raw_mode(rustix::fs::fstat(&file)?.st_mode) {
            FileType::Symlink => Err(io::Error::from(Errno::LOOP)),
            _ => Ok(file),
        }
    }
}

/// The target of a write.
#[derive(Debug)]
pub struct Target {
    dir: OwnedFd,
    above: PathBuf,
    name: OsString,
}

impl Target {
    /// Its place below the root, without links.
    pub fn place(&self) -> PathBuf {
        self.above.join(&self.name)
    }

    /// The current file there, opened for reading; `None` if there is none.
    pub fn current(&self) -> io::Result<Option<File>> {
        let flags =
            OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        match rustix::fs::openat(&self.dir, &self.name, flags, Mode::empty()) {
            Ok(file) => Ok(Some(File::from(file))),
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Puts a new file with these bytes there, replacing the current one. The new file takes over
    /// the mode; other names of the old file keep the old content.
    pub fn replace(&self, bytes: &[u8]) -> io::Result<File> {
        let old = rustix::fs::statat(&self.dir, &self.name, AtFlags::SYMLINK_NOFOLLOW);
        let mode = match old {
            Ok(stat) if FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile => {
                Some(Mode::from_raw_mode(stat.st_mode & 0o777))
            }
            Ok(_) => return Err(io::Error::other("it is not a regular file")),
            Err(Errno::NOENT) => None,
            Err(error) => return Err(error.into()),
        };
        let temporary = format!(".ccb-{}", unique_name());
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let usual = Mode::from_raw_mode(0o666);
        let file = rustix::fs::openat(&self.dir, &temporary, flags, usual)?;
        let written = self.fill(&file, bytes, mode).and_then(|()| {
            rustix::fs::renameat(&self.dir, &temporary, &self.dir, &self.name)?;
            Ok(())
        });
        if let Err(error) = written {
            rustix::fs::unlinkat(&self.dir, &temporary, AtFlags::empty()).ok();
            return Err(error);
        }
        Ok(File::from(file))
    }

    fn fill(&self, file: &OwnedFd, bytes: &[u8], mode: Option<Mode>) -> io::Result<()> {
        if let Some(mode) = mode {
            rustix::fs::fchmod(file.as_fd(), mode)?;
        }
        let mut file = File::from(file.try_clone()?);
        file.write_all(bytes)
    }
}

fn outside() -> io::Error {
    io::Error::new(
        io::ErrorKind::PermissionDenied,
        "the path leads outside the directory",
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
    use std::sync::atomic::{AtomicBool, Ordering};

    struct Bench {
        dir: tempfile::TempDir,
        root: Root,
    }

    /// `root/` with a file in it, and `outside/secret` beside it.
    fn bench() -> Bench {
        let dir = tempfile::tempdir().unwrap();
        for sub in ["root/sub", "outside"] {
            std::fs::create_dir_all(dir.path().join(sub)).unwrap();
        }
        put(&dir.path().join("root/file"), "inside");
        put(&dir.path().join("outside/secret"), "secret");
        let root = Root::open(&dir.path().join("root")).unwrap();
        Bench { dir, root }
    }

    fn put(path: &Path, text: &str) {
        let dir = path.parent().unwrap();
        crate::atomic::replace(
            dir,
            path,
            text.as_bytes(),
            crate::atomic::Durability::Relaxed,
        )
        .unwrap();
    }

    fn text(file: io::Result<File>) -> io::Result<String> {
        let mut text = String::new();
        file?.read_to_string(&mut text)?;
        Ok(text)
    }

    #[test]
    fn nothing_outside_is_opened_or_written() {
        let Bench { dir, root } = bench();
        let outside = dir.path().join("outside");
        let inside = dir.path().join("root");
        symlink(&outside, inside.join("link")).unwrap();
        symlink("../outside/secret", inside.join("relative")).unwrap();
        symlink(outside.join("new"), inside.join("dangling")).unwrap();
        symlink("/proc/self/root", inside.join("magic")).unwrap();
        let absolute = outside.join("secret");
        let through_root = PathBuf::from("magic").join(absolute.strip_prefix("/").unwrap());
        for path in [
            Path::new("link/secret"),
            Path::new("relative"),
            Path::new("dangling"),
            Path::new("../outside/secret"),
            Path::new("sub/../../outside/secret"),
            &absolute,
            &through_root,
        ] {
            assert!(root.read(path).is_err(), "{path:?}");
            assert!(root.find(path).is_err(), "{path:?}");
            assert!(root.step_by_step(path, OFlags::RDONLY).is_err(), "{path:?}");
            let target = root.target(path, true);
            let written = target.and_then(|target| target.replace(b"gone"));
            assert!(written.is_err(), "{path:?}");
        }
        assert_eq!(std::fs::read(&absolute).unwrap(), b"secret");
        assert!(!outside.join("new").exists());
        let secret = text(
            root.step_by_step(Path::new("sub/../file"), OFlags::RDONLY)
                .map(File::from),
        );
        assert_eq!(secret.unwrap(), "inside");
    }

    #[test]
    fn links_that_stay_inside_are_followed() {
        let Bench { dir, root } = bench();
        symlink("../file", dir.path().join("root/sub/up")).unwrap();
        assert_eq!(text(root.read(Path::new("sub/up"))).unwrap(), "inside");
        let target = root.target(Path::new("sub/up"), false).unwrap();
        assert_eq!(target.place(), Path::new("file"));
        target.replace(b"new").unwrap();
        assert_eq!(text(root.read(Path::new("file"))).unwrap(), "new");
        let link = std::fs::symlink_metadata(dir.path().join("root/sub/up")).unwrap();
        assert!(link.is_symlink());
    }

    #[test]
    fn a_replaced_file_keeps_its_mode_and_its_other_names_keep_the_old_text() {
        let Bench { dir, root } = bench();
        let inside = dir.path().join("root/hard");
        std::fs::hard_link(dir.path().join("outside/secret"), &inside).unwrap();
        std::fs::set_permissions(&inside, std::fs::Permissions::from_mode(0o751)).unwrap();
        let target = root.target(Path::new("hard"), false).unwrap();
        target.replace(b"mine").unwrap();
        assert_eq!(std::fs::read(&inside).unwrap(), b"mine");
        assert_eq!(std::fs::metadata(&inside).unwrap().mode() & 0o777, 0o751);
        let secret = std::fs::read(dir.path().join("outside/secret")).unwrap();
        assert_eq!(secret, b"secret");
        let names = crate::tree::names_in(&dir.path().join("root")).unwrap();
        assert_eq!(names, ["file", "hard", "sub"], "nothing is left over");
    }

    #[test]
    fn directories_are_made_and_other_things_are_not_replaced() {
        let Bench { dir, root } = bench();
        assert!(root.target(Path::new("a/b/c"), false).is_err());
        let target = root.target(Path::new("a/b/c"), true).unwrap();
        assert!(target.current().unwrap().is_none());
        target.replace(b"x").unwrap();
        assert_eq!(text(root.read(Path::new("a/b/c"))).unwrap(), "x");
        let target = root.target(Path::new("sub"), true).unwrap();
        assert!(target.replace(b"x").is_err());
        assert!(dir.path().join("root/sub").is_dir());
        assert!(root.target(Path::new(".."), true).is_err());
        assert!(root.target(Path::new(""), true).is_err());
    }

    /// A thread keeps swapping a directory for a link to the outside.
    #[test]
    fn a_race_of_renames_never_leads_outside() {
        let Bench { dir, root } = bench();
        let inside = dir.path().join("root");
        std::fs::create_dir(inside.join("real")).unwrap();
        put(&inside.join("real/secret"), "inside");
        symlink(dir.path().join("outside"), inside.join("other")).unwrap();
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let (dir, real, other) = (&root.dir, "real", "other");
                let swap = rustix::fs::RenameFlags::EXCHANGE;
                while !done.load(Ordering::Relaxed) {
                    rustix::fs::renameat_with(dir, real, dir, other, swap).unwrap();
                }
            });
            for _ in 0..2000 {
                if let Ok(text) = text(root.read(Path::new("real/secret"))) {
                    assert_eq!(text, "inside");
                }
                if let Ok(target) = root.target(Path::new("real/secret"), true) {
                    target.replace(b"inside").ok();
                }
            }
            done.store(true, Ordering::Relaxed);
        });
        let secret = std::fs::read(dir.path().join("outside/secret")).unwrap();
        assert_eq!(secret, b"secret");
    }
}
