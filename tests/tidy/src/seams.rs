//! Which backend keeps tasks, mail and rosters is chosen in few places: everything else asks a port.
//!
//! Each condition on the feature `postgres` in a Rust file of the product is counted. A room chooses
//! its backend once; the code that uses the room does not ask again. Files below a directory `tests`
//! are not read: a test of a backend is built only with that backend.

use std::io::{Error, Result};
use std::path::Path;
use std::process::Command;

/// The maximum of conditions in the repository.
pub const MOST: usize = 20;

/// A condition, without spaces. This file must not hold it in one piece.
const CONDITION: &str = concat!("feature=", "\"postgres\"");

/// The number of conditions of each file of the product that has any, of the files that git tracks
/// below `root`.
pub fn find(root: &Path) -> Result<Vec<(String, usize)>> {
    let output = Command::new("git")
        .args(["ls-files", "-z", "*.rs"])
        .current_dir(root)
        .output()?;
    if !output.status.success() {
        return Err(Error::other("git ls-files failed"));
    }
    let names = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut found = Vec::new();
    let is_product = |name: &&str| !name.is_empty() && !name.split('/').any(|part| part == "tests");
    for name in names.split('\0').filter(is_product) {
        let path = root.join(name);
        // A file that was deleted and not committed yet.
        if path.is_file() {
            let count = in_text(&std::fs::read_to_string(path)?);
            found.extend((count > 0).then(|| (name.to_owned(), count)));
        }
    }
    Ok(found)
}

/// The number of conditions in `text`.
pub fn in_text(text: &str) -> usize {
    let lines = text.lines().map(|line| line.replace(' ', ""));
    lines.map(|line| line.matches(CONDITION).count()).sum()
}

/// The reason why `found` is too much, with the files, if it is more than `most`.
pub fn problem(found: &[(String, usize)], most: usize) -> Option<String> {
    let count: usize = found.iter().map(|(_, count)| count).sum();
    if count <= most {
        return None;
    }
    let mut text = format!(
        "{count} conditions on the feature postgres, and {most} are allowed. Ask a backend \
         (taskboard::backend, mailbox::backend, team::backend, runs::backends) instead:"
    );
    for (file, count) in found {
        text.push_str(&format!("\n  {file}: {count}"));
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_are_counted_wherever_they_stand() {
        let condition = CONDITION.replace('=', " = ");
        for (text, count) in [
            (format!("#[cfg({condition})]\nmod a;"), 1),
            (format!("#[cfg({CONDITION})]"), 1),
            (
                format!("#[cfg_attr(not({condition}), expect(dead_code))]"),
                1,
            ),
            (
                format!("#[cfg(any({condition}, test))] if cfg!({condition})"),
                2,
            ),
            ("#[cfg(feature = \"page\")]".to_owned(), 0),
        ] {
            assert_eq!(in_text(&text), count, "{text}");
        }
    }

    #[test]
    fn too_many_are_listed_by_file() {
        let found = [("a.rs".to_owned(), 2), ("b/c.rs".to_owned(), 1)];
        assert_eq!(problem(&found, 3), None);
        let problem = problem(&found, 2).unwrap();
        for part in [
            "3 conditions",
            "2 are allowed",
            "\n  a.rs: 2",
            "\n  b/c.rs: 1",
        ] {
            assert!(problem.contains(part), "{part} in {problem}");
        }
    }
}
