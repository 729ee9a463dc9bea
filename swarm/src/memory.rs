//! An agent's memory from run to run: a directory with `MEMORY.md` in it.
//!
//! ```text
//! user     <home>/agent-memory/<agent>/
//! project  <repository>/.claude/agent-memory/<agent>/
//! local    <repository>/.claude/agent-memory-local/<agent>/
//! ```
//!
//! The agent reads and writes the files itself, with its tools; the start of `MEMORY.md` is part of
//! its prompt. These are the places Claude Code uses.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use store::name::Name;

use crate::definitions::MemoryScope;

/// The file that is read into the prompt.
pub const FILE: &str = "MEMORY.md";
/// Maximum lines of it that go into the prompt.
const MAX_LINES: usize = 200;
const MAX_BYTES: u64 = 25 * 1024;

/// The directory of the memory of `agent`. A memory of a repository needs one (`root`).
pub fn directory(
    agent: &Name,
    scope: MemoryScope,
    home: &Path,
    root: Option<&Path>,
) -> Option<PathBuf> {
    let place = match scope {
        MemoryScope::User => home.join("agent-memory"),
        MemoryScope::Project => root?.join(".claude/agent-memory"),
        MemoryScope::Local => root?.join(".claude/agent-memory-local"),
    };
    Some(place.join(agent.as_str()))
}

/// The start of the memory in `directory`; empty if there is none.
pub fn read(directory: &Path) -> io::Result<String> {
    let file = match File::open(directory.join(FILE)) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(String::new()),
        Err(error) => return Err(error),
    };
    let mut bytes = Vec::new();
    file.take(MAX_BYTES + 1).read_to_end(&mut bytes)?;
    Ok(start_of(&bytes))
}

fn start_of(bytes: &[u8]) -> String {
    let most = usize::try_from(MAX_BYTES).unwrap_or(usize::MAX);
    let cut = bytes.len() > most;
    let text = String::from_utf8_lossy(&bytes[..bytes.len().min(most)]).replace('\0', "\u{fffd}");
    let lines: Vec<&str> = text.lines().take(MAX_LINES + 1).collect();
    if lines.len() <= MAX_LINES && !cut {
        return text.trim().to_owned();
    }
    let shown = lines.len().min(MAX_LINES);
    let shown = lines[..shown].join("\n");
    format!("{shown}\n\n[{FILE} is longer than this; keep it short]")
}

/// The text at the end of the agent's prompt. `content` is the text from [`read`].
pub fn prompt(scope: MemoryScope, directory: &Path, content: &str) -> String {
    let shared = match scope {
        MemoryScope::User => {
            "It is used in every project, so keep it to what holds in all of them."
        }
        MemoryScope::Project => {
            "It is part of the repository and shared with everybody who works on it."
        }
        MemoryScope::Local => "It is about this repository and not shared.",
    };
    let place = directory.join(FILE);
    let mut text = format!(
        "# Memory\n\n\
         You keep notes from one run to the next in {}. {shared}\n\n\
         - Before you start, use what is below; open other files of that directory if they bear \
         on the task.\n\
         - Before you end, note what will save time later: where things are, what was decided and \
         why, what went wrong. Correct or remove what turned out false.\n\
         - {FILE} is read into this prompt up to {MAX_LINES} lines: keep it a short index, and put \
         details into files beside it.\n\
         - Never note secrets.\n\n",
        directory.display()
    );
    if content.is_empty() {
        text.push_str(&format!("There is nothing in {} yet.\n", place.display()));
    } else {
        text.push_str(&format!("## {}\n\n{content}\n", place.display()));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use store::atomic::{self, Durability};

    #[test]
    fn each_scope_has_its_place() {
        let agent = Name::new("agent", "reviewer").unwrap();
        let (home, root) = (Path::new("/h"), Some(Path::new("/r")));
        let place = |scope, root| {
            let place = directory(&agent, scope, home, root);
            place.map(|path| path.display().to_string())
        };
        let user = Some("/h/agent-memory/reviewer".to_owned());
        assert_eq!(place(MemoryScope::User, None), user);
        let project = Some("/r/.claude/agent-memory/reviewer".to_owned());
        assert_eq!(place(MemoryScope::Project, root), project);
        let local = Some("/r/.claude/agent-memory-local/reviewer".to_owned());
        assert_eq!(place(MemoryScope::Local, root), local);
        assert_eq!(place(MemoryScope::Project, None), None);
    }

    #[test]
    fn only_the_start_of_a_long_memory_is_read() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path();
        assert_eq!(read(dir).unwrap(), "");
        let put = |text: &str| {
            let file = dir.join(FILE);
            atomic::replace(dir, &file, text.as_bytes(), Durability::Relaxed).unwrap();
        };
        put("one\ntwo\n");
        assert_eq!(read(dir).unwrap(), "one\ntwo");
        put(&"line\n".repeat(201));
        let long = read(dir).unwrap();
        assert_eq!(long.matches("line").count(), 200);
        assert!(long.ends_with("keep it short]"));
        put(&"é".repeat(30_000));
        assert!(read(dir).unwrap().len() < 26 * 1024);
    }

    #[test]
    fn the_prompt_says_where_and_what() {
        let text = prompt(MemoryScope::Project, Path::new("/r/m"), "the notes");
        assert!(text.contains("/r/m/MEMORY.md"), "{text}");
        assert!(text.ends_with("the notes\n"), "{text}");
        let text = prompt(MemoryScope::User, Path::new("/h/m"), "");
        assert!(text.contains("nothing in /h/m/MEMORY.md"), "{text}");
    }
}
