//! The keys and what they do: one table for the view, its help, and docs/watch.md.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::model::Pane;

/// The command that a key stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Command {
    Up,
    Down,
    PageUp,
    PageDown,
    First,
    Last,
    Open,
    Back,
    Show(Pane),
    NextPane,
    PreviousPane,
    Needs,
    NextTeam,
    Approve,
    Deny,
    Message,
    Say,
    Diff,
    Land,
    Reject,
    Retry,
    Stop,
    Filter,
    Finished,
    Help,
    Redraw,
    Interrupt,
    Suspend,
    Quit,
}

/// The table, in the order in which help shows it: keys, what they do.
pub(crate) const HELP: &[(&str, &str)] = &[
    ("↑ ↓  k j", "choose; PgUp PgDn Home End go further"),
    (
        "Enter",
        "look inside: a transcript, a task, a tool call; again: back",
    ),
    ("Esc", "back, or clear the filter"),
    (
        "1-7  Tab",
        "agents, board, graph, transcript, changes, mail, progress",
    ),
    ("!", "what needs you, with the whole question"),
    ("a  y", "approve the chosen request: a permission or a plan"),
    ("n", "deny it; r denies it and says why"),
    ("m", "message the chosen agent"),
    ("i  :", "type to the lead; ↑ brings earlier lines back"),
    ("d", "changes of the chosen agent or task as a diff"),
    ("l", "land the chosen task's work"),
    ("r", "reject the chosen task's result, with feedback"),
    ("t", "retry the chosen parked task"),
    (
        "x",
        "stop the chosen agent (asks first); dismiss a finished one",
    ),
    ("/", "filter the list"),
    ("f", "show or fold finished agents"),
    ("]", "next team"),
    ("?", "this help"),
    (
        "q  Ctrl-C",
        "leave the view; ccb says what continues and how to come back",
    ),
    ("Ctrl-Z  Ctrl-L", "suspend; draw again"),
];

/// The command of a key when no text is being typed.
pub(crate) fn command(key: KeyEvent) -> Option<Command> {
    let control = key.modifiers.contains(KeyModifiers::CONTROL);
    if control {
        return match key.code {
            KeyCode::Char('c') => Some(Command::Interrupt),
            KeyCode::Char('z') => Some(Command::Suspend),
            KeyCode::Char('l') => Some(Command::Redraw),
            KeyCode::Char('b') => Some(Command::PageUp),
            KeyCode::Char('f') => Some(Command::PageDown),
            _ => None,
        };
    }
    // Alt with a letter is another key, and Esc with a quick letter after it looks the same.
    if key.modifiers.contains(KeyModifiers::ALT) {
        return None;
    }
    Some(match key.code {
        KeyCode::Up | KeyCode::Char('k') => Command::Up,
        KeyCode::Down | KeyCode::Char('j') => Command::Down,
        KeyCode::PageUp => Command::PageUp,
        KeyCode::PageDown | KeyCode::Char(' ') => Command::PageDown,
        KeyCode::Home | KeyCode::Char('g') => Command::First,
        KeyCode::End | KeyCode::Char('G') => Command::Last,
        KeyCode::Enter => Command::Open,
        KeyCode::Esc => Command::Back,
        KeyCode::Tab => Command::NextPane,
        KeyCode::BackTab => Command::PreviousPane,
        KeyCode::Char(c @ '1'..='7') => {
            let number = usize::from(c as u8 - b'1');
            Command::Show(*Pane::NUMBERED.get(number)?)
        }
        KeyCode::Char('!' | '0') => Command::Needs,
        KeyCode::Char('a' | 'y') => Command::Approve,
        KeyCode::Char('n') => Command::Deny,
        KeyCode::Char('m') => Command::Message,
        KeyCode::Char('i' | ':') => Command::Say,
        KeyCode::Char('d') => Command::Diff,
        KeyCode::Char('l') => Command::Land,
        KeyCode::Char('r') => Command::Reject,
        KeyCode::Char('t') => Command::Retry,
        KeyCode::Char('x') => Command::Stop,
        KeyCode::Char('/') => Command::Filter,
        KeyCode::Char('f') => Command::Finished,
        KeyCode::Char(']') => Command::NextTeam,
        KeyCode::Char('?' | 'h') => Command::Help,
        KeyCode::Char('q') => Command::Quit,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(code: KeyCode) -> KeyEvent {
        KeyEvent::new(code, KeyModifiers::NONE)
    }

    /// Every single character that help names does something, and every other does nothing.
    #[test]
    fn help_names_every_key_and_no_other() {
        let named: Vec<&str> = HELP
            .iter()
            .flat_map(|(keys, _)| keys.split_whitespace())
            .collect();
        let meant = |word: &str| match word.chars().collect::<Vec<char>>()[..] {
            [one] => command(key(KeyCode::Char(one))).is_some() || "↑↓".contains(one),
            _ => ["1-7", "Tab", "Enter", "Esc", "Ctrl-C", "Ctrl-Z", "Ctrl-L"].contains(&word),
        };
        for word in &named {
            assert!(meant(word), "{word}");
        }
        // Additional names of keys in the table: vi's, and the space bar.
        let also = ['g', 'G', 'h', ' ', '0'];
        for c in ' '..='~' {
            let does = command(key(KeyCode::Char(c))).is_some();
            let known = named.contains(&c.to_string().as_str())
                || also.contains(&c)
                || ('1'..='7').contains(&c);
            assert_eq!(does, known, "{c:?}");
        }
    }

    #[test]
    fn the_guide_shows_this_table() {
        let page = include_str!("../../../docs/watch.md");
        for (keys, does) in HELP {
            let keys: Vec<String> = keys
                .split_whitespace()
                .map(|key| format!("`{key}`"))
                .collect();
            let row = format!("| {} | {does} |", keys.join(" "));
            assert!(page.contains(&row), "docs/watch.md lacks: {row}");
        }
    }
}
