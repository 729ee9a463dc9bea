use store::{Category, Explain, Facts};

use super::Problem;

/// The reason why there is no agent of the requested type.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum DefinitionError {
    /// No source defines it.
    #[error("there is no agent type {name:?}{}", because(problem.as_deref()))]
    Unknown {
        name: String,
        nearest: Vec<String>,
        known: Vec<String>,
        /// A definition that was left out and that the caller may have meant.
        problem: Option<Box<Problem>>,
    },
    /// The settings forbid it.
    #[error("agents of type {name:?} are denied by the setting agents.deny")]
    Denied { name: String },
}

fn because(problem: Option<&Problem>) -> String {
    problem.map_or_else(String::new, |problem| {
        format!("; its definition is wrong: {problem}")
    })
}

impl Explain for DefinitionError {
    fn facts(&self) -> Facts {
        match self {
            Self::Unknown { nearest, known, .. } => {
                let hint = match nearest.is_empty() {
                    true => format!("there are {}", known.join(", ")),
                    false => format!("did you mean {}?", nearest.join(" or ")),
                };
                Facts::new(Category::NotFound, "unknown_type").hint(hint)
            }
            Self::Denied { .. } => Facts::new(Category::Refused, "denied_type")
                .hint("take it off that list, or use another type"),
        }
    }
}
