//! The Markdown files below a directory.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// Maximum bytes of a file. A longer file is no prompt.
pub(super) const MAX_FILE: u64 = 256 * 1024;
/// Maximum files that are read; a link to a large directory must not take for ever.
pub(super) const MAX_FILES: usize = 2_000;
const MAX_DEPTH: usize = 8;

/// The files found below one directory, in the order of their paths.
#[derive(Debug, Default)]
pub(super) struct Scan {
    pub(super) files: Vec<PathBuf>,
    /// Paths that could not be read, and why.
    pub(super) problems: Vec<(PathBuf, String)>,
}

/// Finds `*.md` below `dir`, also in its directories, as Claude Code does. A missing directory is
/// no problem.
pub(super) fn scan(dir: &Path) -> Scan {
    let mut scan = Scan::default();
    let mut seen = Vec::new();
    walk(dir, 0, &mut seen, &mut scan);
    scan.files.sort();
    scan
}

fn walk(dir: &Path, depth: usize, seen: &mut Vec<PathBuf>, scan: &mut Scan) {
    // Links are followed, but nothing is visited twice.
    let real = match dir.canonicalize() {
        Ok(real) => real,
        Err(error) => return note(scan, dir, &error),
    };
    if depth > MAX_DEPTH || seen.contains(&real) {
        return;
    }
    seen.push(real);
    let entries = match std::fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(error) => return note(scan, dir, &error),
    };
    for entry in entries {
        let path = match entry {
            Ok(entry) => entry.path(),
            Err(error) => return note(scan, dir, &error),
        };
        let hidden = path
            .file_name()
            .is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
        if hidden {
            continue;
        }
        match std::fs::metadata(&path) {
            Ok(meta) if meta.is_dir() => walk(&path, depth + 1, seen, scan),
            Ok(meta) if meta.is_file() && is_markdown(&path) => {
                if scan.files.len() == MAX_FILES {
                    let why =
                        format!("there are more than {MAX_FILES} files; the rest is left out");
                    scan.problems.push((dir.to_owned(), why));
                    return;
                }
                scan.files.push(path);
            }
            Ok(_) => {}
            Err(error) if is_markdown(&path) => note(scan, &path, &error),
            Err(_) => {}
        }
    }
}

fn is_markdown(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "md")
}

fn note(scan: &mut Scan, path: &Path, error: &io::Error) {
    let absent = matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    );
    // A link that leads nowhere is a problem; a directory that does not exist is not.
    if !absent || path.is_symlink() {
        scan.problems.push((path.to_owned(), error.to_string()));
    }
}

/// The text of a file that is not too long.
pub(super) fn read(path: &Path) -> Result<String, String> {
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|file| file.take(MAX_FILE + 1).read_to_end(&mut bytes));
    read.map_err(|error| error.to_string())?;
    if bytes.len() as u64 > MAX_FILE {
        return Err(format!(
            "it is larger than {} KiB, the most a definition may have",
            MAX_FILE / 1024
        ));
    }
    String::from_utf8(bytes).map_err(|_| "it is not valid UTF-8".to_owned())
}
