//! The one rule for names of lists, teams and agents.

use std::fmt;
use std::path::Path;

use crate::error::{Result, StoreError};
use crate::tree::names_in;

/// A checked name, safe as one path component on every platform.
///
/// `[A-Za-z0-9][A-Za-z0-9._-]{0,63}`, without `..`, not ending in `.` or `.lock`. Two names
/// that differ only in case are one name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name(String);

impl Name {
    /// Checks `given`; `what` ("list", "agent") goes into the error.
    pub fn new(what: &'static str, given: &str) -> Result<Self> {
        let bad = |why| StoreError::BadName {
            what,
            given: given.to_owned(),
            why,
        };
        let first = given.chars().next().ok_or_else(|| bad("it is empty"))?;
        if !first.is_ascii_alphanumeric() {
            return Err(bad("it must start with a letter or digit"));
        }
        if !given
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-'))
        {
            return Err(bad("only letters, digits, '.', '_' and '-' are allowed"));
        }
        if given.len() > 64 {
            return Err(bad("it is longer than 64 characters"));
        }
        if given.contains("..") {
            return Err(bad("it contains '..'"));
        }
        let lower = given.to_ascii_lowercase();
        if lower.ends_with('.') || lower.ends_with(".lock") {
            return Err(bad("it ends in '.' or '.lock'"));
        }
        Ok(Self(given.to_owned()))
    }

    /// A valid name made of other text, such as a directory's name.
    ///
    /// `suffix` keeps names of different origins apart. Only for names that no user typed: a name a
    /// person gave is checked, never changed.
    pub fn derived(text: &str, suffix: &str) -> Self {
        let clean: String = text
            .chars()
            .map(|c| {
                if c.is_ascii_alphanumeric() || matches!(c, '_' | '-') {
                    c
                } else {
                    '-'
                }
            })
            .take(64 - suffix.len() - 1)
            .collect();
        let clean = clean.trim_start_matches(['-', '_']);
        let stem = if clean.is_empty() { "repo" } else { clean };
        Self(format!("{stem}-{suffix}"))
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Fails if `parent` holds an entry that differs from this name only in case.
    pub fn check_no_clash(&self, what: &'static str, parent: &Path) -> Result<()> {
        let clashes = |other: &String| *other != self.0 && other.eq_ignore_ascii_case(&self.0);
        match names_in(parent)?.into_iter().find(clashes) {
            Some(existing) => Err(StoreError::NameClash {
                what,
                given: self.0.clone(),
                existing,
            }),
            None => Ok(()),
        }
    }
}

impl fmt::Display for Name {
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
        for good in ["a", "A9", "fix-auth", "v1.2_x", &"x".repeat(64)] {
            assert_eq!(Name::new("list", good).unwrap().as_str(), good);
        }
        let long = "x".repeat(65);
        for bad in [
            "", ".", "..", "../x", "a/b", "a..b", "-f", "_a", "a.", "a.lock", "a.LOCK", "é", "a b",
            "a\0b", "a\nb", &long,
        ] {
            assert!(Name::new("list", bad).is_err(), "{bad:?} must be refused");
        }
    }

    proptest! {
        #[test]
        fn a_derived_name_is_always_valid(text in ".*") {
            let name = Name::derived(&text, "0123abcd");
            prop_assert!(Name::new("list", name.as_str()).is_ok(), "{}", name);
        }

        #[test]
        fn a_valid_name_is_one_plain_component(text in ".{0,70}") {
            if let Ok(name) = Name::new("list", &text) {
                let path = std::path::Path::new(name.as_str());
                prop_assert_eq!(path.components().count(), 1);
                prop_assert_eq!(path.file_name().and_then(|n| n.to_str()), Some(name.as_str()));
            }
        }
    }

    #[test]
    fn names_that_differ_only_in_case_clash() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("Fixers")).unwrap();
        let clash = Name::new("list", "fixers")
            .unwrap()
            .check_no_clash("list", dir.path());
        assert!(matches!(clash, Err(StoreError::NameClash { .. })));
        Name::new("list", "Fixers")
            .unwrap()
            .check_no_clash("list", dir.path())
            .unwrap();
    }
}
