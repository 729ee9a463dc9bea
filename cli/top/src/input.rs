//! Turns the bytes of a terminal into keys.
//!
//! The view reads bytes itself and does not use crossterm, whose reader waits for the terminal and
//! for a changed window in one, and can miss a key that comes together with the other.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::model::Message;

const ESC: u8 = 0x1b;
const PASTE: &[u8] = b"\x1b[200~";
const PASTE_END: &[u8] = b"\x1b[201~";
/// Maximum bytes of a key; a longer sequence is no key.
const LONGEST: usize = 64;
/// Maximum bytes of a paste.
const MOST_PASTED: usize = 64 * 1024;

/// Bytes that are not a whole key yet.
#[derive(Debug, Default)]
pub(super) struct Input {
    bytes: Vec<u8>,
}

/// The beginning of the bytes.
enum Found {
    /// This number of bytes is this message; `None` if it means nothing.
    Some(usize, Option<Message>),
    /// More bytes have to come.
    Unfinished,
}

impl Input {
    /// True if a key or a paste is incomplete.
    pub(super) fn is_unfinished(&self) -> bool {
        !self.bytes.is_empty()
    }

    /// Takes new bytes; returns the keys that are complete.
    pub(super) fn take(&mut self, bytes: &[u8]) -> Vec<Message> {
        self.bytes.extend_from_slice(bytes);
        let mut messages = Vec::new();
        while !self.bytes.is_empty() {
            match first(&self.bytes) {
                Found::Some(length, message) => {
                    self.bytes.drain(..length);
                    messages.extend(message);
                }
                Found::Unfinished => break,
            }
        }
        messages
    }

    /// Takes the bytes so far as complete, because no more came for a while.
    pub(super) fn finish(&mut self) -> Vec<Message> {
        if self.bytes.starts_with(PASTE) {
            return Vec::new();
        }
        let bytes = std::mem::take(&mut self.bytes);
        match bytes.as_slice() {
            [ESC] => vec![key(KeyCode::Esc, KeyModifiers::NONE)],
            [ESC, ESC] => vec![key(KeyCode::Esc, KeyModifiers::NONE); 2],
            _ => Vec::new(),
        }
    }
}

fn key(code: KeyCode, modifiers: KeyModifiers) -> Message {
    Message::Key(KeyEvent::new(code, modifiers))
}

fn first(bytes: &[u8]) -> Found {
    match bytes {
        [ESC] | [ESC, ESC] => Found::Unfinished,
        [ESC, ESC, ..] => Found::Some(1, Some(key(KeyCode::Esc, KeyModifiers::NONE))),
        [ESC, b'[', rest @ ..] => control_sequence(bytes, rest),
        [ESC, b'O'] => Found::Unfinished,
        [ESC, b'O', last, ..] => Found::Some(3, named(*last).map(|it| key(it, KeyModifiers::NONE))),
        [ESC, rest @ ..] => match character(rest) {
            Found::Some(length, Some(Message::Key(KeyEvent { code, .. }))) => {
                Found::Some(length + 1, Some(key(code, KeyModifiers::ALT)))
            }
            Found::Some(length, _) => Found::Some(length + 1, None),
            Found::Unfinished => Found::Unfinished,
        },
        rest => character(rest),
    }
}

/// `ESC [`, numbers, and a letter.
fn control_sequence(whole: &[u8], rest: &[u8]) -> Found {
    if whole.starts_with(PASTE) {
        return pasted(whole);
    }
    let end = rest.iter().position(|byte| matches!(byte, 0x40..=0x7e));
    let Some(end) = end else {
        return match whole.len() > LONGEST {
            true => Found::Some(whole.len(), None),
            false => Found::Unfinished,
        };
    };
    let numbers = String::from_utf8_lossy(&rest[..end]).into_owned();
    let mut numbers = numbers.split(';').map(|number| number.parse::<u8>().ok());
    let (first, second) = (numbers.next().flatten(), numbers.next().flatten());
    // One more than the sum of 1 for shift, 2 for alt and 4 for control.
    let held = second.unwrap_or(1).saturating_sub(1);
    let mut modifiers = KeyModifiers::NONE;
    modifiers.set(KeyModifiers::SHIFT, held & 1 != 0);
    modifiers.set(KeyModifiers::ALT, held & 2 != 0);
    modifiers.set(KeyModifiers::CONTROL, held & 4 != 0);
    let code = match (rest[end], first) {
        (b'~', Some(1 | 7)) => Some(KeyCode::Home),
        (b'~', Some(3)) => Some(KeyCode::Delete),
        (b'~', Some(4 | 8)) => Some(KeyCode::End),
        (b'~', Some(5)) => Some(KeyCode::PageUp),
        (b'~', Some(6)) => Some(KeyCode::PageDown),
        (b'~', _) => None,
        (letter, _) => named(letter),
    };
    Found::Some(end + 3, code.map(|code| key(code, modifiers)))
}

fn named(letter: u8) -> Option<KeyCode> {
    Some(match letter {
        b'A' => KeyCode::Up,
        b'B' => KeyCode::Down,
        b'C' => KeyCode::Right,
        b'D' => KeyCode::Left,
        b'F' => KeyCode::End,
        b'H' => KeyCode::Home,
        b'M' => KeyCode::Enter,
        b'Z' => KeyCode::BackTab,
        _ => return None,
    })
}

fn pasted(whole: &[u8]) -> Found {
    let rest = &whole[PASTE.len()..];
    let end = rest
        .windows(PASTE_END.len())
        .position(|part| part == PASTE_END);
    let (text, used) = match end {
        Some(end) => (&rest[..end], PASTE.len() + end + PASTE_END.len()),
        None if rest.len() > MOST_PASTED => (rest, whole.len()),
        None => return Found::Unfinished,
    };
    let text = String::from_utf8_lossy(text).into_owned();
    Found::Some(used, Some(Message::Paste(text)))
}

fn character(bytes: &[u8]) -> Found {
    let Some(byte) = bytes.first() else {
        return Found::Unfinished;
    };
    let plain = |code| Found::Some(1, Some(key(code, KeyModifiers::NONE)));
    match byte {
        b'\r' | b'\n' => plain(KeyCode::Enter),
        b'\t' => plain(KeyCode::Tab),
        0x7f | 0x08 => plain(KeyCode::Backspace),
        0x01..=0x1a => {
            let letter = char::from(byte - 1 + b'a');
            Found::Some(1, Some(key(KeyCode::Char(letter), KeyModifiers::CONTROL)))
        }
        0x00..=0x1f => Found::Some(1, None),
        0x20..=0x7e => plain(KeyCode::Char(char::from(*byte))),
        _ => {
            let length = match byte {
                0xc2..=0xdf => 2,
                0xe0..=0xef => 3,
                0xf0..=0xf4 => 4,
                // No character begins like this.
                _ => return Found::Some(1, None),
            };
            let Some(whole) = bytes.get(..length) else {
                return Found::Unfinished;
            };
            match std::str::from_utf8(whole)
                .ok()
                .and_then(|text| text.chars().next())
            {
                Some(c) => Found::Some(length, Some(key(KeyCode::Char(c), KeyModifiers::NONE))),
                None => Found::Some(1, None),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8]) -> Vec<String> {
        let mut input = Input::default();
        let mut all = input.take(bytes);
        all.extend(input.finish());
        all.iter().map(words).collect()
    }

    fn words(message: &Message) -> String {
        match message {
            Message::Key(key) if key.modifiers.is_empty() => format!("{}", key.code),
            Message::Key(key) => format!("{}+{}", key.modifiers, key.code),
            Message::Paste(text) => format!("paste {text:?}"),
            other => format!("{other:?}"),
        }
    }

    #[test]
    fn bytes_become_keys() {
        for (bytes, keys) in [
            (&b"aq"[..], &["a", "q"][..]),
            (b"\x1b[A\x1b[B\x1bOC", &["Up", "Down", "Right"]),
            (b"\x1b", &["Esc"]),
            (b"\x1b\x1b[A", &["Esc", "Up"]),
            (b"\x1bq", &["Alt+q"]),
            (
                b"\x1b[5~\x1b[6~\x1b[H\x1b[4~\x1b[3~",
                &["Page Up", "Page Down", "Home", "End", "Del"],
            ),
            (b"\x1b[1;5D\x1b[Z\t", &["Control+Left", "Back Tab", "Tab"]),
            (
                b"\x03\x1a\r\x7f",
                &["Control+c", "Control+z", "Enter", "Backspace"],
            ),
            ("ñ漢".as_bytes(), &["ñ", "漢"]),
            (
                b"\x1b[200~q\nx\x1b[A\x1b[201~y",
                &["paste \"q\\nx\\u{1b}[A\"", "y"],
            ),
            // Unknown keys mean nothing, and neither do incomplete ones.
            (b"\x1b[99~\x1b[?1;2c\xff\x00z", &["z"]),
            (b"\x1b[1;", &[]),
            (b"\xe6\xbc", &[]),
        ] {
            assert_eq!(read(bytes), keys, "{bytes:?}");
        }
    }

    #[test]
    fn a_key_may_come_in_parts() {
        let mut input = Input::default();
        let mut keys = Vec::new();
        for byte in "\x1b[1;5C漢\x1b[200~ab\x1b[201~".bytes() {
            keys.extend(input.take(&[byte]));
        }
        let keys: Vec<String> = keys.iter().map(words).collect();
        assert_eq!(keys, ["Control+Right", "漢", "paste \"ab\""]);
        assert!(!input.is_unfinished());
    }

    #[test]
    fn what_never_ends_is_given_up() {
        let mut input = Input::default();
        input.take(b"\x1b[");
        input.take(&[b'1'; 200]);
        assert!(!input.is_unfinished());
        let mut paste = PASTE.to_vec();
        paste.extend(vec![b'x'; MOST_PASTED + 1]);
        assert_eq!(input.take(&paste).len(), 1);
    }
}
