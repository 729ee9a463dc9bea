//! The few things of XML that our own texts need, exact in both directions.
//!
//! Agents' words are data. Whatever they contain, they cannot end the element they stand in,
//! steer a terminal or reorder what is shown. Characters that XML does not allow at all are
//! written as numeric references too; our own reader takes them back.

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

/// Takes escaping back; `None` if something is not as [`escape`] writes it.
fn unescape(text: &str) -> Option<String> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find(['&', '<', '>']) {
        out.push_str(&rest[..start]);
        let (entity, after) = rest[start..].strip_prefix('&')?.split_once(';')?;
        out.push(match entity {
            "amp" => '&',
            "lt" => '<',
            "gt" => '>',
            "quot" => '"',
            "apos" => '\'',
            _ => {
                let digits = entity.strip_prefix("#x")?;
                char::from_u32(u32::from_str_radix(digits, 16).ok()?)?
            }
        });
        rest = after;
    }
    out.push_str(rest);
    Some(out)
}

/// Reads what was written, from left to right.
#[derive(Debug)]
pub(crate) struct Reader<'t> {
    rest: &'t str,
}

impl<'t> Reader<'t> {
    pub(crate) fn new(text: &'t str) -> Self {
        Self { rest: text }
    }

    pub(crate) fn is_at_end(&self) -> bool {
        self.rest.is_empty()
    }

    pub(crate) fn starts_with(&self, text: &str) -> bool {
        self.rest.starts_with(text)
    }

    /// Goes past `text`, if it is what comes next.
    pub(crate) fn literal(&mut self, text: &str) -> Option<()> {
        self.rest = self.rest.strip_prefix(text)?;
        Some(())
    }

    /// The text up to `end`, which is gone past, too.
    pub(crate) fn text_until(&mut self, end: &str) -> Option<String> {
        let (text, rest) = self.rest.split_once(end)?;
        let text = unescape(text)?;
        self.rest = rest;
        Some(text)
    }

    /// The content of the element `name` with its newline, if that is what comes next.
    pub(crate) fn element(&mut self, name: &str) -> Option<String> {
        let before = self.rest;
        let found = self
            .literal(&format!("<{name}>"))
            .and_then(|()| self.text_until(&format!("</{name}>\n")));
        if found.is_none() {
            self.rest = before;
        }
        found
    }

    /// The value of the attribute `name`, if that is what comes next.
    pub(crate) fn attribute(&mut self, name: &str) -> Option<String> {
        let before = self.rest;
        let found = self
            .literal(&format!(" {name}=\""))
            .and_then(|()| self.text_until("\""));
        if found.is_none() {
            self.rest = before;
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

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

    #[test]
    fn what_was_not_escaped_by_us_is_not_taken() {
        for bad in [
            "<",
            "a>b",
            "&",
            "&bogus;",
            "&#x110000;",
            "&#xD800;",
            "&#65;",
            "&amp",
        ] {
            assert_eq!(unescape(bad), None, "{bad}");
        }
    }

    proptest! {
        #[test]
        fn any_text_comes_back(text in any::<String>()) {
            prop_assert_eq!(unescape(&escaped(&text)).unwrap(), text.clone());
            let mut attribute = String::new();
            escape_attribute(&mut attribute, &text);
            prop_assert!(!attribute.contains(['"', '<', '>', '\n']));
            prop_assert_eq!(unescape(&attribute).unwrap(), text);
        }
    }
}
