//! Guards the checkout of the user who runs agents against changes by them. Agents work in
//! worktrees; an agent that follows an absolute path out of its own silently changes the user's
//! files.

use std::path::{Path, PathBuf};

use worktrees::TreeSnapshot;

/// Maximum number of file names shown.
const SHOWN: usize = 5;

/// A checkout as it was when agents began.
#[derive(Debug)]
pub struct Bystander {
    top: PathBuf,
    before: TreeSnapshot,
    /// Paths that change in the checkout anyway.
    except: Vec<PathBuf>,
}

impl Bystander {
    /// Records the state of the checkout around `dir`. Files below `except` may change. None if git
    /// cannot tell.
    pub fn look(dir: &Path, except: &[&Path]) -> Option<Self> {
        let top = worktrees::patch::top(dir).ok()?;
        let before = TreeSnapshot::take(&top)?;
        let real = |path: &&Path| path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
        Some(Self {
            except: except.iter().map(real).collect(),
            top: top.canonicalize().unwrap_or(top),
            before,
        })
    }

    /// The files that changed without a commit, in words; `who` did not work there. None if no file
    /// changed.
    pub fn disturbed(&self, who: &str) -> Option<String> {
        let now = TreeSnapshot::take(&self.top)?;
        let own = |path: &PathBuf| {
            let path = self.top.join(path);
            self.except.iter().any(|except| path.starts_with(except))
        };
        let mut changed = self.before.disturbed(&now);
        changed.retain(|path| !own(path));
        if changed.is_empty() {
            return None;
        }
        let shown = changed.iter().take(SHOWN);
        let mut names: Vec<String> = shown.map(|path| path.display().to_string()).collect();
        if changed.len() > SHOWN {
            names.push(format!("and {} more", changed.len() - SHOWN));
        }
        let files = if changed.len() == 1 { "file" } else { "files" };
        Some(format!(
            "{} {files} of the checkout {} changed meanwhile: {}. {who} work in worktrees of \
             their own; if you did not change them, one has left its worktree",
            changed.len(),
            self.top.display(),
            names.join(", "),
        ))
    }
}
