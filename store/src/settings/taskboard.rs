//! `taskboard` and `mailbox`, whose few keys lie flat in [`Settings`].

use std::time::Duration;

use serde_json::{Map, Value};

use super::Settings;
use super::file::File;
use crate::error::Result;

/// How the task board locks its lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LockMode {
    /// The file lock, and the lock directories other tools use on the same list.
    #[default]
    Shared,
    /// The file lock alone: faster, but no other tool may write to the list.
    Flock,
}

impl Settings {
    pub(super) fn apply_mailbox(
        &mut self,
        section: &Map<String, Value>,
        file: &File<'_>,
    ) -> Result<()> {
        file.check_keys(section, "mailbox.", &["durable"])?;
        if let Some(value) = section.get("durable") {
            self.mail_durable = file.boolean(value, "mailbox.durable")?;
        }
        Ok(())
    }

    pub(super) fn apply_taskboard(
        &mut self,
        section: &Map<String, Value>,
        file: &File<'_>,
    ) -> Result<()> {
        file.check_keys(section, "taskboard.", &["durable", "lock", "lockTimeoutMs"])?;
        if let Some(value) = section.get("lock") {
            self.lock_mode = match value.as_str() {
                Some("shared") => LockMode::Shared,
                Some("flock") => LockMode::Flock,
                _ => return Err(file.error("taskboard.lock must be \"shared\" or \"flock\"")),
            };
        }
        if let Some(value) = section.get("durable") {
            self.durable = file.boolean(value, "taskboard.durable")?;
        }
        if let Some(value) = section.get("lockTimeoutMs") {
            let ms = file.number(value, "taskboard.lockTimeoutMs", 1, 3_600_000)?;
            self.lock_timeout = Duration::from_millis(ms);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::load;
    use super::*;

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
        assert!(load(&[r#"{"taskboard":{"lock":"both"}}"#]).is_err());
        assert!(load(&[r#"{"taskboard":{"lockTimeoutMs":0}}"#]).is_err());
        assert!(load(&[r#"{"mailbox":{"durable":1}}"#]).is_err());
    }
}
