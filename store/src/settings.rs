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
    /// Everything under `worktree`.
    pub worktree: WorktreeSettings,
}

/// The commit a new working tree starts from unless the call says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum BaseRef {
    /// The caller's HEAD.
    #[default]
    Head,
    /// The default branch of `origin`.
    Fresh,
}

/// A command from a settings file, and from which: what a repository brings along is not run
/// without the user's word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetUpCommand {
    /// For the shell.
    pub command: String,
    /// The file that says so.
    pub file: PathBuf,
}

/// Everything under `worktree`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorktreeSettings {
    /// `baseRef`: `"head"` or `"fresh"`.
    pub base_ref: BaseRef,
    /// `sparsePaths`: check out only these.
    pub sparse_paths: Vec<String>,
    /// `symlinkDirectories`: linked from the main tree.
    pub symlink_directories: Vec<String>,
    /// `copyDirectories`: copied from the main tree.
    pub copy_directories: Vec<String>,
    /// `setup`: run in every new tree.
    pub set_up: Option<SetUpCommand>,
    /// `trashDays`: how long removed trees stay in the trash.
    pub trash_days: u32,
    /// `gcDays`: how long a tree must not have been used before gc takes it.
    pub gc_days: u32,
    /// `rescueMaxBytes`: how much of a tree's files is kept when the trash is emptied.
    pub rescue_max_bytes: u64,
    /// `pool`: how many trees are made before anybody asks for them.
    pub pool: usize,
}

impl Default for WorktreeSettings {
    fn default() -> Self {
        Self {
            base_ref: BaseRef::default(),
            sparse_paths: Vec::new(),
            symlink_directories: Vec::new(),
            copy_directories: Vec::new(),
            set_up: None,
            trash_days: 7,
            gc_days: 30,
            rescue_max_bytes: 256 * 1024 * 1024,
            pool: 0,
        }
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            lock_mode: LockMode::default(),
            durable: true,
            lock_timeout: crate::lock::DEFAULT_TIMEOUT,
            mail_durable: true,
            worktree: WorktreeSettings::default(),
        }
    }
}

const MAILBOX: &[&str] = &["durable"];
const SECTIONS: &[&str] = &["mailbox", "taskboard", "v", "worktree"];
const WORKTREE: &[&str] = &[
    "baseRef",
    "copyDirectories",
    "gcDays",
    "pool",
    "rescueMaxBytes",
    "setup",
    "sparsePaths",
    "symlinkDirectories",
    "trashDays",
];
/// git gets slower with every tree, and each takes as much space as a checkout.
const MAX_POOL: u64 = 64;
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
        if let Some(section) = root.get("worktree") {
            self.worktree
                .apply(file.object(section, "worktree")?, &file)?;
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

impl WorktreeSettings {
    fn apply(&mut self, section: &Map<String, Value>, file: &File<'_>) -> Result<()> {
        file.check_keys(section, "worktree.", WORKTREE)?;
        if let Some(value) = section.get("baseRef") {
            self.base_ref = match value.as_str() {
                Some("head") => BaseRef::Head,
                Some("fresh") => BaseRef::Fresh,
                _ => {
                    let why = "worktree.baseRef must be \"head\" or \"fresh\"";
                    return Err(file.error(why.into()));
                }
            };
        }
        let paths = [
            ("sparsePaths", &mut self.sparse_paths),
            ("symlinkDirectories", &mut self.symlink_directories),
            ("copyDirectories", &mut self.copy_directories),
        ];
        for (key, list) in paths {
            if let Some(value) = section.get(key) {
                *list = file.strings(value, &format!("worktree.{key}"))?;
            }
        }
        match section.get("setup") {
            None => {}
            Some(Value::Null) => self.set_up = None,
            Some(Value::String(command)) => {
                self.set_up = Some(SetUpCommand {
                    command: command.clone(),
                    file: file.path.to_owned(),
                });
            }
            Some(_) => return Err(file.error("worktree.setup must be a shell command".into())),
        }
        for (key, days) in [
            ("trashDays", &mut self.trash_days),
            ("gcDays", &mut self.gc_days),
        ] {
            if let Some(value) = section.get(key) {
                *days = value
                    .as_u64()
                    .and_then(|days| u32::try_from(days).ok())
                    .filter(|days| *days <= 36_500)
                    .ok_or_else(|| {
                        file.error(format!(
                            "worktree.{key} must be a number of days up to 36500"
                        ))
                    })?;
            }
        }
        if let Some(value) = section.get("pool") {
            self.pool = value
                .as_u64()
                .filter(|count| *count <= MAX_POOL)
                .and_then(|count| usize::try_from(count).ok())
                .ok_or_else(|| {
                    file.error(format!("worktree.pool must be a number up to {MAX_POOL}"))
                })?;
        }
        if let Some(value) = section.get("rescueMaxBytes") {
            self.rescue_max_bytes = value.as_u64().ok_or_else(|| {
                file.error("worktree.rescueMaxBytes must be a number of bytes".into())
            })?;
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

    fn strings(&self, value: &Value, what: &str) -> Result<Vec<String>> {
        let texts = value.as_array().and_then(|list| {
            list.iter()
                .map(|text| text.as_str().map(str::to_owned))
                .collect::<Option<Vec<String>>>()
        });
        texts.ok_or_else(|| self.error(format!("{what} must be a list of paths")))
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
    fn worktree_settings_are_read_and_checked() {
        let settings = load(&[
            r#"{"worktree":{"setup":"make deps","trashDays":3,"sparsePaths":["a","b"]}}"#,
            r#"{"worktree":{"baseRef":"fresh","setup":null}}"#,
        ])
        .unwrap();
        assert_eq!(settings.worktree.set_up, None, "null takes it back");
        assert_eq!(settings.worktree.trash_days, 3);
        assert_eq!(settings.worktree.sparse_paths, ["a", "b"]);
        assert_eq!(settings.worktree.base_ref, BaseRef::Fresh);
        for bad in [
            r#"{"worktree":{"baseRef":"HEAD"}}"#,
            r#"{"worktree":{"trashDays":-1}}"#,
            r#"{"worktree":{"setup":["a"]}}"#,
            r#"{"worktree":{"sparsePaths":"a"}}"#,
            r#"{"worktree":{"rescueMaxBytes":"1G"}}"#,
            r#"{"worktree":{"pool":65}}"#,
            r#"{"worktree":{"pool":"many"}}"#,
        ] {
            assert!(load(&[bad]).is_err(), "{bad}");
        }
        let error = load(&[r#"{"worktree":{"trashdays":1}}"#])
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("did you mean \"worktree.trashDays\""),
            "{error}"
        );
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
