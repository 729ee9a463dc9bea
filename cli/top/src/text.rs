//! Text of others on its way to a cell of the screen.
//!
//! Text of an agent, a model or another program goes through [`fn@line`] or [`lines`]. They remove
//! everything that controls a terminal, reorders text or has no width of its own, so columns remain
//! straight whatever an agent says.

use term::style::clean;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Maximum marks on a character; more would paint over the lines around it.
const MARKS: usize = 3;
/// Maximum characters of a text that are shown: no person reads more on a screen.
const LONGEST: usize = 64 * 1024;
const TAB: &str = "    ";

/// Text on one line, harmless, and with a width that every terminal agrees on.
pub(crate) fn line(text: &str) -> String {
    flat(&clean(bounded(text)))
}

/// The same for each line of a text.
pub(crate) fn lines(text: &str) -> Vec<String> {
    clean(bounded(text)).split('\n').map(flat).collect()
}

fn bounded(text: &str) -> &str {
    match text.char_indices().nth(LONGEST) {
        Some((at, _)) => &text[..at],
        None => text,
    }
}

fn flat(text: &str) -> String {
    let mut flat = String::with_capacity(text.len());
    let mut marks = 0;
    for c in text.chars() {
        match c {
            '\n' => flat.push(' '),
            '\t' => flat.push_str(TAB),
            c if is_invisible(c) => {}
            c if c.width() == Some(0) => {
                marks += 1;
                // A mark without a character would go to the column before.
                if marks <= MARKS && !flat.is_empty() {
                    flat.push(c);
                }
                continue;
            }
            c => flat.push(c),
        }
        marks = 0;
    }
    flat
}

/// True if a character has no shape of its own, joins its neighbours, or changes their width:
/// terminals differ in this.
fn is_invisible(c: char) -> bool {
    matches!(c,
        '\u{00ad}' | '\u{034f}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
        | '\u{200b}'..='\u{200d}' | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}'
        | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{1f3fb}'..='\u{1f3ff}' | '\u{e0000}'..='\u{e0fff}')
}

/// The number of columns of a text.
pub(crate) fn width(text: &str) -> usize {
    text.width()
}

/// Text cut to `room` columns, with an ellipsis if something is missing.
pub(crate) fn cut(text: &str, room: usize) -> String {
    if text.width() <= room {
        return text.to_owned();
    }
    let Some(room) = room.checked_sub(1) else {
        return String::new();
    };
    let mut used = 0;
    let mut end = 0;
    for (at, c) in text.char_indices() {
        used += c.width().unwrap_or(0);
        if used > room {
            break;
        }
        end = at + c.len_utf8();
    }
    format!("{}…", &text[..end])
}

/// Text of exactly `room` columns: cut, or filled up with spaces.
pub(crate) fn pad(text: &str, room: usize) -> String {
    let mut text = cut(text, room);
    let missing = room.saturating_sub(text.width());
    text.extend(std::iter::repeat_n(' ', missing));
    text
}

/// The same, at the right edge.
pub(crate) fn pad_left(text: &str, room: usize) -> String {
    let text = cut(text, room);
    let missing = room.saturating_sub(text.width());
    format!("{}{text}", " ".repeat(missing))
}

/// Text broken between words into lines of at most `room` columns.
pub(crate) fn wrap(text: &str, room: usize) -> Vec<String> {
    let options = textwrap::Options::new(room.max(1)).break_words(true);
    let wrapped = textwrap::wrap(text, options).into_iter();
    wrapped.map(std::borrow::Cow::into_owned).collect()
}

/// A duration in at most two units: `1m 05s`, `2h 07m`, `3d 4h`.
pub(crate) fn elapsed(ms: i64) -> String {
    let seconds = ms.max(0) / 1000;
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3600 => format!("{}m {:02}s", seconds / 60, seconds % 60),
        3600..86_400 => format!("{}h {:02}m", seconds / 3600, seconds / 60 % 60),
        _ => format!("{}d {}h", seconds / 86_400, seconds / 3600 % 24),
    }
}

/// A short count: `950`, `10.9k`, `1.2M`.
pub(crate) fn tokens(count: u64) -> String {
    let tenths = |unit: u64| format!("{}.{}", count / unit, count % unit / (unit / 10));
    match count {
        0..1000 => count.to_string(),
        1000..100_000 => format!("{}k", tenths(1000)),
        100_000..1_000_000 => format!("{}k", count / 1000),
        _ => format!("{}M", tenths(1_000_000)),
    }
}

/// A price: `$0.04`, `$12.30`, `$240`.
pub(crate) fn money(dollars: f64) -> String {
    match dollars {
        d if !d.is_finite() || d <= 0.0 => "$0".into(),
        d if d < 0.01 => "<$0.01".into(),
        d if d < 100.0 => format!("${d:.2}"),
        d => format!("${d:.0}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_steers_a_terminal_or_bends_columns_gets_through() {
        let hostile =
            "a\x1b]0;title\x07b\u{202e}c\u{200b}d\u{feff}e\rf\u{9b}31mg\u{e0041}h\u{2066}i";
        let shown = line(hostile);
        assert!(!shown.chars().any(char::is_control), "{shown:?}");
        assert!(!shown.chars().any(is_invisible), "{shown:?}");
        assert!(!shown.contains(['\u{202e}', '\u{2066}']), "{shown:?}");
        assert_eq!(line("a\tb\nc"), "a    b c");
        // A family of three, joined: three pictures of two columns each.
        assert_eq!(width(&line("👨\u{200d}👩\u{200d}👧")), 6);
        assert_eq!(line("❤\u{fe0f}👍🏽"), "❤👍");
        // A character keeps its marks, up to the maximum.
        assert_eq!(line("\u{301}e\u{301}"), "e\u{301}");
        let piled = format!("e{}x", "\u{301}".repeat(50));
        assert_eq!(line(&piled).chars().count(), 2 + MARKS);
        assert_eq!(lines("a\nb\u{1b}[2J").len(), 2);
    }

    #[test]
    fn a_line_of_a_megabyte_is_cut() {
        let long = "é".repeat(1 << 20);
        assert_eq!(line(&long).chars().count(), LONGEST);
        assert_eq!(width(&cut(&line(&long), 80)), 80);
    }

    #[test]
    fn wide_glyphs_are_cut_and_filled_to_the_column() {
        assert_eq!(cut("漢字漢字", 8), "漢字漢字");
        assert_eq!(cut("漢字漢字", 7), "漢字漢…");
        assert_eq!(cut("漢字漢字", 6), "漢字…");
        assert_eq!(pad("漢字漢字", 6), "漢字… ");
        assert_eq!(cut("abc", 0), "");
        assert_eq!(pad_left("7", 3), "  7");
        for room in 0..12 {
            assert_eq!(width(&pad("שלום 漢字 e\u{301}", room)), room, "{room}");
        }
    }

    #[test]
    fn numbers_are_short() {
        assert_eq!(elapsed(59_999), "59s");
        assert_eq!(elapsed(65_000), "1m 05s");
        assert_eq!(elapsed(7_620_000), "2h 07m");
        assert_eq!(elapsed(-5), "0s");
        assert_eq!(elapsed(3 * 86_400_000 + 5 * 3_600_000), "3d 5h");
        assert_eq!(tokens(950), "950");
        assert_eq!(tokens(10_940), "10.9k");
        assert_eq!(tokens(250_900), "250k");
        assert_eq!(tokens(1_250_000), "1.2M");
        assert_eq!(money(0.0), "$0");
        assert_eq!(money(0.004), "<$0.01");
        assert_eq!(money(12.3), "$12.30");
        assert_eq!(money(f64::NAN), "$0");
    }
}
