//! The private repository itself: a few small files whose form git documents and keeps, written
//! without starting git.
//!
//! The leftovers of the last stay in the same worktree are used again: objects, branches, stashes,
//! an unfinished rebase. Every file in it that decides what git runs or where it looks is written
//! anew.

use std::path::Path;

use git2::Config;
use store::atomic::{self, Durability};
use store::home::create_private_dir;

use crate::error::TreeError;
use crate::git::config_text::{quoted, setting};
use crate::git::zero_split;
use crate::layout::{Layout, entries, name_of};
use crate::private::Claims;

/// Tells people, and programs that look around, what the directory is.
const NOTE: &str = "ccb-private";
const NOTE_TEXT: &str = "This .git directory is an agent's own, for as long as it works here. Its \
                         commits are taken over when it ends; see docs/security.md of ccb.\n";

/// Files that are never used again: they decide what git does.
const DROPPED: &[&str] = &[
    "HEAD",
    "branches",
    "commondir",
    "config",
    "config.worktree",
    "description",
    "gitdir",
    "hooks",
    "info",
    "packed-refs",
    "reftable",
    "remotes",
    "shallow",
    "worktrees",
    NOTE,
];

/// Settings that are not the agent's: they say where the repository is, how it is stored, or where
/// to read more settings (which were read).
const NOT_COPIED: &[&str] = &[
    "core.bare",
    "core.logallrefupdates",
    "core.repositoryformatversion",
    "core.splitindex",
    "core.worktree",
    "index.sparse",
];

/// The wanted private repository.
pub(super) struct Wanted<'a> {
    pub(super) layout: &'a Layout,
    /// git's own directory for the worktree.
    pub(super) admin: &'a Path,
    /// The worktree's branch, by its full name.
    pub(super) branch: &'a str,
    /// The commit HEAD is at.
    pub(super) tip: &'a str,
    /// True if the agent continues an unfinished operation, for which HEAD and index are its own.
    pub(super) goes_on: bool,
}

impl Wanted<'_> {
    /// Makes it at `dir`, reusing the files there.
    pub(super) fn make(&self, dir: &Path) -> Result<(), TreeError> {
        let kept = Claims::read(dir);
        let is_dir = |path: &Path| std::fs::symlink_metadata(path).is_ok_and(|it| it.is_dir());
        if !is_dir(dir) {
            store::tree::delete(dir)?;
        }
        create_private_dir(dir)?;
        for path in entries(dir) {
            let name = name_of(&path);
            let odd =
                !is_dir(&path) && std::fs::symlink_metadata(&path).is_ok_and(|it| !it.is_file());
            if odd || DROPPED.contains(&name.as_str()) || name.ends_with(".lock") {
                store::tree::delete(&path)?;
            }
        }
        for part in ["objects", "refs", "info"] {
            if !is_dir(&dir.join(part)) {
                store::tree::delete(&dir.join(part))?;
                create_private_dir(&dir.join(part))?;
            }
        }
        store::tree::delete(&dir.join("objects/info"))?;
        create_private_dir(&dir.join("objects/info"))?;
        create_private_dir(&dir.join("refs/heads"))?;
        let alternates = format!("{}\n", self.layout.common.join("objects").display());
        put(dir, "objects/info/alternates", alternates.as_bytes())?;
        put(dir, "config", self.config()?.as_bytes())?;
        self.copy_info(dir)?;
        self.put_refs(dir, &kept)?;
        if !self.goes_on {
            self.copy_index(dir)?;
        }
        // Without HEAD it is no repository: that comes last.
        put(dir, NOTE, NOTE_TEXT.as_bytes())?;
        let head = match (&kept.head, kept.detached, self.goes_on) {
            (Some(head), true, true) => format!("{head}\n"),
            _ => format!("ref: {}\n", self.branch),
        };
        put(dir, "HEAD", head.as_bytes())
    }

    /// The repository's own settings and those of the worktree, without those about its place.
    fn config(&self) -> Result<String, TreeError> {
        let common = &self.layout.common;
        let mut files = vec![common.join("config")];
        let mut extensions = String::new();
        if self.tip.len() == 64 {
            extensions.push_str("\tobjectFormat = sha256\n");
        }
        let own = self.admin.join("config.worktree");
        if own.is_file() {
            files.push(own);
        }
        let mut copied = String::new();
        let mut has_hooks_path = false;
        for file in &files {
            for (name, value) in self.settings(file)? {
                if name == "extensions.partialclone" {
                    extensions.push_str(&format!("\tpartialClone = {}\n", quoted(&value)));
                }
                let elsewhere = ["extensions.", "include.", "includeif."]
                    .iter()
                    .any(|start| name.starts_with(start));
                if !elsewhere && !NOT_COPIED.contains(&name.as_str()) {
                    has_hooks_path |= name == "core.hookspath";
                    copied.push_str(&setting(&name, &value));
                }
            }
        }
        let version = u8::from(!extensions.is_empty());
        let mut config = format!(
            "[core]\n\trepositoryformatversion = {version}\n\tbare = false\n\
             \tlogAllRefUpdates = true\n\tsplitIndex = false\n[index]\n\tsparse = false\n"
        );
        if !extensions.is_empty() {
            config.push_str("[extensions]\n");
            config.push_str(&extensions);
        }
        config.push_str(&copied);
        // The repository's hooks are those of its worktrees, too.
        if !has_hooks_path && self.has_hooks() && !names_hooks_elsewhere() {
            let hooks = common.join("hooks").to_string_lossy().into_owned();
            config.push_str(&setting("core.hooksPath", &hooks));
        }
        Ok(config)
    }

    fn has_hooks(&self) -> bool {
        let hooks = entries(&self.layout.common.join("hooks"));
        hooks.iter().any(|path| !name_of(path).ends_with(".sample"))
    }

    /// The settings in a file and in those it includes, in order.
    fn settings(&self, file: &Path) -> Result<Vec<(String, String)>, TreeError> {
        if let Some(settings) = settings_in_process(file) {
            return Ok(settings);
        }
        let listed = self
            .layout
            .git("config")
            .args(["--list", "-z", "--includes", "--file"])
            .arg(file)
            .run()?;
        let settings = zero_split(&listed).map(|entry| {
            let text = String::from_utf8_lossy(entry);
            // An entry without a value means "true".
            let (name, value) = text.split_once('\n').unwrap_or((&text, "true"));
            (name.to_owned(), value.to_owned())
        });
        Ok(settings.collect())
    }

    /// Copies the rules for ignored files, attributes and sparse checkouts.
    fn copy_info(&self, dir: &Path) -> Result<(), TreeError> {
        let common = &self.layout.common;
        for (from, name) in [
            (common, "info/exclude"),
            (common, "info/attributes"),
            (common, "shallow"),
        ] {
            copy(from, dir, name)?;
        }
        let admin = self.admin.to_owned();
        copy(&admin, dir, "info/sparse-checkout")
    }

    /// Writes the repository's branches and tags, and those that only the agent has; leaves out the
    /// branches of other worktrees, which are short-lived.
    fn put_refs(&self, dir: &Path, kept: &Claims) -> Result<(), TreeError> {
        let mut refs = self.layout.history().branches_and_tags()?;
        refs.retain(|name, _| !name.starts_with("refs/heads/worktree/"));
        for (name, oid) in &kept.refs {
            refs.entry(name.clone()).or_insert_with(|| oid.clone());
        }
        if !self.goes_on {
            refs.insert(self.branch.to_owned(), self.tip.to_owned());
            store::tree::delete(&dir.join(self.branch))?;
            store::tree::delete(&dir.join(format!("{}.lock", self.branch)))?;
        }
        let lines = refs.iter().map(|(name, oid)| format!("{oid} {name}\n"));
        put(dir, "packed-refs", lines.collect::<String>().as_bytes())
    }

    /// Copies the index with its time, by which git knows which of the times in it are reliable.
    fn copy_index(&self, dir: &Path) -> Result<(), TreeError> {
        for path in entries(dir).into_iter().chain(entries(self.admin)) {
            let name = name_of(&path);
            if name != "index" && !name.starts_with("sharedindex.") {
                continue;
            }
            let ours = dir.join(&name);
            store::tree::delete(&ours)?;
            let theirs = self.admin.join(&name);
            if theirs.is_file() {
                store::tree::copy_file(&theirs, &ours)?;
            }
        }
        Ok(())
    }
}

/// `None` where libgit2 cannot read it as git does.
fn settings_in_process(file: &Path) -> Option<Vec<(String, String)>> {
    let config = Config::open(file).ok()?;
    let mut entries = config.entries(None).ok()?;
    let mut found = Vec::new();
    while let Some(entry) = entries.next() {
        let entry = entry.ok()?;
        let name = entry.name().ok()?.to_owned();
        if name.starts_with("includeif.") {
            return None;
        }
        let value = match entry.has_value() {
            true => entry.value().ok()?.to_owned(),
            false => "true".to_owned(),
        };
        found.push((name, value));
    }
    Some(found)
}

/// True if the user has named a directory of hooks for all repositories.
fn names_hooks_elsewhere() -> bool {
    let config = Config::open_default();
    config.is_ok_and(|config| config.get_entry("core.hookspath").is_ok())
}

fn copy(from: &Path, dir: &Path, name: &str) -> Result<(), TreeError> {
    match atomic::read(&from.join(name))? {
        Some(bytes) => put(dir, name, &bytes),
        None => Ok(()),
    }
}

fn put(dir: &Path, name: &str, bytes: &[u8]) -> Result<(), TreeError> {
    Ok(atomic::replace(
        dir,
        &dir.join(name),
        bytes,
        Durability::Relaxed,
    )?)
}
