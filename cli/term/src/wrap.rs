//! Breaks lines between words, where a terminal would break them anywhere.

use textwrap::{Options, WordSeparator, WordSplitter};

use crate::style::QUOTE;

/// Breaks `text` so that no line is wider than `width` columns. A broken line continues with
/// `indent` before it; a line of others' text keeps its mark.
pub fn wrap(text: &str, width: usize, indent: &str) -> String {
    let mut lines = Vec::new();
    for line in text.split('\n') {
        if textwrap::core::display_width(line) <= width {
            lines.push(line.to_owned());
            continue;
        }
        let own = line.len() - line.trim_start_matches(' ').len();
        let mark = match line.starts_with(QUOTE) {
            true => QUOTE,
            false if own > indent.len() => &line[..own],
            false => indent,
        };
        // A path that is broken in two cannot be copied.
        let room = width.saturating_sub(mark.len());
        let fits = |word: &str| textwrap::core::display_width(word) <= room;
        if !line.split_ascii_whitespace().all(fits) {
            lines.push(line.to_owned());
            continue;
        }
        let options = Options::new(width)
            .subsequent_indent(mark)
            .break_words(false)
            .word_separator(WordSeparator::AsciiSpace)
            .word_splitter(WordSplitter::NoHyphenation);
        let parts = textwrap::wrap(line, options);
        lines.extend(parts.into_iter().map(std::borrow::Cow::into_owned));
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::style::BOLD;

    #[test]
    fn lines_break_between_words_and_colours_take_no_room() {
        assert_eq!(wrap("short", 20, "  "), "short");
        assert_eq!(
            wrap("one two three four five six seven", 20, "  "),
            "one two three four\n  five six seven"
        );
        let bold = format!("{BOLD}12345 78901{BOLD:#} 34567 90");
        assert_eq!(wrap(&bold, 20, ""), bold);
        assert_eq!(
            wrap("head\n  │ aaaaaaaa bbbbbbbb cccccccc", 20, ""),
            "head\n  │ aaaaaaaa\n  │ bbbbbbbb\n  │ cccccccc"
        );
    }
}
