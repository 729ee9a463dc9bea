//! Everything under `worktree`.

use std::path::PathBuf;

use serde_json::{Map, Value};

use super::file::File;
use crate::error::Result;

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
    /// `durable`: whether commits, branches and registry are on the disk before work counts as
    /// done or landed.
    pub durable: bool,
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
            durable: true,
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

const KEYS: &[&str] = &[
    "baseRef",
    "copyDirectories",
    "durable",
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

impl WorktreeSettings {
    pub(super) fn apply(&mut self, section: &Map<String, Value>, file: &File<'_>) -> Result<()> {
        file.check_keys(section, "worktree.", KEYS)?;
        if let Some(value) = section.get("durable") {
            self.durable = file.boolean(value, "worktree.durable")?;
        }
        if let Some(value) = section.get("baseRef") {
            self.base_ref = match value.as_str() {
                Some("head") => BaseRef::Head,
                Some("fresh") => BaseRef::Fresh,
                _ => return Err(file.error("worktree.baseRef must be \"head\" or \"fresh\"")),
            };
        }
        let paths = [
            ("sparsePaths", &mut self.sparse_paths),
            ("symlinkDirectories", &mut self.symlink_directories),
            ("copyDirectories", &mut self.copy_directories),
        ];
        for (key, list) in paths {
            if let Some(value) = section.get(key) {
                *list = file.strings(value, &format!("worktree.{key}"), "paths")?;
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
            Some(_) => return Err(file.error("worktree.setup must be a shell command")),
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
            self.rescue_max_bytes = value
                .as_u64()
                .ok_or_else(|| file.error("worktree.rescueMaxBytes must be a number of bytes"))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::load;
    use super::*;

    #[test]
    fn worktree_settings_are_read_and_checked() {
        let settings = load(&[
            r#"{"worktree":{"setup":"make deps","trashDays":3,"sparsePaths":["a","b"],"durable":false}}"#,
            r#"{"worktree":{"baseRef":"fresh","setup":null}}"#,
        ])
        .unwrap();
        assert_eq!(settings.worktree.set_up, None, "null takes it back");
        assert_eq!(settings.worktree.trash_days, 3);
        assert!(!settings.worktree.durable);
        assert!(load(&[]).unwrap().worktree.durable);
        assert_eq!(settings.worktree.sparse_paths, ["a", "b"]);
        assert_eq!(settings.worktree.base_ref, BaseRef::Fresh);
        for bad in [
            r#"{"worktree":{"baseRef":"HEAD"}}"#,
            r#"{"worktree":{"trashDays":-1}}"#,
            r#"{"worktree":{"setup":["a"]}}"#,
            r#"{"worktree":{"sparsePaths":"a"}}"#,
            r#"{"worktree":{"rescueMaxBytes":"1G"}}"#,
            r#"{"worktree":{"durable":"yes"}}"#,
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
}
