//! Worktrees and branches that an agent or a user made past the registry, found by their age.
//!
//! An agent that makes a worktree of its own and commits there leaves its work where ccb does not
//! look. git records the creation of a worktree and of a branch's reflog; those that are younger
//! than a run and not in the registry were made during it.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use store::atomic;

use crate::error::TreeError;
use crate::git::{Head, History, admin, files};
use crate::private;
use crate::registry::{Entry, Registry};
use crate::trees::{Trees, modified_ms};

/// The prefix of the branches of ccb's worktrees.
const BRANCH_PREFIX: &str = "worktree/";
/// Maximum lag of file times behind the clock, in milliseconds: one tick of the kernel. A longer
/// allowance would count work of the previous agent for the next one.
const TICK_MS: i64 = 10;
/// Maximum depth of branch names.
const MAX_DEPTH: usize = 16;

/// A worktree or branch that is not in the registry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stray {
    /// The directory of the worktree, if it is one.
    pub path: Option<PathBuf>,
    /// The branch, if there is one.
    pub branch: Option<String>,
    /// The worktree of the agent whose own `.git` has it, if one has.
    pub kept_with: Option<String>,
    /// Commits of it that are neither in the result nor on the main worktree's branch.
    pub commits: usize,
}

impl Trees {
    /// The worktrees, and the branches with commits of their own, that were made since then.
    /// Commits in the worktree at `own` now, or in `result`, do not count.
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

    /// Adds those made in the private `.git` of the agent in the worktree at `own`.
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

    /// True if ccb uses this path itself, such as for the worktree of a check.
    fn is_internal(&self, path: &Path) -> bool {
        path.starts_with(self.layout.common.join("ccb"))
    }

    /// Branches whose history began since then. Each has a file, which is not read if no file was
    /// added to its directory since: a repository can have thousands of branches.
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

/// The start of the history in this file, in seconds: the time in its first line. `None` if that
/// line has a commit before it, or if ccb made it.
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
