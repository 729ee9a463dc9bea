//! `taskboard` and `mailbox`, whose few keys lie flat in [`Settings`].

use std::fmt;
use std::path::{Path, PathBuf};

use super::{Settings, set};
use crate::fields::{Fields, Read};

crate::words! {
    /// The locks that the task board takes on its lists.
    #[derive(Default)]
    pub enum LockMode {
        /// The file lock, and the lock directories other tools use on the same list.
        #[default]
        Shared = "shared",
        /// The file lock alone: faster, but no other tool may write to the list.
        Flock = "flock",
    }
}

/// A database, and the file that names it.
#[derive(Clone, PartialEq, Eq)]
pub struct NamedBoard {
    /// Its address, perhaps with a password.
    pub address: String,
    /// The file that names it; only the user's own may.
    pub from: PathBuf,
}

impl fmt::Debug for NamedBoard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The address may hold a password.
        f.debug_tuple("NamedBoard").field(&self.from).finish()
    }
}

impl Settings {
    pub(super) fn read_mailbox(&mut self, section: &Fields<'_>) -> Read<()> {
        section.check_keys(&["durable"])?;
        set(&mut self.mail_durable, section.boolean("durable")?);
        Ok(())
    }

    pub(super) fn read_taskboard(&mut self, section: &Fields<'_>, path: &Path) -> Read<()> {
        let keys = [
            "board",
            "durable",
            "leaseMs",
            "lock",
            "lockTimeoutMs",
            "manyTasksPerAgent",
        ];
        section.check_keys(&keys)?;
        if let Some(address) = section.text("board")? {
            self.board = Some(NamedBoard {
                address: address.to_owned(),
                from: path.to_owned(),
            });
        }
        let mode = section.word("lock", LockMode::ALL, LockMode::as_str)?;
        set(&mut self.lock_mode, mode);
        set(&mut self.durable, section.boolean("durable")?);
        let timeout = section.millis("lockTimeoutMs", 1..=3_600_000)?;
        set(&mut self.lock_timeout, timeout);
        set(
            &mut self.lease,
            section.millis("leaseMs", 1000..=3_600_000)?,
        );
        let many = section.boolean("manyTasksPerAgent")?;
        set(&mut self.many_tasks_per_agent, many);
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
