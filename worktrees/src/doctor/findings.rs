//! Where the registry, git and the disk disagree. Reports, adopts if asked, never deletes.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use store::atomic;
use store::lock::FileLock;

use crate::check::CheckState;
use crate::doctor::Whose;
use crate::error::TreeError;
use crate::git::files;
use crate::registry::{Entry, Registry, Status};
use crate::slug::Slug;
use crate::trees::Trees;

/// What is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TreeFinding {
    /// A stable word for programs.
    pub kind: &'static str,
    /// Which tree or file.
    pub name: String,
    /// In words.
    pub message: String,
    /// What was done about it.
    pub fixed: Option<String>,
}

impl Trees {
    /// Compares the registry with git and the disk. With `fix`, trees that are not registered
    /// are, and a registry that cannot be read is set aside for a new one.
    pub fn doctor(&self, fix: bool) -> Result<Vec<TreeFinding>, TreeError> {
        let mut findings = Vec::new();
        let registry = match Registry::load(&self.layout) {
            Ok(registry) => registry,
            Err(error @ TreeError::Registry { .. }) => {
                let mut finding = finding("registry_unreadable", "index.json", error.to_string());
                if !fix {
                    return Ok(vec![finding]);
                }
                let aside = format!("index.json.unreadable-{}", self.now_ms());
                let path = self.layout.registry();
                atomic::rename(&path, &path.with_file_name(&aside))?;
                finding.fixed = Some(format!("set aside as {aside}"));
                findings.push(finding);
                Registry::default()
            }
            Err(error) => return Err(error),
        };
        findings.extend(self.heal(fix, Whose::All)?);
        let registry = match fix {
            true => Registry::load(&self.layout)?,
            false => registry,
        };
        for entry in &registry.worktrees {
            self.check_entry(entry, fix, &mut findings)?;
        }
        for pooled in &registry.pool {
            self.check_entry(&pooled.tree, fix, &mut findings)?;
        }
        // What was half done is not any more.
        let registry = match fix {
            true => Registry::load(&self.layout)?,
            false => registry,
        };
        self.check_disk(&registry, fix, &mut findings)?;
        self.check_leftovers(&registry, fix, &mut findings)?;
        self.check_trash(&registry, &mut findings);
        Ok(findings)
    }

    fn check_entry(
        &self,
        entry: &Entry,
        fix: bool,
        findings: &mut Vec<TreeFinding>,
    ) -> Result<(), TreeError> {
        let slug = match entry.slug() {
            Ok(slug) => slug,
            Err(error) => {
                findings.push(finding("bad_entry", &entry.name, error.to_string()));
                return Ok(());
            }
        };
        if let Some(doing) = entry.under_way() {
            if FileLock::try_exclusive(&self.layout.tree_lock(&slug))?.is_some() {
                let message = format!(
                    "{doing} was interrupted; the next command that changes trees settles it"
                );
                let mut finding = finding("half_done", &entry.name, message);
                if fix {
                    self.settle(&slug)?;
                    finding.fixed = Some("finished or taken back, whichever loses nothing".into());
                }
                findings.push(finding);
            }
            return Ok(());
        }
        let mut add = |kind, message: String| findings.push(finding(kind, &entry.name, message));
        match entry.status {
            Status::Removed => {
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
                if let Some(branch) = &entry.branch {
                    let reference = format!("refs/heads/{branch}");
                    if self.layout.history().tip(&reference)?.is_none() {
                        add("branch_missing", format!("its branch {branch} is gone"));
                    }
                }
            }
        }
        Ok(())
    }

    /// What is on the disk and in git, but not in the registry.
    fn check_disk(
        &self,
        registry: &Registry,
        fix: bool,
        findings: &mut Vec<TreeFinding>,
    ) -> Result<(), TreeError> {
        let known = registry.paths();
        let mut dirs: Vec<_> = std::fs::read_dir(self.layout.trees())
            .into_iter()
            .flatten()
            .flatten()
            .map(|entry| entry.path())
            .collect();
        dirs.sort();
        self.check_check_trees(fix, findings)?;
        let unknown = |dir: &&PathBuf| !known.contains(dir.as_path()) && !self.is_check_tree(dir);
        for dir in dirs.iter().filter(unknown) {
            let name = dir
                .file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned();
            match files::admin_of(&self.layout, dir) {
                Ok(admin) => {
                    let message = format!("{} is a worktree that is not registered", dir.display());
                    let mut finding = finding("not_registered", &name, message);
                    if fix {
                        self.adopt(&name, dir, &admin)?;
                        finding.fixed = Some(
                            "registered; its base is not known, so it counts as changed".into(),
                        );
                    }
                    findings.push(finding);
                }
                Err(why) => self.check_stray_directory(dir, &why, fix, findings)?,
            }
        }
        Ok(())
    }

    /// Check trees whose check was cut short.
    fn check_check_trees(
        &self,
        fix: bool,
        findings: &mut Vec<TreeFinding>,
    ) -> Result<(), TreeError> {
        for name in self.check_trees() {
            let slug = Slug::new(&name)?;
            let left = CheckState::load(&self.layout, &name).is_none_or(|state| state.busy);
            if !left || FileLock::try_exclusive(&self.layout.tree_lock(&slug))?.is_none() {
                continue;
            }
            let message = "a check in it was interrupted; the next check deletes it";
            let mut finding = finding("check_tree_left", &name, message.into());
            if fix {
                self.drop_check_trees(false)?;
                finding.fixed = Some("deleted; it held nobody's work".into());
            }
            findings.push(finding);
        }
        Ok(())
    }

    /// Registers a tree that git knows and we do not.
    fn adopt(&self, flat: &str, dir: &Path, admin: &Path) -> Result<(), TreeError> {
        let slug = Slug::new(&flat.replace('+', "/"))?;
        let branch = match files::head(&self.layout, admin) {
            files::Head::Branch(name, _) => name.strip_prefix("refs/heads/").map(str::to_owned),
            _ => None,
        };
        let mut section = self.section()?;
        let mut entry = Entry::new(&slug, dir, self.now());
        // Only a branch of our making is ours to delete.
        entry.branch = branch.filter(|branch| *branch == slug.branch());
        section.registry.worktrees.push(entry);
        section.save()
    }

    fn check_trash(&self, registry: &Registry, findings: &mut Vec<TreeFinding>) {
        let ids: BTreeSet<&str> = registry
            .worktrees
            .iter()
            .filter_map(|entry| Some(entry.trash.as_ref()?.id.as_str()))
            .collect();
        let busy = registry.worktrees.iter().any(|entry| entry.op.is_some());
        let dirs = std::fs::read_dir(self.layout.trash())
            .into_iter()
            .flatten()
            .flatten();
        for dir in dirs {
            let name = dir.file_name().to_string_lossy().into_owned();
            if !ids.contains(name.as_str()) && !busy {
                let message = format!("{} belongs to no removed worktree", dir.path().display());
                findings.push(finding("trash_unknown", &name, message));
            }
        }
    }
}

pub(crate) fn finding(kind: &'static str, name: &str, message: String) -> TreeFinding {
    TreeFinding {
        kind,
        name: name.to_owned(),
        message,
        fixed: None,
    }
}
