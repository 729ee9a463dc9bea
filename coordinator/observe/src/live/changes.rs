//! The changes of an agent or a task, as files and as a diff.

use project::workplace::Workplace;
use store::Failure;
use store::text::{clean_line, cut_bytes};
use worktrees::patch::FileStat;

/// Maximum bytes of a diff.
const MOST: usize = 512 * 1024;
/// Maximum bytes of one of its lines.
pub const LINE: usize = 2_000;

/// The changes against the base of the work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Changes {
    /// The worktree, whether or not it is still there.
    pub worktree: Option<String>,
    /// True if some changes are not committed.
    pub uncommitted: bool,
    /// The files; their paths are safe to print.
    pub files: Vec<FileStat>,
    /// The unified diff, line by line, each without its newline and safe to print; tabs are
    /// blanks.
    pub diff: Vec<String>,
    /// True if the diff is cut: `ccb diff` shows all of it.
    pub cut: bool,
}

impl Changes {
    /// Numbers of new and of deleted lines in all files.
    pub fn lines(&self) -> (u64, u64) {
        let sum = |of: fn(&FileStat) -> Option<u64>| self.files.iter().filter_map(of).sum();
        (sum(|file| file.added), sum(|file| file.deleted))
    }
}

/// The changes of `given` (a task's number, an agent, or a worktree), as `ccb diff` shows them.
/// Slow, because it reads the repository: call it on a thread of its own, and again only when the
/// diff is visible.
pub fn changes(given: &str, workplace: &Workplace) -> Result<Changes, Failure> {
    let found = landing::compare(given, &workplace.agents()?)?;
    let trees = workplace.trees()?;
    let mut files = trees.stat(&found.base, &found.to.id)?;
    for file in &mut files {
        file.path = clean_line(&file.path);
    }
    let (diff, cut) = trees.diff_text(&found.base, &found.to.id, MOST)?;
    Ok(Changes {
        worktree: found.worktree,
        uncommitted: found.to.uncommitted,
        files,
        diff: lines(&diff),
        cut,
    })
}

/// The lines of a diff, each safe to print and cut if too long.
pub fn lines(bytes: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(bytes);
    let line = |line: &str| {
        let (kept, cut) = cut_bytes(line, LINE);
        let mut line = clean_line(&kept.replace('\t', "    "));
        if cut {
            line.push('…');
        }
        line
    };
    text.lines().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_diff_steers_no_terminal_and_long_lines_are_cut() {
        let long = "x".repeat(LINE + 5);
        let text = format!("+a\tb\x1b[2J\r\n-{long}\n+\u{202e}c");
        let lines = lines(text.as_bytes());
        assert_eq!(lines[0], "+a    b\u{fffd}[2J");
        assert_eq!(lines[1].chars().count(), LINE + 1);
        assert!(lines[1].ends_with("x…"));
        assert_eq!(lines[2], "+\u{fffd}c");
        assert_eq!(super::lines(b"\xff\xfe"), ["\u{fffd}\u{fffd}"]);
    }
}
