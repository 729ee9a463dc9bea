//! One shape for everything that can go wrong.
//!
//! Every error says three things of itself besides its words ([`Explain`]): to which group it
//! belongs, a stable word for programs, and what to do about it. Whoever asked for something gets
//! them as a [`Failure`], whichever part said no.

use std::error::Error;
use std::fmt;

use serde_json::{Map, Value, json};

/// Groups of errors that callers treat alike. Each has an exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Category {
    /// Wrong input or configuration.
    Invalid,
    /// It is not there.
    NotFound,
    /// It may not be done now, or by this caller.
    Refused,
    /// Somebody or something took too long.
    TimedOut,
    /// A limit on turns, time, tokens or money; it can go on.
    Budget,
    /// The provider refuses for now; it can go on later.
    Quota,
    /// Work is left to land.
    Conflict,
    /// The system did not let us.
    Failed,
    /// A bug.
    Internal,
}

/// What an error says of itself besides its words.
#[derive(Debug, Clone)]
pub struct Facts {
    /// The group it belongs to.
    pub category: Category,
    /// A stable word for programs.
    pub kind: &'static str,
    /// What the user can do about it.
    pub hint: Option<String>,
    /// What programs are told besides.
    pub details: Map<String, Value>,
}

impl Facts {
    /// Without a hint and details.
    pub fn new(category: Category, kind: &'static str) -> Self {
        Self {
            category,
            kind,
            hint: None,
            details: Map::new(),
        }
    }

    /// What the user can do about it.
    #[must_use]
    pub fn hint(self, text: impl Into<String>) -> Self {
        self.maybe_hint(Some(text.into()))
    }

    /// The same, if there is something to do.
    #[must_use]
    pub fn maybe_hint(self, hint: Option<String>) -> Self {
        Self { hint, ..self }
    }

    /// Something else that programs are told.
    #[must_use]
    pub fn detail(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.details.insert(key.to_owned(), value.into());
        self
    }
}

/// An error that can be told to whoever asked.
pub trait Explain: Error {
    /// What it says of itself.
    fn facts(&self) -> Facts;

    /// A stable word for programs.
    fn kind(&self) -> &'static str {
        self.facts().kind
    }

    /// The group it belongs to.
    fn category(&self) -> Category {
        self.facts().category
    }

    /// What the user can do about it.
    fn hint(&self) -> Option<String> {
        self.facts().hint
    }
}

/// Why something that was asked for was not done, whichever part said so.
#[derive(Debug)]
pub struct Failure(Box<Inner>);

#[derive(Debug)]
struct Inner {
    facts: Facts,
    message: String,
    error: Option<Box<dyn Error + Send + Sync>>,
}

impl Failure {
    /// One that no part's error stands for.
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

    /// It may not be done now, or by this caller.
    pub fn refused(kind: &'static str, message: impl Into<String>) -> Self {
        Self::new(Category::Refused, kind, message)
    }

    /// The system did not let us.
    pub fn failed(kind: &'static str, message: impl Into<String>) -> Self {
        Self::new(Category::Failed, kind, message)
    }

    /// A bug.
    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(Category::Internal, "internal", message)
    }

    /// The same with something to do about it.
    #[must_use]
    pub fn with_hint(self, text: impl Into<String>) -> Self {
        self.maybe_hint(Some(text.into()))
    }

    /// The same with something to do about it, if there is.
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

    /// What the user can do about it.
    pub fn hint(&self) -> Option<&str> {
        self.0.facts.hint.as_deref()
    }

    /// The message with what caused it.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// The message and what to do about it, on one line.
    pub fn in_a_line(&self) -> String {
        match self.hint() {
            Some(hint) => format!("{} ({hint})", self.message()),
            None => self.message().to_owned(),
        }
    }

    /// The part's own error, if it was of this type.
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
