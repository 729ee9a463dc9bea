//! Damage to git's own files by a power cut: objects without content, and worktrees git cannot open
//! because a record, an index or a ref has none.
//!
//! ccb syncs work before it reports it, so the damaged work was never reported: it belongs to
//! agents that ended with the power. Nothing is deleted but empty objects, which the next commit
//! with the same content would otherwise take for whole ones.

use std::path::{Path, PathBuf};

use store::atomic;
use store::lock::FileLock;

use crate::doctor::{Findings, TreeFinding};
use crate::error::TreeError;
use crate::git::{admin, files};
use crate::layout::name_of;
use crate::lease::Lease;
use crate::registry::{Entry, Registry, Trashed};
use crate::remove::next_id;
use crate::slug::Slug;
use crate::trees::Trees;

/// The worktrees to look at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HealScope {
    /// Those made for agents: no person returns to them.
    Agents,
    /// All.
    All,
}

impl Trees {
    /// Finds damage by a power cut; with `fix`, moves it out of the way.
    pub fn heal(&self, fix: bool, whose: HealScope) -> Result<Vec<TreeFinding>, TreeError> {
        let mut findings = Findings::new(fix);
        self.check_power_cut(whose, &mut findings)?;
        Ok(findings.into_list())
    }

    pub(crate) fn check_power_cut(
        &self,
        whose: HealScope,
        findings: &mut Findings,
    ) -> Result<(), TreeError> {
        let empty = empty_objects(&self.layout.common);
        if !empty.is_empty() {
            let message = format!("{} objects of git have no content", empty.len());
            findings.repair("empty_objects", "objects", message, || {
                for path in &empty {
                    atomic::remove(path)?;
                }
                Ok(Some("removed; git writes them again when needed".into()))
            })?;
        }
        for entry in Registry::load(&self.layout)?.worktrees {
            let wanted = whose == HealScope::All || entry.agent.is_some();
            let settled = entry.is_live() && entry.op.is_none() && !entry.hook_based;
            if wanted && settled && self.is_torn(&entry) {
                self.check_torn(&entry, findings)?;
            }
        }
        Ok(())
    }

    /// Finds nothing if the worktree is in use, or whole by now.
    fn check_torn(&self, entry: &Entry, findings: &mut Findings) -> Result<(), TreeError> {
        let slug = entry.slug()?;
        let Some(_lock) = FileLock::try_exclusive(&self.layout.tree_lock(&slug))? else {
            return Ok(());
        };
        let Ok(_nobody_inside) = Lease::exclude_holders(&self.layout, &slug) else {
            return Ok(());
        };
        if !self.is_torn(entry) {
            return Ok(());
        }
        let message = format!("{} was torn by a power cut; git cannot open it", entry.path);
        findings.repair("torn_tree", &entry.name, message, || {
            let aside = self.set_torn_aside(&slug)?;
            Ok(Some(format!("moved to {}", aside.display())))
        })
    }

    /// True if git's files about the worktree have lost their content.
    pub(crate) fn is_torn(&self, entry: &Entry) -> bool {
        let tree = entry.path();
        if !tree.is_dir() {
            return false;
        }
        let dot_git = tree.join(".git");
        let records = self.records_of(entry);
        // Where a person works, missing files may have been deleted on purpose.
        let gone = !dot_git.exists() || records.is_empty();
        if files::has_no_text(&dot_git) || (gone && entry.agent.is_some()) {
            return true;
        }
        let torn = |admin: &PathBuf| {
            let texts = ["HEAD", "commondir", "gitdir"];
            texts
                .iter()
                .any(|file| files::has_no_text(&admin.join(file)))
                || is_no_index(&admin.join("index"))
        };
        if records.iter().any(torn) {
            return true;
        }
        self.branch_file(entry)
            .is_some_and(|file| self.leads_nowhere(&file))
    }

    /// git's directories for the worktree, by their content or their names.
    fn records_of(&self, entry: &Entry) -> Vec<PathBuf> {
        let mut found: Vec<PathBuf> = files::admin_of(&self.layout, entry.path())
            .into_iter()
            .chain(admin::find(&self.layout, entry.path()))
            .collect();
        if let (true, Ok(slug)) = (found.is_empty(), entry.slug()) {
            let named = self.layout.admin_dirs().join(slug.flat());
            found.extend(Some(named).filter(|dir| dir.is_dir()));
        }
        found.dedup();
        found
    }

    fn branch_file(&self, entry: &Entry) -> Option<PathBuf> {
        let file = self
            .layout
            .common
            .join("refs/heads")
            .join(entry.branch.as_ref()?);
        file.is_file().then_some(file)
    }

    /// True if a ref is empty, or names a missing commit.
    fn leads_nowhere(&self, reference: &Path) -> bool {
        let text = atomic::read(reference).ok().flatten().unwrap_or_default();
        let text = String::from_utf8_lossy(&text).trim().to_owned();
        !files::is_oid(&text) || !self.has_commit(&text)
    }

    /// Moves the remains of a worktree to the trash. Its lock is held, and no process is inside.
    pub(crate) fn set_torn_aside(&self, slug: &Slug) -> Result<PathBuf, TreeError> {
        let mut section = self.section()?;
        let entry = section.entry(slug)?.clone();
        let id = next_id(self, &mut section, slug)?;
        let trash = self.layout.trash().join(&id);
        store::home::create_private_dir(&trash)?;
        let records = self.records_of(&entry);
        let branch = self
            .branch_file(&entry)
            .filter(|file| self.leads_nowhere(file));
        if std::fs::symlink_metadata(entry.path()).is_ok() {
            atomic::rename(entry.path(), &trash.join("tree"))?;
        }
        if let Some(admin) = records.first() {
            atomic::rename(admin, &trash.join("admin"))?;
        }
        // git cannot delete a ref that leads nowhere, and takes its log for one, too.
        if let (Some(branch), Some(name)) = (branch, &entry.branch) {
            atomic::rename(&branch, &trash.join("branch"))?;
            let log = self.layout.common.join("logs/refs/heads").join(name);
            if log.is_file() {
                atomic::rename(&log, &trash.join("branch.log"))?;
            }
        }
        self.make_durable()?;
        let at = self.now();
        let admin = records.first().map(|admin| name_of(admin));
        section.entry(slug)?.set_removed(Trashed {
            id,
            at,
            admin: admin.unwrap_or_default(),
            ..Trashed::default()
        });
        section.save()?;
        Ok(trash)
    }
}

fn is_no_index(path: &Path) -> bool {
    match atomic::read(path) {
        Ok(Some(bytes)) => !bytes.starts_with(b"DIRC"),
        _ => false,
    }
}

/// Loose objects without content. git publishes an object whole, so only a power cut explains one.
fn empty_objects(common: &Path) -> Vec<PathBuf> {
    let hex = |name: &str, len: &[usize]| {
        len.contains(&name.len()) && name.bytes().all(|byte| byte.is_ascii_hexdigit())
    };
    let entries = |dir: &Path| std::fs::read_dir(dir).into_iter().flatten().flatten();
    let named = |entry: &std::fs::DirEntry, len: &[usize]| {
        entry
            .file_name()
            .to_str()
            .is_some_and(|name| hex(name, len))
    };
    let mut empty = Vec::new();
    let dirs = entries(&common.join("objects"));
    for dir in dirs.filter(|dir| named(dir, &[2])) {
        let files = entries(&dir.path()).filter(|file| named(file, &[38, 62]));
        let files = files.filter(|file| file.metadata().is_ok_and(|meta| meta.len() == 0));
        empty.extend(files.map(|file| file.path()));
    }
    empty
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_empty_objects_count() {
        let dir = tempfile::tempdir().unwrap();
        let objects = dir.path().join("objects");
        let put = |name: &str, text: &[u8]| {
            let path = objects.join(name);
            store::home::create_dir(path.parent().unwrap()).unwrap();
            atomic::replace(
                path.parent().unwrap(),
                &path,
                text,
                atomic::Durability::Relaxed,
            )
            .unwrap();
            path
        };
        let rest = "0".repeat(38);
        let empty = put(&format!("ab/{rest}"), b"");
        put(&format!("cd/{rest}"), b"x");
        put("ab/tmp_obj_1", b"");
        put("pack/pack-1.keep", b"");
        assert_eq!(empty_objects(dir.path()), [empty]);
    }
}
