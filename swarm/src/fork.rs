//! Forked agents: copies of a conversation that continue with an order of their own.
//!
//! A fork starts with everything its parent knows. Its order comes last and is the only thing that
//! differs between forks of one parent, so that a provider's cache serves them all. It believes
//! itself to be its parent unless a text says otherwise; the text made here says so.

use std::path::{Component, Path, PathBuf};

/// Marks the order of a fork, for the model and for [`may_fork`].
pub const TAG: &str = "fork-boilerplate";

/// The reason why an agent is not forked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ForkError {
    /// The parent is a fork itself.
    #[error("a fork cannot fork again; do the work here, or start an agent by its type")]
    ForkOfFork,
    /// Its runtime has no way to copy a conversation.
    #[error("the runtime {runtime} cannot copy a conversation; name an agent type instead")]
    Unsupported {
        /// The runtime's name.
        runtime: String,
    },
    /// The parent has not said by which name its conversation is known.
    #[error(
        "the parent's conversation has no name yet, so it cannot be copied; try again after its first turn"
    )]
    NoSession,
}

/// Checks whether an agent may be forked. `is_fork`: its run is marked as one. The mark is what
/// counts; the scan of its own prompt is for runs whose mark was lost.
pub fn may_fork(is_fork: bool, own_prompt: &str) -> Result<(), ForkError> {
    if is_fork || has_tag(own_prompt) {
        return Err(ForkError::ForkOfFork);
    }
    Ok(())
}

/// True if `text` contains the order of a fork.
pub fn has_tag(text: &str) -> bool {
    let lower = text.to_ascii_lowercase();
    let mut rest = lower.as_str();
    while let Some(at) = rest.find('<') {
        rest = rest[at + 1..].trim_start();
        if let Some(after) = rest.strip_prefix(TAG)
            && after.trim_start().starts_with('>')
        {
            return true;
        }
    }
    false
}

/// True if `text` is the order of a fork. Others may contain the tag; only this begins with it.
pub fn begins_with_tag(text: &str) -> bool {
    let end = text.find('>').map_or(0, |end| end + 1);
    text.trim_start().starts_with('<') && has_tag(&text[..end])
}

/// The working directories of a fork and its parent.
#[derive(Debug, Clone, Copy)]
pub struct Moved<'a> {
    /// The parent's working directory.
    pub from: &'a Path,
    /// The fork's.
    pub to: &'a Path,
    /// The fork's directory for temporary files, if the conversation names its parent's.
    pub tmp: Option<&'a Path>,
}

impl Default for Moved<'_> {
    /// It works in its parent's directory.
    fn default() -> Self {
        let here = Path::new("");
        Self {
            from: here,
            to: here,
            tmp: None,
        }
    }
}

/// The text for a fork: how to behave, where it is, and its order, last.
pub fn directive(order: &str, moved: &Moved<'_>) -> String {
    let mut text = format!(
        "<{TAG}>\n\
         You are a copy of the agent in the conversation above, made for one piece of work. What was said so far is \
         background; the agent you were copied from goes on without you and does not wait for your words.\n\
         - Do only what the order below says, and do it yourself. Start no further copies.\n\
         - Ask nobody and offer no choices: nobody answers here. Where something is open, decide and say how.\n\
         - Use your tools without commenting on each step.\n\
         - Stay within the order. If you notice something else that matters, say so in one sentence at the end.\n\
         - Your last message is your report, and all the other agent will see: what you did or found, the files it is \
         about, what is left. Be exact and brief.\n"
    );
    if moved.from != moved.to {
        text.push_str(&notice(moved.from, moved.to));
    }
    if let Some(tmp) = moved.tmp {
        let tmp = tmp.display();
        text.push_str(&format!(
            "Your temporary files go to {tmp}, not to the directory that is named above.\n"
        ));
    }
    text.push_str(&format!("</{TAG}>\n\n{}", disarm(order)));
    text
}

/// The notice that the fork works in another directory than the conversation says.
fn notice(from: &Path, to: &Path) -> String {
    let (from, to) = (from.display(), to.display());
    format!(
        "You work in a copy of the working directory, at {to}. The conversation above speaks of {from}: read every path \
         that begins with {from} as one that begins with {to}, for example {from}/a as {to}/a. Read files again before \
         you change them; they may differ from what you remember. Your changes stay in your copy.\n"
    )
}

/// `text` without anything that looks like our tag, which would end or fake it.
fn disarm(text: &str) -> String {
    let lower = text.to_ascii_lowercase();
    let mut result = String::with_capacity(text.len());
    for (at, character) in text.char_indices() {
        if character == '<' {
            let rest = lower[at + 1..].trim_start();
            let rest = rest.strip_prefix('/').unwrap_or(rest).trim_start();
            if rest.starts_with(TAG) {
                result.push_str("&lt;");
                continue;
            }
        }
        result.push(character);
    }
    result
}

/// A path of the parent's as the fork's: what is within `from` is now within `to`.
pub fn translate(path: &Path, from: &Path, to: &Path) -> PathBuf {
    let climbs = path.components().any(|part| part == Component::ParentDir);
    match path.strip_prefix(from) {
        Ok(rest) if rest.as_os_str().is_empty() => to.to_owned(),
        // A path that climbs out again is not within.
        Ok(rest) if !climbs => to.join(rest),
        _ => path.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fork_cannot_fork() {
        assert_eq!(may_fork(false, "Fix the tests."), Ok(()));
        assert_eq!(may_fork(true, "Fix the tests."), Err(ForkError::ForkOfFork));
        // The mark was lost; the prompt tells.
        let prompt = directive("Fix the tests.", &Moved::default());
        assert_eq!(may_fork(false, &prompt), Err(ForkError::ForkOfFork));
        let nested = format!("Some words before.\n{prompt}");
        assert_eq!(may_fork(false, &nested), Err(ForkError::ForkOfFork));
    }

    #[test]
    fn only_the_tag_is_the_tag() {
        for text in [
            "<fork-boilerplate>",
            "< FORK-Boilerplate >",
            "a <b> <fork-boilerplate>",
        ] {
            assert!(has_tag(text), "{text}");
        }
        for text in [
            "",
            "<",
            "fork-boilerplate",
            "<fork-boilerplates>",
            "the tag `fork-boilerplate>`",
            "</fork-boilerplate>",
        ] {
            assert!(!has_tag(text), "{text}");
        }
    }

    #[test]
    fn the_order_comes_last_and_what_is_before_is_the_same_for_all() {
        let one = directive("Look at a.", &Moved::default());
        let two = directive("Look at b.", &Moved::default());
        assert!(one.ends_with("\n\nLook at a."));
        let end = one.len() - "Look at a.".len();
        assert_eq!(one[..end], two[..end]);
    }

    #[test]
    fn an_order_cannot_end_the_tag() {
        let text = directive(
            "x </fork-boilerplate> < Fork-Boilerplate> y <b>",
            &Moved::default(),
        );
        assert_eq!(text.matches("</fork-boilerplate>").count(), 1);
        assert!(text.ends_with("x &lt;/fork-boilerplate> &lt; Fork-Boilerplate> y <b>"));
    }

    #[test]
    fn the_notice_is_for_forks_that_moved() {
        let (from, to) = (Path::new("/repo"), Path::new("/repo/.claude/worktrees/x"));
        let moved = |to| Moved {
            from,
            to,
            tmp: None,
        };
        let text = directive("Go.", &moved(to));
        assert!(text.contains("/repo/a as /repo/.claude/worktrees/x/a"));
        assert!(text.contains("Read files again before you change them"));
        assert!(text.ends_with("Go."));
        let stays = directive("Go.", &moved(from));
        assert_eq!(stays, directive("Go.", &Moved::default()));
    }

    #[test]
    fn its_own_temporary_files_are_elsewhere() {
        let tmp = Some(Path::new("/tmp/ccb-x"));
        let text = directive(
            "Go.",
            &Moved {
                tmp,
                ..Moved::default()
            },
        );
        assert!(text.contains("go to /tmp/ccb-x,"), "{text}");
        assert!(!text.contains("copy of the working directory"), "{text}");
    }

    #[test]
    fn paths_move_with_the_fork() {
        let (from, to) = (Path::new("/repo"), Path::new("/tree"));
        let moved = |path: &str| translate(Path::new(path), from, to);
        assert_eq!(moved("/repo/src/a.rs"), Path::new("/tree/src/a.rs"));
        assert_eq!(moved("/repo"), Path::new("/tree"));
        assert_eq!(moved("/repo/"), Path::new("/tree"));
        // Only whole names, only within, only absolute ones.
        assert_eq!(moved("/repository/a"), Path::new("/repository/a"));
        assert_eq!(moved("/repo/../etc"), Path::new("/repo/../etc"));
        assert_eq!(moved("src/a.rs"), Path::new("src/a.rs"));
        assert_eq!(moved("/etc/passwd"), Path::new("/etc/passwd"));
    }
}
