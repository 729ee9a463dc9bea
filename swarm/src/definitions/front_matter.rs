//! The YAML between two `---` at the top of a Markdown file.

use serde_json::{Map, Value};

use super::read::Mistake;

/// A Markdown file, taken apart.
#[derive(Debug, PartialEq)]
pub(super) struct Document<'a> {
    /// The fields of the front matter.
    pub(super) fields: Map<String, Value>,
    /// The front matter as written, to find lines in.
    pub(super) yaml: &'a str,
    /// The text after it.
    pub(super) body: &'a str,
}

/// Lines before the first one of the front matter: the opening `---`.
const LINES_BEFORE: usize = 1;

/// Takes `text` apart; `None` if it has no front matter.
pub(super) fn split(text: &str) -> Result<Option<Document<'_>>, Mistake> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let Some(rest) = after_rule(text) else {
        return Ok(None);
    };
    let mut from = 0;
    for line in rest.split_inclusive('\n') {
        if is_rule(line) {
            let yaml = &rest[..from];
            return Ok(Some(Document {
                fields: parse(yaml)?,
                yaml,
                body: &rest[from + line.len()..],
            }));
        }
        from += line.len();
    }
    let why = "the front matter has no end; close it with a line of its own, \"---\"";
    Err(Mistake::at(1, why))
}

fn is_rule(line: &str) -> bool {
    line.trim_end() == "---"
}

fn after_rule(text: &str) -> Option<&str> {
    let (first, rest) = text.split_once('\n')?;
    is_rule(first).then_some(rest)
}

fn parse(yaml: &str) -> Result<Map<String, Value>, Mistake> {
    let read = match parse_strictly(yaml) {
        Ok(value) => Ok(value),
        // Claude Code accepts `description: Use when: …`, and many files have it.
        Err(error) => parse_strictly(&quoted(yaml)).map_err(|_| error),
    };
    match read {
        Ok(Value::Object(fields)) => Ok(fields),
        Ok(Value::Null) => Ok(Map::new()),
        Ok(_) => Err(Mistake::at(
            1 + LINES_BEFORE,
            "the front matter must be lines of \"key: value\"",
        )),
        Err(error) => Err(mistake(&error)),
    }
}

fn parse_strictly(yaml: &str) -> Result<Value, serde_saphyr::Error> {
    let options = serde_saphyr::options! {
        // Only `true` and `false`; a description may well be "no".
        strict_booleans: true,
        with_snippet: false,
        // Aliases of aliases of aliases must not take minutes.
        alias_limits: serde_saphyr::alias_limits! {
            max_total_replayed_events: 10_000,
            max_alias_expansions_per_anchor: 100,
        },
    };
    serde_saphyr::from_str_with_options(yaml, options)
}

fn mistake(error: &serde_saphyr::Error) -> Mistake {
    let line = error
        .location()
        .map(|place| place.line())
        .filter(|line| *line > 0);
    let text = error.render_with_formatter(&serde_saphyr::UserMessageFormatter);
    let what = text.lines().next().unwrap_or(&text);
    // Its line does not count the first "---".
    let what = what.rsplit_once(" at line ").map_or(what, |(what, _)| what);
    Mistake {
        line: line.map(|line| usize::try_from(line).unwrap_or(0) + LINES_BEFORE),
        ..Mistake::whole(format!("the front matter is not YAML: {what}"))
    }
}

/// The same with quotes around top-level values of one line that YAML would take for more than
/// text.
fn quoted(yaml: &str) -> String {
    let quote = |line: &str| -> Option<String> {
        let line = line.trim_end();
        let (key, value) = line.split_once(": ")?;
        let plain_key = key.chars().all(|c| c.is_ascii_alphanumeric());
        let value = value.trim();
        let structure = value.starts_with(['"', '\'', '[', '{', '|', '>', '&', '!']);
        let odd = value.contains(": ") || value.contains(" #") || value.ends_with(':');
        let odd = odd || value.starts_with(['*', '@', '`', '%']);
        if !plain_key || structure || !odd {
            return None;
        }
        // A single-quoted text knows one escape, its own quote.
        Some(format!("{key}: '{}'\n", value.replace('\'', "''")))
    };
    yaml.split_inclusive('\n')
        .map(|line| quote(line).unwrap_or_else(|| line.to_owned()))
        .collect()
}

/// The line of the file on which the front matter says `key`.
pub(super) fn line_of(key: &str, yaml: &str) -> Option<usize> {
    let says = |line: &str| {
        let (before, _) = line.split_once(':')?;
        let before = before.trim_end();
        let bare = before.trim_matches(['"', '\'']);
        (bare == key).then_some(())
    };
    yaml.lines()
        .position(|line| says(line).is_some())
        .map(|n| n + 1 + LINES_BEFORE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn fields(text: &str) -> Value {
        Value::Object(split(text).unwrap().unwrap().fields)
    }

    #[test]
    fn front_matter_and_body_are_told_apart() {
        let document = split("---\nname: a\n---\n\nHello\n---\nrest")
            .unwrap()
            .unwrap();
        assert_eq!(document.yaml, "name: a\n");
        assert_eq!(document.body, "\nHello\n---\nrest");
        let windows = "\u{feff}---\r\nname: a\r\ntools: [b]\r\n---\r\nHello\r\n";
        assert_eq!(fields(windows), json!({"name": "a", "tools": ["b"]}));
        for none in [
            "",
            "---",
            "# Title\n---\na: b\n---\n",
            "----\na\n---\n",
            " ---\na: b\n---\n",
        ] {
            assert_eq!(split(none).unwrap(), None, "{none:?}");
        }
        assert_eq!(fields("---\n---\n"), json!({}));
        assert_eq!(split("---\nname: a\n").unwrap_err().line, Some(1));
    }

    #[test]
    fn what_is_common_but_not_quite_yaml_is_read() {
        let text =
            "---\ndescription: Use when: it's late. Note: \\n stays #1\ntools: *\nname: a\n---\n";
        let read = fields(text);
        assert_eq!(
            read["description"],
            "Use when: it's late. Note: \\n stays #1"
        );
        assert_eq!(read["tools"], "*");
        assert_eq!(read["name"], "a");
        assert_eq!(
            fields("---\na: no\nb: true\n---\n"),
            json!({"a": "no", "b": true})
        );
    }

    #[test]
    fn mistakes_have_lines_of_the_file() {
        for (yaml, line) in [
            ("name: a\ntools: [b\nmodel: c\n", 4),
            ("name: a\nname: b\n", 3),
            ("just text\n", 2),
            ("- a\n", 2),
        ] {
            let text = format!("---\n{yaml}---\nbody");
            let mistake = split(&text).unwrap_err();
            assert_eq!(mistake.line, Some(line), "{yaml:?}: {}", mistake.why);
            assert!(!mistake.why.contains("column"), "{}", mistake.why);
            assert!(!mistake.why.contains("Policy"), "{}", mistake.why);
            assert!(!mistake.why.contains('\n'), "{}", mistake.why);
        }
    }

    #[test]
    fn aliases_of_aliases_are_refused_at_once() {
        let mut yaml = String::from("---\na0: &a0 [x,x,x,x,x,x,x,x,x,x]\n");
        for n in 1..12 {
            let list = vec![format!("*a{}", n - 1); 10].join(",");
            yaml.push_str(&format!("a{n}: &a{n} [{list}]\n"));
        }
        yaml.push_str("---\n");
        assert!(split(&yaml).is_err());
        let deep = format!("---\na: {}\n---\n", "[".repeat(100_000));
        assert!(split(&deep).is_err());
    }

    #[test]
    fn keys_are_found() {
        let yaml = "name: a\n\"tools\": b\n  model: nested\nmodel : c\n";
        assert_eq!(line_of("name", yaml), Some(2));
        assert_eq!(line_of("tools", yaml), Some(3));
        assert_eq!(line_of("model", yaml), Some(5));
        assert_eq!(line_of("color", yaml), None);
    }
}
