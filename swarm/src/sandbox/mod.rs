//! Confining commands to an agent's worktree, with Linux's Landlock.
//!
//! Landlock binds the thread that asks for it and everything it starts, for good. So a process of
//! its own asks for it: `ccb __confined JSON PROGRAM …` confines itself and becomes the program. A
//! confined program may write to a list of directories; it reads and runs whatever the user can.
//! The limits of that are in docs/security.md.

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

/// The confinement of an agent's commands in the settings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Sandbox {
    /// True if they reach the network.
    pub network: bool,
    /// The places they may write to besides the worktree, such as a package manager's cache.
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

/// The permissions of one program.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Confinement {
    /// Below these directories, and nowhere else, it may write. Those that do not exist are left
    /// out.
    pub write: Vec<PathBuf>,
    /// True if it reaches the network.
    pub network: bool,
    /// The words of a program through which the helper starts itself once more, without a network.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    through: Vec<String>,
}

impl Confinement {
    /// The confinement of a program in `tree`: it may write to that, and to `also`.
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
    /// The helper comes first, so that it can be named `/proc/self/exe`: users other than root may
    /// not look at `/proc/PID/exe` of its starter, because hosts and loops keep their keys from
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

/// The program to start as the helper, if this process is a ccb.
pub fn helper() -> Option<&'static Path> {
    HELPER.get().map(PathBuf::as_path)
}

/// An error if programs cannot be confined here: the reason, in a sentence for people.
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
