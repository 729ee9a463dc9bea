//! The choice of the model that an agent runs on.

/// The sources of the choice.
#[derive(Debug, Clone, Copy, Default)]
pub struct ModelChoice<'a> {
    /// The value of `$CLAUDE_CODE_SUBAGENT_MODEL`.
    pub everywhere: Option<&'a str>,
    /// The model of the call.
    pub call: Option<&'a str>,
    /// The model of the definition.
    pub definition: Option<&'a str>,
    /// The exact id of the parent's model, if it is known.
    pub parent: Option<&'a str>,
    /// True if the parent is in plan mode.
    pub parent_plans: bool,
    /// True if the agent is a fork: it continues where its parent is, on its parent's model.
    pub fork: bool,
    /// True if the call comes from a coordinator, which chooses types and not models.
    pub coordinator: bool,
}

/// The word that means the parent's model. Only in lower case.
const INHERIT: &str = "inherit";
/// Claude Code's word for one model while planning and another one while working.
const OPUS_PLAN: &str = "opusplan";

impl ModelChoice<'_> {
    /// The model to ask the runtime for; `None` means the runtime's default.
    ///
    /// The first one that is set of environment, call and definition; a request for the parent's
    /// family gets exactly the parent's model, not another one of that family.
    pub fn resolve(&self) -> Option<String> {
        let parent = self.parent.map(str::to_owned);
        if self.fork {
            return parent;
        }
        // An agent that inherits gets the model its parent runs on now, not one that changes with
        // its own mode.
        let parent = match (self.parent, self.parent_plans) {
            (Some(OPUS_PLAN), true) => Some("opus".to_owned()),
            (Some(OPUS_PLAN), false) => Some("sonnet".to_owned()),
            _ => parent,
        };
        let call = self.call.filter(|_| !self.coordinator);
        let mut asked = [self.everywhere, call, self.definition]
            .into_iter()
            .flatten();
        match asked.find(|model| !model.is_empty()) {
            None | Some(INHERIT) => parent,
            Some(model) if parent.as_deref().is_some_and(|id| is_family_of(model, id)) => parent,
            Some(model) => Some(model.to_owned()),
        }
    }
}

/// True if `word` names the family that the model `id` belongs to: `sonnet` that of
/// `claude-sonnet-4-5-20250929`. An exact id names itself and no family.
fn is_family_of(word: &str, id: &str) -> bool {
    let letters = word.chars().all(|c| c.is_ascii_alphabetic());
    letters
        && id
            .split(|c: char| !c.is_ascii_alphanumeric())
            .any(|part| part.eq_ignore_ascii_case(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SONNET: &str = "us.anthropic.claude-sonnet-4-5-20250929-v1:0";

    fn resolve(choice: ModelChoice<'_>) -> Option<String> {
        ModelChoice {
            parent: Some(SONNET),
            ..choice
        }
        .resolve()
    }

    #[test]
    fn the_first_that_says_something_wins() {
        let all = ModelChoice {
            everywhere: Some("a-1"),
            call: Some("b-1"),
            definition: Some("c-1"),
            ..ModelChoice::default()
        };
        assert_eq!(resolve(all).as_deref(), Some("a-1"));
        let call = ModelChoice {
            everywhere: None,
            ..all
        };
        assert_eq!(resolve(call).as_deref(), Some("b-1"));
        let empty = ModelChoice {
            everywhere: Some(""),
            call: Some(""),
            ..all
        };
        assert_eq!(resolve(empty).as_deref(), Some("c-1"));
        assert_eq!(resolve(ModelChoice::default()).as_deref(), Some(SONNET));
        assert_eq!(ModelChoice::default().resolve(), None);
    }

    #[test]
    fn inherit_is_a_word_in_lower_case() {
        let call = |call| ModelChoice {
            call: Some(call),
            definition: Some("c-1"),
            ..ModelChoice::default()
        };
        assert_eq!(resolve(call("inherit")).as_deref(), Some(SONNET));
        assert_eq!(resolve(call("Inherit")).as_deref(), Some("Inherit"));
        assert_eq!(call("inherit").resolve(), None, "nobody knows the parent's");
    }

    #[test]
    fn whoever_inherits_gets_what_its_parent_runs_on_now() {
        let choice = |parent_plans, call| ModelChoice {
            parent: Some("opusplan"),
            parent_plans,
            call,
            ..ModelChoice::default()
        };
        let resolved = |plans, call| choice(plans, call).resolve();
        assert_eq!(resolved(true, Some("inherit")).as_deref(), Some("opus"));
        assert_eq!(resolved(false, None).as_deref(), Some("sonnet"));
        assert_eq!(
            resolved(false, Some("opusplan")).as_deref(),
            Some("opusplan")
        );
        assert_eq!(resolved(true, Some("haiku")).as_deref(), Some("haiku"));
        let fork = ModelChoice {
            fork: true,
            ..choice(true, None)
        };
        assert_eq!(fork.resolve().as_deref(), Some("opusplan"));
    }

    #[test]
    fn the_parents_family_is_the_parents_model() {
        let call = |call| ModelChoice {
            call: Some(call),
            ..ModelChoice::default()
        };
        for family in ["sonnet", "Sonnet"] {
            assert_eq!(resolve(call(family)).as_deref(), Some(SONNET), "{family}");
        }
        for other in [
            "haiku",
            "opus",
            "claude-sonnet-4-20250514",
            "sonnet[1m]",
            "son",
        ] {
            assert_eq!(resolve(call(other)).as_deref(), Some(other), "{other}");
        }
        assert_eq!(call("sonnet").resolve().as_deref(), Some("sonnet"));
    }

    #[test]
    fn a_fork_stays_on_its_parents_model_and_a_coordinator_does_not_choose() {
        let all = ModelChoice {
            everywhere: Some("a-1"),
            call: Some("b-1"),
            definition: Some("c-1"),
            fork: true,
            ..ModelChoice::default()
        };
        assert_eq!(resolve(all).as_deref(), Some(SONNET));
        let coordinator = ModelChoice {
            everywhere: None,
            fork: false,
            coordinator: true,
            ..all
        };
        assert_eq!(resolve(coordinator).as_deref(), Some("c-1"));
    }
}
