//! All traces of ccb in a repository: worktrees, trash, refs, branches, the line in
//! `.git/info/exclude`, logs.
//!
//! No work is lost: a leftover with work that is on no branch says so, and is removed only if the
//! caller insists. A leftover in use is never removed.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use store::atomic;

use crate::error::TreeError;
use crate::git::{Git, SKIP_NESTED, admin};
use crate::registry::{Entry, Registry, TreeStatus, removed};
use crate::remove::GcVerdict;
use crate::remove::rescue::prefix;
use crate::trees::Trees;

/// The line that hides ccb's worktrees from git.
pub(crate) const EXCLUDED: &str = "/.claude/worktrees/";

store::words! {
    /// The kind of a leftover.
    pub enum LeftoverKind {
        /// A worktree.
        Worktree = "worktree",
        /// One that is ready to be handed out.
        Pool = "pool",
        /// One in which checks run.
        Check = "check",
        /// A removed worktree that can be restored.
        Trash = "trash",
        /// Refs under `refs/ccb/`.
        Refs = "refs",
        /// A branch `worktree/…` without a worktree.
        Branch = "branch",
        /// Output of checks and set-ups.
        Logs = "logs",
        /// A line in `.git/info/exclude`.
        Exclude = "exclude",
        /// The list of worktrees, of landings and of events, and locks.
        Records = "records",
    }
}

/// The reason why a leftover is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Keeps {
    /// It is in use, and never removed.
    InUse(String),
    /// It has work that is on no branch; it is removed if the caller insists.
    Work(String),
}

/// A trace of ccb in a repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leftover {
    /// Its kind.
    pub kind: LeftoverKind,
    /// Its name.
    pub name: String,
    /// A description in a few words.
    pub about: String,
    /// Its size on the disk, in bytes.
    pub bytes: u64,
    /// The reason why it is kept; `None` if it can be removed.
    pub keeps: Option<Keeps>,
}

impl Trees {
    /// All traces of ccb in the repository, in the order in which they can be removed.
    pub fn leftovers(&self) -> Result<Vec<Leftover>, TreeError> {
        let registry = Registry::load(&self.layout)?;
        let mut all = Vec::new();
        for entry in registry.there().filter(|entry| !entry.is_internal()) {
            all.push(self.left_worktree(entry));
        }
        for pooled in &registry.pool {
            let path = pooled.tree.path();
            let about = "ready to be handed out";
            all.push(left(
                LeftoverKind::Pool,
                &pooled.tree.name,
                about,
                path,
                None,
            ));
        }
        for name in self.check_trees() {
            let path = self.layout.trees().join(&name);
            all.push(left(LeftoverKind::Check, &name, "for checks", &path, None));
        }
        let trashed = registry
            .worktrees
            .iter()
            .filter(|entry| self.is_in_trash(entry));
        for entry in trashed.clone() {
            all.extend(self.left_in_trash(entry));
        }
        let ids: BTreeSet<&str> = trashed
            .filter_map(|entry| Some(entry.trash.as_ref()?.id.as_str()))
            .collect();
        all.extend(self.left_refs(&registry, &ids)?);
        all.extend(self.left_branches(&registry)?);
        let logs = self.layout.logs();
        if logs.is_dir() && std::fs::read_dir(&logs).is_ok_and(|mut dir| dir.next().is_some()) {
            all.push(left(
                LeftoverKind::Logs,
                "logs",
                "output of checks and set-ups",
                &logs,
                None,
            ));
        }
        if self.has_exclude_line() {
            let about = "hides worktrees from git status";
            let nowhere = Path::new("");
            all.push(left(
                LeftoverKind::Exclude,
                ".git/info/exclude",
                about,
                nowhere,
                None,
            ));
        }
        let records = self.layout.registry();
        if records.parent().is_some_and(Path::is_dir) {
            let about = "the list of worktrees and landings; `ccb undo` needs it";
            let keeps = Some(Keeps::Work("landings can be undone".into()));
            all.push(left(
                LeftoverKind::Records,
                ".git/ccb",
                about,
                &records,
                keeps,
            ));
        }
        Ok(all)
    }

    fn left_worktree(&self, entry: &Entry) -> Leftover {
        let held = entry.slug().and_then(|slug| self.is_held(&slug));
        let (about, keeps) = match (entry.under_way(), held) {
            (Some(what), _) => ("", Some(Keeps::InUse(format!("{what} is under way")))),
            (None, Ok(true)) => ("", Some(Keeps::InUse("it is in use".into()))),
            (None, Err(error)) => ("", Some(Keeps::InUse(error.to_string()))),
            (None, Ok(false)) if entry.hook_based => {
                let why = "a hook made it: only `ccb worktree remove --discard` can remove it";
                ("", Some(Keeps::InUse(why.into())))
            }
            (None, Ok(false)) => match self.judge(entry) {
                GcVerdict::Unchanged => ("unchanged", None),
                GcVerdict::Merged { .. } => ("landed", None),
                GcVerdict::Stays(why) => ("", Some(Keeps::Work(why))),
            },
        };
        left(
            LeftoverKind::Worktree,
            &entry.name,
            about,
            entry.path(),
            keeps,
        )
    }

    fn is_in_trash(&self, entry: &Entry) -> bool {
        let trash = entry.trash.as_ref();
        let there = trash.is_some_and(|trash| self.layout.trash().join(&trash.id).exists());
        entry.status == TreeStatus::Removed && entry.op.is_none() && there
    }

    fn left_in_trash(&self, entry: &Entry) -> Option<Leftover> {
        let trash = entry.trash.as_ref()?;
        let dir = self.layout.trash().join(&trash.id);
        let landed = entry
            .merged
            .as_ref()
            .filter(|one| !one.undone && !one.pending);
        let (about, keeps) = match landed {
            _ if trash.clean => ("unchanged", None),
            Some(landed) if self.has_only(&dir, &landed.head) => ("landed", None),
            _ => {
                let name = &entry.name;
                let why = format!("`ccb worktree undo {name}` restores it");
                ("", Some(Keeps::Work(why)))
            }
        };
        Some(left(LeftoverKind::Trash, &trash.id, about, &dir, keeps))
    }

    /// True if the files of a worktree in the trash are those of the commit, and there are no
    /// others.
    fn has_only(&self, dir: &Path, commit: &str) -> bool {
        let (tree, index) = (dir.join("tree"), dir.join("admin/index"));
        let git = |verb: &str| {
            Git::at(&tree, verb)
                .env("GIT_DIR", &self.layout.common)
                .env("GIT_WORK_TREE", &tree)
                .env("GIT_INDEX_FILE", &index)
        };
        let at = std::fs::read_to_string(dir.join("admin/HEAD")).unwrap_or_default();
        let branch = at.trim().strip_prefix("ref: refs/heads/");
        let head = match branch {
            // The branch was deleted with it; its tip is a ref of ccb's.
            Some(_) => {
                let id = dir.file_name().unwrap_or_default().to_string_lossy();
                let kept = format!("{}/head", prefix(&id));
                self.layout.history().tip(&kept).ok().flatten()
            }
            None => Some(at.trim().to_owned()),
        };
        if head.as_deref().is_some_and(|head| head != commit) {
            return false;
        }
        let refreshed = git("update-index").args(["-q", "--refresh"]).ask();
        let same = git("diff-index")
            .args(["--quiet", SKIP_NESTED, commit, "--"])
            .ask();
        let others = git("ls-files")
            .args(["--others", "--exclude-standard"])
            .run();
        refreshed.is_ok()
            && same.is_ok_and(|(same, _)| same)
            && others.is_ok_and(|others| others.is_empty())
    }

    /// Refs of ccb's that belong to nothing in the trash, grouped by their owner.
    fn left_refs(
        &self,
        registry: &Registry,
        in_trash: &BTreeSet<&str>,
    ) -> Result<Vec<Leftover>, TreeError> {
        let lines = self
            .layout
            .git("for-each-ref")
            .args(["--format=%(refname:lstrip=2) %(objectname)", "refs/ccb/"])
            .lines()?;
        let mut groups: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for line in &lines {
            let Some((name, oid)) = line.split_once(' ') else {
                continue;
            };
            let mut parts = name.splitn(3, '/');
            let group = match (parts.next(), parts.next()) {
                (Some("rescue"), Some(id)) if in_trash.contains(id) => continue,
                (Some(kind), Some(id)) => format!("{kind}/{id}"),
                _ => name.to_owned(),
            };
            groups.entry(group).or_default().push(oid.to_owned());
        }
        let past = removed::all(&self.layout)?;
        let known = || registry.worktrees.iter().chain(&past);
        let mut all = Vec::new();
        for (group, oids) in groups {
            let id = group.strip_prefix("rescue/");
            let of_clean = known().any(|entry| {
                let trash = entry.trash.as_ref();
                trash.is_some_and(|trash| Some(trash.id.as_str()) == id && trash.clean)
            });
            let keeps = match of_clean || self.are_on_branches(&oids)? {
                true => None,
                false => Some(Keeps::Work("it keeps work that is on no branch".into())),
            };
            let nowhere = Path::new("");
            all.push(left(
                LeftoverKind::Refs,
                &group,
                "on a branch",
                nowhere,
                keeps,
            ));
        }
        Ok(all)
    }

    /// True if every one of these commits is part of a branch, a tag or a remote's branch.
    fn are_on_branches(&self, oids: &[String]) -> Result<bool, TreeError> {
        let beyond = self
            .layout
            .git("rev-list")
            .args(["--max-count=1", "--ignore-missing"])
            .args(oids)
            .args(["--not", "--branches", "--remotes", "--tags"])
            .run();
        match beyond {
            Ok(beyond) => Ok(beyond.is_empty()),
            // Not a commit but a file or a directory that was rescued.
            Err(TreeError::Git { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn left_branches(&self, registry: &Registry) -> Result<Vec<Leftover>, TreeError> {
        let names = self
            .layout
            .git("for-each-ref")
            .args(["--format=%(refname:lstrip=2)", "refs/heads/worktree/"])
            .lines()?;
        let used: BTreeSet<&str> = registry
            .there()
            .filter_map(|entry| entry.branch.as_deref())
            .collect();
        let mut all = Vec::new();
        for name in names.iter().filter(|name| !used.contains(name.as_str())) {
            let keeps = match self.only_here(name)? {
                _ if admin::is_checked_out(&self.layout, name)? => {
                    Some(Keeps::InUse("a worktree has it checked out".into()))
                }
                true => Some(Keeps::Work("its commits are on no other branch".into())),
                false => None,
            };
            let nowhere = Path::new("");
            all.push(left(
                LeftoverKind::Branch,
                name,
                "on other branches",
                nowhere,
                keeps,
            ));
        }
        Ok(all)
    }

    /// True if a branch has commits that no other one has.
    pub(crate) fn only_here(&self, branch: &str) -> Result<bool, TreeError> {
        let beyond = self
            .layout
            .git("rev-list")
            .args(["--max-count=1", &format!("refs/heads/{branch}")])
            .args(["--not", &format!("--exclude=refs/heads/{branch}")])
            .args(["--branches", "--remotes", "--tags"])
            .run()?;
        Ok(!beyond.is_empty())
    }

    pub(crate) fn exclude_file(&self) -> std::path::PathBuf {
        let path = self.layout.common.join("info/exclude");
        path.canonicalize().unwrap_or(path)
    }

    fn has_exclude_line(&self) -> bool {
        let text = atomic::read(&self.exclude_file()).ok().flatten();
        let text = text.unwrap_or_default();
        let mut lines = text.split(|byte| *byte == b'\n');
        lines.any(|line| line.trim_ascii() == EXCLUDED.as_bytes())
    }
}

fn left(
    kind: LeftoverKind,
    name: &str,
    about: &str,
    path: &Path,
    keeps: Option<Keeps>,
) -> Leftover {
    Leftover {
        kind,
        name: name.to_owned(),
        about: about.to_owned(),
        bytes: match path.is_dir() {
            true => store::tree::size(path).unwrap_or_default(),
            false => std::fs::metadata(path).map_or(0, |meta| meta.len()),
        },
        keeps,
    }
}
