//! The name of a repository on every machine: the address of its remote `origin`, without the parts
//! that differ between those who fetch from it.

use std::path::{Component, Path, PathBuf};

use crate::git::Repository;
use crate::remote::{plain_address, remote_url};

impl Repository {
    /// The [plain address](plain_address) of `origin`, with its path made absolute. `None` if there
    /// is no such remote.
    pub fn address(&self) -> Option<String> {
        let dir = self.main_tree.as_deref().unwrap_or(&self.common_dir);
        let plain = plain_address(&whole(remote_url(self, "origin")?.trim(), dir)?);
        (!plain.is_empty()).then_some(plain)
    }
}

/// `url`, or its target from `dir` if it is a relative path.
fn whole(url: &str, dir: &Path) -> Option<String> {
    // git's rule for `host:path`: no slash before the colon.
    let is_path = match url.split_once(':') {
        Some((before, _)) => before.contains('/'),
        None => true,
    };
    if !is_path || url.is_empty() {
        return Some(url.to_owned());
    }
    // Without the file system: the same words mean the same on every machine.
    let mut plain = PathBuf::new();
    for part in dir.join(url).components() {
        match part {
            Component::ParentDir => drop(plain.pop()),
            Component::CurDir => {}
            part => plain.push(part),
        }
    }
    plain.to_str().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_the_remote_origin_that_counts() {
        let dir = tempfile::tempdir().unwrap();
        let git = |args: &[&str]| {
            let output = std::process::Command::new("git")
                .args(args)
                .current_dir(dir.path())
                .env("GIT_CONFIG_GLOBAL", "/dev/null")
                .output()
                .unwrap();
            assert!(output.status.success(), "{output:?}");
        };
        git(&["init", "-q"]);
        let repository = Repository::discover(dir.path()).unwrap();
        assert_eq!(repository.address(), None);
        git(&["remote", "add", "upstream", "https://example.org/other"]);
        assert_eq!(repository.address(), None);
        git(&["remote", "add", "origin", "git@example.org:team/tool.git"]);
        let address = || repository.address().unwrap();
        assert_eq!(address(), "example.org/team/tool");
        let near = dir.path().canonicalize().unwrap().join("near");
        for path in ["near.git", "./near.git/", "x/../near.git"] {
            git(&["remote", "set-url", "origin", path]);
            assert_eq!(address(), near.to_str().unwrap(), "{path}");
        }
        git(&["remote", "set-url", "origin", "/srv/git/tool.git"]);
        assert_eq!(address(), "/srv/git/tool");
    }
}
