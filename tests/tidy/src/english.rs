//! The prose of the repository keeps to plain English: phrases on a deny list are counted.
//!
//! Prose is a comment or a string literal of a Rust file, and the whole text of a Markdown page, a
//! shell script or a workflow. A phrase is found in any case and across lines, but not across the
//! end of a sentence. An opener is a phrase that begins a sentence of a comment in a Rust file.
//!
//! [`MOST`] is the stored maximum. It may only fall: the check also fails when the repository has
//! fewer than that, and names the number to write there.

use std::io::{Error, Result};
use std::path::Path;
use std::process::Command;

/// The maximum of denied phrases in the repository. It may only fall.
pub const MOST: usize = 284;

/// This file, which names the phrases, is the only one that is not read.
const THE_LIST: &str = "tests/tidy/src/english.rs";

/// Phrases, with `|` between the forms of a word.
const PHRASES: [&str; 10] = [
    "somebody|nobody|whoever|somebody's|nobody's|whoever's",
    "go|goes|going|gone|went on with",
    "is|are|was|were|be looked",
    "of no use",
    "at it",
    "is|are told",
    "bring|brings|bringing|brought along",
    "work|works|working|worked a|the|its|one board|boards off",
    "work|works|working|worked off a|the|its|one board",
    "seen to it",
];

/// Phrases that begin no sentence of a comment.
const OPENERS: [&str; 5] = [
    "How often|long|many|much|far",
    "So often|long|many|much|far",
    "What",
    "Whether",
    "Who",
];

/// Headings of every room, which are no sentences.
const HEADINGS: [&str; 2] = ["What this room knows", "What it must not know"];

/// A denied phrase and where it begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The path from the repository's root.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
    /// The words as they are written.
    pub words: String,
}

/// The denied phrases in the files that git tracks below `root`, by file and line.
pub fn find(root: &Path) -> Result<Vec<Finding>> {
    let output = Command::new("git")
        .args(["ls-files", "-z"])
        .current_dir(root)
        .output()?;
    if !output.status.success() {
        return Err(Error::other("git ls-files failed"));
    }
    let names = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut findings = Vec::new();
    for name in names.split('\0').filter(|name| is_prose(name)) {
        let path = root.join(name);
        // A file that was deleted and not committed yet.
        if path.is_file() {
            findings.extend(in_text(name, &std::fs::read_to_string(path)?));
        }
    }
    Ok(findings)
}

/// Why `findings` do not fit to the stored maximum `most`, if they do not.
pub fn problem(findings: &[Finding], most: usize) -> Option<String> {
    let count = findings.len();
    if count == most {
        return None;
    }
    if count < most {
        return Some(format!(
            "{count} denied phrases, and {most} are allowed: lower the number to {count} \
             (MOST in {THE_LIST})"
        ));
    }
    let mut text = format!(
        "{count} denied phrases, and {most} are allowed. Write the new ones in plain English:"
    );
    for finding in findings {
        let Finding { file, line, words } = finding;
        text.push_str(&format!("\n  {file}:{line}: {words}"));
    }
    Some(text)
}

fn is_prose(name: &str) -> bool {
    let ends = [".rs", ".md", ".sh", ".yml"];
    name != THE_LIST && ends.iter().any(|end| name.ends_with(end))
}

/// The denied phrases of one file.
pub fn in_text(name: &str, text: &str) -> Vec<Finding> {
    let pieces = if name.ends_with(".rs") {
        rust(text)
    } else {
        vec![Piece::new(Kind::Text, 1, text)]
    };
    let mut findings = Vec::new();
    for piece in &pieces {
        let words = words(piece);
        for at in 0..words.len() {
            let rest = &words[at..];
            let of_phrase = PHRASES
                .iter()
                .find_map(|phrase| length(rest, phrase, false));
            let is_heading = || HEADINGS.iter().any(|it| length(rest, it, true).is_some());
            let opens = piece.kind == Kind::Comment && rest[0].opens && !is_heading();
            let of_opener = || OPENERS.iter().find_map(|phrase| length(rest, phrase, true));
            if let Some(length) = of_phrase.or_else(|| opens.then(of_opener).flatten()) {
                let found: Vec<&str> = rest[..length].iter().map(|word| word.text).collect();
                findings.push(Finding {
                    file: name.to_owned(),
                    line: rest[0].line,
                    words: found.join(" "),
                });
            }
        }
    }
    findings
}

/// How many of `words` the phrase covers, if they begin with it.
fn length(words: &[Word<'_>], phrase: &str, as_written: bool) -> Option<usize> {
    let mut count = 0;
    for forms in phrase.split(' ') {
        let word = words.get(count)?;
        let is_form = |form: &str| {
            if as_written {
                word.text == form
            } else {
                word.text.eq_ignore_ascii_case(form)
            }
        };
        if !forms.split('|').any(is_form) || (count > 0 && word.opens) {
            return None;
        }
        count += 1;
    }
    Some(count)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Comment,
    Literal,
    Text,
}

/// A text that is read as one: a block of comments, a literal, a page.
#[derive(Debug)]
struct Piece {
    kind: Kind,
    line: usize,
    text: String,
}

impl Piece {
    fn new(kind: Kind, line: usize, text: &str) -> Self {
        let text = text.to_owned();
        Self { kind, line, text }
    }
}

#[derive(Debug)]
struct Word<'a> {
    text: &'a str,
    line: usize,
    /// True if the word begins a sentence.
    opens: bool,
}

/// The words of a piece. An empty line and a list's mark begin a sentence.
fn words(piece: &Piece) -> Vec<Word<'_>> {
    let mut words = Vec::new();
    let mut opens = true;
    for (line, text) in (piece.line..).zip(piece.text.lines()) {
        let text = text.trim_start();
        let text = text.trim_start_matches(['/', '#', '!']).trim_start();
        opens |= text.is_empty() || text.starts_with(['-', '*', '|', '>']);
        for part in text.split_whitespace() {
            let is_word = |c: char| c.is_alphanumeric() || c == '_' || c == '\'';
            let inner = part.trim_matches(|c: char| !is_word(c) || c == '\'');
            // A name, a path or an option is no word.
            if !inner.is_empty() && !part.contains('`') && inner.chars().all(is_word) {
                words.push(Word {
                    text: inner,
                    line,
                    opens,
                });
                opens = false;
            } else if !inner.is_empty() {
                words.push(Word {
                    text: "",
                    line,
                    opens,
                });
                opens = false;
            }
            let end = part.trim_end_matches(['"', '\'', ')', '*', '`']);
            opens |= end.ends_with(['.', '!', '?', ':', ';']);
        }
    }
    words
}

/// The comments and literals of a Rust file. Lines of comments that follow each other are one
/// piece.
fn rust(text: &str) -> Vec<Piece> {
    let mut pieces: Vec<Piece> = Vec::new();
    let (mut at, mut line) = (0, 1);
    // The line on which the last comment ended.
    let mut last = 0;
    while at < text.len() {
        let rest = &text[at..];
        let (length, kind) = token(rest, text[..at].chars().next_back());
        let token = &rest[..length];
        let lines = token.matches('\n').count();
        match kind {
            Some(Kind::Comment) if last + 1 == line && pieces.last().is_some_and(is_comment) => {
                if let Some(piece) = pieces.last_mut() {
                    piece.text.push('\n');
                    piece.text.push_str(token);
                }
            }
            Some(kind) => pieces.push(Piece::new(kind, line, &unescaped(kind, token))),
            None => {}
        }
        line += lines;
        if kind == Some(Kind::Comment) {
            last = line;
        }
        at += length;
    }
    pieces
}

fn is_comment(piece: &Piece) -> bool {
    piece.kind == Kind::Comment
}

/// A literal with its escapes as the space they are, a comment as it is.
fn unescaped(kind: Kind, token: &str) -> String {
    match kind {
        Kind::Literal => token.replace("\\n", "  ").replace("\\\"", " \""),
        Kind::Comment | Kind::Text => token.to_owned(),
    }
}

/// The length of the token that `rest` begins with, and whether it is prose. `before` is the
/// character in front of it.
fn token(rest: &str, before: Option<char>) -> (usize, Option<Kind>) {
    let first = rest.chars().next().map_or(1, char::len_utf8);
    if rest.starts_with("//") {
        let end = rest.find('\n').unwrap_or(rest.len());
        return (end, Some(Kind::Comment));
    }
    if rest.starts_with("/*") {
        let end = rest.find("*/").map_or(rest.len(), |end| end + 2);
        return (end, Some(Kind::Comment));
    }
    if rest.starts_with('"') {
        return (quoted(rest), Some(Kind::Literal));
    }
    let in_name = before.is_some_and(|c| c.is_alphanumeric() || c == '_');
    let raw = rest.strip_prefix("br").or_else(|| rest.strip_prefix('r'));
    if let Some(raw) = raw.filter(|_| !in_name) {
        let hashes = raw.len() - raw.trim_start_matches('#').len();
        if raw[hashes..].starts_with('"') {
            let start = rest.len() - raw.len() + hashes + 1;
            let end = format!("\"{}", "#".repeat(hashes));
            let length = rest[start..].find(&end).map(|at| start + at + end.len());
            return (length.unwrap_or(rest.len()), Some(Kind::Literal));
        }
    }
    if rest.starts_with("'\\") {
        let end = rest[3..].find('\'').map_or(rest.len(), |at| 3 + at + 1);
        return (end, None);
    }
    if let Some(inner) = rest.strip_prefix('\'') {
        let one = inner.chars().next().map_or(0, char::len_utf8);
        if inner[one..].starts_with('\'') {
            return (one + 2, None);
        }
    }
    (first, None)
}

/// The length of the literal that `rest` begins with.
fn quoted(rest: &str) -> usize {
    let mut escaped = false;
    for (at, c) in rest.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return at + 1,
            _ => {}
        }
    }
    rest.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(name: &str, text: &str) -> Vec<(usize, String)> {
        let findings = in_text(name, text).into_iter();
        findings.map(|one| (one.line, one.words)).collect()
    }

    fn one(line: usize, words: &str) -> Vec<(usize, String)> {
        vec![(line, words.to_owned())]
    }

    #[test]
    fn phrases_are_found_in_comments_and_literals() {
        for (text, wanted) in [
            ("// It goes on with it.", one(1, "goes on with")),
            ("\n/// It goes\n/// on with it.", one(2, "goes on with")),
            ("let a = \"an agent is told\";", one(1, "is told")),
            ("let a = r#\"a \"b\" nobody\"#;", one(1, "nobody")),
            ("let a = \"a \\\" nobody\";", one(1, "nobody")),
            ("let a = '\"'; // of no use", one(1, "of no use")),
            ("/* Brings\nalong */", one(1, "Brings along")),
            ("//! It works the board off.", one(1, "works the board off")),
            ("/// (somebody's)", one(1, "somebody's")),
        ] {
            assert_eq!(found("a.rs", text), wanted, "{text}");
        }
    }

    #[test]
    fn code_names_and_other_sentences_are_fine() {
        for text in [
            "fn nobody(at: it) -> &'a str { somebody }",
            "// The name `nobody` and nobody_asks, /home/nobody.",
            "// It is where to look at. It ends.",
            "// It is told_apart; not attitude.",
            "let what = 'n'; let nobody = b'\\'';",
        ] {
            assert_eq!(found("a.rs", text), [], "{text}");
        }
    }

    #[test]
    fn openers_are_found_where_a_sentence_of_a_comment_begins() {
        for (text, wanted) in [
            ("/// How often it ends.", one(1, "How often")),
            ("/// It ends.\n/// Whether or not.", one(2, "Whether")),
            ("/// Two:\n///\n/// - What is kept", one(3, "What")),
            ("//! Ends. So many (a) are", one(1, "So many")),
            ("/// It shows\n/// What it is.", Vec::new()),
            (
                "//! # What this room knows\n//!\n//! What it is.",
                one(3, "What"),
            ),
            ("/// how often, so often. How it is.", Vec::new()),
            ("let a = \"What is it?\";", Vec::new()),
        ] {
            assert_eq!(found("a.rs", text), wanted, "{text}");
        }
    }

    #[test]
    fn pages_and_scripts_are_read_whole() {
        assert_eq!(found("a.md", "a\n\nAt\nit. What"), one(3, "At it"));
        assert_eq!(found("a.sh", "# a\necho is told"), one(2, "is told"));
    }

    #[test]
    fn only_the_stored_number_is_right() {
        let findings = in_text("a.rs", "// nobody, somebody");
        assert_eq!(problem(&findings, 2), None);
        let fewer = problem(&findings, 3).unwrap();
        assert!(fewer.contains("lower the number to 2"), "{fewer}");
        let more = problem(&findings, 1).unwrap();
        assert!(more.contains("\n  a.rs:1: somebody"), "{more}");
    }
}
