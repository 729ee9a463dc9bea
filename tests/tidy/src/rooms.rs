//! Each crate is a room: its `lib.rs` says what it knows, and it is small enough to know it all.

use std::path::Path;

use crate::paths;

/// The headings at the top of each `lib.rs`.
const HEADINGS: [&str; 4] = [
    "What this room knows",
    "What it must not know",
    "The way through",
    "Crash points",
];

/// The part with paths of files.
const THINGS: &str = "# Where things are";

/// The headings that the text of a `lib.rs` lacks, and the paths in its documentation that are not
/// in `root`.
pub fn problems(text: &str, root: &Path) -> Vec<String> {
    let documentation: Vec<&str> = text
        .lines()
        .filter_map(|line| line.strip_prefix("//!"))
        .map(|line| line.strip_prefix(' ').unwrap_or(line))
        .collect();
    let has = |heading: &str| {
        let titles = documentation
            .iter()
            .filter_map(|line| line.strip_prefix("# "));
        titles.into_iter().any(|title| title.starts_with(heading))
    };
    let lacks = HEADINGS.iter().filter(|heading| !has(heading));
    let lacks = lacks.map(|heading| format!("its lib.rs has no part \"{heading}\""));
    // Links elsewhere are rustdoc's, which checks them itself.
    let things = documentation.iter().skip_while(|line| **line != THINGS);
    let things: Vec<&str> = things.copied().collect();
    let missing = paths::missing(&things.join("\n"), root);
    lacks.chain(missing).collect()
}

/// Lines below `dir` that are neither blank nor comments, without the tests at the end of a file.
pub fn code_lines(dir: &Path) -> std::io::Result<usize> {
    let mut lines = 0;
    let mut dirs = vec![dir.to_owned()];
    while let Some(dir) = dirs.pop() {
        for entry in std::fs::read_dir(dir)? {
            let path = entry?.path();
            if path.is_dir() {
                dirs.push(path);
            } else if path.extension().is_some_and(|end| end == "rs") {
                let text = std::fs::read_to_string(path)?;
                let product = text.lines().take_while(|line| *line != "#[cfg(test)]");
                let is_code = |line: &&str| !line.is_empty() && !line.starts_with("//");
                lines += product.map(str::trim).filter(is_code).count();
            }
        }
    }
    Ok(lines)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_that_is_missing_and_a_path_that_is_gone_are_named() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let whole = HEADINGS.map(|heading| format!("//! # {heading}\n"));
        let table = "//! # Where things are\n//! | see | `src/rooms.rs`, `gone.rs` |\n";
        let text = format!("{}{table}mod x;\n", whole[1..].concat());
        assert_eq!(
            problems(&text, root),
            [
                "its lib.rs has no part \"What this room knows\"",
                "line 2: gone.rs"
            ]
        );
        let text = format!("{}// # not documentation\n", whole.concat());
        assert_eq!(problems(&text, root), [""; 0]);
    }

    #[test]
    fn blank_lines_and_comments_are_no_code() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("inner")).unwrap();
        let code = "//! a\n\nfn a() {\n    // b\n}\n#[cfg(test)]\nmod tests {}\n";
        std::fs::write(dir.path().join("inner/a.rs"), code).unwrap();
        std::fs::write(dir.path().join("b.txt"), code).unwrap();
        assert_eq!(code_lines(dir.path()).unwrap(), 2);
    }
}
