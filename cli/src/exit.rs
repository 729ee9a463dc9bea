//! The only table of exit codes.

use std::io;

use coordinator::session::Verdict;
use store::{Category, Failure};

/// The documented exit codes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    Done,
    /// The command failed.
    Not(Category),
    /// The exit code of a command that ccb ran for the user.
    Of(u8),
    /// Ended by this signal; state is consistent.
    Signal(u8),
}

impl Exit {
    pub(crate) fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Not(Category::Failed) => 1,
            Self::Not(Category::Invalid) => 2,
            Self::Not(Category::NotFound) => 3,
            Self::Not(Category::Refused) => 4,
            Self::Not(Category::TimedOut) => 5,
            Self::Not(Category::Budget) => 6,
            Self::Not(Category::Quota) => 7,
            Self::Not(Category::Conflict) => 8,
            Self::Not(Category::Internal) => 70,
            Self::Of(code) => code,
            Self::Signal(signal) => 128 + signal,
        }
    }
}

impl From<Verdict> for Exit {
    fn from(verdict: Verdict) -> Self {
        match verdict {
            Verdict::Done => Self::Done,
            Verdict::Failed => Self::Not(Category::Failed),
            Verdict::Budget => Self::Not(Category::Budget),
            Verdict::Quota => Self::Not(Category::Quota),
            Verdict::Conflicts => Self::Not(Category::Conflict),
            Verdict::Internal => Self::Not(Category::Internal),
            Verdict::Interrupted(signal) => Self::Signal(signal),
        }
    }
}

impl From<&Failure> for Exit {
    fn from(failure: &Failure) -> Self {
        match failure.kind() {
            CLOSED_STDOUT => Self::Done,
            _ => Self::Not(failure.category()),
        }
    }
}

/// Error code for a closed stdout: the reader has gone, which is fine.
pub(crate) const CLOSED_STDOUT: &str = "closed_stdout";

/// The error for a failed write to stdout.
pub(crate) fn not_printed(error: &io::Error) -> Failure {
    match error.kind() {
        io::ErrorKind::BrokenPipe => Failure::failed(CLOSED_STDOUT, "standard output was closed"),
        _ => Failure::failed("io", format!("cannot write to standard output: {error}")),
    }
}
