//! The reader of the answers, and how much of one it shows its model.
//!
//! Clients differ in the parts of a result that reach the model. Content without anything
//! structured beside it is the one shape that all of them show, up to some length. So they get
//! that, and mail counts as delivered with it. A program that wants JSON as well says so when it
//! connects.

use std::sync::{Arc, OnceLock};

use rmcp::model::InitializeRequestParams;

/// The experimental capability of a program that wants JSON beside the words.
pub(crate) const JSON: &str = "ccb/json";
/// Characters of a result that every client shows whole.
const LEAST: usize = 11_000;
/// Our own loop. The list of tools is part of each of its requests, so it must not change.
const NATIVE: &str = "ccb-native";
/// Clients that show more, by a part of their name, and the characters they show.
const MORE: [(&str, usize); 4] = [
    (NATIVE, 40_000),
    ("claude-code", 40_000),
    ("opencode", 40_000),
    ("gemini", 28_000),
];

/// The client, as far as it has identified itself.
#[derive(Debug, Clone, Default)]
pub(crate) struct Audience(Arc<OnceLock<Known>>);

#[derive(Debug)]
struct Known {
    characters: usize,
    json: bool,
    fixed_list: bool,
}

impl Audience {
    /// Learns who the client is. Only the first statement counts.
    pub(crate) fn learn(&self, params: &InitializeRequestParams) {
        let name = params.client_info.name.to_lowercase();
        let more = MORE.iter().find(|(part, _)| name.contains(part));
        let experimental = params.capabilities.experimental.as_ref();
        let known = Known {
            characters: more.map_or(LEAST, |(_, characters)| *characters),
            fixed_list: name == NATIVE,
            json: experimental.is_some_and(|wanted| wanted.contains_key(JSON)),
        };
        self.0.set(known).ok();
    }

    /// Maximum characters of a result that the client shows its model.
    fn characters(&self) -> usize {
        self.0.get().map_or(LEAST, |known| known.characters)
    }

    /// Maximum characters of a tool's own words, so that mail has room beside them.
    pub(crate) fn room_for_words(&self) -> usize {
        self.characters() - self.room_for_mail()
    }

    /// Minimum characters of room for mail.
    pub(crate) fn room_for_mail(&self) -> usize {
        self.characters() / 4
    }

    /// Characters of room for mail beside words of this length.
    pub(crate) fn room_beside(&self, words: usize) -> usize {
        self.characters()
            .saturating_sub(words)
            .max(self.room_for_mail())
    }

    /// True if the client wants a list of tools that does not change with its mode.
    pub(crate) fn wants_fixed_list(&self) -> bool {
        self.0.get().is_some_and(|known| known.fixed_list)
    }

    /// True if the client wants JSON beside the words.
    pub(crate) fn wants_json(&self) -> bool {
        self.0.get().is_some_and(|known| known.json)
    }
}

/// `text` without its middle if it is longer than `most` characters; `rest` says where to read the
/// whole.
pub(crate) fn fit(text: String, most: usize, rest: &str) -> String {
    let length = text.chars().count();
    if length <= most {
        return text;
    }
    let note = format!("\n[… cut: {length} characters in all; {rest} …]\n");
    let kept = most.saturating_sub(note.chars().count());
    // More of the beginning than of the end, but the end is where results are.
    let (head, tail) = (kept * 2 / 3, kept - kept * 2 / 3);
    let start: String = text.chars().take(head).collect();
    let end: String = text.chars().skip(length - tail).collect();
    format!("{start}{note}{end}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_too_long_loses_its_middle() {
        assert_eq!(fit("short".into(), 5, "x"), "short");
        let long: String = ('a'..='z')
            .cycle()
            .take(5_000)
            .chain("END".chars())
            .collect();
        let cut = fit(long.clone(), 1_000, "the rest is in /f");
        assert_eq!(cut.chars().count(), 1_000);
        assert!(cut.starts_with(&long[..500]) && cut.ends_with("END"));
        assert!(
            cut.contains("5003 characters in all; the rest is in /f"),
            "{cut}"
        );
    }
}
