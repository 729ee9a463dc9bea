//! A shell's command line, taken apart into the commands it runs.

/// One command of a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Simple {
    /// Its words without quotes.
    pub(super) words: Vec<String>,
    /// True if it writes to a file by redirection.
    pub(super) writes: bool,
}

/// Words that make a line more than a list of commands.
const KEYWORDS: [&str; 22] = [
    "!", "[[", "case", "coproc", "do", "done", "elif", "else", "esac", "eval", "exec", "fi", "for",
    "function", "if", "in", "select", "source", "then", "until", "while", ".",
];

/// The commands of a line, in their order; `None` if it is not certain what it would run:
/// substitutions, variables, loops, groups, here documents.
pub(super) fn commands(line: &str) -> Option<Vec<Simple>> {
    let mut reader = Reader {
        rest: line.chars().peekable(),
        commands: Vec::new(),
        words: Vec::new(),
        writes: false,
        word: None,
    };
    reader.read()?;
    Some(reader.commands)
}

struct Reader<'a> {
    rest: std::iter::Peekable<std::str::Chars<'a>>,
    commands: Vec<Simple>,
    words: Vec<String>,
    writes: bool,
    word: Option<String>,
}

impl Reader<'_> {
    fn read(&mut self) -> Option<()> {
        while let Some(next) = self.rest.next() {
            match next {
                ' ' | '\t' => self.end_word(),
                '\n' | ';' => self.end_command()?,
                '&' => {
                    self.rest.next_if_eq(&'&');
                    // `&>` sends output to a file.
                    if self.rest.peek() == Some(&'>') {
                        return None;
                    }
                    self.end_command()?;
                }
                '|' => {
                    self.rest.next_if(|next| matches!(next, '|' | '&'));
                    self.end_command()?;
                }
                '\'' => self.quoted()?,
                '"' => self.double_quoted()?,
                '\\' => match self.rest.next()? {
                    '\n' => {}
                    escaped => self.push(escaped),
                },
                '>' | '<' => self.redirect(next)?,
                '#' if self.word.is_none() => while self.rest.next_if(|c| *c != '\n').is_some() {},
                '$' | '`' | '(' | ')' | '{' | '}' => return None,
                other if other.is_control() => return None,
                other => self.push(other),
            }
        }
        self.end_command()
    }

    fn push(&mut self, letter: char) {
        self.word.get_or_insert_default().push(letter);
    }

    fn quoted(&mut self) -> Option<()> {
        self.word.get_or_insert_default();
        loop {
            match self.rest.next()? {
                '\'' => return Some(()),
                letter => self.push(letter),
            }
        }
    }

    fn double_quoted(&mut self) -> Option<()> {
        self.word.get_or_insert_default();
        loop {
            match self.rest.next()? {
                '"' => return Some(()),
                '$' | '`' => return None,
                '\\' => match self.rest.next()? {
                    escaped @ ('"' | '\\' | '$' | '`') => self.push(escaped),
                    '\n' => {}
                    other => {
                        self.push('\\');
                        self.push(other);
                    }
                },
                letter => self.push(letter),
            }
        }
    }

    /// `2>&1`, `>/dev/null` and `< file` write nothing.
    fn redirect(&mut self, sign: char) -> Option<()> {
        // A number before it is no word.
        if self
            .word
            .as_ref()
            .is_some_and(|word| word.bytes().all(|byte| byte.is_ascii_digit()))
        {
            self.word = None;
        }
        self.end_word();
        if sign == '<' {
            // Here documents and processes.
            return match self.rest.peek()? {
                '<' | '(' | '>' | '&' => None,
                _ => self.target().map(drop),
            };
        }
        if self.rest.next_if_eq(&'&').is_some() {
            let to = self.target()?;
            return to.bytes().all(|byte| byte.is_ascii_digit()).then_some(());
        }
        self.rest.next_if(|next| matches!(next, '>' | '|'));
        let to = self.target()?;
        self.writes |= to != "/dev/null";
        Some(())
    }

    fn target(&mut self) -> Option<String> {
        while self
            .rest
            .next_if(|next| matches!(next, ' ' | '\t'))
            .is_some()
        {}
        let mut name = String::new();
        let plain = |next: &char| !next.is_whitespace() && !";&|<>$`(){}'\"\\*?[".contains(*next);
        while let Some(letter) = self.rest.next_if(plain) {
            name.push(letter);
        }
        // The rest of an odd name would be taken for a word.
        let ends = self
            .rest
            .peek()
            .is_none_or(|next| next.is_whitespace() || ";&|<>".contains(*next));
        (ends && !name.is_empty()).then_some(name)
    }

    fn end_word(&mut self) {
        self.words.extend(self.word.take());
    }

    fn end_command(&mut self) -> Option<()> {
        self.end_word();
        let words = std::mem::take(&mut self.words);
        let writes = std::mem::take(&mut self.writes);
        match words.first() {
            None if writes => return None,
            None => {}
            Some(first) if KEYWORDS.contains(&first.as_str()) => return None,
            Some(_) => self.commands.push(Simple { words, writes }),
        }
        Some(())
    }
}

/// The possible commands of a line that [`commands`] cannot take apart: every piece that could
/// begin one.
pub(super) fn pieces(line: &str) -> Vec<Vec<String>> {
    let breaks = |c: char| {
        matches!(
            c,
            ';' | '&' | '|' | '\n' | '(' | ')' | '{' | '}' | '`' | '$'
        )
    };
    let words = |piece: &str| -> Vec<String> {
        let words = piece.split_whitespace();
        let plain = words.map(|word| word.trim_matches(['"', '\'', '\\']).to_owned());
        let plain = plain.skip_while(|word| KEYWORDS.contains(&word.as_str()));
        plain.collect()
    };
    let all = line.split(breaks).map(words);
    all.filter(|words| !words.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(line: &str) -> Option<Vec<String>> {
        let commands = commands(line)?;
        let text = |one: &Simple| {
            let sign = if one.writes { " >" } else { "" };
            format!("{}{sign}", one.words.join("|"))
        };
        Some(commands.iter().map(text).collect())
    }

    #[test]
    fn lines_are_taken_apart() {
        for (line, expected) in [
            ("git status", &["git|status"][..]),
            (
                "a && b || c; d & e | f |& g\nh",
                &["a", "b", "c", "d", "e", "f", "g", "h"],
            ),
            ("echo 'a; b' \"c && d\" e\\;f", &["echo|a; b|c && d|e;f"]),
            ("a 2>&1 >/dev/null < in", &["a"]),
            ("a > out", &["a >"]),
            ("a>>out b", &["a|b >"]),
            ("a # ; rm x", &["a"]),
            ("a b#c", &["a|b#c"]),
            ("echo ''", &["echo|"]),
            ("  ", &[]),
            ("FOO=1 git x", &["FOO=1|git|x"]),
        ] {
            assert_eq!(
                split(line).as_deref(),
                Some(
                    &expected
                        .iter()
                        .map(|it| (*it).to_owned())
                        .collect::<Vec<_>>()[..]
                ),
                "{line}"
            );
        }
    }

    #[test]
    fn what_is_not_certain_is_not_taken_apart() {
        for line in [
            "echo $(rm x)",
            "echo `rm x`",
            "echo \"$(rm x)\"",
            "echo $HOME",
            "(rm x)",
            "{ rm x; }",
            "cat <<E\nrm x\nE",
            "diff <(a) b",
            "for x in a; do rm x; done",
            "if true; then rm x; fi",
            "eval rm x",
            "! rm x",
            "echo 'open",
            "a &> out",
            "a > $OUT",
            "a > 'b c'",
            "> out",
            "a\u{1b}b",
        ] {
            assert_eq!(commands(line), None, "{line}");
            assert!(!pieces(line).is_empty(), "{line}");
        }
    }
}
