use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// What can go wrong with a file, a lock, a name or a setting.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// A system call failed.
    #[error("cannot {verb} {}", path.display())]
    Io {
        /// What was being done, as a verb ("read", "replace").
        verb: &'static str,
        /// To what.
        path: PathBuf,
        /// Why it failed.
        source: io::Error,
    },
    /// A lock was held by someone else for too long.
    #[error("{what} is locked: waited {:.1} s for {}, held by {holder}", waited.as_secs_f32(), path.display())]
    LockTimeout {
        /// What the lock protects, in words.
        what: String,
        /// The lock file or directory.
        path: PathBuf,
        /// Who holds it, as far as the system tells.
        holder: String,
        /// How long we waited.
        waited: Duration,
    },
    /// A name that cannot be used.
    #[error("{given:?} is not a valid {what} name: {why}")]
    BadName {
        /// What the name is for ("list", "team", "agent").
        what: &'static str,
        /// The name as given.
        given: String,
        /// The rule it breaks.
        why: &'static str,
    },
    /// A name that differs from an existing one only in case.
    #[error("{what} {given:?} would clash with {existing:?}: names must differ in more than case")]
    NameClash {
        /// What the name is for.
        what: &'static str,
        /// The name as given.
        given: String,
        /// The one that exists.
        existing: String,
    },
    /// A settings file that cannot be used.
    #[error("bad settings in {}: {why}", path.display())]
    Settings {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
    /// A file written by a newer version of ccb.
    #[error("{} has format version {found}, this ccb knows {known}", path.display())]
    NewerVersion {
        /// The file.
        path: PathBuf,
        /// The version it carries.
        found: u64,
        /// The newest version we write.
        known: u64,
    },
}

/// A result whose error says which file was involved.
pub type Result<T, E = StoreError> = std::result::Result<T, E>;

impl StoreError {
    /// A sentence that tells the user what to do, where there is something to do.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Io { source, path, .. } => match source.kind() {
                io::ErrorKind::StorageFull => {
                    Some("the disk is full; free some space and run the command again".into())
                }
                io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                    Some(format!("check that you may write to {}", path.display()))
                }
                _ => None,
            },
            Self::LockTimeout { .. } => {
                Some("if that process hangs, end it; the lock is released by itself".into())
            }
            Self::BadName { .. } => {
                Some("use a letter or digit, then up to 63 letters, digits, '.', '_' or '-'".into())
            }
            Self::NameClash { existing, .. } => Some(format!("did you mean {existing:?}?")),
            Self::Settings { .. } => None,
            Self::NewerVersion { .. } => Some("upgrade ccb to change this file".into()),
        }
    }
}

/// Adds what was being done, and to which path, to an I/O error.
pub(crate) trait IoContext<T> {
    fn context(self, verb: &'static str, path: &Path) -> Result<T>;
}

impl<T, E: Into<io::Error>> IoContext<T> for Result<T, E> {
    fn context(self, verb: &'static str, path: &Path) -> Result<T> {
        self.map_err(|source| StoreError::Io {
            verb,
            path: path.to_owned(),
            source: source.into(),
        })
    }
}
