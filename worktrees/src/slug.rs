//! Names of worktrees.

use std::fmt;

use uuid::Uuid;

use crate::error::TreeError;

/// A checked name of a worktree: segments of letters, digits, `.`, `_` and `-`, split by `/`.
///
/// At most 64 characters, and such that `worktree/<flat>` is a branch name git accepts. Two names
/// that differ only in case are one name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Slug(String);

/// Maximum length of a name.
const MAX: usize = 64;

impl Slug {
    /// Checks `given`. It is never changed to make it fit.
    pub fn new(given: &str) -> Result<Self, TreeError> {
        match broken_rule(given) {
            Some(why) => Err(TreeError::BadName {
                given: given.to_owned(),
                why,
            }),
            None => Ok(Self(given.to_owned())),
        }
    }

    /// A generated name.
    pub fn generated() -> Self {
        const FIRST: [&str; 16] = [
            "amber", "brisk", "calm", "clear", "deep", "early", "fair", "gentle", "keen", "light",
            "merry", "plain", "quiet", "swift", "warm", "wide",
        ];
        const SECOND: [&str; 16] = [
            "birch", "brook", "cedar", "cove", "dune", "fern", "field", "grove", "heron", "lake",
            "maple", "meadow", "otter", "reed", "stone", "wren",
        ];
        let random = Uuid::new_v4();
        let [a, b, c, d, ..] = *random.as_bytes();
        let first = FIRST[usize::from(a % 16)];
        let second = SECOND[usize::from(b % 16)];
        Self(format!("{first}-{second}-{c:02x}{d:02x}"))
    }

    /// The name of an agent's own worktree.
    pub fn of_agent(agent_id: &str) -> Result<Self, TreeError> {
        Self::new(&format!("agent-{agent_id}"))
    }

    /// The name as given.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The name as one path component: `/` becomes `+`, which no name has.
    pub fn flat(&self) -> String {
        self.0.replace('/', "+")
    }

    /// The branch of the worktree, without `refs/heads/`.
    pub fn branch(&self) -> String {
        format!("worktree/{}", self.flat())
    }

    /// True if both would be the same where case does not count.
    pub(crate) fn clashes_with(&self, other: &str) -> bool {
        self.0.eq_ignore_ascii_case(other)
    }
}

fn broken_rule(given: &str) -> Option<&'static str> {
    if given.is_empty() {
        return Some("it is empty");
    }
    if given.chars().count() > MAX {
        return Some("it is longer than 64 characters");
    }
    given.split('/').find_map(|segment| {
        let lower = segment.to_ascii_lowercase();
        let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
        if segment.is_empty() {
            Some("a part between '/' is empty")
        } else if !segment.chars().all(allowed) {
            Some("only letters, digits, '.', '_', '-' and '/' are allowed")
        } else if segment.starts_with('-') || segment.starts_with('.') {
            Some("a part starts with '-' or '.'")
        } else if segment.contains("..") {
            Some("it contains '..'")
        } else if lower.ends_with('.') || lower.ends_with(".lock") {
            Some("a part ends in '.' or '.lock'")
        } else {
            None
        }
    })
}

impl fmt::Display for Slug {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn accepts_and_refuses() {
        for good in [
            "a",
            "A9",
            "fix/auth-bug",
            "v1.2_x",
            "a/b/c",
            &"x".repeat(64),
        ] {
            assert_eq!(Slug::new(good).unwrap().as_str(), good);
        }
        let long = "x".repeat(65);
        for bad in [
            "",
            ".",
            "..",
            "../x",
            "a/../b",
            "a//b",
            "/a",
            "a/",
            ".git",
            "-f",
            "a/-f",
            "a.lock",
            "a.LOCK/b",
            "a..b",
            "a.",
            "a b",
            "a+b",
            "a\\b",
            "a:b",
            "a~1",
            "a@{0}",
            "\u{430}",
            "fix\u{2215}auth",
            "e\u{301}",
            "a\0",
            "a\n",
            &long,
        ] {
            assert!(Slug::new(bad).is_err(), "{bad:?} must be refused");
        }
        assert_eq!(Slug::new("a/b").unwrap().flat(), "a+b");
        assert!(Slug::new("Fix").unwrap().clashes_with("fIX"));
    }

    #[test]
    fn generated_names_are_valid() {
        for _ in 0..50 {
            let slug = Slug::generated();
            assert_eq!(Slug::new(slug.as_str()).unwrap(), slug);
        }
    }

    proptest! {
        #[test]
        fn a_valid_name_is_one_plain_component_and_a_ref(text in "[a-zA-Z0-9._/@~^: -]{0,70}") {
            if let Ok(slug) = Slug::new(&text) {
                let flat = slug.flat();
                let path = std::path::Path::new(&flat);
                prop_assert_eq!(path.components().count(), 1);
                prop_assert!(path.file_name().is_some());
                let reference = format!("refs/heads/{}", slug.branch());
                prop_assert!(git2::Reference::is_valid_name(&reference), "{}", reference);
            }
        }
    }
}
