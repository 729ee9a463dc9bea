//! Removes ccb's leftovers in a repository, one at a time.

use std::path::Path;

use store::atomic::{self, Durability};
use store::lock::FileLock;

use crate::error::TreeError;
use crate::git::admin;
use crate::registry::{Entry, Registry};
use crate::remove::leftovers::EXCLUDED;
use crate::remove::rescue::prefix;
use crate::remove::{GcVerdict, Keeps, Leftover, LeftoverKind, RemoveRequest};
use crate::slug::Slug;
use crate::trees::Trees;

impl Trees {
    /// Removes one of them; `insist` to remove its work, too. `false` if it must be kept.
    pub fn drop_leftover(&self, one: &Leftover, insist: bool) -> Result<bool, TreeError> {
        match &one.keeps {
            Some(Keeps::InUse(_)) => return Ok(false),
            Some(Keeps::Work(_)) if !insist => return Ok(false),
            _ => {}
        }
        match one.kind {
            LeftoverKind::Worktree => self.drop_worktree(&Slug::new(&one.name)?, insist),
            LeftoverKind::Pool => self.drop_pooled(&one.name),
            LeftoverKind::Check => {
                self.drop_check_trees(true)?;
                Ok(!self.check_trees().contains(&one.name))
            }
            LeftoverKind::Trash => self.drop_trash(&one.name),
            LeftoverKind::Refs => self.drop_refs(&format!("refs/ccb/{}", one.name)),
            LeftoverKind::Branch => self.drop_branch(&one.name, insist),
            LeftoverKind::Logs => {
                store::tree::delete(&self.layout.logs())?;
                Ok(true)
            }
            LeftoverKind::Exclude => self.drop_exclude_line(),
            LeftoverKind::Records => self.drop_records(),
        }
    }

    fn drop_worktree(&self, slug: &Slug, insist: bool) -> Result<bool, TreeError> {
        let entry = self.get(slug)?;
        if !insist && matches!(self.judge(&entry), GcVerdict::Stays(_)) {
            return Ok(false);
        }
        let request = RemoveRequest {
            discard: true,
            ..RemoveRequest::default()
        };
        let removed = self.remove(slug, &request)?;
        if let Some(trash) = &removed.entry.trash {
            self.drop_trash(&trash.id)?;
        }
        Ok(true)
    }

    fn drop_pooled(&self, name: &str) -> Result<bool, TreeError> {
        let pool = Registry::load(&self.layout)?.pool;
        let Some(pooled) = pool.into_iter().find(|one| one.tree.name == name) else {
            return Ok(true);
        };
        let slug = pooled.tree.slug()?;
        {
            let _lock = self.tree_lock(&slug)?;
            if !Registry::load(&self.layout)?.pool.contains(&pooled) {
                return Ok(false);
            }
            self.retire(&pooled)?;
        }
        let registry = Registry::load(&self.layout)?;
        let gone = registry
            .last_removed(&slug)
            .and_then(|entry| entry.trash.clone());
        match gone.filter(|trash| trash.clean) {
            Some(trash) => self.drop_trash(&trash.id),
            None => Ok(true),
        }
    }

    /// Deletes a removed worktree and everything that keeps parts of it.
    fn drop_trash(&self, id: &str) -> Result<bool, TreeError> {
        let registry = Registry::load(&self.layout)?;
        let of_it = |entry: &&Entry| entry.trash.as_ref().is_some_and(|trash| trash.id == id);
        if let Some(entry) = registry.worktrees.iter().find(of_it) {
            let lock = self.layout.tree_lock(&entry.slug()?);
            let Some(_lock) = FileLock::try_exclusive(&lock)? else {
                return Ok(false);
            };
            if let Some(trash) = &entry.trash {
                self.delete_trashed(trash)?;
            }
        }
        self.drop_refs(&prefix(id))
    }

    fn drop_refs(&self, prefix: &str) -> Result<bool, TreeError> {
        let lines = self
            .layout
            .git("for-each-ref")
            .args(["--format=delete %(refname) %(objectname)", prefix])
            .lines()?;
        if !lines.is_empty() {
            let input = format!("{}\n", lines.join("\n"));
            let git = self.layout.git("update-ref").arg("--stdin");
            git.input(input.into_bytes()).run()?;
        }
        Ok(true)
    }

    fn drop_branch(&self, branch: &str, insist: bool) -> Result<bool, TreeError> {
        if admin::is_checked_out(&self.layout, branch)? || (!insist && self.only_here(branch)?) {
            return Ok(false);
        }
        let reference = format!("refs/heads/{branch}");
        if let Some(tip) = self.layout.history().tip(&reference)? {
            admin::delete_ref(&self.layout, &reference, &tip)?;
        }
        Ok(true)
    }

    /// Deletes the line that hides worktrees, unless one still exists.
    fn drop_exclude_line(&self) -> Result<bool, TreeError> {
        let trees = self.layout.trees();
        let some = std::fs::read_dir(&trees).is_ok_and(|mut dir| dir.next().is_some());
        if some {
            return Ok(false);
        }
        let lock = self.layout.locks().join("exclude");
        let timeout = self.options.lock_timeout;
        let _lock = FileLock::exclusive(&lock, "the list of ignored files", timeout)?;
        let path = self.exclude_file();
        let bytes = atomic::read(&path)?.unwrap_or_default();
        let lines = bytes.split_inclusive(|byte| *byte == b'\n');
        let kept: Vec<u8> = lines
            .filter(|line| line.trim_ascii() != EXCLUDED.as_bytes())
            .flatten()
            .copied()
            .collect();
        atomic::replace_keeping_mode(&self.layout.tmp(), &path, &kept, Durability::Full)?;
        for dir in [trees.as_path(), &self.layout.main.join(".claude")] {
            // ccb's if it is empty.
            std::fs::remove_dir(dir).ok();
        }
        Ok(true)
    }

    /// Deletes the records, last of all: without them ccb was never here.
    fn drop_records(&self) -> Result<bool, TreeError> {
        let registry = Registry::load(&self.layout)?;
        let trash = self.layout.trash();
        let some = |dir: &Path| std::fs::read_dir(dir).is_ok_and(|mut dir| dir.next().is_some());
        if registry.there().next().is_some() || !registry.pool.is_empty() || some(&trash) {
            return Ok(false);
        }
        if let Some(dir) = self.layout.registry().parent() {
            store::tree::delete(dir)?;
        }
        Ok(true)
    }
}
