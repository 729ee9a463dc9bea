//! Settings files, from the user's down to the repository's local one.
//!
//! `<home>/ccb.json`, then `<repo>/.claude/ccb.json`, then `<repo>/.claude/ccb.local.json`;
//! a later file wins key by key. An unknown key is an error that names the nearest known one,
//! because a misspelt setting that is silently ignored is worse than no setting.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Map, Value};

use crate::atomic;
use crate::error::{Result, StoreError};

/// How the task board locks its lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LockMode {
    /// The file lock, and the lock directories other tools use on the same list.
    #[default]
    Shared,
    /// The file lock alone: faster, but no other tool may write to the list.
    Flock,
}

/// All settings, resolved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// `taskboard.lock`: `"shared"` or `"flock"`.
    pub lock_mode: LockMode,
    /// `taskboard.durable`: whether changes are synced to disk before they are acknowledged.
    pub durable: bool,
    /// `taskboard.lockTimeoutMs`: how long to wait for the list's lock.
    pub lock_timeout: Duration,
    /// `mailbox.durable`: whether a message is synced to disk before its sending is
    /// acknowledged.
    pub mail_durable: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            lock_mode: LockMode::default(),
            durable: true,
            lock_timeout: crate::lock::DEFAULT_TIMEOUT,
            mail_durable: true,
        }
    }
}

const SECTIONS: &[&str] = &["mailbox", "taskboard", "v"];
const MAILBOX: &[&str] = &["durable"];
const TASKBOARD: &[&str] = &["durable", "lock", "lockTimeoutMs"];

impl Settings {
    /// Reads the files that exist among `paths`; later ones win.
    pub fn load(paths: &[PathBuf]) -> Result<Self> {
        let mut settings = Self::default();
        for path in paths {
            if let Some(bytes) = atomic::read(path)? {
                settings.apply(&bytes, path)?;
            }
        }
        Ok(settings)
    }

    fn apply(&mut self, bytes: &[u8], path: &Path) -> Result<()> {
        let file = File { path };
        let root: Value =
            serde_json::from_slice(bytes).map_err(|error| file.error(error.to_string()))?;
        let root = file.object(&root, "the file")?;
        file.check_keys(root, "", SECTIONS)?;
        if let Some(section) = root.get("mailbox") {
            let section = file.object(section, "mailbox")?;
            file.check_keys(section, "mailbox.", MAILBOX)?;
            if let Some(value) = section.get("durable") {
                self.mail_durable = value
                    .as_bool()
                    .ok_or_else(|| file.error("mailbox.durable must be true or false".into()))?;
            }
        }
        let Some(section) = root.get("taskboard") else {
            return Ok(());
        };
        let section = file.object(section, "taskboard")?;
        file.check_keys(section, "taskboard.", TASKBOARD)?;
        if let Some(value) = section.get("lock") {
            self.lock_mode = match value.as_str() {
                Some("shared") => LockMode::Shared,
                Some("flock") => LockMode::Flock,
                _ => {
                    return Err(file.error("taskboard.lock must be \"shared\" or \"flock\"".into()));
                }
            };
        }
        if let Some(value) = section.get("durable") {
            self.durable = value
                .as_bool()
                .ok_or_else(|| file.error("taskboard.durable must be true or false".into()))?;
        }
        if let Some(value) = section.get("lockTimeoutMs") {
            let ms = value
                .as_u64()
                .filter(|ms| (1..=3_600_000).contains(ms))
                .ok_or_else(|| {
                    file.error("taskboard.lockTimeoutMs must be a number from 1 to 3600000".into())
                })?;
            self.lock_timeout = Duration::from_millis(ms);
        }
        Ok(())
    }
}

struct File<'a> {
    path: &'a Path,
}

impl File<'_> {
    fn error(&self, why: String) -> StoreError {
        StoreError::Settings {
            path: self.path.to_owned(),
            why,
        }
    }

    fn object<'v>(&self, value: &'v Value, what: &str) -> Result<&'v Map<String, Value>> {
        value
            .as_object()
            .ok_or_else(|| self.error(format!("{what} must be an object")))
    }

    fn check_keys(&self, map: &Map<String, Value>, prefix: &str, known: &[&str]) -> Result<()> {
        let Some(key) = map.keys().find(|key| !known.contains(&key.as_str())) else {
            return Ok(());
        };
        let tail = crate::nearest(key, known.iter().copied()).map_or_else(
            || format!("; known here: {}", known.join(", ")),
            |near| format!("; did you mean \"{prefix}{near}\"?"),
        );
        Err(self.error(format!("unknown key \"{prefix}{key}\"{tail}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(texts: &[&str]) -> Result<Settings> {
        let dir = tempfile::tempdir().unwrap();
        let paths: Vec<PathBuf> = (0..texts.len())
            .map(|n| dir.path().join(format!("{n}.json")))
            .collect();
        for (path, text) in paths.iter().zip(texts) {
            atomic::replace(
                dir.path(),
                path,
                text.as_bytes(),
                atomic::Durability::Relaxed,
            )
            .unwrap();
        }
        Settings::load(&paths)
    }

    #[test]
    fn later_files_win_key_by_key() {
        let settings = load(&[
            r#"{"taskboard":{"lock":"flock","durable":false}}"#,
            r#"{"taskboard":{"durable":true},"mailbox":{"durable":false}}"#,
        ])
        .unwrap();
        assert!(!settings.mail_durable);
        assert_eq!(settings.lock_mode, LockMode::Flock);
        assert!(settings.durable);
        assert_eq!(load(&[]).unwrap(), Settings::default());
    }

    #[test]
    fn mistakes_name_the_nearest_key() {
        let error = load(&[r#"{"taskboard":{"lokc":"flock"}}"#])
            .unwrap_err()
            .to_string();
        assert!(error.contains("did you mean \"taskboard.lock\""), "{error}");
        assert!(load(&["{"]).is_err());
        assert!(load(&[r#"{"taskboard":{"lock":"both"}}"#]).is_err());
        assert!(load(&[r#"{"taskboard":{"lockTimeoutMs":0}}"#]).is_err());
        assert!(load(&[r#"{"mailbox":{"durable":1}}"#]).is_err());
        assert!(load(&["[]"]).is_err());
    }
}
