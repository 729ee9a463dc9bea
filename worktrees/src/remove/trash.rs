//! Empties the trash: the files of a removed worktree become a ref, then their directory is
//! deleted.
//!
//! A snapshot is byte for byte what was there, without git's conversions. If there can be none (too
//! large, a repository inside, a file that cannot be read) the directory is kept, and the caller
//! gets the reason.

use std::collections::BTreeSet;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use store::atomic;
use store::clock::parse_rfc3339;
use store::fault::reached;
use store::lock::FileLock;
use store::tree::{device, walk};

use crate::error::TreeError;
use crate::fault;
use crate::git::{Git, admin, path_from, zero_split};
use crate::layout::Layout;
use crate::registry::{Entry, Registry, Trashed, TreeStatus, removed};
use crate::remove::rescue::{commit, prefix, refs_of, tree_of_index_info, write_blobs};
use crate::trees::Trees;

/// A removed worktree whose time in the trash is over.
#[derive(Debug)]
pub struct Overdue {
    /// The worktree.
    pub entry: Entry,
    /// The reason why its directory must be kept; `None` if it need not.
    pub stays: Option<String>,
}

/// The reason why a directory is kept in the trash, in words.
#[derive(Debug)]
struct Stays(String);

impl<E: std::error::Error> From<E> for Stays {
    fn from(error: E) -> Self {
        Self(error.to_string())
    }
}

impl Trees {
    /// The worktrees whose time in the trash is over.
    pub fn overdue(&self) -> Result<Vec<Entry>, TreeError> {
        let limit = self.days_ago(self.options.trash_days);
        let registry = Registry::load(&self.layout)?;
        let old = |entry: &Entry| {
            // If a marked directory exists, its deletion was interrupted.
            let there =
                |trash: &&Trashed| !trash.emptied || self.layout.trash().join(&trash.id).exists();
            let trash = entry.trash.as_ref().filter(there);
            let at = trash.and_then(|trash| parse_rfc3339(&trash.at));
            entry.status == TreeStatus::Removed
                && entry.op.is_none()
                && at.is_some_and(|at| at <= limit)
        };
        Ok(registry.worktrees.into_iter().filter(old).collect())
    }

    /// Deletes the directories of those, once a ref has their files.
    pub fn empty_trash(&self) -> Result<Vec<Overdue>, TreeError> {
        let mut done = Vec::new();
        for entry in self.overdue()? {
            let Some(trash) = entry.trash.clone() else {
                continue;
            };
            let Some(_lock) = FileLock::try_exclusive(&self.layout.tree_lock(&entry.slug()?))?
            else {
                continue;
            };
            let stays = self.empty(&entry, &trash).err().map(|stays| stays.0);
            done.push(Overdue { entry, stays });
        }
        Ok(done)
    }

    fn empty(&self, entry: &Entry, trash: &Trashed) -> Result<(), Stays> {
        let dir = self.layout.trash().join(&trash.id);
        let tree = dir.join("tree");
        if tree.exists() && !trash.emptied {
            self.keep_files(entry, trash, &dir)?;
        }
        reached(fault::TRASH_SNAPSHOT);
        Ok(self.delete_trashed(trash)?)
    }

    pub(crate) fn delete_trashed(&self, trash: &Trashed) -> Result<(), TreeError> {
        // Marked first: a half deleted worktree must not be restored.
        let mut section = self.section()?;
        if let Some(trash) = section
            .registry
            .trashed_mut(&trash.id)
            .and_then(|entry| entry.trash.as_mut())
        {
            trash.emptied = true;
        }
        section.save()?;
        drop(section);
        self.delete_emptied(trash)
    }

    /// Deletes the directory of a worktree that is marked as emptied, and lists it as fully
    /// deleted.
    pub(crate) fn delete_emptied(&self, trash: &Trashed) -> Result<(), TreeError> {
        reached(fault::TRASH_EMPTIED);
        store::tree::delete(&self.layout.trash().join(&trash.id))?;
        removed::add(&self.layout, &mut self.section()?, &trash.id)
    }

    /// Makes `refs/ccb/rescue/<id>/files`, unless the files are those of a commit in the
    /// repository.
    fn keep_files(&self, entry: &Entry, trash: &Trashed, dir: &Path) -> Result<(), Stays> {
        let refs = refs_of(&self.layout, &trash.id)?;
        let find = |what: &str| {
            let name = format!("{}/{what}", prefix(&trash.id));
            refs.iter().find(|(found, _)| *found == name)
        };
        if find("files").is_some() {
            return Ok(());
        }
        let tree = self.snapshot(&dir.join("tree"), &dir.join("admin"), trash.rescue_ignored)?;
        let head = find("head");
        if let (Some((name, head)), true) = (head, trash.clean) {
            let history = self.layout.history();
            if history.tree_of(head)? == tree {
                // It has nothing but the base. If that is still part of a branch, no ref is needed.
                let here = history.resolve("HEAD")?;
                if history.is_ancestor(head, &here)? {
                    admin::delete_ref(&self.layout, name, head)?;
                }
                return Ok(());
            }
        }
        let parents: Vec<&str> = head.iter().map(|(_, oid)| oid.as_str()).collect();
        let message = format!("Files of worktree {}", entry.name);
        let made = commit(&self.layout, &tree, &parents, &message, self.now_ms())?;
        let reference = (format!("{}/files", prefix(&trash.id)), made);
        admin::create_refs(&self.layout, &[reference])?;
        Ok(())
    }

    /// The git tree of the files below `tree`.
    fn snapshot(&self, tree: &Path, admin: &Path, with_ignored: bool) -> Result<String, Stays> {
        check_snapshot_possible(tree)?;
        let paths = self.files_to_keep(tree, admin, with_ignored)?;
        let mut entries: Vec<(PathBuf, &str, String)> = Vec::new();
        let mut plain: Vec<(PathBuf, &str)> = Vec::new();
        let mut bytes = 0;
        for path in paths {
            let full = tree.join(&path);
            // Deleted in the worktree, or outside the patterns of a sparse one.
            let Ok(meta) = std::fs::symlink_metadata(&full) else {
                continue;
            };
            bytes += meta.len();
            if meta.is_symlink() {
                let target =
                    std::fs::read_link(&full).map_err(|error| unreadable(&path, &error))?;
                let oid = write_blob(&self.layout, target.as_os_str().as_bytes().to_vec())?;
                entries.push((path, "120000", oid));
            } else if meta.is_file() {
                let run = meta.permissions().mode() & 0o100 != 0;
                let mode = if run { "100755" } else { "100644" };
                if path.as_os_str().as_bytes().contains(&b'\n') {
                    let content = atomic::read(&full)?.unwrap_or_default();
                    let oid = write_blob(&self.layout, content)?;
                    entries.push((path, mode, oid));
                } else {
                    plain.push((path, mode));
                }
            }
            if bytes > self.options.rescue_max_bytes {
                let limit = self.options.rescue_max_bytes;
                return Err(Stays(format!("its files are larger than {limit} bytes")));
            }
        }
        let names: Vec<PathBuf> = plain.iter().map(|(path, _)| path.clone()).collect();
        let oids = write_blobs(&self.layout, tree, &names)?;
        for ((path, mode), oid) in plain.into_iter().zip(oids) {
            entries.push((path, mode, oid));
        }
        let mut input = Vec::new();
        for (path, mode, oid) in entries {
            input.extend_from_slice(format!("{mode} {oid} 0\t").as_bytes());
            input.extend_from_slice(path.as_os_str().as_bytes());
            input.push(0);
        }
        Ok(tree_of_index_info(&self.layout, input)?)
    }

    /// The files that git tracks in the worktree, the untracked ones, and the ignored ones if
    /// wanted.
    fn files_to_keep(
        &self,
        tree: &Path,
        admin: &Path,
        with_ignored: bool,
    ) -> Result<BTreeSet<PathBuf>, TreeError> {
        // Seen from its present place, the shared directory is elsewhere. Undo restores the file.
        let commondir = admin.join("commondir");
        self.layout.write_git_file(&commondir, "../../../..\n")?;
        let list = |args: &[&str]| {
            Git::at(tree, "ls-files")
                .args(["-z", "--exclude-standard"])
                .args(args)
                .env("GIT_DIR", admin)
                .env("GIT_WORK_TREE", tree)
                .run()
        };
        let mut output = list(&["--cached", "--others"])?;
        if with_ignored {
            output.extend(list(&["--others", "--ignored"])?);
        }
        let paths = zero_split(&output).map(path_from);
        Ok(paths.filter(|path| path != Path::new(".git")).collect())
    }
}

fn unreadable(path: &Path, error: &std::io::Error) -> Stays {
    Stays(format!("{} cannot be read: {error}", path.display()))
}

fn write_blob(layout: &Layout, content: Vec<u8>) -> Result<String, TreeError> {
    layout
        .git("hash-object")
        .args(["-w", "--no-filters", "--stdin"])
        .input(content)
        .line()
}

/// Refuses if a repository is inside, which has a history of its own, or another file system.
fn check_snapshot_possible(tree: &Path) -> Result<(), Stays> {
    let here = device(tree)?;
    let mut found = None;
    walk(tree, &mut |path, meta| {
        let inside =
            path.file_name().is_some_and(|name| name == ".git") && path.parent() != Some(tree);
        if inside {
            found = Some("there is a repository inside");
        } else if meta.dev() != here {
            found = Some("another file system is mounted inside");
        }
        Ok(found.is_none())
    })?;
    match found {
        Some(why) => Err(Stays(why.into())),
        None => Ok(()),
    }
}
