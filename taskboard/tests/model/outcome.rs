//! The answer of an operation, in a form both sides can give.

/// The outcome of an operation: everything about the answer that is promised.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Outcome {
    Nothing,
    Task(u64),
    Created(Vec<u64>),
    Claimed {
        id: u64,
        token: Option<u64>,
    },
    NothingToDo(&'static str),
    Busy(Vec<u64>),
    Changed {
        id: u64,
        unblocked: Vec<u64>,
        nudge: bool,
    },
    Returned(Vec<u64>),
    Removed(usize),
    /// The kind of the error, and whom or what it names.
    Refused(&'static str, Vec<String>),
}

pub(crate) type Answer = Result<Outcome, Outcome>;

pub(crate) fn refused(kind: &'static str) -> Outcome {
    Outcome::Refused(kind, Vec::new())
}

pub(crate) fn refused_by(kind: &'static str, named: &dyn ToString) -> Outcome {
    Outcome::Refused(kind, vec![named.to_string()])
}

pub(crate) fn refused_by_all(kind: &'static str, named: &[u64]) -> Outcome {
    Outcome::Refused(kind, named.iter().map(ToString::to_string).collect())
}
