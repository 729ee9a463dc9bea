//! The names of agents that are unique beyond one team.

use std::fmt;

use uuid::Uuid;

use crate::name::Name;

/// The lead's name in every team.
pub const LEAD: &str = "team-lead";

/// `a` and 16 hex digits, or `name@team` for a member of a team.
///
/// Safe as one path component.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AgentId(String);

impl AgentId {
    /// A new one nobody has.
    pub fn random() -> Self {
        // A v4 uuid has 122 random bits; its last 15 digits and its first are all random.
        let digits = Uuid::new_v4().simple().to_string();
        Self(format!("a{}{}", &digits[17..], &digits[..1]))
    }

    /// The one of the member `name` of `team`.
    pub fn member(name: impl fmt::Display, team: impl fmt::Display) -> Self {
        Self(format!("{name}@{team}"))
    }

    /// The name that `given` means within `team`: what stands before `@team`, else all of it.
    pub fn name_in<'g>(given: &'g str, team: &str) -> &'g str {
        let name = given.strip_suffix(team);
        let name = name.and_then(|rest| rest.strip_suffix('@'));
        name.unwrap_or(given)
    }

    /// Reads what the other two made; `None` for anything else.
    pub fn parse(text: &str) -> Option<Self> {
        let lower_hex = |c: char| matches!(c, '0'..='9' | 'a'..='f');
        let random = text
            .strip_prefix('a')
            .is_some_and(|digits| digits.len() == 16 && digits.chars().all(lower_hex));
        let member = || {
            let (name, team) = text.split_once('@')?;
            Some(Name::new("agent", name).is_ok() && Name::new("team", team).is_ok())
        };
        (random || member() == Some(true)).then(|| Self(text.to_owned()))
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for AgentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_kinds_are_read_back_and_nothing_else_is() {
        let (name, team) = (
            Name::new("agent", "alice").unwrap(),
            Name::new("team", "fixers").unwrap(),
        );
        let member = AgentId::member(&name, &team);
        assert_eq!(member.as_str(), "alice@fixers");
        assert_eq!(AgentId::parse(member.as_str()), Some(member));
        assert_eq!(AgentId::name_in("alice@fixers", "fixers"), "alice");
        for other in ["alice", "alice@others", "fixers", "alicefixers"] {
            assert_eq!(AgentId::name_in(other, "fixers"), other);
        }
        let random = AgentId::random();
        assert_eq!(random.as_str().len(), 17);
        assert_ne!(random, AgentId::random());
        assert_eq!(AgentId::parse(random.as_str()), Some(random));
        for bad in [
            "",
            "a",
            "alice",
            "../x@y",
            "a@",
            "@t",
            "a/b@t",
            "a@b@c",
            "a0123456789abcdeF",
        ] {
            assert_eq!(AgentId::parse(bad), None, "{bad:?}");
        }
    }
}
