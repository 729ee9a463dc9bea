//! Which of the files that an agent changed it may not change.

use swarm::run::FileRules;

/// Files whose change weakens the proof of unattended work: what CI runs, and what git itself does
/// to files. The check's own files come from the check (see `fanout`).
pub const USUALLY_PROTECTED: &[&str] = &[
    ".github/workflows/**",
    ".github/actions/**",
    ".gitlab-ci.yml",
    ".gitlab/**",
    ".circleci/**",
    ".buildkite/**",
    ".travis.yml",
    "azure-pipelines.yml",
    "bitbucket-pipelines.yml",
    "Jenkinsfile",
    "**/.gitattributes",
    "**/.gitmodules",
    ".githooks/**",
    ".husky/**",
    ".pre-commit-config.yaml",
];

/// Those of `changed` that `rules` do not allow, in order.
pub(crate) fn out_of_bounds(rules: &FileRules, changed: &[String]) -> Vec<String> {
    let breaks =
        |path: &&String| is_protected(&rules.protect, path) || !is_inside(&rules.paths, path);
    changed.iter().filter(breaks).cloned().collect()
}

/// True if the last pattern that matches protects it.
fn is_protected(patterns: &[String], path: &str) -> bool {
    let last = patterns
        .iter()
        .rfind(|pattern| matches(pattern.strip_prefix('!').unwrap_or(pattern), path));
    last.is_some_and(|pattern| !pattern.starts_with('!'))
}

fn is_inside(patterns: &[String], path: &str) -> bool {
    patterns.is_empty() || patterns.iter().any(|pattern| matches(pattern, path))
}

/// True if the pattern means this file: by its name, as part of a directory, or by wild cards, of
/// which `*` stays in a directory and `**` does not.
pub fn matches(pattern: &str, path: &str) -> bool {
    let pattern = pattern.strip_prefix("./").unwrap_or(pattern);
    let pattern = pattern.strip_suffix('/').unwrap_or(pattern);
    let below = |dir: &str| {
        let rest = path.strip_prefix(dir);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    pattern == "." || pattern.is_empty() || below(pattern) || fast_glob::glob_match(pattern, path)
}

/// The text for the agent that retries the task.
pub(crate) fn words(rules: &FileRules, files: &[String]) -> String {
    const SHOWN: usize = 20;
    let mut shown = files
        .iter()
        .take(SHOWN)
        .cloned()
        .collect::<Vec<_>>()
        .join(", ");
    if let Some(more) = files.len().checked_sub(SHOWN).filter(|more| *more > 0) {
        shown.push_str(&format!(" and {more} more"));
    }
    let outside = |file: &String| !is_inside(&rules.paths, file);
    let mut text = format!("it changed files that it must not change: {shown}.");
    if files.iter().any(outside) {
        text.push_str(&format!(" Its paths are {}.", rules.paths.join(", ")));
    }
    if !files.iter().all(outside) {
        text.push_str(" The others are protected.");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(paths: &str, protect: &str) -> FileRules {
        let list = |text: &str| text.split_whitespace().map(Into::into).collect();
        FileRules {
            paths: list(paths),
            protect: list(protect),
        }
    }

    #[test]
    fn files_are_out_of_bounds_if_protected_or_outside_of_the_paths() {
        for (paths, protect, changed, out) in [
            ("", "", "a src/b", ""),
            ("src", "", "src/b srcs/b a", "srcs/b a"),
            ("src/", "", "src/deep/b a", "a"),
            ("./src/b.rs", "", "src/b.rs src/c.rs", "src/c.rs"),
            ("src/*.rs", "", "src/b.rs src/deep/c.rs", "src/deep/c.rs"),
            ("src/**/*.rs", "", "src/b.rs src/deep/c.rs src/d", "src/d"),
            ("*.md docs", "", "a.md docs/b.md src/c.md", "src/c.md"),
            (".", "", "a src/b", ""),
            (
                "",
                "tests/**",
                "tests/deep/a src/tests/b tests",
                "tests/deep/a",
            ),
            ("", "tests", "tests/a test", "tests/a"),
            ("src", "src/gen/**", "src/a src/gen/b", "src/gen/b"),
            (
                "",
                ".github/** !.github/ok.yml",
                ".github/a .github/ok.yml",
                ".github/a",
            ),
            ("", "!a a", "a", "a"),
            (
                "",
                "**/.gitattributes",
                ".gitattributes x/y/.gitattributes",
                ".gitattributes x/y/.gitattributes",
            ),
            ("", "a[", "a b", ""),
        ] {
            let changed: Vec<String> = changed.split_whitespace().map(Into::into).collect();
            let found = out_of_bounds(&rules(paths, protect), &changed).join(" ");
            assert_eq!(found, out, "{paths:?} {protect:?} {changed:?}");
        }
    }

    #[test]
    fn the_next_attempt_is_told_what_was_wrong() {
        let rules = rules("src", "src/gen");
        let files = ["a".to_owned(), "src/gen/b".to_owned()];
        let text = words(&rules, &files);
        assert_eq!(
            text,
            "it changed files that it must not change: a, src/gen/b. Its paths are src. \
             The others are protected."
        );
        let many: Vec<String> = (0..25).map(|n| format!("src/gen/{n}")).collect();
        assert!(words(&rules, &many).ends_with("src/gen/19 and 5 more. The others are protected."));
    }
}
