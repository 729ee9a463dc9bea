//! A problem, as `ccb doctor` reports it.

/// A problem.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// A stable word for programs.
    pub kind: &'static str,
    /// In words.
    pub message: String,
    /// The repair, if there was one.
    pub fixed: Option<String>,
}

impl Finding {
    /// A problem without a repair.
    pub fn new(kind: &'static str, message: String) -> Self {
        Self {
            kind,
            message,
            fixed: None,
        }
    }
}

impl From<worktrees::TreeFinding> for Finding {
    fn from(found: worktrees::TreeFinding) -> Self {
        Self {
            kind: found.kind,
            message: format!("worktree {}: {}", found.name, found.message),
            fixed: found.fixed,
        }
    }
}

impl From<taskboard::Finding> for Finding {
    fn from(found: taskboard::Finding) -> Self {
        Self {
            kind: found.kind.as_str(),
            message: found.message,
            fixed: found.fixed,
        }
    }
}
