//! Keys in, effects out; and pictures of every pane at three sizes.

mod keys;
mod pictures;
mod scene;
mod trouble;

use std::sync::Arc;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use observe::live::Scene;
use ratatui::Terminal;
use ratatui::backend::TestBackend;

use super::model::{Effect, Message, Model, Role};
use super::{update::update, view};

/// The time of everything, in ms since 1970.
const NOW: i64 = 1_790_000_000_000;

fn watcher(size: (u16, u16), scene: Scene) -> Model {
    let mut model = Model::new(Role::Watcher, NOW, size);
    update(&mut model, Message::Scene(Arc::new(scene)));
    model
}

fn session(scene: Scene) -> Model {
    let role = Role::Session {
        team: "fixers".into(),
    };
    let mut model = Model::new(role, NOW, (80, 24));
    update(&mut model, Message::Scene(Arc::new(scene)));
    model
}

fn press(model: &mut Model, code: KeyCode) -> Vec<Effect> {
    let key = KeyEvent::new(code, KeyModifiers::NONE);
    update(model, Message::Key(key))
}

fn control(model: &mut Model, c: char) -> Vec<Effect> {
    let key = KeyEvent::new(KeyCode::Char(c), KeyModifiers::CONTROL);
    update(model, Message::Key(key))
}

/// Presses one character after the other; `\r` is Enter, `\x1b` Esc, `↓` and `↑` themselves.
fn keys(model: &mut Model, text: &str) -> Vec<Effect> {
    let mut effects = Vec::new();
    for c in text.chars() {
        effects.extend(press(
            model,
            match c {
                '\r' => KeyCode::Enter,
                '\x1b' => KeyCode::Esc,
                '\t' => KeyCode::Tab,
                '↓' => KeyCode::Down,
                '↑' => KeyCode::Up,
                c => KeyCode::Char(c),
            },
        ));
    }
    effects.retain(|effect| !matches!(effect, Effect::Follow(_)));
    effects
}

fn picture(model: &Model) -> Terminal<TestBackend> {
    let backend = TestBackend::new(model.columns, model.rows);
    let mut terminal = Terminal::new(backend).unwrap();
    terminal.draw(|frame| view::draw(frame, model)).unwrap();
    terminal
}

/// The text on the screen, row by row, without blanks at the end.
fn shown(model: &Model) -> String {
    let terminal = picture(model);
    let buffer = terminal.backend().buffer();
    let mut text = String::new();
    for y in 0..model.rows {
        let mut row = String::new();
        let mut skip = 0;
        for x in 0..model.columns {
            let symbol = buffer[(x, y)].symbol();
            // A wide glyph takes the next cell, too.
            if skip > 0 {
                skip -= 1;
                continue;
            }
            skip = unicode_width::UnicodeWidthStr::width(symbol).saturating_sub(1);
            row.push_str(symbol);
        }
        text.push_str(row.trim_end());
        text.push('\n');
    }
    text
}
