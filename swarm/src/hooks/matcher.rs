//! The events and agents that a hook is for.

use regex_lite::Regex;

/// A hook's `matcher`.
#[derive(Debug, Clone, Default)]
pub(super) enum Matcher {
    /// Every name.
    #[default]
    All,
    /// One of these names.
    Names(Vec<String>),
    /// Every name that has this somewhere in it.
    Pattern(Regex),
}

/// A pattern that takes more memory than this when it is compiled is refused.
const SIZE_LIMIT: usize = 1 << 20;

impl Matcher {
    /// Names with `|` between them are compared as they are; anything else is a pattern.
    pub(super) fn new(text: &str) -> Result<Self, String> {
        if matches!(text, "" | "*") {
            return Ok(Self::All);
        }
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '|' | ' ');
        if text.chars().all(plain) {
            let names = text.split('|').map(|name| name.trim().to_owned());
            return Ok(Self::Names(names.collect()));
        }
        let pattern = regex_lite::RegexBuilder::new(text)
            .size_limit(SIZE_LIMIT)
            .build();
        match pattern {
            Ok(pattern) => Ok(Self::Pattern(pattern)),
            Err(error) => Err(format!("the matcher {text:?} is not a pattern: {error}")),
        }
    }

    pub(super) fn matches(&self, name: &str) -> bool {
        match self {
            Self::All => true,
            Self::Names(names) => names.iter().any(|one| one == name),
            Self::Pattern(pattern) => pattern.is_match(name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lists_and_patterns() {
        for (matcher, yes, no) in [
            ("*", "anything", ""),
            ("", "anything", ""),
            ("Explore", "Explore", "Explorer"),
            ("Plan|code-reviewer", "code-reviewer", "my-code-reviewer"),
            ("Plan | Explore", "Explore", "explore"),
            ("^code-.*er$", "code-reviewer", "my-code-reviewer"),
            ("review.", "my-reviewer", "review"),
        ] {
            let matcher_is = Matcher::new(matcher).unwrap();
            assert!(matcher_is.matches(yes), "{matcher} {yes}");
            assert!(no.is_empty() || !matcher_is.matches(no), "{matcher} {no}");
        }
        assert!(Matcher::new("(").is_err());
        assert!(Matcher::new("(?=x)").is_err());
        assert!(Matcher::new("(a{1000}){1000}").is_err());
    }
}
