//! One shape for every error of ccb.
//!
//! Every error says three things besides its message ([`Explain`]): its group, a stable word for
//! programs, and what to do about it. The caller gets them as a [`Failure`], whichever crate
//! failed.

use std::error::Error;
use std::fmt;

use serde_json::{Map, Value, json};

/// Groups of errors that callers treat alike. Each has an exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Category {
    /// Wrong input or configuration.
    Invalid,
    /// It does not exist.
    NotFound,
    /// It is not allowed now, or not to this caller.
    Refused,
    /// A program, a person or a lock took too long.
    TimedOut,
    /// A limit on turns, time, tokens or money was reached; the work can be resumed.
    Budget,
    /// The provider refuses for now; the work can be resumed later.
    Quota,
    /// Work is left to land.
    Conflict,
    /// The operating system refused.
    Failed,
    /// A bug.
    Internal,
}

/// The facts of an error besides its message.
#[derive(Debug, Clone)]
pub struct Facts {
    /// The group it belongs to.
    pub category: Category,
    /// A stable word for programs.
    pub kind: &'static str,
    /// The remedy, for the user.
    pub hint: Option<String>,
    /// More facts, for programs.
    pub details: Map<String, Value>,
}

impl Facts {
    /// Facts without a hint and details.
    pub fn new(category: Category, kind: &'static str) -> Self {
        Self {
            category,
            kind,
            hint: None,
            details: Map::new(),
        }
    }

    /// Adds the remedy, for the user.
    #[must_use]
    pub fn hint(self, text: impl Into<String>) -> Self {
        self.maybe_hint(Some(text.into()))
    }

    /// Adds the remedy, if there is one.
    #[must_use]
    pub fn maybe_hint(self, hint: Option<String>) -> Self {
        Self { hint, ..self }
    }

    /// Adds a fact for programs.
    #[must_use]
    pub fn detail(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.details.insert(key.to_owned(), value.into());
        self
    }
}

/// An error that can be shown to the caller.
pub trait Explain: Error {
    /// The facts besides its message.
    fn facts(&self) -> Facts;

    /// A stable word for programs.
    fn kind(&self) -> &'static str {
        self.facts().kind
    }

    /// The group it belongs to.
    fn category(&self) -> Category {
        self.facts().category
    }

    /// The remedy, for the user.
    fn hint(&self) -> Option<String> {
        self.facts().hint
    }
}

/// Why a request failed, whichever crate it failed in.
#[derive(Debug)]
pub struct Failure(Box<Inner>);

#[derive(Debug)]
struct Inner {
    facts: Facts,
    message: String,
    error: Option<Box<dyn Error + Send + Sync>>,
}

impl Failure {
    /// A failure without an error type of a crate.
    pub fn new(category: Category, kind: &'static str, message: impl Into<String>) -> Self {
        Self(Box::new(Inner {
            facts: Facts::new(category, kind),
            message: message.into(),
            error: None,
        }))
    }

    /// Wrong input or configuration.
    pub fn usage(kind: &'static str, message: impl Into<String>) -> Self {
        Self::new(Category::Invalid, kind, message)
    }

    /// It is not allowed now, or not to this caller.
    pub fn refused(kind: &'static str, message: impl Into<String>) -> Self {
        Self::new(Category::Refused, kind, message)
    }

    /// The operating system refused.
    pub fn failed(kind: &'static str, message: impl Into<String>) -> Self {
        Self::new(Category::Failed, kind, message)
    }

    /// A bug.
    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(Category::Internal, "internal", message)
    }

    /// The same with a remedy.
    #[must_use]
    pub fn with_hint(self, text: impl Into<String>) -> Self {
        self.maybe_hint(Some(text.into()))
    }

    /// The same with a remedy, if there is one.
    #[must_use]
    pub fn maybe_hint(mut self, hint: Option<String>) -> Self {
        self.0.facts.hint = hint;
        self
    }

    /// The group it belongs to.
    pub fn category(&self) -> Category {
        self.0.facts.category
    }

    /// A stable word for programs.
    pub fn kind(&self) -> &'static str {
        self.0.facts.kind
    }

    /// The remedy, for the user.
    pub fn hint(&self) -> Option<&str> {
        self.0.facts.hint.as_deref()
    }

    /// The message with its causes.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// The message and the remedy, on one line.
    pub fn in_a_line(&self) -> String {
        match self.hint() {
            Some(hint) => format!("{} ({hint})", self.message()),
            None => self.message().to_owned(),
        }
    }

    /// The crate's own error, if it is of this type.
    pub fn of<E: Error + 'static>(&self) -> Option<&E> {
        self.0.error.as_ref()?.downcast_ref()
    }

    /// `{"error":{"kind","message","hint"?,…}}`.
    pub fn to_json(&self) -> Value {
        let Inner { facts, message, .. } = &*self.0;
        let mut error = Map::new();
        error.insert("kind".into(), facts.kind.into());
        error.insert("message".into(), message.as_str().into());
        if let Some(hint) = &facts.hint {
            error.insert("hint".into(), hint.as_str().into());
        }
        error.extend(facts.details.clone());
        json!({ "error": error })
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.message())
    }
}

impl<E: Explain + Send + Sync + 'static> From<E> for Failure {
    fn from(error: E) -> Self {
        Self(Box::new(Inner {
            facts: error.facts(),
            message: with_causes(&error),
            error: Some(Box::new(error)),
        }))
    }
}

fn with_causes(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let more = error.to_string();
        // Transparent errors repeat their cause.
        if !text.ends_with(&more) {
            text = format!("{text}: {more}");
        }
        cause = error.source();
    }
    text
}
