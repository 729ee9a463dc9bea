//! Settings files, from the user's down to the repository's local one.
//!
//! `<home>/ccb.json`, then `<repo>/.claude/ccb.json`, then `<repo>/.claude/ccb.local.json`; a later
//! file wins key by key. An unknown key is an error that names the nearest known one, because a
//! misspelt setting that is silently ignored is worse than no setting.
//!
//! A setting that can run code, or lets an agent see more, remembers the file it came from, so that
//! a repository's can be held back until the user trusts it.

mod agents;
mod history;
mod limits;
mod providers;
mod runtimes;
mod sandbox;
mod taskboard;
mod worktree;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;

use crate::atomic;
use crate::error::{Result, StoreError};
use crate::fields::{Fields, Read};

pub use agents::{AgentSettings, ConfigHome, LetThrough, MatesIn};
pub use history::HistorySettings;
pub use limits::{AgentLimits, Limits, MOST_USD, QuotaSettings, TeamLimits};
pub use providers::{Prices, ProviderKind, ProviderSettings, wrong_url};
pub use runtimes::{RuntimeKind, RuntimeSettings};
pub use sandbox::{SandboxMode, SandboxSettings};
pub use taskboard::{LockMode, NamedBoard};
pub use worktree::{BaseRef, MergeStrategy, SetUpCommand, WorktreeSettings};

/// All settings, resolved.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// `taskboard.lock`: `"shared"` or `"flock"`.
    pub lock_mode: LockMode,
    /// `taskboard.durable`: true if changes are synced to disk before they are acknowledged.
    pub durable: bool,
    /// `taskboard.lockTimeoutMs`: time limit for taking the list's lock.
    pub lock_timeout: Duration,
    /// `taskboard.manyTasksPerAgent`: true if an agent may have several tasks in progress.
    pub many_tasks_per_agent: bool,
    /// `taskboard.board`: the database that holds board and mail; they are in files if it is
    /// `None`.
    pub board: Option<NamedBoard>,
    /// `taskboard.leaseMs`: silence of a machine after which its tasks are given to others, if the
    /// board is in a database.
    pub lease: Duration,
    /// `mailbox.durable`: true if a message is synced to disk before its sending is acknowledged.
    pub mail_durable: bool,
    /// Everything under `worktree`.
    pub worktree: WorktreeSettings,
    /// Everything under `agents`.
    pub agents: AgentSettings,
    /// Everything under `history`.
    pub history: HistorySettings,
    /// Everything under `limits`.
    pub limits: Limits,
    /// `isolation.configHome`: `"shared"` or `"own"`.
    pub config_home: ConfigHome,
    /// `runtimes`: ways to run agents, by name.
    pub runtimes: BTreeMap<String, RuntimeSettings>,
    /// `providers`: services with models that ccb itself talks to, by name.
    pub providers: BTreeMap<String, ProviderSettings>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            lock_mode: LockMode::default(),
            durable: true,
            lock_timeout: crate::lock::DEFAULT_TIMEOUT,
            many_tasks_per_agent: false,
            board: None,
            lease: Duration::from_secs(60),
            mail_durable: true,
            worktree: WorktreeSettings::default(),
            agents: AgentSettings::default(),
            history: HistorySettings::default(),
            limits: Limits::default(),
            config_home: ConfigHome::default(),
            runtimes: BTreeMap::new(),
            providers: BTreeMap::new(),
        }
    }
}

const SECTIONS: &[&str] = &[
    "agents",
    "history",
    "isolation",
    "limits",
    "mailbox",
    "providers",
    "runtimes",
    "taskboard",
    "v",
    "worktree",
];

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

    pub(crate) fn apply(&mut self, bytes: &[u8], path: &Path) -> Result<()> {
        let wrong = |why: String| StoreError::Settings {
            path: path.to_owned(),
            why,
        };
        let root: Value =
            serde_json::from_slice(bytes).map_err(|error| wrong(error.to_string()))?;
        let Value::Object(root) = &root else {
            return Err(wrong("the file must be an object".into()));
        };
        let read = self.read(&Fields::of_settings(root), path);
        read.map_err(|error| wrong(error.why))
    }

    fn read(&mut self, root: &Fields<'_>, path: &Path) -> Read<()> {
        root.check_keys(SECTIONS)?;
        if let Some(section) = root.section("agents")? {
            self.agents.read(&section, path)?;
        }
        if let Some(section) = root.section("history")? {
            self.history.read(&section)?;
        }
        if let Some(section) = root.section("isolation")? {
            self.config_home.read(&section)?;
        }
        if let Some(section) = root.section("limits")? {
            self.limits.read(&section)?;
        }
        if let Some(section) = root.section("mailbox")? {
            self.read_mailbox(&section)?;
        }
        if let Some(section) = root.section("providers")? {
            providers::read(&mut self.providers, &section, path)?;
        }
        if let Some(section) = root.section("runtimes")? {
            runtimes::read(&mut self.runtimes, &section, path)?;
        }
        if let Some(section) = root.section("taskboard")? {
            self.read_taskboard(&section, path)?;
        }
        if let Some(section) = root.section("worktree")? {
            self.worktree.read(&section, path)?;
        }
        Ok(())
    }
}

/// Replaces a setting if the file has a value for it.
fn set<T>(setting: &mut T, said: Option<T>) {
    if let Some(said) = said {
        *setting = said;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) fn load(texts: &[&str]) -> Result<Settings> {
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
    fn every_key_is_documented() {
        let page = include_str!("../../../docs/settings.md");
        let of = |section: &'static str, keys: &[&'static str]| -> Vec<String> {
            let keys = keys.iter();
            keys.map(|key| format!("| `{section}.{key}` |")).collect()
        };
        let mut rows = of("agents", super::agents::KEYS);
        rows.extend(of("worktree", super::worktree::KEYS));
        for row in rows {
            assert!(page.contains(&row), "docs/settings.md lacks: {row}");
        }
        for key in super::providers::KEYS {
            assert!(page.contains(&format!("`{key}`")), "providers.NAME.{key}");
        }
        for section in SECTIONS.iter().filter(|section| **section != "v") {
            assert!(page.contains(&format!("| `{section}.")), "{section}");
        }
    }

    #[test]
    fn what_is_not_settings_is_refused() {
        assert!(load(&["{"]).is_err());
        assert!(load(&["[]"]).is_err());
        assert!(load(&[r#"{"taskboard":[]}"#]).is_err());
        let error = load(&[r#"{"agent":{}}"#]).unwrap_err().to_string();
        assert!(error.contains("did you mean \"agents\""), "{error}");
        assert_eq!(load(&[r#"{"v":1}"#]).unwrap(), Settings::default());
    }
}
