//! The commits that are to land, made from objects alone: no index, no worktree, no editor, no
//! hook, no signature.

use std::cell::OnceCell;

use crate::error::TreeError;
use crate::git::{admin, in_process, zero_split};
use crate::layout::Layout;
use crate::merge::{MergeStrategy, Target};
use crate::remote::shown_branch;

/// Everything a landing is built from.
#[derive(Debug)]
pub(crate) struct Builder<'a> {
    pub(crate) layout: &'a Layout,
    /// The worktree's name and branch, for messages.
    pub(crate) name: &'a str,
    pub(crate) branch: &'a str,
    pub(crate) target: &'a Target,
    /// The worktree's commit.
    pub(crate) head: &'a str,
    pub(crate) message: Option<&'a str>,
    /// True to fast-forward the target if possible, in spite of a message.
    pub(crate) follow: bool,
    /// The commit to compare the work with if the target has its commits already and they were
    /// reverted there; `None` if not.
    pub(crate) again: Option<String>,
    pub(crate) now_ms: i64,
    /// The committer, found when first needed.
    pub(crate) committer: OnceCell<String>,
}

/// The result of building.
#[derive(Debug)]
pub(crate) enum Built {
    /// The target has everything.
    Nothing,
    /// A descendant of the target.
    Commit {
        oid: String,
        /// Commits of the worktree that are new to the target.
        commits: usize,
    },
}

impl Builder<'_> {
    pub(crate) fn build(&self, strategy: MergeStrategy) -> Result<Built, TreeError> {
        let history = self.layout.history();
        let tip = &self.target.tip;
        if let Some(base) = &self.again {
            let commits = history.count_beyond(base, &[self.head.to_owned()])?;
            let oid = self.once_more(base)?;
            return Ok(oid.map_or(Built::Nothing, |oid| Built::Commit { oid, commits }));
        }
        let commits = history.count_beyond(tip, &[self.head.to_owned()])?;
        if commits == 0 {
            return Ok(Built::Nothing);
        }
        let follows = history.is_ancestor(tip, self.head)?;
        let as_it_is = match strategy {
            MergeStrategy::Merge => self.message.is_none() || self.follow,
            MergeStrategy::Rebase => true,
            MergeStrategy::Squash => self.follow && self.message.is_some(),
        };
        let oid = if follows && as_it_is {
            Some(self.head.to_owned())
        } else {
            match strategy {
                MergeStrategy::Merge => Some(self.merge()?),
                MergeStrategy::Squash => self.squash()?,
                MergeStrategy::Rebase => self.rebase()?,
            }
        };
        Ok(oid.map_or(Built::Nothing, |oid| Built::Commit { oid, commits }))
    }

    fn merge(&self) -> Result<String, TreeError> {
        let tree = self.merged_tree(None, &self.target.tip, self.head)?;
        let message = match self.message {
            Some(message) => message.to_owned(),
            None => {
                let into = shown_branch(&self.target.branch);
                format!("Merge branch '{}' into {into}", self.branch)
            }
        };
        let parents = [self.target.tip.as_str(), self.head];
        let headers = author(&self.author());
        self.write(&tree, &parents, &headers, message.as_bytes())
    }

    fn squash(&self) -> Result<Option<String>, TreeError> {
        let tip = &self.target.tip;
        let tree = self.merged_tree(None, tip, self.head)?;
        if tree == self.layout.history().tree_of(tip)? {
            return Ok(None);
        }
        let commits = self.own_commits()?;
        let mut headers = author(&self.author());
        let mut message = Vec::new();
        if let Some(given) = self.message {
            message = given.as_bytes().to_vec();
        } else if let [only] = &commits[..] {
            // One commit keeps its author and its message.
            let raw = self.raw(&only.oid)?;
            let (kept, body) = kept_parts(&raw);
            headers = kept;
            message = body.to_vec();
        } else {
            message.extend_from_slice(format!("Squash worktree {}\n\n", self.name).as_bytes());
            for commit in &commits {
                let raw = self.raw(&commit.oid)?;
                let (_, body) = kept_parts(&raw);
                let subject = body.split(|byte| *byte == b'\n').next().unwrap_or_default();
                message.extend_from_slice(b"* ");
                message.extend_from_slice(subject);
                message.push(b'\n');
            }
        }
        self.write(&tree, &[tip], &headers, &message).map(Some)
    }

    /// One commit with the changes from `base` to the worktree's commit.
    fn once_more(&self, base: &str) -> Result<Option<String>, TreeError> {
        let usual = format!("Land worktree {} again\n", self.name);
        self.on_top(base, self.head, self.message.unwrap_or(&usual))
    }

    /// One commit that reverts the changes from the worktree's commit to `commit`.
    pub(crate) fn revert(&self, commit: &str) -> Result<Option<String>, TreeError> {
        self.on_top(commit, self.head, self.message.unwrap_or_default())
    }

    /// One commit on the target with the changes between the two commits; `None` if the target has
    /// them.
    fn on_top(&self, from: &str, to: &str, message: &str) -> Result<Option<String>, TreeError> {
        let tip = &self.target.tip;
        let tree = self.merged_tree(Some(from), tip, to)?;
        if tree == self.layout.history().tree_of(tip)? {
            return Ok(None);
        }
        let headers = author(&self.author());
        let commit = self.write(&tree, &[tip], &headers, message.as_bytes());
        commit.map(Some)
    }

    /// Makes the worktree's commits again, one after the other, leaving out those without effect.
    fn rebase(&self) -> Result<Option<String>, TreeError> {
        let tip = self.target.tip.as_str();
        // First the whole: a conflict names all its files, not those of one commit.
        let whole = self.merged_tree(None, tip, self.head)?;
        let commits = self.own_commits()?;
        let mut at = tip.to_owned();
        let mut tree_at = self.layout.history().tree_of(tip)?;
        for commit in &commits {
            let [parent] = &commit.parents[..] else {
                continue;
            };
            let tree = self.merged_tree(Some(parent), &at, &commit.oid)?;
            if tree == tree_at {
                continue;
            }
            let raw = self.raw(&commit.oid)?;
            let (headers, message) = kept_parts(&raw);
            at = self.write(&tree, &[&at], &headers, message)?;
            tree_at = tree;
        }
        // Changes made in merge commits are in none of the other commits.
        let merges = commits.iter().any(|commit| commit.parents.len() != 1);
        if merges && tree_at != whole {
            return Err(TreeError::NotMergeable {
                name: self.name.to_owned(),
                why: "its merge commits hold changes a rebase would lose; use merge or squash"
                    .into(),
            });
        }
        Ok((at != tip).then_some(at))
    }

    /// The merged tree object, or the files in conflict.
    fn merged_tree(
        &self,
        base: Option<&str>,
        ours: &str,
        theirs: &str,
    ) -> Result<String, TreeError> {
        let mut git = self.layout.git("merge-tree").args([
            "--write-tree",
            "-z",
            "--name-only",
            "--no-messages",
        ]);
        if let Some(base) = base {
            git = git.arg(format!("--merge-base={base}"));
        }
        let (clean, bytes) = git.args([ours, theirs]).ask()?;
        let mut parts = zero_split(&bytes).map(|part| String::from_utf8_lossy(part).into_owned());
        let tree = parts.next().unwrap_or_default();
        if clean {
            return Ok(tree);
        }
        let mut files: Vec<String> = parts.collect();
        files.dedup();
        Err(TreeError::Conflicts {
            name: self.name.to_owned(),
            into: shown_branch(&self.target.branch).to_owned(),
            files,
        })
    }

    /// The commits the target does not have, oldest first.
    fn own_commits(&self) -> Result<Vec<Commit>, TreeError> {
        let lines = self
            .layout
            .git("rev-list")
            .args(["--reverse", "--topo-order", "--parents"])
            .args([self.head, &format!("^{}", self.target.tip)])
            .lines()?;
        let parse = |line: &String| {
            let mut oids = line.split(' ').map(str::to_owned);
            let oid = oids.next()?;
            Some(Commit {
                oid,
                parents: oids.collect(),
            })
        };
        Ok(lines.iter().filter_map(parse).collect())
    }

    fn raw(&self, commit: &str) -> Result<Vec<u8>, TreeError> {
        self.layout.git("cat-file").args(["commit", commit]).run()
    }

    /// The committer git is configured with, or ccb if there is none.
    fn committer(&self) -> &str {
        self.committer.get_or_init(|| {
            let said = self.identity("COMMITTER");
            said.unwrap_or_else(|_| format!("ccb <ccb@localhost> {} +0000", self.now_ms / 1000))
        })
    }

    /// The author git is configured with, or ccb if there is none.
    fn author(&self) -> String {
        let said = self.identity("AUTHOR");
        said.unwrap_or_else(|_| self.committer().to_owned())
    }

    /// The user's identity in git: by the environment, else by configuration.
    fn identity(&self, role: &str) -> Result<String, TreeError> {
        let named = ["NAME", "EMAIL"].map(|part| format!("GIT_{role}_{part}"));
        let said = named.map(|name| std::env::var_os(&name).map(|value| (name, value)));
        if said.iter().all(Option::is_none)
            && let Some(configured) = in_process::committer(self.layout)
        {
            return Ok(configured);
        }
        let mut git = self.layout.git("var").arg(format!("GIT_{role}_IDENT"));
        for (name, value) in said.into_iter().flatten() {
            git = git.env(&name, value);
        }
        git.line()
    }

    /// Writes a commit object.
    fn write(
        &self,
        tree: &str,
        parents: &[&str],
        headers: &Headers,
        message: &[u8],
    ) -> Result<String, TreeError> {
        let mut bytes = format!("tree {tree}\n").into_bytes();
        for parent in parents {
            bytes.extend_from_slice(format!("parent {parent}\n").as_bytes());
        }
        bytes.extend_from_slice(&headers.author);
        bytes.extend_from_slice(format!("\ncommitter {}\n", self.committer()).as_bytes());
        bytes.extend_from_slice(&headers.rest);
        bytes.push(b'\n');
        bytes.extend_from_slice(message);
        if !bytes.ends_with(b"\n") {
            bytes.push(b'\n');
        }
        admin::write_commit(self.layout, bytes)
    }
}

struct Commit {
    oid: String,
    parents: Vec<String>,
}

/// The lines of a commit that are kept when it is made again.
#[derive(Debug, Default, PartialEq, Eq)]
struct Headers {
    author: Vec<u8>,
    /// Each with its line end.
    rest: Vec<u8>,
}

fn author(who: &str) -> Headers {
    Headers {
        author: format!("author {who}").into_bytes(),
        rest: Vec::new(),
    }
}

/// The kept parts of a raw commit: its author, the encoding of its message, the message. A
/// signature is of the old commit and would be wrong.
fn kept_parts(raw: &[u8]) -> (Headers, &[u8]) {
    let mut headers = Headers::default();
    let mut rest = raw;
    while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
        let (header, tail) = (&rest[..end], &rest[end + 1..]);
        rest = tail;
        if header.is_empty() {
            break;
        }
        if header.starts_with(b"author ") {
            headers.author = header.to_vec();
        } else if header.starts_with(b"encoding ") {
            headers.rest.extend_from_slice(header);
            headers.rest.push(b'\n');
        }
    }
    (headers, rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_commit_made_again_keeps_author_encoding_and_words() {
        let raw = b"tree 1\nparent 2\nauthor A <a@b> 1 +0000\ncommitter C <c@d> 2 +0000\n\
            gpgsig -----BEGIN\n \n author nothing\n -----END\nencoding latin1\n\nSubj\xe9ct\n\nbody\n";
        let (headers, message) = kept_parts(raw);
        assert_eq!(headers.author, b"author A <a@b> 1 +0000");
        assert_eq!(headers.rest, b"encoding latin1\n");
        assert_eq!(message, b"Subj\xe9ct\n\nbody\n");
    }
}
