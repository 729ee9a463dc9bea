//! The line that a person types: pure, so that every key is tested without a terminal.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use unicode_width::UnicodeWidthChar;

/// Maximum number of lines in the history.
const REMEMBERED: usize = 200;

/// The effect of a key.
#[derive(Debug, PartialEq, Eq)]
pub enum Typed {
    /// The key changed the line or moved the cursor.
    Changed,
    /// The key finished this line.
    Line(String),
    /// The person types nothing more.
    End,
    /// The key means nothing here.
    Nothing,
}

/// A line, a cursor, and the history.
#[derive(Debug, Default)]
pub struct Edit {
    text: Vec<char>,
    /// The character that the cursor stands before.
    cursor: usize,
    history: Vec<String>,
    /// The shown line of the history, and the text typed before it; `None` if none is shown.
    recalled: Option<(usize, Vec<char>)>,
}

impl Edit {
    /// The text typed so far.
    pub fn text(&self) -> String {
        self.text.iter().collect()
    }

    /// True if nothing is typed.
    pub fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// Takes a typed key, and returns its effect.
    pub fn key(&mut self, key: KeyEvent) -> Typed {
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        match (key.code, control) {
            (KeyCode::Enter, _) => return Typed::Line(self.finish()),
            (KeyCode::Char('d'), true) if self.text.is_empty() => return Typed::End,
            (KeyCode::Char('d'), true) | (KeyCode::Delete, _) => {
                if self.cursor < self.text.len() {
                    self.text.remove(self.cursor);
                }
            }
            (KeyCode::Char('h'), true) | (KeyCode::Backspace, _) => {
                if self.cursor > 0 {
                    self.cursor -= 1;
                    self.text.remove(self.cursor);
                }
            }
            (KeyCode::Char('u'), true) => {
                self.text.drain(..self.cursor);
                self.cursor = 0;
            }
            (KeyCode::Char('k'), true) => self.text.truncate(self.cursor),
            (KeyCode::Char('w'), true) => {
                let from = self.word_before();
                self.text.drain(from..self.cursor);
                self.cursor = from;
            }
            (KeyCode::Char('a'), true) | (KeyCode::Home, _) => self.cursor = 0,
            (KeyCode::Char('e'), true) | (KeyCode::End, _) => self.cursor = self.text.len(),
            (KeyCode::Char('b'), true) | (KeyCode::Left, false) => {
                self.cursor = self.cursor.saturating_sub(1);
            }
            (KeyCode::Left, true) => self.cursor = self.word_before(),
            (KeyCode::Char('f'), true) | (KeyCode::Right, _) => {
                self.cursor = (self.cursor + 1).min(self.text.len());
            }
            (KeyCode::Char('p'), true) | (KeyCode::Up, _) => self.recall(true),
            (KeyCode::Char('n'), true) | (KeyCode::Down, _) => self.recall(false),
            (KeyCode::Char(c), false) => self.insert(c),
            _ => return Typed::Nothing,
        }
        Typed::Changed
    }

    /// Inserts pasted text: several lines become one.
    pub fn paste(&mut self, text: &str) {
        for c in text.trim_end().chars() {
            self.insert(if c == '\n' || c == '\r' { ' ' } else { c });
        }
    }

    fn insert(&mut self, c: char) {
        // Characters that control a terminal are never shown, so the line never takes them.
        if c.is_control() {
            return;
        }
        self.text.insert(self.cursor, c);
        self.cursor += 1;
    }

    fn finish(&mut self) -> String {
        let line: String = self.text.drain(..).collect();
        self.cursor = 0;
        self.recalled = None;
        if !line.trim().is_empty() && self.history.last() != Some(&line) {
            self.history.push(line.clone());
            let many = self.history.len().saturating_sub(REMEMBERED);
            self.history.drain(..many);
        }
        line
    }

    /// The position where the word before the cursor begins.
    fn word_before(&self) -> usize {
        let mut at = self.cursor;
        while at > 0 && self.text[at - 1].is_whitespace() {
            at -= 1;
        }
        while at > 0 && !self.text[at - 1].is_whitespace() {
            at -= 1;
        }
        at
    }

    fn recall(&mut self, back: bool) {
        let at = self.recalled.as_ref().map(|(at, _)| *at);
        let next = match (at, back) {
            (None, true) => self.history.len().checked_sub(1),
            (Some(at), true) => Some(at.saturating_sub(1)),
            (Some(at), false) => Some(at + 1),
            (None, false) => return,
        };
        let Some(next) = next else {
            return;
        };
        let typed = match self.recalled.take() {
            Some((_, typed)) => typed,
            None => std::mem::take(&mut self.text),
        };
        match self.history.get(next) {
            Some(line) => {
                self.text = line.chars().collect();
                self.recalled = Some((next, typed));
            }
            None => self.text = typed,
        }
        self.cursor = self.text.len();
    }

    /// The part of the line that fits into `width` columns, and the column of the cursor.
    pub fn view(&self, width: usize) -> (String, usize) {
        let wide = |c: &char| c.width().unwrap_or(0);
        // The cursor needs a column of its own.
        let room = width.saturating_sub(1).max(1);
        let mut from = self.cursor;
        let mut before = 0;
        while from > 0 && before + wide(&self.text[from - 1]) <= room {
            from -= 1;
            before += wide(&self.text[from]);
        }
        let mut shown = before;
        let mut to = self.cursor;
        while to < self.text.len() && shown + wide(&self.text[to]) <= room {
            shown += wide(&self.text[to]);
            to += 1;
        }
        (self.text[from..to].iter().collect(), before)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn press(edit: &mut Edit, code: KeyCode) -> Typed {
        edit.key(KeyEvent::new(code, KeyModifiers::NONE))
    }

    fn control(edit: &mut Edit, c: char) -> Typed {
        edit.key(KeyEvent::new(KeyCode::Char(c), KeyModifiers::CONTROL))
    }

    fn write(edit: &mut Edit, text: &str) {
        for c in text.chars() {
            press(edit, KeyCode::Char(c));
        }
    }

    fn text(edit: &Edit) -> String {
        edit.text()
    }

    #[test]
    fn a_line_is_typed_corrected_and_finished() {
        let mut edit = Edit::default();
        write(&mut edit, "fix teh parser");
        for _ in 0.." parser".len() {
            press(&mut edit, KeyCode::Left);
        }
        press(&mut edit, KeyCode::Backspace);
        press(&mut edit, KeyCode::Backspace);
        write(&mut edit, "he");
        assert_eq!(text(&edit), "fix the parser");
        control(&mut edit, 'e');
        control(&mut edit, 'w');
        assert_eq!(text(&edit), "fix the ");
        control(&mut edit, 'u');
        assert!(edit.is_empty());
        edit.paste("two\nlines\n");
        let line = press(&mut edit, KeyCode::Enter);
        assert_eq!(line, Typed::Line("two lines".into()));
        assert!(edit.is_empty());
        assert_eq!(control(&mut edit, 'd'), Typed::End);
        assert_eq!(press(&mut edit, KeyCode::F(3)), Typed::Nothing);
    }

    #[test]
    fn earlier_lines_come_back_and_what_was_begun_is_not_lost() {
        let mut edit = Edit::default();
        for line in ["one", "two", "two"] {
            write(&mut edit, line);
            press(&mut edit, KeyCode::Enter);
        }
        write(&mut edit, "begun");
        press(&mut edit, KeyCode::Up);
        assert_eq!(text(&edit), "two");
        press(&mut edit, KeyCode::Up);
        press(&mut edit, KeyCode::Up);
        assert_eq!(text(&edit), "one");
        press(&mut edit, KeyCode::Down);
        press(&mut edit, KeyCode::Down);
        assert_eq!(text(&edit), "begun");
        press(&mut edit, KeyCode::Down);
        assert_eq!(text(&edit), "begun");
    }

    #[test]
    fn a_long_line_scrolls_and_wide_characters_count_as_two() {
        let mut edit = Edit::default();
        write(&mut edit, "abcdefghij");
        assert_eq!(edit.view(20), ("abcdefghij".into(), 10));
        assert_eq!(edit.view(5), ("ghij".into(), 4));
        control(&mut edit, 'a');
        assert_eq!(edit.view(5), ("abcd".into(), 0));
        control(&mut edit, 'k');
        write(&mut edit, "漢字");
        assert_eq!(edit.view(10), ("漢字".into(), 4));
        assert_eq!(edit.view(4), ("字".into(), 2));
        // No character that controls the terminal gets in.
        write(&mut edit, "\u{1b}\u{7}");
        edit.paste("\u{9b}31m");
        assert_eq!(text(&edit), "漢字31m");
    }
}
