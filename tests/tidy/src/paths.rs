//! Every path that ARCHITECTURE.md names exists.
//!
//! The rule of the document: in the table *Where things are* each cell begins with a path from the
//! repository's root. A short name after it (`merge.rs`, `acp/quirks.rs`) is beside the last path
//! from the root that the cell has named. `{a,b}` stands for both. A directory ends with `/`.
//! Elsewhere only paths from the root count, and links.

use std::path::{Path, PathBuf};

/// The endings of names that are meant as files of the repository.
const ENDINGS: [&str; 6] = [".rs", ".md", ".json", ".toml", ".sh", "/"];

/// The paths in `text` that are not in `root`.
pub fn missing(text: &str, root: &Path) -> Vec<String> {
    let mut missing = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let mut report = |what: &str| missing.push(format!("line {}: {what}", number + 1));
        for link in links(line) {
            if !root.join(&link).exists() {
                report(&link);
            }
        }
        let cells: Vec<&str> = line.split(" | ").collect();
        let table = line.starts_with("| ");
        for cell in cells.iter().skip(usize::from(table)) {
            let mut beside: Vec<PathBuf> = Vec::new();
            for span in spans(cell) {
                let from_root = starts_at_root(&span, root);
                let is_short = table && looks_like_a_path(&span);
                if !from_root && !is_short {
                    continue;
                }
                let all = written_out(&span);
                if from_root {
                    beside = all.iter().filter_map(|path| directory(path)).collect();
                    all.iter()
                        .filter(|path| !root.join(path).exists())
                        .for_each(|path| report(path));
                } else {
                    let found =
                        |path: &String| beside.iter().any(|dir| root.join(dir).join(path).exists());
                    all.iter()
                        .filter(|path| !found(path))
                        .for_each(|path| report(path));
                }
            }
        }
    }
    missing
}

/// The directory a path is in; a directory itself if it is one.
fn directory(path: &str) -> Option<PathBuf> {
    match path.strip_suffix('/') {
        Some(directory) => Some(directory.into()),
        None => Path::new(path).parent().map(Path::to_owned),
    }
}

fn starts_at_root(span: &str, root: &Path) -> bool {
    let first = span.split_once('/').map(|(first, _)| first);
    first.is_some_and(|first| {
        !first.is_empty() && !first.starts_with('.') && root.join(first).is_dir()
    }) && span
        .chars()
        .all(|c| c.is_ascii_alphanumeric() || "/._-{},".contains(c))
}

fn looks_like_a_path(span: &str) -> bool {
    ENDINGS.iter().any(|ending| span.ends_with(ending)) && !span.contains(' ')
}

/// The texts between single backticks.
fn spans(text: &str) -> Vec<String> {
    text.split('`')
        .skip(1)
        .step_by(2)
        .map(str::to_owned)
        .collect()
}

/// Where links go, but for those that leave the repository.
fn links(text: &str) -> Vec<String> {
    let targets = text
        .split("](")
        .skip(1)
        .filter_map(|rest| rest.split_once(')'));
    let targets = targets.map(|(target, _)| target.split('#').next().unwrap_or_default());
    let inside = targets.filter(|target| !target.is_empty() && !target.contains("://"));
    inside.map(str::to_owned).collect()
}

/// `a/{b,c}/d` as `a/b/d` and `a/c/d`.
fn written_out(span: &str) -> Vec<String> {
    let Some((before, rest)) = span.split_once('{') else {
        return vec![span.to_owned()];
    };
    let Some((names, after)) = rest.split_once('}') else {
        return vec![span.to_owned()];
    };
    let each = names
        .split(',')
        .map(|name| format!("{before}{}{after}", name.trim()));
    each.flat_map(|path| written_out(&path)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn repository() -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        for file in ["a/src/x.rs", "a/src/y/z.rs", "a/src/w/z.rs", "docs/one.md"] {
            let path = dir.path().join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "").unwrap();
        }
        dir
    }

    #[test]
    fn what_exists_is_fine() {
        let dir = repository();
        let text = "see [one](docs/one.md#part), `.ccb/lock`, `not/of/this` and `exit.json`\n\
                    | want | `a/src/x.rs` (`seal`), `y/z.rs`; also `a/src/{y,w}/z.rs` and `z.rs` |\n\
                    | all | `a/src/`, `x.rs`, [web](https://example.com/x) |\n";
        assert_eq!(missing(text, dir.path()), Vec::<String>::new());
    }

    #[test]
    fn what_does_not_is_named_with_its_line() {
        let dir = repository();
        for (text, wanted) in [
            ("see [two](docs/two.md)", "line 1: docs/two.md"),
            ("in `a/src/gone.rs`", "line 1: a/src/gone.rs"),
            ("\n| x | `a/src/x.rs`, `gone.rs` |", "line 2: gone.rs"),
            ("| x | `x.rs` |", "line 1: x.rs"),
            ("| x | `a/src/{x,gone}.rs` |", "line 1: a/src/gone.rs"),
        ] {
            assert_eq!(missing(text, dir.path()), [wanted]);
        }
    }
}
