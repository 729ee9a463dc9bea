//! Confining commands to an agent's worktree, with Linux's Landlock.
//!
//! Landlock binds the thread that asks for it and everything it starts, for good. So it is asked
//! for by a process of its own: `ccb __confined JSON PROGRAM …` confines itself and becomes the
//! program. What a confined program may write is a list of directories; it reads and runs
//! whatever the user can. What that does not cover is in docs/security.md.

mod capabilities;
mod enter;
mod git;
mod network;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use serde::{Deserialize, Serialize};

pub use enter::{CONFINED, EXIT_NOT_CONFINED, main};
pub use git::tree_around;

/// Devices that harmless commands write to.
const DEVICES: [&str; 8] = [
    "/dev/full",
    "/dev/null",
    "/dev/ptmx",
    "/dev/pts",
    "/dev/random",
    "/dev/tty",
    "/dev/urandom",
    "/dev/zero",
];

/// How an agent's commands are confined, as settings say it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Sandbox {
    /// They reach the network.
    pub network: bool,
    /// What they may write besides the worktree, such as a package manager's cache.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub write: Vec<PathBuf>,
}

impl Default for Sandbox {
    fn default() -> Self {
        Self {
            network: true,
            write: Vec::new(),
        }
    }
}

/// What one program may do.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Confinement {
    /// Below these, and nowhere else, it may write. What is not there is left out.
    pub write: Vec<PathBuf>,
    /// It reaches the network.
    pub network: bool,
    /// The words of a program through which the helper starts itself once more, without a network.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    through: Vec<String>,
}

impl Confinement {
    /// For a program in `tree`: that, and `also`.
    pub fn of_tree(tree: &Path, also: impl IntoIterator<Item = PathBuf>, network: bool) -> Self {
        let mut write = vec![tree.to_owned()];
        write.extend(also);
        Self::writing(write, network)
    }

    /// For a program that may write below `write` and nowhere else.
    pub fn writing(write: Vec<PathBuf>, network: bool) -> Self {
        Self {
            write,
            network,
            through: Vec::new(),
        }
    }

    /// The words that come before a program and its arguments. `helper` is a ccb.
    ///
    /// The helper comes first, so that it can be named `/proc/self/exe`: others than root may not
    /// look at `/proc/PID/exe` of whoever starts it, because hosts and loops keep their keys from
    /// others of the same user.
    pub fn words(&self, helper: &Path) -> Result<Vec<OsString>, String> {
        support()?;
        let through = match self.network {
            true => Vec::new(),
            false => network::off()?,
        };
        let told = Self {
            through,
            ..self.clone()
        };
        let json = serde_json::to_string(&told).map_err(|error| error.to_string())?;
        Ok(vec![helper.into(), CONFINED.into(), json.into()])
    }
}

static HELPER: OnceLock<PathBuf> = OnceLock::new();

/// Says that this process is a ccb, so that it can be started again as the helper.
pub fn this_is_ccb() {
    HELPER.get_or_init(|| PathBuf::from("/proc/self/exe"));
}

/// What can be started as the helper, if this process is a ccb.
pub fn helper() -> Option<&'static Path> {
    HELPER.get().map(PathBuf::as_path)
}

/// Whether programs can be confined here; if not, why, in a sentence for people.
pub fn support() -> Result<(), String> {
    static SUPPORT: OnceLock<Result<(), String>> = OnceLock::new();
    SUPPORT.get_or_init(enter::probe).clone()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_helper_is_named_as_everybody_may_name_it() {
        let own = Path::new("/proc/self/exe");
        for network in [true, false] {
            let confinement = Confinement::writing(vec!["/tmp".into()], network);
            // Where the kernel cannot do it there are no words.
            if let Ok(words) = confinement.words(own) {
                assert_eq!(
                    words.first().map(OsString::as_os_str),
                    Some(own.as_os_str())
                );
            }
        }
    }
}
