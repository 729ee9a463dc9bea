//! Prepares a new worktree: ignored files it needs, shared directories, a command.
//!
//! Nothing here writes shared git configuration, replaces a file in the worktree, or goes through a
//! symlink that was committed into it.

use std::path::{Component, Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use store::IoContext;
use store::atomic::{self, Durability, open_private};
use store::lock::{DEFAULT_TIMEOUT, FileLock};
use store::tree::{self, Copied};

use crate::error::TreeError;
use crate::git::{path_from, zero_split};
use crate::layout::Layout;
use crate::process;
use crate::registry::Placed;
use crate::slug::Slug;

/// The files and directories a new worktree gets besides the commit's.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SetUp {
    /// The only paths to check out (with the files at the top).
    pub sparse_paths: Vec<String>,
    /// Directories of the main worktree that are linked into the new one.
    pub symlink_directories: Vec<String>,
    /// Directories of the main worktree that are copied into the new one.
    pub copy_directories: Vec<String>,
    /// A shell command that is run in the worktree.
    pub command: Option<String>,
    /// Time limit of the command.
    pub command_timeout: Duration,
}

impl Default for SetUp {
    fn default() -> Self {
        Self {
            sparse_paths: Vec::new(),
            symlink_directories: Vec::new(),
            copy_directories: Vec::new(),
            command: None,
            command_timeout: Duration::from_secs(600),
        }
    }
}

/// The local settings that every worktree gets a copy of.
const LOCAL_SETTINGS: &str = ".claude/settings.local.json";
/// Names the ignored files that are copied, in the syntax of `.gitignore`.
const INCLUDE_FILE: &str = ".worktreeinclude";

/// A set-up that failed: the reason, and the path of its output.
#[derive(Debug)]
pub(crate) struct SetUpFailure {
    pub(crate) why: String,
    pub(crate) log: Option<PathBuf>,
}

impl SetUpFailure {
    /// The error for the worktree of this name.
    pub(crate) fn of(self, slug: &Slug) -> TreeError {
        TreeError::SetUp {
            name: slug.to_string(),
            why: self.why,
            log: self.log,
        }
    }
}

impl From<TreeError> for SetUpFailure {
    fn from(error: TreeError) -> Self {
        Self {
            why: error.to_string(),
            log: None,
        }
    }
}

/// The result of a set-up.
#[derive(Debug, Default)]
pub(crate) struct SetUpResult {
    pub(crate) placed: Vec<Placed>,
    /// Files and directories that are copies of those in the main worktree.
    pub(crate) copied: Vec<String>,
    /// Notes for the user.
    pub(crate) notes: Vec<String>,
}

impl SetUp {
    /// Fails if a path leads out of the repository.
    pub(crate) fn check(&self) -> Result<(), TreeError> {
        let lists = [
            ("sparsePaths", &self.sparse_paths),
            ("symlinkDirectories", &self.symlink_directories),
            ("copyDirectories", &self.copy_directories),
        ];
        for (what, paths) in lists {
            if let Some(path) = paths.iter().find(|path| !stays_inside(path)) {
                return Err(TreeError::Invalid {
                    what: format!("{what} {path:?}"),
                    why: "it must be a relative path inside the repository".into(),
                });
            }
        }
        Ok(())
    }

    /// The patterns for a partial checkout; `None` to check out everything.
    pub(crate) fn sparse_patterns(&self) -> Option<String> {
        if self.sparse_paths.is_empty() {
            return None;
        }
        let mut text = String::from("/*\n!/*/\n");
        for path in &self.sparse_paths {
            let path = path.trim_matches('/');
            text.push('/');
            for c in path.chars() {
                if matches!(c, '*' | '?' | '[' | '\\') {
                    text.push('\\');
                }
                text.push(c);
            }
            text.push('\n');
        }
        Some(text)
    }

    /// Takes all steps; the command comes last, so that it finds the files in place.
    pub(crate) fn run(
        &self,
        layout: &Layout,
        tree: &Path,
        log: &Path,
    ) -> Result<SetUpResult, SetUpFailure> {
        let done = self.place_all(layout, tree)?;
        if let Some(command) = &self.command {
            self.run_command(command, layout, tree, log)?;
        }
        Ok(done)
    }

    /// All steps but the command.
    pub(crate) fn place_all(&self, layout: &Layout, tree: &Path) -> Result<SetUpResult, TreeError> {
        let mut done = SetUpResult::default();
        copy_included(layout, tree, &mut done)?;
        copy_local_settings(layout, tree, &mut done)?;
        self.link_and_copy(layout, tree, &mut done)?;
        Ok(done)
    }

    /// The linked directories.
    pub(crate) fn linked(&self) -> Vec<String> {
        trimmed(self.symlink_directories.iter())
    }

    /// Only the slow steps: the directories that are linked or copied.
    pub(crate) fn place_directories(
        &self,
        layout: &Layout,
        tree: &Path,
    ) -> Result<SetUpResult, SetUpFailure> {
        let mut done = SetUpResult::default();
        self.link_and_copy(layout, tree, &mut done)?;
        Ok(done)
    }

    /// The directories that are linked or copied.
    pub(crate) fn directories(&self) -> Vec<String> {
        let all = self.symlink_directories.iter();
        trimmed(all.chain(&self.copy_directories))
    }

    fn link_and_copy(
        &self,
        layout: &Layout,
        tree: &Path,
        done: &mut SetUpResult,
    ) -> Result<(), TreeError> {
        for dir in &self.symlink_directories {
            link_directory(layout, tree, dir.trim_matches('/'), done)?;
        }
        for dir in &self.copy_directories {
            copy_directory(layout, tree, dir.trim_matches('/'), done)?;
        }
        Ok(())
    }

    /// Runs the command, which comes from the repository's or the user's settings.
    pub(crate) fn run_command(
        &self,
        command: &str,
        layout: &Layout,
        tree: &Path,
        log: &Path,
    ) -> Result<(), SetUpFailure> {
        let failed = |why: String| SetUpFailure {
            why,
            log: Some(log.to_owned()),
        };
        let output = open_private(log).map_err(TreeError::from)?;
        let errors = output
            .try_clone()
            .map_err(|error| failed(format!("its log cannot be used: {error}")))?;
        let mut shell = process::shell(command, tree, &layout.main);
        shell.stdin(Stdio::null()).stdout(output).stderr(errors);
        let finished = process::run(shell, self.command_timeout)
            .map_err(|error| failed(format!("`{command}` cannot be run: {error}")))?;
        if finished.timed_out {
            let seconds = self.command_timeout.as_secs();
            return Err(failed(format!(
                "`{command}` did not end within {seconds} s"
            )));
        }
        if !finished.status.success() {
            return Err(failed(format!("`{command}` failed ({})", finished.status)));
        }
        Ok(())
    }
}

fn trimmed<'a>(dirs: impl Iterator<Item = &'a String>) -> Vec<String> {
    dirs.map(|dir| dir.trim_matches('/').to_owned()).collect()
}

/// True if `path` is relative, only leads downwards, and not into git's own files.
pub(crate) fn stays_inside(path: &str) -> bool {
    let path = Path::new(path.trim_end_matches('/'));
    let mut components = path.components();
    let first = components.clone().next();
    !path.as_os_str().is_empty()
        && !path.as_os_str().as_encoded_bytes().contains(&b'\n')
        && first != Some(Component::Normal(".git".as_ref()))
        && components.all(|part| matches!(part, Component::Normal(_)))
}

/// Copies the ignored files that `.worktreeinclude` names.
fn copy_included(layout: &Layout, tree: &Path, done: &mut SetUpResult) -> Result<(), TreeError> {
    if !layout.main.join(INCLUDE_FILE).is_file() {
        return Ok(());
    }
    let matching = layout
        .git("ls-files")
        .args(["-z", "--others", "--ignored"])
        .arg(format!("--exclude-from={INCLUDE_FILE}"))
        .run()?;
    if matching.is_empty() {
        return Ok(());
    }
    let (_, ignored) = layout
        .git("check-ignore")
        .args(["-z", "--stdin"])
        .input(matching)
        .ask()?;
    let mut count = 0;
    for path in zero_split(&ignored).map(path_from) {
        // ccb's own worktrees are ignored too.
        if path.starts_with(".claude/worktrees") {
            continue;
        }
        if place(layout, tree, &path)?.is_some() {
            count += 1;
            done.copied.extend(path.to_str().map(str::to_owned));
        }
    }
    done.notes.push(format!(
        "{} named by {INCLUDE_FILE} copied",
        store::counted(count, "file")
    ));
    Ok(())
}

fn copy_local_settings(
    layout: &Layout,
    tree: &Path,
    done: &mut SetUpResult,
) -> Result<(), TreeError> {
    let path = Path::new(LOCAL_SETTINGS);
    let Some(bytes) = atomic::read(&layout.main.join(path)).ok().flatten() else {
        return Ok(());
    };
    if place(layout, tree, path)?.is_some() {
        done.placed.push(Placed {
            path: LOCAL_SETTINGS.into(),
            link: None,
            fingerprint: Some(store::fingerprint(&bytes)),
        });
    }
    Ok(())
}

/// Copies one file of the main worktree to the same place in the new one, unless something is there
/// already.
fn place(layout: &Layout, tree: &Path, path: &Path) -> Result<Option<Copied>, TreeError> {
    match free_place(tree, path)? {
        Some(target) => Ok(Some(tree::copy_file(&layout.main.join(path), &target)?)),
        None => Ok(None),
    }
}

/// The path of `path` in `tree`, with its parents made; `None` if it exists already, or if a link
/// is on the way.
fn free_place(tree: &Path, path: &Path) -> Result<Option<PathBuf>, TreeError> {
    let mut at = tree.to_owned();
    let parents = path.parent().into_iter().flat_map(Path::components);
    for part in parents {
        at.push(part);
        match std::fs::symlink_metadata(&at) {
            Ok(meta) if meta.is_dir() => {}
            Ok(_) => {
                tracing::warn!(path = %at.display(), "not a directory; what belongs below is left out");
                return Ok(None);
            }
            Err(_) => store::home::create_dir(&at)?,
        }
    }
    let target = tree.join(path);
    Ok(std::fs::symlink_metadata(&target)
        .is_err()
        .then_some(target))
}

/// The path of a directory in the main worktree, and its path in the new one; a note if it cannot
/// be placed.
fn from_and_to(
    layout: &Layout,
    tree: &Path,
    dir: &str,
    verb: &str,
    done: &mut SetUpResult,
) -> Result<Option<(PathBuf, PathBuf)>, TreeError> {
    let source = layout.main.join(dir);
    if !source.is_dir() {
        done.notes
            .push(format!("{dir} is not there, so it is not {verb}"));
        return Ok(None);
    }
    let target = free_place(tree, Path::new(dir))?;
    if target.is_none() {
        done.notes.push(format!(
            "{dir} is in the worktree already, so it is not {verb}"
        ));
    }
    Ok(target.map(|target| (source, target)))
}

fn link_directory(
    layout: &Layout,
    tree: &Path,
    dir: &str,
    done: &mut SetUpResult,
) -> Result<(), TreeError> {
    let Some((source, target)) = from_and_to(layout, tree, dir, "linked", done)? else {
        return Ok(());
    };
    // A pattern like `node_modules/` does not match a link. Hidden only where the directory itself
    // is ignored, so that the main worktree's status is unchanged.
    if is_ignored(layout, dir)? {
        exclude(layout, &[format!("/{dir}")])?;
    }
    std::os::unix::fs::symlink(&source, &target).context("create", &target)?;
    done.placed.push(Placed {
        path: dir.to_owned(),
        link: Some(source.to_string_lossy().into_owned()),
        fingerprint: None,
    });
    Ok(())
}

fn copy_directory(
    layout: &Layout,
    tree: &Path,
    dir: &str,
    done: &mut SetUpResult,
) -> Result<(), TreeError> {
    let Some((source, target)) = from_and_to(layout, tree, dir, "copied", done)? else {
        return Ok(());
    };
    let how = match tree::copy_dir(&source, &target)? {
        Copied::Shared => "copied without using space (reflink)",
        Copied::Whole => "copied byte by byte: this file system cannot share blocks",
    };
    done.notes.push(format!("{dir} {how}"));
    done.copied.push(dir.to_owned());
    Ok(())
}

fn is_ignored(layout: &Layout, path: &str) -> Result<bool, TreeError> {
    Ok(layout
        .git("check-ignore")
        .args(["--quiet", "--", path])
        .ask()?
        .0)
}

/// Adds `patterns` to the repository's own list of ignored files, which is not shared with others.
pub(crate) fn exclude(layout: &Layout, patterns: &[String]) -> Result<(), TreeError> {
    let lock = layout.locks().join("exclude");
    let _lock = FileLock::exclusive(&lock, "the list of ignored files", DEFAULT_TIMEOUT)?;
    let dir = layout.common.join("info");
    if !dir.is_dir() {
        store::home::create_dir(&dir)?;
    }
    let path = dir.join("exclude");
    // It may be a link to a file kept elsewhere.
    let path = path.canonicalize().unwrap_or(path);
    let mut bytes = atomic::read(&path)?.unwrap_or_default();
    let has = |pattern: &String| {
        bytes
            .split(|byte| *byte == b'\n')
            .any(|line| line.trim_ascii() == pattern.as_bytes())
    };
    let missing: Vec<&String> = patterns.iter().filter(|pattern| !has(pattern)).collect();
    if missing.is_empty() {
        return Ok(());
    }
    if !bytes.is_empty() && !bytes.ends_with(b"\n") {
        bytes.push(b'\n');
    }
    for pattern in missing {
        bytes.extend_from_slice(pattern.as_bytes());
        bytes.push(b'\n');
    }
    atomic::replace_keeping_mode(&layout.tmp(), &path, &bytes, Durability::Full)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_paths_inside_are_taken() {
        for good in ["a", "a/b", "node_modules/", "a/.git-things"] {
            assert!(stays_inside(good), "{good}");
        }
        for bad in [
            "",
            "/",
            "/etc",
            "..",
            "a/../b",
            ".git",
            ".git/hooks",
            "./a",
            "a\nb",
        ] {
            assert!(!stays_inside(bad), "{bad:?}");
        }
    }

    #[test]
    fn special_characters_in_sparse_paths_mean_themselves() {
        let set_up = SetUp {
            sparse_paths: vec!["a/b".into(), "odd[1]*".into()],
            ..SetUp::default()
        };
        assert_eq!(
            set_up.sparse_patterns().unwrap(),
            "/*\n!/*/\n/a/b\n/odd\\[1]\\*\n"
        );
    }
}
