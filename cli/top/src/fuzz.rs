//! Fuzz targets: bytes from a terminal, and text on its way to a cell; see [`store::fuzz`].

use store::fuzz::{Target, assert_is_one_plain_line};
use term::prompt::Edit;

use super::input::Input;
use super::model::Message;
use super::text;

/// The targets of the view.
pub const TARGETS: &[Target] = &[("typed_keys", typed_keys)];

/// Bytes from a terminal, as keys into the line in which a person types.
fn typed_keys(data: &[u8]) {
    let (mut input, mut edit) = (Input::default(), Edit::default());
    let (first, rest) = store::fuzz::halves(data);
    for piece in [first, rest] {
        for message in input.take(piece) {
            match message {
                Message::Key(key) => drop(edit.key(key)),
                Message::Paste(text) => edit.paste(&text),
                _ => {}
            }
            // One column is the minimum.
            let room = first.len().max(1);
            let (shown, at) = edit.view(room);
            assert!(
                text::width(&shown) <= room && at <= room,
                "{shown:?} at {at} of {room}"
            );
            assert!(!shown.contains(char::is_control), "{shown:?}");
        }
    }
    input.finish();
    assert!(!input.is_unfinished() || data.windows(6).any(|part| part == b"\x1b[200~"));
}

/// Text of others in the live view.
pub fn shown_text(shown: &str, room: usize) {
    let line = text::line(shown);
    assert_is_one_plain_line(&line);
    let lines = text::lines(shown);
    lines.iter().for_each(|line| assert_is_one_plain_line(line));
    assert!(
        text::width(&text::cut(&line, room)) <= room,
        "{line:?} in {room}"
    );
    assert_eq!(text::width(&text::pad(&line, room)), room, "{line:?}");
    assert_eq!(text::width(&text::pad_left(&line, room)), room, "{line:?}");
    for part in text::wrap(&line, room) {
        assert!(text::width(&part) <= room.max(2), "{part:?} in {room}");
    }
}
