//! Everything under `worktree`.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::set;
use crate::fields::{Fields, Read};

crate::words! {
    /// The commit a new worktree starts from, unless the call names one.
    #[derive(Default)]
    pub enum BaseRef {
        /// The caller's HEAD.
        #[default]
        Head = "head",
        /// The default branch of `origin`.
        Fresh = "fresh",
    }
}

crate::words! {
    /// The way a worktree's commits get onto a branch.
    #[derive(Default)]
    pub enum MergeStrategy {
        /// The worktree's commits, joined by a merge commit unless the branch can just follow.
        #[default]
        Merge = "merge",
        /// One commit with everything.
        Squash = "squash",
        /// The worktree's commits, made again on top of the branch.
        Rebase = "rebase",
    }
}

/// A command from a settings file, and the file: a repository's own command is not run without the
/// user's consent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetUpCommand {
    /// The command, for the shell.
    pub command: String,
    /// The file that names it.
    pub file: PathBuf,
}

/// Everything under `worktree`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorktreeSettings {
    /// `durable`: true if commits, branches and registry are on the disk before work counts as done
    /// or landed.
    pub durable: bool,
    /// `baseRef`: `"head"` or `"fresh"`.
    pub base_ref: BaseRef,
    /// `mergeStrategy`: the commits a branch gets when a task's work lands on it.
    pub merge_strategy: MergeStrategy,
    /// `sparsePaths`: the only paths that are checked out.
    pub sparse_paths: Vec<String>,
    /// `symlinkDirectories`: directories linked from the main worktree.
    pub symlink_directories: Vec<String>,
    /// `copyDirectories`: directories copied from the main worktree.
    pub copy_directories: Vec<String>,
    /// `protect`: patterns of files that no task may change.
    pub protect: Vec<String>,
    /// `setup`: the command run in every new worktree.
    pub set_up: Option<SetUpCommand>,
    /// `remote`: the git remote that carries results to other machines, if the board is in a
    /// database.
    pub remote: String,
    /// `privateGit`: true if agents that are not confined also have a `.git` of their own while
    /// they work in a worktree.
    pub private_git: bool,
    /// `trashDays`: days for which removed worktrees stay in the trash.
    pub trash_days: u32,
    /// `gcDays`: days without use after which gc removes a worktree.
    pub gc_days: u32,
    /// `rescueMaxBytes`: maximum of a worktree's files that is kept when the trash is emptied.
    pub rescue_max_bytes: u64,
    /// `pool`: number of worktrees made in advance.
    pub pool: usize,
}

impl Default for WorktreeSettings {
    fn default() -> Self {
        Self {
            durable: true,
            base_ref: BaseRef::default(),
            merge_strategy: MergeStrategy::default(),
            sparse_paths: Vec::new(),
            symlink_directories: Vec::new(),
            copy_directories: Vec::new(),
            protect: Vec::new(),
            set_up: None,
            remote: "origin".into(),
            private_git: true,
            trash_days: 7,
            gc_days: 30,
            rescue_max_bytes: 256 * 1024 * 1024,
            pool: 0,
        }
    }
}

pub(super) const KEYS: &[&str] = &[
    "baseRef",
    "copyDirectories",
    "durable",
    "gcDays",
    "mergeStrategy",
    "pool",
    "privateGit",
    "protect",
    "remote",
    "rescueMaxBytes",
    "setup",
    "sparsePaths",
    "symlinkDirectories",
    "trashDays",
];
/// Maximum of `pool`: git gets slower with every worktree, and each takes as much space as a
/// checkout.
const MAX_POOL: u64 = 64;

impl WorktreeSettings {
    pub(super) fn read(&mut self, section: &Fields<'_>, file: &Path) -> Read<()> {
        section.check_keys(KEYS)?;
        set(&mut self.durable, section.boolean("durable")?);
        let base = section.word("baseRef", BaseRef::ALL, BaseRef::as_str)?;
        set(&mut self.base_ref, base);
        let strategy = section.word("mergeStrategy", MergeStrategy::ALL, MergeStrategy::as_str)?;
        set(&mut self.merge_strategy, strategy);
        for (key, list) in [
            ("sparsePaths", &mut self.sparse_paths),
            ("symlinkDirectories", &mut self.symlink_directories),
            ("copyDirectories", &mut self.copy_directories),
        ] {
            set(list, section.strings(key, "paths")?);
        }
        set(&mut self.private_git, section.boolean("privateGit")?);
        set(&mut self.protect, section.strings("protect", "patterns")?);
        // A name alone: the author of a repository's settings must not choose where work is sent.
        let remote = section.read("remote", "the name of a git remote", |value| {
            let plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
            let name = value.as_str()?;
            let good = !name.is_empty() && !name.starts_with('-') && name.chars().all(plain);
            good.then(|| name.to_owned())
        })?;
        set(&mut self.remote, remote);
        if section.is_null("setup") {
            self.set_up = None;
        } else if let Some(command) = section.read("setup", "a shell command", Value::as_str)? {
            self.set_up = Some(SetUpCommand {
                command: command.to_owned(),
                file: file.to_owned(),
            });
        }
        for (key, days) in [
            ("trashDays", &mut self.trash_days),
            ("gcDays", &mut self.gc_days),
        ] {
            let said = section.read(key, "a number of days up to 36500", |value| {
                let said = u32::try_from(value.as_u64()?).ok()?;
                (said <= 36_500).then_some(said)
            })?;
            set(days, said);
        }
        let pool = section.number("pool", 0..=MAX_POOL)?;
        set(&mut self.pool, pool.and_then(|pool| pool.try_into().ok()));
        let bytes = section.read("rescueMaxBytes", "a number of bytes", Value::as_u64)?;
        set(&mut self.rescue_max_bytes, bytes);
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
            r#"{"worktree":{"setup":"make deps","trashDays":3,"sparsePaths":["a","b"],"protect":["ci/**"],"durable":false}}"#,
            r#"{"worktree":{"baseRef":"fresh","setup":null}}"#,
        ])
        .unwrap();
        assert_eq!(settings.worktree.set_up, None, "null takes it back");
        assert_eq!(settings.worktree.trash_days, 3);
        assert!(!settings.worktree.durable);
        assert!(load(&[]).unwrap().worktree.durable);
        assert_eq!(settings.worktree.sparse_paths, ["a", "b"]);
        assert_eq!(settings.worktree.protect, ["ci/**"]);
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
