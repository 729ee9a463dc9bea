//! Texts with `{{name}}` in them.
//!
//! The value of a name comes from files, and files come from anywhere. In a text for people or
//! models it is inserted as it is. In a command it is one word, whatever it contains: it is quoted,
//! and where quoting could not help (inside quotes, comments, here-documents and the like) the
//! template is refused before anything runs.

use std::collections::BTreeMap;

/// The values of the names in a template.
pub(super) type Values = BTreeMap<String, String>;

/// `{{{{` stands for `{{`.
const OPEN: &str = "{{";
const CLOSE: &str = "}}";

/// The problem in a template, and a correction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Wrong {
    pub(super) why: String,
    pub(super) hint: Option<String>,
}

impl Wrong {
    fn new(why: impl Into<String>, hint: &str) -> Self {
        Self {
            why: why.into(),
            hint: Some(hint.to_owned()),
        }
    }
}

/// A piece of a template.
#[derive(Debug, PartialEq)]
enum Piece<'a> {
    Text(&'a str),
    /// A `{{` that is meant.
    Brace,
    Name(&'a str),
}

fn pieces(template: &str) -> Result<Vec<Piece<'_>>, Wrong> {
    let mut pieces = Vec::new();
    let mut rest = template;
    while let Some((before, after)) = rest.split_once(OPEN) {
        pieces.push(Piece::Text(before));
        if let Some(after) = after.strip_prefix(OPEN) {
            pieces.push(Piece::Brace);
            rest = after;
            continue;
        }
        let Some((name, after)) = after.split_once(CLOSE) else {
            return Err(Wrong::new(
                "a \"{{\" has no \"}}\"",
                "write {{{{ where two braces are meant",
            ));
        };
        pieces.push(Piece::Name(name.trim()));
        rest = after;
    }
    pieces.push(Piece::Text(rest));
    Ok(pieces)
}

fn value<'v>(name: &str, values: &'v Values) -> Result<&'v str, Wrong> {
    if let Some(value) = values.get(name) {
        return Ok(value);
    }
    let known = values.keys().map(String::as_str);
    let hint = match store::nearest(name, known.clone()) {
        Some(near) => format!("did you mean {{{{{near}}}}}?"),
        None => format!("there are: {}", known.collect::<Vec<_>>().join(", ")),
    };
    Err(Wrong {
        why: format!("there is no {{{{{name}}}}} here"),
        hint: Some(hint),
    })
}

/// `template` with its names filled in, for people and models.
pub(super) fn text(template: &str, values: &Values) -> Result<String, Wrong> {
    let mut out = String::with_capacity(template.len());
    for piece in pieces(template)? {
        match piece {
            Piece::Text(text) => out.push_str(text),
            Piece::Brace => out.push_str(OPEN),
            Piece::Name(name) => out.push_str(value(name, values)?),
        }
    }
    Ok(out)
}

/// `template` with its names filled in, for a shell.
pub(super) fn command(template: &str, values: &Values) -> Result<String, Wrong> {
    let mut out = String::with_capacity(template.len());
    let mut shell = Shell::default();
    for piece in pieces(template)? {
        match piece {
            Piece::Text(text) => {
                shell.read(text);
                out.push_str(text);
            }
            Piece::Brace => {
                shell.read(OPEN);
                out.push_str(OPEN);
            }
            Piece::Name(name) => {
                let value = value(name, values)?;
                if let Some(place) = shell.refuses() {
                    return Err(Wrong::new(
                        format!("{{{{{name}}}}} stands {place}, where it cannot be made safe"),
                        "write it bare, as a word or a part of one: it is quoted for you",
                    ));
                }
                if value.contains('\0') {
                    return Err(Wrong::new(
                        format!("the value of {{{{{name}}}}} has a NUL byte"),
                        "leave that input out",
                    ));
                }
                out.push_str(&word(name, value, shell.at_word_start())?);
                shell.word();
            }
        }
    }
    Ok(out)
}

/// Names whose values are paths.
const PATHS: [&str; 4] = ["path", "dir", "file", "name"];

/// `value` as one word of a shell, or as a part of one.
fn word(name: &str, value: &str, starts_word: bool) -> Result<String, Wrong> {
    let dash = match starts_word && value.starts_with('-') {
        false => "",
        // A file named `-rf` is a file.
        true if PATHS.contains(&name) => "./",
        true => {
            let why = format!(
                "the value {value:?} of {{{{{name}}}}} begins with '-': a command would take it \
                 for an option"
            );
            return Err(Wrong::new(
                why,
                "put something before it in the same word, such as --name=",
            ));
        }
    };
    Ok(format!("'{dash}{}'", value.replace('\'', r"'\''")))
}

/// The part of a shell's grammar that decides where a word may stand.
#[derive(Debug, Default)]
struct Shell {
    /// The open quote.
    quote: Option<char>,
    /// True if the character before was a backslash.
    escaped: bool,
    comment: bool,
    /// Open `${` and `$((`.
    braces: usize,
    arithmetic: bool,
    backtick: bool,
    here_document: bool,
    /// The character before.
    last: char,
}

impl Shell {
    fn read(&mut self, text: &str) {
        for c in text.chars() {
            self.step(c);
            self.last = c;
        }
    }

    fn step(&mut self, c: char) {
        if self.comment {
            self.comment = c != '\n';
            return;
        }
        if std::mem::take(&mut self.escaped) {
            return;
        }
        match (self.quote, c) {
            (Some('\''), '\'') => self.quote = None,
            (Some('\''), _) => {}
            (_, '\\') => self.escaped = true,
            (Some('"'), '"') => self.quote = None,
            (None, '"' | '\'') => self.quote = Some(c),
            (_, '`') => self.backtick = !self.backtick,
            (None, '#') if self.at_word_start() => self.comment = true,
            (None, '{') if self.last == '$' => self.braces += 1,
            (None, '}') => self.braces = self.braces.saturating_sub(1),
            // `$((` and `((`.
            (None, '(') if self.last == '(' => self.arithmetic = true,
            (None, ')') if self.last == ')' => self.arithmetic = false,
            // `<<` and `<<-`; how they end is not followed.
            (None, '<') if self.last == '<' => self.here_document = true,
            _ => {}
        }
    }

    fn at_word_start(&self) -> bool {
        matches!(
            self.last,
            '\0' | ' ' | '\t' | '\n' | ';' | '&' | '|' | '(' | ')' | '<' | '>'
        )
    }

    /// Records a word at this place.
    fn word(&mut self) {
        self.last = 'w';
    }

    /// The reason why a word may not stand here.
    fn refuses(&self) -> Option<&'static str> {
        match self {
            Self { comment: true, .. } => Some("in a comment"),
            Self { quote: Some(_), .. } => Some("inside quotes"),
            Self { escaped: true, .. } => Some("behind a backslash"),
            Self { backtick: true, .. } => Some("inside backticks"),
            Self {
                here_document: true,
                ..
            } => Some("behind a \"<<\""),
            Self {
                arithmetic: true, ..
            } => Some("inside \"((\""),
            Self { braces: 1.., .. } => Some("inside \"${\""),
            Self { last: '$', .. } => Some("behind a \"$\""),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::process::Command;

    fn values(pairs: &[(&str, &str)]) -> Values {
        let own = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        pairs.iter().map(own).collect()
    }

    #[test]
    fn names_are_filled_in() {
        let values = values(&[("path", "a b.rs"), ("n", "3")]);
        assert_eq!(
            text("fix {{path}}: {{ n }}", &values).unwrap(),
            "fix a b.rs: 3"
        );
        assert_eq!(text("{{{{path}} {x}", &values).unwrap(), "{{path}} {x}");
        assert_eq!(command("cat {{path}}", &values).unwrap(), "cat 'a b.rs'");
    }

    #[test]
    fn unknown_names_and_open_braces_are_told() {
        let values = values(&[("path", "a"), ("stem", "a")]);
        let wrong = text("{{pth}}", &values).unwrap_err();
        assert_eq!(wrong.hint.unwrap(), "did you mean {{path}}?");
        assert!(
            text("{{zzzz}}", &values)
                .unwrap_err()
                .hint
                .unwrap()
                .contains("path, stem")
        );
        assert!(text("a {{path", &values).is_err());
    }

    #[test]
    fn a_word_may_not_stand_where_quoting_does_not_help() {
        let values = values(&[("x", "v")]);
        for bad in [
            "echo \"{{x}}\"",
            "echo '{{x}}'",
            "true # {{x}}",
            "# it's {{x}}",
            "cat <<E\n{{x}}\nE",
            "cat <<-E\n{{x}}\nE",
            "echo `cat {{x}}`",
            "echo $(( {{x}} ))",
            "(( {{x}} ))",
            "echo ${y:-{{x}}}",
            "echo \\{{x}}",
            "echo ${{x}}",
            "cat <<<{{x}}",
            "echo \"$(cat {{x}})\"",
        ] {
            assert!(command(bad, &values).is_err(), "{bad:?}");
        }
        for good in [
            "echo {{x}}",
            "echo a{{x}}b",
            "echo it\\'s {{x}}",
            "echo 'it' {{x}} \"$y\"",
            "echo $(cat {{x}})",
            "echo a#b {{x}}",
            "# done\necho {{x}}",
            "y={{x}}; echo $y",
        ] {
            assert!(command(good, &values).is_ok(), "{good:?}");
        }
    }

    #[test]
    fn options_are_not_made_from_names_of_files() {
        let rf = values(&[("path", "-rf"), ("x", "-rf")]);
        assert_eq!(command("rm {{path}}", &rf).unwrap(), "rm './-rf'");
        assert_eq!(command("rm a{{x}}", &rf).unwrap(), "rm a'-rf'");
        assert_eq!(command("rm --x={{x}}", &rf).unwrap(), "rm --x='-rf'");
        assert!(command("rm {{x}}", &rf).is_err());
        assert!(command("rm {{x}}", &values(&[("x", "a\0b")])).is_err());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        /// A real shell sees exactly the value, as one word.
        #[test]
        fn a_shell_gets_every_value_whole(value in "[^\0-]([^\0]{0,20}|['\"$`\\\\;&|<>(){}#\n !*?~]{0,12})") {
            let values = values(&[("x", &value)]);
            let script = command("printf '%s.' {{x}} end", &values).unwrap();
            let output = Command::new("sh").args(["-c", &script]).output().unwrap();
            prop_assert!(output.status.success());
            prop_assert_eq!(output.stdout, format!("{value}.end.").into_bytes());
        }
    }
}
