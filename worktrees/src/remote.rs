//! State that several machines share by a remote of their repositories: a branch that work lands
//! on, and results as commits under `refs/ccb/`.
//!
//! A branch of a remote is named `refs/remotes/<remote>/<branch>`, wherever a local one could be
//! meant. ccb reads it by fetching it, and moves it by a push that is refused unless the branch is
//! at the commit ccb saw: the remote decides who was first.

use std::path::Path;
use std::time::Duration;

use store::lock::FileLock;

use crate::error::TreeError;
use crate::git::Repository;
use crate::git::{Git, History, REMOTES, reference_of};
use crate::layout::Layout;
use crate::trees::Trees;

/// Time limit for one request to a remote.
const PATIENCE: Duration = Duration::from_secs(300);

/// A branch of a remote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RemoteBranch {
    pub(crate) remote: String,
    /// Without `refs/heads/`.
    pub(crate) branch: String,
}

impl RemoteBranch {
    /// The remote branch that this name stands for; `None` for a local one.
    pub(crate) fn parse(name: &str) -> Option<Self> {
        let (remote, branch) = name.strip_prefix(REMOTES)?.split_once('/')?;
        Some(Self {
            remote: remote.to_owned(),
            branch: branch.to_owned(),
        })
    }

    /// The present commit of the branch, `None` if the remote has none of this name.
    pub(crate) fn fetch(&self, layout: &Layout) -> Result<Option<String>, TreeError> {
        let local = branch_of_remote(&self.remote, &self.branch);
        let found = fetch(
            layout,
            &self.remote,
            &format!("refs/heads/{}", self.branch),
            &local,
        )?;
        match found {
            true => layout.history().tip(&local),
            false => Ok(None),
        }
    }

    /// Moves the branch from `tip` to `commit`; `false` if others moved it first.
    pub(crate) fn advance(
        &self,
        layout: &Layout,
        tip: &str,
        commit: &str,
        turn: &FileLock,
    ) -> Result<bool, TreeError> {
        let reference = format!("refs/heads/{}", self.branch);
        let lease = format!("--force-with-lease={reference}:{tip}");
        let push = layout
            .git("push")
            .args(["--porcelain", "--no-verify", &lease, "--end-of-options"])
            .args([&self.remote, &format!("{commit}:{reference}")])
            .timeout(PATIENCE)
            .holding(turn)?;
        let pushed = push.ask().map_err(|error| unreachable(&self.remote, error));
        let refused = match &pushed {
            Ok((true, _)) => return Ok(true),
            Ok((false, said)) => refusal(said),
            Err(_) => None,
        };
        // Whatever the answer was, the present commit of the branch counts.
        let now = self.fetch(layout)?;
        match now {
            Some(now) if layout.history().is_ancestor(commit, &now)? => Ok(true),
            Some(now) if now == tip => Err(match pushed {
                Err(error) => error,
                Ok(_) => TreeError::RemoteRefused {
                    remote: self.remote.clone(),
                    what: self.branch.clone(),
                    why: refused.unwrap_or_else(|| "it gives no reason".into()),
                },
            }),
            _ => Ok(false),
        }
    }
}

/// The name of a branch of a remote, where a local one could be meant, too.
pub fn branch_of_remote(remote: &str, branch: &str) -> String {
    format!("{REMOTES}{remote}/{branch}")
}

/// A branch as people call it: `main`, or `origin/main`.
pub fn shown_branch(name: &str) -> &str {
    let short = name.strip_prefix(REMOTES);
    short.unwrap_or_else(|| name.strip_prefix("refs/heads/").unwrap_or(name))
}

/// The configured address of a remote; `None` if there is no remote of this name.
pub fn remote_url(repository: &Repository, name: &str) -> Option<String> {
    let dir = repository.main_tree.as_deref();
    History::open(dir.unwrap_or(&repository.common_dir)).remote_url(name)
}

/// The address of a repository in a form that does not depend on the protocol: host and path,
/// without scheme, user, password, the usual port and `.git`. A path is not changed.
pub fn plain_address(url: &str) -> String {
    let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
    let path_only = scheme == "file" || rest.starts_with(['/', '.']) || rest.is_empty();
    let trimmed = |text: &str| {
        text.trim_end_matches('/')
            .trim_end_matches(".git")
            .to_owned()
    };
    if path_only {
        return trimmed(rest);
    }
    let (host, path) = match scheme.is_empty() {
        // As `git@host:path`.
        true => match rest.split_once(':') {
            Some(parts) => parts,
            None => return trimmed(rest),
        },
        false => rest.split_once('/').unwrap_or((rest, "")),
    };
    let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
    let usual = match scheme {
        "https" => ":443",
        "http" => ":80",
        "git" => ":9418",
        _ => ":22",
    };
    let host = host.strip_suffix(usual).unwrap_or(host).to_lowercase();
    format!("{host}/{}", trimmed(path.trim_start_matches('/')))
}

/// Makes a clone of `address` in `dir`, or updates the existing one: its files are those of
/// `branch`, or of the remote's default branch. No agent works in those files.
pub fn clone_or_update(address: &str, branch: Option<&str>, dir: &Path) -> Result<(), TreeError> {
    let parent = dir.parent().unwrap_or(dir);
    let path = dir.with_added_extension("lock");
    let _alone = FileLock::exclusive(&path, "cloning a repository", PATIENCE)?;
    if !dir.join(".git").exists() {
        let new = dir.with_added_extension("new");
        store::tree::delete(&new)?;
        Git::at(parent, "clone")
            .args(["--quiet", "--no-tags", "--end-of-options", address])
            .arg(&new)
            .timeout(PATIENCE)
            .run()
            .map_err(|error| unreachable(address, error))?;
        store::atomic::publish(&new, dir, store::atomic::Durability::Full)?;
    }
    let fetched = Git::at(dir, "fetch")
        .args([
            "--quiet",
            "--no-tags",
            "--no-write-fetch-head",
            "--end-of-options",
            "origin",
        ])
        .timeout(PATIENCE)
        .run();
    fetched.map_err(|error| unreachable(address, error))?;
    let at = match branch {
        Some(branch) => branch_of_remote("origin", branch),
        None => branch_of_remote("origin", "HEAD"),
    };
    let there = Git::at(dir, "rev-parse")
        .args(["--verify", "--quiet", "--end-of-options", &at])
        .ask()?
        .0;
    // An empty repository has nothing to check out yet; a later error says so.
    if there {
        Git::at(dir, "checkout")
            .args(["--quiet", "--force", "--detach", &at])
            .timeout(PATIENCE)
            .run()?;
    }
    Ok(())
}

impl Trees {
    /// The remote's default branch.
    pub fn default_branch(&self, remote: &str) -> Result<String, TreeError> {
        let said = self
            .layout
            .git("ls-remote")
            .args(["--symref", "--end-of-options", remote, "HEAD"])
            .timeout(PATIENCE)
            .lines()
            .map_err(|error| unreachable(remote, error))?;
        let named = said.iter().find_map(|line| {
            let name = line.strip_prefix("ref: refs/heads/")?;
            Some(name.split('\t').next().unwrap_or(name).to_owned())
        });
        named.ok_or_else(|| TreeError::Invalid {
            what: format!("the remote {remote}"),
            why: "it does not name its default branch; name one with --branch".into(),
        })
    }

    /// The present commit of a branch of the remote; an error if it has none of this name.
    pub fn fetch_branch(&self, remote: &str, branch: &str) -> Result<String, TreeError> {
        let wanted = RemoteBranch {
            remote: remote.to_owned(),
            branch: branch.to_owned(),
        };
        let found = wanted.fetch(&self.layout)?;
        found.ok_or_else(|| TreeError::Invalid {
            what: format!("branch {branch:?}"),
            why: format!("the remote {remote} has no such branch"),
        })
    }

    /// True if `commit` is part of a branch in its present state.
    pub fn is_on(&self, branch: &str, commit: &str) -> Result<bool, TreeError> {
        let tip = match RemoteBranch::parse(branch) {
            Some(remote) => remote.fetch(&self.layout)?,
            None => self.layout.tip_of(branch)?,
        };
        match tip {
            Some(tip) if self.has_commit(commit) => self.layout.history().is_ancestor(commit, &tip),
            _ => Ok(false),
        }
    }

    /// The commit of a branch; of a remote's branch, the one last fetched.
    pub fn tip_of(&self, branch: &str) -> Result<String, TreeError> {
        self.resolve(&reference_of(branch))
    }

    /// Keeps `commit` at the remote under `refs/ccb/<name>`, independent of this repository. An
    /// existing ref is not replaced.
    pub fn send_result(&self, remote: &str, name: &str, commit: &str) -> Result<(), TreeError> {
        let push = self
            .layout
            .git("push")
            .args(["--porcelain", "--no-verify", "--end-of-options"])
            .args([remote, &format!("{commit}:refs/ccb/{name}")])
            .timeout(PATIENCE);
        match push.ask().map_err(|error| unreachable(remote, error))? {
            (true, _) => Ok(()),
            (false, said) => Err(TreeError::RemoteRefused {
                remote: remote.to_owned(),
                what: format!("refs/ccb/{name}"),
                why: refusal(&said).unwrap_or_else(|| "it gives no reason".into()),
            }),
        }
    }

    /// Takes over all refs at the remote below `refs/ccb/<prefix>/`.
    pub fn obtain_all(&self, remote: &str, prefix: &str) -> Result<(), TreeError> {
        let all = format!("refs/ccb/{prefix}/*");
        fetch(&self.layout, remote, &all, &all)?;
        self.make_durable()
    }

    /// Takes over `commit`, which the remote keeps under `refs/ccb/<name>`, unless it is here.
    pub fn obtain(&self, remote: &str, name: &str, commit: &str) -> Result<(), TreeError> {
        if self.has_commit(commit) {
            return Ok(());
        }
        let reference = format!("refs/ccb/{name}");
        fetch(&self.layout, remote, &reference, &reference)?;
        match self.has_commit(commit) {
            true => self.make_durable(),
            false => Err(TreeError::BadBase {
                given: commit.to_owned(),
                why: format!("the remote {remote} does not have it as {reference}"),
            }),
        }
    }
}

/// Fetches one ref; `false` if the remote has none of this name.
fn fetch(layout: &Layout, remote: &str, theirs: &str, ours: &str) -> Result<bool, TreeError> {
    layout.create_dirs()?;
    // Two that fetch one ref at once fail for each other's lock.
    let path = layout.locks().join("fetch");
    let _alone = FileLock::exclusive(&path, "fetching from a remote", PATIENCE)?;
    let fetched = layout
        .git("fetch")
        .args(["--quiet", "--no-tags", "--no-write-fetch-head"])
        .args(["--no-recurse-submodules", "--end-of-options"])
        .args([remote, &format!("+{theirs}:{ours}")])
        .timeout(PATIENCE)
        .run();
    match fetched {
        Ok(_) => Ok(true),
        Err(TreeError::Git { stderr, .. }) if stderr.contains("couldn't find remote ref") => {
            Ok(false)
        }
        Err(error) => Err(unreachable(remote, error)),
    }
}

/// The reason of the remote's refusal, from the output of `git push --porcelain`.
pub(crate) fn refusal(said: &[u8]) -> Option<String> {
    let said = String::from_utf8_lossy(said);
    let mut lines = said.lines().filter_map(|line| line.strip_prefix("!\t"));
    let words = lines.next()?.rsplit('\t').next()?;
    Some(words.to_owned())
}

fn unreachable(remote: &str, error: TreeError) -> TreeError {
    match error {
        TreeError::Git { stderr, .. } => TreeError::RemoteUnreachable {
            remote: remote.to_owned(),
            why: stderr.lines().next_back().unwrap_or_default().to_owned(),
        },
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_branch_of_a_remote_is_told_from_a_local_one() {
        let name = branch_of_remote("origin", "feature/x");
        let found = RemoteBranch::parse(&name).unwrap();
        assert_eq!((&*found.remote, &*found.branch), ("origin", "feature/x"));
        assert_eq!(RemoteBranch::parse("origin/main"), None);
        assert_eq!(shown_branch(&name), "origin/feature/x");
        assert_eq!(shown_branch("refs/heads/main"), "main");
        assert_eq!(reference_of("main"), "refs/heads/main");
        assert_eq!(reference_of(&name), name);
    }

    #[test]
    fn one_repository_has_one_address_however_it_is_reached() {
        for url in [
            "https://example.org/team/app.git",
            "https://ann:token@Example.org:443/team/app",
            "ssh://git@example.org:22/team/app.git",
            "git@example.org:team/app.git",
        ] {
            assert_eq!(plain_address(url), "example.org/team/app", "{url}");
        }
        assert_eq!(plain_address("https://h:8443/x.git/"), "h:8443/x");
        assert_eq!(plain_address("/srv/git/app.git"), "/srv/git/app");
        assert_eq!(plain_address("file:///srv/git/app.git"), "/srv/git/app");
        assert_eq!(plain_address("../app"), "../app");
    }

    #[test]
    fn the_words_of_a_refusal_are_found() {
        let said = b"To /r.git\n!\tabc:refs/ccb/x\t[remote rejected] (hook declined)\nDone\n";
        assert_eq!(refusal(said).unwrap(), "[remote rejected] (hook declined)");
        assert_eq!(refusal(b"Done\n"), None);
    }
}
