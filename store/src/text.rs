//! Makes foreign text harmless: agents, programs and people may put anything into a subject, a
//! message or a file name, and some of it steers terminals.
//!
//! Every text that is shown to a person passes through here once: `cli` cleans the lines it prints,
//! and the coordinator cleans what views draw as it reads it.

/// Text of unknown origin without characters that would steer a terminal or reorder its text;
/// each becomes U+FFFD. It may have several lines and tabs.
pub fn clean(text: &str) -> String {
    text.chars().map(harmless).collect()
}

/// The same on one line.
pub fn clean_line(text: &str) -> String {
    let one_line = |c| match harmless(c) {
        '\n' | '\t' => ' ',
        c => c,
    };
    text.chars().map(one_line).collect()
}

/// The same, at most `most` characters long; a cut text ends in `…`. Looks only at the part that is
/// kept, so a text of megabytes costs no more than a short one.
pub fn clean_cut(text: &str, most: usize) -> String {
    let mut line: String = text
        .chars()
        .take(most.saturating_add(1))
        .map(|c| match harmless(c) {
            '\n' | '\t' => ' ',
            c => c,
        })
        .collect();
    if let Some((end, _)) = line.char_indices().nth(most) {
        let last = line[..end].char_indices().next_back();
        line.truncate(last.map_or(0, |(at, _)| at));
        line.push('…');
    }
    line
}

/// The first line of `text` that is not blank, cleaned and at most `most` characters long.
pub fn first_line(text: &str, most: usize) -> String {
    let line = text.lines().find(|line| !line.trim().is_empty());
    clean_cut(line.unwrap_or_default().trim(), most)
}

/// `text` cut to at most `most` bytes, between two characters; true if something was cut off.
pub fn cut_bytes(text: &str, most: usize) -> (&str, bool) {
    if text.len() <= most {
        return (text, false);
    }
    let mut end = most;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    (&text[..end], true)
}

/// The first twelve characters of a commit's name, as ccb shows it to people.
pub fn short_commit(commit: &str) -> &str {
    commit.get(..12).unwrap_or(commit)
}

fn harmless(c: char) -> char {
    let steers = c.is_control() && c != '\n' && c != '\t';
    let reorders = matches!(c, '\u{061c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let breaks = matches!(c, '\u{2028}' | '\u{2029}');
    if steers || reorders || breaks {
        '\u{fffd}'
    } else {
        c
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terminal_tricks_are_taken_out() {
        assert_eq!(
            clean("a\x1b[31mb\u{202e}c\nd"),
            "a\u{fffd}[31mb\u{fffd}c\nd"
        );
        assert_eq!(clean_line("a\nb\tc"), "a b c");
        assert_eq!(clean("a\rb\u{2028}c"), "a\u{fffd}b\u{fffd}c");
        assert_eq!(clean_line("\u{9b}31m\u{7f}"), "\u{fffd}31m\u{fffd}");
    }

    #[test]
    fn what_is_cut_says_so_and_fits() {
        assert_eq!(clean_cut("short", 5), "short");
        assert_eq!(clean_cut("longer", 5), "long…");
        assert_eq!(clean_cut("日本語です", 3), "日本…");
        assert_eq!(clean_cut("ab", 0), "…");
        assert_eq!(first_line("\n \n  two\nthree", 10), "two");
        assert_eq!(first_line("", 10), "");
        assert_eq!(cut_bytes("añb", 2), ("a", true));
        assert_eq!(cut_bytes("añb", 4), ("añb", false));
    }
}
