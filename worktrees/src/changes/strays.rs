//! Trees and branches that somebody made past the registry, found by when they were made.
//!
//! An agent that makes a worktree of its own and commits there leaves its work where nobody
//! looks. git writes down when a tree's record and a branch's first line of history were made;
//! what is younger than a run and not in the registry came into being during it.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use store::atomic;

use crate::error::TreeError;
use crate::git::{Head, History, admin, files};
use crate::private;
use crate::registry::{Entry, Registry};
use crate::trees::{Trees, modified_ms};

/// The branches of our worktrees begin with this.
const BRANCH_PREFIX: &str = "worktree/";
/// File times lag behind the clock by a tick of the kernel, at most this long. A longer allowance
/// would take what an agent made just before for the next one's.
const TICK_MS: i64 = 10;
/// How deep names of branches nest.
const MAX_DEPTH: usize = 16;

/// A tree or branch that is not in the registry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stray {
    /// Where the tree is, if it is one.
    pub path: Option<PathBuf>,
    /// The branch, if there is one.
    pub branch: Option<String>,
    /// The worktree of the agent in whose own `.git` it is, if it is in one.
    pub kept_with: Option<String>,
    /// How many commits it has that are neither in the result nor on the main tree's branch.
    pub commits: usize,
}

impl Trees {
    /// The trees, and the branches with commits of their own, that were made since then. What is
    /// in the tree at `own` now, or in `result`, does not count.
    pub fn strays(
        &self,
        since_ms: i64,
        own: &Path,
        result: Option<&str>,
    ) -> Result<Vec<Stray>, TreeError> {
        let since = since_ms - TICK_MS;
        let here = History::open(own).resolve("HEAD").ok();
        let results: Vec<&str> = here.as_deref().into_iter().chain(result).collect();
        let registry = Registry::load(&self.layout)?;
        let mut known = registry.paths();
        known.extend(registry.worktrees.iter().map(Entry::path));
        let branches: BTreeSet<&str> = registry
            .worktrees
            .iter()
            .filter_map(|entry| entry.branch.as_deref())
            .collect();
        let mut strays = Vec::new();
        let mut checked_out = BTreeSet::new();
        for record in admin::all(&self.layout) {
            let Some(path) = files::tree_of(&record).filter(|path| !known.contains(path.as_path()))
            else {
                continue;
            };
            if !is_younger(&record.join("commondir"), since) || self.is_internal(&path) {
                continue;
            }
            let (branch, tip) = match files::head(&self.layout, &record) {
                Head::Branch(name, tip) => {
                    let short = name.strip_prefix("refs/heads/").unwrap_or(&name);
                    (Some(short.to_owned()), tip)
                }
                Head::Detached(tip) => (None, Some(tip)),
                Head::Elsewhere => (None, None),
            };
            checked_out.extend(branch.clone());
            let commits = tip.map_or(0, |tip| self.beyond(&tip, &results));
            strays.push(Stray {
                path: Some(path),
                branch,
                kept_with: None,
                commits,
            });
        }
        for branch in self.young_branches(since) {
            let ours = branch.starts_with(BRANCH_PREFIX) || branches.contains(branch.as_str());
            if ours || checked_out.contains(&branch) {
                continue;
            }
            let commits = self.beyond(&format!("refs/heads/{branch}"), &results);
            if commits > 0 {
                strays.push(Stray {
                    path: None,
                    branch: Some(branch),
                    kept_with: None,
                    commits,
                });
            }
        }
        self.add_private(own, &results, &mut strays)?;
        Ok(strays)
    }

    /// Adds what was made in the `.git` of its own that the agent in the tree at `own` had.
    fn add_private(
        &self,
        own: &Path,
        results: &[&str],
        strays: &mut Vec<Stray>,
    ) -> Result<(), TreeError> {
        let registry = Registry::load(&self.layout)?;
        let Some(entry) = registry.there().find(|entry| own.starts_with(entry.path())) else {
            return Ok(());
        };
        let base = entry.base.as_deref();
        let known: Vec<&str> = results.iter().copied().chain(base).collect();
        for branch in private::own_branches(&self.layout, entry.path())? {
            strays.push(Stray {
                commits: self.count_private(entry.path(), &branch.tip, &known),
                path: branch.path,
                branch: Some(branch.name),
                kept_with: Some(entry.name.clone()),
            });
        }
        Ok(())
    }

    /// True if a tree is in a place of ours, such as one that a check is made in.
    fn is_internal(&self, path: &Path) -> bool {
        path.starts_with(self.layout.common.join("ccb"))
    }

    /// Branches whose history began since then. Each has a file, which is not even looked at if
    /// none has come to its directory since: a repository can have thousands of branches.
    fn young_branches(&self, since_ms: i64) -> Vec<String> {
        let root = self.layout.common.join("logs/refs/heads");
        let mut found = Vec::new();
        let mut open = vec![(root.clone(), 0)];
        while let Some((dir, depth)) = open.pop() {
            let may_have_new = is_younger(&dir, since_ms);
            for entry in std::fs::read_dir(&dir).into_iter().flatten().flatten() {
                let is_dir = entry.file_type().is_ok_and(|kind| kind.is_dir());
                if is_dir && depth < MAX_DEPTH {
                    open.push((entry.path(), depth + 1));
                }
                if is_dir || !may_have_new {
                    continue;
                }
                let path = entry.path();
                if is_younger(&path, since_ms) && began(&path) >= Some(since_ms / 1000) {
                    let name = path.strip_prefix(&root).ok().and_then(Path::to_str);
                    found.extend(name.map(str::to_owned));
                }
            }
        }
        found.sort();
        found
    }

    fn beyond(&self, tip: &str, results: &[&str]) -> usize {
        let mut args = vec!["--count", tip, "--not", "HEAD"];
        args.extend(results);
        let count = self.layout.git("rev-list").args(args).line();
        count.map_or(0, |count| count.parse().unwrap_or(0))
    }
}

fn is_younger(file: &Path, since_ms: i64) -> bool {
    modified_ms(file).is_some_and(|ms| ms >= since_ms)
}

/// When the history in this file began, in seconds: the time in its first line, if that says
/// that there was nothing before, and not that ccb made it.
fn began(log: &Path) -> Option<i64> {
    let text = atomic::read(log).ok().flatten()?;
    let end = text.iter().position(|byte| *byte == b'\n')?;
    let first = String::from_utf8_lossy(&text[..end]).into_owned();
    let (who, what) = first.split_once('\t').unwrap_or((&first, ""));
    if !who.starts_with("0000000") || what.starts_with("ccb") {
        return None;
    }
    let mut words = who.rsplit(' ');
    words.next();
    words.next()?.parse().ok()
}
