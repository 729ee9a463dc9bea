//! `CLAUDE.md` and `AGENTS.md`.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use store::beneath::Root;

use super::Surroundings;
use crate::path::plain;

/// The most bytes of all instructions at the start, and of those of one directory later.
pub(super) const MOST: usize = 48 * 1024;
/// The most bytes that are read of one file.
const MOST_OF_FILE: usize = 32 * 1024;
/// Maximum depth of imports.
const MOST_DEEP: usize = 5;
/// In one directory, in this order.
const NAMES: [&str; 4] = [
    "CLAUDE.md",
    ".claude/CLAUDE.md",
    "AGENTS.md",
    "CLAUDE.local.md",
];

/// Reads instructions, each file once.
#[derive(Debug)]
pub(super) struct Instructions {
    cwd: PathBuf,
    tree: PathBuf,
    root: Option<Root>,
    /// The user's own file, and where that may import from.
    own: Option<(PathBuf, Vec<Root>)>,
    read: BTreeSet<PathBuf>,
    looked_into: BTreeSet<PathBuf>,
}

/// Text that has only so much room.
struct Room {
    text: String,
    left: usize,
    left_out: Vec<String>,
}

impl Room {
    fn new() -> Self {
        Self {
            text: String::new(),
            left: MOST,
            left_out: Vec::new(),
        }
    }

    fn add(&mut self, path: &Path, title: &str, content: &str) {
        let entry = format!("\n## {title} ({})\n\n{}\n", path.display(), content.trim());
        if entry.len() > self.left {
            return self.left_out.push(path.display().to_string());
        }
        self.left -= entry.len();
        self.text.push_str(&entry);
    }

    fn finish(self, heading: &str) -> String {
        let mut text = self.text;
        if !self.left_out.is_empty() {
            text.push_str(&format!(
                "\n[Left out, because instructions together are longer than {} KiB: {}. Read them \
                 yourself if they bear on the task.]\n",
                MOST / 1024,
                self.left_out.join(", ")
            ));
        }
        match text.is_empty() {
            true => text,
            false => format!("\n{heading}\n{text}"),
        }
    }
}

impl Instructions {
    pub(super) fn new(around: &Surroundings) -> Self {
        let roots = [&around.home, &around.user];
        let roots = roots.into_iter().flatten();
        let own = around.home.as_ref().map(|home| {
            let open = roots.filter_map(|dir| Root::open(dir).ok()).collect();
            (home.join("CLAUDE.md"), open)
        });
        Self {
            cwd: around.cwd.clone(),
            tree: around.tree.clone(),
            root: Root::open(&around.tree).ok(),
            own,
            read: BTreeSet::new(),
            looked_into: BTreeSet::new(),
        }
    }

    /// The user's, and those from the top of the worktree down to where the agent works.
    pub(super) fn at_start(&mut self) -> String {
        let mut room = Room::new();
        if let Some((file, roots)) = self.own.take() {
            let found = self.load(&file, &roots.iter().collect::<Vec<_>>(), 0);
            for (path, content) in found {
                room.add(
                    &path,
                    "Instructions of the user, for all projects",
                    &content,
                );
            }
        }
        let cwd = self.cwd.clone();
        for dir in self.between(&cwd) {
            self.look_into(&dir, &mut room);
        }
        room.finish("# Instructions\n\nFollow these; of two that disagree the later counts.")
    }

    /// The instructions of `dir` and the directories above it that were not read before.
    pub(super) fn below(&mut self, dir: &Path) -> Option<String> {
        let mut room = Room::new();
        for dir in self.between(&plain(dir)) {
            self.look_into(&dir, &mut room);
        }
        let text = room.finish("[Instructions for this directory, found just now:]");
        (!text.is_empty()).then_some(text)
    }

    /// The directories from the top of the worktree down to `dir`, if that is inside.
    fn between(&self, dir: &Path) -> Vec<PathBuf> {
        if !dir.starts_with(&self.tree) {
            return Vec::new();
        }
        let above = dir
            .ancestors()
            .take_while(|dir| dir.starts_with(&self.tree));
        let mut dirs: Vec<PathBuf> = above.map(Path::to_owned).collect();
        dirs.reverse();
        dirs
    }

    fn look_into(&mut self, dir: &Path, room: &mut Room) {
        if !self.looked_into.insert(dir.to_owned()) {
            return;
        }
        let Some(root) = self.root.take() else {
            return;
        };
        for name in NAMES {
            for (path, content) in self.load(&dir.join(name), &[&root], 0) {
                room.add(&path, "Instructions of this project", &content);
            }
        }
        self.root = Some(root);
    }

    /// A file and what it imports, in the order in which they are to be read.
    fn load(&mut self, file: &Path, roots: &[&Root], deep: usize) -> Vec<(PathBuf, String)> {
        let Some((real, text)) = open(file, roots) else {
            return Vec::new();
        };
        if !self.read.insert(real) {
            return Vec::new();
        }
        let dir = file.parent().unwrap_or(Path::new("/"));
        let mut all = Vec::new();
        if deep < MOST_DEEP {
            for import in imports(&text) {
                let target = match import.strip_prefix("~/") {
                    // The user's home is the last of the user's own roots.
                    Some(rest) => roots.last().map(|root| root.path().join(rest)),
                    None => Some(plain(&dir.join(import))),
                };
                if let Some(target) = target {
                    all.extend(self.load(&target, roots, deep + 1));
                }
            }
        }
        all.push((file.to_owned(), text));
        all
    }
}

/// The beginning of a file inside one of the roots, and where it really is.
fn open(file: &Path, roots: &[&Root]) -> Option<(PathBuf, String)> {
    for root in roots {
        // The root may be named by a link.
        let named = file.strip_prefix(root.path()).map(Path::to_owned);
        let real = || {
            let dir = file.parent()?.canonicalize().ok()?;
            let below = dir.strip_prefix(root.path()).ok()?;
            Some(below.join(file.file_name()?))
        };
        let Some(below) = named.ok().or_else(real) else {
            continue;
        };
        let opened = root.read(&below).ok();
        let opened = opened.filter(|file| file.metadata().is_ok_and(|meta| meta.is_file()));
        let Some(opened) = opened else { continue };
        let real = root.path().join(root.place_of(&opened)?);
        return Some((real, beginning(&opened)?));
    }
    None
}

fn beginning(file: &File) -> Option<String> {
    let mut bytes = Vec::new();
    let most = u64::try_from(MOST_OF_FILE).ok()?;
    file.take(most + 1).read_to_end(&mut bytes).ok()?;
    let cut = bytes.len() > MOST_OF_FILE;
    bytes.truncate(MOST_OF_FILE);
    let mut text = String::from_utf8_lossy(&bytes).replace('\0', "\u{fffd}");
    if cut {
        text.truncate(text.trim_end_matches('\u{fffd}').len());
        text.push_str(&format!(
            "\n[The file is longer than {} KiB; this is its beginning.]",
            MOST_OF_FILE / 1024
        ));
    }
    Some(text)
}

/// The paths that `@path` names outside of code.
fn imports(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut in_block = false;
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            in_block = !in_block;
            continue;
        }
        if in_block {
            continue;
        }
        // Every second piece is between backticks.
        for piece in line.split('`').step_by(2) {
            for word in piece.split_whitespace() {
                let path = word
                    .strip_prefix('@')
                    .map(|it| it.trim_end_matches(['.', ',', ';', ':', ')']));
                found.extend(path.filter(|path| is_path(path)));
            }
        }
    }
    found
}

/// True if the text is a path, and not the name of a person as in `@alice`.
fn is_path(text: &str) -> bool {
    !text.is_empty() && (text.contains('/') || text.contains('.')) && !text.contains('@')
}
