use super::Problem;

/// Why there is no agent of the type asked for.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DefinitionError {
    /// Nobody defines it.
    #[error("there is no agent type {name:?}{}", because(problem.as_deref()))]
    Unknown {
        /// As asked for.
        name: String,
        /// Types with similar names.
        nearest: Vec<String>,
        /// All types.
        known: Vec<String>,
        /// A definition that was left out and may have been meant.
        problem: Option<Box<Problem>>,
    },
    /// The settings forbid it.
    #[error("agents of type {name:?} are denied by the setting agents.deny")]
    Denied {
        /// As asked for.
        name: String,
    },
}

fn because(problem: Option<&Problem>) -> String {
    problem.map_or_else(String::new, |problem| {
        format!("; its definition is wrong: {problem}")
    })
}

impl DefinitionError {
    /// A stable word for programs.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Unknown { .. } => "unknown_type",
            Self::Denied { .. } => "denied_type",
        }
    }

    /// What the user can do about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Unknown { nearest, known, .. } => Some(if nearest.is_empty() {
                format!("there are {}", known.join(", "))
            } else {
                format!("did you mean {}?", nearest.join(" or "))
            }),
            Self::Denied { .. } => Some("take it off that list, or use another type".into()),
        }
    }
}
