//! A run on its way from its starter to its guard, and from there to its host.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use crate::process::{receive, send};
use crate::starter::{self, Environment};

/// A run that is to be supervised, with what only one process can give to another.
#[derive(Debug)]
pub struct HandedRun {
    /// The run's directory.
    pub dir: PathBuf,
    /// Its `alive.lock`: the run is alive as long as a process holds it.
    pub alive: OwnedFd,
    /// The starter's environment as [`starter::hand_over`] encoded it.
    pub environment: OwnedFd,
}

impl HandedRun {
    /// Gives the run to the process at the other end. The sender keeps its own copies.
    pub fn send(&self, to: impl AsFd) -> io::Result<()> {
        let descriptors = [self.alive.as_fd(), self.environment.as_fd()];
        send(to, self.dir.as_os_str().as_bytes(), &descriptors)
    }

    /// Waits for the next run; `None` if no sender is left.
    pub fn receive(from: impl AsFd) -> io::Result<Option<Self>> {
        let Some(received) = receive(from)? else {
            return Ok(None);
        };
        let Ok([alive, environment]) = <[OwnedFd; 2]>::try_from(received.descriptors) else {
            return Err(io::Error::other("a run without its lock"));
        };
        Ok(Some(Self {
            dir: PathBuf::from(std::ffi::OsStr::from_bytes(&received.bytes)),
            alive,
            environment,
        }))
    }

    /// The environment of the run's starter.
    pub fn environment(&self) -> Option<Environment> {
        let file = self.environment.try_clone().map(File::from);
        file.ok().and_then(starter::received)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::pair;

    #[test]
    fn a_run_arrives_with_its_lock_and_its_environment() {
        let dir = tempfile::tempdir().unwrap();
        let lock = dir.path().join("alive.lock");
        let held = store::lock::FileLock::try_exclusive(&lock)
            .unwrap()
            .unwrap();
        let environment = vec![("A".into(), "x y".into())];
        let handed = HandedRun {
            dir: dir.path().to_owned(),
            alive: held.hand_over().unwrap().into(),
            environment: starter::hand_over(&environment).unwrap().into(),
        };
        let (ours, theirs) = pair().unwrap();
        handed.send(&ours).unwrap();
        drop((handed, ours));
        let handed = HandedRun::receive(&theirs).unwrap().unwrap();
        assert_eq!(handed.dir, dir.path());
        assert_eq!(handed.environment(), Some(environment));
        assert!(store::lock::is_held(&lock).unwrap());
        drop(handed);
        assert!(!store::lock::is_held(&lock).unwrap());
        assert!(HandedRun::receive(&theirs).unwrap().is_none());
    }
}
