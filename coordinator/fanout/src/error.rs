use std::path::PathBuf;

use director::DirectorError;
use runs::AgentError;
use store::{Category, Explain, Facts, StoreError};
use taskboard::BoardError;
use worktrees::TreeError;

/// The reason why a plan, its inputs or its results cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum FanoutError {
    /// The plan contains a mistake.
    #[error("{place}: {why}")]
    Plan {
        /// The file, with the line if known.
        place: String,
        why: String,
        hint: Option<String>,
    },
    /// An input of a `foreach` cannot be used.
    #[error("{what}: {why}")]
    Input { what: String, why: String },
    /// Things of a `foreach` lie outside of the repository.
    #[error("{place}: {why}")]
    Outside {
        /// The file, with the line if known.
        place: String,
        /// The `foreach` and its things.
        why: String,
    },
    /// A `foreach` matched nothing.
    #[error("{what}")]
    NothingMatched {
        /// The `foreach` and its source.
        what: String,
    },
    /// The command line wants tasks that are not in the plan.
    #[error("{what}")]
    NotInPlan {
        /// The flag and its value.
        what: String,
        hint: Option<String>,
    },
    /// There is no task at all.
    #[error("{place}: the plan has no task")]
    Empty { place: String },
    /// The files of a run are not what its manifest says.
    #[error("{}: {why}", path.display())]
    Results {
        /// The directory or file.
        path: PathBuf,
        why: String,
    },
    /// Reports that do not belong together.
    #[error("{why}")]
    Merge { why: String },
    /// Git does not know who commits.
    #[error("git does not know who commits here")]
    NoIdentity,
    /// The repository has uncommitted changes that would be overwritten.
    #[error("{} with changes that are not committed", store::counted(*changed, "file"))]
    Uncommitted { changed: usize },
    /// A patch does not fit.
    #[error("{patch} does not apply: {why}")]
    DoesNotApply { patch: String, why: String },
    /// The engine could not continue.
    #[error(transparent)]
    Director(#[from] DirectorError),
    /// Git, or a worktree.
    #[error(transparent)]
    Tree(#[from] TreeError),
    /// A file.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Explain for FanoutError {
    fn facts(&self) -> Facts {
        use Category::{Conflict, Invalid, Refused};
        match self {
            Self::Director(error) => error.facts(),
            Self::Tree(error) => error.facts(),
            Self::Store(error) => error.facts(),
            Self::Plan { hint, .. } => Facts::new(Invalid, "bad_plan").maybe_hint(hint.clone()),
            Self::Input { .. } => Facts::new(Invalid, "bad_input"),
            Self::Outside { .. } => Facts::new(Invalid, "outside").hint(
                "let the tool run in this checkout, so that its paths lie in it; `outside: skip` \
                 in the foreach leaves such items out",
            ),
            Self::NothingMatched { .. } => Facts::new(Invalid, "nothing_matched")
                .hint("check the pattern or the file; --allow-empty goes on without tasks"),
            Self::NotInPlan { hint, .. } => {
                Facts::new(Invalid, "nothing_matched").maybe_hint(hint.clone())
            }
            Self::Empty { .. } => Facts::new(Invalid, "empty_plan")
                .hint("add `tasks:` or `foreach:`; `ccb fanout init` writes an example"),
            Self::Results { .. } => Facts::new(Refused, "bad_results")
                .hint("use the directory as the run wrote it, with every file"),
            Self::Merge { .. } => Facts::new(Invalid, "reports_differ"),
            Self::NoIdentity => Facts::new(Invalid, "no_identity")
                .hint("set it: git config user.name NAME && git config user.email ADDRESS"),
            Self::Uncommitted { .. } => {
                Facts::new(Refused, "has_changes").hint("commit or stash them, then apply")
            }
            Self::DoesNotApply { .. } => Facts::new(Conflict, "conflicts").hint(
                "the repository is as it was; --3way may merge it, or apply to the commit it was \
                 made for",
            ),
        }
    }
}

impl From<BoardError> for FanoutError {
    fn from(error: BoardError) -> Self {
        Self::Director(error.into())
    }
}

impl From<AgentError> for FanoutError {
    fn from(error: AgentError) -> Self {
        Self::Director(error.into())
    }
}
