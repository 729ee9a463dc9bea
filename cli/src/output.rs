//! The owner of standard output.

use std::fmt::Display;
use std::io::{self, IsTerminal, Write};
use std::path::Path;

use runs::failure_text::FailureText;
use serde_json::Value;
use store::clock::{Clock, SystemClock, parse_rfc3339};
use store::{Category, Failure, counted};
use term::prompt;
use term::wrap::wrap;

use crate::exit::{Exit, not_printed};
use crate::said::Said;
pub(crate) use term::style::*;

/// Writes a command's output, for people or as JSON.
#[derive(Debug, Clone)]
pub(crate) struct Output {
    json: bool,
    said: Said,
}

impl Output {
    pub(crate) fn new(json: bool) -> Self {
        Self {
            json,
            said: Said::default(),
        }
    }

    /// Sets the flags that the user typed, for commands in hints.
    pub(crate) fn set_said(&mut self, said: Said) {
        self.said = said;
    }

    /// `ccb` with the flags that the user typed: a command in a hint begins with this.
    pub(crate) fn ccb(&self) -> String {
        self.said.ccb()
    }

    /// The command to type, such as `mail ack 2`, with the flags that the user typed.
    pub(crate) fn command(&self, rest: &str) -> String {
        self.said.command(rest)
    }

    pub(crate) fn is_json(&self) -> bool {
        self.json
    }

    /// One JSON document on one line.
    pub(crate) fn json(&mut self, value: &Value) -> Result<(), Failure> {
        let mut stdout = io::stdout().lock();
        writeln!(stdout, "{value}")
            .and_then(|()| stdout.flush())
            .map_err(|error| not_printed(&error))
    }

    /// Text for people; colours are dropped where they do not belong.
    pub(crate) fn text(&mut self, text: &str) -> Result<(), Failure> {
        let mut stdout = anstream::stdout().lock();
        writeln!(stdout, "{text}")
            .and_then(|()| stdout.flush())
            .map_err(|error| not_printed(&error))
    }

    /// Prints `json` with `--json`, else `text`.
    pub(crate) fn answer(
        &mut self,
        json: impl FnOnce() -> Value,
        text: impl FnOnce() -> String,
    ) -> Result<(), Failure> {
        if self.json {
            self.json(&json())
        } else {
            match terminal_width() {
                Some(width) => self.text(&wrap(&text(), width, "    ")),
                None => self.text(&text()),
            }
        }
    }

    /// Prints the answer of a command that has nothing to report but success.
    pub(crate) fn done(
        &mut self,
        json: impl FnOnce() -> Value,
        text: impl FnOnce() -> String,
    ) -> Result<Exit, Failure> {
        self.answer(json, text)?;
        Ok(Exit::Done)
    }

    /// Prints a problem that does not stop the command; on stderr.
    pub(crate) fn warn(&mut self, text: impl Display) {
        let text = clean_line(&text.to_string());
        self.note(&format!("{YELLOW}warning:{YELLOW:#} {text}"));
    }

    /// Prints information beside the answer; on stderr.
    pub(crate) fn note(&mut self, text: &str) {
        self.note_with(text, "");
    }

    /// The same; a line that is too wide for the terminal continues after `indent`.
    pub(crate) fn note_with(&mut self, text: &str, indent: &str) {
        let text = match stderr_width() {
            Some(width) => &wrap(text, width, indent),
            None => text,
        };
        prompt::above(|| writeln!(anstream::stderr(), "{text}").ok());
    }

    /// Prints an error: JSON on stdout, or words on stderr.
    pub(crate) fn error(&mut self, error: &Failure) {
        if self.json {
            // In the same form as the MCP tools: a program knows which flags it passes.
            self.json(&error.to_json()).ok();
            return;
        }
        let mut text = format!("{RED}error:{RED:#} {}", hanging(error.message()));
        if let Some(hint) = error.hint() {
            let hint = self.said.complete(hint);
            text.push_str(&format!("\n  {CYAN}hint:{CYAN:#} {}", hanging(&hint)));
        }
        self.note_with(&text, "    ");
    }

    /// Prints help, the version, or an error in the arguments.
    pub(crate) fn usage(&mut self, error: &clap::Error) -> u8 {
        if !error.use_stderr() {
            error.print().ok();
            return Exit::Done.code();
        }
        let text = in_words(&error.render().to_string());
        if self.json {
            let message = text
                .trim_start_matches("error: ")
                .split("\n\n")
                .next()
                .unwrap_or(&text);
            let error = Failure::usage("usage", message.trim())
                .with_hint("run the command with --help to see what it takes");
            self.error(&error);
        } else {
            let text = in_words(&error.render().ansi().to_string());
            self.note(text.trim_end());
        }
        Exit::Not(Category::Invalid).code()
    }
}

/// Rewrites an error of the number parser for people.
fn in_words(text: &str) -> String {
    let mut text = text.to_owned();
    for (said, meant) in [
        ("invalid digit found in string", "it is not a whole number"),
        (
            "cannot parse integer from empty string",
            "a number is missing",
        ),
        (
            "number too large to fit in target type",
            "the number is too large",
        ),
        (
            "number too small to fit in target type",
            "the number is too small",
        ),
        ("invalid float literal", "it is not a number"),
    ] {
        text = text.replace(said, meant);
    }
    let Some((before, range)) = text.split_once(" is not in ") else {
        return text;
    };
    let end = range.find(char::is_whitespace).unwrap_or(range.len());
    let (range, after) = range.split_at(end);
    let Some((least, most)) = range.split_once("..=") else {
        return text;
    };
    let most = most.trim_end_matches("\u{1b}[0m");
    let open = [u64::from(u16::MAX), u64::from(u32::MAX), u64::MAX];
    let is_open = most.parse().is_ok_and(|most| open.contains(&most));
    match is_open {
        true => format!("{before} is too small: at least {least}{after}"),
        false => format!("{before} is not a number from {least} to {most}{after}"),
    }
}

/// Keeps a message while a view has the screen; returns it if no view is open.
pub(crate) type HoldBack = fn(String) -> Option<String>;

/// Writes messages for maintainers to stderr. They quote text of others, so they are cleaned, too.
pub(crate) fn log_writer(hold_back: HoldBack) -> impl Write {
    struct Log(HoldBack);
    impl Write for Log {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            // One call is one message.
            let text = String::from_utf8_lossy(bytes);
            let text = hanging(text.trim_end());
            if let Some(text) = (self.0)(text) {
                prompt::above(|| writeln!(io::stderr().lock(), "{text}"))?;
            }
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            io::stderr().flush()
        }
    }
    Log(hold_back)
}

/// The time since then in a few characters.
pub(crate) fn age(since: &str) -> String {
    let Some(since) = parse_rfc3339(since) else {
        return String::new();
    };
    // After a clock was set back the age is 0, not negative.
    let seconds = SystemClock.now_ms().saturating_sub(since).max(0) / 1000;
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3600 => format!("{}m", seconds / 60),
        3600..86_400 => format!("{}h", seconds / 3600),
        _ => format!("{}d", seconds / 86_400),
    }
}

/// Columns of the terminal; `None` if stderr is none.
fn stderr_width() -> Option<usize> {
    let stderr = io::stderr();
    if !stderr.is_terminal() {
        return None;
    }
    let size = rustix::termios::tcgetwinsize(&stderr).ok()?;
    Some(usize::from(size.ws_col)).filter(|columns| *columns > 0)
}

/// A failure on several lines: what failed, its last output, the file with all of it, and the
/// command that tries again.
pub(crate) fn failure_lines(why: &str, log: Option<&Path>, again: Option<&str>) -> String {
    let failure = FailureText::of(why);
    let mut text = clean_line(&failure.what);
    if failure.before > 0 {
        let before = counted(failure.before, "earlier line");
        text.push_str(&format!("\n{QUOTE}{DIM}… {before}{DIM:#}"));
    }
    if failure.printed.is_empty() && log.is_none() && failure.what.contains("exit code") {
        text.push_str(" (it printed nothing)");
    }
    for line in &failure.printed {
        text.push_str(&format!("\n{QUOTE}{}", clean_line(line)));
    }
    if let Some(log) = log {
        let log = clean_line(&log.display().to_string());
        text.push_str(&format!("\n  {DIM}log:{DIM:#}   {log}"));
    }
    if let Some(again) = again {
        text.push_str(&format!("\n  {DIM}retry:{DIM:#} {again}"));
    }
    text
}

/// Columns of the terminal; `None` if stdout is none.
pub(crate) fn terminal_width() -> Option<usize> {
    let stdout = io::stdout();
    if !stdout.is_terminal() {
        return None;
    }
    rustix::termios::tcgetwinsize(&stdout)
        .ok()
        .map(|size| usize::from(size.ws_col))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_refused_in_words() {
        use clap::CommandFactory;

        for (line, says) in [
            ("ccb mail ack x", "'<SEQ>': it is not a whole number"),
            ("ccb task done 1 --token x", "it is not a whole number"),
            (
                "ccb mail ack 99999999999999999999",
                "the number is too large",
            ),
            (
                "ccb agent spawn --max-turns 0 y",
                "0 is too small: at least 1",
            ),
            (
                "ccb worktree pool fill 99",
                "99 is not a number from 0 to 64",
            ),
            ("ccb --attempts 0", "0 is not a number from 1 to 100"),
        ] {
            let parsed = crate::commands::Cli::command().try_get_matches_from(line.split(' '));
            let text = in_words(&parsed.unwrap_err().render().to_string());
            assert!(text.contains(says), "{line}: {text}");
        }
    }
}
