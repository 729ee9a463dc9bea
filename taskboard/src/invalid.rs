use store::{Category, Explain, Facts};

/// Input that breaks a rule.
#[derive(Debug, thiserror::Error)]
#[error("{what}: {why}")]
pub struct Invalid {
    /// The input.
    pub what: String,
    /// The rule it breaks.
    pub why: String,
}

impl Invalid {
    /// `what` breaks the rule `why`.
    pub fn new(what: impl Into<String>, why: impl Into<String>) -> Self {
        Self {
            what: what.into(),
            why: why.into(),
        }
    }
}

impl Explain for Invalid {
    fn facts(&self) -> Facts {
        Facts::new(Category::Invalid, "invalid")
    }
}
