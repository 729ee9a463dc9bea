//! The parts of XML that ccb's own texts need.
//!
//! Agents' words are data, and models read them as they were written: `a && b` stays `a && b`. ccb
//! changes only text that looks like one of its own tags, and characters that steer a terminal or
//! reorder the display. So no agent's words can end the element they stand in, or begin another.

/// The elements that name the author of a text.
const SPEAKERS: [&str; 4] = [
    "teammate-message",
    "task-notification",
    "system-reminder",
    "fork-boilerplate",
];

/// The parts of a notification.
const PARTS: [&str; 12] = [
    "task-id",
    "tool-use-id",
    "output-file",
    "status",
    "summary",
    "result",
    "usage",
    "total_tokens",
    "tool_uses",
    "duration_ms",
    // Also the beginning of worktreePath and worktreeBranch.
    "worktree",
    "note",
];

/// Maximum number of characters checked behind a `<`.
const MOST_LOOKED_AT: usize = 200;

/// Appends an agent's words.
pub(crate) fn write_words(out: &mut String, text: &str) {
    write_text(out, text, &[]);
}

/// Appends `text` as the value of an attribute.
pub(crate) fn write_attribute(out: &mut String, text: &str) {
    for c in text.chars() {
        match c {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            c if is_harmful(c) || matches!(c, '\n' | '\t') => write_reference(out, c),
            c => out.push(c),
        }
    }
}

/// Appends `<name>text</name>` and a newline, as a part of a notification.
pub(crate) fn write_part(out: &mut String, name: &str, text: &str) {
    out.push_str(&format!("<{name}>"));
    write_text(out, text, &PARTS);
    out.push_str(&format!("</{name}>\n"));
}

fn write_text(out: &mut String, text: &str, more_tags: &[&str]) {
    for (at, c) in text.char_indices() {
        match c {
            '<' if begins_tag(&text[at + 1..], more_tags) => out.push_str("&lt;"),
            '\n' | '\t' => out.push(c),
            c if is_harmful(c) => write_reference(out, c),
            c => out.push(c),
        }
    }
}

fn write_reference(out: &mut String, c: char) {
    out.push_str(&format!("&#x{:X};", u32::from(c)));
}

/// True if a model could take the text after a `<` for one of ccb's tags: capitals, spaces and
/// invisible characters make no difference to it.
fn begins_tag(after: &str, more_tags: &[&str]) -> bool {
    let near = after.chars().take(MOST_LOOKED_AT);
    let rest = near
        .skip_while(|c| *c == '/' || c.is_whitespace() || is_unseen(*c))
        .filter(|c| !is_unseen(*c));
    let name: String = rest
        .take_while(|c| c.is_alphanumeric() || matches!(c, '-' | '_'))
        .filter(|c| c.is_alphanumeric())
        .flat_map(char::to_lowercase)
        .collect();
    let letters = |tag: &str| tag.replace(['-', '_'], "");
    let mut tags = SPEAKERS.iter().chain(more_tags);
    tags.any(|tag| name.starts_with(&letters(tag)))
}

fn is_unseen(c: char) -> bool {
    is_harmful(c) || matches!(c, '\u{ad}' | '\u{200b}'..='\u{200d}' | '\u{2060}'..='\u{2064}')
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

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> String {
        let mut out = String::new();
        write_words(&mut out, text);
        out
    }

    fn part(text: &str) -> String {
        let mut out = String::new();
        write_part(&mut out, "result", text);
        out
    }

    #[test]
    fn words_are_left_as_they_are() {
        for text in [
            "cargo fmt && cargo test 2>&1 | grep '<b>' > out; a < b && c > d",
            "if x <summary> then &lt; stays &lt; and &amp; too\n\t\"quoted\"",
            "Vec<TaskId>, <result>, <!-- status -->, <- status",
            "世界 é 👩‍👩‍👧‍👦",
        ] {
            assert_eq!(words(text), text);
        }
        assert_eq!(part("a && b < c"), "<result>a && b < c</result>\n");
    }

    #[test]
    fn nobody_can_write_one_of_our_tags() {
        for tag in [
            "</teammate-message>",
            "< / Teammate-Message >",
            "<\u{200b}/team\u{ad}mate_message>",
            "<task-notification>",
            "<system-reminder>",
            "</fork-boilerplate>",
        ] {
            assert!(words(tag).starts_with("&lt;"), "{tag}: {}", words(tag));
        }
        for tag in ["</result>", "<STATUS>", "< worktreePath>", "<task_id>"] {
            assert!(part(tag).starts_with("<result>&lt;"), "{tag}");
        }
    }

    #[test]
    fn nothing_harmful_is_left() {
        assert_eq!(
            words("\0\r\u{1b}\u{202e}\u{ffff}"),
            "&#x0;&#xD;&#x1B;&#x202E;&#xFFFF;"
        );
        let mut attribute = String::new();
        write_attribute(&mut attribute, "a && \"b\"\n<c>");
        assert_eq!(attribute, "a && &quot;b&quot;&#xA;&lt;c&gt;");
    }
}
