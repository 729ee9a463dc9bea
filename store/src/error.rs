use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::failure::{Category, Explain, Facts};

/// Errors of a file, a lock, a name or a setting.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum StoreError {
    /// A system call failed.
    #[error("cannot {verb} {}", path.display())]
    Io {
        /// The action, as a verb ("read", "replace").
        verb: &'static str,
        path: PathBuf,
        source: io::Error,
    },
    /// Another process held a lock for too long.
    #[error("{what} is locked: waited {:.1} s for {}, held by {holder}", waited.as_secs_f32(), path.display())]
    LockTimeout {
        what: String,
        path: PathBuf,
        holder: String,
        waited: Duration,
    },
    /// A name that cannot be used.
    #[error("{given:?} is not a valid {what} name: {why}")]
    BadName {
        /// The kind of name ("list", "team", "agent").
        what: &'static str,
        given: String,
        why: &'static str,
    },
    /// A name that differs from an existing one only in case.
    #[error("{what} {given:?} would clash with {existing:?}: names must differ in more than case")]
    NameClash {
        what: &'static str,
        given: String,
        existing: String,
    },
    /// A settings file that cannot be used.
    #[error("bad settings in {}: {why}", path.display())]
    Settings { path: PathBuf, why: String },
    /// A file written by a newer version of ccb.
    #[error("{} has format version {found}, this ccb knows {known}", path.display())]
    NewerVersion {
        path: PathBuf,
        found: u64,
        known: u64,
    },
}

/// A result whose error says which file was involved.
pub type Result<T, E = StoreError> = std::result::Result<T, E>;

impl Explain for StoreError {
    fn facts(&self) -> Facts {
        use Category::{Failed, Invalid, TimedOut};
        match self {
            Self::Io { source, path, .. } => {
                let facts = Facts::new(Failed, "io");
                match source.kind() {
                    io::ErrorKind::StorageFull => {
                        facts.hint("the disk is full; free some space and run the command again")
                    }
                    io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                        facts.hint(format!("check that you may write to {}", path.display()))
                    }
                    _ => facts,
                }
            }
            Self::LockTimeout { .. } => Facts::new(TimedOut, "lock_timeout")
                .hint("if that process hangs, end it; the lock is released by itself"),
            Self::BadName { .. } => Facts::new(Invalid, "bad_name")
                .hint("use a letter or digit, then up to 63 letters, digits, '.', '_' or '-'"),
            Self::NameClash { existing, .. } => {
                Facts::new(Invalid, "bad_name").hint(format!("did you mean {existing:?}?"))
            }
            Self::Settings { .. } => Facts::new(Invalid, "bad_settings"),
            Self::NewerVersion { .. } => {
                Facts::new(Invalid, "newer_version").hint("upgrade ccb to change this file")
            }
        }
    }
}

impl StoreError {
    /// Refuses to write a file of a newer format than the one we `know`.
    pub fn check_version(path: &Path, found: u64, known: u64) -> Result<()> {
        if found > known {
            let path = path.to_owned();
            return Err(Self::NewerVersion { path, found, known });
        }
        Ok(())
    }
}

/// Adds the action and the path to an I/O error.
pub trait IoContext<T> {
    /// `verb` is the action ("read", "replace").
    fn context(self, verb: &'static str, path: &Path) -> Result<T>;

    /// The same, with `None` if nothing is at `path`.
    fn if_there(self, verb: &'static str, path: &Path) -> Result<Option<T>>;
}

impl<T, E: Into<io::Error>> IoContext<T> for Result<T, E> {
    fn context(self, verb: &'static str, path: &Path) -> Result<T> {
        self.map_err(|source| StoreError::Io {
            verb,
            path: path.to_owned(),
            source: source.into(),
        })
    }

    fn if_there(self, verb: &'static str, path: &Path) -> Result<Option<T>> {
        match self.map_err(Into::into) {
            Ok(found) => Ok(Some(found)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error).context(verb, path),
        }
    }
}
