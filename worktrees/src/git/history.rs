//! Reads commits: with libgit2, which starts no process, and with git itself where libgit2 cannot
//! open a repository (split or sparse index, reftable, sha256).

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use git2::{Diff, DiffOptions, ErrorCode, ObjectType, Oid, Repository, Tree};

use crate::error::TreeError;
use crate::git::{Git, line, opened};
use crate::layout::Layout;

/// A file that differs between two commits, and by how many lines; binary files have none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileStat {
    /// The path from the top of the repository.
    pub path: String,
    /// Lines added.
    pub added: Option<u64>,
    /// Lines deleted.
    pub deleted: Option<u64>,
}

/// The history as seen from one directory of a repository.
pub(crate) struct History {
    dir: PathBuf,
    opened: Option<Rc<Repository>>,
}

impl History {
    /// Opens the repository around `dir`.
    pub(crate) fn open(dir: &Path) -> Self {
        Self {
            dir: dir.to_owned(),
            opened: opened::open(dir).map(Rc::new),
        }
    }

    /// The same for the main working tree of a repository, which is opened once.
    pub(crate) fn of(layout: &Layout) -> Self {
        Self {
            dir: layout.main.clone(),
            opened: opened::main(layout),
        }
    }

    /// The full name of the commit that `spec` means here.
    pub(crate) fn resolve(&self, spec: &str) -> Result<String, TreeError> {
        let wanted = format!("{spec}^{{commit}}");
        if let Some(found) = self.parse(&wanted) {
            return Ok(found);
        }
        let answer = Git::at(&self.dir, "rev-parse")
            .args(["--verify", "--end-of-options", &wanted])
            .run();
        match answer {
            Ok(bytes) => Ok(line(&bytes)),
            Err(TreeError::Git { stderr, .. }) => {
                let why = stderr.trim_start_matches("fatal: ").to_owned();
                Err(TreeError::BadBase {
                    given: spec.to_owned(),
                    why,
                })
            }
            Err(error) => Err(error),
        }
    }

    /// The meaning of `spec`, if libgit2 knows it.
    fn parse(&self, spec: &str) -> Option<String> {
        let found = self.opened.as_deref()?.revparse_single(spec).ok()?;
        Some(found.id().to_string())
    }

    /// The address of the remote, by its configuration.
    pub(crate) fn remote_url(&self, remote: &str) -> Option<String> {
        match self.opened.as_deref() {
            Some(repository) => {
                let found = repository.find_remote(remote).ok()?;
                found.url().ok().map(str::to_owned)
            }
            None => {
                let asked = Git::at(&self.dir, "remote").args(["get-url", remote]).run();
                asked.ok().map(|bytes| line(&bytes))
            }
        }
    }

    /// The commit of the ref, `None` if there is no such ref.
    pub(crate) fn tip(&self, reference: &str) -> Result<Option<String>, TreeError> {
        if let Some(repo) = self.opened.as_deref() {
            match repo.refname_to_id(reference) {
                Ok(oid) => return Ok(Some(oid.to_string())),
                Err(error) if error.code() == ErrorCode::NotFound => return Ok(None),
                Err(error) => tracing::debug!(%error, reference, "libgit2 cannot read it"),
            }
        }
        let (found, bytes) = Git::at(&self.dir, "rev-parse")
            .args(["--verify", "--quiet", "--end-of-options", reference])
            .ask()?;
        Ok(found.then(|| line(&bytes)))
    }

    /// Every branch, tag and remote branch, with its commit.
    pub(crate) fn branches_and_tags(&self) -> Result<BTreeMap<String, String>, TreeError> {
        const KINDS: [&str; 3] = ["refs/heads/", "refs/tags/", "refs/remotes/"];
        if let Some(repo) = self.opened.as_deref() {
            let mut found = BTreeMap::new();
            // By kind: ccb's own refs can be thousands, and are not wanted here.
            let listed = KINDS.iter().try_for_each(|kind| {
                for reference in repo.references_glob(&format!("{kind}*"))? {
                    let reference = reference?;
                    if let (Ok(name), Some(oid)) = (reference.name(), reference.target()) {
                        found.insert(name.to_owned(), oid.to_string());
                    }
                }
                Ok::<_, git2::Error>(())
            });
            match listed {
                Ok(()) => return Ok(found),
                Err(error) => tracing::debug!(%error, "libgit2 cannot list the branches"),
            }
        }
        let bytes = Git::at(&self.dir, "for-each-ref")
            .arg("--format=%(if)%(symref)%(then)%(else)%(objectname) %(refname)%(end)")
            .args(KINDS)
            .run()?;
        let text = String::from_utf8_lossy(&bytes);
        let split = |line: &str| {
            let (oid, name) = line.split_once(' ')?;
            Some((name.to_owned(), oid.to_owned()))
        };
        Ok(text.lines().filter_map(split).collect())
    }

    /// The number of commits reachable from `tips` and not from `base`. Tips that no longer exist
    /// count for nothing: there is nothing left to lose.
    pub(crate) fn count_beyond(&self, base: &str, tips: &[String]) -> Result<usize, TreeError> {
        if tips.iter().all(|tip| tip == base) {
            return Ok(0);
        }
        if let Some(repo) = self.opened.as_deref() {
            match walk(repo, base, tips) {
                Ok(count) => return Ok(count),
                Err(error) => tracing::debug!(%error, "libgit2 cannot count"),
            }
        }
        let input = format!("{}\n^{base}\n", tips.join("\n"));
        let bytes = Git::at(&self.dir, "rev-list")
            .args(["--count", "--ignore-missing", "--stdin"])
            .input(input.into_bytes())
            .run()?;
        line(&bytes).parse().map_err(|_| TreeError::Git {
            verb: "rev-list".into(),
            status: "no number".into(),
            stderr: line(&bytes),
        })
    }

    /// True if the repository has this object.
    pub(crate) fn has(&self, oid: &str) -> Result<bool, TreeError> {
        let found = self.opened.as_deref().and_then(|repo| {
            let odb = repo.odb().ok()?;
            Some(odb.exists(Oid::from_str(oid).ok()?))
        });
        match found {
            Some(found) => Ok(found),
            None => Ok(Git::at(&self.dir, "cat-file").args(["-e", oid]).ask()?.0),
        }
    }

    /// The tree object of `commit`.
    pub(crate) fn tree_of(&self, commit: &str) -> Result<String, TreeError> {
        let spec = format!("{commit}^{{tree}}");
        if let Some(found) = self.parse(&spec) {
            return Ok(found);
        }
        Git::at(&self.dir, "rev-parse")
            .args(["--verify", "--end-of-options", &spec])
            .line()
    }

    /// The files that differ between two commits, if libgit2 can tell.
    pub(crate) fn stat(&self, base: &str, commit: &str) -> Option<Vec<FileStat>> {
        let repo = self.opened.as_deref()?;
        let tree = |commit: &str| {
            let commit = repo.find_commit(Oid::from_str(commit).ok()?).ok()?;
            commit.tree().ok()
        };
        let diff = changed_files(repo, &tree(base)?, &tree(commit)?)?;
        let mut found = Vec::new();
        for at in 0..diff.deltas().len() {
            let delta = diff.get_delta(at)?;
            let file = match delta.status() {
                git2::Delta::Deleted => delta.old_file(),
                _ => delta.new_file(),
            };
            let path = String::from_utf8_lossy(file.path_bytes()?).into_owned();
            let patch = git2::Patch::from_diff(&diff, at).ok()?;
            let lines = patch.filter(|patch| !patch.delta().flags().is_binary());
            let lines = lines.and_then(|patch| patch.line_stats().ok());
            let count = |number: usize| u64::try_from(number).ok();
            found.push(FileStat {
                path,
                added: lines.and_then(|(_, added, _)| count(added)),
                deleted: lines.and_then(|(_, _, deleted)| count(deleted)),
            });
        }
        Some(found)
    }

    /// The first `most` bytes of the diff between two commits or tree objects, and true if there is
    /// more; `None` if libgit2 cannot tell. Runs no program of the user's or the repository's.
    pub(crate) fn diff_text(&self, from: &str, to: &str, most: usize) -> Option<(Vec<u8>, bool)> {
        let repo = self.opened.as_deref()?;
        let tree = |id: &str| {
            let object = repo.find_object(Oid::from_str(id).ok()?, None).ok()?;
            object.peel_to_tree().ok()
        };
        let diff = repo.diff_tree_to_tree(Some(&tree(from)?), Some(&tree(to)?), None);
        let (mut text, mut more) = (Vec::new(), false);
        let printed = diff.ok()?.print(git2::DiffFormat::Patch, |_, _, line| {
            if matches!(line.origin(), ' ' | '+' | '-') {
                text.push(line.origin() as u8);
            }
            text.extend_from_slice(line.content());
            more = text.len() > most;
            !more
        });
        if printed.is_err() && !more {
            return None;
        }
        text.truncate(most);
        Some((text, more))
    }

    /// The names of the files that differ between two commits, if libgit2 can tell.
    pub(crate) fn stat_paths(&self, base: &str, commit: &str) -> Option<Vec<String>> {
        let repo = self.opened.as_deref()?;
        let tree = |commit: &str| {
            let commit = repo.find_commit(Oid::from_str(commit).ok()?).ok()?;
            commit.tree().ok()
        };
        let diff = changed_files(repo, &tree(base)?, &tree(commit)?)?;
        let name = |delta: git2::DiffDelta<'_>| {
            let bytes = delta
                .new_file()
                .path_bytes()
                .or(delta.old_file().path_bytes())?;
            Some(String::from_utf8_lossy(bytes).into_owned())
        };
        diff.deltas().map(name).collect()
    }

    /// True if `commit` has something at `path`.
    pub(crate) fn has_path(&self, commit: &str, path: &str) -> Result<bool, TreeError> {
        let found = self.opened.as_deref().and_then(|repo| {
            let tree = repo.find_commit(Oid::from_str(commit).ok()?).ok()?.tree();
            Some(tree.ok()?.get_path(Path::new(path)).is_ok())
        });
        match found {
            Some(found) => Ok(found),
            None => Ok(!Git::at(&self.dir, "ls-tree")
                .args(["--name-only", commit, path])
                .run()?
                .is_empty()),
        }
    }

    /// True if `commit` is known to be one step after `base` and no merge; false if that is not
    /// known.
    pub(crate) fn is_next(&self, base: &str, commit: &str) -> bool {
        let found = self.opened.as_deref().and_then(|repo| {
            let commit = repo.find_commit(Oid::from_str(commit).ok()?).ok()?;
            let alone = commit.parent_count() == 1;
            Some(alone && commit.parent_id(0).ok()?.to_string() == base)
        });
        found.unwrap_or(false)
    }

    /// True if all commits of `commit` are also in `of`.
    pub(crate) fn is_ancestor(&self, commit: &str, of: &str) -> Result<bool, TreeError> {
        Ok(self.count_beyond(of, &[commit.to_owned()])? == 0)
    }
}

fn walk(repo: &Repository, base: &str, tips: &[String]) -> Result<usize, git2::Error> {
    let mut walk = repo.revwalk()?;
    for tip in tips {
        let oid = Oid::from_str(tip)?;
        if repo.find_commit(oid).is_ok() {
            walk.push(oid)?;
        }
    }
    walk.hide(Oid::from_str(base)?)?;
    walk.try_fold(0, |count, oid| oid.map(|_| count + 1))
}

/// The difference between two tree objects. libgit2 by itself looks at every file of both; this
/// function does not even read directories that are the same.
fn changed_files<'repo>(
    repo: &'repo Repository,
    from: &Tree<'_>,
    to: &Tree<'_>,
) -> Option<Diff<'repo>> {
    let mut paths = Vec::new();
    find_changed(repo, Some(from), Some(to), &[], &mut paths).ok()?;
    if paths.is_empty() {
        return repo.diff_tree_to_tree(None, None, None).ok();
    }
    let mut only = DiffOptions::new();
    only.disable_pathspec_match(true);
    for path in paths {
        only.pathspec(path);
    }
    let diff = repo.diff_tree_to_tree(Some(from), Some(to), Some(&mut only));
    diff.ok()
}

/// Adds the paths of the files in `dir` that differ between the two.
fn find_changed(
    repo: &Repository,
    from: Option<&Tree<'_>>,
    to: Option<&Tree<'_>>,
    dir: &[u8],
    found: &mut Vec<Vec<u8>>,
) -> Result<(), git2::Error> {
    type Entry = (Oid, i32, Option<ObjectType>);
    let mut both: BTreeMap<Vec<u8>, [Option<Entry>; 2]> = BTreeMap::new();
    for (side, tree) in [from, to].into_iter().enumerate() {
        for entry in tree.into_iter().flat_map(|tree| tree.iter()) {
            let at = both.entry(entry.name_bytes().to_vec()).or_default();
            at[side] = Some((entry.id(), entry.filemode(), entry.kind()));
        }
    }
    for (name, entries) in both {
        if entries[0] == entries[1] {
            continue;
        }
        let path = [dir, &name].concat();
        let mut trees = [None, None];
        let mut has_file = false;
        for (tree, entry) in trees.iter_mut().zip(entries) {
            match entry {
                Some((id, _, Some(ObjectType::Tree))) => *tree = Some(repo.find_tree(id)?),
                Some(_) => has_file = true,
                None => {}
            }
        }
        if has_file {
            found.push(path.clone());
        }
        if trees.iter().any(Option::is_some) {
            let inner = [path.as_slice(), b"/"].concat();
            find_changed(repo, trees[0].as_ref(), trees[1].as_ref(), &inner, found)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    /// libgit2's answer when it looks at everything.
    fn all(repo: &Repository, from: &str, to: &str) -> Vec<(String, String)> {
        let tree = |name: &str| repo.revparse_single(name).unwrap().peel_to_tree().unwrap();
        let diff = repo
            .diff_tree_to_tree(Some(&tree(from)), Some(&tree(to)), None)
            .unwrap();
        said(&diff)
    }

    fn said(diff: &Diff<'_>) -> Vec<(String, String)> {
        let one = |delta: git2::DiffDelta<'_>| {
            let path = delta.new_file().path().unwrap().display().to_string();
            (path, format!("{:?}", delta.status()))
        };
        diff.deltas().map(one).collect()
    }

    #[test]
    fn what_differs_is_found_without_looking_at_what_does_not() {
        let dir = tempfile::tempdir().unwrap();
        let run = |script: &str| {
            let done = Command::new("sh")
                .args(["-ec", script])
                .current_dir(dir.path())
                .env("GIT_CONFIG_GLOBAL", "/dev/null")
                .output()
                .unwrap();
            assert!(done.status.success(), "{done:?}");
        };
        run("git init -q; git config user.name t; git config user.email t@example.org
             mkdir -p a/b c d 'e*' f; echo 1 > a/b/one; echo 2 > a/two; echo 3 > c/three; echo 4 > d/four
             echo 5 > 'e*/five'; echo 6 > f/six; echo 7 > seven; echo 8 > a.b; echo 9 > a0; chmod +x a0
             git add -A; git commit -qm first; git tag first
             echo more >> a/b/one; rm -r c; echo file > c; rm seven; mkdir seven; echo in > seven/eight
             mkdir -p new/deep; echo n > new/deep/file; rm d/four; echo x > 'e*/five'; chmod -x a0
             git add -A; git commit -qm second; git tag second
             git commit -q --allow-empty -m third; git tag third");
        let repo = Repository::open(dir.path()).unwrap();
        for (from, to) in [
            ("first", "second"),
            ("second", "first"),
            ("second", "third"),
        ] {
            let tree = |name: &str| repo.revparse_single(name).unwrap().peel_to_tree().unwrap();
            let found = changed_files(&repo, &tree(from), &tree(to)).unwrap();
            assert_eq!(said(&found), all(&repo, from, to), "{from} {to}");
        }
        assert_eq!(all(&repo, "first", "second").len(), 9);
        let mut paths = Vec::new();
        let tree = |name: &str| repo.revparse_single(name).unwrap().peel_to_tree().unwrap();
        let (from, to) = (tree("first"), tree("second"));
        find_changed(&repo, Some(&from), Some(&to), &[], &mut paths).unwrap();
        let same = |path: &Vec<u8>| path.starts_with(b"f/") || path == b"a/two" || path == b"a.b";
        assert!(!paths.iter().any(same), "{paths:?}");
    }
}
