//! Differences between the registry, git and the disk. Reports them, registers unknown worktrees if
//! asked, never deletes.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use store::atomic;
use store::lock::FileLock;

use crate::check::CheckState;
use crate::doctor::HealScope;
use crate::error::TreeError;
use crate::git::files;
use crate::layout::{entries, name_of};
use crate::registry::{Entry, Registry, TreeStatus};
use crate::slug::Slug;
use crate::trees::Trees;

/// A problem the doctor found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TreeFinding {
    /// A stable word for programs.
    pub kind: &'static str,
    /// The worktree or file.
    pub name: String,
    /// The message.
    pub message: String,
    /// The repair, if one was made.
    pub fixed: Option<String>,
}

/// The problems found so far.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    /// True to repair the problems found.
    pub(crate) fix: bool,
    found: Vec<TreeFinding>,
}

impl Findings {
    pub(crate) fn new(fix: bool) -> Self {
        let found = Vec::new();
        Self { fix, found }
    }

    /// Adds a problem that is not repaired here.
    pub(crate) fn add(&mut self, kind: &'static str, name: &str, message: String) {
        self.found.push(TreeFinding {
            kind,
            name: name.to_owned(),
            message,
            fixed: None,
        });
    }

    /// Adds a problem that `repair` may solve. It returns what it did, if it could.
    pub(crate) fn repair(
        &mut self,
        kind: &'static str,
        name: &str,
        message: String,
        repair: impl FnOnce() -> Result<Option<String>, TreeError>,
    ) -> Result<(), TreeError> {
        let fixed = if self.fix { repair()? } else { None };
        self.add(kind, name, message);
        if let Some(last) = self.found.last_mut() {
            last.fixed = fixed;
        }
        Ok(())
    }

    pub(crate) fn into_list(self) -> Vec<TreeFinding> {
        self.found
    }
}

impl Trees {
    /// Compares the registry with git and the disk. With `fix`, unregistered worktrees are
    /// registered, and an unreadable registry is moved aside for a new one.
    pub fn doctor(&self, fix: bool) -> Result<Vec<TreeFinding>, TreeError> {
        let mut findings = Findings::new(fix);
        if let Err(error) = Registry::load(&self.layout) {
            if !matches!(error, TreeError::Registry { .. }) {
                return Err(error);
            }
            let message = error.to_string();
            findings.repair("registry_unreadable", "index.json", message, || {
                let aside = format!("index.json.unreadable-{}", self.now_ms());
                let path = self.layout.registry();
                atomic::rename(&path, &path.with_file_name(&aside))?;
                Ok(Some(format!("set aside as {aside}")))
            })?;
            if !fix {
                return Ok(findings.into_list());
            }
        }
        self.check_power_cut(HealScope::All, &mut findings)?;
        let registry = Registry::load(&self.layout)?;
        let pooled = registry.pool.iter().map(|pooled| &pooled.tree);
        for entry in registry.worktrees.iter().chain(pooled) {
            self.check_entry(entry, &mut findings)?;
        }
        // Interrupted operations may be finished now.
        let registry = Registry::load(&self.layout)?;
        self.check_disk(&registry, &mut findings)?;
        self.check_leftovers(&registry, &mut findings)?;
        self.check_trash(&registry, &mut findings);
        Ok(findings.into_list())
    }

    fn check_entry(&self, entry: &Entry, findings: &mut Findings) -> Result<(), TreeError> {
        let slug = match entry.slug() {
            Ok(slug) => slug,
            Err(error) => {
                findings.add("bad_entry", &entry.name, error.to_string());
                return Ok(());
            }
        };
        if let Some(doing) = entry.under_way() {
            if FileLock::try_exclusive(&self.layout.tree_lock(&slug))?.is_some() {
                let message = format!(
                    "{doing} was interrupted; the next command that changes worktrees finishes or undoes it"
                );
                findings.repair("half_done", &entry.name, message, || {
                    self.settle(&slug)?;
                    Ok(Some("finished or undone, whichever loses nothing".into()))
                })?;
            }
            return Ok(());
        }
        let mut add = |kind, message: String| findings.add(kind, &entry.name, message);
        match entry.status {
            TreeStatus::Removed => {
                let trash = entry.trash.as_ref().filter(|trash| !trash.emptied);
                if let Some(trash) = trash
                    && !self.layout.trash().join(&trash.id).exists()
                {
                    add(
                        "trash_missing",
                        format!("its directory {} is not in the trash", trash.id),
                    );
                }
            }
            _ if entry.hook_based => {
                if !entry.path().exists() {
                    add("tree_missing", format!("{} is gone", entry.path));
                }
            }
            _ => {
                if std::fs::symlink_metadata(entry.path()).is_err() {
                    let how = format!("`ccb worktree create {}` checks it out again", entry.name);
                    add("tree_missing", format!("{} is gone; {how}", entry.path));
                } else if let Err(why) = files::admin_of(&self.layout, entry.path()) {
                    add("not_ours", format!("{}: {why}", entry.path));
                }
                if let Some(branch) = &entry.branch
                    && self.layout.tip_of(branch)?.is_none()
                {
                    add("branch_missing", format!("its branch {branch} is gone"));
                }
            }
        }
        Ok(())
    }

    /// Worktrees that are on the disk and in git, but not in the registry.
    fn check_disk(&self, registry: &Registry, findings: &mut Findings) -> Result<(), TreeError> {
        let known = registry.paths();
        let dirs = entries(&self.layout.trees());
        self.check_check_trees(findings)?;
        let unknown = |dir: &&PathBuf| !known.contains(dir.as_path()) && !self.is_check_tree(dir);
        for dir in dirs.iter().filter(unknown) {
            let name = name_of(dir);
            match files::admin_of(&self.layout, dir) {
                Ok(admin) => {
                    let message = format!("{} is a worktree that is not registered", dir.display());
                    findings.repair("not_registered", &name, message, || {
                        self.adopt(&name, dir, &admin)?;
                        let done = "registered; its base is not known, so it counts as changed";
                        Ok(Some(done.into()))
                    })?;
                }
                Err(why) => self.check_stray_directory(dir, &why, findings)?,
            }
        }
        Ok(())
    }

    /// Check worktrees whose check was cut short.
    fn check_check_trees(&self, findings: &mut Findings) -> Result<(), TreeError> {
        for name in self.check_trees() {
            let slug = Slug::new(&name)?;
            let left = CheckState::load(&self.layout, &name).is_none_or(|state| state.busy);
            if !left || FileLock::try_exclusive(&self.layout.tree_lock(&slug))?.is_none() {
                continue;
            }
            let message = "a check in it was interrupted; the next check deletes it";
            findings.repair("check_tree_left", &name, message.into(), || {
                self.drop_check_trees(false)?;
                Ok(Some("deleted; it held no work".into()))
            })?;
        }
        Ok(())
    }

    /// Registers a worktree that git knows and the registry does not.
    fn adopt(&self, flat: &str, dir: &Path, admin: &Path) -> Result<(), TreeError> {
        let slug = Slug::new(&flat.replace('+', "/"))?;
        let branch = match files::head(&self.layout, admin) {
            files::Head::Branch(name, _) => name.strip_prefix("refs/heads/").map(str::to_owned),
            _ => None,
        };
        let mut section = self.section()?;
        let mut entry = Entry::new(&slug, dir, self.now());
        // Only a branch that ccb made may be deleted.
        entry.branch = branch.filter(|branch| *branch == slug.branch());
        section.registry.worktrees.push(entry);
        section.save()
    }

    fn check_trash(&self, registry: &Registry, findings: &mut Findings) {
        let ids: BTreeSet<&str> = registry
            .worktrees
            .iter()
            .filter_map(|entry| Some(entry.trash.as_ref()?.id.as_str()))
            .collect();
        let busy = registry.worktrees.iter().any(|entry| entry.op.is_some());
        for dir in entries(&self.layout.trash()) {
            let name = name_of(&dir);
            if !ids.contains(name.as_str()) && !busy {
                let message = format!("{} belongs to no removed worktree", dir.display());
                findings.add("trash_unknown", &name, message);
            }
        }
    }
}
