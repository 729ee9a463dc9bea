//! Text of others in a page: no part of it is markup, steers a terminal or reorders the text.

/// `text` as it can stand between tags and in quoted attributes. Characters that are not seen, or that
/// change the order in which others are read, are shown by their numbers. Sequences that colour a
/// terminal are left out.
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 16);
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\n' | '\t' => out.push(c),
            '\r' if chars.peek() == Some(&'\n') => {}
            '\u{1b}' if chars.peek() == Some(&'[') => skip_sequence(&mut chars),
            c if is_unseen(c) => out.push_str(&format!("⟨U+{:04X}⟩", u32::from(c))),
            c => out.push(c),
        }
    }
    out
}

/// `ESC [`, parameters, and one letter.
fn skip_sequence(chars: &mut std::iter::Peekable<std::str::Chars<'_>>) {
    chars.next();
    while let Some(c) = chars.peek().copied() {
        if !('\u{20}'..='\u{7e}').contains(&c) {
            return;
        }
        chars.next();
        if ('\u{40}'..='\u{7e}').contains(&c) {
            return;
        }
    }
}

fn is_unseen(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{180e}' | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{feff}'
            | '\u{ffa0}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

#[cfg(test)]
mod tests {
    use super::escape;

    #[test]
    fn nothing_in_a_text_is_markup() {
        let hostile = "<script>alert(1)</script><img src=x onerror='a'> \" & javascript:";
        let shown = escape(hostile);
        assert!(!shown.contains(['<', '>', '"', '\'']), "{shown}");
        assert_eq!(escape("a & b"), "a &amp; b");
    }

    #[test]
    fn what_is_not_seen_is_shown_and_colours_are_left_out() {
        assert_eq!(escape("a\u{202e}b"), "a⟨U+202E⟩b");
        assert_eq!(escape("\x1b[1;31mred\x1b[0m\r\nnext"), "red\nnext");
        assert_eq!(escape("\x1b]0;title\x07"), "⟨U+001B⟩]0;title⟨U+0007⟩");
        assert_eq!(
            escape("a\0b\u{feff}\u{e0041}"),
            "a⟨U+0000⟩b⟨U+FEFF⟩⟨U+E0041⟩"
        );
        // A sequence that never ends takes nothing else with it.
        assert_eq!(escape("\x1b[12\nnext"), "\nnext");
        assert_eq!(escape("\x1b["), "");
        assert_eq!(escape("日本 ✔ é"), "日本 ✔ é");
    }
}
