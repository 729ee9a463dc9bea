//! The few things of XML that our own texts need, so that they can be read back exactly.
//!
//! Agents' words are data. Whatever they contain, they cannot end the element they stand in,
//! steer a terminal or reorder what is shown. Characters that XML does not allow at all are
//! written as numeric references too.

/// Appends `text` as the content of an element. Quotes, newlines and tabs stay as they are:
/// they do no harm there, and models read them better.
pub(crate) fn escape_text(out: &mut String, text: &str) {
    escape(out, text, |c| matches!(c, '\n' | '\t' | '"' | '\''));
}

/// Appends `text` as the value of an attribute.
pub(crate) fn escape_attribute(out: &mut String, text: &str) {
    escape(out, text, |_| false);
}

fn escape(out: &mut String, text: &str, allowed: impl Fn(char) -> bool) {
    for c in text.chars() {
        match c {
            c if allowed(c) => out.push(c),
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&apos;"),
            c if is_harmful(c) => out.push_str(&format!("&#x{:X};", u32::from(c))),
            c => out.push(c),
        }
    }
}

/// Controls, what changes the direction of text, line ends other than a newline, and what is
/// not a character.
fn is_harmful(c: char) -> bool {
    c.is_control()
        || matches!(
            c,
            '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
        )
        || u32::from(c) & 0xfffe == 0xfffe
        || matches!(c, '\u{feff}' | '\u{fdd0}'..='\u{fdef}')
}

/// Appends `<name>text</name>` and a newline.
pub(crate) fn element(out: &mut String, name: &str, text: &str) {
    out.push_str(&format!("<{name}>"));
    escape_text(out, text);
    out.push_str(&format!("</{name}>\n"));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn escaped(text: &str) -> String {
        let mut out = String::new();
        escape_text(&mut out, text);
        out
    }

    #[test]
    fn nothing_harmful_is_left() {
        assert_eq!(
            escaped("a</b> & \"c\"\n\td"),
            "a&lt;/b&gt; &amp; \"c\"\n\td"
        );
        assert_eq!(
            escaped("\0\r\u{1b}\u{202e}\u{ffff}"),
            "&#x0;&#xD;&#x1B;&#x202E;&#xFFFF;"
        );
        let mut attribute = String::new();
        escape_attribute(&mut attribute, "\"\n'");
        assert_eq!(attribute, "&quot;&#xA;&apos;");
    }
}
