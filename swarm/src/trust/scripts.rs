//! The files of a repository that a command names.
//!
//! A hook that runs `.claude/check.sh` would run something else if that file changed. The commands
//! in such a file are not read: a user who trusts `make test` trusts the makefile.

use std::fs::File;
use std::io;
use std::path::Path;

use sha2::{Digest, Sha256};

use super::Places;

/// A file, relative to the root, and the hash of what is in it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Script {
    pub(super) path: String,
    pub(super) hash: String,
}

/// The forms of the project's directory in commands.
const PROJECT: [&str; 2] = ["$CLAUDE_PROJECT_DIR", "${CLAUDE_PROJECT_DIR}"];

/// The files of the repository that are named in `texts`.
pub(super) fn named_in(texts: &[&str], places: Places<'_>) -> Vec<Script> {
    let roots = (places.tree.canonicalize(), places.project.canonicalize());
    let (Ok(tree), Ok(project)) = roots else {
        return Vec::new();
    };
    let parts = |c: char| c.is_whitespace() || ";|&()<>`'=,".contains(c);
    let mut found: Vec<Script> = texts
        .iter()
        // Quotes are left out: `"$CLAUDE_PROJECT_DIR"/x` is one word.
        .map(|text| text.replace('"', ""))
        .flat_map(|text| {
            let words = text.split(parts).filter(|word| !word.is_empty());
            let scripts = words.filter_map(|word| script(word, &tree, &project));
            scripts.collect::<Vec<Script>>()
        })
        .collect();
    found.sort();
    found.dedup();
    found
}

fn script(word: &str, tree: &Path, project: &Path) -> Option<Script> {
    let in_project = PROJECT.iter().find_map(|start| word.strip_prefix(start));
    let (root, word) = match in_project {
        Some(rest) => (project, rest.trim_start_matches('/')),
        None => (tree, word),
    };
    let real = root.join(word).canonicalize().ok()?;
    if !real.is_file() {
        return None;
    }
    // A path that leads into the project is the project's, wherever it is used.
    let inside = [root, project]
        .into_iter()
        .find_map(|root| real.strip_prefix(root).ok());
    let path = inside?.to_string_lossy().into_owned();
    let mut hash = Sha256::new();
    // A file that cannot be read was not reviewed.
    let read = File::open(&real).and_then(|mut file| io::copy(&mut file, &mut Hashing(&mut hash)));
    let hash = match read {
        Ok(_) => super::hex(&hash.finalize()),
        Err(error) => format!("unreadable: {error}"),
    };
    Some(Script { path, hash })
}

/// Takes in what is written to it.
struct Hashing<'a>(&'a mut Sha256);

impl io::Write for Hashing<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
