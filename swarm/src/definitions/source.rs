//! The sources of definitions.

use std::fmt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// The sources, in order of precedence.
#[derive(Debug, Clone, Default)]
pub struct Sources {
    /// The directory of the administrator of this machine.
    pub managed: Option<PathBuf>,
    /// The value of `--agents`, a JSON object of definitions by name.
    pub json: Option<String>,
    /// Directories of the project, the nearest first; see [`Sources::project_directories`].
    pub project: Vec<PathBuf>,
    /// The user's own directory.
    pub user: Option<PathBuf>,
    /// Types that must not be started (`agents.deny`).
    pub deny: Vec<String>,
}

impl Sources {
    /// `.claude/agents` in `cwd` and in each directory above it, up to `root`.
    ///
    /// Without a `root` (no repository) only `cwd` itself counts: directories above are not
    /// known to belong together.
    pub fn project_directories(cwd: &Path, root: Option<&Path>) -> Vec<PathBuf> {
        let root = root.filter(|root| cwd.starts_with(root)).unwrap_or(cwd);
        cwd.ancestors()
            .take_while(|dir| dir.starts_with(root))
            .map(|dir| dir.join(".claude/agents"))
            .collect()
    }
}

/// The source of one definition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Source {
    /// A file of the administrator of this machine.
    Managed(PathBuf),
    /// The flag `--agents`.
    Flag,
    /// A file of the repository.
    Project(PathBuf),
    /// A file of the user.
    User(PathBuf),
    /// ccb itself.
    BuiltIn,
}

impl Source {
    /// A stable word for programs.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Managed(_) => "managed",
            Self::Flag => "flag",
            Self::Project(_) => "project",
            Self::User(_) => "user",
            Self::BuiltIn => "built-in",
        }
    }

    /// The file, if it is one.
    pub fn file(&self) -> Option<&Path> {
        match self {
            Self::Managed(file) | Self::Project(file) | Self::User(file) => Some(file),
            Self::Flag | Self::BuiltIn => None,
        }
    }

    /// True if it came with a repository: what it would run needs the user's trust.
    pub fn is_repository(&self) -> bool {
        matches!(self, Self::Project(_))
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.file() {
            Some(file) => write!(f, "{}", file.display()),
            None if *self == Self::Flag => f.write_str("--agents"),
            None => f.write_str("built in"),
        }
    }
}
