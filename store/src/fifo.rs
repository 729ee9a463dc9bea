//! Wakes a process that waits, without blocking.
//!
//! The waiting side holds a [`Bell`]; the other side [rings](Ringer::ring) it after it has written
//! something. A ring without a listener is not an error: the waiting side also looks by itself now
//! and then.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::sys::stat::Mode;
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::fs::OFlags;

use crate::atomic::open_quietly;
use crate::error::{IoContext, Result};

/// Creates the FIFO at `path`, private to this user, unless it is there.
pub fn create(path: &Path) -> Result<()> {
    match nix::unistd::mkfifo(path, Mode::S_IRUSR | Mode::S_IWUSR) {
        Ok(()) | Err(nix::errno::Errno::EEXIST) => Ok(()),
        Err(errno) => Err(io::Error::from(errno)).context("create", path),
    }
}

/// Opens `path` without blocking; an error if it is not a FIFO.
fn open(path: &Path) -> io::Result<File> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let file = open_quietly(OpenOptions::new().read(true).write(true), path, flags)?;
    if !file.metadata()?.file_type().is_fifo() {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "it is not a FIFO",
        ));
    }
    Ok(file)
}

/// The side that rings.
#[derive(Debug)]
pub struct Ringer {
    path: PathBuf,
    file: Option<File>,
}

impl Ringer {
    /// Rings the FIFO at `path`.
    pub fn new(path: PathBuf) -> Self {
        Self { path, file: None }
    }

    /// Wakes the waiting side, or ends its next wait. Never blocks and never fails.
    pub fn ring(&mut self) {
        // If the FIFO was deleted, there is another one in its place, or no listener.
        let linked = |file: &File| file.metadata().is_ok_and(|meta| meta.nlink() > 0);
        if !self.file.as_ref().is_some_and(linked) {
            // Also for reading: opening for writing alone fails as long as there is no listener,
            // and would have to be tried again for every ring.
            self.file = open(&self.path).ok();
        }
        if let Some(file) = &mut self.file
            && let Err(error) = file.write(b"!")
        {
            // Full: it has been rung often enough.
            tracing::trace!(%error, "not rung");
        }
    }
}

/// The side that rings a [`Bell`] of the same process.
#[derive(Debug)]
pub struct PipeRinger(File);

impl PipeRinger {
    /// Wakes the waiting side, or ends its next wait. Never blocks and never fails.
    pub fn ring(&mut self) {
        if let Err(error) = self.0.write(b"!") {
            // Full: it has been rung often enough.
            tracing::trace!(%error, "not rung");
        }
    }
}

/// A bell without a name, for threads of one process.
pub fn pipe() -> Result<(Bell, PipeRinger)> {
    let made = || {
        let (reader, writer) = io::pipe()?;
        rustix::io::ioctl_fionbio(&reader, true)?;
        rustix::io::ioctl_fionbio(&writer, true)?;
        let other = writer.try_clone()?;
        let file = |fd: OwnedFd| File::from(fd);
        let bell = Bell {
            file: file(reader.into()),
            _other_end: Some(file(other.into())),
        };
        Ok::<_, io::Error>((bell, PipeRinger(file(writer.into()))))
    };
    made().context("make", Path::new("a pipe"))
}

/// The side that waits.
#[derive(Debug)]
pub struct Bell {
    file: File,
    /// The writing end of a pipe: without it, the pipe would end when the ringer is dropped, and
    /// ring for ever.
    _other_end: Option<File>,
}

impl Bell {
    /// Listens on the FIFO at `path`, which must exist.
    pub fn new(path: &Path) -> Result<Self> {
        // Open for writing too, so that it does not end when the last ringer goes.
        let file = open(path).context("open", path)?;
        Ok(Self {
            file,
            _other_end: None,
        })
    }

    /// Waits for a ring, at most `limit`; true if there was one.
    ///
    /// Rings from before the call count. Look for news *after* this returns: a ring after the
    /// return is not lost, it ends the next wait.
    pub fn wait(&self, limit: Duration) -> bool {
        let timeout = Timespec::try_from(limit).ok();
        let mut fds = [PollFd::new(&self.file, PollFlags::IN)];
        let rung = matches!(rustix::event::poll(&mut fds, timeout.as_ref()), Ok(1..));
        if rung {
            self.hush();
        }
        rung
    }

    /// Consumes all rings so far, for callers that wait by other means until the file is readable.
    /// Look for news after this.
    pub fn hush(&self) {
        let mut rings = [0; 1024];
        while matches!((&self.file).read(&mut rings), Ok(count) if count == rings.len()) {}
    }
}

impl AsFd for Bell {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ring_is_heard_once_and_a_dead_listener_is_no_error() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("wake");
        create(&path).unwrap();
        create(&path).unwrap();
        let mut ringer = Ringer::new(path.clone());
        let bell = Bell::new(&path).unwrap();
        assert!(!bell.wait(Duration::ZERO));
        for _ in 0..100_000 {
            // A full FIFO does not block.
            ringer.ring();
        }
        assert!(bell.wait(Duration::from_secs(60)));
        assert!(!bell.wait(Duration::ZERO), "all rings were heard at once");
        drop(bell);
        // There is no listener, which is no error.
        ringer.ring();
        std::fs::remove_file(&path).unwrap();
        ringer.ring();
        create(&path).unwrap();
        let bell = Bell::new(&path).unwrap();
        ringer.ring();
        assert!(bell.wait(Duration::from_secs(60)), "not the deleted one");
    }

    #[test]
    fn a_pipe_rings_and_is_silent_when_its_ringer_is_gone() {
        let (bell, mut ringer) = pipe().unwrap();
        assert!(!bell.wait(Duration::ZERO));
        for _ in 0..100_000 {
            ringer.ring();
        }
        assert!(bell.wait(Duration::from_secs(60)));
        drop(ringer);
        assert!(!bell.wait(Duration::from_millis(20)));
    }

    #[test]
    fn a_file_in_its_place_is_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("wake");
        std::fs::File::create_new(&path).unwrap();
        Ringer::new(path.clone()).ring();
        assert!(Bell::new(&path).is_err());
        assert_eq!(std::fs::metadata(&path).unwrap().len(), 0);
    }
}
